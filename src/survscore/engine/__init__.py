"""The engine: from checked input through sums that merge to scores and their moments.

`evaluation` is the front door, `sums` the first moments, `moments` the second, `bounds` what drop-outs could change;
`compiled` runs the loops as machine code, and `backend` chooses between it and NumPy.
"""

"""The engine: from checked input through sums that merge to scores and their moments.

`evaluation` is the front door and has the order of the work: `plan`, `prepared`, and a runner for each family of
metrics in `loss_scores`, `pooled` and `histories`. `sums` are the first moments, `second_moments` and `moments` the
second, `bounds` what drop-outs could change; `compiled` runs the loops as machine code.
"""

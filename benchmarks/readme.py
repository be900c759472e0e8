"""Write the part of README.md that quotes benchmarks, from the files in docs/benchmarks."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

from results import quote

README = Path(__file__).parents[1] / "README.md"
START, STOP = "<!-- written by benchmarks/readme.py -->", "<!-- up to here -->"
#: What stands in double brackets is quoted, as `results.quote` does.
TABLE = """\
| milliseconds, [[scores | machine | {cores} cores]] | 100k x 150 | 1M x 150 |
| --- | ---: | ---: |
| one parallel sum over the matrix (the floor) | [[floor A: one parallel sum over the matrix]] |
| **administrative Brier** | [[administrative Brier]] |
| **administrative Brier with standard errors** | [[one model, Brier, administrative: with standard errors]] |
| **two models compared, Kaplan-Meier IPCW** | [[two models, Brier, ipcw: compared]] |
| pycox, administrative Brier alone | [[pycox, administrative Brier]] |
| scikit-survival, IPCW Brier | [[scikit-survival, brier_score]] |"""
SENTENCES = """
One run of `benchmarks/scores.py`, preparation included. Small data are scored with NumPy, without compiling.
[[scale | settings | {rows} x {times}]] predictions in Parquet files are compared in
[[scale | files | administrative Brier, two models with paired errors | {wall:.1f} seconds and {peak:GB.1f} GB]]. More
peers, memory, [[cores | machine | {cores} cores]], GPUs and training in
[performance](docs/performance.rst)."""


def written() -> str:
    """Return the part with its numbers."""
    table, sentences = (re.sub(r"\[\[(.+?)\]\]", lambda found: _quoted(found[1]), text) for text in (TABLE, SENTENCES))
    filled = textwrap.fill(sentences.strip(), 140, break_long_words=False, break_on_hyphens=False)
    return f"{table}\n\n{filled}"


def _quoted(asked: str) -> str:
    """Return what an address quotes; a name alone is a row of the table, with its two numbers."""
    if "|" in asked:
        return quote(asked)
    table = "peers" if asked.startswith(("pycox", "scikit-survival")) else "scores"
    return " | ".join(quote(f"scores | {table} | {asked} | {{seconds {size}:ms}}") for size in ("100 000", "1 000 000"))


def with_part(readme: str) -> str:
    """Return the whole README with that part in its place."""
    before, _, rest = readme.partition(START)
    _, stop, after = rest.partition(STOP)
    if not stop:
        raise ValueError(f"README.md has no part between {START} and {STOP}")
    return f"{before}{START}\n\n{written()}\n\n{STOP}{after}"


if __name__ == "__main__":
    README.write_text(with_part(README.read_text(encoding="utf-8")), encoding="utf-8")

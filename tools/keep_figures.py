"""Take over into the documentation what ``survscore reproduce`` has written: pictures, and numbers of its tables.

``python tools/keep_figures.py reproduction`` takes every figure that the folder has. Look at the pictures, and read the
words beside the tables in docs/reproduction.rst and docs/kkbox.rst again: they speak of numbers, too.
"""

import shutil
import sys
from pathlib import Path

DOCS = Path(__file__).parent.parent / "docs"
TABLES = ("claims.csv", "integrated.csv", "settings.json")


def keep(run):
    """Copy what is kept of each figure of a run; return their names."""
    figures = sorted(path.parent for path in run.glob("figure-*/settings.json"))
    for figure in figures:
        kept = DOCS / "reproduction" / figure.name
        kept.mkdir(parents=True, exist_ok=True)
        shutil.copy(figure / f"{figure.name}.png", DOCS / "_static")
        for table in TABLES:
            shutil.copy(figure / table, kept)
    return [figure.name for figure in figures]


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("keep_figures.py: which folder? that of survscore reproduce --out")
    kept = keep(Path(sys.argv[1]))
    if not kept:
        raise SystemExit(f"keep_figures.py: {sys.argv[1]} has no figure that survscore reproduce has written")
    print("kept:", ", ".join(kept))

"""Take over into the documentation what ``survscore reproduce`` has written: pictures, and numbers of its tables.

``python tools/keep_figures.py reproduction`` takes every figure that the folder has; with ``--pictures`` before the
folder, the pictures alone, of a run with fewer replicates than the tables are of. Look at the pictures, and read the
words beside the tables in docs/reproduction.rst and docs/kkbox.rst again: they speak of numbers, too.
"""

import shutil
import sys
from pathlib import Path

DOCS = Path(__file__).parent.parent / "docs"
TABLES = ("claims.csv", "integrated.csv", "settings.json")
#: The settings of the run that a picture is of, where that is another than the tables'.
PICTURE = "picture.json"


def keep(run, *, pictures_alone=False):
    """Copy what is kept of each figure of a run; return their names."""
    figures = sorted(path.parent for path in run.glob("figure-*/settings.json"))
    for figure in figures:
        kept = DOCS / "reproduction" / figure.name
        kept.mkdir(parents=True, exist_ok=True)
        shutil.copy(figure / f"{figure.name}.png", DOCS / "_static")
        if pictures_alone:
            shutil.copy(figure / "settings.json", kept / PICTURE)
            continue
        (kept / PICTURE).unlink(missing_ok=True)
        for table in TABLES:
            shutil.copy(figure / table, kept)
    return [figure.name for figure in figures]


if __name__ == "__main__":
    pictures_alone = sys.argv[1:2] == ["--pictures"]
    folders = sys.argv[1 + pictures_alone :]
    if len(folders) != 1:
        raise SystemExit("keep_figures.py: which folder? that of survscore reproduce --out")
    kept = keep(Path(folders[0]), pictures_alone=pictures_alone)
    if not kept:
        raise SystemExit(f"keep_figures.py: {folders[0]} has no figure that survscore reproduce has written")
    print("kept:", ", ".join(kept))

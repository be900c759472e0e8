"""A demo whose numbers are kept, so that tests of what it shows train nothing.

``python tests/demo_case.py`` runs the demo and writes the numbers anew.
"""

from functools import cache
from pathlib import Path

import pandas as pd

from survscore.paper import demo
from survscore.paper import studies as s

FOLDER = Path(__file__).parent / "reference" / "demo"
SIZE = s.DEMO_SIZES["demo"]


@cache
def kept():
    """Return the demo as it was when its numbers were written; without a report."""
    table, around = (pd.read_csv(FOLDER / f"{name}.csv", float_precision="round_trip") for name in ("table", "around"))
    return demo.Demo(table, around, settings={}, report=None)


def write():
    """Run the demo, and keep what its texts and pictures show."""
    made = demo.run(size=SIZE)
    shown = made.table[made.table.kind.isin([s.INTEGRATED, s.DIFFERENCE])].dropna(axis="columns", how="all")
    shown.to_csv(FOLDER / "table.csv", index=False)
    made.around.to_csv(FOLDER / "around.csv", index=False)


if __name__ == "__main__":
    write()

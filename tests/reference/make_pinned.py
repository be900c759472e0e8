"""Write pinned.npz and pinned.json: results of many small cases, with which tests/test_pinned.py compares.

They were made with version 0.2 at commit e8810ec, from the root of the repository, by

    PYTHONPATH=src python tests/reference/make_pinned.py

and should be made anew only for cases that are added: what changes otherwise is a change of results. Numbers are in
pinned.npz, one array for each case, which holds its quantities one after the other; pinned.json says which and how
long they are (layout), and has verdicts and other text (texts), each once for all cases that have the same.
"""

import json
import sys
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parent
sys.path.insert(0, str(FOLDER.parent))

import pinned_cases  # noqa: E402


def main():
    numbers, cases, layouts, texts = {}, {}, [], []
    for name in pinned_cases.CASES:
        found = pinned_cases.computed(name)
        of_numbers = {quantity: values for quantity, values in found.items() if values.dtype.kind == "f"}
        of_text = {quantity: values.tolist() for quantity, values in found.items() if quantity not in of_numbers}
        numbers[name] = np.concatenate(list(of_numbers.values()))
        sizes = {quantity: values.size for quantity, values in of_numbers.items()}
        cases[name] = {"layout": place(layouts, sizes), "texts": place(texts, of_text)}
    np.savez_compressed(FOLDER / "pinned.npz", **numbers)
    kept = json.dumps({"cases": cases, "layouts": layouts, "texts": texts}, indent=0, separators=(",", ":"))
    (FOLDER / "pinned.json").write_text(kept + "\n")


def place(several, one):
    """Return where this is among several; many cases have the same."""
    if one not in several:
        several.append(one)
    return several.index(one)


if __name__ == "__main__":
    main()

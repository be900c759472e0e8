"""Write pinned.npz and pinned.json: results of many small cases, with which tests/test_pinned.py compares.

The numbers kept are those of version 0.2, at commit e8810ec: that is what they are worth. Only four intervals of skill,
with one degree of freedom, were taken out, since there is none any more; and cases of files were recorded anew, since
0.2 rounded products of losses to whole numbers: its standard errors of means were off by up to 3e-6, and those recorded
now are those of the same comparison in memory, to 1e-15; so are bounds of means over time, which are closer. The cases
have since been written in today's names, so that to run this again replaces the numbers of 0.2 by those of today, and
the comparison by one of today's code with itself. It therefore refuses unless told so, from the root of the repository:

    PYTHONPATH=src python tests/reference/make_pinned.py --replace [--cases PATTERN]

which is right where a change of results is meant, or for cases that are added; look then at what else has changed.
Numbers are in pinned.npz, one array for each case, which holds its quantities one after the other; pinned.json says
which and how long they are (layout), and has verdicts and other text (texts), each once for all cases that have the
same.
"""

import argparse
import json
import re
import sys
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parent
sys.path.insert(0, str(FOLDER.parent))

import pinned_cases  # noqa: E402


def main(arguments=None):
    parser = argparse.ArgumentParser(
        description="Write the record of results with which tests/test_pinned.py compares."
    )
    parser.add_argument("--replace", action="store_true", help="replace the numbers of version 0.2 by those of today")
    parser.add_argument("--cases", default="", help="only of cases whose name has this regular expression")
    recorded = [FOLDER / name for name in ("pinned.npz", "pinned.json")]
    asked = parser.parse_args(arguments)
    if not asked.replace and any(path.exists() for path in recorded):
        parser.error(
            "the record is of version 0.2, and would be replaced by numbers of today: say --replace if that is meant"
        )
    numbers, cases, layouts, texts = {}, {}, [], []
    if asked.cases:
        kept = json.loads(recorded[1].read_text())
        numbers, cases, layouts, texts = dict(np.load(recorded[0])), kept["cases"], kept["layouts"], kept["texts"]
    for name in filter(re.compile(asked.cases).search, pinned_cases.CASES):
        found = pinned_cases.computed(name)
        of_numbers = {quantity: values for quantity, values in found.items() if values.dtype.kind == "f"}
        of_text = {quantity: values.tolist() for quantity, values in found.items() if quantity not in of_numbers}
        numbers[name] = np.concatenate(list(of_numbers.values()))
        sizes = {quantity: values.size for quantity, values in of_numbers.items()}
        cases[name] = {"layout": place(layouts, sizes), "texts": place(texts, of_text)}
    np.savez_compressed(recorded[0], **numbers)
    kept = json.dumps({"cases": cases, "layouts": layouts, "texts": texts}, indent=0, separators=(",", ":"))
    recorded[1].write_text(kept + "\n")


def place(several, one):
    """Return where this is among several; many cases have the same."""
    if one not in several:
        several.append(one)
    return several.index(one)


if __name__ == "__main__":
    main()

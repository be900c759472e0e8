"""What is kept of runs of ``survscore reproduce``, in ``docs/reproduction``, as lines of reStructuredText.

``python tools/keep_figures.py FOLDER`` takes a run over.
"""

import csv
import json

from list_tables import list_table, plain

LOSSES = {"brier": "Brier score", "log": "log-likelihood"}


def claims(folder):
    """Return the table of what the paper says about a figure, a column for each loss, and which run it is from."""
    settings, answers = json.loads((folder / "settings.json").read_text(encoding="utf-8")), {}
    for row in _rows(folder / "claims.csv"):
        answers.setdefault(row["claim"], {})[row["loss"]] = answer(row)
    losses = [loss for loss in LOSSES if any(loss in found for found in answers.values())] or [""]
    n = settings["replicates"]
    what = f"{'holds' if n == 1 else f'held in, of {n}'}; margin [95 % interval]"
    heads = [f"{LOSSES[loss]}: {what if loss == losses[0] else 'the same'}" if loss else what for loss in losses]
    rows = [[claim, *(found.get(loss, found.get("")) for loss in losses)] for claim, found in answers.items()]
    return [*list_table([["claim", *heads], *rows]), *_origin(folder.name, settings)]


def _origin(figure, settings):
    versions = ", ".join(f"{package} {version}" for package, version in settings["versions"].items())
    files = ", ".join(f":download:`{name} </reproduction/{figure}/{name}.csv>`" for name in ("claims", "integrated"))
    return [".. rst-class:: benchmark-run", "", f"Seed {settings['seed']}; {plain(versions)}; {files}.", ""]


def answer(row):
    """Return whether a claim holds, or in how many replicates, with its margin and the interval of that."""
    if row["replicates"] == "0":
        return f"not checked: needs {row['needs']}"
    held = round(float(row["share"]) * int(row["replicates"]))
    told = held if row["replicates"] != "1" else "yes" if held else "no"
    interval = f" [{float(row['lower']):+.3f}, {float(row['upper']):+.3f}]" if row["lower"] else ""
    return f"{told}; {float(row['margin']):+.3f}{interval}"


def integrated_scores(folder):
    """Return the table of integrated Brier scores of the first replicate, models side by side."""
    found = {}
    for row in _rows(folder / "integrated.csv"):
        if (row["loss"], row["replicate"]) == ("brier", "0"):
            score = f"{float(row['value']):.4f} ({float(row['se']):.4f})"
            found.setdefault(row["weighting"], {})[row["model"]] = score
    models = list(next(iter(found.values())))
    return list_table([["score", *models], *([name, *map(by.get, models)] for name, by in found.items())])


def _rows(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))

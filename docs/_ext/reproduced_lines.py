"""What is kept of runs of ``survscore reproduce``, in ``docs/reproduction``, as lines of reStructuredText.

``python tools/keep_figures.py FOLDER`` takes a run over.
"""

import json

import pandas as pd
from list_tables import list_table, plain

from survscore.paper.claims import answer

LOSSES = {"brier": "Brier score", "log": "log-likelihood"}


def claims(folder):
    """Return the table of what the paper says about a figure, a column for each loss, and which run it is from."""
    settings, answers = json.loads((folder / "settings.json").read_text(encoding="utf-8")), {}
    for row in pd.read_csv(folder / "claims.csv").fillna({"loss": ""}).to_dict("records"):
        answers.setdefault(row["claim"], {})[row["loss"]] = "; ".join(answer(row))
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


def integrated_scores(folder):
    """Return the table of integrated Brier scores of the first replicate, models side by side."""
    table = pd.read_csv(folder / "integrated.csv").query("loss == 'brier' and replicate == 0")
    cells = {(row.weighting, row.model): f"{row.value:.4f} ({row.se:.4f})" for row in table.itertuples()}
    models = table.model.unique()
    rows = [[name, *(cells[name, model] for model in models)] for name in table.weighting.unique()]
    return list_table([["score", *models], *rows])

"""What the pages show of ``docs/reproduction``: runs of ``survscore reproduce``, so that no number is typed in.

- ``.. claims:: figure-4`` is the table of what the paper says about a figure, with what the run was.
- ``.. integrated-scores:: figure-6`` has its integrated Brier scores, models side by side.

``python tools/keep_figures.py FOLDER`` takes a run over into it.
"""

import csv
import json
from pathlib import Path

from docutils.statemachine import StringList
from list_tables import list_table, plain
from sphinx.util.docutils import SphinxDirective

FOLDER = "reproduction"
LOSSES = {"brier": "Brier score", "log": "log-likelihood"}


class _Reproduced(SphinxDirective):
    """Something that is kept of a run, by the name of its figure."""

    required_arguments = 1

    def run(self):
        """Return it as nodes."""
        return self.parse_text_to_nodes(StringList(self.lines(), self.arguments[0]))

    def rows(self, name):
        """Read a table, and have the page made anew when it changes."""
        with self._path(name).open(newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))

    def settings(self):
        """Return what the run was."""
        return json.loads(self._path("settings.json").read_text(encoding="utf-8"))

    def _path(self, name):
        path = Path(self.env.srcdir) / FOLDER / self.arguments[0] / name
        self.env.note_dependency(str(path))
        return path


class Claims(_Reproduced):
    """The claims of a figure, with what became of them."""

    def lines(self):
        """Return a table, one column for each loss, and below it which run it is from."""
        settings, answers = self.settings(), {}
        for row in self.rows("claims.csv"):
            answers.setdefault(row["claim"], {})[row["loss"]] = answer(row)
        losses = [loss for loss in LOSSES if any(loss in found for found in answers.values())]
        n = settings["replicates"]
        what = f"{'holds' if n == 1 else f'held in, of {n}'}; margin [95 % interval]"
        heads = [f"{LOSSES[loss]}: {what if loss == losses[0] else 'the same'}" for loss in losses] or [what]
        rows = [
            [claim, *(found.get(loss, found.get("", "")) for loss in losses or [""])]
            for claim, found in answers.items()
        ]
        return [*list_table([["claim", *heads], *rows], classes=["claims"]), *self._origin(settings)]

    def _origin(self, settings):
        versions = ", ".join(f"{package} {version}" for package, version in settings["versions"].items())
        files = ", ".join(
            f":download:`{name} </{FOLDER}/{self.arguments[0]}/{name}.csv>`" for name in ("claims", "integrated")
        )
        return [".. rst-class:: benchmark-run", "", f"Seed {settings['seed']}; {plain(versions)}; {files}.", ""]


class IntegratedScores(_Reproduced):
    """The integrated Brier scores of one replicate."""

    def lines(self):
        """Return a table with a column for each model and a row for each weighting."""
        found = {}
        for row in self.rows("integrated.csv"):
            if (row["loss"], row["replicate"]) == ("brier", "0"):
                found.setdefault(row["weighting"], {})[row["model"]] = (
                    f"{float(row['value']):.4f} ({float(row['se']):.4f})"
                )
        models = list(next(iter(found.values())))
        return list_table([["score", *models], *([name, *map(by.get, models)] for name, by in found.items())])


def answer(row):
    """Return whether a claim holds, or in how many replicates, with its margin and the interval of that."""
    if row["replicates"] == "0":
        return f"not checked: needs {row['needs']}"
    held = round(float(row["share"]) * int(row["replicates"]))
    told = held if row["replicates"] != "1" else "yes" if held else "no"
    interval = f" [{float(row['lower']):+.3f}, {float(row['upper']):+.3f}]" if row["lower"] else ""
    return f"{told}; {float(row['margin']):+.3f}{interval}"


def setup(app):
    """Make them known."""
    app.add_directive("claims", Claims)
    app.add_directive("integrated-scores", IntegratedScores)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

"""The tables of conventions as lines of reStructuredText, from the packages of conformance.json."""

import re

#: For each table, the conventions that are its columns, with their headings.
COLUMNS = {
    "weights": {
        "event_weight": "with event: `weight <Weight of an observed event_>`_",
        "free_weight": "event-free: weight",
        "divisor": "divided by (`divisor`_)",
        "fitted_on": "`G fitted on`_",
    },
    "ties": {
        "ties": "`event and censoring at the same time`_, in G",
        "event_at_t": "T = t, with event",
        "censored_at_t": "`T = t without event`_",
        "censored_at_t_and_end": "T = t = C*, administrative score",
    },
    "end": {
        "last_censored": "last is censored: at that time",
        "last_censored_later": "later",
        "last_event": "last has the event: at that time",
        "last_event_later": "later",
        "event_and_censoring_last": "event and censoring at the last time",
        "training_ends_early": "`G is zero`_: training data end early",
        "largest_weight": "bound on weights",
    },
    "more": {
        "integrated": "`integrated score`_",
        "standard_errors": "`standard errors <Standard error of an IPCW score_>`_",
        "administrative": "administrative score (C* known)",
        "dropouts": "drop-outs beside C*",
    },
}

#: Of columns, where cells are too short to show how much room they need.
WIDTHS = {"weights": [16, 12, 11, 16, 12, 13, 20], "end": [15, 13, 12, 12, 10, 14, 13, 11]}


def list_table(heads, rows, widths=None):
    """Return a table as lines of reStructuredText."""
    lines = [".. list-table::", "   :header-rows: 1"]
    lines += [f"   :widths: {' '.join(map(str, widths))}", ""] if widths else [""]
    for cells in [heads, *rows]:
        lines += [f"   {'* -' if k == 0 else '  -'} {cell}" for k, cell in enumerate(cells)]
    return [*lines, ""]


def shown(text):
    """Return a finding as a cell: weights as formulas, nothing for what there is not."""
    if text == "not offered":
        return "\u2013"
    return re.sub(r"1/G\([Tt]-?\)", lambda weight: f":math:`{weight[0]}`", text)


def scored(packages):
    """Return the packages that have a Brier score."""
    return {name: package for name, package in packages.items() if package.get("brier_score")}


def conventions(table):
    """Return what makes a table of conventions; that of weights has versions and the number of the page, too."""

    def lines(packages):
        columns, first = COLUMNS[table], table == "weights"
        heads = ["package", *(["version", "score at 3"] if first else []), *columns.values()]
        rows = []
        for name, package in scored(packages).items():
            number = [package["version"], f"{package['numbers']['page'][0]:.6f}"] if first else []
            label = f"{name} (R)" if package["language"] == "R" else name
            rows.append([label, *number, *(shown(package["conventions"][key]) for key in columns)])
        return list_table(heads, rows, WIDTHS.get(table))

    return lines


def others(packages):
    """Return those without a score, and those that could not be asked."""
    rows = []
    for name, package in packages.items():
        if "reason" in package:
            rows.append([name, package["version"] or "", literal(package["reason"])])
        elif not package["brier_score"]:
            curve = f"; event and censoring at the same time in ``{package['call']}``: {package['ties']}"
            rows.append([name, package["version"], "no Brier score" + (curve if package["call"] else "")])
    return list_table(["package", "version", ""], rows)


def errors(packages):
    """Return in their own words why packages gave no number."""
    rows = []
    for name, package in scored(packages).items():
        messages = {}
        for question, said in package["numbers"].items():
            if isinstance(said, str):
                messages.setdefault(said.removeprefix("error: "), []).append(question)
        rows += [[name, "; ".join(asked), literal(message)] for message, asked in messages.items()]
    return list_table(["package", "asked", "error"], rows)


def notes(packages):
    """Return what numbers can't tell, and the calls that were made, with the versions of what they stand on."""
    lines = []
    for name, package in scored(packages).items():
        versions = ", ".join(f"{other} {version}" for other, version in package["stands_on"].items())
        lines.append(f"- {name} ({versions}): ``{package['call']}``. {package['note']}".rstrip())
    return [*lines, ""]


def literal(text):
    """Return words in which nothing is mark-up."""
    return re.sub(r"([\\*`|_])", r"\\\1", text)


LISTS = {name: conventions(name) for name in COLUMNS}
LISTS |= {"others": others, "errors": errors, "notes": notes}

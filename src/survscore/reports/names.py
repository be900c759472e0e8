"""Short names of weightings, for charts and tables; the full ones stand beside them on hover and focus."""

from __future__ import annotations

from collections.abc import Sequence

KINDS = {"ipcw": "IPCW"}
MOST_CHARACTERS = 32


def short_names(weightings: Sequence[str]) -> list[str]:
    """Return a name for each weighting that is as short as tells it from the others.

    Parameters
    ----------
    weightings : sequence of str
        Labels such as ``"ipcw (Kaplan-Meier of the scored outcomes, max_weight=5)"``.

    Examples
    --------
    >>> from survscore.reports.names import short_names
    >>> short_names(["administrative (drop-out by Kaplan-Meier)", "ipcw (Kaplan-Meier of the scored outcomes)"])
    ['administrative', 'IPCW']
    >>> short_names(["ipcw (Kaplan-Meier of the scored outcomes)", "ipcw (individual curves)"])
    ['IPCW (Kaplan-Meier of the scor…)', 'IPCW (individual curves)']
    """
    parsed = [_parsed(label) for label in weightings]
    names = []
    for kind, settings in parsed:
        alike = [others for other, others in parsed if other == kind]
        shared = set(settings).intersection(*alike)
        own = ", ".join(one for one in settings if one not in shared)
        name = KINDS.get(kind, kind)
        if len(alike) > 1 and own:
            name += f" ({_cut(own)})"
        names.append(name)
    return [name if names.count(name) == 1 else label for name, label in zip(names, weightings, strict=True)]


def with_short_names(sentences: Sequence[str], weightings: Sequence[str]) -> list[str]:
    """Return sentences with short names in place of full ones; the longest first, since one may be part of another."""
    names = sorted(zip(weightings, short_names(weightings), strict=True), key=lambda pair: -len(pair[0]))
    found = list(sentences)
    for label, name in names:
        if "(" in label:
            found = [sentence.replace(label, name) for sentence in found]
    return found


def _parsed(label: str) -> tuple[str, list[str]]:
    kind, bracket, settings = label.partition(" (")
    if not bracket or not label.endswith(")"):
        return label, []
    return kind, settings[:-1].split(", ")


def _cut(text: str) -> str:
    most = MOST_CHARACTERS - len("IPCW ()")
    return text if len(text) <= most else f"{text[: most - 1]}…"

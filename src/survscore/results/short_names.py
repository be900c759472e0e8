"""Short names for weightings, which say in words all that they are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

KINDS = {"ipcw": "IPCW"}
MOST_CHARACTERS = 32


def short_names(labels: Iterable[str]) -> dict[str, str]:
    """Return for each weighting a name that is as short as tells it from the others.

    Examples
    --------
    >>> from survscore.results.short_names import short_names
    >>> list(short_names(["administrative", "ipcw (Kaplan-Meier of the scored outcomes)"]).values())
    ['administrative', 'IPCW']
    """
    parsed = {label: _parsed(label) for label in labels}
    found = {}
    for label, (kind, settings) in parsed.items():
        alike = [others for other, others in parsed.values() if other == kind]
        shared = set(settings).intersection(*alike)
        own = ", ".join(one for one in settings if one not in shared)
        name = _cut(KINDS.get(kind, kind), MOST_CHARACTERS)
        inside = _cut(own, MOST_CHARACTERS - len("IPCW ()"))
        found[label] = f"{name} ({inside})" if len(alike) > 1 and own else name
    names = list(found.values())
    return {label: name if names.count(name) == 1 else label for label, name in found.items()}


def legend(labels: Iterable[str]) -> list[str]:
    """Return a line for each label that is shortened: what its short name stands for."""
    return [
        f"{name}: {', '.join(_parsed(label)[1]) or label}"
        for label, name in short_names(labels).items()
        if label != name
    ]


def with_short_names(sentences: Sequence[str], labels: Iterable[str]) -> list[str]:
    """Return sentences with short names in place of full ones; the longest first, since one may be part of another."""
    found = list(sentences)
    for label, name in sorted(short_names(labels).items(), key=lambda pair: -len(pair[0])):
        if "(" in label:
            found = [sentence.replace(label, name) for sentence in found]
    return found


def _parsed(label: str) -> tuple[str, list[str]]:
    kind, bracket, settings = label.partition(" (")
    if not bracket or not label.endswith(")"):
        return label, []
    return kind, settings[:-1].split(", ")


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"

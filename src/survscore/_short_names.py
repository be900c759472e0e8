"""Short names for weightings, which say in words all that they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from survscore._validation import shown

LONGEST = 24


def short_names(labels: Iterable[str]) -> dict[str, str]:
    """Return a short name for each label, all of them different: what stands before its bracket.

    Where that is the same for two, or long, they are numbered.

    Examples
    --------
    >>> from survscore._short_names import short_names
    >>> short_names(["administrative", "ipcw (Kaplan-Meier of the scored outcomes)"])
    {'administrative': 'administrative', 'ipcw (Kaplan-Meier of the scored outcomes)': 'ipcw'}
    >>> list(short_names(["ipcw (a model)", "ipcw (a model, max_weight=10)"]).values())
    ['ipcw [1]', 'ipcw [2]']
    """
    distinct = list(dict.fromkeys(labels))
    first = {label: label.partition(" (")[0] for label in distinct}
    often = Counter(first.values())
    found, number = {}, 0
    for label, name in first.items():
        if often[name] == 1 and len(name) <= LONGEST:
            found[label] = name
        else:
            number += 1
            found[label] = f"{shown(name, LONGEST)} [{number}]"
    return found


def legend(labels: Iterable[str]) -> list[str]:
    """Return a line for each label that is shortened: what its short name stands for.

    Examples
    --------
    >>> from survscore._short_names import legend
    >>> legend(["administrative", "ipcw (Kaplan-Meier of the scored outcomes)"])
    ['ipcw: Kaplan-Meier of the scored outcomes']
    """
    found = []
    for label, name in short_names(labels).items():
        if label == name:
            continue
        inside = label.removeprefix(f"{name} (")
        found.append(f"{name}: {inside.removesuffix(')') if inside != label else label}")
    return found

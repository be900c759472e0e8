"""How much a test tries: each pair of values instead of each combination, and how many drawn examples."""

from itertools import combinations, product

import pytest
from hypothesis import settings

QUICK = 20  # examples that hypothesis draws in the quick suite, where a test does not say


def _label(row):
    return "-".join(getattr(value, "name", None) or str(value) for value in row)


def every_pair(**values):
    """Return the marker that runs a test with every pair of values of any two of its parameters at least once.

    A fault that shows only for three or more values together is rare, and combinations are many.
    """
    options = [list(some) for some in values.values()]
    rows = list(product(*(range(len(some)) for some in options)))
    pairs = {row: set(combinations(enumerate(row), 2)) for row in rows}
    missing, chosen = set().union(*pairs.values()), []
    while missing:
        chosen.append(max(rows, key=lambda row: len(pairs[row] & missing)))  # of several the first
        missing -= pairs[chosen[-1]]
    given = [[some[place] for some, place in zip(options, row, strict=True)] for row in sorted(chosen)]
    return pytest.mark.parametrize(list(values), given, ids=map(_label, given))


def examples(number):
    """Return the settings of a test that draws so many examples in the quick suite, and more where all tests run."""
    return settings(max_examples=number * settings.default.max_examples // QUICK)


def nightly_but(quick, every):
    """Return values of parameters of which the quick suite tries some, and the nightly run all."""
    rows = [(one, one if isinstance(one, tuple) else (one,)) for one in every]
    return [pytest.param(*row, marks=[] if one in quick else pytest.mark.nightly, id=_label(row)) for one, row in rows]

"""Which model each score prefers at the real data cut-off, and where two contradict each other significantly."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from survscore.analysis.backtest_results import pairs_of
from survscore.analysis.compare import Request
from survscore.analysis.cross_validation import out_of_fold
from survscore.paper.atlas.data import Prepared, hidden_share, scoreable
from survscore.paper.atlas.models import FAMILIES, Effort, ListedModel, estimators, family
from survscore.paper.atlas.scores import ADMINISTRATIVE, scores
from survscore.results.comparison import Comparison
from survscore.results.estimates import Estimates

#: In place of a horizon, the mean over all of them.
MEAN = "mean"
LEVEL = 0.95

Row = dict[str, Any]
Values = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Verdicts:
    """What one score says of all models and pairs, at each horizon and in the mean over them.

    Attributes
    ----------
    values, se : ndarray of shape (models, places)
        Where places are the horizons, then the mean.
    differences : ndarray of shape (pairs, places)
        The first's score minus the second's.
    sure : ndarray of shape (pairs, places)
        Whether the interval of the difference excludes zero.
    """

    values: Values
    se: Values
    differences: Values
    sure: NDArray[np.bool_]

    @classmethod
    def of(cls, comparison: Comparison, q: int) -> Verdicts:
        """Read them from a comparison, of the score at place q."""
        one = comparison.scored[q]
        weights, _ = comparison.means_over()[one.metric]
        n = len(comparison.models)
        first, second = pairs_of(n)
        found: list[list[Values]] = []
        for part in (Estimates(one, LEVEL), Estimates(one, LEVEL, weights)):
            contrasts = [part.difference(a, b) for a, b in zip(first, second, strict=True)]
            found.append(
                [
                    part.scores,
                    np.array([part.se(a, a) for a in range(n)]),
                    np.array([contrast["estimate"] for contrast in contrasts]),
                    np.array([np.isin(contrast["verdict"], ("better", "worse")) for contrast in contrasts]),
                ]
            )
        return cls(*(np.concatenate(several, axis=1) for several in zip(*found, strict=True)))


def at_closing(
    data: Prepared, entries: Sequence[ListedModel], effort: Effort, folds: int, seed: int
) -> dict[str, list[Row]]:
    """Return the scores of all models by predictions out of fold, and how the scores agree, as rows of two tables."""
    horizons = data.horizons[scoreable(data.y, data.horizons)]
    if horizons.size == 0:
        return {"scores": [], "closing": []}
    made = out_of_fold(
        estimators(entries, horizons, effort),
        data.X,
        data.y,
        cv=folds,
        groups=data.groups,
        n_jobs=1,
        seed=seed,
        progress=False,
    )
    return judged(data, entries, horizons, made.curves())


def judged(
    data: Prepared, entries: Sequence[ListedModel], horizons: Values, curves: Mapping[str, Any]
) -> dict[str, list[Row]]:
    """Return what the scores say of predictions, and how they agree, as rows of two tables."""
    weightings = {name: score(data.y) for name, score in scores().items()}
    at_horizons = {name: one.only_at(horizons) for name, one in curves.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few groups, and what has no score: tables tell both
        request = Request("brier", list(weightings.values()), horizons, groups=data.groups, level=LEVEL)
        comparison = request.run(data.y, at_horizons)
    said = {name: Verdicts.of(comparison, q) for q, name in enumerate(weightings)}
    places = [*horizons.tolist(), MEAN]
    hidden = [hidden_share(data.y, h) for h in horizons]
    hidden.append(float(np.mean(hidden)))
    names = list(comparison.models)
    table = [
        {"score": score, "model": model, "horizon": place, "brier": one.values[a, j], "se": one.se[a, j]}
        for score, one in said.items()
        for j, place in enumerate(places)
        for a, model in enumerate(names)
    ]
    rows = [
        {
            "family": one,
            "against": other,
            "horizon": place,
            "hidden": hidden[j],
            **agreement(names, family(one, entries), said[ADMINISTRATIVE], said[other], j),
        }
        for one in FAMILIES
        for other in said
        if other != ADMINISTRATIVE
        for j, place in enumerate(places)
    ]
    return {"scores": table, "closing": rows}


def agreement(names: Sequence[str], some: Sequence[str], administrative: Verdicts, other: Verdicts, j: int) -> Row:
    """Return how two scores agree on some of the models, at one place."""
    among = np.isin(names, some)
    first, second = pairs_of(len(names))
    pairs = among[first] & among[second]
    signs = [np.sign(one.differences[pairs, j]) for one in (administrative, other)]
    both_sure = administrative.sure[pairs, j] & other.sure[pairs, j]
    opposite = signs[0] * signs[1] < 0
    winners = [_winner(one.values[:, j], among) for one in (administrative, other)]
    return {
        "n_pairs": int(pairs.sum()),
        "differ": int(opposite.sum()),
        "both_sure": int(both_sure.sum()),
        "opposite_and_sure": int((opposite & both_sure).sum()),
        "winner": names[winners[0]],
        "winner_of_other": names[winners[1]],
        "cost_of_other": _excess(administrative.values[:, j], winners[1], winners[0]),
        "cost_by_other": _excess(other.values[:, j], winners[0], winners[1]),
        "sure_of_cost": _sure(administrative, winners, j, names),
    }


def _winner(values: Values, among: NDArray[np.bool_]) -> int:
    return int(np.argmin(np.where(among, values, np.inf)))


def _excess(values: Values, chosen: int, best: int) -> float:
    """Return how much worse a model is than another, relative to that one's score."""
    return float(values[chosen] / values[best] - 1.0)


def _sure(verdicts: Verdicts, winners: Sequence[int], j: int, names: Sequence[str]) -> bool:
    """Return whether two winners differ significantly."""
    low, high = min(winners), max(winners)
    if low == high:
        return False
    first, second = pairs_of(len(names))
    return bool(verdicts.sure[(first == low) & (second == high), j][0])

"""How the scores rank models: at the real data cut-off, and on earlier days, judged by what happened since."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from survscore._utils.jobs import Progress, silent
from survscore.analysis.backtest import backtest
from survscore.analysis.backtest_results import Backtest, pairs_of
from survscore.analysis.compare import Request
from survscore.analysis.cross_validation import out_of_fold
from survscore.inference.intervals import normal_quantile
from survscore.paper.atlas.data import FEWEST_WITH_STATUS, Prepared, hidden_share, scoreable
from survscore.paper.atlas.models import FAMILIES, AtlasSize, ListedModel, estimators, family
from survscore.paper.atlas.scores import ADMINISTRATIVE, scores
from survscore.results.comparison import Comparison
from survscore.results.estimates import Estimates

#: In place of a horizon, the mean over all of them.
MEAN = "mean"
LEVEL = 0.95
#: The later data must tell the status of so many at the horizon, and the earlier day hide that of so many.
LEAST_JUDGED = 0.9
LEAST_HIDDEN = 0.05

Row = dict[str, Any]
Values = NDArray[np.float64]


# At the data cut-off


@dataclass(frozen=True, eq=False)
class Verdicts:
    """What one score says of all models and pairs, at each place: the horizons, then the mean over them."""

    #: Of shape (models, places).
    values: Values
    se: Values
    #: Of shape (pairs, places): the first's score minus the second's, and whether its interval excludes zero.
    differences: Values
    significant: NDArray[np.bool_]

    @classmethod
    def of(cls, comparison: Comparison, q: int) -> Verdicts:
        """Read them from a comparison, of the score at place q."""
        scored = comparison.scored[q]
        weights, _ = comparison.means_over()[scored.metric]
        n = len(comparison.models)
        parts: list[list[Values]] = []
        for part in (Estimates(scored, LEVEL), Estimates(scored, LEVEL, weights)):
            contrasts = [part.difference(a, b) for a, b in zip(*pairs_of(n), strict=True)]
            parts.append(
                [
                    part.scores,
                    np.array([part.se(a, a) for a in range(n)]),
                    np.array([contrast["estimate"] for contrast in contrasts]),
                    np.array([np.isin(contrast["verdict"], ("better", "worse")) for contrast in contrasts]),
                ]
            )
        return cls(*(np.concatenate(several, axis=1) for several in zip(*parts, strict=True)))


def at_closing(data: Prepared, entries: Sequence[ListedModel], size: AtlasSize, seed: int) -> dict[str, list[Row]]:
    """Return the scores of all models by predictions out of fold, and how the scores agree, as rows of two tables."""
    horizons = data.horizons[scoreable(data.y, data.horizons)]
    if horizons.size == 0:
        return {"scores": [], "closing": []}
    fitted = estimators(entries, horizons, size.effort)
    predictions = out_of_fold(
        fitted, data.X, data.y, cv=size.folds, groups=data.groups, n_jobs=1, seed=seed, progress=False
    )
    return judged(data, entries, horizons, predictions.curves())


def judged(
    data: Prepared, entries: Sequence[ListedModel], horizons: Values, curves: Mapping[str, Any]
) -> dict[str, list[Row]]:
    """Return what the scores say of predictions, and how they agree, as rows of two tables."""
    weightings = {name: score(data.y) for name, score in scores().items()}
    at_horizons = {name: predicted.only_at(horizons) for name, predicted in curves.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few groups, and what has no score: tables show both
        request = Request("brier", list(weightings.values()), horizons, groups=data.groups, level=LEVEL)
        comparison = request.run(data.y, at_horizons)
    verdicts = {name: Verdicts.of(comparison, q) for q, name in enumerate(weightings)}
    hidden = [hidden_share(data.y, h) for h in horizons]
    places = list(enumerate([*horizons.tolist(), MEAN]))
    hidden.append(float(np.mean(hidden)))
    names = list(comparison.models)
    score_rows = [
        {"score": score, "model": model, "horizon": place, "brier": of.values[a, j], "se": of.se[a, j]}
        for score, of in verdicts.items()
        for j, place in places
        for a, model in enumerate(names)
    ]
    ours = verdicts.pop(ADMINISTRATIVE)
    closing_rows: list[Row] = [
        {"family": name, "against": other, "horizon": place, "hidden": hidden[j]}
        | agreement(names, family(name, entries), ours, theirs, j)
        for name in FAMILIES
        for other, theirs in verdicts.items()
        for j, place in places
    ]
    return {"scores": score_rows, "closing": closing_rows}


def agreement(names: Sequence[str], some: Sequence[str], administrative: Verdicts, other: Verdicts, j: int) -> Row:
    """Return how two scores agree on some of the models, at one place."""
    among = np.isin(names, some)
    first, second = pairs_of(len(names))
    pairs = among[first] & among[second]
    opposite = np.sign(administrative.differences[pairs, j]) * np.sign(other.differences[pairs, j]) < 0
    both_significant = administrative.significant[pairs, j] & other.significant[pairs, j]
    ours, theirs = administrative.values[:, j], other.values[:, j]
    best, chosen = (int(np.argmin(np.where(among, values, np.inf))) for values in (ours, theirs))
    of_winners = (first == min(best, chosen)) & (second == max(best, chosen))  # none, where both choose the same
    return {
        "n_pairs": int(pairs.sum()),
        "differ": int(opposite.sum()),
        "both_sure": int(both_significant.sum()),
        "opposite_and_sure": int((opposite & both_significant).sum()),
        "winner": names[best],
        "winner_of_other": names[chosen],
        "cost_of_other": float(ours[chosen] / ours[best] - 1.0),
        "cost_by_other": float(theirs[best] / theirs[chosen] - 1.0),
        "sure_of_cost": bool(administrative.significant[of_winners, j].any()),
    }


# On earlier days


def horizons_on(data: Prepared, day: np.datetime64, *, by_cause: bool = False) -> Values:
    """Return at which horizons an earlier day is a test: it hides something, shows enough, and is judged later.

    By cause, enough are events of each cause among those who could be followed up.
    """
    entered = data.dates.start <= day
    if not entered.any():
        return data.horizons[:0]
    now = data.y[entered]
    then = now.as_of(day)
    judged = np.mean(np.asarray(now.censoring_time)[:, None] >= data.horizons, axis=0)
    hidden = np.array([hidden_share(then, h) for h in data.horizons])
    chosen = (judged >= LEAST_JUDGED) & (hidden >= LEAST_HIDDEN) & scoreable(then, data.horizons)
    if by_cause:
        mature = np.asarray(then.censoring_time)[:, None] >= data.horizons
        before = mature & (np.asarray(then.time)[:, None] <= data.horizons)
        for k in range(1, len(then.causes) + 1):
            chosen &= before[np.asarray(then.cause) == k].sum(axis=0) >= FEWEST_WITH_STATUS
    return np.asarray(data.horizons[chosen])


def on_earlier_days(
    data: Prepared,
    entries: Sequence[ListedModel],
    size: AtlasSize,
    seed: int,
    progress: Progress = silent,
    *,
    by_cause: bool = False,
) -> dict[str, list[Row]]:
    """Return how each score did on every earlier day, as rows of tables: four, or by cause two.

    Models are fitted once a day, for all families and causes.
    """
    tests = [(day, left) for day in data.cutoffs if (left := horizons_on(data, day, by_cause=by_cause)).size]
    weightings = scores(by_cause=by_cause)
    names, families = list(weightings), {name: family(name, entries) for name in FAMILIES}
    settings: dict[str, Any] = {"weighting": list(weightings.values()), "n_splits": size.n_splits, "seed": seed}
    settings |= {"level": LEVEL, "n_jobs": 1}
    tables: dict[str, list[Row]] = {"truths": [], "backtests": []}
    by_family: dict[str, list[Backtest]] = {name: [] for name in families}
    for k, (day, horizons) in enumerate(tests):
        progress(k, len(tests), f"as of {str(day)[:10]}")
        fitted = estimators(entries, horizons, size.effort)
        settings |= {"as_of": day, "horizons": horizons}
        if by_cause:
            of_day = _of_causes(data, day, fitted, size.folds, settings)
        else:
            more: dict[str, Any] = {"X": data.X, "cv": size.folds, "groups": data.groups, "n_draws": size.n_draws}
            of_day = {"": backtest(data.y, fitted, **more, **settings)}
        for cause, result in of_day.items():
            label = {"cause": cause} if by_cause else {}
            tables["truths"] += [label | row for row in truth_rows(result, names)]
            for name, some in families.items():
                among = result.only(some)
                tables["backtests"] += [label | {"family": name} | row for row in judged_rows(among, names)]
                by_family[name].append(among)
    if by_cause:
        return tables
    return tables | {
        "recommendations": [
            {"family": name} | row
            for name, results in by_family.items()
            for result in results
            for row in _records(result.recommendations)
        ],
        "sets": [
            {"family": name} | row for name, results in by_family.items() if results for row in together(results, names)
        ],
    }


def _of_causes(
    data: Prepared, day: np.datetime64, fitted: dict[str, Any], folds: int, settings: dict[str, Any]
) -> dict[str, Backtest]:
    """Return the backtest of each cause, of the same predictions."""
    entered = data.dates.start <= day
    now, groups = data.y[entered], None if data.groups is None else data.groups[entered]
    seed = settings["seed"]
    curves = out_of_fold(
        fitted, data.X[entered], now.as_of(day), cv=folds, groups=groups, n_jobs=1, seed=seed, progress=False
    ).curves()
    return {cause: backtest(now.for_cause(cause), curves, groups=groups, n_draws=0, **settings) for cause in now.causes}


def truth_rows(result: Backtest, names: Sequence[str]) -> list[Row]:
    """Return the score of each model on a day, and its truth."""
    (day,) = result.days
    return [
        {
            "cutoff": str(day.date)[:10],
            "horizon": horizon,
            "score": name,
            "model": model,
            "brier": day.scores[q, a, j],
            "truth": day.truth[a, j],
            "truth_se": day.truth_se[a, j],
        }
        for j, horizon in enumerate(result.horizons.tolist())
        for q, name in enumerate(names)
        for a, model in enumerate(result.models)
    ]


def judged_rows(result: Backtest, names: Sequence[str]) -> list[Row]:
    """Return how each score did on a day; columns `half_...`, of one half by the truth of the other, over halves."""
    table = result.table.drop(columns=["rank_correlation", "regret"])
    of = result.half_judgements
    # of one day, in the order of the table's rows: weightings, and horizons within each
    known = np.isfinite(of.ordered[0])
    n = np.maximum(known.sum(axis=0), 1)
    for name, values in (("ordered", of.ordered[0]), ("regret", of.relative_regret[0])):
        mean = np.where(known.any(axis=0), np.where(known, values, 0.0).sum(axis=0) / n, np.nan)
        table[f"half_{name}"] = mean.ravel()
    for name, counts in (("halves", known), ("half_settled", of.n_settled[0]), ("half_wrong", of.n_wrong[0])):
        table[name] = counts.sum(axis=0).ravel()
    named = dict(zip(result.weightings, names, strict=True))
    return _records(table.assign(weighting=table["weighting"].map(named)).rename(columns={"weighting": "score"}))


def _records(table: Any) -> list[Row]:
    rows: list[Row] = table.assign(cutoff=table["cutoff"].astype(str).str[:10]).to_dict("records")
    return rows


def together(days: Sequence[Backtest], names: Sequence[str]) -> list[Row]:
    """Return how each score did over all days and horizons of a set.

    `gain` is by how much more pairs the first score ordered as in truth, `excess` by how much smaller its relative
    regret was. The standard errors of both come from resampled individuals: the same draw is of the same individuals on
    all days, since their seed is the same. Intervals lie about the estimate and are not quantiles of draws, in which
    models that are about as good as each other change places more often than in the data.
    """
    runs = np.array([day.horizons.size for day in days])
    draws = np.einsum("d,dkqm->kqm", runs / runs.sum(), np.array([day.draws for day in days]))
    draws = draws[~np.isnan(draws).any(axis=(1, 2))]
    judgements = [day.judgements for day in days]
    values = {
        what: np.concatenate([getattr(of, what)[0] for of in judgements], axis=1).mean(axis=1)
        for what in ("ordered", "relative_regret")
    }
    rows: list[Row] = []
    for q, name in enumerate(names):
        row: Row = {"score": name, "days": len(days), "runs": int(runs.sum()), "draws": len(draws)}
        row |= {what: of[q] for what, of in values.items()}
        for k, (what, sign, of) in enumerate(zip(("gain", "excess"), (-1.0, 1.0), values.values(), strict=True)):
            value, drawn = sign * (of[q] - of[0]), draws[:, q, k] - draws[:, 0, k]
            half = normal_quantile(LEVEL) * drawn.std(ddof=1) if len(drawn) > 1 else np.nan
            row |= {what: value, f"{what}_lower": value - half, f"{what}_upper": value + half}
        rows.append(row)
    return rows

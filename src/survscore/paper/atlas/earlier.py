"""What each score would have said had follow-up ended earlier, and what happened since."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from survscore._utils.jobs import Progress, silent
from survscore.analysis.backtest import backtest
from survscore.analysis.backtest_results import Backtest
from survscore.analysis.cross_validation import out_of_fold
from survscore.inference.intervals import normal_quantile
from survscore.paper.atlas.closing import LEVEL, Row
from survscore.paper.atlas.data import FEWEST_WITH_STATUS, Prepared, hidden_share, scoreable
from survscore.paper.atlas.models import FAMILIES, AtlasSize, ListedModel, estimators, family
from survscore.paper.atlas.scores import scores

#: The later data must tell the status of so many at the horizon, and the earlier day hide that of so many.
LEAST_JUDGED = 0.9
LEAST_HIDDEN = 0.05


def horizons_on(data: Prepared, day: np.datetime64, *, by_cause: bool = False) -> NDArray[np.float64]:
    """Return at which horizons an earlier day is a test: it hides something, shows enough, and is judged later.

    By cause, enough are events of each cause among those who could be followed up.
    """
    there = data.dates.start <= day
    if not there.any():
        return data.horizons[:0]
    now = data.y[there]
    then = now.as_of(day)
    judged = np.array([np.mean(np.asarray(now.censoring_time) >= h) for h in data.horizons])
    hidden = np.array([hidden_share(then, h) for h in data.horizons])
    chosen = (judged >= LEAST_JUDGED) & (hidden >= LEAST_HIDDEN) & scoreable(then, data.horizons)
    if by_cause:
        mature = np.asarray(then.censoring_time)[:, None] >= data.horizons
        before = mature & (np.asarray(then.time)[:, None] <= data.horizons)
        for k in range(1, len(then.causes) + 1):
            chosen &= before[np.asarray(then.cause) == k].sum(axis=0) >= FEWEST_WITH_STATUS
    return data.horizons[chosen]


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
    tried = scores(by_cause=by_cause)
    names = list(tried)
    asked: dict[str, Any] = {
        "weighting": list(tried.values()), "n_splits": size.n_splits, "level": LEVEL, "n_jobs": 1, "seed": seed,
    }  # fmt: skip
    tables: dict[str, list[Row]] = {"truths": [], "backtests": []}
    days: list[Backtest] = []
    for k, (day, horizons) in enumerate(tests):
        progress(k, len(tests), f"as of {str(day)[:10]}")
        fitted = estimators(entries, horizons, size.effort)
        asked |= {"as_of": day, "horizons": horizons}
        if by_cause:
            found = _of_causes(data, day, fitted, size.folds, asked)
        else:
            found = {"": backtest(data.y, fitted, X=data.X, cv=size.folds, groups=data.groups, n_draws=size.n_draws,
                                  **asked)}  # fmt: skip
            days.append(found[""])
        for cause, one in found.items():
            label = {"cause": cause} if by_cause else {}
            tables["truths"] += [label | row for row in truth_rows(one, names)]
            for name in FAMILIES:
                rows = judged_rows(one.only(family(name, entries)), names)
                tables["backtests"] += [label | {"family": name} | row for row in rows]
    if not by_cause:
        some = {name: [one.only(family(name, entries)) for one in days] for name in FAMILIES if days}
        tables["recommendations"] = [
            {"family": name, **row} for name, several in some.items() for one in several
            for row in recommendation_rows(one)
        ]  # fmt: skip
        tables["sets"] = [{"family": name, **row} for name, found in some.items() for row in together(found, names)]
    return tables


def _of_causes(
    data: Prepared, day: np.datetime64, fitted: dict[str, Any], folds: int, asked: dict[str, Any]
) -> dict[str, Backtest]:
    """Return the backtest of each cause, of the same predictions."""
    there = data.dates.start <= day
    now, groups = data.y[there], None if data.groups is None else data.groups[there]
    made = out_of_fold(
        fitted, data.X[there], now.as_of(day), cv=folds, groups=groups, n_jobs=1, seed=asked["seed"], progress=False
    ).curves()
    return {cause: backtest(now.for_cause(cause), made, groups=groups, n_draws=0, **asked) for cause in now.causes}


def truth_rows(found: Backtest, names: Sequence[str]) -> list[Row]:
    """Return the score of each model on a day, and its truth."""
    (day,) = found.days
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
        for j, horizon in enumerate(found.horizons.tolist())
        for q, name in enumerate(names)
        for a, model in enumerate(found.models)
    ]


def judged_rows(found: Backtest, names: Sequence[str]) -> list[Row]:
    """Return how each score did on a day; columns `half_...`, of one half by the truth of the other, over halves."""
    named = dict(zip(found.weightings, names, strict=True))
    table = found.table.drop(columns=["rank_correlation", "regret"])
    of = found.half_judgements
    # of one day, in the order of the table's rows: weightings, and horizons within each
    known = np.isfinite(of.ordered[0])
    n = np.maximum(known.sum(axis=0), 1)
    for name, values in (("ordered", of.ordered[0]), ("regret", of.relative_regret[0])):
        table[f"half_{name}"] = np.where(
            known.any(axis=0), np.where(known, values, 0.0).sum(axis=0) / n, np.nan
        ).ravel()
    for name, counts in (("halves", known), ("half_settled", of.n_settled[0]), ("half_wrong", of.n_wrong[0])):
        table[name] = counts.sum(axis=0).ravel()
    return _records(table.assign(weighting=table["weighting"].map(named)).rename(columns={"weighting": "score"}))


def recommendation_rows(found: Backtest) -> list[Row]:
    """Return how often the recommendation decided between two models, and how often rightly; see `Backtest`."""
    return _records(found.recommendations)


def _records(table: Any) -> list[Row]:
    written = table.assign(cutoff=table["cutoff"].astype(str).str[:10])
    return [{str(name): value for name, value in row.items()} for row in written.to_dict("records")]


def together(several: Sequence[Backtest], names: Sequence[str]) -> list[Row]:
    """Return how each score did over all days and horizons of a set.

    `gain` is by how much more pairs the first score ordered as in truth, `excess` by how much smaller its relative
    regret was. The standard errors of both come from resampled individuals: the same draw is of the same individuals on
    all days, since their seed is the same. Intervals lie about the estimate and are not quantiles of draws, in which
    models that are about as good as each other change places more often than in the data.
    """
    runs = np.array([one.horizons.size for one in several])
    draws = np.einsum("d,dkqm->kqm", runs / runs.sum(), np.array([one.draws for one in several]))
    draws = draws[~np.isnan(draws).any(axis=(1, 2))]
    tables = [one.judgements for one in several]
    values = np.stack(
        [
            np.concatenate([getattr(one, what)[0] for one in tables], axis=1).mean(axis=1)
            for what in ("ordered", "relative_regret")
        ],
        axis=1,
    )
    rows: list[Row] = []
    for q, name in enumerate(names):
        row: Row = {
            "score": name,
            "days": len(several),
            "runs": int(runs.sum()),
            "draws": len(draws),
            "ordered": values[q, 0],
            "relative_regret": values[q, 1],
        }
        for what, sign, k in (("gain", -1.0, 0), ("excess", 1.0, 1)):
            value, drawn = sign * (values[q, k] - values[0, k]), draws[:, q, k] - draws[:, 0, k]
            half = normal_quantile(LEVEL) * drawn.std(ddof=1) if len(drawn) > 1 else np.nan
            row |= {what: value, f"{what}_lower": value - half, f"{what}_upper": value + half}
        rows.append(row)
    return rows

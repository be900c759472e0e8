"""What a score said on earlier days, beside what happened since: how it ordered models, and what its choice cost."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from survscore._validation import InputError, plural, shown
from survscore.inference.intervals import normal_quantile
from survscore.metrics import Direction
from survscore.results.rounding import Number, decimals
from survscore.results.short_names import legend, short_names
from survscore.results.tables import Cell, Part, PrintedAsTables, Tables

if TYPE_CHECKING:
    import pandas as pd

    from survscore.plots import BacktestDisplay

Values = NDArray[np.float64]
SAME = 1e-12  # scores that differ by less, relative to their size, are in no order


class Judgement(NamedTuple):
    """How the scores of several models agree with the truth.

    Attributes
    ----------
    ordered : float
        The share of pairs of models that the score orders as the truth does; a tie counts half.
    n_pairs : int
        How many pairs there are.
    sure_ordered : float
        The same of pairs whose order in truth is significant; NaN if there are none.
    n_sure : int
        How many of these there are.
    rank_correlation : float
        Spearman's.
    chosen : tuple of int
        The model that the score chooses; several where it finds no difference between them.
    best : int
        The one that was best in truth.
    regret, relative_regret : float
        How much worse in truth the chosen one is than the best (of several, in the mean), and that divided by the
        best's truth.
    """

    ordered: float
    n_pairs: int
    sure_ordered: float
    n_sure: int
    rank_correlation: float
    chosen: tuple[int, ...]
    best: int
    regret: float
    relative_regret: float


def judge(scores: Values, truth: Values, direction: Direction, sure: NDArray[np.bool_] | None = None) -> Judgement:
    """Hold the scores of some models against the truth; `sure` has for each pair whether its order in truth is."""
    sign = -1.0 if direction == "higher" else 1.0
    said, true = sign * scores, sign * truth
    if np.isnan(said).any() or np.isnan(true).any():
        return Judgement(np.nan, 0, np.nan, 0, np.nan, (), -1, np.nan, np.nan)
    agreed = _agreed(said, true)
    of_sure = agreed[sure] if sure is not None else agreed[:0]
    chosen = np.flatnonzero(said <= said.min() + SAME * np.abs(said).max())
    best = int(np.argmin(true))
    regret = float(true[chosen].mean() - true[best])
    ordered, sure_ordered = (float(some.mean()) if some.size else np.nan for some in (agreed, of_sure))
    relative = regret / abs(true[best]) if true[best] else np.nan
    pairs = (ordered, agreed.size, sure_ordered, int(of_sure.size))
    return Judgement(*pairs, _rank_correlation(said, true), tuple(chosen.tolist()), best, regret, relative)


def _agreed(said: Values, true: Values) -> Values:
    """Return for each pair whether two differences have the same sign; one half, where one of them is none."""
    a, b = pairs_of(said.size)
    of_said, of_true, tie = said[a] - said[b], true[a] - true[b], SAME * np.maximum(np.abs(true[a]), np.abs(true[b]))
    tied = (np.abs(of_said) <= tie) | (np.abs(of_true) <= tie)
    return np.where(tied, 0.5, of_said * of_true > 0)


def pairs_of(n: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the places of the first and of the second of each pair, in the order of all tables of pairs."""
    first, second = np.triu_indices(n, 1)
    return first, second


def _rank_correlation(a: Values, b: Values) -> float:
    """Return Spearman's rank correlation; NaN where one of them has no order."""
    from scipy.stats import rankdata  # slow to import

    ranks = [rankdata(values) for values in (a, b)]
    return np.nan if any(np.ptp(one) == 0 for one in ranks) else float(np.corrcoef(*ranks)[0, 1])


@dataclass(frozen=True, eq=False)
class Day:
    """What was known on an earlier day, and what is known now of the same individuals.

    Attributes
    ----------
    date : datetime64
        The earlier cut-off.
    weightings : tuple of str
        In words, as they apply then.
    n, n_events : int
        Individuals who had started, and events that had been seen.
    judged : ndarray of shape (horizons,)
        The share of them whose status at the horizon the later data can tell, by their censoring times.
    scores : ndarray of shape (weightings, models, horizons)
        As of then.
    truth, truth_se : ndarray of shape (models, horizons)
        By the later follow-up.
    sure : ndarray of shape (pairs, horizons)
        Whether the order of two models in truth is sure.
    drawn_scores : ndarray of shape (draws, weightings, models, horizons)
        As of then, of resampled individuals; the same draw is the same individuals on every day.
    drawn_truth : ndarray of shape (draws, models, horizons)
        By the later follow-up, of the same.
    """

    date: np.datetime64
    weightings: tuple[str, ...]
    n: int
    n_events: int
    judged: Values
    scores: Values
    truth: Values
    truth_se: Values
    sure: NDArray[np.bool_]
    drawn_scores: Values
    drawn_truth: Values

    def only(self, places: NDArray[np.intp]) -> Day:
        """Return the same of some of the models, in the order of all."""
        pairs = np.isin(pairs_of(len(self.truth)), places).all(axis=0)
        return replace(
            self,
            scores=self.scores[:, places],
            truth=self.truth[places],
            truth_se=self.truth_se[places],
            sure=self.sure[pairs],
            drawn_scores=self.drawn_scores[:, :, places],
            drawn_truth=self.drawn_truth[:, places],
        )


@dataclass(frozen=True, eq=False, repr=False)
class Backtest(PrintedAsTables):
    """Which score would have chosen the right model, had it been asked on earlier days. Made by `backtest`.

    Attributes
    ----------
    models, weightings : tuple of str
    metric, label : str
        What was computed, and what it is called.
    direction : {"lower", "higher"}
        Which values are better.
    horizons : ndarray
    days : tuple of Day
        One for each earlier cut-off.
    level : float
        Of intervals.
    settings : dict
        With version and seed.
    """

    models: tuple[str, ...]
    weightings: tuple[str, ...]
    metric: str
    label: str
    direction: Direction
    horizons: Values
    days: tuple[Day, ...]
    level: float
    settings: dict[str, Any]

    def only(self, models: Iterable[str]) -> Backtest:
        """Return how each score did among some of the models; nothing is fitted or scored anew.

        Parameters
        ----------
        models : iterable of str
            Their names, at least two.

        Returns
        -------
        Backtest
            With the models in the order of this one.

        Examples
        --------
        >>> import numpy as np
        >>> import survscore as ss
        >>> day = np.arange(400)
        >>> start, event = (np.datetime64("2010-01-01") + days.astype("m8[D]") for days in (day, day + 50 + day % 90))
        >>> y = ss.Outcomes.from_dates(start, event, "2012-12-31")
        >>> models = {f"{p:g}": ss.SurvivalCurves(np.full((400, 1), p), [100]) for p in (0.2, 0.4, 0.6)}
        >>> found = ss.backtest(y, models, as_of="2010-12-31", horizons=[100], n_draws=0)
        >>> found.only(["0.2", "0.6"]).table["best"].tolist()
        ['0.6', '0.6']
        """
        wanted = [models] if isinstance(models, str) else list(models)
        unknown = [name for name in wanted if name not in self.models]
        if unknown:
            raise InputError(
                f"models must be among {list(self.models)}: {len(unknown)} of {len(wanted)} are not, the first "
                f"{unknown[0]!r}"
            )
        places = np.flatnonzero([name in wanted for name in self.models])
        if places.size < 2:
            raise InputError(f"models must be at least two, to choose among, not {places.size}")
        return replace(
            self, models=tuple(self.models[a] for a in places), days=tuple(day.only(places) for day in self.days)
        )

    @cached_property
    def draws(self) -> Values:
        """From resampled individuals: the share of pairs ordered as in truth, and the relative regret.

        Of shape (draws, weightings, 2), means over days and horizons; NaN where a score is missing.
        """
        n_draws = len(self.days[0].drawn_truth)
        found = np.empty((n_draws, len(self.days), len(self.weightings), self.horizons.size, 2))
        for place in np.ndindex(found.shape[:-1]):
            k, d, q, j = place
            day = self.days[d]
            one = judge(day.drawn_scores[k, q, :, j], day.drawn_truth[k, :, j], self.direction)
            found[place] = one.ordered, one.relative_regret
        return np.asarray(found.mean(axis=(1, 3)))

    @property
    def scores(self) -> pd.DataFrame:
        """Long table: cutoff, horizon, weighting, model, score as of then, truth, its standard error."""
        import pandas as pd

        rows = [
            (day.date, horizon, weighting, model, day.scores[q, a, j], day.truth[a, j], day.truth_se[a, j])
            for day in self.days
            for j, horizon in enumerate(self.horizons)
            for q, weighting in enumerate(self.weightings)
            for a, model in enumerate(self.models)
        ]
        return pd.DataFrame(rows, columns=["cutoff", "horizon", "weighting", "model", "score", "truth", "truth_se"])

    @cached_property
    def judgements(self) -> dict[tuple[int, int, int], Judgement]:
        """By day, weighting and horizon."""
        return {
            (d, q, j): judge(day.scores[q, :, j], day.truth[:, j], self.direction, day.sure[:, j])
            for d, day in enumerate(self.days)
            for q in range(len(self.weightings))
            for j in range(self.horizons.size)
        }

    @property
    def table(self) -> pd.DataFrame:
        """Long table: how each weighting did at each cut-off and horizon.

        Columns: cutoff, horizon, weighting, n, n_events, judged, ordered, n_pairs, sure_ordered, n_sure,
        rank_correlation, chosen, best, regret, relative_regret.
        """
        import pandas as pd

        rows = []
        for (d, q, j), judgement in self.judgements.items():
            day = self.days[d]
            rows.append(
                {
                    "cutoff": day.date,
                    "horizon": self.horizons[j],
                    "weighting": self.weightings[q],
                    "n": day.n,
                    "n_events": day.n_events,
                    "judged": day.judged[j],
                    **judgement._asdict(),
                    "chosen": " or ".join(self.models[a] for a in judgement.chosen),
                    "best": self.models[judgement.best],
                }
            )
        return pd.DataFrame(rows)

    @property
    def summary(self) -> pd.DataFrame:
        """One row for each weighting: means over cut-offs and horizons, with intervals from resampled individuals.

        Columns: weighting, ordered, ordered_lower, ordered_upper, sure_ordered, relative_regret, regret_lower,
        regret_upper, regret_lowest and regret_highest of single cut-offs, chose_best (how often, of how many), and
        against the first weighting: excess, excess_lower, excess_upper, by how much its relative regret is larger.
        """
        import pandas as pd

        return pd.DataFrame([self._row(q) for q in range(len(self.weightings))])

    def _row(self, q: int) -> dict[str, Any]:
        mine = [found for (_, weighting, _), found in self.judgements.items() if weighting == q]
        by_day = self.regrets()[:, q]
        sure = [(found.sure_ordered * found.n_sure, found.n_sure) for found in mine if found.n_sure]
        regret, ordered = float(by_day.mean()), float(np.mean([found.ordered for found in mine]))
        more = regret - float(self.regrets()[:, 0].mean())
        return {
            "weighting": self.weightings[q],
            "ordered": ordered,
            **self._limits("ordered", ordered, self.draws[:, q, 0], 0.0, 1.0),
            "sure_ordered": sum(share for share, _ in sure) / sum(n for _, n in sure) if sure else np.nan,
            "relative_regret": regret,
            **self._limits("regret", regret, self.draws[:, q, 1], 0.0),
            "regret_lowest": float(by_day.min()),
            "regret_highest": float(by_day.max()),
            "chose_best": sum(found.chosen == (found.best,) for found in mine),
            "of": len(mine),
            "excess": more,
            **self._limits("excess", more, self.draws[:, q, 1] - self.draws[:, 0, 1]),
        }

    def regrets(self) -> Values:
        """Return relative regrets, means over horizons, (days, weightings)."""
        shape = (len(self.days), len(self.weightings), self.horizons.size)
        found = np.array([one.relative_regret for one in self.judgements.values()]).reshape(shape)
        return np.asarray(found.mean(axis=2))

    def _limits(
        self, name: str, value: float, draws: Values, lowest: float = -np.inf, highest: float = np.inf
    ) -> dict[str, float]:
        """Return an interval about a value: quantiles of draws might leave it out, since near-ties flip in them."""
        draws = draws[~np.isnan(draws)]
        half = normal_quantile(self.level) * float(draws.std(ddof=1)) if draws.size > 1 else np.nan
        lower, upper = np.clip([value - half, value + half], lowest, highest).tolist()
        return {f"{name}_lower": lower, f"{name}_upper": upper}

    @property
    def accused(self) -> tuple[str, ...]:
        """The weightings whose choices were significantly worse than those of the first: by the whole interval."""
        table = self.summary
        return tuple(table["weighting"][table["excess_lower"] > 0])

    @property
    def sentence(self) -> str:
        """What that says, in words."""
        table = self.summary.set_index("weighting")
        first = self.weightings[0]
        told = [f"{100 * row['relative_regret']:.3g} % if by {name}" for name, row in table.iterrows()]
        verdict = (
            f"choices by {' and '.join(self.accused)} were significantly worse than those by {first}"
            if self.accused
            else f"no choice was significantly worse than that by {first}"
        )
        days = f"{plural(len(self.days), 'earlier day')} and {plural(self.horizons.size, 'horizon')}"
        return f"Over {days}, the model chosen was in truth worse than the best by {' and '.join(told)}: {verdict}."

    def plot(self, ax: Any = None, *, width: float | None = None) -> BacktestDisplay:
        """Draw how much worse than the best the chosen models were, by weighting: means with intervals, and each day.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure.
        width : float, optional
            Of a new figure, in inches: 3.4 is a column of a journal, 7 its page, as by default.

        Returns
        -------
        BacktestDisplay
            With the axes in ``ax_``, the figure in ``figure_``, and ``save("figure.pdf")``.
        """
        from survscore.plots import BacktestDisplay

        return BacktestDisplay(self).plot(ax, width=width)

    def _printed(self) -> Tables:
        table = self.summary
        named = short_names(table["weighting"])
        columns = {}
        for name, ends in (("ordered", "ordered"), ("relative_regret", "regret"), ("excess", "excess")):
            value, lower, upper = (100 * table[key] for key in (name, f"{ends}_lower", f"{ends}_upper"))
            places = decimals((upper - lower) / (2 * normal_quantile(self.level)), otherwise=1)
            columns[name] = [Number(*row, decimals=places) for row in zip(value, lower, upper, strict=True)]
        rows = list[tuple[Cell, ...]]()
        for q, row in enumerate(table.to_dict("records")):
            ordered, regret, excess = (columns[name][q] for name in ("ordered", "relative_regret", "excess"))
            best = f"{row['chose_best']} of {row['of']}"
            rows.append((shown(named[row["weighting"]]), ordered, regret, best, excess if q else ""))
        when = f"{plural(len(self.days), 'cut-off')}, {plural(self.horizons.size, 'horizon')}"
        caption = (
            f"{self.label} ({self.direction} is better) of {plural(len(self.models), 'model')}; {when}; "
            f"{100 * self.level:g} % intervals"
        )
        header = ("chosen by", "right order, %", "worse than best, %", "was best", "excess, %")
        notes = (
            *legend(table["weighting"]),
            "right order: of pairs of models, as in truth; worse than best: the chosen model, in truth; excess: of "
            f"that, over {shown(rows[0][0])}",
            self.sentence,
        )
        return Tables(caption, [Part("", header, rows, notes, "lrrrr")])

    def __repr__(self) -> str:
        return (
            f"Backtest({plural(len(self.models), 'model')}, {plural(len(self.days), 'cut-off')}, "
            f"{plural(self.horizons.size, 'horizon')}, {'; '.join(self.weightings)})"
        )

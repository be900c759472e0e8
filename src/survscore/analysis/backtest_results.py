"""Scores as of earlier days beside what happened since: how they ordered models, and what their choice cost."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from survscore._utils.parallel import cached_property
from survscore._validation import InputError, plural, several, shown
from survscore.inference.intervals import normal_quantile
from survscore.metrics import Direction
from survscore.results.long_tables import stacked
from survscore.results.printing import legend, short_names
from survscore.results.rounding import Number, decimals
from survscore.results.tables import Cell, Part, PrintedAsTables, Tables

if TYPE_CHECKING:
    import pandas as pd

    from survscore.plots import BacktestDisplay

Values = NDArray[np.float64]
MOST_DAYS = 4  # that are printed
SAME = 1e-12  # scores that differ by less, relative to their size, are in no order


class Judgement(NamedTuple):
    """How the scores of several models agree with the truth; arrays where they come from several days or weightings."""

    ordered: Values  # the share of pairs of models that the score orders as the truth does; a tie counts half
    n_pairs: int
    sure_ordered: Values  # the same of pairs whose order in truth is significant; NaN if there are none
    n_sure: NDArray[np.int64]
    n_settled: NDArray[np.int64]  # pairs of which the score's difference and the true one are both significant
    n_wrong: NDArray[np.int64]  # and of those, in how many they have opposite signs
    rank_correlation: Values  # Spearman's; NaN where the score or the truth has no order
    chosen: NDArray[np.bool_]  # (..., models): what the score chooses; several where it finds no difference
    best: NDArray[np.int64]  # the place of the one that was best in truth
    regret: Values  # how much worse in truth the chosen one is than the best; of several, in the mean
    relative_regret: Values  # that divided by the best's truth


def judge(
    scores: Values,
    truth: Values,
    direction: Direction,
    sure: NDArray[np.bool_] | None = None,
    claimed: NDArray[np.bool_] | None = None,
) -> Judgement:
    """Compare scores with the truth, (..., models).

    `sure` says which pairs differ significantly in truth, `claimed` which do so by the score, (..., pairs).
    """
    from scipy.stats import rankdata  # slow to import

    sign = -1.0 if direction == "higher" else 1.0
    estimated, true = np.broadcast_arrays(sign * scores, sign * truth)
    a, b = pairs_of(estimated.shape[-1])
    of_estimated, of_true = estimated[..., a] - estimated[..., b], true[..., a] - true[..., b]
    tie = SAME * np.maximum(np.abs(true[..., a]), np.abs(true[..., b]))
    agreed = np.where((np.abs(of_estimated) <= tie) | (np.abs(of_true) <= tie), 0.5, of_estimated * of_true > 0)
    significant, by_score = (
        np.zeros(agreed.shape, dtype=bool) if flags is None else np.broadcast_to(flags, agreed.shape)
        for flags in (sure, claimed)
    )
    n_sure, settled = significant.sum(axis=-1), significant & by_score
    counts = (n_sure, settled.sum(axis=-1), (settled & (of_estimated * of_true < 0)).sum(axis=-1))
    ranks = [rankdata(values, axis=-1) - (values.shape[-1] + 1) / 2 for values in (estimated, true)]
    lowest = estimated.min(axis=-1, keepdims=True)
    chosen = estimated <= lowest + SAME * np.abs(estimated).max(axis=-1, keepdims=True)
    best = true.min(axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        ordered = np.where(np.isnan(estimated + true).any(axis=-1), np.nan, agreed.mean(axis=-1))
        sure_ordered = (agreed * significant).sum(axis=-1) / n_sure
        correlation = (ranks[0] * ranks[1]).sum(axis=-1) / np.sqrt(np.prod(np.square(ranks).sum(axis=-1), axis=0))
        regret = np.where(chosen, true, 0.0).sum(axis=-1) / chosen.sum(axis=-1) - best
        relative = regret / np.where(best == 0, np.nan, np.abs(best))
    return Judgement(
        ordered, a.size, sure_ordered, *counts, correlation, chosen, true.argmin(axis=-1), regret, relative
    )


def pairs_of(n: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the places of the first and of the second of each pair, in the order of all tables of pairs."""
    return np.triu_indices(n, 1)


@dataclass(frozen=True, eq=False)
class Day:
    """What was known on an earlier day, and what is known now of the same individuals."""

    date: np.datetime64
    weightings: tuple[str, ...]  # in words, as they apply then
    n: int  # individuals who had started
    n_events: int  # events observed by then
    judged: Values  # (horizons,): the share of them whose status at the horizon is known from the later data
    scores: Values  # (weightings, models, horizons), as of then
    truth: Values  # (models, horizons), by the later follow-up
    truth_se: Values
    sure: NDArray[np.bool_]  # (pairs, horizons): whether the order of two models in truth is significant
    claimed: NDArray[np.bool_]  # (weightings, pairs, horizons): whether it was by the score as of then
    recommended: NDArray[np.int8]  # (pairs, horizons), as of then: -1 the first, 1 the second, 0 neither
    drawn_scores: Values  # (draws, weightings, models, horizons); a draw is the same individuals on every day
    drawn_truth: Values  # (draws, models, horizons)
    # scores of one half of the individuals, and the truth of the other half: (halves, ...), each as above
    half_scores: Values
    half_truth: Values
    half_sure: NDArray[np.bool_]
    half_claimed: NDArray[np.bool_]
    half_recommended: NDArray[np.int8]
    undefined: tuple[str, ...] = ()  # under which weightings, and at which horizons, there is no score, and why

    def only(self, places: NDArray[np.intp]) -> Day:
        """Return the same of some of the models, in the order of all."""
        pairs = np.flatnonzero(np.isin(pairs_of(len(self.truth)), places).all(axis=0))
        kept = dict.fromkeys(OF_MODELS, places) | dict.fromkeys(OF_PAIRS, pairs)
        return replace(self, **{name: getattr(self, name).take(rows, axis=-2) for name, rows in kept.items()})


#: The fields of `Day` whose second last axis is models, or pairs of these.
OF_MODELS = ("scores", "truth", "truth_se", "drawn_scores", "drawn_truth", "half_scores", "half_truth")
OF_PAIRS = ("sure", "claimed", "recommended", "half_sure", "half_claimed", "half_recommended")


@dataclass(frozen=True, eq=False, repr=False)
class Backtest(PrintedAsTables):
    """Scores as of earlier days, and how good the models were that they would have selected; see `backtest`.

    Attributes
    ----------
    models, weightings : tuple of str
    metric, label, direction : str
        What was computed, what it is called, and whether "lower" or "higher" values are better.
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
        """Return how each score did among some of the models, at least two; nothing is fitted or scored anew.

        Examples
        --------
        >>> import numpy as np
        >>> import survscore as ss
        >>> day = np.arange(400)
        >>> start, event = (np.datetime64("2010-01-01") + days.astype("m8[D]") for days in (day, day + 50 + day % 90))
        >>> y = ss.Outcomes.from_dates(start, event, "2012-12-31")
        >>> models = {f"{p:g}": ss.SurvivalCurves(np.full((400, 1), p), [100]) for p in (0.2, 0.4, 0.6)}
        >>> result = ss.backtest(y, models, as_of="2010-12-31", horizons=[100], n_draws=0)
        >>> result.only(["0.2", "0.6"]).table["best"].tolist()
        ['0.6', '0.6', '0.6']
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
        """From resampled individuals: the share of pairs ordered as in truth, the relative regret, and its excess.

        Of shape (draws, weightings, 3), means over the days and horizons that have a score by the weighting; NaN where
        a draw has none there. The excess is that over the regret of the first weighting.
        """
        scores = np.moveaxis(np.stack([day.drawn_scores for day in self.days], axis=1), -2, -1)
        truth = np.swapaxes(np.stack([day.drawn_truth for day in self.days], axis=1), -2, -1)
        judgements = judge(scores, truth[:, :, None], self.direction)
        regret = judgements.relative_regret
        values = np.stack((judgements.ordered, regret, regret - regret[:, :, :1]), axis=-1)
        return self._mean(values, (1, 3), self._known[..., None])

    @property
    def _known(self) -> NDArray[np.bool_]:
        """Where there is a score as of then, (days, weightings, horizons)."""
        return np.array([~np.isnan(day.scores).any(axis=1) for day in self.days])

    @staticmethod
    def _mean(values: Values, axis: tuple[int, ...], known: NDArray[np.bool_]) -> Values:
        """Return means over the places with a score; NaN where there is none."""
        n = np.broadcast_to(known, values.shape).sum(axis=axis)
        with np.errstate(invalid="ignore"):
            return np.asarray(np.where(known, values, 0.0).sum(axis=axis) / n)

    @property
    def scores(self) -> pd.DataFrame:
        """Long table: cutoff, horizon, weighting, model, score as of then, truth, its standard error."""
        columns = ("score", "truth", "truth_se")
        return stacked(
            [
                {"cutoff": day.date, "horizon": horizon, "weighting": weighting, "model": np.array(self.models)}
                | dict(zip(columns, (day.scores[q, :, j], day.truth[:, j], day.truth_se[:, j]), strict=True))
                for day in self.days
                for j, horizon in enumerate(self.horizons)
                for q, weighting in enumerate(self.weightings)
            ]
        )

    @cached_property
    def judgements(self) -> Judgement:
        """How each score did, arrays of shape (days, weightings, horizons)."""
        scores, truth, sure, claimed = (
            np.swapaxes([getattr(day, name) for day in self.days], -2, -1)
            for name in ("scores", "truth", "sure", "claimed")
        )
        return judge(scores, truth[:, None], self.direction, sure[:, None], claimed)

    @cached_property
    def half_judgements(self) -> Judgement:
        """How each score of one half did by the truth of the other.

        Arrays of shape (days, halves, weightings, horizons). Where some weighting has no score of a half, none is
        judged there, so that all are judged by the same halves: NaN, and no pairs.
        """
        scores, truth, sure, claimed = (
            np.swapaxes([getattr(day, f"half_{name}") for day in self.days], -2, -1)
            for name in ("scores", "truth", "sure", "claimed")
        )
        known = np.isfinite(scores).all(axis=(2, 4)) & np.isfinite(truth).all(axis=-1)
        truth = np.where(known[..., None], truth, np.nan)
        sure = sure & known[..., None]
        return judge(scores, truth[:, :, None], self.direction, sure[:, :, None], claimed)

    @property
    def halves(self) -> pd.DataFrame:
        """One row for each weighting: scored on one half of the individuals, judged by the truth of the other half.

        Columns: weighting, halves (how many could be judged, over days and horizons), ordered, relative_regret: means;
        n_settled, pairs of models that differ significantly both by the score and in truth, and wrong, the share of
        these with opposite signs. Empty without splits.
        """
        import pandas as pd

        judgements, rows = self.half_judgements, []
        for q, weighting in enumerate(self.weightings if judgements.ordered.size else ()):
            ordered, regret = (values[:, :, q] for values in (judgements.ordered, judgements.relative_regret))
            n_settled, n_wrong = (int(values[:, :, q].sum()) for values in (judgements.n_settled, judgements.n_wrong))
            known = np.isfinite(ordered)
            rows.append(
                {
                    "weighting": weighting,
                    "halves": int(known.sum()),
                    "ordered": ordered[known].mean() if known.any() else np.nan,
                    "relative_regret": regret[known].mean() if known.any() else np.nan,
                    "n_settled": n_settled,
                    "wrong": n_wrong / n_settled if n_settled else np.nan,
                }
            )
        return pd.DataFrame(rows)

    @property
    def recommendations(self) -> pd.DataFrame:
        """Long table: which pairs of models were decided by a recommendation as of then, and how many of them rightly.

        `Comparison.recommendation` needs administrative and projected scores by a loss; without, nothing is decided.
        Columns: cutoff, horizon, individuals ("all", or "halves" where one half is scored and the other is the truth),
        n_pairs, n_decided, n_ordered (as in truth), and n_settled, the pairs that were decided and differ significantly
        in truth, with n_wrong, those of them with the other order.
        """
        first, second = pairs_of(len(self.models))
        columns, parts = ("n_pairs", "n_decided", "n_ordered", "n_settled", "n_wrong"), []
        for day in self.days:
            whole = (day.recommended[None], day.truth[None], day.sure[None])
            halves = (day.half_recommended, day.half_truth, day.half_sure)
            for individuals, (recommended, truth, sure) in (("all", whole), ("halves", halves)):
                difference = truth[:, first] - truth[:, second]
                known = ~np.isnan(difference)
                decided = known & (recommended != 0)
                ordered = decided & (recommended * difference > 0)
                wrong = decided & sure & (recommended * difference < 0)
                counts = [flags.sum(axis=(0, 1)) for flags in (known, decided, ordered, decided & sure, wrong)]
                of = {"cutoff": day.date, "horizon": self.horizons, "individuals": individuals}
                if len(truth):
                    parts.append(of | dict(zip(columns, counts, strict=True)))
        return stacked(parts)

    @property
    def table(self) -> pd.DataFrame:
        """Long table: how each weighting did at each cut-off and horizon.

        Columns: cutoff, horizon, weighting, n, n_events, judged, ordered, n_pairs, sure_ordered, n_sure, n_settled,
        n_wrong, rank_correlation, chosen, best, regret, relative_regret.
        """
        judgements, parts = self.judgements, []
        for d, q in np.ndindex(len(self.days), len(self.weightings)):
            day = self.days[d]
            of = {"cutoff": day.date, "horizon": self.horizons, "weighting": self.weightings[q]}
            of |= {"n": day.n, "n_events": day.n_events, "judged": day.judged}
            of |= {name: values[d, q] if np.ndim(values) else values for name, values in judgements._asdict().items()}
            of["chosen"] = [" or ".join(np.array(self.models)[chosen]) for chosen in judgements.chosen[d, q]]
            of["best"] = np.array(self.models)[judgements.best[d, q]]
            parts.append(of)
        return stacked(parts)

    @property
    def summary(self) -> pd.DataFrame:
        """One row for each weighting: means over cut-offs and horizons, with intervals from resampled individuals.

        Columns: weighting, ordered, ordered_lower, ordered_upper, sure_ordered, relative_regret, regret_lower,
        regret_upper, regret_lowest and regret_highest of single cut-offs, chose_best (how often, of how many), and
        against the first weighting: excess, excess_lower, excess_upper, by how much its relative regret is larger. A
        weighting without score at some cut-off and horizon is left out there.
        """
        import pandas as pd

        judgements, by_day, rows = self.judgements, self.regrets(), []
        alone = judgements.chosen.sum(axis=-1) == 1
        was_best = alone & (judgements.chosen.argmax(axis=-1) == judgements.best)
        regrets = judgements.relative_regret
        values = np.stack((judgements.ordered, regrets, regrets - regrets[:, :1]), axis=-1)
        means, known = self._mean(values, (0, 2), self._known[..., None]), self._known
        for q, weighting in enumerate(self.weightings):
            (ordered, regret, excess), days = means[q].tolist(), by_day[known[:, q].any(axis=-1), q]
            n_sure = judgements.n_sure[:, q] * known[:, q]
            agreed = float(np.nansum(judgements.sure_ordered[:, q] * n_sure))
            rows.append(
                {
                    "weighting": weighting,
                    "ordered": ordered,
                    **self._limits("ordered", ordered, self.draws[:, q, 0], 0.0, 1.0),
                    "sure_ordered": agreed / n_sure.sum() if n_sure.any() else np.nan,
                    "relative_regret": regret,
                    **self._limits("regret", regret, self.draws[:, q, 1], 0.0),
                    "regret_lowest": float(days.min()) if days.size else np.nan,
                    "regret_highest": float(days.max()) if days.size else np.nan,
                    "chose_best": int(was_best[:, q].sum()),
                    "of": int(known[:, q].sum()),
                    "excess": excess,
                    **self._limits("excess", excess, self.draws[:, q, 2]),
                }
            )
        return pd.DataFrame(rows)

    def regrets(self) -> Values:
        """Return relative regrets, means over horizons, (days, weightings)."""
        return self._mean(self.judgements.relative_regret, (2,), self._known)

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
        known = table["relative_regret"].dropna()
        choices = [f"{100 * regret:.3g} % if by {name}" for name, regret in known.items()]
        verdict = (
            f"choices by {several(self.accused)} were significantly worse than those by {first}"
            if self.accused
            else f"no choice was significantly worse than that by {first}"
        )
        days = f"{plural(len(self.days), 'earlier day')} and {plural(self.horizons.size, 'horizon')}"
        return f"Over {days}, the model chosen was in truth worse than the best by {several(choices)}: {verdict}."

    @property
    def recommended_sentence(self) -> str:
        """How many pairs of models the recommendation as of then decided, and how many rightly; empty without any."""
        table = self.recommendations
        sums = table[table["individuals"] == "all"].sum(numeric_only=True)
        if not sums["n_decided"]:
            return ""
        decided, ordered = sums["n_decided"] / sums["n_pairs"], sums["n_ordered"] / sums["n_decided"]
        return (
            f"The recommendation decided {100 * decided:.3g} % of pairs of models, {100 * ordered:.3g} % of them as in "
            f"truth; {int(sums['n_wrong'])} of the {int(sums['n_settled'])} that differ significantly in truth were "
            "decided wrongly."
        )

    def plot(self, ax: Any = None, *, width: float | None = None) -> BacktestDisplay:
        """Draw how much worse than the best the chosen models were, by weighting: means with intervals, and each day.

        Parameters
        ----------
        ax, width
            As for `ScoreCurve.plot`.

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
        chosen_by = [shown(named[weighting]) for weighting in table["weighting"]]
        was_best = [f"{number} of {of}" for number, of in zip(table["chose_best"], table["of"], strict=True)]
        excess: list[Cell] = ["", *columns["excess"][1:]]
        rows = list(zip(chosen_by, columns["ordered"], columns["relative_regret"], was_best, excess, strict=True))
        days = f"as of {several([str(day.date.astype('datetime64[D]')) for day in self.days])}"
        days = days if len(self.days) <= MOST_DAYS else plural(len(self.days), "cut-off")
        when = f"{days}; {plural(self.horizons.size, 'horizon')}"
        when += f"; {self.settings['clock']}" if "clock" in self.settings else ""
        caption = (
            f"{self.label} ({self.direction} is better) of {plural(len(self.models), 'model')}; {when}; "
            f"{100 * self.level:g} % intervals"
        )
        header = ("chosen by", "right order, %", "worse than best, %", "was best", "excess, %")
        notes = (
            *legend(table["weighting"]),
            "right order: of pairs of models, as in truth; worse than best: the chosen model, in truth; excess: of "
            f"that, over {shown(rows[0][0])}",
            *(message for day in self.days for message in day.undefined),
            self.sentence,
            *filter(None, [self.recommended_sentence]),
        )
        return Tables(caption, [Part("", header, rows, notes, "lrrrr")])

    def __repr__(self) -> str:
        return (
            f"Backtest({plural(len(self.models), 'model')}, {plural(len(self.days), 'cut-off')}, "
            f"{plural(self.horizons.size, 'horizon')}, {'; '.join(self.weightings)})"
        )

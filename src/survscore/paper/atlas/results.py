"""What the atlas found: tables of all sets, means over them, and what that says in words."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from survscore._validation import InputError
from survscore.inference.intervals import student_quantile
from survscore.io.files import check_regular, written_whole
from survscore.paper.atlas.closing import MEAN
from survscore.paper.atlas.models import FAMILIES, NULL, listed
from survscore.paper.atlas.scores import ADMINISTRATIVE, KAPLAN_MEIER, PROJECTED

if TYPE_CHECKING:
    import pandas as pd

#: The tables of a set, and by which columns their rows are known.
TABLES = {
    "scores": ("score", "model", "horizon"),
    "closing": ("family", "against", "horizon"),
    "truths": ("cutoff", "horizon", "score", "model"),
    "backtests": ("family", "cutoff", "horizon", "score"),
    "recommendations": ("family", "cutoff", "horizon", "individuals"),
    "sets": ("family", "score"),
}
#: Shares of statuses that the closing date hides, by which horizons are put together.
HIDDEN = (0.0, 0.1, 0.3, 0.6, 1.0)
#: Sets with fewer individuals on each day have halves of few dozens.
FEWEST = 100
#: What a page needs; the others are large.
SMALL = ("about", "closing", "models", "backtests", "recommendations", "sets")


@dataclass(frozen=True, eq=False, repr=False)
class Atlas:
    """What became of all sets. Made by `atlas`.

    Attributes
    ----------
    about : pandas.DataFrame
        One row for each set: individuals, events, drop-outs, dates, horizons, where it comes from.
    scores : pandas.DataFrame
        Brier scores on the closing date: set, score, model, horizon (or the mean over them), brier, se.
    closing : pandas.DataFrame
        How scores agree on the closing date, by set, family of models and horizon.
    truths : pandas.DataFrame
        Brier scores as of earlier days, beside the truth.
    models : pandas.DataFrame
        By set, score and model, means over days and horizons: by how much the Brier score was above that of
        Kaplan-Meier as the score said then, and in truth; both relative to Kaplan-Meier's.
    backtests : pandas.DataFrame
        How each score did by set, family, earlier day and horizon.
    recommendations : pandas.DataFrame
        How many pairs of models the recommendation as of an earlier day decided, and how many rightly, by set, family,
        earlier day and horizon; of all individuals, and of halves.
    sets : pandas.DataFrame
        The same over all days and horizons of a set, with intervals.
    settings : dict
        With version, seed, models and rules.
    """

    about: pd.DataFrame
    scores: pd.DataFrame
    closing: pd.DataFrame
    truths: pd.DataFrame
    models: pd.DataFrame
    backtests: pd.DataFrame
    recommendations: pd.DataFrame
    sets: pd.DataFrame
    settings: dict[str, Any]

    @classmethod
    def of(cls, results: Mapping[str, dict[str, Any]], settings: dict[str, Any]) -> Atlas:
        """Put the results of sets together."""
        import pandas as pd

        tables = {}
        for table, keys in TABLES.items():
            rows = [{"set": name, **row} for name, one in results.items() for row in one["tables"][table]]
            frame = pd.DataFrame(rows) if rows else pd.DataFrame(columns=["set", *keys])
            tables[table] = frame.where(frame.notna(), np.nan).infer_objects()  # NaN is null in JSON
        about = pd.DataFrame([{"set": name, **_in_words(one["about"])} for name, one in results.items()])
        seconds = {name: round(one["seconds"], 1) for name, one in results.items()}
        versions = next(iter(results.values()))["versions"]
        settings = {**settings, "versions": versions, "seconds": seconds}
        return cls(about=about, models=against_null(tables["truths"]), settings=settings, **tables)

    @classmethod
    def read(cls, folder: Path) -> Atlas:
        """Read what `save` wrote, or the part of it that `SMALL` names."""
        import pandas as pd

        path = folder / "settings.json"
        check_regular(path)
        settings = json.loads(path.read_text(encoding="utf-8"))
        frames = {}
        for name in ("about", "models", *TABLES):
            path = folder / f"{name}.csv"
            if not path.exists() and name in SMALL:
                raise InputError(f"{path}: there is no such file, and {folder} is no folder of an atlas")
            frames[name] = pd.read_csv(path, float_precision="round_trip") if path.exists() else pd.DataFrame()
        return cls(settings=settings, **frames)

    def save(self, folder: Path) -> None:
        """Write all tables, the settings, and the forest plot."""
        from survscore.paper.atlas.drawing import forest

        names = ("about", "models", *TABLES, "summary")
        frames: dict[str, pd.DataFrame] = {name: getattr(self, name) for name in names}
        writers: dict[str, Callable[[Path], Any]] = {
            **{f"{name}.csv": _writer(frame) for name, frame in frames.items()},
            "settings.json": lambda path: path.write_text(json.dumps(self.settings, indent=1) + "\n", encoding="utf-8"),
        }
        for name, write in writers.items():
            with written_whole(folder / name) as temporary:
                write(temporary)
        if len(self.sets):
            forest(self, folder / "forest.svg")

    @property
    def summary(self) -> pd.DataFrame:
        """One row for each family and score: means over sets, each set counting once.

        Columns: family, score, sets, runs, ordered, relative_regret, median_regret; half_ordered and half_regret, the
        same where one half of the individuals was scored and the other half is the truth, means over sets; half_settled
        and half_wrong, in how many pairs of all sets the differences of both halves are significant, and the share of
        these with opposite signs; and against the administrative score: gain (by how much more pairs that one ordered
        as in truth) and excess (by how much smaller its relative regret was), with intervals that take sets as a sample
        of sets, and in how many sets it was better and worse.
        """
        import pandas as pd

        rows, halves = [], halves_of(self.backtests)
        for (family, score), some in self.sets.groupby(["family", "score"], sort=False):
            row = {
                "family": family,
                "score": score,
                "sets": len(some),
                "runs": int(some["runs"].sum()),
                "ordered": some["ordered"].mean(),
                "relative_regret": some["relative_regret"].mean(),
                "median_regret": some["relative_regret"].median(),
            }
            row |= halves[str(family), str(score)]
            for what in ("gain", "excess"):
                value, lower, upper = _mean_over_sets(some[what].to_numpy(dtype=np.float64))
                better, worse = int((some[what] > 0).sum()), int((some[what] < 0).sum())
                row |= {what: value, f"{what}_lower": lower, f"{what}_upper": upper}
                row |= {f"{what}_better": better, f"{what}_worse": worse}
            rows.append(row)
        return pd.DataFrame(rows)

    @property
    def hidden(self) -> pd.DataFrame:
        """How often scores contradict each other significantly, by the share of statuses hidden at the cut-off.

        Columns: against, from, to, horizons (of how many sets), n_pairs, differ and opposite_and_sure, shares of pairs.
        """
        import pandas as pd

        table = self.closing[(self.closing["family"] == next(iter(FAMILIES))) & (self.closing["horizon"] != MEAN)]
        rows = []
        for against, some in table.groupby("against", sort=False):
            for low, high in pairwise(HIDDEN):
                within = some[(some["hidden"] >= low) & ((some["hidden"] < high) | (high == HIDDEN[-1]))]
                pairs = int(within["n_pairs"].sum())
                rows.append(
                    {
                        "against": against,
                        "from": low,
                        "to": high,
                        "sets": within["set"].nunique(),
                        "horizons": len(within),
                        "n_pairs": pairs,
                        "differ": within["differ"].sum() / pairs if pairs else np.nan,
                        "opposite_and_sure": within["opposite_and_sure"].sum() / pairs if pairs else np.nan,
                    }
                )
        return pd.DataFrame(rows)

    def of_summary(self, family: str, score: str) -> pd.Series:
        """Return a row of the summary."""
        table = self.summary
        return table[(table["family"] == family) & (table["score"] == score)].iloc[0]

    @property
    def sentences(self) -> tuple[str, ...]:
        """What the scores said when the studies stood years ago, and what happened since; none without earlier days."""
        if not len(self.sets):
            return ()
        first, *_, last = FAMILIES
        scores = (PROJECTED, ADMINISTRATIVE, KAPLAN_MEIER)
        everyone, strict = (
            [_in_percent(self.of_summary(family, score)) for score in scores] for family in (first, last)
        )

        def three(rows: list[dict[str, str]], name: str) -> str:
            return "{}, {} and {}".format(*(row[name] for row in rows))

        days = self.backtests[["set", "cutoff"]].drop_duplicates().merge(self.about[["set", "closing_date"]], on="set")
        closing, earlier = (days[name].to_numpy(dtype="datetime64[D]") for name in ("closing_date", "cutoff"))
        years = (closing - earlier) / np.timedelta64(1, "D") / 365.25
        return (
            f"We let {days['set'].nunique()} real data sets end {years.min():.0f} to {years.max():.0f} years earlier "
            f"than they do, on {len(days)} days in all, scored {len(self.settings['models'])} models by what was known "
            "then, and compared the scores with what happened since.",
            f"The projected, the administrative and the IPCW score had put {three(everyone, 'ordered')} of the pairs "
            "of models in the order in which they turned out.",
            f"The models that they would have chosen were in truth {three(everyone, 'relative_regret')} worse than the "
            f"best (means over sets; medians {three(everyone, 'median_regret')}).",
            f"Among models that neither drop the censored nor use the date of entry, {three(strict, 'ordered')} of "
            f"pairs are in order, and the choices {three(strict, 'relative_regret')} worse than the best (medians "
            f"{three(strict, 'median_regret')}).",
            "Scored on one half of the individuals and judged on the other half, "
            f"{three(everyone, 'half_ordered')} of pairs are in order among all models, "
            f"{three(strict, 'half_ordered')} among those that neither drop the censored nor use the date of entry; of "
            f"the differences that are significant on both halves, {three(everyone, 'half_wrong')} have opposite "
            "signs.",
            *filter(None, [self.recommendation_sentence]),
        )

    @property
    def small_sets_sentence(self) -> str:
        """How many pairs are in order on halves without the smallest sets; empty where no set is small, or all are."""
        largest = self.backtests.groupby("set")["n"].max()
        small = list(largest.index[largest < FEWEST])
        if not small or len(small) == len(largest):
            return ""
        halves = halves_of(self.backtests[~self.backtests["set"].isin(small)])
        first, *_, last = FAMILIES
        everyone = _three(lambda score: float(halves[first, score]["half_ordered"]))
        strict = _three(lambda score: float(halves[last, score]["half_ordered"]))
        return (
            f"Without {', '.join(small)}, where halves have fewer than {FEWEST // 2} individuals, {everyone} of pairs "
            f"are in order among all models, and {strict} among those that neither drop the censored nor use the date "
            "of entry."
        )

    @property
    def significant_sentence(self) -> str:
        """How often differences are significant both by a score and in truth, and how often these contradict."""
        if not len(self.backtests):
            return ""
        table = self.backtests[self.backtests["family"] == next(iter(FAMILIES))]
        sums = table.groupby("score")[["n_pairs", "n_settled", "n_wrong"]].sum()
        return (
            f"Of {int(sums['n_pairs'][PROJECTED])} pairs of models on all days and horizons, the difference by the "
            "projected, the administrative and the IPCW score is significant, and that in truth too, for "
            f"{_three(lambda score: sums['n_settled'][score] / sums['n_pairs'][score])}; of these, "
            f"{_three(lambda score: sums['n_wrong'][score] / sums['n_settled'][score])} have opposite signs."
        )

    @property
    def recommended(self) -> pd.DataFrame:
        """How often the recommendation as of earlier days decided between two models, and how often it was wrong.

        One row for each family of models, and for all individuals or halves, all sets together: n_pairs, decided,
        ordered (shares of pairs, and of those decided), n_settled (decided, and significantly different in truth), and
        wrong, the share of these that turned out in the other order: sure and wrong.
        """
        counts = self.recommendations.groupby(["family", "individuals"], sort=False)
        sums = counts[["n_pairs", "n_decided", "n_ordered", "n_settled", "n_wrong"]].sum().reset_index()
        shares = {
            "decided": sums["n_decided"] / sums["n_pairs"],
            "ordered": sums["n_ordered"] / sums["n_decided"],
            "wrong": sums["n_wrong"] / sums["n_settled"],
        }
        return sums.assign(**shares)[
            ["family", "individuals", "n_pairs", "decided", "ordered", "n_settled", "wrong", "n_wrong"]
        ]

    @property
    def recommendation_sentence(self) -> str:
        """The same in words, of all models; empty without earlier days."""
        if not len(self.recommendations):
            return ""
        table = self.recommended
        whole, halves = (
            table[(table["family"] == next(iter(FAMILIES))) & (table["individuals"] == individuals)].iloc[0]
            for individuals in ("all", "halves")
        )
        n_decided = round(whole["decided"] * whole["n_pairs"])
        n_other = n_decided - round(whole["ordered"] * n_decided)
        return (
            "The recommendation, based on the administrative and the projected score, had decided between two models "
            f"for {percent(whole['decided'])} of {whole['n_pairs']} pairs; {n_other} of these {n_decided} turned out "
            f"in the other order, {whole['n_wrong']} of them significantly. Decided on one half of the individuals "
            f"and judged on the other half, {percent(halves['wrong'])} of the pairs that differ significantly there "
            "turned out in the other order."
        )

    @property
    def closing_sentence(self) -> str:
        """What the scores say on the closing dates, all models."""
        table = self.closing[(self.closing["family"] == next(iter(FAMILIES))) & (self.closing["horizon"] == MEAN)]
        rows = table[table["against"] == KAPLAN_MEIER]
        pairs, other = int(rows["n_pairs"].sum()), int((rows["winner"] != rows["winner_of_other"]).sum())
        return (
            "At the data cut-off, the administrative and the IPCW score choose different models in "
            f"{other} of {len(rows)} sets. "
            f"Of {pairs} pairs of models they order {percent(rows['differ'].sum() / pairs)} otherwise, and of "
            f"{percent(rows['opposite_and_sure'].sum() / pairs)} both differences are significant, with opposite signs."
        )

    @property
    def leak_sentence(self) -> str:
        """What the scores said of the models that leak most, and what they were worth; empty without earlier days."""
        names = [one.name for one in listed() if one.entry and one.recipe.censored == "dropped"]
        some = self.models[self.models["model"].isin(names)]
        if not len(some):
            return ""
        said = some.groupby("score")["said"].mean()
        truth = some["truth"].mean()
        return (
            f"Models that drop the censored and use the date of entry were {compared(said[PROJECTED])} Kaplan-Meier "
            f"as the projected score said, {compared(said[ADMINISTRATIVE])} it as the administrative score said, "
            f"{compared(said[KAPLAN_MEIER])} it as IPCW said, and {compared(truth)} it in truth (Brier scores, means "
            f"over sets and {some['model'].nunique()} models)."
        )

    @property
    def fair_sentences(self) -> tuple[str, ...]:
        """In which sets IPCW ordered more pairs of models as in truth than the administrative score, by family."""
        told = []
        for family in FAMILIES if len(self.sets) else ():
            rows = self.sets[(self.sets["family"] == family) & (self.sets["score"] == KAPLAN_MEIER)]
            fewer = rows[rows["gain"] < 0]
            clear = rows[rows["gain_upper"] < 0]
            names = f": {', '.join(fewer['set'])}" if len(fewer) else ""
            clearly = f", significantly in {', '.join(clear['set'])}" if len(clear) else ", significantly in none"
            told.append(
                f"Models: {family}. IPCW put more pairs in order than the administrative score in {len(fewer)} of "
                f"{len(rows)} sets{names}{clearly}."
            )
        return tuple(told)

    @property
    def projected_sentences(self) -> tuple[str, ...]:
        """In which sets the other scores ordered more pairs of models as in truth than the projected one, by family."""
        told = []
        for family in FAMILIES if len(self.sets) else ():
            table = self.sets[self.sets["family"] == family]
            ordered = table.pivot_table(index="set", columns="score", values="ordered")
            parts = []
            for score in (ADMINISTRATIVE, KAPLAN_MEIER):
                more = list(ordered.index[ordered[score] > ordered[PROJECTED]])
                parts.append(
                    f"{score} in {len(more)} of {len(ordered)} sets" + (f" ({', '.join(more)})" if more else "")
                )
            told.append(f"Models: {family}. More pairs in order than by the projected score: {'; '.join(parts)}.")
        return tuple(told)

    def __repr__(self) -> str:
        return f"Atlas({len(self.about)} sets)\n" + self.summary.round(3).to_string(index=False)


def percent(share: float) -> str:
    """Return a share in per cent, with a decimal where it is small."""
    return f"{100 * share:.{0 if abs(share) >= 0.0995 else 1}f} %"


def halves_of(backtests: pd.DataFrame) -> dict[tuple[str, str], dict[str, Any]]:
    """Return how each score of one half did by the truth of the other, by family and score."""
    found = {}
    for (family, score), runs in backtests.groupby(["family", "score"], sort=False):
        by_set = runs.groupby("set")[["half_ordered", "half_regret"]].mean()
        settled, wrong = int(runs["half_settled"].sum()), int(runs["half_wrong"].sum())
        found[str(family), str(score)] = {
            "half_ordered": by_set["half_ordered"].mean(),
            "half_regret": by_set["half_regret"].mean(),
            "half_settled": settled,
            "half_wrong": wrong / settled if settled else np.nan,
        }
    return found


def _three(values: Callable[[str], float]) -> str:
    """Return what was found of the projected, the administrative and the IPCW score, in per cent."""
    return "{}, {} and {}".format(*(percent(values(score)) for score in (PROJECTED, ADMINISTRATIVE, KAPLAN_MEIER)))


def compared(share: float) -> str:
    """Return by how much a score is better or worse than another, in words."""
    return f"{percent(abs(share))} {'worse' if share > 0 else 'better'} than"


def _in_percent(row: pd.Series) -> dict[str, str]:
    shares = ("ordered", "relative_regret", "median_regret", "half_ordered", "half_wrong")
    return {name: percent(row[name]) for name in shares}


def against_null(truths: pd.DataFrame, null_model: str = NULL, by: Sequence[str] = ("set",)) -> pd.DataFrame:
    """Return by how much models were above a null model, as scores said and in truth, means over days and horizons."""
    import pandas as pd

    keys = [*by, "score", "model"]
    if not len(truths):
        return pd.DataFrame(columns=[*keys, "runs", "said", "truth"])
    place = [*by, "cutoff", "horizon", "score"]
    null = truths[truths["model"] == null_model].set_index(place)[["brier", "truth"]]
    beside = truths.join(null, on=place, rsuffix="_null")
    beside["said"] = beside["brier"] / beside["brier_null"] - 1.0
    beside["truth"] = beside["truth"] / beside["truth_null"] - 1.0
    by_model = beside.groupby(keys, sort=False)
    return by_model.agg(runs=("said", "size"), said=("said", "mean"), truth=("truth", "mean")).reset_index()


def _in_words(about: Mapping[str, Any]) -> dict[str, Any]:
    """Return a description with lists as text, for a table."""

    def told(value: Any) -> Any:
        if isinstance(value, dict):
            return "; ".join(f"{key}: {told(some)}" for key, some in value.items() if some)
        return ", ".join(f"{number:g}" for number in value) if isinstance(value, list) else value

    return {key: told(value) for key, value in about.items()}


def _mean_over_sets(values: np.ndarray) -> tuple[float, float, float]:
    """Return the mean, and Student's interval as if sets were drawn from all there might be."""
    mean = float(values.mean())
    if values.size < 2:
        return mean, np.nan, np.nan
    half = float(student_quantile(0.95, np.array([values.size - 1.0]))[0]) * float(values.std(ddof=1))
    return mean, mean - half / np.sqrt(values.size), mean + half / np.sqrt(values.size)


def _writer(frame: pd.DataFrame) -> Callable[[Path], Any]:
    return lambda path: frame.to_csv(path, index=False)

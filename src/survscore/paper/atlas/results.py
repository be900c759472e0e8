"""The results of the atlas: tables of all sets, means over them, and what that says in words."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from survscore._utils.parallel import cached_property
from survscore._validation import InputError
from survscore.inference.intervals import student_quantile
from survscore.io.files import check_regular, written_whole
from survscore.paper.atlas.judging import MEAN
from survscore.paper.atlas.models import FAMILIES, NULLS
from survscore.paper.atlas.scores import ADMINISTRATIVE, KAPLAN_MEIER, PROJECTED

if TYPE_CHECKING:
    import pandas as pd

#: The tables of a set, and by which columns their rows are known; by cause there are some of them.
TABLES = {
    "scores": ("score", "model", "horizon"),
    "closing": ("family", "against", "horizon"),
    "truths": ("cutoff", "horizon", "score", "model"),
    "backtests": ("family", "cutoff", "horizon", "score"),
    "recommendations": ("family", "cutoff", "horizon", "individuals"),
    "sets": ("family", "score"),
}
BY_CAUSE = ("truths", "backtests")
#: Shares of statuses that the closing date hides, by which horizons are put together.
HIDDEN = (0.0, 0.1, 0.3, 0.6, 1.0)
#: In the order of sentences.
SCORES = (PROJECTED, ADMINISTRATIVE, KAPLAN_MEIER)
#: The widest family of models, and the narrowest.
ALL, *_, NEITHER = FAMILIES


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
        How each score did over all days and horizons of a set, with intervals.
    settings : dict
        With version, seed, models and rules.

    Notes
    -----
    By cause, ``truths``, ``models`` (against Aalen-Johansen) and ``backtests`` have a column ``cause``, and the tables
    of the closing date, of recommendations and of intervals are empty.
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
            rows = [{"set": name, **row} for name, result in results.items() for row in result["tables"].get(table, ())]
            frame = pd.DataFrame(rows) if rows else pd.DataFrame(columns=["set", *keys])
            tables[table] = frame.where(frame.notna(), np.nan).infer_objects()  # NaN is null in JSON
        about = pd.DataFrame([{"set": name} | _as_cells(result["about"]) for name, result in results.items()])
        seconds = {name: round(result["seconds"], 1) for name, result in results.items()}
        versions = next(iter(results.values()))["versions"]
        settings = {**settings, "versions": versions, "seconds": seconds}
        return cls(about=about, models=against_null(tables["truths"]), settings=settings, **tables)

    @classmethod
    def read(cls, folder: Path, *, by_cause: bool = False) -> Atlas:
        """Read what `save` wrote; large tables that a page does not need may be missing."""
        import pandas as pd

        prefix = "causes_" * by_cause
        path = folder / f"{prefix}settings.json"
        check_regular(path)
        settings = json.loads(path.read_text(encoding="utf-8"))
        frames = {}
        for name in ("about", "models", *TABLES):
            path = folder / f"{prefix}{name}.csv"
            if not path.exists() and name in ("about", "models", "backtests"):
                raise InputError(f"{path}: there is no such file, and {folder} is no folder of an atlas")
            frames[name] = pd.read_csv(path, float_precision="round_trip") if path.exists() else pd.DataFrame()
        return cls(settings=settings, **frames)

    def save(self, folder: Path) -> None:
        """Write all tables, the settings, and the forest plot."""
        from survscore.paper.atlas.page import forest

        prefix = "causes_" * self.by_cause
        names = ("about", "models", *(BY_CAUSE if self.by_cause else TABLES), "summary")
        texts = {f"{name}.csv": getattr(self, name).to_csv(index=False) for name in names}
        texts["settings.json"] = json.dumps(self.settings, indent=1) + "\n"
        for name, text in texts.items():
            with written_whole(folder / f"{prefix}{name}") as temporary:
                temporary.write_text(text, encoding="utf-8")
        if len(self.sets):
            forest(self, folder / "forest.svg")

    @property
    def by_cause(self) -> bool:
        """Whether scores are of single causes."""
        return "cause" in self.backtests

    @cached_property
    def summary(self) -> pd.DataFrame:
        """One row for each family and score: means over sets, each set counting once.

        Columns: family, score, sets, runs, ordered, relative_regret, median_regret; half_ordered and half_regret, the
        same where one half of the individuals was scored and the other half is the truth, means over sets; half_settled
        and half_wrong, in how many pairs of all sets the differences of both halves are significant, and the share of
        these with opposite signs. Where there are intervals of sets, against the administrative score: gain (by how
        much more pairs that one ordered as in truth) and excess (by how much smaller its relative regret was), with
        intervals that take sets as a sample of sets, and in how many sets it was better and worse.
        """
        import pandas as pd

        rows, halves = [], halves_of(self.backtests)
        for (family, score), runs in self.backtests.groupby(["family", "score"], sort=False):
            by_set = runs.groupby("set")[["ordered", "relative_regret"]].mean()
            row: dict[Any, Any] = {"family": family, "score": score, "sets": len(by_set), "runs": len(runs)}
            row |= by_set.mean().to_dict()
            row |= {"median_regret": by_set["relative_regret"].median(), **halves[str(family), str(score)]}
            if len(self.sets):
                some = self.sets[(self.sets["family"] == family) & (self.sets["score"] == score)]
                for what in ("gain", "excess"):
                    value, lower, upper = _mean_over_sets(some[what].to_numpy(dtype=np.float64))
                    row |= {what: value, f"{what}_lower": lower, f"{what}_upper": upper}
                    row |= {f"{what}_better": int((some[what] > 0).sum()), f"{what}_worse": int((some[what] < 0).sum())}
            rows.append(row)
        return pd.DataFrame(rows)

    @property
    def hidden(self) -> pd.DataFrame:
        """How often scores contradict each other significantly, by the share of statuses hidden at the cut-off.

        Columns: against, from, to, horizons (of how many sets), n_pairs, differ and opposite_and_sure, shares of pairs.
        """
        import pandas as pd

        table = self.closing[(self.closing["family"] == ALL) & (self.closing["horizon"] != MEAN)]
        rows = []
        for against, some in table.groupby("against", sort=False):
            for low, high in pairwise(HIDDEN):
                within = some[(some["hidden"] >= low) & ((some["hidden"] < high) | (high == HIDDEN[-1]))]
                pairs = int(within["n_pairs"].sum())
                row = {"against": against, "from": low, "to": high}
                row |= {"sets": within["set"].nunique(), "horizons": len(within), "n_pairs": pairs}
                for name in ("differ", "opposite_and_sure"):
                    row[name] = within[name].sum() / pairs if pairs else np.nan
                rows.append(row)
        return pd.DataFrame(rows)

    @property
    def recommended(self) -> pd.DataFrame:
        """How often the recommendation as of earlier days decided between two models, and how often it was wrong.

        One row for each family of models, and for all individuals or halves, all sets together: n_pairs, decided,
        ordered (shares of pairs, and of those decided), n_settled (decided, and significantly different in truth), and
        wrong, the proportion of these that were decided in the wrong order.
        """
        by = ["family", "individuals"]
        counts = ["n_pairs", "n_decided", "n_ordered", "n_settled", "n_wrong"]
        sums = self.recommendations.groupby(by, sort=False)[counts].sum().reset_index()
        sums["decided"] = sums["n_decided"] / sums["n_pairs"]
        sums["ordered"] = sums["n_ordered"] / sums["n_decided"]
        sums["wrong"] = sums["n_wrong"] / sums["n_settled"]
        return sums[[*by, "n_pairs", "decided", "ordered", "n_settled", "wrong", "n_wrong"]]

    def of_summary(self, family: str, score: str) -> pd.Series:
        """Return a row of the summary."""
        table = self.summary
        return table[(table["family"] == family) & (table["score"] == score)].iloc[0]

    # In words

    @property
    def sentences(self) -> tuple[str, ...]:
        """How the scores ranked models when follow-up ended years earlier, and what happened since; none without."""
        if not len(self.backtests):
            return ()
        n_models, runs = len(self.settings["models"]), self.backtests
        days = runs[["set", "cutoff"]].drop_duplicates().merge(self.about[["set", "closing_date"]], on="set")
        n_sets = days["set"].nunique()
        if self.by_cause:
            n_causes, n_runs = len(runs[["set", "cause"]].drop_duplicates()), self.of_summary(ALL, PROJECTED)["runs"]
            opening = (
                f"{n_sets} sets have {n_causes} causes. With {n_models} models on {len(days)} earlier days that makes "
                f"{n_runs} runs, of one cause, day and horizon each."
            )
        else:
            closing, earlier = (days[name].to_numpy(dtype="datetime64[D]") for name in ("closing_date", "cutoff"))
            years = (closing - earlier) / np.timedelta64(1, "D") / 365.25
            opening = (
                f"We ended the follow-up of {n_sets} real data sets {years.min():.0f} to {years.max():.0f} years "
                f"early, on {len(days)} days in all, scored {n_models} models with the data known then, and compared "
                "the scores with what happened later."
            )

        def three(family: str, column: str) -> str:
            return three_shares(lambda score: self.of_summary(family, score)[column])

        return (
            opening,
            f"The projected, the administrative and the IPCW score{' of a cause' * self.by_cause} ranked "
            f"{three(ALL, 'ordered')} of the pairs of models in their true order.",
            f"The models with the best of these scores were in truth {three(ALL, 'relative_regret')} worse than "
            f"the best model (means over sets; medians {three(ALL, 'median_regret')}).",
            f"Among models that neither drop the censored nor use the date of entry, {three(NEITHER, 'ordered')} of "
            f"pairs are in the true order, and the choices are {three(NEITHER, 'relative_regret')} worse than the best "
            f"(medians {three(NEITHER, 'median_regret')}).",
            "With scores from one half of the individuals and the truth from the other half, "
            f"{three(ALL, 'half_ordered')} of pairs are in the true order among all models, and "
            f"{three(NEITHER, 'half_ordered')} among those that neither drop the censored nor use the date of entry; "
            f"of the differences that are significant in both halves, {three(ALL, 'half_wrong')} have opposite signs.",
            *filter(None, [self.recommendation_sentence]),
        )

    @property
    def recommendation_sentence(self) -> str:
        """How often the recommendation decided, and how often wrongly, all models; empty without earlier days."""
        if not len(self.recommendations):
            return ""
        rows = {row["individuals"]: row for row in self.recommended.to_dict("records") if row["family"] == ALL}
        whole, halves = rows["all"], rows["halves"]
        n_decided = round(whole["decided"] * whole["n_pairs"])
        n_other = n_decided - round(whole["ordered"] * n_decided)
        return (
            "The recommendation, based on the administrative and the projected score, decided between two models "
            f"for {percent(whole['decided'])} of {whole['n_pairs']} pairs; {n_other} of these {n_decided} decisions "
            f"were wrong, {whole['n_wrong']} of them significantly. With decisions from one half of the individuals "
            f"and the truth from the other half, {percent(halves['wrong'])} of the pairs that differ significantly "
            "in truth were decided wrongly."
        )

    @property
    def closing_sentence(self) -> str:
        """What the scores say on the closing dates, all models."""
        table = self.closing[(self.closing["family"] == ALL) & (self.closing["horizon"] == MEAN)]
        rows = table[table["against"] == KAPLAN_MEIER]
        pairs, other = int(rows["n_pairs"].sum()), int((rows["winner"] != rows["winner_of_other"]).sum())
        return (
            "At the data cut-off, the administrative and the IPCW score choose different models in "
            f"{other} of {len(rows)} sets. "
            f"Of {pairs} pairs of models they rank {percent(rows['differ'].sum() / pairs)} differently; for "
            f"{percent(rows['opposite_and_sure'].sum() / pairs)} both differences are significant, with opposite signs."
        )

    def __repr__(self) -> str:
        return f"Atlas({len(self.about)} sets)\n" + self.summary.round(3).to_string(index=False)


def percent(share: float) -> str:
    """Return a share in per cent, with a decimal where it is small."""
    return f"{100 * share:.{0 if abs(share) >= 0.0995 else 1}f} %"


def three_shares(values: Callable[[str], float]) -> str:
    """Return a value of the projected, the administrative and the IPCW score, in per cent."""
    return "{}, {} and {}".format(*(percent(values(score)) for score in SCORES))


def halves_of(backtests: pd.DataFrame) -> dict[tuple[str, str], dict[str, Any]]:
    """Return how each score of one half did by the truth of the other, by family and score."""
    halves = {}
    for (family, score), runs in backtests.groupby(["family", "score"], sort=False):
        means: dict[Any, Any] = runs.groupby("set")[["half_ordered", "half_regret"]].mean().mean().to_dict()
        settled, wrong = int(runs["half_settled"].sum()), int(runs["half_wrong"].sum())
        shares = {"half_settled": settled, "half_wrong": wrong / settled if settled else np.nan}
        halves[str(family), str(score)] = means | shares
    return halves


def against_null(truths: pd.DataFrame) -> pd.DataFrame:
    """Return by how much models were above a null model, as scores said and in truth, means over days and horizons."""
    import pandas as pd

    by = ["set", "cause"] if "cause" in truths else ["set"]
    keys = [*by, "score", "model"]
    if not len(truths):
        return pd.DataFrame(columns=[*keys, "runs", "said", "truth"])
    place = [*by, "cutoff", "horizon", "score"]
    null = truths[truths["model"].isin(NULLS)].set_index(place)[["brier", "truth"]]
    beside = truths.join(null, on=place, rsuffix="_null")
    beside["said"] = beside["brier"] / beside["brier_null"] - 1.0
    beside["truth"] = beside["truth"] / beside["truth_null"] - 1.0
    by_model = beside.groupby(keys, sort=False)
    return by_model.agg(runs=("said", "size"), said=("said", "mean"), truth=("truth", "mean")).reset_index()


def _as_cells(about: Mapping[str, Any]) -> dict[str, Any]:
    """Return a description with lists as text, for a table."""

    def cell(value: Any) -> Any:
        if isinstance(value, dict):
            return "; ".join(f"{key}: {cell(part)}" for key, part in value.items() if part)
        return ", ".join(f"{number:g}" for number in value) if isinstance(value, list) else value

    return {key: cell(value) for key, value in about.items()}


def _mean_over_sets(values: np.ndarray) -> tuple[float, float, float]:
    """Return the mean, and Student's interval as if sets were drawn from all there might be."""
    mean = float(values.mean())
    if values.size < 2:
        return mean, np.nan, np.nan
    half = float(student_quantile(0.95, values.size - 1.0)) * float(values.std(ddof=1)) / np.sqrt(values.size)
    return mean, mean - half, mean + half

"""By cause: how each score would have ordered predictions on an earlier day, and what happened since."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from survscore._utils.jobs import Progress, silent
from survscore._validation import InputError
from survscore.analysis.backtest import backtest
from survscore.analysis.cross_validation import out_of_fold
from survscore.io.files import check_regular, written_whole
from survscore.outcomes import Outcomes
from survscore.paper.atlas.closing import LEVEL, Row
from survscore.paper.atlas.data import FEWEST_WITH_STATUS, Prepared
from survscore.paper.atlas.earlier import horizons_on, judged_rows, truth_rows
from survscore.paper.atlas.models import FAMILIES, NULL_BY_CAUSE, Effort, ListedModel, estimators
from survscore.paper.atlas.models import family as of_family
from survscore.paper.atlas.results import against_null, compared, halves_of, percent
from survscore.paper.atlas.scores import ADMINISTRATIVE, KAPLAN_MEIER, PROJECTED, scores

if TYPE_CHECKING:
    import pandas as pd

#: The tables of a set.
TABLES = ("truths", "backtests")
#: What is written, and read for a page.
WRITTEN = ("about", "models", "backtests")
#: Choices that are worse than the best by more than this are costly.
COSTLY = 0.05
#: The scores that are tried. A Cox model of censoring is as misleading for causes as it is for events of one kind.
SCORES = (ADMINISTRATIVE, PROJECTED, KAPLAN_MEIER)


def horizons_by_cause(data: Prepared, day: np.datetime64) -> NDArray[np.float64]:
    """Return at which horizons an earlier day is a test, with enough events of each cause; see `horizons_on`."""
    horizons = horizons_on(data, day)
    there = data.dates.start <= day
    then = data.y[there].as_of(day)
    mature = np.asarray(then.censoring_time)[:, None] >= horizons
    before = np.asarray(then.time)[:, None] <= horizons
    causes = np.arange(1, len(then.causes) + 1)
    counts = np.array([(mature & before & (np.asarray(then.cause) == k)[:, None]).sum(axis=0) for k in causes])
    return horizons[(counts >= FEWEST_WITH_STATUS).all(axis=0)]


def by_cause(
    data: Prepared,
    entries: Sequence[ListedModel],
    effort: Effort,
    folds: int,
    n_splits: int,
    seed: int,
    progress: Progress = silent,
) -> dict[str, list[Row]]:
    """Return how each score of each cause did on every earlier day, as rows of two tables."""
    tests = [(day, horizons) for day in data.cutoffs if (horizons := horizons_by_cause(data, day)).size]
    tables: dict[str, list[Row]] = {name: [] for name in TABLES}
    for k, (day, horizons) in enumerate(tests):
        progress(k, len(tests), f"as of {str(day)[:10]}")
        there = data.dates.start <= day
        now, groups = data.y[there], None if data.groups is None else data.groups[there]
        then, X = now.as_of(day), data.X[there]
        made = out_of_fold(
            estimators(entries, horizons, effort), X, then, cv=folds, groups=groups, n_jobs=1, seed=seed, progress=False
        ).curves()
        for cause in now.causes:
            found = backtest(
                now.for_cause(cause),
                made,
                as_of=day,
                horizons=horizons,
                groups=groups,
                n_draws=0,
                level=LEVEL,
                weighting=[scores()[name] for name in SCORES],
                n_splits=n_splits,
                n_jobs=1,
                seed=seed,
            )
            tables["truths"] += [{"cause": cause, **row} for row in truth_rows(found, SCORES)]
            for name in FAMILIES:
                rows = judged_rows(found.only(of_family(name, entries)), SCORES)
                tables["backtests"] += [{"cause": cause, "family": name, **row} for row in rows]
    return tables


def described_causes(y: Outcomes) -> Row:
    """Return the number of events of each cause, in words."""
    return {"causes": ", ".join(f"{cause} ({n})" for cause, n in y.n_by_cause.items())}


@dataclass(frozen=True, eq=False, repr=False)
class AtlasByCause:
    """What became of all sets whose events have causes. Made by `atlas_by_cause`.

    Attributes
    ----------
    about : pandas.DataFrame
        One row for each set, with its causes.
    models : pandas.DataFrame
        By set, cause, score and model, means over days and horizons: by how much the Brier score was above that of
        Aalen-Johansen as the score said then, and in truth; both relative to Aalen-Johansen's.
    backtests : pandas.DataFrame
        How each score did by set, cause, family of models, earlier day and horizon.
    settings : dict
        With version, seed, models and rules.
    """

    about: pd.DataFrame
    models: pd.DataFrame
    backtests: pd.DataFrame
    settings: dict[str, Any]

    @classmethod
    def of(cls, results: Mapping[str, dict[str, Any]], settings: dict[str, Any]) -> AtlasByCause:
        """Put the results of sets together."""
        import pandas as pd

        truths, backtests = (
            pd.DataFrame([{"set": name, **row} for name, one in results.items() for row in one["tables"][table]])
            for table in TABLES
        )
        if not len(backtests):
            raise InputError(
                f"sets: none of {', '.join(results)} has an earlier closing date on which enough events of each cause "
                "were known, and enough was hidden"
            )
        words = ("n", "n_all", "n_events", "n_lost", "causes", "event", "start", "closing_date", "unit", "licence")
        about = pd.DataFrame([{"set": name, **{w: one["about"][w] for w in words}} for name, one in results.items()])
        seconds = {name: round(one["seconds"], 1) for name, one in results.items()}
        versions = next(iter(results.values()))["versions"]
        models = against_null(truths, NULL_BY_CAUSE, ("set", "cause"))
        return cls(about, models, backtests, {**settings, "versions": versions, "seconds": seconds})

    @classmethod
    def read(cls, folder: Path) -> AtlasByCause:
        """Read what `save` wrote."""
        import pandas as pd

        path = folder / "causes_settings.json"
        check_regular(path)
        frames = {name: pd.read_csv(folder / f"causes_{name}.csv", float_precision="round_trip") for name in WRITTEN}
        return cls(settings=json.loads(path.read_text(encoding="utf-8")), **frames)

    def save(self, folder: Path) -> None:
        """Write the tables and the settings."""
        texts = {f"causes_{name}.csv": getattr(self, name).to_csv(index=False) for name in WRITTEN}
        texts["causes_settings.json"] = json.dumps(self.settings, indent=1) + "\n"
        for name, text in texts.items():
            with written_whole(folder / name) as temporary:
                temporary.write_text(text, encoding="utf-8")

    @property
    def summary(self) -> pd.DataFrame:
        """One row for each family and score: means over sets, each set counting once, of all its causes.

        Columns: family, score, sets, causes, runs, ordered, relative_regret, half_ordered and half_wrong, as those of
        `Atlas.summary`; largest_regret is that of a single run.
        """
        import pandas as pd

        rows, halves = [], halves_of(self.backtests)
        for (family, score), runs in self.backtests.groupby(["family", "score"], sort=False):
            by_set = runs.groupby("set")[["ordered", "relative_regret"]].mean()
            rows.append(
                {
                    "family": family,
                    "score": score,
                    "sets": len(by_set),
                    "runs": len(runs),
                    "causes": len(runs[["set", "cause"]].drop_duplicates()),
                    "ordered": by_set["ordered"].mean(),
                    "relative_regret": by_set["relative_regret"].mean(),
                    "largest_regret": runs["relative_regret"].max(),
                    **halves[str(family), str(score)],
                }
            )
        return pd.DataFrame(rows)

    @property
    def sentences(self) -> tuple[str, ...]:
        """What each score of a cause would have chosen, and how good that was."""
        first, *_, last = FAMILIES
        rows = {(row["family"], row["score"]): row for row in self.summary.to_dict("records")}
        row = rows[first, PROJECTED]

        def three(family: str, column: str) -> str:
            order = (PROJECTED, ADMINISTRATIVE, KAPLAN_MEIER)
            return "{}, {} and {}".format(*(percent(rows[family, score][column]) for score in order))

        days = len(self.backtests[["set", "cutoff"]].drop_duplicates())
        return (
            f"{row['sets']} sets have {row['causes']} causes. With {len(self.settings['models'])} models on {days} "
            f"earlier days that makes {row['runs']} runs, of one cause, day and horizon each.",
            f"The projected, the administrative and the IPCW score of a cause had put {three(first, 'ordered')} of the "
            f"pairs of models in the order in which they turned out, and the models that they would have chosen were "
            f"in truth {three(first, 'relative_regret')} worse than the best (means over sets).",
            f"Among models that neither drop the censored nor use the date of entry, {three(last, 'ordered')} of pairs "
            f"are in order, and the choices {three(last, 'relative_regret')} worse than the best.",
            f"Scored on one half of the individuals and judged on the other half, {three(first, 'half_ordered')} of "
            f"pairs are in order among all models, {three(last, 'half_ordered')} among those that neither drop the "
            "censored nor use the date of entry.",
        )

    @property
    def leak_sentence(self) -> str:
        """What the scores said of the classifiers that drop the censored and use the date of entry."""
        some = self.models[self.models["model"].str.contains("dropped + entry", regex=False)]
        said, truth = some.groupby("score")["said"].mean(), some["truth"].mean()
        return (
            f"Classifiers that drop the censored and use the date of entry were {compared(said[PROJECTED])} "
            f"Aalen-Johansen as the projected score said, {compared(said[ADMINISTRATIVE])} it as the administrative "
            f"score said, {compared(said[KAPLAN_MEIER])} it as IPCW said, and {compared(truth)} it in truth (Brier "
            "scores of a cause, means over causes and sets)."
        )

    @property
    def cost_sentence(self) -> str:
        """For how many causes the choices of each score are costly."""
        runs = self.backtests[self.backtests["family"] == next(iter(FAMILIES))]
        regret = runs.groupby(["set", "cause", "score"])["relative_regret"].mean()
        costly, n = (regret > COSTLY).groupby("score").sum(), len(regret) // len(SCORES)
        return (
            f"Among all models, the choices of the projected, the administrative and the IPCW score are on average "
            f"more than {percent(COSTLY)} worse than the best for {costly[PROJECTED]}, {costly[ADMINISTRATIVE]} and "
            f"{costly[KAPLAN_MEIER]} of {n} causes."
        )

    @property
    def fair_sentence(self) -> str:
        """For which causes other scores ordered more pairs of models as in truth than the projected one."""
        runs = self.backtests[self.backtests["family"] == next(iter(FAMILIES))]
        ordered = runs.groupby(["set", "cause", "score"])["ordered"].mean().unstack()
        parts = []
        for score in (ADMINISTRATIVE, KAPLAN_MEIER):
            more = [f"{cause} in {name}" for name, cause in ordered.index[ordered[score] > ordered[PROJECTED]]]
            parts.append(f"{score} for {len(more)} of {len(ordered)} causes" + (f" ({', '.join(more)})" * bool(more)))
        return f"More pairs in order than by the projected score: {'; '.join(parts)}."

    def __repr__(self) -> str:
        return f"AtlasByCause({len(self.about)} sets)\n" + self.summary.round(3).to_string(index=False)

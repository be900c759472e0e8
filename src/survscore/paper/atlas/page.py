"""The tables of the atlas as people read them: in the documentation, and at the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from survscore._utils.dates import plural_word
from survscore.paper.atlas.causes import AtlasByCause
from survscore.paper.atlas.closing import MEAN
from survscore.paper.atlas.drawing import forest
from survscore.paper.atlas.models import FAMILIES, RECIPES
from survscore.paper.atlas.results import Atlas, percent
from survscore.paper.atlas.scores import ADMINISTRATIVE, KAPLAN_MEIER, PROJECTED
from survscore.plots import COLUMN

if TYPE_CHECKING:
    import pandas as pd

ALL = next(iter(FAMILIES))


def about_table(atlas: Atlas) -> pd.DataFrame:
    """Return what the sets are."""
    return _table(
        {
            "set": row["set"],
            "event, since": f"{row['event']}, since {row['start']}",
            "individuals": _of_all(row),
            "events": row["n_events"],
            "lost": row["n_lost"],
            "data cut-off": row["closing_date"],
            "horizons": f"{row['horizons']} {plural_word(row['unit'])}",
            "licence": row["licence"],
        }
        for row in _records(atlas.about)
    )


def _of_all(row: dict[str, Any]) -> str:
    return str(row["n"]) if row["n"] == row["n_all"] else f"{row['n']} of {row['n_all']}"


def closing_table(atlas: Atlas) -> pd.DataFrame:
    """Return how the administrative score and IPCW agree on the closing date, over all models: one row for each set."""
    table = atlas.closing[(atlas.closing["family"] == ALL) & (atlas.closing["horizon"] == MEAN)]
    rows = table[table["against"] == KAPLAN_MEIER]
    projected = table[table["against"] == PROJECTED].set_index("set")["winner_of_other"]
    return _table(
        {
            "set": row["set"],
            "status hidden": percent(row["hidden"]),
            "best by projected": projected[row["set"]],
            "best by administrative": row["winner"],
            "best by IPCW": "the same" if row["winner"] == row["winner_of_other"] else row["winner_of_other"],
            "which costs": _cost(row),
            "pairs that differ": percent(row["differ"] / row["n_pairs"]),
            "significant and opposite": percent(row["opposite_and_sure"] / row["n_pairs"]),
        }
        for row in _records(rows)
    )


def _cost(row: dict[str, Any]) -> str:
    if row["winner"] == row["winner_of_other"]:
        return ""
    return percent(row["cost_of_other"]) + ("" if row["sure_of_cost"] else ", not significant")


def hidden_table(atlas: Atlas) -> pd.DataFrame:
    """Return how often the two contradict each other significantly, by the share of statuses that are hidden."""
    rows = atlas.hidden
    return _table(
        {
            "status hidden": f"{100 * row['from']:.0f} to {100 * row['to']:.0f} %",
            "sets": row["sets"],
            "horizons": row["horizons"],
            "pairs": row["n_pairs"],
            "that differ": percent(row["differ"]) if row["n_pairs"] else "",
            "significant and opposite": percent(row["opposite_and_sure"]) if row["n_pairs"] else "",
        }
        for row in _records(rows[rows["against"] == KAPLAN_MEIER])
    )


def model_table(atlas: Atlas) -> pd.DataFrame:
    """Return what scores said of each model on earlier days beside the truth, means over sets; the best first."""
    return _models_table(atlas.models)


def _models_table(models: pd.DataFrame) -> pd.DataFrame:
    means = models.groupby(["model", "score"], sort=False)[["said", "truth"]].mean()
    by_model: dict[str, dict[str, float]] = {}
    for row in _records(means.reset_index()):
        by_model.setdefault(row["model"], {"in truth": row["truth"]})[row["score"]] = row["said"]
    return _table(
        {
            "model": name,
            "projected said": _signed(one[PROJECTED]),
            "administrative said": _signed(one[ADMINISTRATIVE]),
            "IPCW said": _signed(one[KAPLAN_MEIER]),
            "in truth": _signed(one["in truth"]),
        }
        for name, one in sorted(by_model.items(), key=lambda item: item[1]["in truth"])
    )


def _signed(share: float) -> str:
    return f"{100 * share:+.0f} %"


def causes_table(found: AtlasByCause) -> pd.DataFrame:
    """Return how the score of each cause did on earlier days, by set and cause, among all models."""
    runs = found.backtests[found.backtests["family"] == ALL]
    scores = (PROJECTED, ADMINISTRATIVE, KAPLAN_MEIER)
    rows = []
    for _, some in runs.groupby(["set", "cause"], sort=False):
        means = some.groupby("score")[["ordered", "relative_regret"]].mean().loc[list(scores)]
        ordered, regret = ([percent(value) for value in means[name]] for name in means)
        rows.append(
            {
                "set": some["set"].iloc[0],
                "cause": some["cause"].iloc[0],
                "runs": int((some["score"] == PROJECTED).sum()),
                **dict(zip(("pairs in order, projected", "administrative", "IPCW"), ordered, strict=True)),
                **{f"chosen worse than best, {score}": value for score, value in zip(scores, regret, strict=True)},
            }
        )
    return _table(rows)


def causes_family_table(found: AtlasByCause) -> pd.DataFrame:
    """Return how each score did by cause on earlier days, means over sets, by family of models."""
    return _table(
        {
            "models": row["family"],
            "score": row["score"],
            "pairs in the true order": percent(row["ordered"]),
            "chosen worse than best, mean": percent(row["relative_regret"]),
            "halves: pairs in order": percent(row["half_ordered"]),
            "halves: chosen worse than best": percent(row["half_regret"]),
            "halves: significant and wrong": f"{percent(row['half_wrong'])} of {row['half_settled']}",
        }
        for row in _records(found.summary)
    )


def causes_about_table(found: AtlasByCause) -> pd.DataFrame:
    """Return what the sets with causes are."""
    return _table(
        {
            "set": row["set"],
            "event, since": f"{row['event']}, since {row['start']}",
            "causes": row["causes"],
            "individuals": _of_all(row),
            "lost": row["n_lost"],
        }
        for row in _records(found.about)
    )


def family_table(atlas: Atlas) -> pd.DataFrame:
    """Return how each score did on earlier days, means over sets, by family of models."""
    return _table(
        {
            "models": row["family"],
            "score": row["score"],
            "pairs in the true order": percent(row["ordered"]),
            "chosen worse than best, mean": percent(row["relative_regret"]),
            "median set": percent(row["median_regret"]),
            "sets where administrative orders more, fewer": _against(row, "gain"),
            "sets where it chooses better, worse": _against(row, "excess"),
            "halves: pairs in order": percent(row["half_ordered"]),
            "halves: chosen worse than best": percent(row["half_regret"]),
            "halves: significant and wrong": f"{percent(row['half_wrong'])} of {row['half_settled']}",
        }
        for row in (_records(atlas.summary) if len(atlas.sets) else [])
    )


def recommendation_table(atlas: Atlas) -> pd.DataFrame:
    """Return how often the recommendation decided between two models, and how often wrongly, by family of models."""
    of = {"all": "all", "halves": "one half, judged by the other"}
    return _table(
        {
            "models": row["family"],
            "individuals": of[row["individuals"]],
            "pairs": row["n_pairs"],
            "decided": percent(row["decided"]),
            "of these in the true order": f"{100 * row['ordered']:.1f} %",
            "significant in truth, too": row["n_settled"],
            "of these in the other order": f"{row['n_wrong']} ({percent(row['wrong'])})",
        }
        for row in (_records(atlas.recommended) if len(atlas.recommendations) else [])
    )


def _against(row: dict[str, Any], what: str) -> str:
    return "" if row["score"] == ADMINISTRATIVE else f"{row[f'{what}_better']}, {row[f'{what}_worse']}"


def set_table(atlas: Atlas, family: str) -> pd.DataFrame:
    """Return how the scores did on earlier days, one row for each set, among the models of a family."""
    rows = []
    for name, some in atlas.sets[atlas.sets["family"] == family].groupby("set", sort=False):
        by_score = {row["score"]: row for row in _records(some)}
        three = [by_score[score] for score in (PROJECTED, ADMINISTRATIVE, KAPLAN_MEIER)]
        rows.append(
            {
                "set": name,
                "runs": three[0]["runs"],
                "pairs in order, projected": percent(three[0]["ordered"]),
                "administrative": percent(three[1]["ordered"]),
                "IPCW": percent(three[2]["ordered"]),
                "projected minus administrative (95 %)": _gain(three[0]),
                "IPCW minus administrative (95 %)": _gain(three[2]),
                "chosen worse than best, projected": percent(three[0]["relative_regret"]),
                "chosen worse than best, administrative": percent(three[1]["relative_regret"]),
                "chosen worse than best, IPCW": percent(three[2]["relative_regret"]),
            }
        )
    return _table(rows)


def _gain(row: dict[str, Any]) -> str:
    """Return by how many percentage points more pairs a score ordered than the administrative one."""
    value, lower, upper = (-100 * row[name] for name in ("gain", "gain_upper", "gain_lower"))
    return f"{value:.1f} ({lower:.1f} to {upper:.1f})"


#: What is said of the models that treat the censored so.
TREATED = {
    "modelled": "part of the likelihood, or of the risk sets",
    "dropped": "dropped, though those with an earlier event stay: this leaks C*",
    "event-free": "treated as event-free",
    "outside": "left out, as all whose C* is before the horizon",
}


def recipe_table(atlas: Atlas) -> pd.DataFrame:
    """Return the list of models, without those whose package was not there."""
    return _table(
        {"model": one.name, "those censored before the horizon": TREATED[one.censored]}
        for one in RECIPES
        if one.name in atlas.settings["models"]
    )


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(name): value for name, value in row.items()} for row in frame.to_dict("records")]


def _table(rows: Any) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(list(rows))


#: What a page shows, by file.
TABLES: dict[str, Callable[[Atlas], pd.DataFrame]] = {
    "about": about_table,
    "closing": closing_table,
    "hidden": hidden_table,
    "families": family_table,
    "models": model_table,
    "recipes": recipe_table,
    "recommendations": recommendation_table,
    "sets-all": lambda atlas: set_table(atlas, ALL),
    "sets-neither": lambda atlas: set_table(atlas, list(FAMILIES)[-1]),
}


#: And of causes.
CAUSE_TABLES: dict[str, Callable[[AtlasByCause], pd.DataFrame]] = {
    "causes-about": causes_about_table,
    "causes-families": causes_family_table,
    "causes-models": lambda found: _models_table(found.models),
    "causes-sets": causes_table,
}


def write_page(source: Path, target: Path) -> None:
    """Write the tables and the forest plot of a page, from the files of a run, and of one by cause."""
    atlas, causes = Atlas.read(source), AtlasByCause.read(source)
    target.mkdir(parents=True, exist_ok=True)
    for name, table in TABLES.items():
        table(atlas).to_csv(target / f"{name}.csv", index=False)
    for name, of_causes in CAUSE_TABLES.items():
        of_causes(causes).to_csv(target / f"{name}.csv", index=False)
    forest(atlas, target / "forest.svg")
    forest(atlas, target / "forest-narrow.svg", width=COLUMN)

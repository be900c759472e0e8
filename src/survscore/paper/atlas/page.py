"""The tables of the atlas as people read them: at the command line, and in the documentation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from survscore.paper.atlas.closing import MEAN
from survscore.paper.atlas.results import ALL, SCORES, Atlas, percent
from survscore.paper.atlas.scores import ADMINISTRATIVE, KAPLAN_MEIER, PROJECTED

if TYPE_CHECKING:
    import pandas as pd


def closing_table(atlas: Atlas) -> pd.DataFrame:
    """Return how the administrative score and IPCW agree on the closing date, over all models: one row for each set."""
    table = atlas.closing[(atlas.closing["family"] == ALL) & (atlas.closing["horizon"] == MEAN)]
    rows = table[table["against"] == KAPLAN_MEIER]
    projected = table[table["against"] == PROJECTED].set_index("set")["winner_of_other"]
    return as_table(
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
        for row in records(rows)
    )


def _cost(row: dict[str, Any]) -> str:
    if row["winner"] == row["winner_of_other"]:
        return ""
    return percent(row["cost_of_other"]) + ("" if row["sure_of_cost"] else ", not significant")


def family_table(atlas: Atlas) -> pd.DataFrame:
    """Return how each score did on earlier days, means over sets, by family of models."""
    return as_table(
        {
            "models": row["family"],
            "score": row["score"],
            "pairs in the true order": percent(row["ordered"]),
            "chosen worse than best, mean": percent(row["relative_regret"]),
            "median set": percent(row["median_regret"]),
            **(_against_administrative(row) if len(atlas.sets) else {}),
            "halves: pairs in order": percent(row["half_ordered"]),
            "halves: chosen worse than best": percent(row["half_regret"]),
            "halves: significant and wrong": f"{percent(row['half_wrong'])} of {row['half_settled']}",
        }
        for row in records(atlas.summary)
    )


def _against_administrative(row: dict[str, Any]) -> dict[str, str]:
    names = {"gain": "sets where administrative orders more, fewer", "excess": "sets where it chooses better, worse"}
    own = row["score"] == ADMINISTRATIVE
    return {name: "" if own else f"{row[f'{what}_better']}, {row[f'{what}_worse']}" for what, name in names.items()}


def set_table(atlas: Atlas, family: str = ALL) -> pd.DataFrame:
    """Return how the scores did on earlier days among the models of a family: a row for each set, or set and cause."""
    by = ["set", "cause"] if atlas.by_cause else ["set"]
    gains = atlas.sets[atlas.sets["family"] == family].set_index(["set", "score"]) if len(atlas.sets) else None
    rows = []
    for key, runs in atlas.backtests[atlas.backtests["family"] == family].groupby(by, sort=False):
        means = runs.groupby("score")[["ordered", "relative_regret"]].mean().loc[list(SCORES)]
        ordered, regret = ([percent(value) for value in means[name]] for name in means)
        row: dict[str, Any] = dict(zip(by, key, strict=True))
        row |= {"runs": int((runs["score"] == PROJECTED).sum())}
        row |= dict(zip(("pairs in order, projected", "administrative", "IPCW"), ordered, strict=True))
        if gains is not None:
            for name, score in (("projected", PROJECTED), ("IPCW", KAPLAN_MEIER)):
                row[f"{name} minus administrative (95 %)"] = _gain(gains.loc[(row["set"], score)])
        row |= {f"chosen worse than best, {score}": told for score, told in zip(SCORES, regret, strict=True)}
        rows.append(row)
    return as_table(rows)


def _gain(row: pd.Series[Any]) -> str:
    """Return by how many percentage points more pairs a score ordered than the administrative one."""
    value, lower, upper = (-100 * row[name] for name in ("gain", "gain_upper", "gain_lower"))
    return f"{value:.1f} ({lower:.1f} to {upper:.1f})"


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return rows as dictionaries."""
    return [{str(name): value for name, value in row.items()} for row in frame.to_dict("records")]


def as_table(rows: Any) -> pd.DataFrame:
    """Return dictionaries as a table."""
    import pandas as pd

    return pd.DataFrame(list(rows))

"""The tables of the atlas as people read them, at the command line and in the documentation, and its forest plot."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from survscore.paper.atlas.judging import MEAN
from survscore.paper.atlas.models import FAMILIES
from survscore.paper.atlas.results import ALL, SCORES, Atlas, percent
from survscore.paper.atlas.scores import ADMINISTRATIVE, KAPLAN_MEIER, PROJECTED

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

ROW = 0.28  # inches, of each set of the forest plot
#: Of each score: its place within a row, and its marker for a set.
SHOWN = {PROJECTED: (-0.17, "o"), KAPLAN_MEIER: (0.17, "s")}


def closing_table(atlas: Atlas) -> pd.DataFrame:
    """Return how the administrative score and IPCW agree on the closing date, over all models: one row for each set."""
    table = atlas.closing[(atlas.closing["family"] == ALL) & (atlas.closing["horizon"] == MEAN)]
    rows = table[table["against"] == KAPLAN_MEIER]
    projected = table[table["against"] == PROJECTED].set_index("set")["winner_of_other"]

    def cost(row: dict[str, Any]) -> str:
        if row["winner"] == row["winner_of_other"]:
            return ""
        return percent(row["cost_of_other"]) + ("" if row["sure_of_cost"] else ", not significant")

    return as_table(
        {
            "set": row["set"],
            "status hidden": percent(row["hidden"]),
            "best by projected": projected[row["set"]],
            "best by administrative": row["winner"],
            "best by IPCW": "the same" if row["winner"] == row["winner_of_other"] else row["winner_of_other"],
            "which costs": cost(row),
            "pairs that differ": percent(row["differ"] / row["n_pairs"]),
            "significant and opposite": percent(row["opposite_and_sure"] / row["n_pairs"]),
        }
        for row in records(rows)
    )


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
                of = gains.loc[(row["set"], score)]
                value, lower, upper = (-100 * of[column] for column in ("gain", "gain_upper", "gain_lower"))
                row[f"{name} minus administrative (95 %)"] = f"{value:.1f} ({lower:.1f} to {upper:.1f})"
        row |= {f"chosen worse than best, {score}": share for score, share in zip(SCORES, regret, strict=True)}
        rows.append(row)
    return as_table(rows)


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return rows as dictionaries."""
    return [{str(name): value for name, value in row.items()} for row in frame.to_dict("records")]


def as_table(rows: Any) -> pd.DataFrame:
    """Return dictionaries as a table."""
    import pandas as pd

    return pd.DataFrame(list(rows))


# The forest plot


def forest(atlas: Atlas, path: Path, *, width: float | None = None) -> None:
    """Draw the forest plot, and write it whole; see `draw`."""
    from survscore.plots import PAGE, save_figure
    from survscore.plots.style import pyplot

    figure = draw(atlas, width=PAGE if width is None else width)
    save_figure(figure, path, dpi=150)
    pyplot().close(figure)


def draw(atlas: Atlas, *, width: float) -> Any:
    """Return a figure, `width` inches wide: a panel for each family of models, a row for each set, and their mean.

    In each row the projected score and IPCW: how many more pairs of models than the administrative score they put in
    the true order.
    """
    from survscore.plots import style

    names = list(dict.fromkeys(atlas.sets["set"]))
    n_columns = 2 if width < style.NARROW else len(FAMILIES)
    n_rows = -(-len(FAMILIES) // n_columns)
    with style.applied(width):
        figure, axes = style.pyplot().subplots(
            n_rows,
            n_columns,
            sharex=True,
            sharey=True,
            squeeze=False,
            layout="constrained",
            figsize=(width, n_rows * (0.6 + ROW * (len(names) + 1)) + 0.7),
        )
        for ax, family in zip(axes.flat, FAMILIES, strict=True):
            for score, colour in zip(SHOWN, style.PALETTE, strict=False):
                table = atlas.sets[(atlas.sets["family"] == family) & (atlas.sets["score"] == score)]
                _points(ax, table.set_index("set").loc[names], atlas.of_summary(family, score), score, colour)
            style.dress(ax)
            ax.grid(False, axis="y")
            style.mark(ax, x=0.0, color=style.INK, linestyle="-")
            style.mark(ax, y=len(names) - 0.5, linestyle="-", color=style.RULE)
            style.say(ax, title=family)
        axes[0, 0].set_yticks(range(len(names) + 1), [*names, "mean over sets"])
        axes[0, 0].set_ylim(len(names) + 0.6, -0.6)
        axes[0, 0].locator_params(axis="x", nbins=5, steps=[1, 2, 5, 10])
        handles, labels = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=len(SHOWN), fontsize=style.font_size(width))
        better = f"pairs of models in the true order: difference to the {ADMINISTRATIVE} score, percentage points"
        style.put(figure.supxlabel("", fontsize=style.font_size(width)), better, 70.0 * width)
        style.refit(figure, None)
    return figure


def _points(ax: Axes, sets: pd.DataFrame, mean: pd.Series[Any], score: str, colour: str) -> None:
    offset, marker = SHOWN[score]
    rows = [*((row, marker, 3.5) for _, row in sets.iterrows()), (mean, "D", 5.5)]
    for place, (row, shape, size) in enumerate(rows):
        y = place + offset
        ax.plot([-100 * row["gain_lower"], -100 * row["gain_upper"]], [y, y], color=colour, linewidth=1)
        ax.plot(-100 * row["gain"], y, shape, color=colour, markersize=size, label=score if place == 0 else None)

"""The forest plot: by how much more pairs of models the administrative score put in the true order, set by set."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from survscore._files import written_whole
from survscore.experiments.atlas.models import FAMILIES
from survscore.experiments.atlas.scores import KAPLAN_MEIER

if TYPE_CHECKING:
    from survscore.experiments.atlas.results import Atlas


def forest(atlas: Atlas, path: Path, against: str = KAPLAN_MEIER) -> None:
    """Draw one panel for each family of models, one row for each set, and the mean over sets below; write it whole.

    Parameters
    ----------
    atlas : Atlas
        The numbers.
    path : path
        Of a picture.
    against : str
        The score with which the administrative one is compared.
    """
    from survscore.plots import pyplot

    table = atlas.sets[atlas.sets["score"] == against]
    names = list(dict.fromkeys(table["set"]))
    plt = pyplot()
    figure, axes = plt.subplots(
        1, len(FAMILIES), sharex=True, sharey=True, figsize=(2.2 + 2.1 * len(FAMILIES), 1.6 + 0.3 * (len(names) + 1)),
        layout="constrained",
    )  # fmt: skip
    for ax, family in zip(axes, FAMILIES, strict=True):
        some = table[table["family"] == family].set_index("set").loc[names]
        places = range(len(names))
        ax.hlines(places, 100 * some["gain_lower"], 100 * some["gain_upper"], color="C0", linewidth=1.5)
        ax.plot(100 * some["gain"], places, "s", color="C0", markersize=4)
        mean = atlas.of_summary(family, against)
        ax.hlines([len(names)], 100 * mean["gain_lower"], 100 * mean["gain_upper"], color="0.2", linewidth=1.5)
        ax.plot(100 * mean["gain"], len(names), "D", color="0.2", markersize=6)
        ax.axvline(0.0, color="0.6", linewidth=1)
        ax.axhline(len(names) - 0.5, color="0.8", linewidth=0.8)
        ax.set_title(family, fontsize=9)
    axes[0].set_yticks(range(len(names) + 1), [*names, "mean over sets"], fontsize=8)
    axes[0].set_ylim(len(names) + 0.6, -0.6)
    figure.supxlabel(
        f"pairs of models in the true order: administrative minus {against}, percentage points", fontsize=9
    )
    with written_whole(path) as temporary, plt.rc_context({"svg.hashsalt": "survscore"}):
        # without a date, the same numbers make the same file
        figure.savefig(temporary, dpi=150, metadata={"Date": None} if path.suffix == ".svg" else None)
    plt.close(figure)

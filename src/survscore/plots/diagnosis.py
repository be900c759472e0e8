"""What stands behind scores: predictions around C*, hazards of those with hidden status, losses of a training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from survscore._utils.dates import Unit
from survscore._validation import shown as printable
from survscore.analysis.diagnose import Diagnosis
from survscore.engine.inputs import NULL_MODELS
from survscore.metrics import survival_label
from survscore.plots import style
from survscore.plots.display import Display
from survscore.plots.labels import name_lines, outside_legend
from survscore.results.sensitivity import Sensitivity, when_text

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

TICKS = (1 / 32, 1 / 8, 1 / 2, 1, 2, 8, 32)  # of theta


@dataclass(eq=False, repr=False)
class DiagnosisDisplay(Display):
    """Drawn mean predictions around C*, and where they would go on; `diagnosis` holds the numbers.

    Attributes
    ----------
    diagnosis : Diagnosis
        The numbers.
    ax_, figure_
        The matplotlib objects, once drawn.
    """

    diagnosis: Diagnosis

    def to_frame(self) -> pd.DataFrame:
        """Return the mean predictions by time since C*: model, offset, survival."""
        import pandas as pd

        means = [
            pd.DataFrame({"model": name, "offset": self.diagnosis.offsets, "survival": mean})
            for name, mean in self.diagnosis.survival.items()
        ]
        return pd.concat(means, ignore_index=True)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        band: bool = True,
        unit: Unit | str | None = None,
        width: float | None = None,
    ) -> Self:
        """Draw one line per model into `ax`, or a new figure, with or without what to expect after C*.

        That is dotted, with its interval: how a model's mean goes on from C* if it falls as it does elsewhere, at other
        ages and for others.
        """
        expected = self.diagnosis.models.set_index("model")
        names = list(self.diagnosis.survival)
        null = next((name for name in NULL_MODELS if name in names and name not in expected.index), None)
        looks = style.looks(names, null=null)
        with style.canvas(ax, width) as on:
            lines = []
            for name, mean in self.diagnosis.survival.items():
                (line,) = on.ax.plot(self.diagnosis.offsets, mean, label=name, **looks[name])
                lines.append((line, printable(name, 60)))
                if band and name in expected.index and expected.loc[name].notna()["ratio"]:
                    self._expected(on.ax, line, mean, expected.loc[name])
            style.mark(on.ax, x=0.0, color=style.INK)
            if on.own:
                on.ax.margins(x=0.0)
            since = style.time_label(unit, "time since C*")
            style.say(on.ax, x=since, y=f"mean predicted {survival_label(self.diagnosis.cause)}", title=self._title())
            name_lines(on.ax, lines)
            return self._drawn(on)

    def _expected(self, ax: Axes, line: Any, mean: Any, row: Any) -> None:
        after = self.diagnosis.offsets >= 0
        share = self.diagnosis.offsets[after] / self.diagnosis.width
        start = mean[after][0]
        # the limits of the excess, taken from the fall that is there, are limits of the fall to expect
        limits = (row["fall_after"] - row[f"excess_{end}"] for end in ("upper", "lower"))
        falls = (row["fall_elsewhere"], *limits)
        middle, upper, lower = (start * (1.0 - min(max(fall, 0.0), 1.0)) ** share for fall in falls)
        (dotted,) = ax.plot(self.diagnosis.offsets[after], middle, color=line.get_color(), linestyle=":")
        style.shade(ax, dotted, self.diagnosis.offsets[after], lower, upper)

    def _title(self) -> str:
        leaking = self.diagnosis.models.query("verdict == 'encodes C*'")["model"]
        encodes = f"; {', '.join(leaking)} encode{'s' if len(leaking) == 1 else ''} C*" if len(leaking) else ""
        ipcw = {"no sign of a leak": "No sign of a leak", "too few": "Too few data to assess IPCW"}
        verdict = ipcw.get(self.diagnosis.ipcw, f"IPCW is {self.diagnosis.ipcw}")
        return f"{verdict}{encodes}. Dotted: what to expect after C*"


@dataclass(eq=False, repr=False)
class SensitivityDisplay(Display):
    """Drawn differences over theta, with tipping points and the hazard ratio of late starters.

    Attributes
    ----------
    sensitivity : Sensitivity
        The numbers.
    metric : str
        Which metric is drawn.
    time : float or None
        At which time; None for the mean over time.
    ax_, figure_
        The matplotlib objects, once drawn.
    """

    sensitivity: Sensitivity
    metric: str
    time: float | None = None

    def to_frame(self) -> pd.DataFrame:
        """Return the differences over theta: model, theta, difference."""
        import pandas as pd

        curves = [
            self.sensitivity.curve(model, time=self.time, metric=self.metric).assign(model=model)
            for model in self.sensitivity.others
        ]
        return pd.concat(curves, ignore_index=True)[["model", "theta", "difference"]]

    def plot(self, ax: Axes | None = None, *, width: float | None = None) -> Self:
        """Draw one line per model into `ax`, or a new figure; see `Sensitivity.plot`."""
        compared, others = self.sensitivity.compared, self.sensitivity.others
        points = [self.sensitivity.point(model, time=self.time, metric=self.metric) for model in others]
        curves, looks = self.to_frame(), style.looks(compared.models, null=compared.null)
        first, scored = points[0], compared.of_metric(self.metric)[0]
        with style.canvas(ax, width) as on:
            on.ax.set_xscale("log")
            lines = []
            for point in points:
                look, curve = looks[point.model], curves[curves["model"] == point.model]
                (line,) = on.ax.plot(curve["theta"], curve["difference"], label=point.model, **look)
                lines.append((line, printable(point.model, 60)))
                tipping = [at for at in (point.tipping_lower, point.tipping_upper) if 0 < at < np.inf]
                on.ax.plot(tipping, [0.0] * len(tipping), "o", color=look["color"], markersize=5, zorder=3)
                on.ax.plot([point.theta] * 2, [point.lower, point.upper], color=look["color"], linewidth=2)
                on.ax.plot(point.theta, point.difference, "D", color=look["color"], markersize=4.5)
            ratio = ""
            if not np.isnan(first.hazard_ratio):
                ratio = "; shaded: estimated for late starters, with interval"
                on.ax.axvspan(first.ratio_lower, first.ratio_upper, color=style.INK, alpha=0.08, linewidth=0)
                on.ax.axvline(first.hazard_ratio, color=style.SOFT, linewidth=0.9, linestyle=style.DASHES[1])
            style.mark(on.ax, y=0.0, color=style.INK)
            style.name_sides(on.ax, scored.direction)
            if on.own:
                on.ax.margins(x=0.0, y=0.16)  # room for the words at both sides of zero
            on.ax.set_xticks(TICKS, [f"{at:g}" if at >= 1 else f"1/{1 / at:.0f}" for at in TICKS])
            on.ax.minorticks_off()
            theta = f"theta: hazard of those with hidden status, as a multiple{ratio}"
            about = f"difference in {scored.label} to {printable(first.reference, 30)}"
            style.say(on.ax, x=theta, y=about, title=f"{when_text(first)}; {first.weighting}")
            name_lines(on.ax, lines)
            return self._drawn(on)


@dataclass(eq=False, repr=False)
class TrainingDisplay(Display):
    """Drawn losses of a training; `history` holds the numbers, `ax_` and `figure_` the matplotlib objects.

    `scores` are the columns that hold validation scores.
    """

    history: pd.DataFrame
    best_epoch: int | None = None
    scores: Sequence[str] = ()

    def to_frame(self) -> pd.DataFrame:
        """Return the losses by epoch."""
        return self.history

    def plot(self, ax: Axes | None = None, *, width: float | None = None) -> Self:
        """Draw into `ax`, or a new figure: losses by epoch, the ends of cycles, and the epoch that was kept."""
        shown = self.history
        with style.canvas(ax, width) as on:
            ax = on.ax
            ax.plot(shown["epoch"], shown["train_loss"], label="training (with dropout)", color=style.PALETTE[0])
            if shown["validation_loss"].notna().all():
                ax.plot(shown["epoch"], shown["validation_loss"], label="validation", color=style.PALETTE[1])
            lines = self._draw_scores(ax)
            cycle_ends = shown["epoch"][shown["cycle"].diff(-1) != 0]
            if len(cycle_ends) < len(shown):  # not where every epoch is a cycle
                for end in cycle_ends:
                    ax.axvline(end, color=style.RULE, linewidth=1.2, zorder=0)
                ax.grid(False, axis="x")  # which would look like cycles
            if self.best_epoch is not None:
                style.mark(ax, x=self.best_epoch, color=style.INK, label="kept")
            style.say(ax, x="epoch", y="loss per individual")
            ax.locator_params(axis="x", integer=True)
            handles = [*ax.get_legend_handles_labels()[0], *lines]
            names = [str(one.get_label()) for one in handles]
            if on.own:
                outside_legend(style.root_figure(ax), handles, names)
            else:
                ax.legend(handles=handles, fontsize=style.small(ax))
            return self._drawn(on)

    def _draw_scores(self, ax: Axes) -> list[Any]:
        """Draw the validation scores that were recorded, on a scale of their own to the right."""
        if not self.scores:
            return []
        right = ax.twinx()
        right.tick_params(labelsize=ax.yaxis.get_tick_params().get("labelsize"))
        right.spines["right"].set_visible(True)
        right.grid(False)
        right.set_ylabel("score")
        lines = []
        for k, column in enumerate(self.scores):
            colour = style.PALETTE[(k + 2) % len(style.PALETTE)]
            lines += right.plot(self.history["epoch"], self.history[column], label=column, color=colour)
        return lines

"""Displays: numbers that can be drawn. Only this module imports matplotlib."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from survscore._units import Unit, plural_word
from survscore._validation import check_whole
from survscore._validation import shown as printable
from survscore.backtest_results import Backtest
from survscore.calibrating import Calibration
from survscore.decision_curves import TREAT_ALL, TREAT_NONE, DecisionCurve
from survscore.diagnostics import Diagnosis
from survscore.distribution_results import DistributionCalibration
from survscore.estimate import Estimate
from survscore.metrics import AUC, Direction, metric_label, sides
from survscore.results import ScoreCurve

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def pyplot() -> Any:
    """Return matplotlib's pyplot, or say what to install."""
    try:
        from matplotlib import pyplot as plt
    except ImportError:
        raise ImportError("plots need matplotlib: pip install 'survscore[plots]'") from None
    return plt


def axes_or_new(ax: Axes | None) -> Axes:
    """Return the axes given, or those of a new figure."""
    return pyplot().subplots(layout="constrained")[1] if ax is None else ax


def time_label(unit: Unit | str | None, what: str = "time") -> str:
    """Return the label of an axis of time, with the unit where it is said."""
    return what if unit is None else f"{what} ({plural_word(unit)})"


def shade(ax: Axes, line: Any, x: Any, lower: Any, upper: Any) -> None:
    """Fill between limits, in the colour of the line."""
    ax.fill_between(x, lower, upper, color=line.get_color(), alpha=0.2, linewidth=0)


@dataclass(eq=False, repr=False)
class ScoreCurveDisplay:
    """A drawn score curve.

    Attributes
    ----------
    score : ScoreCurve
        The numbers.
    ax_, figure_, line_
        The matplotlib objects, once drawn.
    """

    score: ScoreCurve
    ax_: Axes | None = None
    figure_: Figure | None = None
    line_: Any = None

    def plot(self, ax: Axes | None = None, *, band: bool = True, unit: Unit | str | None = None, **line: Any) -> Self:
        """Draw into `ax`, or a new figure, with or without confidence intervals; `line` goes to `Axes.plot`."""
        ax = axes_or_new(ax)
        (self.line_,) = ax.plot(self.score.times, self.score.scores, **line)
        if band:
            shade(ax, self.line_, self.score.times, self.score.lower, self.score.upper)
        label = metric_label(self.score.metric)
        better = f"{self.score.direction} is better"
        ax.set(xlabel=time_label(unit), ylabel=f"{label} ({better})", title=self.score.weighting)
        if self.score.metric == AUC.name:
            ax.axhline(0.5, color="0.5", linewidth=1, linestyle="--")
        if "label" in line:
            ax.legend()
        self.ax_ = ax
        self.figure_ = ax.get_figure(root=True)
        return self


@dataclass(eq=False, repr=False)
class DifferenceDisplay:
    """Drawn differences of scores to a reference.

    Attributes
    ----------
    contrasts : pandas.DataFrame
        The numbers, as `Comparison.contrasts` gives them.
    metric, reference : str
        What was compared.
    direction : {"lower", "higher", "closer to 1", "closer to 0"}
        Which values are better.
    ax_, figure_
        The matplotlib objects, once drawn.
    """

    contrasts: pd.DataFrame
    metric: str
    reference: str
    direction: Direction = "lower"
    ax_: Axes | None = None
    figure_: Figure | None = None

    def plot(self, ax: Axes | None = None, *, band: bool = True, unit: Unit | str | None = None) -> Self:
        """Draw one line per model and weighting into `ax`, or a new figure, with or without confidence intervals."""
        ax = axes_or_new(ax)
        several = self.contrasts["weighting"].nunique() > 1
        for (weighting, model), part in self.contrasts.groupby(["weighting", "model"], sort=False):
            label = f"{model}, {weighting}" if several else str(model)
            (line,) = ax.plot(part["time"], part["difference"], label=label)
            if band:
                shade(ax, line, part["time"], part["lower"], part["upper"])
        ax.axhline(0.0, color="0.5", linewidth=1, linestyle="--")
        label = metric_label(self.metric)
        ax.set(
            xlabel=time_label(unit), ylabel=f"difference in {label} to {self.reference}",
            title=f"above 0: {sides(self.direction)[1]}",
        )  # fmt: skip
        ax.legend()
        self.ax_ = ax
        self.figure_ = ax.get_figure(root=True)
        return self


@dataclass(eq=False, repr=False)
class SegmentsDisplay:
    """A drawn forest plot: differences to a reference by segment.

    Attributes
    ----------
    contrasts : pandas.DataFrame
        The numbers, one row for the total, which comes first, and one for each segment: as
        `SegmentedComparison.contrasts` gives them, of one metric, weighting, model and time, with n and n_events.
    by : tuple of str
        The segmenting columns.
    metric, weighting, model, reference : str
        What was compared.
    direction : {"lower", "higher", "closer to 1", "closer to 0"}
        Which values are better.
    level : float
        Of the intervals.
    over : str
        At which time, or over which.
    ax_, figure_
        The matplotlib objects, once drawn.
    """

    contrasts: pd.DataFrame
    by: tuple[str, ...]
    metric: str
    weighting: str
    model: str
    reference: str
    direction: Direction = "lower"
    level: float = 0.95
    over: str = ""
    ax_: Axes | None = None
    figure_: Figure | None = None

    def plot(self, ax: Axes | None = None, *, most: int = 50) -> Self:
        """Draw into `ax`, or a new figure: one row per segment, the total below as a diamond, counts at the right.

        Of more than `most` segments, those with the largest differences are drawn, and a note says so. Without interval
        there is only a mark, hollow; without difference, nothing.
        """
        check_whole("most", most, 1)
        rows, note = self._rows(most)
        if ax is None:
            figure = pyplot().figure(figsize=(7.5, 1.9 + 0.26 * (len(rows) + 2)), layout="constrained")
            ax = figure.add_subplot()
        place = [float(k) for k in range(len(rows) + 1, 1, -1)]  # from top to bottom, and the total below a gap
        for y, row in zip(place, rows.to_dict("records"), strict=True):
            known = not math.isnan(row["lower"])
            if known:
                ax.hlines(y, row["lower"], row["upper"], color="C0", linewidth=1.5)
            ax.plot(row["difference"], y, "s", color="C0", markersize=4.5, markerfacecolor="C0" if known else "none")
        total = self.contrasts.iloc[0]
        self._diamond(ax, total)
        ax.vlines(0.0, -0.4, len(rows) + 1.6, color="0.5", linewidth=1, linestyle="--", zorder=0)
        ax.axhline(1.15, color="0.8", linewidth=0.8)
        labels = [segment_label(row[name] for name in self.by) for row in rows.to_dict("records")]
        ax.set_yticks([*place, 0.4], labels=[*labels, "all"], parse_math=False)
        ax.tick_params(axis="y", length=0)
        ax.set_ylim(-0.4, len(rows) + 2.6)
        ax.margins(x=0.05)
        ax.locator_params(axis="x", nbins=5)
        every = [*rows.to_dict("records"), dict(total)]
        for y, row in zip([*place, 0.4], every, strict=True):
            self._at_right(ax, y, f"{row['n']:,}", f"{row['n_events']:,}")
        self._at_right(ax, len(rows) + 2.05, "n", "events", color="0.35")
        self._sides(ax, len(rows))
        if any(math.isnan(row["lower"]) and not math.isnan(row["difference"]) for row in every):
            note += "\nhollow: too few for an interval"
        ax.set_xlabel(self._told() + note, fontsize="small", parse_math=False)
        for side in ("top", "right", "left"):
            ax.spines[side].set_visible(False)
        self.ax_ = ax
        self.figure_ = ax.get_figure(root=True)
        return self

    def _rows(self, most: int) -> tuple[pd.DataFrame, str]:
        """Return the segments to draw, in their order, and a note where some are left out."""
        parts = self.contrasts.iloc[1:]
        if len(parts) <= most:
            return parts, ""
        size = parts["difference"].abs().where(parts["lower"].notna(), -1.0).fillna(-2.0)
        kept = size.sort_values(ascending=False, kind="stable").index[:most]
        return parts.loc[sorted(kept)], f"\nthe {most} of {len(parts)} segments with the largest differences"

    def _diamond(self, ax: Axes, total: Any) -> None:
        middle, lower, upper = (float(total[name]) for name in ("difference", "lower", "upper"))
        if math.isnan(lower):
            ax.plot(middle, 0.4, "D", color="0.2", markerfacecolor="none")
            return
        ax.fill([lower, middle, upper, middle], [0.4, 0.72, 0.4, 0.08], color="0.2", linewidth=0.8)

    def _at_right(self, ax: Axes, y: float, n: str, events: str, color: str = "black") -> None:
        across = ax.get_yaxis_transform()  # x by the axes, y by the data
        for points, text in ((48, n), (98, events)):
            ax.annotate(
                text, (1.0, y), xycoords=across, xytext=(points, 0), textcoords="offset points", ha="right",
                va="center", fontsize="small", color=color, annotation_clip=False,
            )  # fmt: skip

    def _sides(self, ax: Axes, n_rows: int) -> None:
        """Name the sides of zero, each at its end of the axis."""
        left, right = sides(self.direction)
        across = ax.get_yaxis_transform()
        for x, text, align in ((0.0, f"← {left}", "left"), (1.0, f"{right} →", "right")):
            ax.text(x, n_rows + 2.05, text, transform=across, ha=align, va="center", fontsize="small", color="0.35")

    def _told(self) -> str:
        what = (
            f"difference in {metric_label(self.metric)}, {printable(self.model, 40)} to {printable(self.reference, 40)}"
        )
        how = f"{self.over}, {printable(self.weighting, 60)}, {100 * self.level:g} % intervals"
        return f"{what}\n{how}"


def segment_label(labels: Iterable[str], most: int = 34) -> str:
    """Return a segment's labels on one line, and not too long to stand beside a plot."""
    every = list(labels)
    return ", ".join(printable(label, most // len(every)) if label else "''" for label in every)


@dataclass(eq=False, repr=False)
class CalibrationDisplay:
    """Drawn calibration at one horizon.

    Attributes
    ----------
    calibration : Calibration
        The numbers.
    ax_, histogram_ax_, figure_, line_
        The matplotlib objects, once drawn; the histogram of the predictions has axes of its own.
    """

    calibration: Calibration
    ax_: Axes | None = None
    histogram_ax_: Axes | None = None
    figure_: Figure | None = None
    line_: Any = None

    def plot(self, ax: Axes | None = None, **line: Any) -> Self:
        """Draw into `ax`, or a new figure; `line` goes to `Axes.plot`.

        The smooth curve with its band, groups of like predictions with intervals, the diagonal, where the predictions
        are, and the two numbers that say the most.
        """
        ax = axes_or_new(ax)
        shown = self.calibration
        ax.plot([0, 1], [0, 1], color="0.5", linewidth=1, linestyle="--")
        marker: dict[str, Any] = {"marker": "_", "markersize": 12} if shown.curve.predicted.size == 1 else {}
        (self.line_,) = ax.plot(shown.curve.predicted, shown.curve.observed, **(marker | line))
        shade(ax, self.line_, shown.curve.predicted, shown.curve.lower, shown.curve.upper)
        groups = shown.groups
        ax.vlines(groups.predicted, groups.lower, groups.upper, color=self.line_.get_color(), linewidth=1)
        ax.plot(groups.predicted, groups.observed, "o", color=self.line_.get_color(), markersize=4)
        ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), xlabel="predicted risk", ylabel="share with event")
        ax.set_title(f"at {shown.time:g}, {shown.weighting}", fontsize="medium")
        numbers = [
            f"observed/expected {_with_limits(shown.observed_expected)}",
            f"slope {_with_limits(shown.slope)}",
            f"miscalibration {shown.miscalibration_corrected:.4f} (corrected)",
        ]
        ax.text(0.03, 0.97, "\n".join(numbers), transform=ax.transAxes, va="top", fontsize="small")
        counts, edges = shown.histogram
        self.histogram_ax_ = ax.twinx()
        self.histogram_ax_.stairs(counts, edges, fill=True, color="0.6", alpha=0.6)
        self.histogram_ax_.set(ylim=(0, 8 * max(counts.max(), 1)), yticks=[])
        if "label" in line:
            ax.legend(loc="lower right")
        self.ax_ = ax
        self.figure_ = ax.get_figure(root=True)
        return self


@dataclass(eq=False, repr=False)
class DistributionCalibrationDisplay:
    """Drawn calibration of whole distributions: observed by expected events along the predicted risk.

    Attributes
    ----------
    calibration : DistributionCalibration
        The numbers.
    ax_, figure_, line_
        The matplotlib objects, once drawn.
    """

    calibration: DistributionCalibration
    ax_: Axes | None = None
    figure_: Figure | None = None
    line_: Any = None

    def plot(self, ax: Axes | None = None, **line: Any) -> Self:
        """Draw into `ax`, or a new figure; `line` goes to `Axes.plot`.

        One mark per bin with its interval, below it how many events were seen and expected, and the line at one. The
        scale ends at four times too many.
        """
        ax = axes_or_new(ax)
        shown, bins = self.calibration, self.calibration.bins
        ax.axhline(1.0, color="0.5", linewidth=1, linestyle="--")
        middle = (bins.risk_from + bins.risk_to) / 2
        style: dict[str, Any] = {"marker": "o", "markersize": 5, "linestyle": "none"}
        (self.line_,) = ax.plot(middle, bins.ratio, **(style | line))
        ax.vlines(middle, bins.lower, bins.upper, color=self.line_.get_color(), linewidth=1.5)
        reach = [value for value in (*bins.ratio, *bins.upper) if math.isfinite(value)]
        top = min(max([2.0, *(1.08 * value for value in reach)]), 4.0)
        ax.set(xlim=(0, 1), ylim=(-0.22 * top, top), xlabel="predicted risk at the event", ylabel="observed / expected")
        ax.set_yticks([tick for tick in ax.get_yticks() if 0 <= tick <= top])
        ax.axhline(0.0, color="0.8", linewidth=0.8)
        for x, observed, expected in zip(middle, bins.observed, bins.expected, strict=True):
            if expected > 0:
                told = f"{observed:.0f}\n{expected:.{0 if expected >= 10 else 1}f}"
                ax.text(x, -0.11 * top, told, ha="center", va="center", fontsize="x-small", color="0.35")
        ax.annotate(
            "seen\nexpected", (1.0, -0.11 * top), xycoords=ax.get_yaxis_transform(), xytext=(4, 0),
            textcoords="offset points", va="center", fontsize="x-small", color="0.35", annotation_clip=False,
        )  # fmt: skip
        p_value = "" if math.isnan(shown.p_value) else f", p = {shown.p_value:.2g}"
        ax.set_title(textwrap.fill(f"{shown.test} test{p_value}: {shown.conclusion}", 70), fontsize="medium")
        if "label" in line:
            ax.legend()
        self.ax_ = ax
        self.figure_ = ax.get_figure(root=True)
        return self


@dataclass(eq=False, repr=False)
class DecisionCurveDisplay:
    """Drawn net benefit over thresholds.

    Attributes
    ----------
    curve : DecisionCurve
        The numbers.
    ax_, figure_
        The matplotlib objects, once drawn.
    """

    curve: DecisionCurve
    ax_: Axes | None = None
    figure_: Figure | None = None

    def plot(self, ax: Axes | None = None, *, band: bool = True) -> Self:
        """Draw one line per strategy into `ax`, or a new figure, with or without the simultaneous bands of models."""
        ax = axes_or_new(ax)
        curve, table = self.curve, self.curve.to_frame()
        plain: dict[str, dict[str, Any]] = {
            TREAT_ALL: {"color": "0.4", "linestyle": "--"}, TREAT_NONE: {"color": "0.4", "linestyle": ":"}
        }  # fmt: skip
        for name, part in table.groupby("strategy", sort=False):
            (line,) = ax.plot(part["threshold"], part["net_benefit"], label=str(name), **plain.get(str(name), {}))
            if band and name not in plain:
                shade(ax, line, part["threshold"], part["band_lower"], part["band_upper"])
        top = max(float(curve.net_benefit.max()), 1e-3)
        ax.set(
            xlabel="risk from which on to act", ylabel=f"net benefit at {curve.time:g} (higher is better)",
            title=curve.weighting, ylim=(-0.25 * top, 1.2 * top),  # acting on all falls without bound
        )  # fmt: skip
        ax.legend()
        self.ax_ = ax
        self.figure_ = ax.get_figure(root=True)
        return self


@dataclass
class BacktestDisplay:
    """Drawn regrets: how much worse than the best, in truth, the models were that each weighting chose.

    Attributes
    ----------
    result : Backtest
        The numbers.
    ax_, figure_
        The matplotlib objects, once drawn.
    """

    result: Backtest
    ax_: Axes | None = None
    figure_: Figure | None = None

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw one row per weighting into `ax`, or a new figure."""
        ax = axes_or_new(ax)
        summary, by_day = self.result.summary, 100 * self.result.regrets()
        for q, row in enumerate(summary.to_dict("records")):
            colour = f"C{q}"
            ax.plot(by_day[:, q], [q] * len(by_day), "o", color=colour, alpha=0.35, markersize=5)
            ax.plot([100 * row["regret_lower"], 100 * row["regret_upper"]], [q, q], color=colour, linewidth=2)
            ax.plot(100 * row["relative_regret"], q, "D", color=colour, markersize=7)
        ax.axvline(0.0, color="0.6", linewidth=1)
        ax.set_yticks(range(len(summary)), [name.replace(" (", "\n(") for name in summary["weighting"]])
        ax.set_ylim(len(summary) - 0.5, -0.5)
        ax.set(
            xlabel="chosen model worse than the best, in truth (%)",
            title=f"{self.result.label}: diamonds are means, dots single days",
        )  # fmt: skip
        self.ax_ = ax
        self.figure_ = ax.get_figure(root=True)
        return self


def _with_limits(estimate: Estimate) -> str:
    """Return a number with its interval, or that there is none."""
    if math.isnan(estimate.value):
        return "undefined"
    if math.isnan(estimate.lower):
        return f"{estimate.value:.2f}"
    return f"{estimate.value:.2f} ({estimate.lower:.2f} to {estimate.upper:.2f})"


@dataclass(eq=False, repr=False)
class DiagnosisDisplay:
    """Drawn mean predictions around C*, and where they would go on; `diagnosis` holds the numbers.

    Attributes
    ----------
    diagnosis : Diagnosis
        The numbers.
    ax_, figure_
        The matplotlib objects, once drawn.
    """

    diagnosis: Diagnosis
    ax_: Axes | None = None
    figure_: Figure | None = None

    def plot(self, ax: Axes | None = None, *, band: bool = True, unit: Unit | str | None = None) -> Self:
        """Draw one line per model into `ax`, or a new figure, with or without what to expect after C*.

        That is dotted, with its interval: how a model's mean goes on from C* if it falls as it does elsewhere, at other
        ages and for others.
        """
        ax = axes_or_new(ax)
        expected = self.diagnosis.models.set_index("model")
        for name, mean in self.diagnosis.survival.items():
            (line,) = ax.plot(self.diagnosis.offsets, mean, label=name)
            if band and name in expected.index and expected.loc[name].notna()["ratio"]:
                self._expected(ax, line, mean, expected.loc[name])
        ax.axvline(0.0, color="0.5", linewidth=1, linestyle="--")
        since = time_label(unit, "time since everybody's own C*")
        ax.set(xlabel=since, ylabel="mean predicted survival", title=self._title())
        ax.title.set_fontsize("small")
        ax.legend()
        self.ax_ = ax
        self.figure_ = ax.get_figure(root=True)
        return self

    def _expected(self, ax: Axes, line: Any, mean: Any, row: Any) -> None:
        after = self.diagnosis.offsets >= 0
        share = self.diagnosis.offsets[after] / self.diagnosis.width
        start = mean[after][0]
        # the limits of the excess, taken from the fall that is there, are limits of the fall to expect
        falls = [
            row["fall_elsewhere"],
            row["fall_after"] - row["excess_upper"],
            row["fall_after"] - row["excess_lower"],
        ]
        middle, upper, lower = (start * (1.0 - min(max(fall, 0.0), 1.0)) ** share for fall in falls)
        (dotted,) = ax.plot(self.diagnosis.offsets[after], middle, color=line.get_color(), linestyle=":")
        shade(ax, dotted, self.diagnosis.offsets[after], lower, upper)

    def _title(self) -> str:
        knowing = self.diagnosis.models.query("verdict == 'knows C*'")["model"]
        told = f"; {', '.join(knowing)} know{'s' if len(knowing) == 1 else ''} C*" if len(knowing) else ""
        ipcw = {"suspect": "is suspect", "not needed": "is not needed"}.get(self.diagnosis.ipcw, self.diagnosis.ipcw)
        return f"IPCW {ipcw}{told}. Dotted: what to expect after C*"


@dataclass(eq=False, repr=False)
class TrainingDisplay:
    """Drawn losses of a training; `history` holds the numbers, `ax_` and `figure_` the matplotlib objects.

    `scores` are the columns that hold validation scores.
    """

    history: pd.DataFrame
    best_epoch: int | None = None
    scores: Sequence[str] = ()
    ax_: Axes | None = None
    figure_: Figure | None = None

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw into `ax`, or a new figure: losses by epoch, the ends of cycles, and the epoch that was kept."""
        ax = axes_or_new(ax)
        shown = self.history
        ax.plot(shown["epoch"], shown["train_loss"], label="training (with dropout)")
        if shown["validation_loss"].notna().all():
            ax.plot(shown["epoch"], shown["validation_loss"], label="validation")
        lines = self._draw_scores(ax)
        cycle_ends = shown["epoch"][shown["cycle"].diff(-1) != 0]
        if len(cycle_ends) < len(shown):  # not where every epoch is a cycle
            for end in cycle_ends:
                ax.axvline(end, color="0.85", linewidth=1, zorder=0)
        if self.best_epoch is not None:
            ax.axvline(self.best_epoch, color="0.4", linewidth=1, linestyle="--", label="kept")
        ax.set(xlabel="epoch", ylabel="loss per individual")
        ax.legend(handles=[*ax.get_legend_handles_labels()[0], *lines])
        self.ax_ = ax
        self.figure_ = ax.get_figure(root=True)
        return self

    def _draw_scores(self, ax: Axes) -> list[Any]:
        """Draw the validation scores that were recorded, on a scale of their own to the right."""
        if not self.scores:
            return []
        right = ax.twinx()
        right.set_ylabel("score")
        return [
            line
            for k, column in enumerate(self.scores)
            for line in right.plot(self.history["epoch"], self.history[column], label=column, color=f"C{k + 2}")
        ]


def draw_comparison(curves: Mapping[str, Sequence[ScoreCurve]], *, title: str = "") -> Figure:
    """Draw the scores of several models, one panel per weighting, all on one scale.

    Parameters
    ----------
    curves : mapping of str to sequence of ScoreCurve
        For each model its curves, under the same weightings in the same order.
    title : str
        Set above the panels.

    Returns
    -------
    matplotlib.figure.Figure
    """
    n_panels = len(next(iter(curves.values())))
    n_columns = min(n_panels, 3)
    n_rows = -(-n_panels // n_columns)
    figure: Figure
    figure, axes = pyplot().subplots(
        n_rows, n_columns, sharex=True, sharey=True, squeeze=False, layout="constrained",
        figsize=(4.2 * n_columns, 3.4 * n_rows),
    )  # fmt: skip
    lines = {}
    for model, several in curves.items():
        for ax, curve in zip(axes.flat, several, strict=False):
            lines[model] = ScoreCurveDisplay(curve).plot(ax=ax).line_
            ax.set_title(textwrap.fill(curve.weighting, 34), fontsize="medium")
            ax.label_outer()
    for ax in axes.flat[n_panels:]:
        ax.set_visible(False)
    for ax in axes.flat[n_panels - n_columns : n_panels]:  # the lowest panel of each column
        ax.xaxis.set_tick_params(labelbottom=True)
        ax.set_xlabel("time")
    figure.legend(list(lines.values()), list(lines), loc="outside lower center", ncols=len(lines))
    figure.suptitle(title)
    return figure

"""Mean predictions around C*: whether a model encodes the censoring time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from survscore._utils.dates import Unit
from survscore._validation import shown as printable
from survscore.analysis.diagnose import Diagnosis
from survscore.engine.inputs import NULL_MODELS
from survscore.metrics import survival_label
from survscore.plots import style
from survscore.plots.display import Display
from survscore.plots.labels import name_lines

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
        colours, dashes = style.colours(names, null=null), style.dashes(names, null=null)
        with style.canvas(ax, width) as on:
            lines = []
            for name, mean in self.diagnosis.survival.items():
                (line,) = on.ax.plot(
                    self.diagnosis.offsets, mean, label=name, color=colours[name], linestyle=dashes[name]
                )
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
        falls = [
            row["fall_elsewhere"],
            row["fall_after"] - row["excess_upper"],
            row["fall_after"] - row["excess_lower"],
        ]
        middle, upper, lower = (start * (1.0 - min(max(fall, 0.0), 1.0)) ** share for fall in falls)
        (dotted,) = ax.plot(self.diagnosis.offsets[after], middle, color=line.get_color(), linestyle=":")
        style.shade(ax, dotted, self.diagnosis.offsets[after], lower, upper)

    def _title(self) -> str:
        leaking = self.diagnosis.models.query("verdict == 'encodes C*'")["model"]
        encodes = f"; {', '.join(leaking)} encode{'s' if len(leaking) == 1 else ''} C*" if len(leaking) else ""
        ipcw = {"no sign of a leak": "No sign of a leak", "too few": "Too few data to assess IPCW"}
        verdict = ipcw.get(self.diagnosis.ipcw, f"IPCW is {self.diagnosis.ipcw}")
        return f"{verdict}{encodes}. Dotted: what to expect after C*"

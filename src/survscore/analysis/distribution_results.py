"""What is known about the calibration of whole predicted distributions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from survscore._validation import plural
from survscore.analysis.distribution_sums import Exposure, Form
from survscore.results.rounding import Number, decimals, p_text
from survscore.results.tables import Cell, Part, PrintedAsTables, Tables

if TYPE_CHECKING:
    import pandas as pd

    from survscore.plots import DistributionCalibrationDisplay

TestName = Literal["smooth", "martingale", "bins"]


@dataclass(frozen=True)
class Component:
    """One way in which predicted distributions can be wrong.

    Attributes
    ----------
    name : {"level", "slope", "curvature", "skewness"}
        How observed deviate from expected events along the predicted risk, beyond the components before.
    z, p_value : float
        The deviation by its standard error, and its p-value; NaN where these data can't tell.
    words : str
        What a deviation of this sign means.
    """

    name: str
    z: float
    p_value: float
    words: str


@dataclass(frozen=True, eq=False)
class RiskBins:
    """Observed and expected events while the predicted risk rises from `risk_from` to `risk_to`.

    Attributes
    ----------
    risk_from, risk_to : ndarray of shape (n_bins,)
        From which to which predicted probability of the event.
    observed, expected : ndarray of shape (n_bins,)
        Numbers of events.
    ratio, lower, upper : ndarray of shape (n_bins,)
        Observed by expected, and the limits of its interval; NaN where nothing is expected, and with groups no limits
        where fewer than ten events are.
    """

    risk_from: NDArray[np.float64]
    risk_to: NDArray[np.float64]
    observed: NDArray[np.float64]
    expected: NDArray[np.float64]
    ratio: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class DistributionCalibration(PrintedAsTables):
    """Calibration of predicted curves as distributions, over all time; see `distribution_calibration`.

    Attributes
    ----------
    test : {"smooth", "martingale", "bins"}
        Which test was made.
    statistic, df, p_value : float
        The statistic, its degrees of freedom (the rank of the covariance), and the p-value; NaN where `reason` says
        why. Infinite, with a p-value of zero, if something happened that has probability zero under the curves.
    components : tuple of Component
        Level, slope, curvature and skewness. Each is what the ones before do not explain: they are independent, and the
        squares of their z add up to the statistic of the smooth test.
    bins : RiskBins
        Observed and expected events by predicted risk.
    exposure : {"known", "observed"}
        Whether events are expected up to the known C*, or as long as each individual was under observation.
    form : {"intervals", "continuous"}
        Whether curves were read by the intervals of their grid, or as continuous.
    n, n_events, n_dropped_out, n_groups : int or None
        Individuals, those of them with event, drop-outs and groups; None where unknown, or without groups.
    observed, expected : float
        Events that count, and how many the curves expect.
    reliable : bool
        Whether enough events are expected, and there are enough groups, for a reliable p-value and intervals.
    level : float
        Of the intervals, and of what is called a deviation.
    reason : str or None
        Why there is no test.
    notes : tuple of str
        Remarks on the test and the data.
    """

    test: TestName
    statistic: float
    df: int
    p_value: float
    components: tuple[Component, ...]
    bins: RiskBins
    exposure: Exposure
    form: Form
    n: int
    n_events: int
    n_dropped_out: int | None
    n_groups: int | None
    observed: float
    expected: float
    reliable: bool
    level: float
    reason: str | None
    notes: tuple[str, ...]

    @property
    def conclusion(self) -> str:
        """What the test says, in words."""
        if self.reason is not None:
            return f"no test: {self.reason}"
        if not self.p_value < 1.0 - self.level:
            return "no sign that the curves are wrong"
        if math.isinf(self.statistic):
            return "the curves are wrong: what happened has probability zero"
        clear = [one for one in self.components if one.p_value < 1.0 - self.level]
        told = [one.words for one in sorted(clear, key=lambda one: -abs(one.z))]
        return f"the curves are wrong: {'; '.join(told) or 'no single component stands out'}"

    def to_frame(self) -> pd.DataFrame:
        """Return the bins in a table: risk_from, risk_to, observed, expected, ratio, lower, upper."""
        import pandas as pd

        return pd.DataFrame(dict(vars(self.bins)))

    def components_frame(self) -> pd.DataFrame:
        """Return the components in a table: component, z, p_value, words."""
        import pandas as pd

        return pd.DataFrame(
            [{"component": c.name, "z": c.z, "p_value": c.p_value, "words": c.words} for c in self.components]
        )

    def plot(self, ax: Any = None, *, width: float | None = None, **line: Any) -> DistributionCalibrationDisplay:
        """Draw observed by expected events along the predicted risk, with intervals.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; by default a new figure.
        width : float, optional
            Of a new figure, in inches: 3.4 is a column of a journal, 7 its page, as by default.
        **line
            Passed on to `matplotlib.axes.Axes.plot`, for example ``color="C1"``.

        Returns
        -------
        DistributionCalibrationDisplay
            With the axes in ``ax_``, the figure in ``figure_``, and ``save("figure.pdf")``.
        """
        from survscore.plots import DistributionCalibrationDisplay

        return DistributionCalibrationDisplay(self).plot(ax=ax, width=width, **line)

    def _printed(self) -> Tables:
        bins, rows = self.bins, list[tuple[Cell, ...]]()
        places = decimals((bins.upper - bins.lower) / 4)
        for k in range(bins.ratio.size):
            ratio = Number(float(bins.ratio[k]), float(bins.lower[k]), float(bins.upper[k]), decimals=places)
            ends = f"{bins.risk_from[k]:.2f} to {bins.risk_to[k]:.2f}"
            rows.append((ends, f"{bins.observed[k]:.0f}", f"{bins.expected[k]:.1f}", ratio))
        lost = f", {self.n_dropped_out} dropped out" if self.n_dropped_out else ""
        caption = f"{plural(self.n, 'individual')}{lost}; {100 * self.level:g} % intervals"
        test = f"{self.test} test: {self.conclusion}"
        if self.reason is None:
            test += f" (chi-square {self.statistic:.3g} with {plural(self.df, 'degree')} of freedom, p"
            p_value = p_text(self.p_value)
            test += f" {p_value})" if p_value.startswith("<") else f" = {p_value})"
        header = ("risk at the event", "observed", "expected", "observed/expected")
        return Tables(caption, [Part("", header, rows, (test, *self.notes), "lrrr")])

    def __repr__(self) -> str:
        parts = [
            f"{self.test} test by {'intervals of the grid' if self.form == 'intervals' else 'continuous curves'}",
            f"n={self.n}",
            f"{self.observed:.0f} events where {self.expected:.1f} are expected",
        ]
        if self.n_dropped_out:
            parts.append(f"{self.n_dropped_out} of {self.n} dropped out")
        if self.n_groups is not None:
            parts.append(plural(self.n_groups, "group"))
        if self.reason is None:
            parts.append(f"chi-square {self.statistic:.3g} ({self.df} df), p={self.p_value:.3g}")
        if not self.reliable and self.reason is None:
            parts.append("too few events for a reliable test")
        return f"DistributionCalibration({', '.join(parts)}: {self.conclusion})"

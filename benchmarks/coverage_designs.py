"""The data in which intervals and tests are judged; see ``interval_coverage.py``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import survscore as ss

Array = NDArray[np.float64]

TIMES = np.array([2.0, 4.0, 6.0, 8.0])
SHORT, LONG = 2.0, 10.0  # between which C* is uniform: at the last time one in four is left
RATES = {"common": 0.12, "rare": 0.008}
SPREAD = 0.8
DROP_OUT = 0.04

#: Of the curves that metrics of whole histories read, and where metrics are computed.
GRID = np.arange(1, 17) / 2
HORIZONS = np.array([4.0, 6.0])

WEIGHTINGS = (
    "administrative",
    "ipcw",
    "drop-outs, Gd of the scored",
    "drop-outs, Gd of training data",
    "drop-outs, Gd of a model",
)
PROJECTED = ("projected", "drop-outs, projected")
#: The slope of the logarithmic hazard of dropping out in the covariate.
SLOPES = {f"drop-outs, hazard as exp({slope:g} x)": slope for slope in (0.0, 0.8, -1.0)}


@dataclass(frozen=True)
class Setting:
    """What is simulated.

    Attributes
    ----------
    n : int
        How many individuals.
    events : {"common", "rare"}
    weighting : str
        One of `WEIGHTINGS`, `PROJECTED` or `SLOPES`; those of drop-outs have some.
    n_groups, sizes : int, {"equal", "unequal"}
        Zero for individuals that are independent.
    telling : bool
        Whether C* is shorter for those at high risk.
    """

    n: int
    events: str = "common"
    weighting: str = "administrative"
    n_groups: int = 0
    sizes: str = "equal"
    telling: bool = False

    @property
    def drop_outs(self) -> bool:
        return "drop-outs" in self.weighting

    @property
    def name(self) -> str:
        groups = f"{self.n_groups} groups, {self.sizes}" if self.n_groups else "none"
        return f"{self.n} | {self.events} | {self.weighting} | {groups}"


@dataclass(frozen=True, eq=False)
class Sample:
    """One simulated data set.

    Attributes
    ----------
    x : ndarray of shape (n,)
        What the hazard depends on.
    noise : ndarray of shape (n, 2)
        What models take for a part of it.
    y : Outcomes
    groups : ndarray of shape (n,), optional
    """

    x: Array
    noise: Array
    y: ss.Outcomes
    groups: NDArray[np.int64] | None


def survival(x: Array, events: str, times: Array) -> Array:
    """Return the true probabilities to be event-free, by individual and time."""
    return np.exp(-RATES[events] * np.exp(SPREAD * x)[:, None] * times)


def followed(x: Array, times: Array, *, telling: bool) -> Array:
    """Return P(C* >= t | x), by individual and time."""
    passed = np.clip((times - SHORT) / (LONG - SHORT), 0.0, 1.0)
    return 1.0 - passed ** (1.0 / _bend(x, telling=telling)[:, None])


def _bend(x: Array, *, telling: bool) -> Array:
    return np.where(telling & (x > 0), 2.0, 1.0)


def draw(setting: Setting, rng: np.random.Generator) -> Sample:
    n, groups = setting.n, None

    def mixed(own: Array) -> Array:
        """Members of a group share three tenths of a variance."""
        if groups is None:
            return own
        return np.sqrt(0.3) * rng.standard_normal((setting.n_groups, *own.shape[1:]))[groups] + np.sqrt(0.7) * own

    x = rng.standard_normal(n)
    if setting.n_groups:
        size = 1.0 / np.arange(1, setting.n_groups + 1) if setting.sizes == "unequal" else np.ones(setting.n_groups)
        groups = np.concatenate([np.arange(setting.n_groups), rng.choice(
            setting.n_groups, n - setting.n_groups, p=size / size.sum())])  # fmt: skip
        x = mixed(x)
    event_time = rng.exponential(1.0 / (RATES[setting.events] * np.exp(SPREAD * x)))
    end = SHORT + (LONG - SHORT) * rng.random(n) ** _bend(x, telling=setting.telling)
    leaving = DROP_OUT * np.exp(SLOPES.get(setting.weighting, 0.0) * x)
    left = rng.exponential(1.0 / leaving) if setting.drop_outs else np.full(n, np.inf)
    time = np.minimum(np.minimum(event_time, end), left)
    y = ss.Outcomes(time, event_time <= np.minimum(end, left), end)
    return Sample(x, mixed(rng.standard_normal((n, 2))), y, groups)


def weighting_of(setting: Setting, rng: np.random.Generator) -> Any:
    match setting.weighting:
        case "drop-outs, Gd of training data":
            return ss.Administrative(dropout=draw(setting, rng).y)
        case "drop-outs, Gd of a model":
            return ss.Administrative(dropout=lambda times: np.exp(-DROP_OUT * np.asarray(times)))
        case "ipcw":
            return "ipcw"
        case "projected" | "drop-outs, projected":
            return "projected"
    return "administrative"


def ordered_alike(x: Array, events: str) -> dict[str, Array]:
    """Return the predictions of two wrong models: one too gloomy, one that sees half of the differences."""
    return {"gloomy": survival(x, events, TIMES) ** 1.3, "blunt": survival(0.5 * x + 0.1, events, TIMES)}


def mixture(x: Array, noise: Array) -> Array:
    """Return what the noisy model takes for the covariate."""
    return 0.7 * x + 0.5 * noise


def ordered_otherwise(x: Array, noise: Array, events: str, times: Array) -> dict[str, Array]:
    """Return the predictions of a right model, a gloomy one, and one whose covariate is mixed with noise."""
    right = survival(x, events, times)
    return {"right": right, "gloomy": right**1.3, "noisy": survival(mixture(x, noise), events, times)}


def exchangeable(x: Array, noise: Array, events: str, times: Array) -> dict[str, Array]:
    """Return the predictions of two models that see the covariate with independent errors of the same size.

    Who swaps their names changes no distribution: whatever the metric, they are equally good.
    """
    return {name: survival(x + 0.5 * noise[:, k], events, times) for k, name in enumerate("ab")}


def equally_far(x: Array, events: str, rng: np.random.Generator) -> dict[str, ss.SurvivalCurves]:
    """Return two models equally far from the truth, on either side of it: they have the same expected Brier score."""
    S = survival(x, events, TIMES)
    off = 0.2 * S * (1 - S) * rng.choice([-1, 1], (x.size, 1))
    return {name: ss.SurvivalCurves(S + sign * off, TIMES, monotone="keep") for name, sign in (("a", 1), ("b", -1))}

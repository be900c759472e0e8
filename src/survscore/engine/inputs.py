"""What a user gives is checked here, once: outcomes, predictions, names, times and the null model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from survscore._utils import arrays
from survscore._validation import InputError, check_choice, check_length
from survscore.curves import SurvivalCurves
from survscore.engine.blocks import InBatches, Predictions
from survscore.engine.null import KaplanMeierNull
from survscore.outcomes import Outcomes

DEFAULT_STEPS = 100
DEFAULT_QUANTILE = 0.95
DEFAULT_NUMBER = 20
NULL_MODEL = "Kaplan-Meier"
COUNTED_MODEL = "share of those counted"

Null = bool | Outcomes | Literal["counted"]


def check_outcomes(y: Any) -> None:
    """Raise unless these are outcomes of somebody."""
    if not isinstance(y, Outcomes):
        raise InputError(f"y must be Outcomes, not {type(y).__name__}")
    if len(y) == 0:
        raise InputError("y is empty: there is nobody to score")


def check_predictions(y: Outcomes, curves: Any, name: str = "curves") -> None:
    """Raise unless these are predictions for as many individuals as there are outcomes."""
    if not isinstance(curves, (SurvivalCurves, InBatches)):
        raise InputError(f"{name} must be SurvivalCurves, not {type(curves).__name__}")
    check_length(name, len(curves), "y", len(y))


def as_models(models: Any) -> dict[str, Any]:
    """Return the models by name, whichever way they were given."""
    pairs = list(models.items()) if isinstance(models, Mapping) else list(models)
    if not pairs:
        raise InputError("models is empty")
    if any(not isinstance(pair, tuple) or len(pair) != 2 for pair in pairs):
        raise InputError("models must map names to SurvivalCurves, or be pairs of a name and SurvivalCurves")
    names = [str(name) for name, _ in pairs]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise InputError(f"models must have different names; repeated: {', '.join(repeated)}")
    return dict(zip(names, (curves for _, curves in pairs), strict=True))


def one_or_more(given: Any, kind: type, name: str) -> list[Any]:
    """Return a list of what was given once or several times."""
    if given is None or isinstance(given, (str, kind)) or not hasattr(given, "__iter__"):
        return [given]
    several = list(given)
    if not several:
        raise InputError(f"{name} is empty: name at least one")
    return several


def default_horizon(y: Outcomes, several: Iterable[Predictions]) -> NDArray[np.float64]:
    """Return the one time up to which histories are looked at: the median of follow-up, within the curves' reach.

    Half of the individuals could be followed so far; a later one would leave out more of them, an earlier one events.
    """
    y = y.numpy()
    follow_up = y.time if y.censoring_time is None else y.censoring_time
    median = float(np.quantile(follow_up, 0.5, method="lower"))
    median = median if np.isfinite(median) else float(y.time.max())
    return np.array([min([median, *(float(curves.times[-1]) for curves in several if curves.extrapolation == "nan")])])


def default_times(y: Outcomes, several: Iterable[Predictions]) -> NDArray[np.float64]:
    """Return equidistant times from 0 to where enough individuals are still followed, within the curves' reach.

    Those are 5 %, and 20 or, of few, a quarter. A score further out rests on too few for an interval; whoever wants it
    names the times.
    """
    follow_up: Any = y.time if y.censoring_time is None else y.censoring_time
    place = len(y) - max(min(DEFAULT_NUMBER, len(y) // 4), 1)
    place = min(place, int(DEFAULT_QUANTILE * (len(y) - 1)))
    if arrays.is_tensor(follow_up):
        last = float(follow_up.kthvalue(place + 1).values)
    else:
        last = float(np.partition(follow_up, place)[place])
    last = last if np.isfinite(last) else float(y.time.max())
    last = min([last, *(float(curves.times[-1]) for curves in several if curves.extrapolation == "nan")])
    return np.linspace(0.0, last, DEFAULT_STEPS + 1) if last > 0 else np.zeros(1)


def null_name(null: Any) -> str:
    """Return what a null model is called."""
    return COUNTED_MODEL if isinstance(null, str) else NULL_MODEL


def null_model(null: Any, y: Outcomes) -> KaplanMeierNull | Literal["counted"] | None:
    """Return the null model: Kaplan-Meier, or that it is the share of those counted; None without."""
    if null is False:
        return None
    if isinstance(null, KaplanMeierNull):  # of these outcomes, ready for several evaluations
        return null if null.outcomes is y else KaplanMeierNull.of(y, scored=True)
    if isinstance(null, str):
        check_choice("null", null, ("counted",))
        return "counted"
    outcomes = y if null is True else null
    if not isinstance(outcomes, Outcomes):
        raise InputError(f"null must be True, False, 'counted' or Outcomes, not {type(outcomes).__name__}")
    return KaplanMeierNull.of(outcomes, scored=outcomes is y)


def distinct(labels: list[str]) -> list[str]:
    """Return the labels, numbered where two weightings would have the same."""
    return [
        f"{label} #{labels[: i + 1].count(label)}" if labels.count(label) > 1 else label
        for i, label in enumerate(labels)
    ]


def where_they_end(models: Mapping[str, Predictions]) -> str:
    """Return why there is no score after some time."""
    if len(models) == 1:
        (curves,) = models.values()
        return f"the predictions end at {curves.times[-1]:g}"
    return "not all models predict"

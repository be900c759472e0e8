"""What a user gives is checked here, once: outcomes, predictions, names, times and the null model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survscore._utils import arrays
from survscore._validation import InputError, UnfitError, as_list, check_choice, check_length, plural, several
from survscore.causes import ALL_STATUSES, check_named_alike
from survscore.curves import SurvivalCurves
from survscore.engine.blocks import GivenPredictions, InBatches, Predictions
from survscore.engine.entry import from_entry, whose
from survscore.engine.null import KaplanMeierNull
from survscore.engine.times import FEW_TIMES
from survscore.incidence import IncidenceCurves
from survscore.metrics import FollowUpMetric
from survscore.outcomes import Outcomes

WHOLE_CURVE = "whole curve"
NULL_MODEL = "Kaplan-Meier"
NULL_INCIDENCE = "Aalen-Johansen"
NULL_MODELS = (NULL_MODEL, NULL_INCIDENCE)
COUNTED_MODEL = "share of those counted"

Null = bool | Outcomes | Literal["counted"]


def check_outcomes(y: Any, *, entry: bool = False) -> None:
    """Raise unless these are outcomes of at least one individual; with delayed entry only where that is allowed."""
    if not isinstance(y, Outcomes):
        raise InputError(f"y must be Outcomes, not {type(y).__name__}")
    if len(y) == 0:
        raise InputError("y is empty: there are no individuals to score")
    if y.entry is not None and not entry:
        raise UnfitError(
            "this analysis does not allow for delayed entry: y.since_entry() counts time from entry, and "
            "curves.conditional_on(y.entry, times=...) are the predictions that belong to it"
        )


def without_equal_weights(y: Outcomes) -> Outcomes:
    """Return outcomes without sample weights that change nothing: equal ones, unless they stand for several each."""
    if y.weights is None:
        return y
    first = float(y.weights[0])
    alone = y.weight_kind != "frequency" or first == 1
    return y.weighted(None) if alone and first > 0 and bool((y.weights == first).all()) else y


def without_models(y: Any) -> Outcomes:
    """Return outcomes that are looked at alone, with time counted from delayed entry."""
    check_outcomes(y, entry=True)
    return y if y.entry is None else from_entry(y, {}, None, whole=False, caller="")[0]


def counted_from_entry(
    y: Outcomes, models: Any, times: ArrayLike | None = None, *, whole: bool = True, caller: str
) -> tuple[Outcomes, Any]:
    """Return outcomes and models with time counted from delayed entry; as they are without it. See `of_cause`."""
    check_outcomes(y, entry=True)
    return (y, models) if y.entry is None else from_entry(y, as_models(models), times, whole=whole, caller=caller)


def rows_of_individuals(y: Outcomes) -> NDArray[np.intp]:
    """Return which row each individual is in: with frequency weights rows come as often as these say."""
    rows = np.arange(len(y))
    return rows if y.weight_kind != "frequency" else np.repeat(rows, arrays.to_host(y.weights).astype(np.intp))


def check_one_kind(y: Any, subject: str) -> None:
    """Raise unless these are outcomes whose events are all of one kind."""
    check_outcomes(y, entry=True)
    if y.causes:
        raise UnfitError(f"{subject} is of events of one kind: it has no form for competing causes")


def check_predictions(y: Outcomes, curves: Any, name: str = "curves") -> None:
    """Raise unless these are predictions for as many individuals as there are outcomes."""
    if _is_of_causes(curves):
        raise InputError(f"{name} must be of one cause here: those of curves.for_cause(cause)")
    if not isinstance(curves, (SurvivalCurves, InBatches)):
        raise InputError(f"{name} must be SurvivalCurves or IncidenceCurves, not {type(curves).__name__}")
    check_length(name, len(curves), "y", len(y))


def as_models(models: Any) -> dict[str, Any]:
    """Return the models by name, whichever way they were given."""
    pairs = as_list(models.items() if isinstance(models, Mapping) else models, "models", "a mapping of names to curves")
    if not pairs:
        raise InputError("models is empty")
    if any(not isinstance(pair, tuple) or len(pair) != 2 for pair in pairs):
        raise InputError("models must map names to curves, or be pairs of a name and curves")
    names = [str(name) for name, _ in pairs]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise InputError(f"models must have different names; repeated: {', '.join(repeated)}")
    return dict(zip(names, (curves for _, curves in pairs), strict=True))


def of_cause(
    y: Outcomes,
    models: Any,
    cause: Any = None,
    *,
    times: ArrayLike | None = None,
    whole: bool = True,
    multiclass: bool = False,
    caller: str = "this analysis",
) -> tuple[Outcomes, dict[str, Any]]:
    """Return outcomes and models of one cause of events, the one that was chosen before by default.

    Incidence curves become the probabilities of not having had an event of that cause. Where `multiclass` scores are
    possible, and asked for by ``cause="all"``, they stay as they are; otherwise `caller` is named as having none. With
    delayed entry time is counted from there; predictions are then made for `times`, and between these if the `whole`
    curves are read.
    """
    y, models = counted_from_entry(y, models, times, whole=whole, caller=caller)
    if cause is not None:
        y = y.for_cause(cause)
    _ = y.event_of_interest  # raises, if there are several and none was chosen
    if y.interest == ALL_STATUSES:
        if not multiclass:
            check_one_cause(y, caller)
        return y, {name: _of_all_causes(curves, y, name) for name, curves in as_models(models).items()}
    return y, {
        name: curves.for_cause(_cause_in(curves.causes, y, name)) if _is_of_causes(curves) else curves
        for name, curves in as_models(models).items()
    }


def check_one_cause(y: Outcomes, caller: str) -> None:
    """Raise if multi-class scores are asked for, which the caller does not have."""
    if y.interest == ALL_STATUSES:
        raise UnfitError(
            f"{caller} has no multi-class form (cause='all'): it is of one cause at a time ({_quoted(y.causes)}); "
            "use brier_score, log_loss, compare or score_table"
        )


def any_event(y: Outcomes, models: Mapping[str, Any]) -> tuple[Outcomes, dict[str, Any]]:
    """Return outcomes and models of any event, where those of all causes together were asked for."""
    if y.interest != ALL_STATUSES:
        return y, dict(models)
    return y.any_event(), {name: curves.event_free() for name, curves in models.items()}


def _of_all_causes(curves: Any, y: Outcomes, name: str) -> IncidenceCurves:
    """Return curves after checking that they predict just the causes of y."""
    if not isinstance(curves, IncidenceCurves):
        raise InputError(
            f"{whose(name)} must be IncidenceCurves, of all causes, for cause='all', not {type(curves).__name__}"
        )
    for cause in y.causes:
        _cause_in(curves.causes, y.for_cause(cause), name)
    if len(curves.causes) != len(y.causes):
        raise InputError(
            f"{whose(name)} must be of just the causes of y for cause='all', {_quoted(y.causes)}, not of "
            f"{_quoted(curves.causes)}"
        )
    return curves


def _is_of_causes(curves: Any) -> bool:
    """Whether these are incidences of causes, in memory or in batches."""
    return isinstance(curves.first if isinstance(curves, InBatches) else curves, IncidenceCurves)


def _cause_in(predicted: tuple[str, ...], y: Outcomes, name: str) -> str:
    """Return what the cause of interest is called among predicted ones; raise unless these fit the outcomes.

    Causes that have no names go by their numbers. A cause that is predicted and never occurs needs no place among those
    of the outcomes, if all of these are predicted; otherwise it may be another spelling of one of them.
    """
    subject, observed, n = whose(name), y.causes, len(predicted)
    if not observed:
        if n > 1:
            raise InputError(
                f"{subject} predict {n} causes, {_quoted(predicted)}, and y has events of one kind: give it the causes "
                "(event=, causes=)"
            )
        return predicted[0]
    numbered = predicted == tuple(str(number + 1) for number in range(n))
    if numbered and n == len(observed):
        return predicted[y.interest - 1]
    if numbered and n == len(observed) + 1:
        raise InputError(
            f"{subject} have {n} indices along the axis of causes, and y has {len(observed)} causes "
            f"({_quoted(observed)}). Say what index 0 is: IncidenceCurves(..., first='event-free') or "
            "first='total-risk'; if each is a cause, name them (causes=)"
        )
    check_named_alike(predicted, observed, subject)
    wanted = observed[y.interest - 1]
    if wanted not in predicted:
        raise InputError(f"{subject} have no predictions of cause {wanted!r}, only of {_quoted(predicted)}")
    return wanted


def _quoted(causes: Iterable[str]) -> str:
    return several([repr(cause) for cause in causes])


def one_or_more(given: Any, kind: type, name: str) -> list[Any]:
    """Return a list of what was given once or several times."""
    single = given is None or isinstance(given, (str, kind)) or not hasattr(given, "__iter__")
    if single or getattr(given, "ndim", 1) == 0:
        return [given]
    several = list(given)
    if not several:
        raise InputError(f"{name} is empty: name at least one")
    return several


def reads_whole_curves(metrics: Iterable[Any]) -> bool:
    """Whether any of the metrics is made of what is predicted at all times, not only at the evaluation times."""
    return any(isinstance(metric, FollowUpMetric) and not metric.of_order for metric in metrics)


def curves_read(
    models: Mapping[str, GivenPredictions], times: NDArray[np.float64], *, whole: bool = False
) -> dict[str, dict[str, Any]]:
    """Return how each model was read, as plain data for the settings of a result.

    `whole`: not at the times alone, but the whole curve. ``"read_between"`` is there where a model with few times was
    read between these by straight lines, and the user did not choose that.
    """
    return {
        name: read_as(
            one.times, one.interpolation, one.extrapolation, times, unsaid=one.default_interpolation, whole=whole
        )
        for name, one in models.items()
    }


def read_as(
    grid: NDArray[np.float64],
    interpolation: str,
    extrapolation: str,
    times: NDArray[np.float64],
    *,
    unsaid: bool,
    whole: bool = False,
) -> dict[str, Any]:
    """Return how one model was read; `unsaid`: the interpolation was left to the library. See `curves_read`."""
    predicted = grid[grid > 0]
    settings: dict[str, Any] = {"n_times": int(predicted.size), "first": float(grid[0]), "last": float(grid[-1])}
    settings |= {"interpolation": interpolation, "extrapolation": extrapolation}
    if unsaid and 0 < predicted.size <= FEW_TIMES:
        between = (times > 0) & (times < grid[-1]) & ~np.isin(times, grid)
        if whole:
            settings["read_between"] = WHOLE_CURVE
        elif between.any():
            settings["read_between"] = plural(int(between.sum()), "time")
    return settings


def is_coarse(models: Mapping[str, Predictions]) -> bool:
    """Whether a model predicts at few times, and the user did not choose an interpolation."""
    return bool(about_interpolation(curves_read(models, np.zeros(0), whole=True)))


def about_interpolation(read: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return a sentence for each model with few times that was read between them, unasked; see `curves_read`."""
    sentences = []
    for name, how in read.items():
        where = how.get("read_between")
        if where is None:
            continue
        who = "the predictions are" if list(read) == ["curves"] else f"the predictions of {name!r} are"
        extent = f"{how['first']:g} to {how['last']:g}" if how["n_times"] > 1 else f"{how['last']:g}"
        lines = "by straight lines that start from S(0) = 1"
        consequence = (
            f"for the whole curve they are read between these {lines}. Say how to read between predicted times"
            if where == WHOLE_CURVE
            else f"at {where} they are read between these {lines}. Name predicted times (`times or horizons`), or "
            "say how to read between them"
        )
        sentences.append(f"{who} at {plural(how['n_times'], 'time')} ({extent}), and {consequence} (`interpolation`)")
    return sentences


def null_name(null: Any, y: Outcomes) -> str:
    """Return what a null model is called."""
    return COUNTED_MODEL if isinstance(null, str) else NULL_INCIDENCE if y.competing else NULL_MODEL


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
    if y.clock and outcomes is not y:
        outcomes = outcomes.since_entry()
    return KaplanMeierNull.of(outcomes, scored=outcomes is y)


def distinct(labels: list[str]) -> list[str]:
    """Return the labels, numbered where two weightings would have the same."""
    return [
        f"{label} #{labels[: i + 1].count(label)}" if labels.count(label) > 1 else label
        for i, label in enumerate(labels)
    ]


def where_they_end(models: Mapping[str, Predictions], y: Outcomes) -> str:
    """Return why there is no score after some time."""
    late = ", after the last entry" if y.clock else ""
    if len(models) == 1:
        (curves,) = models.values()
        return f"the predictions end at {curves.times[-1]:g}{late}"
    return f"not all models predict{late}"

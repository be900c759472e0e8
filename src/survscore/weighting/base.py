"""What a weighting is: whom a score counts at each time, with what status and what weight."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self, cast

import numpy as np
from numpy.typing import NDArray

from survscore._utils import arrays
from survscore._validation import InputError, UnfitError, plural
from survscore.censoring.distributions import CensoringDistribution
from survscore.censoring.fitted import CensoringModel, FittedOnSample, FittedOnTraining
from survscore.censoring.product_limit import ProductLimit
from survscore.curves import SurvivalCurves
from survscore.inference.units import SampleWeights
from survscore.outcomes import Outcomes
from survscore.weighting.interval_weights import IntervalWeights, TimeIndex, inverse
from survscore.weighting.strata import Strata

Normalize = Literal["weights", "n"]
Variance = Literal["exact", "martingale"]
NORMALIZE = ("weights", "n")
VARIANCE = ("exact", "martingale")
ROUNDING = 1e-9  # a drop-out so close to C*, relative to the longest time, is none


class Weighting(ABC):
    """Base class of weightings: which individuals a score counts, with which weights.

    To add one, subclass, give `name` and `prepare`, and pass an instance as `weighting`; to make it known by name, put
    the class into `WEIGHTINGS`.
    """

    name: ClassVar[str]
    #: What the weighted sum is divided by: the sum of the weights, or the number in the population.
    normalize: Normalize = "weights"
    weights_for: ClassVar[str] = "censoring"  #: What the inverse of its weights is the distribution of.
    #: The power of the curves by which statuses are projected (`IntervalWeights.reference` has it in them), from which
    #: scores at other powers are made; None where no status is projected.
    theta: float | None = None

    @property
    def hazards(self) -> str:
        """Where statuses are projected, the hazards that individuals with hidden status are assumed to have."""
        return "the hazards of the reference"

    @property
    def explanation(self) -> str:
        """What it does, for readers of a report who have not met it."""
        return "A user-defined weighting."

    @abstractmethod
    def prepare(self, index: TimeIndex) -> IntervalWeights:
        """Return the weights, or refuse data that this weighting can't do."""

    def prepare_models(
        self, index: TimeIndex, curves: Mapping[str, SurvivalCurves], *, null: bool = False
    ) -> list[IntervalWeights]:
        """Return the weights of each model, where they depend on its predictions; by default one for all models.

        Where they are several, those of a `null` model, which predicts the same for all, come last.
        """
        return [self.prepare(index)]

    def reads(self, index: TimeIndex) -> NDArray[np.float64] | None:
        """Return at which times `prepare_models` reads predictions; None where weights do not depend on them."""
        return None

    @property
    def depends_on_other_models(self) -> bool:
        """Whether the weights of a model depend on what the models that are scored beside it predict."""
        return False

    def without_predictions(self) -> Weighting:
        """Return the same for those who have no predictions to prepare it with: one curve in place of strata by ranks.

        Itself where that makes no difference, or where there is no such form.
        """
        return self

    def settings(self, weights: Sequence[IntervalWeights]) -> dict[str, Any]:
        """Return what it adds to the settings of a result, with the weights of each model that it prepared."""
        return {}

    def unweighted(self, index: TimeIndex) -> IntervalWeights:
        """Return the index ranges alone, each with weight one, for those who know the weights only later.

        What `prepare` returns where nothing is estimated.
        """
        return self.prepare(index)

    @property
    def estimated(self) -> bool:
        """Whether its weights are estimated from the scored outcomes themselves, where any individual leaves."""
        return False

    def leaves(self, outcomes: Outcomes) -> NDArray[np.bool_]:
        """Return who leaves in the way that its weights are for."""
        return np.zeros(len(outcomes), dtype=np.bool_)

    def seen_until(self, index: TimeIndex) -> NDArray[np.float64] | None:
        """Return up to when each individual would have been followed, for metrics of all that happened up to a time.

        Minus infinity for those outside the population. None where weights are not all of one product-limit curve, or
        were changed afterwards.
        """
        return None

    def label(self, outcomes: Outcomes) -> str:
        """Return what it is called in the result for these outcomes."""
        return self.named(somebody_left=bool(outcomes.n_dropped_out))

    def named(self, *, somebody_left: bool) -> str:
        """Return what it is called in a result of data in which some individuals left, or none."""
        return str(self)

    def of_rows(self, rows: NDArray[np.intp]) -> Weighting:
        """Return the same for some of the individuals: what it holds for each of them is picked."""
        return self

    @property
    def on_own_clock(self) -> dict[str, Any]:
        """What it was given whose times have a clock of their own, by argument: outcomes, curves, functions of time."""
        return {}

    def on_clock_of(self, outcomes: Outcomes) -> Self:
        """Return the same for outcomes that may be counted from delayed entry, as those it is estimated from then are.

        Curves and functions have no entry from which to count. Outcomes with entry do not suit scores without.
        """
        changed = {}
        for argument, given in self.on_own_clock.items():
            if outcomes.clock and not isinstance(given, Outcomes):
                raise UnfitError(
                    f"{argument}: scores of outcomes with delayed entry count time from there, and curves or functions "
                    "do not tell by how much theirs differs. Count all from entry: y.since_entry(), "
                    "curves.conditional_on(y.entry, times=...), and probabilities of being followed from there"
                )
            if isinstance(given, Outcomes) and given.entry is not None:
                if not outcomes.clock and bool((given.entry > 0).any()):
                    raise InputError(
                        f"{argument}: these outcomes have delayed entry, and those that are scored have none; "
                        "outcomes.since_entry() counts time from entry"
                    )
                changed[argument] = given.since_entry()
        return replace(cast("Any", self), **changed) if changed else self

    def placed(self, device: Any) -> Weighting:
        """Return the same with its curves where the predictions are: a torch device, or None for NumPy arrays."""
        return self

    def __str__(self) -> str:
        return self.name


def fit_on_sample(index: TimeIndex, exits: NDArray[np.bool_], strata: Strata | None, variance: str) -> FittedOnSample:
    """Fit the product limit of exits to the scored outcomes."""
    if index.sample is not None and variance == "martingale":
        raise UnfitError(
            "variance='martingale' has no form for sample weights (it is that of R's riskRegression, which has none): "
            "use 'exact'"
        )
    codes, n_strata = (None, 1) if strata is None else strata.codes(len(index.outcomes))
    codes = None if codes is None else arrays.beside(codes, index.outcomes.time)
    return fit_by_code(index, exits, codes, n_strata, martingale=variance == "martingale")


def fit_by_code(
    index: TimeIndex,
    exits: NDArray[np.bool_],
    codes: NDArray[np.int32] | None,
    n_strata: int,
    *,
    martingale: bool = False,
    power: float = 1.0,
) -> FittedOnSample:
    """Fit the product limit of exits to the scored outcomes, by strata that are numbered from 0 on.

    At ties those who come first in `TimeIndex.order` leave the risk set first: events, then administrative ends, then
    drop-outs.
    """
    of_order = None if codes is None else arrays.take(codes, index.order)
    weights = None if index.sample is None else arrays.take(index.sample.values, index.order)
    curve, passed = ProductLimit.in_order(
        index.ordered_time, arrays.take(exits, index.order), of_order, n_strata, weights
    )
    return FittedOnSample(curve, codes, exits, passed, martingale, power)


def fit_on_training(
    index: TimeIndex,
    training: Outcomes,
    exits: NDArray[np.bool_],
    strata: Strata | None,
    training_strata: Strata | None,
) -> FittedOnTraining:
    """Fit the product limit of exits to other outcomes."""
    time, weights = index.outcomes.time, SampleWeights.of(training)
    own = None if weights is None else weights.values
    squares = None if weights is None or weights.frequency else weights.squares
    if strata is None or training_strata is None:
        curve = ProductLimit.of(training.time, exits, others_first=True, weights=own, squares=squares)
        return FittedOnTraining(curve.beside(time), None)
    there, _ = training_strata.codes(len(training))
    codes, _ = strata.codes(len(index.outcomes), training_strata)
    # strata with no scored individual are left out: where their curves are zero, no score is undefined for it
    used, place = np.unique(codes, return_inverse=True)
    rows = arrays.beside(np.flatnonzero(np.isin(there, used)), training.time)
    there = arrays.beside(np.searchsorted(used, there), training.time)
    own, squares = (None if values is None else values[rows] for values in (own, squares))
    time_there, exits, there = training.time[rows], exits[rows], there[rows]
    curve = ProductLimit.of(
        time_there, exits, others_first=True, codes=there, n_strata=used.size, weights=own, squares=squares
    )
    return FittedOnTraining(curve.beside(time), arrays.beside(place.astype(np.int32), time))


def curve_weights(model: CensoringModel, index: TimeIndex) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return G_k(t) at the evaluation times, (strata, times), and for each individual G_k(T-).

    G is the curve of censoring or dropping out, whose exits come last at ties.
    """
    codes = None if model.codes is None else arrays.take(model.codes, index.order)
    if isinstance(model, FittedOnSample):
        before = model.curve.after(model.passed, codes)
    else:  # in order of time a search stays where the last one ended
        before = model.curve.before(index.ordered_time, codes)
    return model.curve.table(index.times), arrays.put(before, index.order)


def weighted_by(
    weights: IntervalWeights, model: CensoringModel, index: TimeIndex, left: NDArray[np.bool_], max_weight: float
) -> IntervalWeights:
    """Return index ranges with the inverse of an estimated curve as weights; `left` says who exited in its way."""
    at_risk, own = (inverse(G, max_weight) for G in curve_weights(model, index))
    end = weights.support_end
    if model.codes is not None:  # by stratum
        end = support_end(index.outcomes, left, index.times, model.codes)
    weights = replace(weights, weight_at_risk=at_risk, weight_at_event=own)
    return replace(weights, codes=model.codes, censoring_model=model, support_end=end)


def weighted_by_source(
    weighting: Any,
    weights: IntervalWeights,
    source: Outcomes | CensoringDistribution | None,
    index: TimeIndex,
    strata: Strata | None,
) -> IntervalWeights:
    """Return index ranges with the inverse of G as weights, from where it comes: None for the scored outcomes.

    `weighting` says who leaves, and what the variance and the training strata of an estimate are.
    """
    outcomes, cap = index.outcomes, weights.max_weight
    if isinstance(source, CensoringDistribution):
        own = inverse(source.before(outcomes), cap)
        if source.curves is not None:
            return replace(weights, weight_at_risk=None, weight_at_event=own, survival=source.curves)
        return replace(weights, weight_at_risk=inverse(source.at(index.times)[None], cap), weight_at_event=own)
    model: CensoringModel
    if source is None:
        model = fit_on_sample(index, weighting.leaves(outcomes), strata, weighting.variance)
    else:
        model = fit_on_training(index, source, weighting.leaves(source), strata, weighting.training_strata)
    return weighted_by(weights, model, index, weighting.leaves(outcomes), cap)


def support_end(
    outcomes: Outcomes, left: NDArray[np.bool_], times: NDArray[np.float64], codes: NDArray[np.int32] | None = None
) -> int | None:
    """Return the first evaluation time at which only individuals with event are left, in all or in one of the strata.

    None is, since the last of all left; None, if there is no such time.
    """
    ends = [last for last, gone in last_times(outcomes, left, codes) if gone]
    return min((int(np.searchsorted(times, last, side="left")) for last in ends), default=None)


def last_times(
    outcomes: Outcomes, left: NDArray[np.bool_], codes: NDArray[np.int32] | None
) -> list[tuple[float, bool]]:
    """Return the last time of each stratum, and whether an individual left then."""
    found = []
    for k in range(1 if codes is None else int(codes.max()) + 1):
        time = outcomes.time if codes is None else outcomes.time[codes == k]
        gone = left if codes is None else left[codes == k]
        last = time.max()
        found.append((float(last), bool((gone & (time == last)).any())))
    return found


def cap_of(max_weight: float | None) -> float:
    """Return the largest weight."""
    return np.inf if max_weight is None else float(max_weight)


def check_cap(cap: Any) -> None:
    """Raise unless this is a cap of weights."""
    if cap is not None and not (isinstance(cap, (int, float, np.number)) and cap >= 1):
        raise InputError(f"`max_weight` must be a number, at least 1 (no weight is smaller), not {cap!r}")


def check_strata(strata: Strata | None, training_strata: Strata | None, *, estimated: bool, training: bool) -> None:
    """Raise unless strata fit what the curve is estimated from."""
    if strata is None:
        if training_strata is not None:
            raise InputError("training_strata needs the strata of the scored individuals, too")
        return
    if training:
        if training_strata is None:
            raise InputError(f"{strata.name} needs training_strata, the strata of the training outcomes")
    elif not estimated:
        raise InputError(f"{strata.name} is for Kaplan-Meier estimates: curves and functions have their own")
    elif training_strata is not None:
        raise InputError("training_strata needs training outcomes")


def settings_in_words(max_weight: float | None, normalize: str, variance: str, strata: Strata | None) -> list[str]:
    """Return what was not left at its default."""
    n_strata = 1 if strata is None else np.unique(strata.labels).size
    settings = [] if strata is None else [f"{n_strata} {'stratum' if n_strata == 1 else 'strata'}"]
    if max_weight is not None:
        settings.append(f"max_weight={max_weight:.15g}")
    if normalize == "n":
        settings.append("divided by n")
    if variance != "exact":
        settings.append(f"{variance} variance")
    return settings


def placed_curves(name: str, curves: SurvivalCurves, device: Any) -> SurvivalCurves:
    """Return curves as predictions on a device are; they are not moved, but NumPy and torch share memory."""
    if curves.device == device:
        return curves
    if curves.device is None and device.type == "cpu":
        return curves.to(device)
    where = "in the processor's memory" if device is None else f"on {device}"
    raise InputError(f"the {name} must be where the predictions are, {where}: move them with .to(device) or .numpy()")


def check_censoring_time(outcomes: Outcomes, subject: str, alternative: str) -> NDArray[np.float64]:
    """Return the censoring times; raise unless they are known."""
    if outcomes.censoring_time is None:
        raise InputError(
            f"{subject} needs outcomes with censoring_time (`Outcomes.from_dates` derives it from the cut-off date, "
            "and a structured array carries it as a third field: to_structured(censoring_time=True)); "
            f"{alternative}"
        )
    return outcomes.censoring_time


def refuse_drop_outs(outcomes: Outcomes, subject: str, alternative: str) -> None:
    """Raise unless all individuals were followed up to their censoring time."""
    dropped_out = outcomes.dropped_out
    if outcomes.censoring_time is not None and dropped_out.any():
        check_rounding(outcomes)
        first = arrays.first_true(dropped_out)
        raise InputError(
            f"{subject} needs all individuals without event to be followed up to their censoring_time: "
            f"{plural(int(dropped_out.sum()), 'individual')} of {len(outcomes)} dropped out before, the first at "
            f"position {first} (time {outcomes.time[first]:g}, censoring_time {outcomes.censoring_time[first]:g}); "
            f"{alternative}"
        )


def check_rounding(outcomes: Outcomes) -> None:
    """Raise if an individual's time and C* differ by rounding only: that is no drop-out."""
    if outcomes.censoring_time is None:
        return
    gap = arrays.where(outcomes.dropped_out, outcomes.censoring_time - outcomes.time, np.inf)
    close = gap <= ROUNDING * float(outcomes.time.max())
    if close.any():
        first = arrays.first_true(close)
        raise InputError(
            "time and censoring_time must be equal for those followed to the end: "
            f"{plural(int(close.sum()), 'individual')} of {len(outcomes)} would count as dropped out for a gap of at "
            f"most {gap[close].max():.1g}, the first at position {first}; that is rounding: set time to censoring_time "
            "there"
        )


@dataclass(frozen=True)
class WeightingChoices:
    """Which weightings fit some data."""

    names: tuple[str, ...]  #: Those that are possible, the one to use first.
    misleading: bool  #: Whether the only possible one may mislead, if follow-up ends on a known date.
    sentence: str  #: The same in words.
    #: Those that comparisons show unless others are asked for; none where the choice is the user's.
    default: tuple[str, ...] = ()


def weightings_that_fit(y: Outcomes) -> WeightingChoices:
    """Return which weightings these data allow, and which to use.

    Parameters
    ----------
    y : Outcomes
        What was observed.

    Returns
    -------
    survscore.weighting.WeightingChoices
        Whose `names` begin with the one to use; `sentence` says why, and `default` is what comparisons show.

    Examples
    --------
    >>> import survscore as ss
    >>> y = ss.Outcomes(time=[1, 3, 4], event=[1, 0, 1], censoring_time=[4, 3, 6])
    >>> ss.weightings_that_fit(y).names
    ('administrative', 'ipcw')
    """
    if not isinstance(y, Outcomes):
        raise InputError(f"y must be Outcomes, not {type(y).__name__}")
    if y.event.all():
        sentence = "No individual is censored, so 'uncensored' fits these data"
        return WeightingChoices(("uncensored",), False, sentence, ("uncensored",))
    if y.censoring_time is None:
        return WeightingChoices(
            ("ipcw",),
            True,
            "Without censoring_time the choice is `IPCW()`; if follow-up ends on a known date, give each individual's "
            "censoring_time (`Outcomes.from_dates` derives it) and use 'administrative' and 'projected'",
        )
    dropped_out = int(y.dropped_out.sum())
    weighted = f" and weights for the {dropped_out} of {len(y)} who dropped out" if dropped_out else ""
    return WeightingChoices(
        ("administrative", "ipcw"),
        False,
        f"All censoring times are known: 'administrative' counts those with C* >= t{weighted}, 'projected' counts all "
        "individuals; `IPCW()` is possible, but biased if the predictions encode the censoring time",
        # a model that encodes C* may be good for those with C* >= t alone: both populations are shown
        ("administrative", "projected"),
    )

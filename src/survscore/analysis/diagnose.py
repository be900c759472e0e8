"""Whether there are signs that an IPCW score is misled on these data, and that models encode the censoring time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survscore._utils.dates import Unit
from survscore._validation import InputError, as_times, check_level, check_number, check_whole
from survscore.analysis.assumptions import DropoutTest, dropout_test, warn_if_entry_is_late
from survscore.analysis.censoring_leak import Windows, explained_variance
from survscore.analysis.ipcw_evidence import (
    HEADINGS,
    MORE_LOST,
    ONSET,
    Answer,
    IPCWVerdict,
    PairContrast,
    about_covariates,
    about_weights,
    advice,
    contrasts_of,
    ipcw_verdict,
    scores_by_cap,
    weights_over_time,
)
from survscore.causes import Cause, takes_cause
from survscore.curves import SurvivalCurves
from survscore.engine.entry import CurvesAfterEntry
from survscore.engine.inputs import NULL_MODELS, check_predictions, null_name, of_cause
from survscore.engine.null import KaplanMeierNull
from survscore.engine.placing import check_on_processor
from survscore.engine.times import default_times
from survscore.incidence import NamedCurves
from survscore.inference.estimate import Estimate
from survscore.inference.units import Groups
from survscore.outcomes import Outcomes
from survscore.results.long_tables import stacked
from survscore.weighting import IPCW, Administrative, Projected, Weighting, as_weighting

if TYPE_CHECKING:
    import pandas as pd

    from survscore.plots import DiagnosisDisplay

N_POINTS = 41
DEFAULT_SHARE = 0.1
#: Of more individuals, as many are drawn for what needs each one's influence.
MOST_ROWS = 10_000
#: The same for models whose leakage was not asked about.
MOST_ROWS_UNASKED = 2_000


@dataclass(frozen=True, eq=False, repr=False)
class Diagnosis:
    """Signs that IPCW is biased, and that models encode C*; prints as sentences. See `diagnose`.

    Attributes
    ----------
    ipcw : {"no sign of a leak", "suspect", "misleading", "not needed", "too few"}
        The verdict on IPCW with these data and models. "no sign of a leak" does not say that its scores are unbiased:
        drop-out that depends on the risk, for one, leaves none of the signs that are looked for.
    sentences : tuple of str
        The answer in words: first on IPCW and which scores to go by, then on each model, then on covariates, weights
        and caps, and on drop-out.
    models : pandas.DataFrame
        One row per model: its verdict ("encodes C*", "no sign", "unclear", "too few"); which share of the predicted
        survival is lost right after C* (fall_after) and would be by other ages and other individuals (fall_elsewhere);
        their difference (excess), their ratio as cumulative hazards (ratio), and that of the fall to the one right
        before C* (onset); and by how much the mean Brier score under IPCW differs from the administrative one, both
        against Kaplan-Meier (ipcw_minus_administrative, negative where IPCW favours the model). All with limits.
    pairs : pandas.DataFrame
        Every model against Kaplan-Meier and all other pairs: the differences of mean Brier scores under IPCW, the
        administrative and the projected weighting (ipcw, administrative, projected; the last as far as it has scores),
        how the first two differ, with limits, and whether IPCW and one of the others are significant and opposite
        (contradicts).
    placebo : pandas.DataFrame
        The falls at C* (offset 0), a width before and at the placebo dates, of those looked at and of others at the
        same ages.
    weights, caps : pandas.DataFrame
        By time: how many have an IPCW weight, Kish's effective number, the largest weight and its share. By cap of the
        weights and model: the mean IPCW Brier score and its rank.
    censoring_r2 : Estimate or None
        The cross-validated R2 of C* predicted from the covariates, where they were given; negative where the
        predictions are worse than the mean.
    offsets, survival
        Time since C*, from minus to plus `width`; and for each model and Kaplan-Meier the mean prediction there.
    width : float
        Length of the windows.
    n : int
        How many individuals are averaged in `survival`: those with so much room around C*.
    time_range : tuple of float or None
        Over which time mean scores were taken; None where there were none.
    level : float
        Of all intervals.
    dropout : DropoutTest or None
        Whether drop-out depends on predicted risk or on C*; None without drop-outs.
    cause : str
        Under competing risks the cause that predictions are of.
    """

    ipcw: IPCWVerdict
    sentences: tuple[str, ...]
    models: pd.DataFrame
    pairs: pd.DataFrame
    placebo: pd.DataFrame
    weights: pd.DataFrame
    caps: pd.DataFrame
    censoring_r2: Estimate | None
    offsets: NDArray[np.float64]
    survival: dict[str, NDArray[np.float64]]
    width: float
    n: int
    time_range: tuple[float, float] | None
    level: float
    dropout: DropoutTest | None
    cause: str = ""

    def to_frame(self) -> pd.DataFrame:
        """Return the table of models."""
        return self.models

    def plot(
        self, ax: Any = None, *, band: bool = True, unit: Unit | str | None = None, width: float | None = None
    ) -> DiagnosisDisplay:
        """Draw the mean predictions around C*, and where each would go on if it did not encode C*.

        Parameters
        ----------
        band : bool, default True
            Whether to draw what is to be expected after C*, with its interval.
        ax, unit, width
            As for `ScoreCurve.plot`.

        Returns
        -------
        DiagnosisDisplay
            With the axes in ``ax_``, the figure in ``figure_``, and ``save("figure.pdf")``.
        """
        from survscore.plots import DiagnosisDisplay

        return DiagnosisDisplay(self).plot(ax=ax, band=band, unit=unit, width=width)

    def __repr__(self) -> str:
        return "\n".join(self.sentences)


@takes_cause
def diagnose(
    y: Outcomes,
    models: NamedCurves,
    *,
    X: Any = None,
    weighting: str | IPCW = "ipcw",
    times: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    width: float | None = None,
    level: float = 0.95,
    seed: int = 0,
    cause: Cause | None = None,
) -> Diagnosis:
    r"""Test for signs that predictions encode the censoring time :math:`C^*`, and that IPCW is biased.

    No individual's risk changes at its own :math:`C^*`: only follow-up ends there. A method that has learnt from
    covariates that no individual is seen event-free after :math:`C^*` predicts a steep fall there, and an IPCW score
    rewards it for that; the administrative score does not, and the projected score penalises it. Other predictions may
    depend on :math:`C^*` as well, since it is the same date for all: by trends over calendar time, and by differences
    between early and late starters. So a model is said to encode :math:`C^*` only if two criteria are met: its fall at
    :math:`C^*` stands out against other ages, other individuals and placebo dates, and IPCW rates it better than the
    administrative score does.

    That no sign is found does not show that an IPCW score is unbiased. Informative drop-out, which biases both scores,
    leaves no sign of this kind.

    Parameters
    ----------
    y, models, times, groups
        As for `compare`, with censoring times; some may have dropped out. Kaplan-Meier stands beside the models.
        Sample weights are in the scores and in the weights of IPCW; falls at :math:`C^*`, mean predictions around it,
        and how well covariates predict it are of the individuals as they are.
    X : array or data frame of shape (n, p), optional
        Covariates: how well gradient boosting predicts :math:`C^*` from them, for individuals it has not learnt from.
        Numbers, categories, text and dates, also missing (needs scikit-learn).
    weighting : "ipcw" or IPCW
        The weighting to examine.
    width : float, optional
        Length of the windows; by default a tenth of the time that all predictions reach, or of the range of
        :math:`C^*` (1 to 99 %), if that is less.
    level : float, default 0.95
        Of all intervals, by which verdicts are made.
    seed : int
        Of the folds for `X`, and of the draw of 10 000 individuals from more.
    cause : str or int, optional
        Under competing risks the cause of events, as for `brier_score`.

    Returns
    -------
    Diagnosis

    Raises
    ------
    InputError
        If an argument is invalid; the message names it, the rule, and the first value that violates it.
    UnfitError
        If a metric is not defined for these predictions, or under this weighting.

    Notes
    -----
    **The fall at C\*.** Let :math:`I` be those with room around :math:`C^*_i`, and :math:`t_i = C^*_i + d` the start of
    a window of width w. The shares of the predicted survival that are lost over it, by them and by others at the same
    ages, are

    .. math::

        A_d = \frac{\sum_I [\pi_i(t_i-) - \pi_i((t_i + w)-)]}{\sum_I \pi_i(t_i-)}, \qquad
        B_d = \frac{\sum_I \pi_i(t_i-)\, q_i}{\sum_I \pi_i(t_i-)}, \qquad
        q_i = \frac{\sum_k [\pi_k(t_i-) - \pi_k((t_i + w)-)]}{\sum_k \pi_k(t_i-)},

    where k runs over those with :math:`C^*_k \ge C^*_i + 5w`. With :math:`H(x) = -\log(1 - x)`, x at most 0.99 and
    0.002 added, the ratio

    .. math:: R = \frac{H(A_0)}{H(B_0)} \Big/ \operatorname{mean}_d \frac{H(A_d)}{H(B_d)},

    with a geometric mean over the placebo dates :math:`d = -3.5 w, -4 w`, is one if hazards are a product of any
    function of age, a constant for each date of entry, and a log-linear trend over calendar time. Where too few have so
    much room, d and k are nearer. The fall elsewhere is the one that makes :math:`R = 1`. Placebo dates after
    :math:`C^*` are of no use: predictions that encode it have nothing left to lose there. Limits are from influences,
    on the scale of :math:`\log R`.

    **The two weightings.** Differences of mean Brier scores to Kaplan-Meier under IPCW and under the administrative
    weighting are both sums of influences of the same individuals, so the interval of their difference allows for what
    they share.

    **The rule.** A model encodes C\* if the lower limit of R is above 3, that of the excess above 0.05, that of
    :math:`H(A_0) / H(A_{-w})` above 1.2, since what began some time before the cut-off is as steep right before C\*,
    and the upper limit of the IPCW difference minus the administrative one below 0. A hazard that really changes
    threefold on just the cut-off date cannot be distinguished from a weak leak: from a lower limit of 1.25
    on, the verdict is "unclear". In 200 simulated data sets with trends, waves, jumps up to threefold and cohort
    effects, none of four models without leak was flagged; :doc:`/which` has the figures (``benchmarks/diagnosis.py``).

    Examples
    --------
    >>> import survscore as ss
    >>> from survscore.simulate import ConstantHazardStudy
    >>> sample = ConstantHazardStudy().sample(2000, seed=1)
    >>> truth = sample.survival(range(1, 101))
    >>> leaking = ss.SurvivalCurves(truth.probabilities * (sample.outcomes.censoring_time[:, None] > truth.times),
    ...                             truth.times, interpolation="step")
    >>> found = ss.diagnose(sample.outcomes, {"truth": truth, "leaking": leaking})
    >>> found.ipcw
    'misleading'
    >>> found.models[["model", "verdict", "fall_after", "fall_elsewhere"]].round(2)
         model     verdict  fall_after  fall_elsewhere
    0    truth     no sign        0.08            0.08
    1  leaking  encodes C*        1.00            0.08
    """
    import pandas as pd

    entry = getattr(y, "entry", None)
    y, named = of_cause(y, models, cause, times=times, caller="diagnose")
    for name, curves in named.items():
        check_predictions(y, curves, f"the curves of {name!r}")
        if not isinstance(curves, SurvivalCurves):
            raise InputError(f"the curves of {name!r} must be in memory, not in batches")
    check_on_processor("diagnose", y, named)
    if y.censoring_time is None:
        raise InputError("diagnose needs outcomes with censoring_time (`Outcomes.from_dates` derives it)")
    questioned = as_weighting(weighting, y)
    if not isinstance(questioned, IPCW):
        raise InputError(f"weighting must be 'ipcw' or IPCW(...), the one to examine, not {weighting!r}")
    check_level(level)
    check_whole("seed", seed, 0)
    grouping = None if groups is None else Groups.of(groups, len(y))
    scored_at = default_times(y, named) if times is None else as_times(times)
    last = min(float(curves.times[-1]) for curves in named.values())
    if scored_at[0] > last:
        raise InputError(f"times must begin where all models have predictions, up to {last:g}, not at {scored_at[0]:g}")
    width = _default_width(y.censoring_time, last) if width is None else width
    rule = f"positive, and less than half of {last:g}, the time that all predictions reach"
    check_number("width", width, rule, lambda value: 0 < value < last / 2)
    offsets, survival, n = _around(y.weighted(None), named, float(width), last)
    r2 = None if X is None else explained_variance(X, y.censoring_time, grouping, level, seed)
    weights = weights_over_time(y, questioned, scored_at)
    caps = scores_by_cap(y, named, questioned, scored_at)

    sample, curves_of, weighting_of, groups_of = _drawn(y, named, questioned, grouping, seed, MOST_ROWS)
    all_equal = not np.ptp(y.censoring_time) > 0
    windows = None if all_equal else Windows.of(np.asarray(sample.censoring_time), float(width), last)
    time_range: tuple[float, float] | None = None
    contrasts: list[PairContrast] = []
    with suppress(InputError):  # where no time has a score under both, this criterion is missing
        contrasts, time_range = contrasts_of(
            sample, curves_of, weighting_of, scored_at, groups_of, level, with_projected=True
        )
    answers = _answers(curves_of, windows, contrasts, groups_of, level)
    why_not = (
        "all C* are equal, so that there are no others to compare with"
        if all_equal
        else "too few individuals are followed long enough around their C*, or have a C* late enough to compare with"
    )
    weighted = not bool((weights["largest_weight"].dropna() <= 1 + 1e-9).all())
    verdict, reasons = ipcw_verdict(answers, contrasts, r2, weighted=weighted)
    falls = [
        {"model": answer.model, "offset": windows.offsets, "fall": leak.falls, "fall_of_others": leak.falls_of_others}
        for answer in answers
        if windows is not None and (leak := answer.leak) is not None
    ]
    if entry is None:
        warn_if_entry_is_late(y, named)
    dropout = dropout_test(y, named, scored_at)
    about_dropout = [] if dropout is None else dropout.sentences(level)
    return Diagnosis(
        ipcw=verdict,
        sentences=(
            f"{HEADINGS[verdict]}: {'; '.join(reasons)}.",
            *([] if verdict in ("no sign of a leak", "not needed") else [advice(contrasts)]),
            *(answer.sentence(level, why_not) for answer in answers),
            *([] if r2 is None else [about_covariates(r2, level)]),
            *about_weights(weights, caps),
            *(f"{sentence[0].upper()}{sentence[1:]}." for sentence in about_dropout),
            *([f"All times are {y.clock}."] if y.clock else []),
        ),
        models=pd.DataFrame([_row(answer) for answer in answers]),
        pairs=pd.DataFrame([_pair_row(contrast) for contrast in contrasts]),
        placebo=stacked(falls) if falls else pd.DataFrame(columns=["model", "offset", "fall", "fall_of_others"]),
        weights=weights,
        caps=caps,
        censoring_r2=r2,
        offsets=offsets,
        survival=survival,
        width=float(width),
        n=n,
        time_range=time_range,
        level=float(level),
        dropout=dropout,
        cause=y.chosen_cause,
    )


def _answers(
    models: Mapping[str, SurvivalCurves],
    windows: Windows | None,
    contrasts: Sequence[PairContrast],
    groups: Groups | None,
    level: float,
) -> list[Answer]:
    """Return what is known about each model, without Kaplan-Meier."""
    against_null = {contrast.model: contrast for contrast in contrasts if contrast.reference in NULL_MODELS}
    return [
        Answer(name, None if windows is None else windows.leak(curves, groups, level), against_null.get(name))
        for name, curves in models.items()
        if name not in NULL_MODELS
    ]


def _default_width(censoring_time: NDArray[np.float64], last: float) -> float:
    """Return a tenth of what the predictions reach, or of the range of C*, if that is less but not nothing."""
    finite = censoring_time[np.isfinite(censoring_time)]
    low, high = np.quantile(finite, (0.01, 0.99)) if finite.size else (0.0, 0.0)
    width = float(min(high, last) - low)
    return DEFAULT_SHARE * (min(last, width) if width > 0 else last)


def _around(
    y: Outcomes, models: Mapping[str, SurvivalCurves], width: float, last: float
) -> tuple[NDArray[np.float64], dict[str, NDArray[np.float64]], int]:
    """Return the mean predictions around C* of those with room for it, as left limits: C* itself is before the fall."""
    end = np.asarray(y.censoring_time)
    rows = np.flatnonzero((end >= width) & (end <= last - width))
    if rows.size == 0:
        raise InputError(
            f"no individual has a censoring_time from {width:g} to {last - width:g}, as a width of {width:g} needs"
        )
    offsets = np.linspace(-width, width, N_POINTS)
    own_times = np.maximum(end[rows, None] + offsets, 0.0)

    def means(curves: SurvivalCurves) -> NDArray[np.float64]:
        return np.array([curves.before(own_times[:, j]).mean() for j in range(N_POINTS)])

    survival = {name: means(curves[rows]) for name, curves in models.items()}
    null = null_name(True, y)
    if null not in models:
        before = KaplanMeierNull.of(y, scored=True).before(own_times.ravel())
        survival[null] = before.reshape(own_times.shape).mean(axis=0)
    return offsets, survival, int(rows.size)


def _drawn(
    y: Outcomes, models: Mapping[str, Any], weighting: IPCW, groups: Groups | None, seed: int, most: int
) -> tuple[Outcomes, dict[str, SurvivalCurves], Weighting, Groups | None]:
    """Return all individuals, or as many as influences are computed for."""
    if len(y) <= most:
        return y, {name: curves[:] for name, curves in models.items()}, weighting, groups
    rows = np.sort(np.random.default_rng(seed).permutation(len(y))[:most])
    drawn = None if groups is None else Groups.of(groups.codes[rows], rows.size)
    return y[rows], {name: curves[rows] for name, curves in models.items()}, weighting.of_rows(rows), drawn


def _limits(**estimates: Estimate) -> dict[str, float]:
    return {
        name + ending: value
        for name, estimate in estimates.items()
        for ending, value in (("", estimate.value), ("_lower", estimate.lower), ("_upper", estimate.upper))
    }


def _row(answer: Answer) -> dict[str, Any]:
    """Return the row of a model in `Diagnosis.models`."""
    leak = answer.leak
    after, elsewhere = (np.nan, np.nan) if leak is None else (leak.after.value, leak.elsewhere)
    of_falls = {name: getattr(leak, name, Estimate()) for name in ("excess", "ratio", "onset")}
    row = {"model": answer.model, "verdict": answer.verdict, "fall_after": after, "fall_elsewhere": elsewhere}
    return row | _limits(**of_falls, ipcw_minus_administrative=answer.favour)


def _pair_row(contrast: PairContrast) -> dict[str, Any]:
    """Return the row of two models in `Diagnosis.pairs`."""
    scores = {name: getattr(contrast, name) for name in ("ipcw", "administrative", "projected")}
    limits = _limits(**scores, ipcw_minus_administrative=contrast.difference)
    contradicts = contrast.contradicted_by is not None
    return {"model": contrast.model, "reference": contrast.reference, **limits, "contradicts": contradicts}


def leaking_models(
    y: Outcomes, models: Mapping[str, Any], *, groups: ArrayLike | None = None, level: float = 0.95, seed: int = 0
) -> list[Answer]:
    """Return the models that encode C*, by the rule of `diagnose` on up to 2 000 individuals drawn by `seed`.

    The comparisons of that rule are made only for models that lose more than a twentieth of their survival right after
    C*, and clearly more than right before. Models that are not in the processor's memory are left out, and there are
    none where C* is unknown or the same for all. Sample weights have no part in it: predictions encode C* or don't.
    """
    y = y.weighted(None)
    named = {
        name: curves
        for name, curves in models.items()
        if isinstance(curves, (SurvivalCurves, CurvesAfterEntry)) and curves.device is None and name not in NULL_MODELS
    }
    if y.censoring_time is None or not named or not (y.censoring_time != y.censoring_time[0]).any():
        return []
    grouping = None if groups is None else Groups.of(groups, len(y))
    last = min(float(curves.times[-1]) for curves in named.values())
    width = _default_width(np.asarray(y.censoring_time), last)
    sample, curves_of, weighting, groups_of = _drawn(y, named, IPCW(), grouping, seed, MOST_ROWS_UNASKED)
    windows = Windows.of(np.asarray(sample.censoring_time), width, last)
    if windows is None:
        return []
    suspects = {name: curves for name, curves in curves_of.items() if _falls(windows, curves)}
    if suspects:
        with suppress(InputError):  # without a score under both weightings there is no second criterion
            times = default_times(sample, suspects)
            contrasts, _ = contrasts_of(sample, suspects, weighting, times, groups_of, level)
            answers = _answers(suspects, windows, contrasts, groups_of, level)
            return [answer for answer in answers if answer.verdict == "encodes C*"]
    return []


def leak_warnings(
    y: Outcomes,
    models: Mapping[str, Any],
    weightings: Iterable[Weighting],
    *,
    groups: ArrayLike | None = None,
    level: float = 0.95,
) -> dict[str, str]:
    """Return a warning for each model that encodes C* (`leaking_models`), by name: to whom its scores refer."""
    leaking = leaking_models(y, models, groups=groups, level=level)
    used = {type(weighting) for weighting in weightings} if leaking else set()
    scope = ""
    if Administrative in used:
        scope = " Its administrative scores, and differences to other models, refer to individuals with C* >= t only: "
        scope += "see the projected ones" if Projected in used else "compare with weighting 'projected'"
        scope += " before using it for new individuals."
    return {answer.model: f"{answer.warning}{scope}" for answer in leaking}


def _falls(windows: Windows, curves: SurvivalCurves) -> bool:
    """Whether a model falls after C* at all, and more than right before: without that it cannot encode it."""
    own = curves[windows.order[windows.own]]
    at_end, before = windows.starts[:2]
    start, end, later = (float(own.before(ages).sum()) for ages in (before, at_end, at_end + windows.width))
    if end <= 0:
        return False
    after = 1.0 - later / end
    return after > MORE_LOST and -np.log1p(-min(after, 0.99)) > -ONSET * np.log(max(end / start, 0.01))

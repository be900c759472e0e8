"""Scores of predictions made at several landmarks for those still at risk, and a summary of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survscore._utils.dates import Unit, plural_word
from survscore._validation import (
    InputError,
    UnequalWeightsWarning,
    UnfitError,
    as_times,
    check_choice,
    check_level,
    warn,
)
from survscore._version import __version__
from survscore.analysis.compare import Request
from survscore.analysis.diagnose import leak_warnings
from survscore.analysis.landmark_curves import LandmarkCurves
from survscore.analysis.landmark_means import Landmarks, LandmarkScores
from survscore.analysis.landmark_parts import (
    LandmarkPart,
    Missing,
    check_weighting,
    individual_weights,
    individuals_of,
    n_dropped_out_of,
    parts_of,
    refuse_stacked,
    stacked_parts,
)
from survscore.analysis.score_tables import SKILL, asked_metrics
from survscore.causes import Cause, takes_cause
from survscore.engine.blocks import Predictions
from survscore.engine.inputs import as_models, check_one_cause, check_outcomes, curves_read, null_name, one_or_more
from survscore.engine.placing import check_on_processor
from survscore.incidence import IncidenceCurves
from survscore.inference.units import Groups
from survscore.metrics import FollowUpMetric, Metric
from survscore.outcomes import Outcomes
from survscore.results.score_table import LandmarkCounts, LandmarkTable, TableRow
from survscore.weighting import Weighting, as_weighting, default_weightings

DEFAULT = ("brier", SKILL, "auc", "oe")
SUMMARIES = ("counted", "equal")
Made = Predictions | IncidenceCurves | LandmarkCurves


@takes_cause
def landmark_table(
    y: Outcomes,
    models: Mapping[str, Made] | Iterable[tuple[str, Made]],
    *,
    horizons: ArrayLike,
    landmarks: Any = None,
    id: ArrayLike | None = None,
    missing: Missing = "raise",
    summary: Literal["counted", "equal"] = "counted",
    metric: str | Metric | Sequence[str | Metric] | None = None,
    weighting: str | Weighting | Sequence[str | Weighting] | None = None,
    reference: str | None = None,
    null: bool = True,
    groups: ArrayLike | None = None,
    level: float = 0.95,
    cause: Cause | None = None,
    unit: Unit | str | None = None,
) -> LandmarkTable:
    r"""Score dynamic predictions, made at several landmarks for the individuals still at risk.

    At a landmark s those with :math:`T_i > s` count. Time is counted from there: a horizon u asks for the status at
    s + u, and predictions are :math:`P(T^*_i > s + u \mid T^*_i > s)`, with what was known at s. Weights, the null
    model and strata are made anew at each landmark. See the guide to landmarks.

    Parameters
    ----------
    y : Outcomes
        One row for each individual, with time counted from its start. With `id` one row for each individual and
        landmark, with time counted from the landmark.
    models : mapping of str to LandmarkCurves, SurvivalCurves or IncidenceCurves, or pairs
        What each model predicted. `LandmarkCurves` hold predictions that were made at each landmark. Curves from the
        start are read as :math:`\pi_i(s + u) / \pi_i(s)`. With `id` the curves of each row, counted from its landmark.
    horizons : array_like
        How far ahead, counted from the landmark.
    landmarks : sequence of float or of dates, optional
        Ages, or days on which each one is scored at its own age (`y` then has dates, by `Outcomes.from_dates`). By
        default those of the `LandmarkCurves`. With `id` one for each row.
    id : array_like, optional
        Which individual each row is of, where rows are stacked. They are never taken as independent.
    missing : {"raise", "drop"}, default "raise"
        What to do with individuals at risk for whom a model has no prediction at a landmark.
    summary : {"counted", "equal"}, default "counted"
        How landmarks weigh in the summary: by how many individuals they count, or all alike.
    metric : str or Metric, or several
        Metrics of statuses at one time: losses, ``"skill"`` (the scaled Brier score), ``"auc"``, ``"oe"``, ``"slope"``,
        ``"in_the_large"``, ``"net_benefit@0.1"``. By default Brier, skill, AUC and observed/expected.
    weighting, reference, level, cause
        As for `compare`. Distributions of censoring that are given can't be used, since the clock starts anew.
    null : bool, default True
        Whether to add the null model: at each landmark the Kaplan-Meier curve of those at risk.
    groups : array_like, optional
        Clusters larger than individuals, such as hospitals.
    unit : {"D", "W", "M", "Y", "h", "min", "s"}, or a word such as "month", optional
        What times are counted in, for titles.

    Returns
    -------
    LandmarkTable
        Prints as tables with one row for each landmark; `to_frame`, `to_latex`, `to_html`, `to_markdown`, `to_json`,
        and `plot`, a heat map over landmarks and horizons.

    Raises
    ------
    InputError
        If an argument is invalid; the message names it, the rule, and the first value that violates it.
    UnfitError
        If a metric is not defined for these predictions, or under this weighting.

    Notes
    -----
    The summary of a metric at a horizon is :math:`\theta = \sum_s \omega_s \theta_s`, over the landmarks at which all
    models have a score. An individual is at risk at several landmarks, so that scores at these depend on each other.
    So its influences are added up, :math:`\phi_i = \sum_s \omega_s \phi_{is}`, zero where it is not at risk, and the
    variance is :math:`\frac{n}{n - 1} \sum_i \phi_i^2`. Weights by numbers counted, :math:`\omega_s = N_s / N`, are
    estimated, which adds :math:`\sum_s 1\{i \text{ counted at } s\} (\theta_s - \theta) / N` to :math:`\phi_i`.

    With sample weights, those of an individual are the same at all landmarks, and stand in for its one in these sums:
    :math:`N_s` are sums of weights. The variance has the corrections of :doc:`/weights`.

    Examples
    --------
    >>> import numpy as np
    >>> import survscore as ss
    >>> rng = np.random.default_rng(1)
    >>> rate = rng.gamma(2, 0.05, 800)
    >>> event_time, end = rng.exponential(1 / rate), rng.uniform(5, 25, 800)
    >>> y = ss.Outcomes(np.minimum(event_time, end), event_time <= end, end)
    >>> times = np.arange(1.0, 26.0)
    >>> models = {
    ...     "truth": ss.SurvivalCurves(np.exp(-rate[:, None] * times), times),
    ...     "biased": ss.SurvivalCurves(np.exp(-1.5 * rate[:, None] * times), times),
    ... }
    >>> asked = {"weighting": "administrative", "metric": "brier", "null": False}
    >>> print(ss.landmark_table(y, models, landmarks=[0, 4, 8], horizons=[5], **asked))
    800 individuals; 95 % intervals
    <BLANKLINE>
    Brier score at 5 after the landmark; administrative
    landmark (n)                estimate       difference to truth     p
    ------------------------------------------------------------------------------
    0 (800)
      truth      0.2048 (0.1920, 0.2185)
      biased     0.2162 (0.2041, 0.2292) +0.0115 ( 0.0037, 0.0192) 0.004 worse
    4 (419)
      truth      0.1974 (0.1799, 0.2165)
      biased     0.2052 (0.1897, 0.2220) +0.0078 (-0.0026, 0.0182) 0.139 undecided
    8 (232)
      truth      0.1701 (0.1467, 0.1974)
      biased     0.1732 (0.1537, 0.1952) +0.0031 (-0.0094, 0.0155) 0.625 undecided
    mean (1451)
      truth      0.1971 (0.1857, 0.2092)
      biased     0.2062 (0.1954, 0.2175) +0.0091 ( 0.0030, 0.0151) 0.003 worse
    """
    check_outcomes(y, entry=True)  # at a landmark those are at risk who had entered
    check_level(level)
    check_choice("summary", summary, SUMMARIES)
    if not isinstance(null, bool):
        raise InputError("null must be True or False: the null model is made anew at each landmark")
    y = y if cause is None else y.for_cause(cause)
    _ = y.event_of_interest  # raises, if there are several causes and none was chosen
    check_one_cause(y, "landmark_table")
    named = as_models(models)
    curves = [curve for given in named.values() for curve in _curves_of(given)]
    check_on_processor("landmark_table", y, {str(k): curve for k, curve in enumerate(curves)})
    times = np.unique(as_times(horizons, "horizons"))
    if times[0] <= 0:
        raise InputError("horizons must be after the landmark, above 0")
    metrics = _metrics(metric, with_null=null)
    several = default_weightings(y) if weighting is None else one_or_more(weighting, Weighting, "weighting")
    weightings = [as_weighting(given, y) for given in several]
    for chosen in weightings:
        check_weighting(chosen)
    if id is None:
        refuse_stacked(y, landmarks)
        parts = parts_of(y, named, landmarks, times, missing)
    else:
        parts = stacked_parts(y, named, landmarks, id)
    parts = [part.with_weight() for part in parts]
    own = individual_weights(parts)
    names = [*named, *([null_name(True, y)] if null else [])]
    compared_with = names[0] if reference is None else str(reference)
    check_choice("reference", compared_with, tuple(names))
    grouping = None if groups is None else Groups.of(groups, len(y))
    request = Request(None, weightings, times, compared_with, null, None, level, variances="times")
    each = [LandmarkScores.of(part, metrics, request, grouping, y) for part in parts]
    unequal = [
        f"at landmark {one.part.label}, {caution}"
        for one in each
        for scored in one.scored
        for caution in scored.support.unequal_weights()
    ]
    if unequal:
        warn(unequal[-1], UnequalWeightsWarning)  # of the last landmark, with the fewest individuals
    null_model = null_name(True, y) if null else None
    of_units = own if grouping is None else None
    every = Landmarks(each, _units(parts, grouping), of_units, metrics, request, summary, tuple(names), null_model)
    labels = [chosen.label(y) for chosen in weightings]
    rows = [row for one in each for row in one.rows] + every.means()
    counts = tuple(LandmarkCounts.of(part.landmark, part.label, part.y, part.n_left_out) for part in parts)
    settings = {
        "metric": [name if isinstance(name, str) else name.name for name in metrics],
        "horizons": times.tolist(),
        "landmarks": [part.label for part in parts],
        "reference": compared_with,
        "summary": summary,
        "groups": True,
        "level": level,
        "curves": curves_read(each[0].models, times),
        "survscore": __version__,
        **({} if unit is None else {"unit": plural_word(unit)}),
        **({"cause": y.causes[y.interest - 1]} if y.interest else {}),
        **({"sample_weights": y.weight_kind} if y.weights is not None else {}),
    }
    leaking = leak_warnings(each[0].y, each[0].models, weightings, level=level)
    return LandmarkTable(
        tuple(_relabelled(rows, weightings, labels)),
        ("landmark",),
        level,
        individuals_of(parts),
        n_dropped_out_of(parts),
        settings,
        leaking,
        landmarks=counts,
    )


def _curves_of(given: Any) -> list[Any]:
    return [made.curves for made in given.made.values()] if isinstance(given, LandmarkCurves) else [given]


def _metrics(metric: Any, *, with_null: bool) -> list[str | Metric]:
    """Return what was asked for, if it is of statuses at one time."""
    asked: Any = [name for name in DEFAULT if with_null or name != SKILL] if metric is None else metric
    metrics = asked_metrics(asked, (), with_null=with_null, coarse=True)
    for entry in metrics:
        if isinstance(entry, FollowUpMetric) or (isinstance(entry, str) and entry != SKILL):
            name = entry if isinstance(entry, str) else entry.name
            raise UnfitError(
                f"metric {name!r} has no form for landmarks: it is not of statuses at one time. At one landmark, "
                "score_table of what at_landmark and conditional_on return has it"
            )
    return metrics


def _units(parts: Sequence[LandmarkPart], groups: Groups | None) -> list[NDArray[np.int32]]:
    """Return the independent units at each landmark: individuals, or groups that hold all rows of each individual."""
    if groups is None:
        return [part.individuals for part in parts]
    several = [groups.codes[part.rows] for part in parts]
    both = np.unique(np.stack((np.concatenate([part.individuals for part in parts]), np.concatenate(several))), axis=1)
    if np.unique(both[0]).size < both.shape[1]:
        raise InputError("groups must hold all rows of an individual: one is in several groups")
    return several


def _relabelled(rows: Sequence[TableRow], weightings: Sequence[Weighting], labels: Sequence[str]) -> list[TableRow]:
    """Return rows whose weightings have one name at all landmarks, also where none dropped out after some of them."""
    known = {
        chosen.named(somebody_left=left): label
        for chosen, label in zip(weightings, labels, strict=True)
        for left in (False, True)
    }
    return [replace(row, weighting=known.get(row.weighting, row.weighting)) for row in rows]

"""What a report says, as plain data: dictionaries, lists, texts and numbers, ready for JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from survscore._utils.dates import plural_word
from survscore._utils.jobs import silent
from survscore._validation import InputError, as_times
from survscore._version import __version__
from survscore.causes import ALL_CAUSES, ALL_STATUSES
from survscore.curves import SurvivalCurves
from survscore.engine.inputs import as_models, counted_from_entry, one_or_more
from survscore.incidence import IncidenceCurves
from survscore.metrics import Loss, Metric, as_metric
from survscore.outcomes import Outcomes
from survscore.reports.causes import causes_shown, joined, single_incidences
from survscore.reports.sections import SECTIONS
from survscore.reports.study import ReportOptions, Study, labels_of
from survscore.results.printing import short_names


def summarise(
    y: Outcomes,
    models: SurvivalCurves
    | IncidenceCurves
    | Mapping[str, SurvivalCurves | IncidenceCurves]
    | Iterable[tuple[str, SurvivalCurves | IncidenceCurves]],
    **options: Any,
) -> dict[str, Any]:
    """Compute everything that a report shows.

    Parameters
    ----------
    y : Outcomes
        What was observed.
    models : SurvivalCurves, IncidenceCurves, mapping of str to these, or pairs
        What was predicted, for the same individuals in the same order.
    **options
        Those of `survscore.report`.

    Returns
    -------
    dict
        Of plain data, with tables as dictionaries of equally long lists; missing numbers are None. Of several causes,
        ``"causes"`` has such a summary for each.

    Examples
    --------
    >>> from survscore.reports import summarise
    >>> from survscore.simulate import ConstantHazardStudy
    >>> sample = ConstantHazardStudy().sample(500, seed=1)
    >>> found = summarise(sample.outcomes, {"truth": sample.survival(range(1, 91))}, times=range(10, 81, 10))
    >>> found["weightings"]
    ['administrative', 'projected (own ranks)']
    >>> found["verdicts"]["sentence"][0]
    'Kaplan-Meier is not significantly different from truth for individuals with C* ≥ t only: its mean Brier score
    differs by 0.0000 (95 % interval −0.0014 to 0.0014, p = 0.999).'
    """
    asked = ReportOptions(**options)
    given = as_models({"model": models} if isinstance(models, (SurvivalCurves, IncidenceCurves)) else models)
    scored_at = (
        None
        if asked.times is None
        else np.union1d(as_times(asked.times), [] if asked.horizons is None else as_times(asked.horizons))
    )
    y, given = counted_from_entry(y, given, scored_at, caller="a report")
    causes = causes_shown(y, given, asked.cause)
    return _of_several(y, given, causes, asked) if causes else _of_one(y, given, asked)


def _of_one(y: Outcomes, models: Mapping[str, Any], options: ReportOptions) -> dict[str, Any]:
    """Return the summary of one cause of events, or of all together: what sections share, and then each section."""
    tell = options.progress or silent
    tell(0, len(SECTIONS) + 1, "comparing")
    study = Study.of(y, models, options)
    comparison, scored = study.comparison, study.answers.scored
    summary: dict[str, Any] = {
        "survscore": __version__,
        "title": str(options.title),
        "cause": study.y.chosen_cause if study.y.interest > 0 else None,
        "all_causes": study.y.interest == ALL_STATUSES,
        "models": list(comparison.models),
        "reference": comparison.reference,
        "metrics": {
            name: {"label": scored[name].label, "direction": direction, "bounded": name in study.findings.bounded}
            for name, direction in study.findings.directions.items()
        },
        "null_model": comparison.null,
        "weightings": comparison.weightings,
        "short_weightings": list(short_names(comparison.weightings).values()),
        "headline": study.label,
        "unit": plural_word(options.unit),
        "level": float(options.level),
        "steps": [name for name, curves in study.models.items() if curves.interpolation == "step"],
    }
    for done, section in enumerate(SECTIONS, start=1):
        tell(done, len(SECTIONS) + 1, section.doing)
        summary |= section.data(study, summary)
    tell(len(SECTIONS) + 1, len(SECTIONS) + 1, "summarised")
    return summary


def _of_several(
    y: Outcomes, models: Mapping[str, Any], causes: Sequence[str], options: ReportOptions
) -> dict[str, Any]:
    """Return a summary for each cause, and of the metrics that have a multi-class form one for all together."""
    if options.history is not None or options.backtest is not None:
        raise InputError("history and backtest are of one cause of events: say which one (cause=)")
    # curves of individuals show all causes at once, and are not repeated for each
    each = replace(options, n_curves=0, ids=None)
    parts = [_of_one(y, models, replace(each, cause=one)) for one in causes]
    losses = [one for one in map(as_metric, one_or_more(options.metric, Metric, "metric")) if isinstance(one, Loss)]
    if losses:
        parts.append(_of_one(y, models, replace(each, cause=ALL_CAUSES, metric=losses, horizons=None)))
    return joined(parts, single_incidences(y, models, parts[0], options.n_curves, labels_of(options.ids, y)))

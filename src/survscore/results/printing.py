"""What of a comparison is printed: scores, paired differences and verdicts; and what users are warned about."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from survscore._validation import (
    FewFollowedWarning,
    FewGroupsWarning,
    InputError,
    InterpolationWarning,
    UndefinedScoreWarning,
    UnequalWeightsWarning,
    plural,
    shown,
    warn,
)
from survscore.engine.evaluation import ScoreArrays
from survscore.engine.inputs import about_interpolation
from survscore.metrics import cause_label, controls_note, metric_label
from survscore.results.estimates import TOO_FEW, Columns, Estimates
from survscore.results.latex import MatrixEntry
from survscore.results.recommendation import is_administrative
from survscore.results.rounding import Number, p_text
from survscore.results.tables import SCOPED, Line, Part, Tables, spread_over

if TYPE_CHECKING:
    from survscore.results.comparison import Comparison
    from survscore.results.long_tables import LongTable, MeanOver

#: Rows of a table that belong together: when, the estimates of each weighting, and at which of their places.
RowsAt = tuple[str, Sequence[Estimates], int]
MOST_TIMES = 4
MOST_BESIDE = 2  # so many times are printed beside the mean over all
MOST_SEGMENTS = 31  # with that of all individuals
SHORT_KINDS = {"ipcw": "IPCW"}
SHORT_NAME = 32  # letters of a weighting's short name, at most


def caption(
    n: int, n_dropped_out: int | None, level: float | None, reference: str = "", *, settings: Mapping[str, Any]
) -> str:
    """Return what holds for all tables of a result; without level, there are no intervals."""
    lost = f", {n_dropped_out} dropped out" if n_dropped_out else ""
    clock = f"; {settings['clock']}" if "clock" in settings else ""
    clock += f"; {settings['sample_weights']} weights" if "sample_weights" in settings else ""
    known = "" if level is None else f"; {100 * level:g} % intervals"
    rows = f" in {plural(settings['rows'], 'row')}" if "rows" in settings else ""
    return f"{plural(n, 'individual')}{rows}{lost}{clock}{reference}{known}"


def verdict_of(row: Mapping[Any, Any], encodes: Collection[str]) -> str:
    """Return the verdict on a row of a table of differences; `encodes` names the models that encode C*."""
    encoded = not {row["model"], row["reference"]}.isdisjoint(encodes)
    return verdict_text(row["verdict"], row["weighting"], encoded=encoded)


def verdict_text(verdict: str, weighting: str = "", *, encoded: bool = False) -> str:
    """Return a verdict; nothing where there is none.

    Administrative ones on models that encode C* are marked, since they refer to individuals with C* >= t only: about
    the others such models may be wrong.

    Examples
    --------
    >>> from survscore.results.printing import verdict_text
    >>> verdict_text("better", "administrative"), verdict_text("better", "administrative", encoded=True)
    ('better', 'better (1)')
    """
    if verdict == "unknown":
        return ""
    scoped = encoded and is_administrative(weighting) and verdict != TOO_FEW
    return f"{verdict}{SCOPED if scoped else ''}"


def no_score_at(missing: int, undefined: Iterable[str]) -> list[str]:
    """Return a note about times without score, if there are any."""
    return [f"no score at {plural(missing, 'time')}: {'; '.join(undefined)}"] if missing else []


def interpolation_note(read: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return how models are read between predicted times, if they differ in that, or it was not given and matters."""
    unasked = any("read_between" in how for how in read.values())
    if not unasked and len({how["interpolation"] for how in read.values()}) < 2:
        return []
    names = {name: "" if list(read) == ["curves"] else f"{shown(name)} " for name in read}
    described = [
        f"{names[name]}{how['interpolation']} ({plural(how['n_times'], 'time')})" for name, how in read.items()
    ]
    return [f"interpolation: {', '.join(described)}"]


def of_comparison(compared: Comparison) -> Tables:
    """Return what a comparison says: the recommendation, and one table for each metric with all weightings.

    The tables have the mean over time, and the times themselves where these are few. Intervals are those of the
    differences, which are what a comparison is about.
    """
    try:  # means over as much time as all have scores
        over: Mapping[str, MeanOver] = compared.means_over(nan="stop")
    except InputError:
        over = {}
    parts: list[Part] = []
    for metric in compared.metrics:
        of_metric = compared.of_metric(metric)
        blocks = [_mean(compared, of_metric, over[metric])] if over else []
        defined = ~np.isnan([scored.scores for scored in of_metric]).all(axis=(0, 1))
        # where all individuals have the same status, as at time 0, there is nothing to see
        differ = defined & np.any([np.ptp(np.nan_to_num(one.scores), axis=0) > 0 for one in of_metric], axis=0)
        chosen = np.flatnonzero(differ if differ.any() else defined)
        if not over or chosen.size <= MOST_BESIDE:
            every = [Estimates(scored, compared.level) for scored in of_metric]
            blocks += [(f"at {compared.times[j]:g}", every, j) for j in spread_over(chosen, MOST_TIMES)]
        notes = [
            note for scored in of_metric for note in _notes(compared, scored, blocks[:1] if over else blocks, over)
        ]
        if chosen.size > (MOST_BESIDE if over else MOST_TIMES):
            notes.append(f"{plural(compared.times.size, 'time')}; .contrasts has all")
        if not parts:
            notes += interpolation_note(of_metric[0].settings["curves"])
            notes += controls_note(compared.metrics, of_metric[0].cause)
            notes += compared.dropout_test.sentences(compared.level) if compared.dropout_test is not None else []
        parts += [_part(block, compared, notes if block is blocks[-1] else []) for block in blocks]
    reference = f"; reference {shown(compared.reference)}" if len(compared.models) > 1 else ""
    lead: list[str] = list(compared.leak_warnings.values())
    if compared.has_recommendation:
        recommendation = compared.recommendation()
        lead = [recommendation.answer(compared.null)]
        last = parts[-1]
        parts[-1] = replace(last, notes=(*last.notes, *recommendation.conditions))
    settings = compared.scored[0].settings
    about = caption(compared.n, compared.n_dropped_out, compared.level, reference, settings=settings)
    return Tables(about, parts, lead)


def _notes(
    compared: Comparison, scored: ScoreArrays, blocks: Sequence[RowsAt], over: Mapping[str, MeanOver]
) -> list[str]:
    """Return what there is to say about one weighting: times without score, the parts of projected scores."""
    missing = compared.times.size - int((~np.isnan(scored.scores).all(axis=0)).sum())
    notes = [f"{scored.weighting}: {note}" for note in no_score_at(missing, scored.undefined)]
    if scored.support.weighted and missing < compared.times.size:
        effective = scored.support.n_effective
        low, high = (f"{number:,.0f}" for number in (np.nanmin(effective), np.nanmax(effective)))
        notes.append(f"{scored.weighting}: effective sample size {low if low == high else f'{low} to {high}'}")
    for when, _, place in blocks:
        weights = over[scored.metric][0] if over else np.eye(scored.scores.shape[1])[place]
        notes += part_notes(scored, compared.models, when, weights)
    effect, r = scored.interpolation, compared.models.index(compared.reference)
    if effect is not None and effect.exceeds(scored.scores, r):
        notes.append("some differences are no larger than the effect of interpolation, which intervals allow for")
    return notes


def part_notes(scored: ScoreArrays, models: Sequence[str], when: str, weights: NDArray[np.float64]) -> list[str]:
    """Return a line for each of the two parts of scores, with their proportions; none where all have C* >= t.

    `weights` are those of the times in a mean, or 1 at one time.
    """
    parts = scored.parts
    if parts is None:
        return []
    weights = weights[: parts.share.size]
    share, means = float(parts.share @ weights), parts.mean(parts.scores, weights)
    lines = []
    for place, (name, proportion) in enumerate((("observed (C* >= t", share), ("projected (C* < t", 1.0 - share))):
        scores = zip(models, means[:, place], strict=True)
        written = [f"{shown(model)} {score:.4f}" for model, score in scores if not np.isnan(score)]
        lines += [f"{when}, {name}, {100 * proportion:.0f} %): {', '.join(written)}"] if written else []
    return lines if share < 1 else []


def of_means(compared: Comparison, over: Mapping[str, MeanOver]) -> Tables:
    """Return the tables of mean scores, one for each metric."""
    parts = []
    for metric in compared.metrics:
        of_metric = compared.of_metric(metric)
        block = _mean(compared, of_metric, over[metric])
        notes = [f"no standard errors: {one.without_error}" for one in block[1] if one.without_error]
        parts.append(_part(block, compared, notes))
    return Tables(f"{100 * compared.level:g} % intervals", parts)


def entries(
    compared: Comparison, over: Mapping[str, MeanOver] | None, unit: str | None
) -> tuple[list[MatrixEntry], Sequence[str]]:
    """Return the mean scores by model and metric, or those at the last time with scores, where there is no mean."""
    rows = []
    for scored in compared.scored:
        if over is None:
            j = compared.usable_place(scored.metric)
            when, estimates = f"at {compared.times[j]:g}", Estimates(scored, compared.level)
        else:
            when, (estimates,), j = _mean(compared, [scored], over[scored.metric])
        block = "; ".join((f"{when} {unit}" if unit else when, scored.weighting))
        for a, model in enumerate(compared.models):
            if not np.isnan(estimates.scores[a, j]):
                number = _number(_at(estimates.score(a), j))
                rows.append(MatrixEntry(block, shown(model), scored.label, scored.direction, number))
    if compared.has_recommendation:
        recommendation = compared.recommendation()
        return rows, [recommendation.headline] if recommendation.encodes else []
    return rows, list(compared.leak_warnings.values())


def of_segments(segments: LongTable) -> Tables:
    """Return the tables of mean scores by segment, one for each metric, weighting and model but the reference."""
    total, compares = segments.total, len(segments.total.models) > 1
    name, every, sign = ("difference", "contrasts", "+") if compares else ("score", "scores", "")
    table: Any = segments.table("difference" if compares else "score")
    parts = []
    for (metric, weighting, model), rows in table.groupby(["metric", "weighting", "model"], sort=False):
        who = f"{shown(model)} to {shown(total.reference)}" if compares else shown(model)
        lines = []
        for row in rows.head(MOST_SEGMENTS).to_dict("records"):
            label = ", ".join(shown(row[column]) or "''" for column in segments.by)
            encoded = bool(total.leak_warnings.keys() & {model, total.reference})
            verdict = verdict_text(row["verdict"], str(weighting), encoded=encoded) if compares else ""
            judged = (p_text(float(row["p_adjusted"])), verdict) if compares else ()
            lines.append(Line((label,), (_number({**row, "estimate": row[name]}, sign),), judged))
        notes = ["p is adjusted for the number of segments"] if compares else []
        if len(rows) > len(lines):
            notes = [f"{len(lines) - 1} of {plural(len(rows) - 1, 'segment')}; .{every} has all", *notes]
        header = (", ".join(map(shown, segments.by)), name, *(("p", "") if compares else ()))
        label = cause_label(metric_label(metric), total.scored[0].cause)
        title = f"{label}, {who}; {_over(rows['from'].iloc[0], rows['to'].iloc[0])}; {weighting}"
        parts.append(Part.of(title, header, lines, notes, "lrrl" if compares else "lr", 1))
    about = caption(total.n, total.n_dropped_out, total.level, settings=total.scored[0].settings)
    return Tables(about, parts, list(total.leak_warnings.values()))


def _over(first: float, last: float) -> str:
    return f"mean over {first:g} to {last:g}"


def _mean(compared: Comparison, of_metric: Sequence[ScoreArrays], over: MeanOver) -> RowsAt:
    weights, ends = over
    return _over(*ends), [Estimates(scored, compared.level, weights) for scored in of_metric], 0


def _part(block: RowsAt, compared: Comparison, notes: list[str]) -> Part:
    """Return the table of a metric at one time, or of its mean: a line for each model under each weighting."""
    when, every, j = block
    r, compares, several_weightings = (
        compared.models.index(compared.reference),
        len(compared.models) > 1,
        len(every) > 1,
    )
    names, encodes = short_names(estimates.scored.weighting for estimates in every), compared.encodes
    first = every[0].scored
    lines = []
    for a, model in enumerate(compared.models):
        name = shown(model)
        for estimates in every:
            if np.isnan(estimates.scores[a, j]) and a != r:  # as the null model where order is all
                continue
            score, weighting = _at(estimates.score(a), j), estimates.scored.weighting
            if compares and several_weightings:  # intervals of differences have the room
                score |= {"lower": math.nan, "upper": math.nan}
            words = (name, names[weighting]) if several_weightings else (name,)
            if not compares:
                lines.append(Line(words, (_number(score),)))
            elif a == r:
                lines.append(Line(words, (_number(score), None), ("", "")))
            else:
                row, encoded = _at(estimates.difference(a, r), j), not {model, compared.reference}.isdisjoint(encodes)
                judged = p_text(row["p_value"]), verdict_text(row["verdict"], weighting, encoded=encoded)
                lines.append(Line(words, (_number(score), _number(row, "+")), judged))
            name = ""
    n_words = 1 + several_weightings
    beside = (f"difference to {shown(compared.reference, 24)}", "p", "") if compares else ()
    align = "l" * n_words + ("rrrl" if compares else "r")
    title = f"{first.label} ({first.direction} is better), {when}{'' if several_weightings else f'; {first.weighting}'}"
    return Part.of(title, (*[""] * n_words, "score", *beside), lines, notes, align, n_words + 1)


def _at(columns: Columns, j: int) -> dict[str, Any]:
    return {name: values[j] for name, values in columns.items()}


def _number(row: Mapping[Any, Any], sign: str = "") -> Number:
    value, lower, upper, se = (float(row[name]) for name in ("estimate", "lower", "upper", "se"))
    return Number(value, lower, upper, se=se, reliable=bool(row["reliable"]), sign=sign)


def undefined_times(results: Iterable[ScoreArrays]) -> str | None:
    """Say which times have no score, and why, by weighting; None where all have one."""
    metrics_by_reason: dict[str, list[str]] = {}
    for scored in results:
        if scored.undefined:
            reasons = ", ".join(f"{plural(count, 'time')} where {reason}" for reason, count in scored.undefined.items())
            metrics_by_reason.setdefault(f"{scored.weighting}: {reasons}", []).append(scored.metric)
    metrics = {metric for of_reason in metrics_by_reason.values() for metric in of_reason}
    sentences = [
        why if len(of_reason) == len(metrics) else f"{why} ({', '.join(of_reason)})"  # where metrics differ, of which
        for why, of_reason in metrics_by_reason.items()
    ]
    return f"scores are NaN under {'; '.join(sentences)}" if sentences else None


def warn_about(results: Iterable[ScoreArrays]) -> None:
    """Warn once of predictions read between few times, times without score, errors from few groups, unequal weights."""
    several = list(results)
    warn_about_interpolation(*(scored.settings["curves"] for scored in several))
    message = undefined_times(several)
    if message:
        warn(message, UndefinedScoreWarning)
    every = [scored.support for scored in several]
    with_errors = [scored.support for scored in several if scored.moments is not None]
    cautions: list[tuple[type[Warning], list[str]]] = [
        (FewGroupsWarning, [caution for support in with_errors for caution in support.cautions()]),
        (FewFollowedWarning, [caution for support in every for caution in support.few_followed()]),
        (UnequalWeightsWarning, [caution for support in with_errors for caution in support.unequal_weights()]),
    ]
    for category, messages in cautions:
        for caution in dict.fromkeys(messages):
            warn(caution, category)


def warn_about_interpolation(*read: Mapping[str, Mapping[str, Any]]) -> None:
    """Warn about models that are read between few predicted times without a given interpolation; see `curves_read`."""
    for sentence in dict.fromkeys(sentence for settings in read for sentence in about_interpolation(settings)):
        warn(sentence, InterpolationWarning)


# Short names for weightings, which say in words all that they are


def short_names(labels: Iterable[str]) -> dict[str, str]:
    """Return for each weighting a short name that distinguishes it from the others.

    Examples
    --------
    >>> from survscore.results.printing import short_names
    >>> list(short_names(["administrative", "ipcw (Kaplan-Meier of the scored outcomes)"]).values())
    ['administrative', 'IPCW']
    """
    parsed = {label: _parsed(label) for label in labels}
    names_of = {}
    for label, (kind, settings) in parsed.items():
        alike = [others for other, others in parsed.values() if other == kind]
        shared = set(settings).intersection(*alike)
        own = ", ".join(setting for setting in settings if setting not in shared)
        name = _cut(SHORT_KINDS.get(kind, kind), SHORT_NAME)
        inside = _cut(own, SHORT_NAME - len("IPCW ()"))
        names_of[label] = f"{name} ({inside})" if len(alike) > 1 and own else name
    names = list(names_of.values())
    return {label: name if names.count(name) == 1 else label for label, name in names_of.items()}


def legend(labels: Iterable[str]) -> list[str]:
    """Return a line for each label that is shortened: what its short name stands for."""
    return [
        f"{name}: {', '.join(_parsed(label)[1]) or label}"
        for label, name in short_names(labels).items()
        if label != name
    ]


def with_short_names(sentences: Sequence[str], labels: Iterable[str]) -> list[str]:
    """Return sentences with short names in place of full ones; the longest first, since one may be part of another."""
    result = list(sentences)
    for label, name in sorted(short_names(labels).items(), key=lambda pair: -len(pair[0])):
        if "(" in label:
            result = [sentence.replace(label, name) for sentence in result]
    return result


def _parsed(label: str) -> tuple[str, list[str]]:
    kind, bracket, settings = label.partition(" (")
    if not bracket or not label.endswith(")"):
        return label, []
    return kind, settings[:-1].split(", ")


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"

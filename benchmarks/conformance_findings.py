"""From a package's answers to its conventions, by holding the numbers against the candidates.

A convention is what makes the number come out right; where none does, the finding is "none of these".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from conformance_candidates import (
    CHOICES,
    FREE,
    RULES,
    CensoringCurve,
    Convention,
    Term,
    administrative,
    all_conventions,
    candidate_scores,
    curve,
    martingale_errors,
    standard_errors,
    terms,
    weighted_mean,
)
from conformance_cases import QUESTIONS, Data

#: Some packages compute in float32. On the data sets, candidates differ by more than ten times as much.
TOLERANCE = 1e-5
NONE = "none of these"
NOT_OFFERED = "not offered"
UNTRAINED = ("page", "ties", "other ties")
TRAINED = ("ties, G of training data", "other ties, G of training data")
NOBODY_LEFT = "last is censored, at that time"
SCORED = "scored data"
#: findings, and the questions that tell
ENDS = {
    "last_censored": NOBODY_LEFT,
    "last_censored_later": "last is censored, later",
    "last_event": "last has the event, at that time",
    "last_event_later": "last has the event, later",
    "event_and_censoring_last": "event and censoring at the last time",
    "training_ends_early": "training data end early",
}

Answers = dict[str, dict[str, Any]]


def values_of(answer: dict[str, Any]) -> list[float] | None:
    """Return an answer's numbers, if it has any; R says NA where there is none."""
    values = answer.get("values")
    return None if values is None else [math.nan if value in (None, "NA") else float(value) for value in values]


def same(values: Sequence[float] | None, others: Sequence[float]) -> bool:
    """Return whether all numbers agree."""
    return (
        values is not None
        and len(values) == len(others)
        and all(math.isfinite(v) and abs(v - w) < TOLERANCE for v, w in zip(values, others, strict=True))
    )


def matching(answers: Answers) -> list[Convention]:
    """Return the conventions under which all scores of the first questions come out.

    Kaplan-Meier weights of the scored data sum to n as long as anybody is event-free, so that two divisors are the same
    until then. After that they are not: who gives a number there tells more.
    """
    found = [convention for convention in all_conventions() if _fits(answers, convention, UNTRAINED + TRAINED)]
    return [convention for convention in found if _fits(answers, convention, (NOBODY_LEFT,))] or found


def _fits(answers: Answers, convention: Convention, labels: Sequence[str]) -> bool:
    """Return whether there are numbers, and all of them are those of the convention."""
    asked = {label: values for label in labels if (values := values_of(answers[label])) is not None}
    return bool(asked) and all(same(values, candidate_scores(label, convention)) for label, values in asked.items())


def choice(conventions: list[Convention], name: str) -> str:
    """Return what all matching conventions have in common in a field."""
    found = {getattr(convention, name) for convention in conventions}
    return " or ".join(option for option in CHOICES[name] if option in found) or NONE


def fitted_on(answers: Answers, conventions: list[Convention], training: str) -> str:
    """Return on whom G is fitted, and whether that can be chosen."""
    if not conventions:
        return NONE
    offered = [values_of(answers[label]) for label in TRAINED]
    if training == "not taken" or None in offered or choice(conventions, "source") != "training data":
        return SCORED
    return "training data" if training == "must be given" else f"{SCORED}, or training data"


def implied_weight(value: float, people: list[Term], group: list[Term], divisor: str) -> float:
    """Return the one weight of a group that makes the score come out, the others' weights being as they should."""
    rest = [term for term in people if term not in group]
    total, losses = sum(term.weight * term.loss for term in rest), sum(term.loss for term in group)
    if divisor == "sum of weights":
        weights = sum(term.weight for term in rest)
        return (value * weights - total) / (losses - value * len(group))
    number = len(people) if divisor == "n" else sum(term.state != "unknown" for term in people)
    return (value * number - total) / losses


def at_the_end(label: str, answers: Answers, convention: Convention | None) -> str:
    """Return what becomes of a score where follow-up ends, or where G is zero."""
    answer, data = answers[label], QUESTIONS[label].data
    values = values_of(answer)
    if values is None or not math.isfinite(values[0]):
        return _without_number(answer)
    if convention is None:
        return NONE
    people = terms(data, 0, convention)
    infinite = [term for term in people if math.isinf(term.weight)]
    if infinite:
        weight = implied_weight(values[0], people, infinite, convention.divisor)
        return _instead_of_infinite(weight, curve(data, convention))
    if not same(values, [weighted_mean(people, convention.divisor)]):
        return NONE
    return "events alone" if _only_events_left(data, people) else "a score"


def _without_number(answer: dict[str, Any]) -> str:
    values = values_of(answer)
    if values is None:
        return NOT_OFFERED if NOT_OFFERED in answer else "error"
    word = "NaN" if math.isnan(values[0]) else "infinite"
    return f"{word}, with a warning" if answer["warned"] else word


def _only_events_left(data: Data, people: list[Term]) -> bool:
    """Return whether the last of all was censored, and nobody counts as event-free: the weights lack their part."""
    last = max(data.time)
    censored = any(last == T and not D for T, D in zip(data.time, data.event, strict=True))
    return censored and last <= data.times[0] and all(term.state != FREE for term in people)


def _instead_of_infinite(weight: float, G: CensoringCurve) -> str:
    """Return in words what somebody counts who should count infinitely."""
    if abs(weight) < 100 * TOLERANCE:
        return "left out"
    if abs(weight * G.smallest_positive() - 1) < 100 * TOLERANCE:
        return "last weight kept"
    return f"weight {weight:.4g}"


def largest_weight(answers: Answers, convention: Convention | None) -> str:
    """Return by how much weights are bounded, if they are."""
    label = "small G"
    values, data = values_of(answers[label]), QUESTIONS[label].data
    if values is None or convention is None:
        return NONE if values is not None else "error"
    people = terms(data, 0, convention)
    largest = max(term.weight for term in people)
    group = [term for term in people if term.weight == largest]
    weight = implied_weight(values[0], people, group, convention.divisor)
    return "none" if abs(weight / largest - 1) < 100 * TOLERANCE else f"{weight:.4g}"


def first_match(values: Sequence[float], ways: dict[str, Callable[[], Sequence[float]]]) -> str:
    """Return the name of the first way to compute the numbers."""
    return next((way for way, compute in ways.items() if same(values, compute())), NONE)


def integrated(answers: Answers) -> str:
    """Return by which rule the integrated score comes from the package's own scores."""
    answer, scores, times = answers["integrated"], values_of(answers["ties"]), QUESTIONS["ties"].data.times
    values = values_of(answer)
    if values is None or scores is None:
        return "none" if NOT_OFFERED in answer else "error"
    return first_match(values, {rule: partial(_apply, rule, scores, times) for rule in RULES})


def _apply(rule: str, scores: list[float], times: list[float]) -> list[float]:
    return [float(RULES[rule](scores, times))]


def errors(answers: Answers, convention: Convention | None) -> str:
    """Return what the standard errors allow for."""
    answer, data = answers["standard errors"], QUESTIONS["standard errors"].data
    values = values_of(answer)
    if values is None:
        return "none" if NOT_OFFERED in answer else "error"
    if convention is None:
        return NONE
    own = replace(convention, source=SCORED)
    ways = {
        "G estimated (Kaplan-Meier)": partial(standard_errors, data, own, known=False),
        "G estimated (Nelson-Aalen)": partial(martingale_errors, data),
        "as if G were known": partial(standard_errors, data, own, known=True),
    }
    return first_match(values, ways)


def known_end(answers: Answers) -> dict[str, str]:
    """Return whether C* can be used, how those with T = t = C* count, and what becomes of drop-outs."""
    answer, with_dropouts = answers["administrative"], answers["administrative with drop-outs"]
    values, data = values_of(answer), QUESTIONS["administrative"].data
    if values is None:
        offered = "no" if NOT_OFFERED in answer else "error"
        return {"administrative": offered, "censored_at_t_and_end": NOT_OFFERED, "dropouts": NOT_OFFERED}
    ways = {
        FREE: partial(administrative, data, free_at_end=True, weighted=False),
        "left out": partial(administrative, data, free_at_end=False, weighted=False),
    }
    at_end = first_match(values, ways)
    return {"administrative": "yes", "censored_at_t_and_end": at_end, "dropouts": _of_dropouts(with_dropouts)}


def _of_dropouts(answer: dict[str, Any]) -> str:
    values, data = values_of(answer), QUESTIONS["administrative with drop-outs"].data
    if values is None:
        return "refused"
    ways = {
        "weighted for": partial(administrative, data, free_at_end=True, weighted=True),
        "left out": partial(administrative, data, free_at_end=True, weighted=False),
    }
    return first_match(values, ways)


def ties_in_censoring(answers: Answers) -> str:
    """Return who leaves G first, of a package that has a Kaplan-Meier estimate but no score."""
    values = values_of(answers["censoring"])
    ways = {ties: partial(_censoring, ties) for ties in CHOICES["ties"]}
    return NOT_OFFERED if values is None else first_match(values, ways)


def _censoring(ties: str) -> list[float]:
    data = QUESTIONS["censoring"].data
    G = CensoringCurve(data.time, data.event, ties)
    return [G.at(t) for t in data.times]


def findings(report: dict[str, Any]) -> dict[str, str]:
    """Return all conventions of a package, in short words.

    Parameters
    ----------
    report : dict
        As `conformance_packages.report` returns it.
    """
    answers: Answers = report["answers"]
    conventions = matching(answers)
    convention = conventions[0] if conventions else None
    source = fitted_on(answers, conventions, report["training data"])
    return {
        **{name: choice(conventions, name) for name in CHOICES if name != "source"},
        "fitted_on": source,
        **{name: at_the_end(label, answers, convention) for name, label in ENDS.items()},
        **({"training_ends_early": NOT_OFFERED} if source == SCORED else {}),
        "largest_weight": largest_weight(answers, convention),
        "integrated": integrated(answers),
        "standard_errors": errors(answers, convention),
        **known_end(answers),
    }


def numbers(answers: Answers) -> dict[str, Any]:
    """Return what the package said, rounded: the evidence."""
    found: dict[str, Any] = {}
    for label, answer in answers.items():
        values = values_of(answer)
        if values is not None:
            found[label] = [round(value, 6) if math.isfinite(value) else str(value) for value in values]
        elif "error" in answer:
            found[label] = f"error: {answer['error']}"
    return found

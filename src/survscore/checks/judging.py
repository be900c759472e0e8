"""From a run and rules to findings: which numbers a rule is about, and whether they are as it says."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

from survscore._validation import shown
from survscore.causes import ALL_CAUSES
from survscore.checks.lookup import Estimate, Key, Numbers, When
from survscore.checks.references import Target, resolve_reference
from survscore.checks.rules import EVERY, OF_DIFFERENCES, Rule, Severity, nearest
from survscore.checks.runs import ALL, Run
from survscore.inference.intervals import limits
from survscore.results.recommendation import is_administrative
from survscore.weighting import Projected

Verdict = Literal["passed", "failed", "undefined", "skipped"]
ORDER = ("failed", "undefined", "skipped", "passed")


@dataclass(frozen=True)
class Finding:
    """What came of a check, for one model, metric and segment.

    Attributes
    ----------
    number : int
        Of the check in its file.
    check : str
        Its name.
    segment : dict of str to str
        Of which segment; empty for all individuals.
    metric, weighting, model : str
        Of what.
    reference : str or None
        What it was compared with, in words.
    when : str
        At which time, or over which the mean is, in words.
    quantity : str
        Which number was checked.
    value : float
        That number; NaN where there is none.
    estimate, lower, upper : float
        The score, difference or skill behind it, with its interval.
    n_events : float
        On how many events it rests.
    threshold : str
        What it must be, in words.
    verdict : {"passed", "failed", "undefined", "skipped"}
        What came of it.
    severity : {"error", "warning"}
        Whether a failure counts.
    reason : str
        Why there is no number, why it was skipped, or what the verdict does not cover; else empty.
    recommendation : str
        What `Comparison.recommendation` says about the model and the reference, where the verdict goes by it.
    cause : str
        Under competing risks the cause of events that the number is of, ``"all"`` for all together; else empty.
    """

    number: int
    check: str
    segment: dict[str, str]
    metric: str
    weighting: str
    model: str
    reference: str | None
    when: str
    quantity: str
    value: float
    estimate: float
    lower: float
    upper: float
    n_events: float
    threshold: str
    verdict: Verdict
    severity: Severity
    reason: str
    recommendation: str = ""
    cause: str = ""

    @property
    def broken(self) -> bool:
        """Whether the rule does not hold, or can't be known to."""
        return self.verdict in ("failed", "undefined")

    @property
    def fails(self) -> bool:
        """Whether it is broken, and that counts."""
        return self.broken and self.severity == "error"

    @property
    def warns(self) -> bool:
        """Whether it is broken, and that is only told."""
        return self.broken and self.severity == "warning"

    @property
    def whose(self) -> str:
        """The segment in words."""
        return ", ".join(f"{column} = {value}" for column, value in self.segment.items()) or ALL

    @property
    def what(self) -> str:
        """What the number is of, in words."""
        against = f" against {self.reference}" if self.reference is not None else ""
        return f"{self.metric} of {self.model}{_for_cause(self.cause)}{against}, {self.when}"


def check(run: Run, rules: Sequence[Rule], history: Sequence[Run] | None = None) -> list[Finding]:
    """Check a run by rules.

    Parameters
    ----------
    run : Run
        The scores to check.
    rules : sequence of Rule
        From `read_rules` or `parse_rules`.
    history : sequence of Run, optional
        Earlier runs, for rules that compare with one; the oldest first. Those of another cause of events are passed
        over.

    Returns
    -------
    list of Finding
        Those that count first, each as they stand in the rules.

    Examples
    --------
    >>> import survscore as ss
    >>> from survscore.checks import Run, check, parse_rules
    >>> from survscore.simulate import ConstantHazardStudy
    >>> sample = ConstantHazardStudy().sample(500, seed=1)
    >>> curves = {"truth": sample.survival(range(1, 91))}
    >>> compared = ss.compare(sample.outcomes, curves, weighting="administrative", times=range(10, 81, 10))
    >>> rules = parse_rules({"check": [{"model": "truth", "value": "upper", "below": 0.25}]})
    >>> [(finding.verdict, round(finding.value, 3)) for finding in check(Run.of(compared), rules)]
    [('passed', 0.218)]
    """
    numbers = Numbers(run)
    earlier = None if history is None else [one for one in history if one.id != run.id]
    stored: dict[str, Numbers] = {}
    findings = [finding for rule in rules for finding in _findings(rule, numbers, earlier, stored)]
    return sorted(findings, key=lambda one: (not one.fails, not one.warns, ORDER.index(one.verdict)))


def exit_code(findings: Sequence[Finding]) -> int:
    """Return 1 if some check failed that counts, and 0 otherwise."""
    return int(any(finding.fails for finding in findings))


def told(findings: Sequence[Finding]) -> str:
    """Return in one line how many checks failed."""
    failed, warned = sum(one.fails for one in findings), sum(one.warns for one in findings)
    skipped = sum(one.verdict == "skipped" for one in findings)
    checks = "check" if len(findings) == 1 else "checks"
    parts = [f"{failed} of {len(findings)} {checks} failed"]
    parts += [f"{warned} {'warning' if warned == 1 else 'warnings'}"] if warned else []
    parts += [f"{skipped} skipped"] if skipped else []
    return ", ".join(parts)


def _findings(
    rule: Rule, numbers: Numbers, earlier: Sequence[Run] | None, stored: dict[str, Numbers]
) -> Iterator[Finding]:
    run = numbers.run
    if not _is_about(rule, run):
        yield _of_another_cause(rule, run)
        return
    target = resolve_reference(rule, run, earlier)
    weighting, segments = _weighting(rule, run, target), numbers.segments(rule)
    models = _models(rule, run, target)
    for metric, segment, model in product(_metrics(rule, run), segments, models):
        yield _finding(rule, numbers, Key(segment, metric, weighting, model), target, stored)


def _finding(rule: Rule, numbers: Numbers, key: Key, target: Target | None, stored: dict[str, Numbers]) -> Finding:
    when, concluded = numbers.when(rule, key), ""
    score = numbers.score(key, when)
    reason = "" if score is not None else f"there is no such score {when.told}"
    estimate = Estimate() if score is None else score
    if target is not None and score is not None:
        estimate, reason = _against(rule, numbers, key, when, score, target, stored)
    value = _number(rule.value, estimate)
    direction = numbers.run.direction(key.metric)
    worse_if_higher = direction == "lower" or rule.threshold.kind != "worse_by"
    counted = _turned(rule.value, estimate, value, worse_if_higher)
    if not worse_if_higher:
        value = -counted
    verdict: Verdict = "passed" if rule.threshold.allows(counted) else "failed"
    events = math.nan if score is None else score.n_events
    if rule.min_events is not None and not events >= rule.min_events:
        verdict = "skipped" if rule.on_too_few == "skip" else "failed"
        many = "unknown" if math.isnan(events) else f"{events:.6g}"
        reason = f"too few events: {many}, of the {rule.min_events:g} it takes"
    elif target is not None and target.absent:
        verdict, reason = "skipped", f"the history holds no earlier run{_for_cause(numbers.run.cause)}"
    elif math.isnan(value):
        verdict = "undefined" if rule.undefined == "error" else "skipped"
        reason = reason or _why_undefined(when)
    elif target is not None and _is_open(rule, target):
        undecidable, reason, concluded = _concluded(numbers, key, target, when)
        if undecidable:
            verdict = "undefined" if rule.undefined == "error" else "skipped"
    return Finding(
        number=rule.number, check=rule.label, segment=numbers.told_segment(key.segment), metric=key.metric,
        weighting=key.weighting, model=key.model, reference=None if target is None else target.told, when=when.told,
        quantity=_quantity(rule.value, worse_if_higher), value=value, estimate=estimate.value, lower=estimate.lower,
        upper=estimate.upper, n_events=events, threshold=rule.threshold.told(direction), verdict=verdict,
        severity=rule.severity, reason=reason, recommendation=concluded, cause=numbers.run.cause,
    )  # fmt: skip


def _is_about(rule: Rule, run: Run) -> bool:
    """Whether a rule is about scores of the run's cause; raise where it names a cause that there is not."""
    if rule.cause is None:
        return True
    if not run.cause:
        raise rule.wrong(f"cause {shown(rule.cause)!r}: the results are not of a cause of competing risks")
    if rule.cause not in (run.cause, *run.known_causes) and run.known_causes:
        raise rule.wrong(f"cause {shown(rule.cause)!r} is not in the results; {nearest(rule.cause, run.known_causes)}")
    return rule.cause == run.cause


def _of_another_cause(rule: Rule, run: Run) -> Finding:
    """Return the finding of a rule about another cause than that of the run: it is skipped."""
    when = When(rule.at) if rule.at is not None else None if rule.range is None else When(*rule.range)
    reference = None if rule.reference is None else rule.reference.name
    metrics = rule.metrics or ("brier",)
    return Finding(
        number=rule.number, check=rule.label, segment={}, metric=", ".join(metrics), weighting=rule.weighting or "",
        model="all models" if EVERY in rule.models else ", ".join(rule.models), reference=reference,
        when="mean over time" if when is None else when.told, quantity=rule.value, value=math.nan, estimate=math.nan,
        lower=math.nan, upper=math.nan, n_events=math.nan, threshold=rule.threshold.told(run.direction(metrics[0])),
        verdict="skipped", severity=rule.severity, reason=f"the scores are{_for_cause(run.cause)}",
        cause=rule.cause or "",
    )  # fmt: skip


def _for_cause(cause: str) -> str:
    """Return of which cause something is, to follow its name; nothing without competing risks."""
    if cause == ALL_CAUSES:
        return " for all causes"
    return f" for cause {shown(cause)}" if cause else ""


def _is_open(rule: Rule, target: Target) -> bool:
    """Whether a rule is about the difference of two models, and leaves open by which weighting."""
    return rule.weighting is None and not target.is_run and rule.value in OF_DIFFERENCES


def _concluded(numbers: Numbers, key: Key, target: Target, when: When) -> tuple[bool, str, str]:
    """Return whether a difference is too uncertain to be checked, why, and the recommendation's sentence."""
    if is_administrative(key.weighting):
        return False, "by the administrative score alone, which refers to individuals with C* >= t only", ""
    if not numbers.has_conclusions(key):  # of a segment, or by a metric that is no loss
        return False, "", ""
    found = numbers.conclusion(key, target.name, when)
    if found is None:
        return True, f"there is no recommendation {when.told}; a rule with a weighting needs none", ""
    reasons = {"depends": "it depends on individuals not yet followed", "too few": "too few are followed"}
    return found.verdict in reasons, reasons.get(found.verdict, ""), found.sentence


def _why_undefined(when: When) -> str:
    if when.stop is None:
        return "it is not defined"
    return "it is not defined, as where some time of the range has no score"


def _quantity(name: str, worse_if_higher: bool) -> str:
    """Return which number is checked: the limits change places where higher values are better."""
    if worse_if_higher:
        return name
    return {"difference-lower": "difference-upper", "difference-upper": "difference-lower"}.get(name, name)


def _turned(name: str, estimate: Estimate, value: float, worse_if_higher: bool) -> float:
    """Return the number as how much worse a model is: turned round where higher values are better."""
    if worse_if_higher:
        return value
    return -_number(_quantity(name, worse_if_higher), estimate)


def _number(name: str, estimate: Estimate) -> float:
    if name.endswith("upper"):
        return estimate.upper
    return estimate.lower if name.endswith("lower") else estimate.value


def _against(
    rule: Rule, numbers: Numbers, key: Key, when: When, score: Estimate, target: Target, stored: dict[str, Numbers]
) -> tuple[Estimate, str]:
    """Return the difference or skill that a rule asks for, and why there is none."""
    missing = Estimate()
    if target.absent:
        return missing, ""
    if target.run is not None:
        if target.run.id not in stored:
            stored[target.run.id] = Numbers(target.run)
        other, reason = stored[target.run.id].stored_score(key, numbers.told_segment(key.segment), when)
        if other is None:
            return missing, reason
        return _relative(rule, _unpaired(score, other, numbers.run.level), other), ""
    reference = key.of(target.name)
    other = numbers.score(reference, when)
    if other is None:
        return missing, f"there is no score of {target.name} {when.told}"
    if rule.value == "skill":
        skill = 1.0 - score.value / other.value if other.value > 0 else math.nan
        return Estimate(skill, n_events=score.n_events), ""
    difference = numbers.difference(key, target.name, when)
    if difference is None:
        known = ", ".join(repr(shown(one)) for one in numbers.references)
        raise rule.wrong(
            f"the results hold no difference of {shown(key.model)!r} to {shown(target.name)!r} {when.told}"
            + (f", only differences to {known}" if known else "")
            + "; compare with --reference"
        )
    return _relative(rule, difference, other), ""


def _unpaired(score: Estimate, other: Estimate, level: float) -> Estimate:
    """Return the difference of scores of different data, which are independent."""
    difference, se = score.value - other.value, math.hypot(score.se, other.se)
    lower, upper = limits(difference, se, level)
    return Estimate(difference, se, lower, upper, score.n_events)


def _relative(rule: Rule, difference: Estimate, other: Estimate) -> Estimate:
    if rule.value != "relative-difference":
        return difference
    relative = difference.value / other.value if other.value != 0 else math.nan
    return Estimate(relative, n_events=difference.n_events)  # the reference varies too: no interval by division


def _metrics(rule: Rule, run: Run) -> list[str]:
    known = run.names("metric")
    if rule.metrics is None:
        if "brier" in known or len(known) == 1:
            return ["brier" if "brier" in known else known[0]]
        raise rule.wrong(f"metric must be given; {nearest('', known)}")
    chosen = _named(rule, "metric", rule.metrics, known)
    if rule.value == "skill":
        higher = [name for name in chosen if run.direction(name) != "lower"]
        if higher and EVERY not in rule.metrics:
            raise rule.wrong(f"skill is of metrics of which lower values are better, not of {higher[0]!r}")
        chosen = [name for name in chosen if name not in higher]
    if rule.threshold.kind == "worse_by":
        aimed = [name for name in chosen if run.direction(name) not in ("lower", "higher")]
        if aimed and EVERY not in rule.metrics:
            raise rule.wrong(f"worse_by is of metrics of which lower or higher values are better, not of {aimed[0]!r}")
        chosen = [name for name in chosen if name not in aimed]
    return chosen


def _models(rule: Rule, run: Run, target: Target | None) -> list[str]:
    """Return the models a rule is about; all are all but the null model and the reference."""
    known = run.names("model")
    reference = None if target is None or target.is_run else target.name
    chosen = _named(rule, "model", rule.models, known)
    if EVERY not in rule.models:
        if reference in chosen:
            raise rule.wrong(f"model and reference are both {shown(reference)!r}")
        return chosen
    rest = [name for name in chosen if name not in (run.null, reference)]
    if not rest:
        raise rule.wrong("there is no model but the reference and the null model; name it")
    return rest


def _named(rule: Rule, key: str, names: Sequence[str], known: list[str]) -> list[str]:
    for name in names:
        if name != EVERY and name not in known:
            raise rule.wrong(f"{key} {shown(name)!r} is not in the results; {nearest(name, known)}")
    return list(known) if EVERY in names else list(names)


def _weighting(rule: Rule, run: Run, target: Target | None) -> str:
    """Return the weighting of a rule: by default the projected one for differences between models, else the first."""
    known = run.names("weighting")
    if rule.weighting is None:
        projected = [one for one in known if one.split(maxsplit=1)[:1] == [Projected.name]]
        return projected[0] if projected and target is not None and not target.is_run else known[0]
    matching = [one for one in known if one == rule.weighting] or [
        one for one in known if one.split(maxsplit=1)[:1] == [rule.weighting]
    ]
    if len(matching) > 1:
        told = " and ".join(repr(shown(one)) for one in matching)
        raise rule.wrong(f"weighting {shown(rule.weighting)!r} is the first word of {told}; name one in full")
    if not matching:
        firsts: list[Any] = [word for one in known for word in one.split(maxsplit=1)[:1]]
        raise rule.wrong(
            f"weighting {shown(rule.weighting)!r} is not in the results; {nearest(rule.weighting, [*firsts, *known])}"
        )
    return matching[0]

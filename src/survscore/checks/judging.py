"""From a run and rules to findings: which numbers a rule is about, and whether they are as it says."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal

from survscore._validation import shown
from survscore.causes import ALL_CAUSES
from survscore.checks.rules import LAST, OF_DIFFERENCES, OF_RECOMMENDATIONS, Rule, Severity, nearest
from survscore.checks.runs import Row, Run, When, same
from survscore.inference.intervals import limits
from survscore.results.long_tables import ALL
from survscore.results.recommendation import is_administrative
from survscore.weighting import Projected

Verdict = Literal["passed", "failed", "undefined", "skipped"]
ORDER = ("failed", "undefined", "skipped", "passed")
OPEN = {"depends": "it depends on individuals not yet followed", "too few": "too few are followed"}
OPPOSITE = {"better": "worse", "worse": "better"}


@dataclass(frozen=True)
class Finding:
    """What came of a check, for one model, metric and segment.

    Attributes
    ----------
    number, check : int, str
        Of the check in its file, and its name.
    segment : str
        Of which segment, such as "country = DE"; empty for all individuals.
    metric, weighting, model, reference, when : str
        Of what, compared with what (None: nothing), and at which time or over which the mean is, in words.
    quantity : str
        Which number was checked.
    value : float
        That number; NaN where there is none.
    estimate, lower, upper : float
        The score, difference, skill or ratio behind it, with its interval.
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
    segment: str = ""
    metric: str = "brier"
    weighting: str = ""
    model: str = "all models"
    reference: str | None = None
    when: str = "mean over time"
    quantity: str = "score"
    value: float = math.nan
    estimate: float = math.nan
    lower: float = math.nan
    upper: float = math.nan
    n_events: float = math.nan
    threshold: str = ""
    verdict: Verdict = "skipped"
    severity: Severity = "error"
    reason: str = ""
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
        """Whether it is broken, and that is only reported."""
        return self.broken and self.severity == "warning"

    @property
    def whose(self) -> str:
        """The segment in words."""
        return self.segment or ALL

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
    earlier = None if history is None else [one for one in history if one.id != run.id]
    findings = [finding for rule in rules for finding in _findings(rule, run, earlier)]
    return sorted(findings, key=lambda one: (not one.fails, not one.warns, ORDER.index(one.verdict)))


def exit_code(findings: Sequence[Finding]) -> int:
    """Return 1 if some check failed that counts, and 0 otherwise."""
    return int(any(finding.fails for finding in findings))


def summary(findings: Sequence[Finding]) -> str:
    """Return in one line how many checks failed."""
    failed, warned = sum(one.fails for one in findings), sum(one.warns for one in findings)
    skipped = sum(one.verdict == "skipped" for one in findings)
    parts = [f"{failed} of {len(findings)} {'check' if len(findings) == 1 else 'checks'} failed"]
    parts += [f"{warned} {'warning' if warned == 1 else 'warnings'}"] if warned else []
    parts += [f"{skipped} skipped"] if skipped else []
    return ", ".join(parts)


#: In place of a run: the history has none yet to compare with.
ABSENT = Run("", "", "", {}, {})


class _UndefinedError(Exception):
    """Why there is no number."""


@dataclass(frozen=True)
class _Subject:
    """Whose number a finding is about, when, and compared with which model or earlier run."""

    run: Run
    metric: str
    weighting: str
    model: str
    segment: str
    when: When
    reference: str | None = None
    earlier: Run | None = None

    def row(self, model: str, reference: str = "", table: str = "scores") -> Row | None:
        """Return the row about a model, or about a model and a reference."""
        key = (table, self.metric, self.weighting, model, reference, self.segment)
        return self.run.index.get(key, {}).get(self.when)

    def recommendation(self) -> tuple[str, str]:
        """Return what is recommended about the model and the reference, and its sentence; empty where there is none."""
        reference = str(self.reference)
        row = self.row(self.model, reference, "recommendations")
        if row is not None:
            return row["verdict"], row["sentence"]
        row = self.row(reference, self.model, "recommendations")
        if row is None:
            return "", ""
        return OPPOSITE.get(row["verdict"]) or row["verdict"], row["sentence"]


def _findings(rule: Rule, run: Run, history: Sequence[Run] | None) -> Iterator[Finding]:
    about = Finding(
        rule.number, rule.label, metric=", ".join(rule.metric or ("brier",)), weighting=rule.weighting or "",
        reference=rule.reference, quantity=rule.value, threshold=rule.threshold(), severity=rule.severity,
        cause=rule.cause or run.cause,
    )  # fmt: skip
    if not _is_about(rule, run):
        yield replace(about, reason=f"the scores are{_for_cause(run.cause)}")
        return
    reference, earlier = _reference(rule, run, history)
    paired = reference is not None and earlier is None
    for name in rule.model or ():
        _known(rule, "model", name, run.names("model"))
    models = rule.model or [one for one in run.names("model") if one != run.null and not (paired and one == reference)]
    if not models:
        raise rule.wrong("there is no model but the reference and the null model; name it")
    if paired and reference in models:
        raise rule.wrong(f"model and reference are both {shown(reference)!r}")
    if rule.value == "hazard-ratio":  # of late starters, whatever the model
        models = models[:1]
    weighting = _weighting(rule, run, projected=paired and rule.value != "skill")
    named = reference
    if earlier is not None:
        named = f"run {earlier.id or reference}" if earlier.id or reference != LAST else "the last run"
    for metric, segment, model in product(_metrics(rule, run), _segments(rule, run), models):
        when = _chosen_when(rule, run, metric, weighting, model, segment)
        subject = _Subject(run, metric, weighting, model, segment, when, reference, earlier)
        of = replace(
            about, segment=segment, metric=metric, weighting=weighting, reference=named, when=_words(when),
            model=about.model if rule.value == "hazard-ratio" else model, cause=run.cause,
        )  # fmt: skip
        yield _judged(rule, subject, of)


def _judged(rule: Rule, subject: _Subject, finding: Finding) -> Finding:
    """Return the finding about one subject, with its number and verdict."""
    run, row = subject.run, subject.row(subject.model)
    higher = rule.worse_by is not None and run.direction(subject.metric) != "lower"
    events = math.nan if row is None else row["n_events"]
    finding = replace(finding, n_events=events, threshold=rule.threshold(higher_is_better=higher))
    if higher:  # the limits change places
        turned = {"difference-lower": "difference-upper", "difference-upper": "difference-lower"}
        finding = replace(finding, quantity=turned.get(rule.value, rule.value))
    if rule.min_events and not events >= rule.min_events:
        many = "unknown" if math.isnan(events) else f"{events:.6g}"
        return replace(finding, reason=f"too few events: {many}, of the {rule.min_events:g} it takes")
    if subject.earlier is ABSENT:
        return replace(finding, reason=f"the history holds no earlier run{_for_cause(run.cause)}")
    finding = replace(finding, verdict="undefined")
    if rule.value in ("recommendation", "leak"):
        return _recommended(rule, subject, finding)
    try:
        value, lower, upper = _estimate(rule, subject, row)
    except _UndefinedError as missing:
        return replace(finding, reason=str(missing))
    checked = {"upper": upper, "lower": lower}.get(finding.quantity.rpartition("-")[2], value)
    finding = replace(finding, value=checked, estimate=value, lower=lower, upper=upper)
    if math.isnan(checked):
        whole = subject.when[0] != subject.when[1]
        return replace(finding, reason="it is not defined" + ", as where some time of the range has no score" * whole)
    finding = replace(finding, verdict="passed" if rule.allows(-checked if higher else checked) else "failed")
    differs = rule.value in OF_DIFFERENCES and subject.earlier is None
    return _by_recommendation(subject, finding) if differs and rule.weighting is None else finding


def _by_recommendation(subject: _Subject, finding: Finding) -> Finding:
    """Return the finding about two models' difference under no weighting in particular, with what is recommended."""
    if is_administrative(subject.weighting):
        reason = "by the administrative score alone, which refers to individuals with C* >= t only"
        return replace(finding, reason=reason)
    if subject.segment or all(one["metric"] != subject.metric for one in subject.run.tables["recommendations"]):
        return finding
    code, sentence = subject.recommendation()
    if not code:
        reason = f"there is no recommendation {_words(subject.when)}; a rule with a weighting needs none"
        return replace(finding, verdict="undefined", reason=reason)
    finding = replace(finding, reason=OPEN.get(code, ""), recommendation=sentence)
    return replace(finding, verdict="undefined") if code in OPEN else finding


def _recommended(rule: Rule, subject: _Subject, finding: Finding) -> Finding:
    """Return the finding of a rule about what is recommended, or about a model that may encode the entry date."""
    if rule.value == "recommendation":
        code, sentence = subject.recommendation()
        if code:
            verdict: Verdict = "passed" if code in rule.verdict else "undefined" if code in OPEN else "failed"
            return replace(finding, verdict=verdict, reason=OPEN.get(code, f"it is {code}"), recommendation=sentence)
    else:
        rows = [
            row
            for row in _when_recommended(subject, subject.run)
            if subject.model in (row["model"], row["reference"]) and row["metric"] == subject.metric
        ]
        for row in rows:
            if subject.model in row["encodes"]:
                reason = "it probably encodes the entry date"
                return replace(finding, verdict="failed", reason=reason, recommendation=row["sentence"])
        if rows:
            return replace(finding, verdict="passed")
    return replace(finding, reason="there is no recommendation, which takes administrative and projected scores")


def _when_recommended(subject: _Subject, run: Run) -> Iterator[Row]:
    """Yield the recommendations of a run at the time, which are about all individuals."""
    rows = () if subject.segment else run.tables["recommendations"]
    return (row for row in rows if same((row["from"], row["to"])) == subject.when)


def _estimate(rule: Rule, subject: _Subject, row: Row | None) -> tuple[float, float, float]:
    """Return the number that a rule is about, with its interval."""
    if rule.value == "hazard-ratio":
        return _hazard_ratio(subject)
    if row is None:
        raise _UndefinedError(f"there is no such score {_words(subject.when)}")
    if subject.earlier is not None:  # of different data, so that nothing is paired
        other = _earlier_row(subject, subject.earlier)
        difference = row["score"] - other["score"]
        return (difference, *limits(difference, math.hypot(row["se"], other["se"]), subject.run.level))
    if subject.reference is None:
        return row["score"], row["lower"], row["upper"]
    if rule.value == "skill":
        against = subject.row(subject.reference)
        known = against is not None and against["score"] > 0
        return (1.0 - row["score"] / against["score"] if against and known else math.nan), math.nan, math.nan
    found = subject.row(subject.model, subject.reference, "contrasts")
    if found is not None:
        return found["difference"], found["lower"], found["upper"]
    turned = subject.row(subject.reference, subject.model, "contrasts")
    if turned is not None:
        return -turned["difference"], -turned["upper"], -turned["lower"]
    there = ", ".join(dict.fromkeys(repr(shown(one["reference"])) for one in subject.run.tables["contrasts"]))
    raise rule.wrong(
        f"the results hold no difference of {shown(subject.model)!r} to {shown(subject.reference)!r} "
        f"{_words(subject.when)}{f', only differences to {there}' if there else ''}; compare with --reference"
    )


def _hazard_ratio(subject: _Subject) -> tuple[float, float, float]:
    """Return the hazard of late starters as a multiple of that of the others; of two runs, the quotient of both."""
    logs, ses = [], []
    for run in [subject.run] if subject.earlier is None else [subject.run, subject.earlier]:
        rows = _when_recommended(subject, run)
        row = next((row for row in rows if not math.isnan(row["hazard_ratio"])), None)
        if row is None:
            whose = "there is" if run is subject.run else "that run has"
            raise _UndefinedError(f"{whose} no hazard ratio of late starters {_words(subject.when)}")
        # its interval is symmetric on the logarithmic scale, by a normal quantile
        width = math.log(row["ratio_upper"] / row["ratio_lower"])
        logs.append(math.log(row["hazard_ratio"]))
        ses.append(width / 2 / float(limits(0.0, 1.0, run.level)[1]))
    log = logs[0] - sum(logs[1:])
    lower, upper = limits(log, math.hypot(*ses), subject.run.level)
    return math.exp(log), math.exp(lower), math.exp(upper)


def _earlier_row(subject: _Subject, run: Run) -> Row:
    """Return the score of an earlier run that is of the same; labels of weightings may differ after the first word."""
    known = [label for label in run.names("weighting") if _first_word(label) == _first_word(subject.weighting)]
    weighting = subject.weighting if subject.weighting in known else known[0] if len(known) == 1 else ""
    found = replace(subject, run=run, weighting=weighting).row(subject.model)
    if found is not None:
        return found
    mean = _mean(run, subject.metric, weighting, subject.model, subject.segment)
    if subject.when[0] != subject.when[1] and mean is not None:
        raise _UndefinedError(
            f"that run has the {_words(mean)}, not the {_words(subject.when)}; range = [from, to] keeps it the same"
        )
    raise _UndefinedError(f"that run has no such score {_words(subject.when)}")


def _is_about(rule: Rule, run: Run) -> bool:
    """Whether a rule is about scores of the run's cause; raise where it names a cause that there is not."""
    if rule.cause is None:
        return True
    if not run.cause:
        raise rule.wrong(f"cause {shown(rule.cause)!r}: the results are not of a cause of competing risks")
    if rule.cause != run.cause and run.known_causes:
        _known(rule, "cause", rule.cause, run.known_causes)
    return rule.cause == run.cause


def _for_cause(cause: str) -> str:
    """Return of which cause something is, to follow its name; nothing without competing risks."""
    if cause == ALL_CAUSES:
        return " for all causes"
    return f" for cause {shown(cause)}" if cause else ""


def _reference(rule: Rule, run: Run, earlier: Sequence[Run] | None) -> tuple[str | None, Run | None]:
    """Return what a rule compares with, by its name, and the run if it is one; `ABSENT`, where there is none yet."""
    wanted, models = rule.reference, run.names("model")
    if wanted is None:
        if rule.value != "skill":
            return None, None
        if run.null is None or run.null not in models:
            raise rule.wrong("skill needs the null model, which the results do not hold, or a reference")
        return run.null, None
    # a run of another cause has a name, too: it is a run that can't be compared with, and not a mistake in the rules
    of_name = [one for one in earlier or () if wanted in (LAST, one.id)]
    is_run = wanted == LAST or bool(of_name)
    if wanted in models and is_run:
        raise rule.wrong(f"reference {shown(wanted)!r} is a model and a run of the history; one must get another name")
    if wanted in models and rule.value == "hazard-ratio":
        raise rule.wrong("the hazard ratio of late starters is compared with a run of the history, not with a model")
    if wanted in models:
        return wanted, None
    if not is_run:
        known = [*models, LAST, *(one.id for one in earlier or ())]
        hint = f"is neither a model of the results nor a run of the history; {nearest(wanted, known)}"
        raise rule.wrong(f"reference {shown(wanted)!r} {hint}")
    if earlier is None:
        raise rule.wrong(f"reference {shown(wanted)!r} is a run, which needs a history: --history FILE")
    if rule.value in ("skill", "recommendation"):
        raise rule.wrong(f"{rule.value} is against a model, not against a run of the history")
    comparable = [one for one in of_name if one.cause == run.cause]
    return wanted, comparable[-1] if comparable else ABSENT


def _metrics(rule: Rule, run: Run) -> list[str]:
    known = run.names("metric")
    if rule.metric is None and "brier" not in known and len(known) > 1:
        raise rule.wrong(f"metric must be given; {nearest('', known)}")
    chosen = list(rule.metric or ("brier" if "brier" in known else known[0],))
    for name in chosen:
        _known(rule, "metric", name, known)
        if rule.value == "skill" and run.direction(name) != "lower":
            raise rule.wrong(f"skill is of metrics of which lower values are better, not of {name!r}")
        if rule.worse_by is not None and run.direction(name) not in ("lower", "higher"):
            raise rule.wrong(f"worse_by is of metrics of which lower or higher values are better, not of {name!r}")
    return chosen


def _known(rule: Rule, key: str, name: str, known: Sequence[str]) -> None:
    if name not in known:
        raise rule.wrong(f"{key} {shown(name)!r} is not in the results; {nearest(name, known)}")


def _weighting(rule: Rule, run: Run, *, projected: bool) -> str:
    """Return the weighting of a rule: by default the projected one where models are compared, else the first."""
    known = run.names("weighting")
    if rule.weighting is None:
        wanted = [one for one in known if _first_word(one) == Projected.name]
        return wanted[0] if wanted and (projected or rule.value in OF_RECOMMENDATIONS) else known[0]
    matching = [one for one in known if one == rule.weighting]
    matching = matching or [one for one in known if _first_word(one) == rule.weighting]
    if not matching:
        _known(rule, "weighting", rule.weighting, [*map(_first_word, known), *known])
    if len(matching) > 1:
        named = " and ".join(repr(shown(one)) for one in matching)
        raise rule.wrong(f"weighting {shown(rule.weighting)!r} is the first word of {named}; name one in full")
    return matching[0]


def _first_word(label: str) -> str:
    return label.partition(" ")[0]


def _segments(rule: Rule, run: Run) -> list[str]:
    """Return the segments that a rule is about; the empty one is of all individuals."""
    known = run.names("segment")
    if rule.segment == "total":
        if "" not in known:
            raise rule.wrong("the results hold scores of segments only; say segment = 'each'")
        return [""]
    if not any(known):
        raise rule.wrong("segment: the results have no segments")
    return [one for one in known if one]


def _chosen_when(rule: Rule, run: Run, metric: str, weighting: str, model: str, segment: str) -> When:
    """Return the time or range of a rule as the results have it; without one, that of the whole mean of the scores."""
    by_time = rule.at is not None
    known = list(dict.fromkeys(when for key, rows in run.index.items() if key[0] == "scores" for when in rows))
    known = [when for when in known if (when[0] == when[1]) == by_time]
    if rule.at is None and rule.range is None:
        mean = _mean(run, metric, weighting, model, segment)
        if mean is None and not known:
            raise rule.wrong("the results hold no means over time; name a time with at")
        return mean or known[0]
    wanted = same(rule.range or (rule.at or 0.0, rule.at or 0.0))
    if wanted in known:
        return wanted
    known.sort(key=lambda one: abs(one[0] - wanted[0]) + abs(one[1] - wanted[1]))
    what, option = ("an evaluation time", "--horizons") if by_time else ("a range of means", "--range")
    there = " and ".join(map(_words, known[:2]))
    hint = f"nearest are scores {there}; {option} names others" if there else "there is none"
    raise rule.wrong(f"{_words(wanted)} is not {what} of the results; {hint}")


def _mean(run: Run, metric: str, weighting: str, model: str, segment: str) -> When | None:
    """Return over which time the whole mean of a metric, weighting, model and segment is; the only time without one."""
    whens = list(run.index.get(("scores", metric, weighting, model, "", segment), {}))
    return next((when for when in whens if when[0] < when[1]), whens[0] if len(whens) == 1 else None)


def _words(when: When) -> str:
    return f"at {when[0]:.6g}" if when[0] == when[1] else f"mean over {when[0]:.6g} to {when[1]:.6g}"

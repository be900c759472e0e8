"""From a run and rules to findings: which numbers a rule is about, and whether they are as it says."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from typing import Any, Literal
from xml.etree import ElementTree as ET

import pandas as pd

from survscore._validation import plural, shown
from survscore.causes import ALL_CAUSES
from survscore.checks.rules import DIFFERENCES, LAST, VALUES, Rule, Severity, nearest
from survscore.checks.runs import ENDS, Run, plain
from survscore.inference.intervals import limits
from survscore.results.long_tables import ALL
from survscore.results.recommendation import is_administrative
from survscore.results.rounding import interval_decimals
from survscore.weighting import Projected

Verdict = Literal["passed", "failed", "undefined", "skipped"]
Subject = tuple[str, str, str, float, float]  # segment, metric, model, and from and to, a time twice
Rows = dict[tuple[Any, ...], dict[Any, Any]]
SUBJECT = ["segment", "metric", "model", *ENDS]
ORDER = ("failed", "undefined", "skipped", "passed")
OPEN = {"depends": "it depends on individuals not yet followed", "too few": "too few are followed"}
OPPOSITE = {"better": "worse", "worse": "better"}
NO_RECOMMENDATION = "there is no recommendation, which takes administrative and projected scores"
#: Of which a higher value is better, the other limit of a difference is checked.
OTHER_LIMIT = {"difference-lower": "difference-upper", "difference-upper": "difference-lower"}
#: In place of a run: the history has none yet to compare with.
ABSENT = Run("", "", "", {}, {"scores": pd.DataFrame(columns=[*SUBJECT, "weighting"])})
LONGEST = 4000  # letters of a text in other formats
LEAST_DECIMALS = 4
# What means something in Markdown, or in the HTML that it lets through.
MEANS_SOMETHING = re.compile(r"([\\`*_{}\[\]#!|~$@]|(?<=:)/|(?<=www)\.)", re.IGNORECASE)


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
    quantity, value : str, float
        Which number was checked, and that number; NaN where there is none.
    estimate, lower, upper : float
        The score, difference, skill or ratio behind it, with its interval.
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
    threshold: str = ""
    verdict: Verdict = "skipped"
    severity: Severity = "error"
    reason: str = ""
    recommendation: str = ""
    cause: str = ""

    @property
    def fails(self) -> bool:
        """Whether the rule does not hold, or can't be known to, and that counts."""
        return self.verdict in ("failed", "undefined") and self.severity == "error"

    @property
    def warns(self) -> bool:
        """Whether the rule does not hold, or can't be known to, and that is only reported."""
        return self.verdict in ("failed", "undefined") and self.severity == "warning"

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
    findings = [finding for rule in rules for finding in _findings(rule, run, history)]
    return sorted(findings, key=lambda finding: (not finding.fails, not finding.warns, ORDER.index(finding.verdict)))


def exit_code(findings: Sequence[Finding]) -> int:
    """Return 1 if some check failed that counts, and 0 otherwise."""
    return int(any(finding.fails for finding in findings))


class _UndefinedError(Exception):
    """Why there is no number, or no verdict."""


@dataclass(frozen=True)
class _Case:
    """A rule, what it compares with, and the rows of one weighting that it needs, by their subject."""

    rule: Rule
    run: Run
    reference: str | None  # a model
    earlier: Run | None
    scores: Rows
    earlier_scores: Rows
    contrasts: Rows
    recommendations: Rows


def _findings(rule: Rule, run: Run, history: Sequence[Run] | None) -> Iterator[Finding]:
    about = Finding(
        rule.number,
        rule.label,
        metric=", ".join(rule.metric or ("brier",)),
        weighting=rule.weighting or "",
        reference=rule.reference,
        quantity=rule.value,
        threshold=rule.threshold(),
        severity=rule.severity,
        cause=rule.cause or run.cause,
    )
    if rule.cause not in (None, run.cause):
        if not run.cause:
            raise rule.wrong(f"cause {shown(rule.cause)!r}: the results are not of a cause of competing risks")
        if causes := run.setting("causes", {}) or run.setting("causes", []):
            _check_known(rule, "cause", str(rule.cause), [*map(str, causes), ALL_CAUSES])
        yield replace(about, reason=f"the scores are{_for_cause(run.cause)}")
        return
    reference, earlier = _reference(rule, run, history)
    weighting = _weighting(rule, run, compared=reference is not None and rule.value != "skill")
    scores = run.tables["scores"]
    scores = scores[scores["weighting"] == weighting]
    models, whens = _models(rule, run, reference), _whens(rule, scores)
    case = _Case(
        rule,
        run,
        reference,
        earlier,
        _by_subject(scores),
        {} if earlier is None else _by_subject(_same_weighting(earlier, weighting)),
        _by_subject(_against(run.tables["contrasts"], weighting, reference)),
        _by_subject(_against(run.tables["recommendations"], weighting, reference)),
    )
    if earlier is not None:
        reference = f"run {earlier.id}" if earlier is not ABSENT else "the last run"
    about = replace(about, weighting=weighting, reference=reference, cause=run.cause)
    for metric, segment, model in product(_metrics(rule, run), _segments(rule, run), models):
        low, high = whens.get((segment, metric, model)) or next(iter(whens.values()))
        finding = replace(about, segment=segment, metric=metric, when=_words(low, high))
        if rule.value != "hazard-ratio":  # which is the same whatever the model
            finding = replace(finding, model=model)
        try:
            yield _judged(case, finding, (segment, metric, model, low, high))
        except _UndefinedError as undefined:
            yield replace(finding, verdict="undefined", reason=str(undefined))


def _judged(case: _Case, finding: Finding, subject: Subject) -> Finding:
    """Return the finding about one subject, with its number and verdict."""
    rule = case.rule
    if case.earlier is ABSENT:
        return replace(finding, reason=f"the history holds no earlier run{_for_cause(case.run.cause)}")
    if not VALUES[rule.value].has_limits:
        verdict, reason, sentence = _leak(case, subject) if rule.value == "leak" else _recommendation(case, subject)
        return replace(finding, verdict=verdict, reason=reason, recommendation=sentence)
    higher = rule.worse_by is not None and case.run.direction(finding.metric) != "lower"
    quantity = OTHER_LIMIT.get(rule.value, rule.value) if higher else rule.value
    estimate, lower, upper = _estimate(case, subject)
    value = {"upper": upper, "lower": lower}.get(quantity.rpartition("-")[2], estimate)
    if math.isnan(value):
        raise _UndefinedError("it is not defined, as where some time of a range has no score")
    finding = replace(
        finding,
        quantity=quantity,
        value=value,
        estimate=estimate,
        lower=lower,
        upper=upper,
        threshold=rule.threshold(higher_is_better=higher),
        verdict="passed" if rule.allows(-value if higher else value) else "failed",
    )
    by_itself = rule.value not in DIFFERENCES or case.reference is None or rule.weighting is not None
    return finding if by_itself else _by_recommendation(case, finding, subject)


def _by_recommendation(case: _Case, finding: Finding, subject: Subject) -> Finding:
    """Return the finding about two models' difference under no weighting in particular, with what is recommended."""
    if is_administrative(finding.weighting):
        reason = "by the administrative score alone, which refers to individuals with C* >= t only"
        return replace(finding, reason=reason)
    if finding.segment or finding.metric not in set(case.run.tables["recommendations"]["metric"]):
        return finding
    row = case.recommendations.get(subject)
    if row is None:
        reason = f"there is no recommendation {finding.when}; a rule with a weighting needs none"
        return replace(finding, verdict="undefined", reason=reason)
    reason = OPEN.get(row["verdict"], "")
    verdict: Verdict = "undefined" if reason else finding.verdict
    return replace(finding, verdict=verdict, recommendation=row["sentence"], reason=reason)


def _recommendation(case: _Case, subject: Subject) -> tuple[Verdict, str, str]:
    """Return the verdict, reason and sentence of a rule about what is recommended."""
    row = case.recommendations.get(subject)
    if row is None:
        raise _UndefinedError(NO_RECOMMENDATION)
    if row["verdict"] in OPEN:
        return "undefined", OPEN[row["verdict"]], row["sentence"]
    return "failed" if row["verdict"] == "worse" else "passed", f"it is {row['verdict']}", row["sentence"]


def _leak(case: _Case, subject: Subject) -> tuple[Verdict, str, str]:
    """Return the verdict, reason and sentence of a rule about a model that may encode the entry date."""
    segment, metric, model, *ends = subject
    rows = case.run.tables["recommendations"]
    is_about = (rows["metric"] == metric) & ((rows["model"] == model) | (rows["reference"] == model))
    rows = rows[is_about & (rows[ENDS] == ends).all(axis=1)]
    if rows.empty or segment:
        raise _UndefinedError(NO_RECOMMENDATION)
    leaking = [row["sentence"] for row in rows.to_dict("records") if model in row["encodes"]]
    return ("failed", "it probably encodes the entry date", leaking[0]) if leaking else ("passed", "", "")


def _estimate(case: _Case, subject: Subject) -> tuple[float, float, float]:
    """Return the number that a rule is about, with its interval."""
    if case.rule.value == "hazard-ratio":
        return _hazard_ratio(case, subject)
    row, level = case.scores.get(subject), case.run.setting("level", 0.95)
    if row is None:
        raise _UndefinedError("there is no such score")
    if case.earlier is not None:  # of different data, so that nothing is paired
        other = case.earlier_scores.get(subject)
        if other is None:
            raise _UndefinedError("that run has no such score; range = [from, to] keeps means the same in all runs")
        difference = row["score"] - other["score"]
        return (difference, *limits(difference, math.hypot(row["se"], other["se"]), level))
    if case.reference is None:
        return row["score"], row["lower"], row["upper"]
    segment, metric, model, *ends = subject
    if case.rule.value == "skill":
        null = case.scores.get((segment, metric, case.reference, *ends), {}).get("score", math.nan)
        return 1.0 - row["score"] / null if null > 0 else math.nan, math.nan, math.nan
    contrast = case.contrasts.get(subject)
    if contrast is None:
        known = ", ".join(repr(shown(name)) for name in case.run.tables["contrasts"]["reference"].unique())
        there = f"only differences to {known}" if known else "no differences"
        pair = f"{shown(model)!r} to {shown(case.reference)!r} {_words(*ends)}"
        raise case.rule.wrong(f"the results hold no difference of {pair}, {there}; compare with --reference")
    return contrast["difference"], contrast["lower"], contrast["upper"]


def _hazard_ratio(case: _Case, subject: Subject) -> tuple[float, float, float]:
    """Return the hazard of late starters as a multiple of that of the others; of two runs, the quotient of both."""
    segment, _, _, *ends = subject
    logs, ses = [], []
    for run in [case.run] if case.earlier is None else [case.run, case.earlier]:
        rows = run.tables["recommendations"].dropna(subset=["hazard_ratio"])
        rows = rows[(rows[ENDS] == ends).all(axis=1)]
        if rows.empty or segment:
            where = "there" if run is case.run else "in that run there"
            raise _UndefinedError(f"{where} is no hazard ratio of late starters {_words(*ends)}")
        row = rows.iloc[0]
        # its interval is symmetric on the logarithmic scale, by a normal quantile
        logs.append(math.log(row["hazard_ratio"]))
        width = math.log(row["ratio_upper"] / row["ratio_lower"])
        ses.append(width / 2 / float(limits(0.0, 1.0, run.setting("level", 0.95))[1]))
    log = logs[0] - sum(logs[1:])
    lower, upper = limits(log, math.hypot(*ses), case.run.setting("level", 0.95))
    return math.exp(log), math.exp(lower), math.exp(upper)


def _by_subject(table: pd.DataFrame) -> Rows:
    return {tuple(row[name] for name in SUBJECT): row for row in table.to_dict("records")}


def _against(table: pd.DataFrame, weighting: str, reference: str | None) -> pd.DataFrame:
    """Return what a table says about models against a reference, whichever of the two it has as reference."""
    reverse = table.rename(columns={"model": "reference", "reference": "model"})
    if "difference" in table:
        reverse = reverse.assign(difference=-table["difference"], lower=-table["upper"], upper=-table["lower"])
    else:
        reverse = reverse.assign(verdict=[OPPOSITE.get(code, code) for code in table["verdict"]])
    both = pd.concat([reverse, table], ignore_index=True)
    return both[(both["weighting"] == weighting) & (both["reference"] == reference)]


def _reference(rule: Rule, run: Run, history: Sequence[Run] | None) -> tuple[str | None, Run | None]:
    """Return the model or the run that a rule compares with; `ABSENT`, where there is no run yet."""
    models = run.names("model")
    if rule.reference is None and rule.value == "skill":
        null = run.setting("null", "")
        if null not in models:
            raise rule.wrong("skill needs the null model, which the results do not hold")
        return null, None
    if rule.reference is None:
        return None, None
    if rule.reference != LAST:
        _check_known(rule, "reference", rule.reference, [*models, LAST])
        return rule.reference, None
    if LAST in models:
        raise rule.wrong(f"reference {LAST!r} is a model and a run of the history; the model must get another name")
    if history is None:
        raise rule.wrong(f"reference {LAST!r} is a run, which needs a history: --history FILE")
    earlier = [stored for stored in history if stored.id != run.id and stored.cause == run.cause]
    return None, earlier[-1] if earlier else ABSENT


def _models(rule: Rule, run: Run, reference: str | None) -> Sequence[str]:
    known = run.names("model")
    for name in rule.model or ():
        _check_known(rule, "model", name, known)
    models = rule.model or [name for name in known if name not in (run.setting("null", ""), reference)]
    if not models:
        raise rule.wrong("there is no model but the reference and the null model; name it")
    if reference in models:
        raise rule.wrong(f"model and reference are both {shown(reference)!r}")
    return models[:1] if rule.value == "hazard-ratio" else models


def _metrics(rule: Rule, run: Run) -> Sequence[str]:
    known = run.names("metric")
    if rule.metric is None and "brier" not in known and len(known) > 1:
        raise rule.wrong(f"metric must be given; {nearest('', known)}")
    chosen = rule.metric or ("brier" if "brier" in known else known[0],)
    for name in chosen:
        _check_known(rule, "metric", name, known)
        if rule.value == "skill" and run.direction(name) != "lower":
            raise rule.wrong(f"skill is of metrics of which lower values are better, not of {name!r}")
        if rule.worse_by is not None and run.direction(name) not in ("lower", "higher"):
            raise rule.wrong(f"worse_by is of metrics of which lower or higher values are better, not of {name!r}")
    return chosen


def _check_known(rule: Rule, key: str, name: str, known: Sequence[str]) -> None:
    if name not in known:
        raise rule.wrong(f"{key} {shown(name)!r} is not in the results; {nearest(name, known)}")


def _weighting(rule: Rule, run: Run, *, compared: bool) -> str:
    """Return the weighting of a rule: by default the projected one where models are compared, else the first."""
    known = run.names("weighting")
    if rule.weighting is None:
        wanted = [label for label in known if _first_word(label) == Projected.name]
        return wanted[0] if wanted and (compared or rule.value in ("leak", "hazard-ratio")) else known[0]
    matching = [label for label in known if rule.weighting in (label, _first_word(label))]
    if not matching:
        _check_known(rule, "weighting", rule.weighting, [*map(_first_word, known), *known])
    if len(matching) > 1 and rule.weighting not in matching:
        named = " and ".join(repr(shown(label)) for label in matching)
        raise rule.wrong(f"weighting {shown(rule.weighting)!r} is the first word of {named}; name one in full")
    return rule.weighting if rule.weighting in matching else matching[0]


def _first_word(label: str) -> str:
    return label.partition(" ")[0]


def _same_weighting(run: Run, weighting: str) -> pd.DataFrame:
    """Return an earlier run's scores under a weighting, whose label may differ after the first word."""
    scores = run.tables["scores"]
    labels = scores["weighting"].unique()
    same = [label for label in labels if _first_word(label) == _first_word(weighting)]
    return scores[scores["weighting"] == (same[0] if len(same) == 1 else weighting)]


def _segments(rule: Rule, run: Run) -> list[str]:
    """Return the segments that a rule is about; the empty one is of all individuals."""
    known = run.names("segment")
    if rule.segment == "total" and "" not in known:
        raise rule.wrong("the results hold scores of segments only; say segment = 'each'")
    if rule.segment == "each" and not any(known):
        raise rule.wrong("segment: the results have no segments")
    return [""] if rule.segment == "total" else [segment for segment in known if segment]


def _whens(rule: Rule, scores: pd.DataFrame) -> dict[tuple[str, ...], tuple[float, float]]:
    """Return at which time or over which range a rule is, by segment, metric and model: by default the whole mean."""
    is_mean = scores["from"] < scores["to"]
    if rule.at is None and rule.range is None:
        if not is_mean.any() and scores["from"].nunique() > 1:
            raise rule.wrong("the results hold no means over time; name a time with at")
        rows = (scores[is_mean] if is_mean.any() else scores).drop_duplicates(SUBJECT[:3])  # the whole mean is first
    else:
        low, high = rule.range or (rule.at or 0.0, rule.at or 0.0)
        rows = scores[(scores["from"] == low) & (scores["to"] == high)]
        scores = scores[is_mean == (rule.at is None)]
        if rows.empty:
            distance = (scores["from"] - low).abs() + (scores["to"] - high).abs()
            near = scores.loc[distance.sort_values(kind="stable").index, ENDS].drop_duplicates()[:2]
            what, option = ("a range of means", "--range") if rule.range else ("an evaluation time", "--horizons")
            there = " and ".join(_words(*ends) for ends in near.itertuples(index=False))
            hint = f"nearest are scores {there}; {option} names others" if there else "there is none"
            raise rule.wrong(f"{_words(low, high)} is not {what} of the results; {hint}")
    return {row[:3]: row[3:] for row in rows[SUBJECT].itertuples(index=False, name=None)}


def _words(low: float, high: float) -> str:
    return f"at {low:.6g}" if low == high else f"mean over {low:.6g} to {high:.6g}"


def _for_cause(cause: str) -> str:
    """Return of which cause something is, to follow its name; nothing without competing risks."""
    if cause == ALL_CAUSES:
        return " for all causes"
    return f" for cause {shown(cause)}" if cause else ""


def summary(findings: Sequence[Finding]) -> str:
    """Return in one line how many checks failed."""
    counts = _counts(findings)
    parts = [f"{counts['failed']} of {len(findings)} {'check' if len(findings) == 1 else 'checks'} failed"]
    parts += [plural(counts["warnings"], "warning")] if counts["warnings"] else []
    parts += [f"{counts['skipped']} skipped"] if counts["skipped"] else []
    return ", ".join(parts)


def _counts(findings: Sequence[Finding]) -> dict[str, int]:
    return {
        "checks": len(findings),
        "failed": sum(finding.fails for finding in findings),
        "warnings": sum(finding.warns for finding in findings),
        "skipped": sum(finding.verdict == "skipped" for finding in findings),
    }


def as_json(run: Run, findings: Sequence[Finding]) -> str:
    """Return findings as JSON.

    Parameters
    ----------
    run : Run
        That was checked.
    findings : sequence of Finding
        From `check`.
    """
    data = {
        "run": {"id": run.id, "date": run.date, "survscore": run.version, "settings": run.settings},
        "summary": {**_counts(findings), "exit_code": exit_code(findings)},
        "recommendation": recommended(run, findings),
        "findings": [asdict(finding) for finding in findings],
    }
    return json.dumps(plain(data), indent=1, allow_nan=False) + "\n"


def recommended(run: Run, findings: Sequence[Finding]) -> list[str]:
    """Return the recommendations that findings go by; where none does, those by the first loss over the whole time."""
    sentences = [finding.recommendation for finding in findings if finding.recommendation]
    if not sentences:
        rows, keys = run.tables["recommendations"], ["metric", "reference", *ENDS]
        sentences = rows.merge(rows[keys].head(1), on=keys)["sentence"].to_list()
    return list(dict.fromkeys(sentences))


def as_junit(run: Run, findings: Sequence[Finding]) -> str:
    """Return findings as JUnit XML, which CI services show as test results.

    Parameters
    ----------
    run : Run
        That was checked.
    findings : sequence of Finding
        From `check`.
    """
    counted = _counts(findings)
    counts = {"tests": str(len(findings)), "failures": str(counted["failed"]), "errors": "0"}
    counts["skipped"] = str(counted["skipped"])
    root = ET.Element("testsuites", counts | {"name": "survscore check"})
    about = {"name": f"survscore check {run.id}", "timestamp": run.date[:19], "time": "0"}
    suite = ET.SubElement(root, "testsuite", about | counts)
    sentences = recommended(run, findings)
    properties = ET.SubElement(suite, "properties") if sentences else suite
    for sentence in sentences:
        ET.SubElement(properties, "property", {"name": "recommendation", "value": _xml(sentence)})
    for finding in findings:
        name = _xml(f"{finding.check}: {finding.what}{f' [{finding.segment}]' if finding.segment else ''}")
        case = ET.SubElement(suite, "testcase", {"classname": "survscore.check", "name": name, "time": "0"})
        concluded = f": {verdict(finding)}" + (f", {finding.reason}" if finding.reason else "")
        number = f"{finding.what}, {finding.weighting}: {with_interval(finding)}, must have {required(finding)}"
        message = _xml(number + concluded)
        if finding.fails:
            ET.SubElement(case, "failure", {"message": message, "type": finding.verdict}).text = message
        elif finding.verdict == "skipped":
            ET.SubElement(case, "skipped", {"message": message})
        else:
            ET.SubElement(case, "system-out").text = f"warning: {message}" if finding.warns else message
    ET.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def as_markdown(run: Run, findings: Sequence[Finding]) -> str:
    """Return findings as a Markdown table, for the summary page of a CI run.

    Parameters
    ----------
    run : Run
        That was checked.
    findings : sequence of Finding
        From `check`.
    """
    lines = [
        f"### {summary(findings)}",
        "",
        f"survscore {_markdown(run.version)}, run {_markdown(run.id)}, {_markdown(run.date)}",
        "",
        "| verdict | check | segment | of | value | threshold |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for finding in findings:
        cells = (
            verdict(finding),
            finding.check,
            finding.whose,
            finding.what,
            with_interval(finding),
            required(finding),
        )
        lines.append("| " + " | ".join(map(_markdown, cells)) + " |")
    notes = [f"- {_markdown(f'{one.check}, {one.whose}: {one.reason}')}" for one in findings if one.reason]
    concluded = [f"\n{_markdown(sentence)}" for sentence in recommended(run, findings)]
    return "\n".join([*lines, "", *dict.fromkeys(notes), *concluded]).rstrip() + "\n"


def verdict(finding: Finding) -> str:
    """Return the verdict in a word, in which a failure that only warns is a warning."""
    return "warning" if finding.warns else finding.verdict


def with_interval(finding: Finding) -> str:
    """Return the estimate with its interval."""
    if math.isnan(finding.estimate):
        return "-"
    sign = "+" if "difference" in finding.quantity else ""
    digits = interval_decimals([finding.lower], [finding.upper], least=LEAST_DECIMALS) or LEAST_DECIMALS
    value, lower, upper = (f"{end:{sign}.{digits}f}" for end in (finding.estimate, finding.lower, finding.upper))
    return value if math.isnan(finding.lower) or math.isnan(finding.upper) else f"{value} ({lower} to {upper})"


def required(finding: Finding) -> str:
    """Return what the value must be, in words."""
    return f"{VALUES[finding.quantity].label} {finding.threshold}"


def _xml(text: str) -> str:
    return shown(text, most=LONGEST)  # which spells out what XML can't hold, not even escaped


def _markdown(text: str) -> str:
    """Return text that stays text in Markdown: on one line, without markup and HTML."""
    escaped = shown(" ".join(text.split()), most=LONGEST).replace("&", "&amp;").replace("<", "&lt;")
    return MEANS_SOMETHING.sub(r"\\\1", escaped.replace(">", "&gt;"))

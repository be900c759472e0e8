"""Findings for machines and for the pages of CI services: JSON, JUnit XML, Markdown."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import asdict
from xml.etree import ElementTree as ET

from survscore._validation import shown
from survscore.checks.judging import Finding, exit_code, summary
from survscore.checks.runs import Run, plain
from survscore.results.rounding import interval_decimals

LONGEST = 300
LEAST_DECIMALS = 4
SENTENCES = 4000  # letters of a recommendation
QUANTITIES = {
    "upper": "upper limit",
    "lower": "lower limit",
    "difference-upper": "upper limit of the difference",
    "difference-lower": "lower limit of the difference",
    "hazard-ratio": "hazard ratio of late starters",
    "leak": "encoding of the entry date",
}
# What XML 1.0 knows; everything else can't be written in it, not even escaped.
NOT_IN_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# What means something in Markdown, or in the HTML that it lets through.
MEANS_SOMETHING = re.compile(r"([\\`*_{}\[\]#!|~$@]|(?<=:)/|(?<=www)\.)", re.IGNORECASE)


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
        "summary": {
            "checks": len(findings),
            "failed": sum(one.fails for one in findings),
            "warnings": sum(one.warns for one in findings),
            "skipped": sum(one.verdict == "skipped" for one in findings),
            "exit_code": exit_code(findings),
        },
        "recommendation": recommended(run, findings),
        "findings": [plain(asdict(one)) for one in findings],
    }
    return json.dumps(data, indent=1, allow_nan=False) + "\n"


def recommended(run: Run, findings: Sequence[Finding]) -> list[str]:
    """Return the recommendations that findings go by; where none does, those by the first loss over the whole time."""
    found = [one.recommendation for one in findings if one.recommendation]
    if not found:
        keys = ("metric", "reference", "from", "to")
        rows = run.tables["recommendations"]
        found = [row["sentence"] for row in rows if all(row[key] == rows[0][key] for key in keys)]
    return list(dict.fromkeys(found))


def as_junit(run: Run, findings: Sequence[Finding]) -> str:
    """Return findings as JUnit XML, which CI services show as test results.

    Parameters
    ----------
    run : Run
        That was checked.
    findings : sequence of Finding
        From `check`.
    """
    counts = {
        "tests": str(len(findings)),
        "failures": str(sum(one.fails for one in findings)),
        "errors": "0",
        "skipped": str(sum(one.verdict == "skipped" for one in findings)),
    }
    root = ET.Element("testsuites", counts | {"name": "survscore check"})
    about = {"name": _xml(f"survscore check {run.id}"), "timestamp": _xml(run.date[:19]), "time": "0"}
    suite = ET.SubElement(root, "testsuite", about | counts)
    sentences = recommended(run, findings)
    properties = ET.SubElement(suite, "properties") if sentences else suite
    for said in sentences:
        ET.SubElement(properties, "property", {"name": "recommendation", "value": _xml(said)})
    for one in findings:
        whose = f" [{one.whose}]" if one.segment else ""
        name = _xml(f"{one.check}: {one.what}{whose}")
        case = ET.SubElement(suite, "testcase", {"classname": "survscore.check", "name": name, "time": "0"})
        said = _xml(sentence(one))
        if one.fails:
            ET.SubElement(case, "failure", {"message": said, "type": one.verdict}).text = said
        elif one.verdict == "skipped":
            ET.SubElement(case, "skipped", {"message": said})
        else:
            ET.SubElement(case, "system-out").text = f"warning: {said}" if one.warns else said
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=False, short_empty_elements=True).join(
        ['<?xml version="1.0" encoding="UTF-8"?>\n', "\n"]
    )


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
        f"### {_markdown(summary(findings))}",
        "",
        f"survscore {_markdown(run.version)}, run {_markdown(run.id)}, {_markdown(run.date)}",
        "",
        "| verdict | check | segment | of | value | threshold |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for one in findings:
        cells = (verdict(one), one.check, one.whose, one.what, with_interval(one), required(one))
        lines.append("| " + " | ".join(_markdown(cell) for cell in cells) + " |")
    notes = [f"- {_markdown(f'{one.check}, {one.whose}: {one.reason}')}" for one in findings if one.reason]
    concluded = [f"\n{_markdown(one, most=SENTENCES)}" for one in recommended(run, findings)]
    return "\n".join([*lines, "", *dict.fromkeys(notes), *concluded]).rstrip() + "\n"


def verdict(finding: Finding) -> str:
    """Return the verdict in a word, in which a failure that only warns is a warning."""
    return "warning" if finding.warns else finding.verdict


def with_interval(finding: Finding) -> str:
    """Return the estimate with its interval."""
    if math.isnan(finding.estimate):
        return "-"
    sign = "+" if "difference" in finding.quantity else ""
    numbers = [finding.estimate, finding.lower, finding.upper]
    digits = interval_decimals([finding.lower], [finding.upper], least=LEAST_DECIMALS) or LEAST_DECIMALS
    value, lower, upper = (f"{number:{sign}.{digits}f}" for number in numbers)
    return value if math.isnan(finding.lower) or math.isnan(finding.upper) else f"{value} ({lower} to {upper})"


def required(finding: Finding) -> str:
    """Return what the value must be, in words."""
    return f"{QUANTITIES.get(finding.quantity, finding.quantity)} {finding.threshold}"


def sentence(finding: Finding) -> str:
    """Return a finding in one sentence."""
    said = f"{finding.what}, {finding.weighting}: {with_interval(finding)}, must have {required(finding)}"
    return f"{said}: {verdict(finding)}" + (f", {finding.reason}" if finding.reason else "")


def _xml(text: str) -> str:
    return shown(NOT_IN_XML.sub("", text), most=SENTENCES)


def _markdown(text: str, most: int = LONGEST) -> str:
    """Return text that stays text in Markdown: on one line, without markup and HTML."""
    plain = shown(" ".join(str(text).split()), most=most).replace("&", "&amp;").replace("<", "&lt;")
    return MEANS_SOMETHING.sub(r"\\\1", plain.replace(">", "&gt;"))

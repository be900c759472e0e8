"""Checks of scores by rules, and the history of earlier runs: tables in, findings out."""

from survscore.checks.history import History, append_run, read_history
from survscore.checks.judging import Finding, check, exit_code
from survscore.checks.output import as_json, as_junit, as_markdown
from survscore.checks.rules import Rule, example, parse_rules, read_rules
from survscore.checks.runs import Run, read_results

__all__ = [
    "Finding",
    "History",
    "Rule",
    "Run",
    "append_run",
    "as_json",
    "as_junit",
    "as_markdown",
    "check",
    "example",
    "exit_code",
    "parse_rules",
    "read_history",
    "read_results",
    "read_rules",
]

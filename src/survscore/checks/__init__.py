"""Checks of scores by rules, and the history of earlier runs: tables in, findings out."""

from survscore.checks.findings import Finding, as_json, as_junit, as_markdown, check, exit_code
from survscore.checks.rules import Rule, example, parse_rules, read_rules
from survscore.checks.runs import History, Run, append_run, read_history, read_results

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

"""The conventions of docs/conformance.json: those of packages that are here are found again, and how is tested."""

import json
import math
import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parent.parent
WRITTEN = ROOT / "docs" / "conformance.json"

with pytest.MonkeyPatch.context() as patch:
    # at the end of the path: some scripts there have the names of packages
    patch.setattr(sys, "path", [*sys.path, str(ROOT / "benchmarks"), str(ROOT / "docs" / "_ext")])
    from conformance_lines import COLUMNS, LISTS

    import conformance
    import conformance_candidates as candidates
    import conformance_findings as finding
    import conformance_packages as packages
    from conformance_cases import QUESTIONS, Question

ROWS = json.loads(WRITTEN.read_text())["packages"]
SCORED = {name: row for name, row in ROWS.items() if row.get("brier_score")}


# The file


def test_there_are_ten_packages_beside_ours_with_versions():
    assert len(set(SCORED) - {"survscore"}) >= 10
    for name, row in ROWS.items():
        assert re.match(r"\d+\.\d+", row["version"]), name
    for name, row in SCORED.items():
        assert row["stands_on"], name
        assert all(row["stands_on"].values()), name


def test_every_package_has_every_convention():
    for name, row in SCORED.items():
        shown = {key for columns in COLUMNS.values() for key in columns}
        assert set(row["conventions"]) == shown, name


def test_the_versions_are_those_that_are_installed_for_it():
    pinned = {name: conformance.wanted_version(name) for name in conformance.PYTHON if name != "survscore"}
    assert None not in pinned.values()
    assert pinned == {name: ROWS[name]["version"] for name in pinned}


def test_what_could_not_be_asked_has_a_reason():
    assert set(ROWS) == {*conformance.PYTHON, *conformance.R}
    for name in set(ROWS) - set(SCORED):
        assert ROWS[name].get("reason") or ROWS[name]["brier_score"] is False, name


def test_the_file_has_no_traces_of_a_machine():
    assert not re.search(r"/(tmp|home|root|usr|opt)/|https?:|0x[0-9a-f]{6}", WRITTEN.read_text())


@pytest.mark.parametrize("name", ["survscore", "scikit-survival", "lifelines", "pycox", "skpro"])
def test_packages_that_are_here_still_do_what_the_file_says(name):
    again = conformance.row(name, packages.report(name, QUESTIONS))
    assert again.get("conventions") == ROWS[name].get("conventions")
    assert again.get("ties") == ROWS[name].get("ties")
    numbers = {label: value for label, value in ROWS[name].get("numbers", {}).items() if isinstance(value, list)}
    for label, values in numbers.items():
        assert list(map(float, again["numbers"][label])) == pytest.approx(
            list(map(float, values)), abs=2e-6, nan_ok=True
        )


def test_the_command_asks_some_and_keeps_the_rest(tmp_path, monkeypatch, capsys):
    output = tmp_path / "conformance.json"
    changed = {"packages": {"pec": ROWS["pec"], "survscore": {"version": "0"}}}
    output.write_text(json.dumps(changed))
    monkeypatch.setattr(sys, "argv", ["conformance.py", "--only", "survscore", "--output", str(output)])
    conformance.main()
    written = json.loads(output.read_text())["packages"]
    assert list(written) == ["survscore", "pec"]
    assert written["pec"] == ROWS["pec"]
    assert written["survscore"]["conventions"] == ROWS["survscore"]["conventions"]
    assert "survscore" in capsys.readouterr().out


# The pages


def test_the_page_has_all_tables_and_they_are_made_from_the_file():
    page = (ROOT / "docs" / "conventions.rst").read_text()
    assert set(re.findall(r"^\.\. conformance-table:: (\w+)$", page, flags=re.M)) == set(LISTS)
    changed = json.loads(json.dumps(ROWS))
    changed["pycox"]["version"] = "9.8.7"
    changed["pycox"]["conventions"]["divisor"] = "something else"
    before, after = ({line.strip(" *-") for line in LISTS["weights"](rows)} for rows in (ROWS, changed))
    assert after - before == {"9.8.7", "something else"}


@pytest.mark.parametrize("table", COLUMNS)
def test_a_table_has_a_row_for_every_package_and_a_cell_for_every_convention(table):
    lines = LISTS[table](ROWS)
    starts = [line for line in lines if line.startswith("   * - ")]
    assert [line.removeprefix("   * - ").removesuffix(" (R)") for line in starts] == ["package", *SCORED]
    cells = [line for line in lines if line.startswith(("   * - ", "     - "))]
    assert len(cells) == len(starts) * (1 + len(COLUMNS[table]) + 2 * (table == "weights"))
    for line in lines:
        if ":widths:" in line:
            assert len(line.split()) - 1 == len(cells) / len(starts)


def test_the_other_packages_and_errors_are_told():
    others, errors = "\n".join(LISTS["others"](ROWS)), "\n".join(LISTS["errors"](ROWS))
    for name in set(ROWS) - set(SCORED):
        assert f"* - {name}\n" in others
    for name, row in SCORED.items():
        failed = any(isinstance(value, str) for value in row["numbers"].values())
        assert (f"* - {name}\n" in errors) == failed


# How conventions are found


def as_package(convention, *, training="can be given", **changes):
    """Return the report of a package that follows a convention, but for some answers."""
    answers = {label: {"not offered": True} for label in QUESTIONS}
    for label, question in QUESTIONS.items():
        if question.kind == "brier":
            answers[label] = {"values": candidates.brier(question.data, convention), "warned": False}
    return {"answers": answers | changes, "training data": training}


OURS = candidates.Convention("1/G(T-)", "1/G(t)", "sum of weights", "event first", "unknown", "event", "training data")
ODD = candidates.Convention(
    "1/G(T)", "1/G(t-)", "number counted", "together", "event-free", "event-free", "scored data"
)


@pytest.mark.parametrize("convention", [OURS, ODD, replace(ODD, ties="as the rows stand"), replace(OURS, divisor="n")])
def test_a_convention_is_found_by_its_numbers(convention):
    found = finding.findings(as_package(convention))
    for name in set(candidates.CHOICES) - {"source"}:
        assert found[name] == getattr(convention, name)
    assert found["fitted_on"].endswith(convention.source)


def test_none_of_these_is_found_where_nothing_fits():
    report = as_package(OURS)
    report["answers"]["other ties"]["values"][2] += 1e-3  # all other numbers are right
    found = finding.findings(report)
    assert {found[name] for name in set(candidates.CHOICES) - {"source"}} == {finding.NONE}
    assert found["fitted_on"] == finding.NONE
    assert found["last_event"] == finding.NONE


def test_different_conventions_have_different_numbers():
    """But for those that are the same: weights that sum to n, and weights that are the same for all."""
    weighted = [c for c in candidates.all_conventions() if c.event_weight != "1" and c.free_weight != "1"]
    labels = finding.UNTRAINED + finding.TRAINED
    scores = np.array([[s for label in labels for s in candidates.candidate_scores(label, c)] for c in weighted])
    apart = np.abs(scores[:, None] - scores).max(axis=2)
    alike = apart < 1e-12
    assert apart[~alike].min() > 10 * finding.TOLERANCE
    for i, j in np.argwhere(alike & ~np.eye(len(weighted), dtype=bool)):
        first, second = weighted[i], weighted[j]
        same_for_all = first.event_weight == first.free_weight and first.divisor == "sum of weights"
        sum_to_n = first == replace(second, divisor=first.divisor) and first.source == "scored data"
        assert same_for_all or sum_to_n


def test_two_divisors_are_told_apart_where_nobody_is_left():
    for divisor in ("sum of weights", "n"):
        report = as_package(replace(OURS, divisor=divisor, source="scored data"), training="not taken")
        for label in finding.TRAINED:
            report["answers"][label] = {"not offered": True}
        assert finding.findings(report)["divisor"] == divisor
        report["answers"][finding.NOBODY_LEFT] = {"error": "ValueError"}
        assert finding.findings(report)["divisor"] == "sum of weights or n"


def test_training_data_that_make_no_difference_do_not_count():
    assert finding.findings(as_package(replace(OURS, source="scored data")))["fitted_on"] == "scored data"


EARLY = "training data end early"


def capped(label, weight):
    """Return the score at a time where G is zero for some, who count `weight`."""
    terms = candidates.terms(QUESTIONS[label].data, 0, OURS)
    some = [replace(term, weight=weight) if math.isinf(term.weight) else term for term in terms]
    assert any(math.isinf(term.weight) for term in terms)
    return candidates.weighted_mean(some, OURS.divisor)


@pytest.mark.parametrize(
    ("weight", "word"), [(0.0, "left out"), (2.0, "last weight kept"), (20.0, "weight 20"), (1.0, "weight 1")]
)
def test_what_counts_instead_of_an_infinite_weight_is_found(weight, word):
    answer = {"values": [capped(EARLY, weight)], "warned": False}
    assert finding.findings(as_package(OURS, **{EARLY: answer}))["training_ends_early"] == word


@pytest.mark.parametrize(
    ("answer", "word"),
    [
        ({"error": "ValueError: no"}, "error"),
        ({"not offered": True}, "not offered"),
        ({"values": ["NaN"], "warned": True}, "NaN, with a warning"),
        ({"values": ["NA"], "warned": False}, "NaN"),
        ({"values": [math.inf], "warned": False}, "infinite"),
        ({"values": [0.123], "warned": False}, finding.NONE),
    ],
)
def test_the_end_of_follow_up_without_a_score(answer, word):
    label = "last is censored, later"
    assert finding.findings(as_package(OURS, **{label: answer}))["last_censored_later"] == word


def test_a_score_of_events_alone_is_told_from_a_whole_one():
    found = finding.findings(as_package(OURS))
    assert found["last_censored"] == found["last_censored_later"] == "events alone"
    assert found["last_event"] == found["last_event_later"] == "a score"


@pytest.mark.parametrize("divisor", ["n", "sum of weights"])
def test_a_bound_on_weights_is_found(divisor):
    convention = replace(OURS, divisor=divisor)
    terms = candidates.terms(QUESTIONS["small G"].data, 0, convention)
    bounded = candidates.weighted_mean([replace(term, weight=min(term.weight, 12.5)) for term in terms], divisor)
    answer = {"values": [bounded], "warned": False}
    assert finding.findings(as_package(convention, **{"small G": answer}))["largest_weight"] == "12.5"
    assert finding.findings(as_package(convention))["largest_weight"] == "none"


def test_rules_of_integration_and_kinds_of_errors_have_different_numbers():
    data = QUESTIONS["ties"].data
    scores = candidates.brier(data, OURS)
    values = np.array([rule(scores, data.times) for rule in candidates.RULES.values()])
    known, estimated = (candidates.standard_errors(data, OURS, known=known) for known in (True, False))
    errors = np.array([known, estimated, candidates.martingale_errors(data)])
    for numbers in (values[:, None], errors):
        apart = np.abs(numbers[:, None] - numbers).max(axis=2) + np.eye(len(numbers))
        assert apart.min() > 10 * finding.TOLERANCE


# Asking


class Stubborn(packages.Package):
    name = "stubborn"

    def brier(self, data):
        try:
            return 1 / 0
        except ZeroDivisionError as error:
            raise SystemError("at 0x7f0000000000") from error

    def integrated(self, data):
        import warnings

        warnings.warn("beware", stacklevel=1)
        return [0.5]


def test_answers_are_numbers_or_the_first_cause_of_an_error():
    def ask(kind):
        return packages.answer(Stubborn(), Question(kind, QUESTIONS["page"].data))

    assert ask("brier") == {"error": "ZeroDivisionError: division by zero"}
    assert ask("integrated") == {"values": [0.5], "warned": True}
    assert ask("administrative") == {"not offered": True}


def test_without_r_its_packages_have_a_reason(capsys):
    assert conformance.table(["pec"], None) == {"pec": {"version": None, "reason": "there is no Rscript"}}


@pytest.mark.parametrize(
    ("output", "why"),
    [
        ("  File x\n      KeyError: 'numpy'\nerror: subprocess-exited-with-error\n", "KeyError: 'numpy'"),
        ("ERROR: Ignored\nERROR: No matching distribution found for a<1\n", "No matching distribution found for a<1"),
        ("Error in loadNamespace(x) : there is no package called 'pec'\n", "there is no package called 'pec'"),
        ("", "no reason was given"),
    ],
)
def test_the_reason_is_read_from_what_an_installation_prints(output, why):
    assert conformance.reason(output) == why

"""Reports of competing causes: each named, and what users name is text."""

import json
import re

import numpy as np
import pytest

import survscore as ss
from survscore.reports import summarise

TIMES = np.array([2.0, 4.0, 8.0])
HOSTILE = "<script>alert(2)</script>"


@pytest.fixture(scope="module")
def case():
    """Return outcomes with two causes, of which one has a name that means harm, and two models."""
    rng, n = np.random.default_rng(5), 600
    rates = np.stack([rng.gamma(2, 0.04, n), rng.gamma(4, 0.03, n)], axis=1)
    total = rates.sum(axis=1)
    event_time, end = rng.exponential(1 / total), rng.uniform(2, 12, n)
    cause = np.where(rng.uniform(size=n) < rates[:, 0] / total, 1, 2) * (event_time <= end)
    y = ss.Outcomes(np.minimum(event_time, end), cause, end, causes=["relapse", HOSTILE])
    right = (rates / total[:, None])[:, :, None] * (1 - np.exp(-total[:, None] * TIMES))[:, None, :]
    flat = np.broadcast_to(right.mean(axis=0), right.shape)
    models = {"good": right, "flat": flat}
    return y, {name: ss.IncidenceCurves(values, TIMES, causes=y.causes) for name, values in models.items()}


@pytest.fixture(scope="module")
def report(case):
    return ss.report(*case, unit="month", n_curves=3)


def test_a_report_has_a_part_for_each_cause_and_all_together(case, report):
    y, models = case
    parts = report.summary["causes"]
    assert [part["cause"] for part in parts] == ["relapse", HOSTILE, None]
    assert [part["all_causes"] for part in parts] == [False, False, True]
    for part, cause in zip(parts, ("relapse", HOSTILE, "all"), strict=True):
        wanted = ss.compare(y, models, metric=["brier", "log"], cause=cause).scores
        assert part["scores"]["score"] == pytest.approx(wanted["score"].tolist(), nan_ok=True)
        assert part["null_model"] == "Aalen-Johansen"
    assert parts[2]["metrics"]["brier"]["label"] == "multi-class Brier score"
    assert json.loads(json.dumps(report.summary)) == report.summary


def test_one_cause_is_the_same_as_its_part(case, report):
    one = summarise(*case, unit="month", cause="relapse")
    part = report.summary["causes"][0]
    for name in ("scores", "means", "verdicts", "calibration", "horizons", "answer", "data", "leaks"):
        assert one[name] == part[name]
    assert "causes" not in one


def test_events_are_counted_by_cause(case, report):
    y, _ = case
    data = report.summary["causes"][0]["data"]
    assert dict(zip(data["causes"]["cause"], data["causes"]["events"], strict=True)) == y.n_by_cause
    remaining = data["remaining"]
    for t, ours, others in zip(remaining["time"], remaining["events"], remaining["other_events"], strict=True):
        assert ours == np.sum((y.cause == 1) & (y.time <= t))
        assert others == np.sum((y.cause == 2) & (y.time <= t))


def test_curves_of_individuals_are_stacked(case, report):
    y, models = case
    curves = report.summary["curves"]
    table = {name: np.array(column) for name, column in curves["curves"].items()}
    assert set(table["cause"]) == set(y.causes)
    label = curves["people"]["individual"][0]
    for name, model in models.items():
        for k, cause in enumerate(y.causes):
            rows = (table["individual"] == label) & (table["model"] == name) & (table["cause"] == cause)
            values = model[int(label)].at(table["time"][rows].astype(float))[0]
            np.testing.assert_allclose(table["incidence"][rows].astype(float), values[k])
            np.testing.assert_allclose(table["up_to"][rows].astype(float), values[: k + 1].sum(axis=0))
            np.testing.assert_allclose(table["below"][rows].astype(float), values[:k].sum(axis=0), atol=1e-15)
    events = set(map(str, curves["people"]["event"]))
    assert events <= {"False", *y.causes}


def test_names_of_causes_are_text(report):
    page = report.html
    assert HOSTILE not in page
    assert "&lt;script&gt;alert(2)&lt;/script&gt;" in page
    assert page.count("<script>") == 1
    assert page.count('<input type="radio" name="cause"') == 3


def test_sections_of_causes_have_names_of_their_own(report):
    ids = re.findall(r' id="([^"]+)"', report.html)
    assert len(ids) == len(set(ids))
    targets = re.findall(r'href="#([^"]+)"', report.html)
    assert set(targets) <= set(ids)
    assert {"cause-1-answer", "cause-2-answer", "cause-3-answer", "curves"} <= set(ids)
    data = json.loads(re.search(r'id="data-json">(.*?)</script>', report.html, re.DOTALL)[1])
    for name in re.findall(r'data-(?:chart|fill|table)="([^"]+)"', report.html):
        assert name in data["tables"] or name in data["panels"] or name.endswith(("answer", "backtest"))


def test_what_reports_on_several_causes_can_not_have(case, tmp_path):
    y, models = case
    with pytest.raises(ss.InputError, match=r"history and backtest are of one cause of events: say .* \(cause=\)"):
        ss.report(y, models, history=tmp_path / "h.jsonl")
    with pytest.raises(ss.InputError, match="say which one scores are of"):
        ss.report(y, {"one": models["good"].for_cause(1)})
    of_auc = summarise(y, models, metric="auc", weighting="administrative", n_curves=0)
    assert [part["cause"] for part in of_auc["causes"]] == ["relapse", HOSTILE]  # there is no multi-class AUC

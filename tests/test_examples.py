"""The examples of the gallery run, draw, and show what their text says."""

import ast
import importlib.util
import runpy
from pathlib import Path

import numpy as np
import pytest

import survscore as ss

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))
OPTIONAL = {"pycox", "torchtuples"}  # what only the extra docs installs
NEED_DATA = {"plot_then_and_now": "cdnow", "plot_diabetes_register": "dmlate"}


def imported(path):
    """Return the packages that a script imports."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module.split(".")[0]


def by_model(contrasts):
    return contrasts.set_index("model")


# What the text of each example says of its numbers, given the variables that it leaves; functions have its name


def plot_churn_with_dates(found):
    contrasts = by_model(found["whole"].contrasts)
    assert contrasts.upper["net"] < 0 < contrasts.lower["Kaplan-Meier"]


def plot_the_leak(found):
    def difference(outcomes, weighting):
        models = {name: found["models"][name] for name in ("hazard net", "classifiers")}
        settings = {"weighting": weighting, "times": found["times"], "null": False, "ranges": [(10, 90)]}
        result = ss.compare(outcomes, models, **settings)
        return result.integrated(10, 90).contrasts.iloc[0]

    truth, administrative = difference(found["in_full"], "uncensored"), difference(found["y"], "administrative")
    assert 0 < administrative.lower < administrative.difference < truth.difference
    assert difference(found["y"], "ipcw").upper < 0


def plot_clinical_trial(found):
    difference = found["table"]["difference"].to_dict()
    _, by_frailty, kaplan_meier, ipcw, pretended = difference.values()
    assert pretended < 0 < min(kaplan_meier, ipcw)
    assert max(kaplan_meier, ipcw) < by_frailty
    assert found["bounds"].bound_lower < 0 < found["bounds"].bound_upper


def plot_heart_transplants(found):
    table = found["table"].to_frame()
    updated = table[table["model"] == "updated"]
    assert updated[updated["landmark"] == 0]["difference"].abs().max() < 1e-12
    assert set(updated[updated["summary"]]["verdict"]) == {"undecided"}
    assert found["mean"]["se"] > 1.2 * found["naive"]


def plot_delayed_entry(found):
    table = found["table"].to_frame().set_index(["metric", "time", "model"])
    right, wrong = (table.xs(name, level="model") for name in ("from entry on", "from the start"))
    assert wrong.loc[("brier", 10.0), "verdict"] == "worse"
    assert 0.95 < right.loc[("oe", 10.0), "estimate"] < 1.1
    assert str(found["caught"][0].message).startswith("entries may be delayed, or predicted risks come too early: 15 ")


def plot_cross_validation(found):
    assert {name: search.best_params_["keep"] for name, search in found["searches"].items()} == {
        "administrative": "administrative",
        "IPCW": "known",
    }
    contrasts = by_model(found["truth"].integrated(10, 80).contrasts)
    assert contrasts.lower["found with IPCW"] > 0


def plot_pycox_model(found):
    contrasts = by_model(found["comparison"].integrated(1, 90).contrasts)
    assert contrasts.upper["LogisticHazard"] < 0


def plot_caps(found):
    independent, told = found["found"].values()
    assert independent["1"] < 0 < independent["none"]
    assert max(value for cap, value in told.items() if cap not in ("administrative", "uncensored")) < 0
    assert min(told["administrative"], told["uncensored"], independent["administrative"]) > 0


def plot_leaking_classifier(found):
    (verdict,) = found["comparison"].recommendation().verdicts
    assert (verdict.verdict, verdict.encodes) == ("worse", ("dated",))
    assert "Do not use it for new individuals" in verdict.sentence


def plot_add_a_weighting(found):
    by_metric = found["comparison"].integrated(2, 60).contrasts.query("model == 'for companies'").set_index("metric")
    assert by_metric.verdict.to_dict() == {"spherical": "worse", "discrimination_slope": "worse"}
    for name in ("scores", "se"):
        of_all, administrative = (getattr(found[key], name) for key in ("same_for_all", "administrative"))
        assert np.abs(of_all - administrative).max() < 1e-12
    everybody, weighted, as_it_is = (row for _, row in found["table"].iterrows())
    assert [one.verdict for one in (everybody, weighted, as_it_is)] == ["worse", "worse", "better"]


def plot_report(found):
    verdicts = found["report"].summary["verdicts"]
    about = {
        weighting: verdict
        for metric, weighting, model, verdict in zip(
            *(verdicts[key] for key in ("metric", "weighting", "model", "verdict")), strict=True
        )
        if (metric, model) == ("brier", "by serial number")
    }
    assert list(about.values()) == ["undecided", "worse", "better"]  # administrative, projected, IPCW
    assert "by serial number probably encodes the entry date" in found["report"].summary["answer"]["brier"]["sentence"]


def plot_then_and_now(found):
    table = found["table"]
    for cutoff in ("1997-04-15", "1997-04-30"):
        day = table.loc[cutoff]
        assert day["administrative"].idxmin() == day["truth"].idxmin() == "logistic"
        assert day["IPCW"].idxmin() == day["truth"].idxmax() == day["administrative"].idxmax() == "boosting, day, drops"
    assert found["found"].accused


def plot_competing_risks(found):
    by_cause, by_drop_out = found["by_cause"], found["by_drop_out"]
    assert (by_cause["incidences"] < by_cause["others as censored"]).all()
    assert (by_drop_out["others as censored"] < by_drop_out["incidences"]).all()
    assert found["alone"].sum(axis=0).max() > 1 >= found["incidences"].probabilities.sum(axis=1).max()
    assert found["aucs"].loc["retirement", "not-case"] > found["aucs"].loc["retirement", "event-free"]
    contrast = found["result"].contrasts.iloc[-1]
    assert contrast["lower"] > 0  # of Aalen-Johansen to the incidences, over all statuses


def plot_diabetes_register(found):
    table = found["table"]
    assert table["IPCW, then"].idxmin() == table["in truth"].idxmax() == "boosting, date, drops"
    administrative = table["administrative, then"]
    assert administrative.idxmin() == table["in truth"].idxmin() == "Cox"
    assert found["diagnosis"].models.set_index("model")["verdict"].to_dict() == {
        "Cox": "no sign", "boosting, date": "no sign", "boosting, date, drops": "encodes C*",
    }  # fmt: skip


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs_and_shows_what_it_says(path, tmp_path, monkeypatch):
    missing = sorted(name for name in OPTIONAL & set(imported(path)) if importlib.util.find_spec(name) is None)
    if missing:
        pytest.skip(f"needs {' and '.join(missing)}: pip install '.[docs]'")
    data = NEED_DATA.get(path.stem)
    if data is not None and data not in ss.datasets.available():
        pytest.skip(f"needs {data}: {ss.datasets.describe()['how_to_get'][data]}")
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot as plt
    from threadpoolctl import threadpool_limits

    plt.close("all")
    monkeypatch.chdir(tmp_path)
    try:
        with threadpool_limits(1):  # beside other tests, threads that wait for each other take ten times as long
            found = runpy.run_path(str(path))  # warnings are errors, as in all tests
        figures = [plt.figure(number) for number in plt.get_fignums()]
        assert figures
        assert all(any(ax.lines or ax.containers or ax.collections for ax in figure.axes) for figure in figures)
    finally:
        plt.close("all")
    assert list(tmp_path.iterdir()) == []
    globals()[path.stem](found)  # every example has claims

"""Predictions are evaluated where they were made, unless somebody says how to read between few times."""

import json
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import survscore as ss
from commands import run
from survscore.results.estimates import Estimates

N = 3000
RNG = np.random.default_rng(1)
X = RNG.normal(size=N)
RATE = 0.05 * np.exp(X)
EVENT_TIME, END = RNG.exponential(1 / RATE), RNG.uniform(5, 25, N)
Y = ss.Outcomes(np.minimum(EVENT_TIME, END), EVENT_TIME <= END, END)
HORIZONS = [3.0, 6.0, 9.0, 12.0]
FINE = np.linspace(0.2, 24.4, 122)
BETWEEN = np.linspace(0, 12, 101)


def cox(times, interpolation=None, strength=1.0, **how):
    """Return the curves of a proportional hazards model at some times."""
    rate = 0.05 * np.exp(strength * X)
    return ss.SurvivalCurves(
        np.exp(-rate[:, None] * np.asarray(times, dtype=float)), times, interpolation=interpolation, **how
    )


def compared(models, **asked):
    return ss.compare(Y, models, **{"weighting": "administrative", "null": False, **asked})


@pytest.fixture
def no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


# The two cases that were wrong: verdicts made by straight lines


@pytest.mark.usefixtures("no_warning")
def test_a_classifier_has_the_same_verdict_with_and_without_times():
    classifiers = ss.models.HorizonClassifiers(LogisticRegression(), times=HORIZONS, keep="administrative")
    models = {"smooth": cox(FINE), "classifier": classifiers.fit(X[:, None], Y).predict_curves(X[:, None])}
    with_times, without = compared(models, times=HORIZONS), compared(models)
    assert without.times.tolist() == HORIZONS
    pd.testing.assert_frame_equal(without.contrasts, with_times.contrasts)
    pd.testing.assert_frame_equal(without.integrated().contrasts, with_times.integrated().contrasts)
    assert "interpolation" not in str(without)


def test_a_model_does_not_differ_from_itself_on_fewer_times():
    models = {"on 122": cox(FINE), "on 3": cox([6.0, 12.0, 18.0])}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = compared(models)
        table = ss.score_table(Y, models, weighting="administrative", null=False).to_frame()
    assert found.times.tolist() == [6, 12, 18]
    assert found.contrasts["verdict"].tolist() == ["undecided"] * 3
    assert found.integrated().contrasts["p_value"].item() > 0.9
    assert set(table["verdict"][table["difference"].notna()]) == {"undecided"}
    with pytest.warns(ss.InterpolationWarning, match="of 'on 3' are at 3 times .6 to 18., and at 98 times"):
        lines = compared(models, times=BETWEEN[1:])
    (arrays,) = lines.scored
    rigid = replace(lines, scored=(replace(arrays, interpolation=None),))
    assert rigid.integrated().contrasts["verdict"].item() == "worse"  # that of straight lines, which is why it warns
    assert lines.integrated().contrasts["verdict"].item() == "undecided"


# Differences that interpolation makes


def too_high(times, interpolation=None, factor=1.3):
    """Return curves whose hazards are too high by a factor: an error of interpolation has a systematic effect."""
    hazards = factor * RATE[:, None]
    return ss.SurvivalCurves(np.exp(-hazards * np.asarray(times)), times, interpolation=interpolation)


OTHER_TIMES = [5.9, 12.1, 18.3]  # of which none is in FINE


@pytest.mark.usefixtures("no_warning")
@pytest.mark.parametrize("metric", ["brier", "log"])
@pytest.mark.parametrize("weighting", ["administrative", "projected"])
def test_a_model_does_not_differ_from_itself_on_other_times(weighting, metric):
    models = {"on 122": too_high(FINE), "on 3": too_high(OTHER_TIMES), "right": too_high(OTHER_TIMES, factor=1.0)}
    found = compared(models, weighting=weighting, metric=metric)
    (arrays,) = found.scored
    rigid = replace(found, scored=(replace(arrays, interpolation=None),)).contrasts
    assert (rigid["p_value"][rigid["model"] == "on 3"] < 0.001).any()  # by 0.000002
    for contrasts in (found.contrasts, found.integrated().contrasts):
        of_3 = contrasts[contrasts["model"] == "on 3"]
        assert set(of_3["verdict"]) == {"undecided"}
        assert (of_3["p_value"] == 1).all()
    assert found.integrated().contrasts["verdict"].tolist() == ["undecided", "better"]
    assert "some differences are no larger than the effect of interpolation" in str(found)


def test_the_effect_of_interpolation_exceeds_its_error_and_is_small():
    models = {"on 122": too_high(FINE), "on 151": too_high(np.linspace(0.1, 24.4, 151)), "all": too_high(BETWEEN[1:])}
    found = compared(models, times=BETWEEN[1:], null=True)
    (arrays,) = found.scored
    effect = arrays.interpolation
    error = np.abs(arrays.scores[:2] - arrays.scores[2])
    assert (effect.changes[:2] >= error - 1e-15).all()
    assert effect.changes.max() < 5e-5
    assert (effect.changes[2:] == 0).all()  # read at its own times, and the null model
    np.testing.assert_array_equal(effect.changes[0] > 0, ~np.isin(BETWEEN[1:].round(9), FINE.round(9)))
    np.testing.assert_array_equal(effect.of(0, 1), effect.changes[0] + effect.changes[1])
    assert (effect.of(0, 3) == 0).all()
    other = {"on 122": models["on 122"], "other": cox([6.1], strength=0.2)}
    assert compared(other).scored[0].interpolation.changes[0] > 0
    assert "effect of interpolation" not in str(compared(other))


def test_intervals_have_room_for_the_effect_of_interpolation():
    found = compared({"on 122": too_high(FINE), "right": too_high(OTHER_TIMES, factor=1.0)}, null=True)
    (arrays,) = found.scored
    rigid = replace(found, scored=(replace(arrays, interpolation=None),))
    room, (weights, _) = arrays.interpolation.of(1, 0), found.means_over()["brier"]
    assert (room > 0).all()
    pairs = [(found, rigid, room), (found.integrated(), rigid.integrated(), [room @ weights])]
    for with_room, without, wider in pairs:
        a, b, own = with_room.contrasts, without.contrasts, with_room.contrasts["model"] == "right"
        np.testing.assert_allclose((a["upper"] - b["upper"])[own], wider, rtol=1e-6)
        np.testing.assert_allclose((b["lower"] - a["lower"])[own], wider, rtol=1e-6)
        assert (a["p_value"] > b["p_value"])[own].all()
        pd.testing.assert_frame_equal(a[~own], b[~own])  # Kaplan-Meier
    skill, narrow = (Estimates(one.scored[0]).skill_difference(1, 0, 2) for one in (found, rigid))
    np.testing.assert_allclose(skill["upper"] - narrow["upper"], room / arrays.scores[2], rtol=1e-6)


@pytest.mark.parametrize(
    "models",
    [
        {"a": too_high(FINE), "b": cox(FINE)},  # read alike
        {"a": too_high(FINE, "linear"), "b": cox(OTHER_TIMES)},  # the user says what is predicted between
        {"a": too_high(FINE, "step"), "b": cox(OTHER_TIMES)},
        {"a": too_high(np.union1d(FINE, OTHER_TIMES)), "b": cox(OTHER_TIMES)},  # not read between
    ],
)
def test_no_effect_of_interpolation(models):
    (arrays,) = compared(models, times=OTHER_TIMES).scored
    assert arrays.interpolation is None


# Which times


@pytest.mark.usefixtures("no_warning")
@pytest.mark.parametrize("interpolation", [None, "linear", "step", "constant-hazard"])
def test_few_predicted_times_are_the_default(interpolation):
    found = ss.brier_score(Y, cox([0.0, *HORIZONS, 24.9], interpolation), weighting="administrative")
    assert found.times.tolist() == HORIZONS  # without time 0, and as far as 5 % are followed
    assert ss.auc(Y, cox(HORIZONS, interpolation), weighting="administrative").times.tolist() == HORIZONS
    stream = ss.StreamingScore(Y, weighting="administrative").update(cox(HORIZONS, interpolation))
    assert stream.result().times.tolist() == HORIZONS
    assert "(default)" in repr(found)


def test_times_that_models_share():
    models = {"a": cox([3.0, 6.0, 9.0]), "b": cox([6.0, 9.0, 12.0]), "fine": cox(FINE)}
    assert compared(models).times.tolist() == [6, 9]
    assert compared({**models, "short": cox(np.linspace(0.1, 8, 80))}).times.tolist() == [6]
    late = {"late": cox([24.9]), "fine": cox(FINE, extrapolation="hold")}
    assert compared(late).times.tolist() == [24.9]  # nothing was predicted where many are followed


def test_many_times_of_which_few_are_within_the_follow_up():
    long, longer = np.linspace(5, 200, 40), np.linspace(5, 205, 41)
    assert compared({"a": cox(long), "b": cox(longer)}).times.tolist() == [5, 10, 15, 20]
    assert compared({"a": cox(long), "b": cox(np.linspace(4, 200, 50))}).times.size == 101
    for n_times, n_evaluated in ((20, 20), (21, 101)):
        curves = cox(np.linspace(0.5, 10, n_times))
        assert ss.brier_score(Y, curves, weighting="administrative").times.size == n_evaluated


def test_models_that_share_no_time():
    models = {"a": cox([4.0, 8.0]), "b": cox([3.0, 6.0, 9.0])}
    with pytest.raises(ss.InputError, match=r"share none up to 8: 'a' at 4, 8; 'b' at 3, 6, 9\. Name the times"):
        compared(models)
    with pytest.warns(ss.InterpolationWarning) as caught:
        assert compared(models, times=[6, 8]).times.tolist() == [6, 8]
    assert [str(one.message).split("'")[1] for one in caught] == ["a", "b"]
    table = ss.score_table(Y, models, weighting="administrative", horizons=[6], metric=["brier", "integrated_brier"])
    frame = table.to_frame()
    assert frame[frame.metric == "brier"].estimate.notna().all()
    assert frame[frame.metric == "integrated_brier"].estimate.isna().all()
    assert "share none" in frame.note.iloc[-1]
    told = {"a": cox([4.0, 8.0], "constant-hazard"), "b": cox([3.0, 6.0, 9.0], "constant-hazard")}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = compared(told)  # how they are read between their times was said
    assert (found.times.size, found.times[-1]) == (101, 8)


# Warnings


def test_a_warning_points_at_the_line_and_says_what_to_do():
    with pytest.warns(ss.InterpolationWarning) as caught:
        ss.brier_score(Y, cox(HORIZONS), weighting="administrative", times=[2, 3, 4])
    (one,) = caught
    assert one.filename == __file__
    assert str(one.message) == (
        "the predictions are at 4 times (3 to 12), and at 2 times they are read between these by straight lines that "
        "start from S(0) = 1. Name predicted times (`times or horizons`), or say how to read between them "
        "(`interpolation`)"
    )
    net = cox(HORIZONS)
    for call in (
        lambda: ss.calibration(Y, net, 5.0, n_draws=1),
        lambda: ss.decision_curve(Y, {"net": net}, 5.0),
        lambda: ss.score_table(Y, {"net": net}, weighting="administrative", horizons=[5.0], metric="auc"),
        lambda: ss.score_all(Y, ss.CurveBatches(lambda: [net], N), weighting="administrative", times=[5]),
        lambda: ss.distribution_calibration(Y, net, form="continuous"),
    ):
        with pytest.warns(ss.InterpolationWarning, match="read between these by|for the whole curve") as caught:
            call()
        assert {one.filename for one in caught} == {__file__}


@pytest.mark.usefixtures("no_warning")
def test_what_is_exact_between_times_or_was_asked_for_is_not_warned_about():
    fine = cox(FINE)
    compared({"net": cox(HORIZONS), "fine": fine}, times=[0, *HORIZONS])
    compared({"net": cox(HORIZONS, extrapolation="hold")}, times=[12, 15])
    kaplan_meier = ss.models.KaplanMeier().fit(None, Y[:15]).predict_curves(np.zeros((N, 1)))
    compared({"Kaplan-Meier": kaplan_meier, "fine": fine}, times=BETWEEN)
    for how in ("linear", "step", "constant-hazard"):
        compared({"net": cox(HORIZONS, how), "fine": fine}, times=BETWEEN)
        assert not cox(HORIZONS, how)[:5].default_interpolation


def test_metrics_of_whole_curves_warn_at_predicted_times_too():
    models = {"net": cox(HORIZONS), "fine": cox(FINE)}
    told = "of 'net' are at 4 times .3 to 12., and for the whole curve they are read"
    with pytest.warns(ss.InterpolationWarning, match=told) as caught:
        assert compared(models, metric="crps", times=[12]).times.tolist() == [12]
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compared({"net": cox(HORIZONS, "linear"), "fine": cox(FINE)}, metric="crps", times=[12])
        compared(models, metric="concordance", times=[12])  # which goes by the order at that time


# Tables, settings, other functions


def test_settings_and_print_tell_how_each_model_is_read():
    models = {"net": cox(HORIZONS), "steps": cox(FINE, "step", extrapolation="hold")}
    found = compared(models)
    assert found.scored[0].settings["curves"]["steps"] == {
        "n_times": 122, "first": 0.2, "last": 24.4, "interpolation": "step", "extrapolation": "hold"
    }  # fmt: skip
    assert str(found).count("interpolation: net linear (4 times), steps step (122 times)") == 1
    table = ss.score_table(Y, {"net": cox(HORIZONS)}, weighting="administrative")
    frame = table.to_frame()
    assert "crps" not in set(frame.metric)  # which nobody asked for, and needs whole curves
    assert table.settings["horizons"] == [12]
    notes = frame.note[frame.metric == "integrated_brier"]
    assert set(notes) == {"mean over the 4 predicted times from 3 to 12"}


def test_cross_validation_evaluates_where_classifiers_predict():
    classifiers = ss.models.HorizonClassifiers(LogisticRegression(), times=HORIZONS)
    found = ss.cross_validate({"net": classifiers}, X[:, None], Y, weighting="administrative", cv=2)
    assert found.comparison.times.tolist() == HORIZONS
    with pytest.warns(ss.InterpolationWarning) as caught:
        ss.cross_validate({"net": classifiers}, X[:, None], Y, weighting="administrative", cv=2, times=[5, 6])
    assert [one.filename for one in caught] == [__file__]  # once, not for each fold


# Files


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    rows = slice(400)
    frame = pd.DataFrame({"time": Y.time, "event": Y.event.astype(int), "censoring_time": Y.censoring_time})[rows]
    frame.to_csv(folder / "outcomes.csv", index=False)
    ss.io.write_predictions(folder / "net.csv", {"net": cox(HORIZONS)[rows]})
    ss.io.write_predictions(folder / "fine.parquet", {"fine": cox(FINE)[rows]})
    return [folder / name for name in ("outcomes.csv", "net.csv", "fine.parquet")]


@pytest.mark.parametrize("command", ["compare", "report"])
def test_the_command_line(command, files, tmp_path, capsys):
    where = ["-o", tmp_path / "report.html"] if command == "report" else ["--json", tmp_path / "found.json"]
    asked = [command, *files, "-w", "administrative", *where]
    code, _, notes = run(capsys, *asked)
    assert (code, "straight lines" in notes) == (0, False)
    if command == "compare":
        assert {row["time"] for row in json.loads(where[1].read_text())["scores"]} == set(HORIZONS)
    code, _, notes = run(capsys, *asked, "-t", "4,8")
    assert code == 0
    assert notes.count("of 'net' are at 4 times (3 to 12)") == 1
    assert "(--interpolation)" in notes
    assert run(capsys, *asked, "-t", "4,8", "--interpolation", "linear")[2].count("straight lines") == 0


def test_files_remember_whether_interpolation_was_said(tmp_path):
    for how in (None, "linear", "step"):
        ss.io.write_predictions(tmp_path / "net.parquet", {"net": cox(HORIZONS, how)[:9]})
        found = ss.io.read_predictions(tmp_path / "net.parquet").models["net"]
        assert (found.interpolation, found.default_interpolation) == (how or "linear", how is None)

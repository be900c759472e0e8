"""Scores of the validation data after every epoch."""

import numpy as np
import pytest

import survscore as ss
from survscore.models import BCESurvival, LogisticHazard, ValidationScore
from survscore.models.history import TrainingHistory

QUICK = {"n_times": 10, "width": 8, "n_layers": 2, "epochs": 3, "random_state": 0, "device": "cpu", "progress": False}
STUDY = ss.simulate.SineConstantAcceleratingStudy("simple")
SAMPLE, HELD_OUT = STUDY.sample(600, seed=1), STUDY.sample(300, seed=2)
X, Y = SAMPLE.covariates, SAMPLE.outcomes
VALIDATION = (HELD_OUT.covariates, HELD_OUT.outcomes)


@pytest.mark.parametrize("kind", [LogisticHazard, BCESurvival])
@pytest.mark.parametrize("weighting", ["administrative", "ipcw"])
def test_the_kept_epoch_has_the_score_of_the_kept_model(kind, weighting, monkeypatch):
    monkeypatch.setattr("survscore.models.training.ROWS_PER_EVALUATION", {"cpu": 70})
    times = np.arange(5.0, 80.0, 5.0)
    score = ValidationScore(weighting=weighting, times=times)
    model = kind(**QUICK).fit(X, Y, validation=VALIDATION, scores=score)
    history = model.history_.to_frame().set_index("epoch")
    curves = model.predict_curves(VALIDATION[0])
    expected = ss.brier_score(VALIDATION[1], curves, weighting=weighting, times=times).integrated(nan="stop").value
    assert history["validation_brier"][model.history_.best_epoch] == pytest.approx(expected, rel=1e-6)


def test_scores_do_not_change_training():
    plain = LogisticHazard(**QUICK).fit(X, Y)
    scored = LogisticHazard(**QUICK).fit(X, Y, scores=[ValidationScore(), ValidationScore(metric="log")])
    assert {"validation_brier", "validation_log"} <= set(scored.history_.to_frame())
    np.testing.assert_array_equal(plain.predict_curves(X).probabilities, scored.predict_curves(X).probabilities)


def test_history_with_scores_is_plain_data_and_drawn():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    model = LogisticHazard(**QUICK).fit(X, Y, scores=ValidationScore(times=[10, 20]))
    assert TrainingHistory.from_dict(model.history_.to_dict()) == model.history_
    labels = [text.get_text() for text in model.history_.plot().figure_.legends[0].get_texts()]
    assert labels == ["training (with dropout)", "validation", "kept", "validation_brier"]


@pytest.mark.parametrize(
    ("scores", "changes", "message"),
    [
        ("brier", {}, "scores must be ValidationScore, one or several, not str"),
        ([ValidationScore(), ValidationScore()], {}, "not 'validation_brier' twice"),
        (ValidationScore(), {"validation_share": 0}, "scores need validation data"),
        (ValidationScore(metric="auc"), {}, "auc needs all predictions at once"),
    ],
)
def test_bad_scores_are_refused_before_training(scores, changes, message):
    with pytest.raises(ss.InputError, match=message):
        LogisticHazard(**QUICK | changes).fit(X, Y, scores=scores)

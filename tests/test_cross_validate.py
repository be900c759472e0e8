from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, ShuffleSplit, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sksurv.ensemble import RandomSurvivalForest
from sksurv.linear_model import CoxPHSurvivalAnalysis

import survscore as ss
from estimator_cases import TIMES, sample

X, Y = sample(200)
GROUPS = np.arange(200) // 2


class Exponential(BaseEstimator):
    """A rate that grows with the first covariate, on a grid as the fold happens to have it."""

    def __init__(self, strength=1.0, random_state=None, fails=False):
        self.strength = strength
        self.random_state = random_state
        self.fails = fails

    def fit(self, X, y):
        if self.fails:
            raise ZeroDivisionError("nothing to divide by")
        self.y_ = y
        self.rate_ = y["event"].sum() / y["time"].sum() if hasattr(y, "dtype") else y.event.sum() / y.time.sum()
        self.grid_ = np.linspace(0.5, (y["time"] if hasattr(y, "dtype") else y.time).max(), 30)
        return self

    def predict_curves(self, X):
        X = np.asarray(X)
        rate = self.rate_ * np.exp(self.strength * X[:, 0])
        return ss.SurvivalCurves(np.exp(-rate[:, None] * self.grid_), self.grid_)


MODELS = {"right": Exponential(), "wrong": Exponential(-0.2)}


def validated(models=MODELS, X=X, y=Y, **options):
    return ss.cross_validate(models, X, y, **{"weighting": "administrative", "times": TIMES, "cv": KFold(4), **options})


# The pooled comparison


def test_the_pooled_score_is_that_of_folds_made_by_hand():
    found = validated()
    expected = {}
    for name, model in MODELS.items():
        survival = np.empty((200, TIMES.size))
        for train, test in KFold(4).split(X):
            survival[test] = model.fit(X[train], Y[train]).predict_curves(X[test]).at(TIMES)
        expected[name] = ss.SurvivalCurves(survival, TIMES)
        np.testing.assert_allclose(found.curves[name].at(TIMES), survival, rtol=1e-12)
        for j, t in enumerate(TIMES):  # from literal sums
            counted = [i for i in range(200) if Y.censoring_time[i] >= t]
            brier = sum(((Y.time[i] > t) - survival[i, j]) ** 2 for i in counted) / len(counted)
            table = found.comparison.scores
            row = table[(table["model"] == name) & (table["time"] == t)]
            assert row["score"].item() == pytest.approx(brier, rel=1e-12)
    there = ss.compare(Y, expected, weighting="administrative", times=TIMES)
    for kind in ("scores", "contrasts", "skill"):
        pd.testing.assert_frame_equal(getattr(found.comparison, kind), getattr(there, kind), rtol=1e-9)
    pd.testing.assert_frame_equal(found.comparison.integrated().contrasts, there.integrated().contrasts, rtol=1e-9)


LABELS = (X[:, 0] > 0).astype(int)


@pytest.mark.parametrize(
    "weighting",
    [
        ss.Projected(strata=LABELS, min_followed=1),
        ss.Projected(reference=Exponential().fit(X, Y).predict_curves(X), min_followed=1),
        ss.Administrative(dropout_strata=LABELS),
        ss.IPCW(strata=LABELS),
    ],
    ids=str,
)
def test_weightings_with_a_value_for_each_individual_are_cut_to_folds(weighting):
    rng = np.random.default_rng(1)
    lost = np.minimum(Y.time, rng.exponential(12, len(Y)))
    y = ss.Outcomes(lost, Y.event & (lost == Y.time), Y.censoring_time)
    found = validated(y=y, weighting=weighting, times=[3])
    (_, test), *_ = KFold(4).split(X)
    score = ss.brier_score(y[test], found.curves["right"][test], weighting=weighting.of_rows(test), times=[3])
    assert found.folds["score"].iloc[0] == pytest.approx(score.scores[0], rel=1e-12)


@pytest.mark.filterwarnings("ignore::survscore.FewFollowedWarning")
@pytest.mark.parametrize(
    "weighting", [ss.Projected("mean-ranks", min_followed=1), ss.Projected(reference="wrong", min_followed=1)]
)
def test_weightings_that_depend_on_all_models_do_so_in_folds(weighting):
    found = validated(weighting=weighting, times=[9], cv=KFold(2))
    (_, test), *_ = KFold(2).split(X)
    curves = {name: one[test] for name, one in found.curves.items()}
    there = ss.compare(Y[test], curves, weighting=weighting, times=[9], null=False).scores
    table = found.folds[found.folds["fold"] == 0]
    np.testing.assert_allclose(table["score"], there["score"], rtol=1e-12)
    alone = ss.compare(Y[test], {"right": curves["right"]}, weighting=ss.Projected(min_followed=1), times=[9])
    assert table["score"].iloc[0] != pytest.approx(alone.scores["score"].iloc[0], rel=1e-6)


def test_what_cannot_be_scored_is_not_fitted():
    for options, message in (({"weighting": "ipwc"}, "weighting must be"), ({"metric": "bryer"}, "metric")):
        with pytest.raises(ss.InputError, match=message):
            validated({"never fitted": Exponential(fails=True)}, **options)


# Folds


def test_the_table_of_folds_is_that_of_scikit_learn():
    found = validated()
    scorer = ss.make_scorer("brier", weighting="administrative", times=TIMES)
    table = found.integrated_folds()
    for name, model in MODELS.items():
        expected = cross_val_score(model, X, Y, scoring=scorer, cv=KFold(4), error_score="raise")
        np.testing.assert_allclose(-table[table["estimator"] == name]["score"], expected, rtol=1e-9)
    assert (found.folds["n"] == 50).all()
    assert found.folds.drop_duplicates(["estimator", "fold"])["n_events"].sum() == 2 * Y.event.sum()
    assert (table[["from", "to"]].to_numpy() == [2, 6]).all()


@pytest.mark.filterwarnings("ignore::survscore.UndefinedScoreWarning")
def test_a_metric_without_a_mean_in_a_fold_leaves_the_others():
    early = [0.0, *TIMES]  # nobody has the event at 0, so that there is no AUC
    counts = validated(metric=["brier", "auc"], times=early).integrated_folds().groupby("metric")["score"].count()
    assert counts.to_dict() == {"auc": 0, "brier": 8}
    with pytest.raises(ss.InputError, match="the score is NaN at"):
        validated(metric="auc", times=early).integrated_folds()


def test_default_folds_share_out_events_and_keep_groups_together():
    found = validated(cv=5, groups=GROUPS)
    for group in range(100):
        assert len(set(found.fold[group == GROUPS])) == 1
    for k in range(5):
        assert abs(Y[found.fold == k].event.mean() - Y.event.mean()) < 0.1
    expected = ss.compare(Y, found.curves, weighting="administrative", times=TIMES, groups=GROUPS)
    pd.testing.assert_frame_equal(found.comparison.scores, expected.scores)
    assert "n_groups" in found.comparison.scores
    assert found.settings["cv"] == "EventKFold(n_splits=5, shuffle=True, random_state=0)"


def test_torn_groups_are_said():
    with pytest.warns(UserWarning, match="cv does not keep groups together: of 67, 2 are in the training and the test"):
        validated(groups=np.arange(200) // 3, cv=list(KFold(4).split(X)))


def test_splitters_see_the_covariates_and_get_the_seed():
    class ByCovariate:
        def split(self, X, y, groups=None):
            for sign in (True, False):
                yield np.flatnonzero((X[:, 1] > 0) != sign), np.flatnonzero((X[:, 1] > 0) == sign)

        def get_n_splits(self, X=None, y=None, groups=None):
            return 2

    np.testing.assert_array_equal(validated(cv=ByCovariate()).fold, np.where(X[:, 1] > 0, 0, 1))
    masks = [(np.arange(200) < 100, np.arange(200) >= 100), (np.arange(200) >= 100, np.arange(200) < 100)]
    np.testing.assert_array_equal(validated(cv=masks).fold, np.repeat([1, 0], 100))
    splitter = KFold(3, shuffle=True)
    first, again, other = (validated(cv=splitter, seed=seed) for seed in (5, 5, 6))
    np.testing.assert_array_equal(first.fold, again.fold)
    assert not np.array_equal(first.fold, other.fold)
    assert splitter.random_state is None
    fixed = [validated(cv=KFold(3, shuffle=True, random_state=1), seed=seed).fold for seed in (5, 6)]
    np.testing.assert_array_equal(*fixed)


# What goes in


def test_frames_structured_targets_pipelines_and_searches():
    scorer = ss.make_scorer("brier", weighting="administrative", times=TIMES)
    cox = ss.adapters.ScikitSurvival(CoxPHSurvivalAnalysis())
    models = {
        "pipeline": make_pipeline(StandardScaler(), cox),
        "search": GridSearchCV(cox, {"estimator__alpha": [0.1, 100.0]}, scoring=scorer, cv=2, error_score="raise"),
        "classifiers": ss.models.HorizonClassifiers(LogisticRegression(), TIMES, keep="administrative"),
    }
    expected = validated(models).comparison.scores
    for frame in (pd.DataFrame(X, columns=["a", "b"], index=np.arange(200)[::-1]), pl.DataFrame(X, schema=["a", "b"])):
        found = validated(models, frame, Y.to_structured(censoring_time=True))
        pd.testing.assert_frame_equal(found.comparison.scores, expected, rtol=1e-9)
        assert found.y.censoring_time is not None


# Seeds and processes


def test_the_seed_decides_everything():
    forest = {"forest": ss.adapters.ScikitSurvival(RandomSurvivalForest(n_estimators=3), times=TIMES)}

    def drawn(seed, models=forest, **options):
        return validated(models, cv=KFold(2), seed=seed, **options).curves["forest"].probabilities

    first = drawn(7)
    np.testing.assert_array_equal(first, drawn(7))
    assert not np.array_equal(first, drawn(8))
    np.testing.assert_array_equal(first, drawn(7, forest | {"second": forest["forest"]}, n_jobs=2))
    fixed = {"forest": forest["forest"].set_params(estimator__random_state=0)}  # a seed that was set is kept
    np.testing.assert_array_equal(drawn(7, fixed), drawn(8, fixed))


def test_open_parameters_are_settled_and_others_left():
    class Talkative(Exponential):
        def __init__(self, strength=1.0, random_state=None, progress=None):
            super().__init__(strength, random_state)
            self.progress = progress

        def fit(self, X, y):
            self.fails = False
            seen.append((self.random_state, self.progress))
            return super().fit(X, y)

    seen = []
    settled = Talkative(random_state=3, progress=True)
    validated({"a": make_pipeline(StandardScaler(), Talkative()), "b": settled})
    assert not hasattr(settled, "y_")  # which was cloned
    assert all(isinstance(seed, int) and bar is False for seed, bar in seen[:4])  # no bar inside our bar
    assert seen[4:] == [(3, True)] * 4


def test_progress_is_told(capsys):
    told = []
    validated(progress=lambda *where: told.append(where))
    assert told[0] == (0, 8, "right")
    assert told[-1] == (8, 8, "wrong, fold 3")
    assert [done for done, *_ in told] == list(range(9))
    assert capsys.readouterr().err == ""  # no terminal


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_an_interrupt_ends_it(n_jobs):
    told = []

    def interrupt(done, total, what):
        told.append(done)
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        validated(progress=interrupt, n_jobs=n_jobs)
    assert told == [0, 1, 2]  # of 8: nothing is waited for after that


def test_interrupted_training_is_no_result():
    """A network takes an interrupt as the wish to stop training; here it is one to stop."""

    class Interrupted(Exponential):
        def fit(self, X, y):
            self.history_ = SimpleNamespace(stopped="interrupted")
            return super().fit(X, y)

    with pytest.raises(KeyboardInterrupt):
        validated({"a": make_pipeline(StandardScaler(), Interrupted())})


# What is wrong


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_a_failing_estimator_is_named_with_its_fold(n_jobs):
    with pytest.raises(ss.InputError, match=r"'b' failed in fold \d: ZeroDivisionError: nothing to") as caught:
        validated({"a": Exponential(), "b": Exponential(fails=True)}, n_jobs=n_jobs)
    assert caught.value.__cause__ is not None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"models": Exponential()}, "estimators must be a mapping of names to estimators, not Exponential"),
        ({"models": {"a": 3}}, "estimator 'a' must be a scikit-learn estimator, with fit and get_params, not int"),
        (
            {"models": {"a": CoxPHSurvivalAnalysis()}},
            r"'a' failed in fold 0: ValueError: y must be .*\(survscore.adapters.ScikitSurvival makes it take",
        ),
        ({"y": Y[:5]}, "y has length 5, but X has length 200"),
        ({"cv": ShuffleSplit(2, random_state=0)}, "cv must test each individual exactly once.* of 200, "),
        ({"cv": [(np.arange(200), np.arange(200))]}, "cv: fold 0 tests 200 individuals that it trains on, the first 0"),
        ({"cv": "five"}, "cv must be a number of folds, a splitter or pairs"),
        ({"reference": "nobody"}, "reference must be one of the models"),
        ({"weighting": None, "y": ss.Outcomes(Y.time, Y.event)}, "weighting must be given"),
    ],
    ids=lambda value: None if isinstance(value, dict) else value[:30],
)
def test_what_is_wrong_is_named(options, message):
    with pytest.raises(ss.InputError, match=message):
        validated(**options)

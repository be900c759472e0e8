"""Delayed entry: outcomes that hold it, product limits, and scores with time counted from it."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import oracle
import survscore as ss
from registry import CASES, problems


@pytest.fixture
def y():
    """Six individuals, of whom two were observed from the start."""
    time, event, end = [6, 9, 4, 12, 7, 10], [1, 0, 1, 0, 1, 0], [10, 9, 8, 12, 11, 15]
    return ss.Outcomes(time, event, end, entry=[0, 5, 2, 8, 3, 0])


class TestOutcomes:
    def test_are_kept_by_slices_and_parts(self, y):
        np.testing.assert_array_equal(y[y.event].entry, [0, 2, 3])
        np.testing.assert_array_equal(ss.Outcomes.concatenate([y[:2], y[4:]]).entry, [0, 5, 3, 0])
        assert y.for_cause(1).entry is y.entry

    def test_time_is_counted_from_entry(self, y):
        later = y.since_entry()
        np.testing.assert_array_equal(later.time, [6, 4, 2, 4, 4, 10])
        np.testing.assert_array_equal(later.censoring_time, [10, 4, 6, 4, 8, 15])
        np.testing.assert_array_equal(later.event, y.event)
        assert later.entry is None

    def test_representations_name_them(self, y):
        assert repr(y).endswith("entry 0 to 8)")
        assert "entry" in y._repr_html_()

    def test_frames_and_structured_arrays(self, y):
        frame = pd.DataFrame({"t": y.time, "d": y.event, "c": y.censoring_time, "a": y.entry})
        read = ss.Outcomes.from_frame(frame, time="t", event="d", censoring_time="c", entry="a")
        np.testing.assert_array_equal(read.entry, y.entry)
        array = np.asarray(y)
        assert array.dtype.names == ("event", "time", "censoring_time", "entry")
        np.testing.assert_array_equal(ss.Outcomes.from_structured(array).entry, y.entry)
        with pytest.raises(ss.InputError, match="entry was given twice"):
            ss.Outcomes.from_structured(array, entry=y.entry)
        with pytest.raises(ss.InputError, match="which two fields can't say"):
            y.to_structured(censoring_time=True)

    def test_dates(self):
        dates = {"start": ["2010-01-01", "2014-01-01"], "event_date": ["2016-01-01", None]}
        made = ss.Outcomes.from_dates(**dates, cutoff="2020-01-01", entry_date=["2015-01-01", "2014-01-01"], unit="Y")
        np.testing.assert_array_equal(made.entry, [5, 0])
        np.testing.assert_array_equal(made.time, [6, 6])
        then = made.as_of("2015-07-02")  # day 182 of the 365 of 2015
        np.testing.assert_allclose(then.time, [5 + 182 / 365, 1 + 182 / 365])
        np.testing.assert_array_equal(then.entry, [5, 0])
        with pytest.raises(ss.InputError, match="1 individual of 2 with a start or entry_date after the cut-off"):
            made.as_of("2014-07-01")
        with pytest.warns(UserWarning, match="left out 1 individual of 2"):
            assert len(made.as_of("2014-07-01", late_starts="drop")) == 1

    def test_landmarks_are_of_those_who_entered(self, y):
        rows, later = y.at_landmark(3)
        np.testing.assert_array_equal(rows, [0, 2, 4, 5])
        np.testing.assert_array_equal(later.time, y.time[rows] - 3)
        assert later.entry is None
        np.testing.assert_array_equal(y.at_landmark(y.entry).outcomes.time, y.since_entry().time)

    @pytest.mark.parametrize(
        ("entry", "message"),
        [
            ([0, 2, 5], "entry must be before time: 2 of 3 are not, the first at position 1 (2.0 >= 2.0); both are"),
            ([0, -1, 2], "entry must be zero or larger: 1 of 3 is not, the first at position 1 (-1.0)"),
            ([0, np.nan, 2], "entry must be finite: 1 of 3 is not, the first at position 1 (nan)"),
            ([0, 1], "entry has length 2, but time has length 3"),
        ],
    )
    def test_bad_entries_are_refused(self, entry, message):
        with pytest.raises(ss.InputError, match="^" + re.escape(message)) as error:
            ss.Outcomes([1, 2, 3], [1, 0, 1], entry=entry)
        assert "\n" not in str(error.value)

    def test_those_observed_from_the_start_may_end_then(self):
        assert len(ss.Outcomes([0, 2], [1, 0], entry=[0, 1])) == 2

    @pytest.mark.parametrize(
        ("ask", "message"),
        [
            (lambda y: y.at_landmark(15), "the last was seen at 12"),
            (lambda y: y[1:5].at_landmark(1), "nobody was under observation by 1"),
            (lambda y: y.until(5), "end must be after entry"),
        ],
    )
    def test_times_without_anybody_are_refused(self, y, ask, message):
        with pytest.raises(ss.InputError, match=message):
            ask(y)


class TestProductLimits:
    """Risk sets are of those with entry < s <= time."""

    @pytest.fixture
    def data(self):
        rng = np.random.default_rng(3)
        event_time, entry = rng.exponential(10, 400), rng.uniform(0, 10, 400)
        there = event_time > entry
        event_time, entry = event_time[there], entry[there]
        end = entry + rng.uniform(0, 12, entry.size)
        time = np.ceil(np.minimum(event_time, end))  # ties
        cause = np.where(event_time <= end, rng.integers(1, 3, entry.size), 0)
        return time, cause, np.floor(entry), rng.uniform(0.2, 3, entry.size)

    @pytest.mark.parametrize("weighted", [False, True])
    @pytest.mark.filterwarnings("ignore:It looks like your weights are not integers")
    def test_kaplan_meier_is_that_of_lifelines(self, data, weighted):
        from lifelines import KaplanMeierFitter

        time, cause, entry, weights = data
        y = ss.Outcomes(time, cause > 0, entry=entry)
        own = ss.models.KaplanMeier().fit(None, y.weighted(weights) if weighted else y)
        theirs = KaplanMeierFitter().fit(time, cause > 0, entry=entry, weights=weights if weighted else None)
        at = np.unique(time)
        predicted = own.predict_survival_function([0], at)[0]
        np.testing.assert_allclose(predicted, theirs.survival_function_at_times(at), atol=1e-12)

    @pytest.mark.parametrize("weighted", [False, True])
    def test_aalen_johansen_is_its_definition(self, data, weighted):
        time, cause, entry, weights = data
        y = ss.Outcomes(time, cause, entry=entry)
        weights = weights if weighted else np.ones(time.size)
        own = ss.models.AalenJohansen().fit(None, y.weighted(weights) if weighted else y)
        at, survival, incidence, rows = np.unique(time), 1.0, np.zeros(2), []
        for s in at:
            at_risk = weights[(entry < s) & (s <= time)].sum()
            events = np.array([weights[(time == s) & (cause == k)].sum() for k in (1, 2)])
            incidence = incidence + survival * events / at_risk
            survival *= 1 - events.sum() / at_risk
            rows.append(incidence)
        np.testing.assert_allclose(own.predict_cumulative_incidence([0], at)[0].T, rows, atol=1e-12)

    def test_an_empty_risk_set_is_said(self):
        y = ss.Outcomes([2, 5, 6], [1, 1, 0], entry=[0, 3, 4])
        with pytest.warns(UserWarning, match="survival falls to 0 at 2, where all at risk had the event before others"):
            ss.models.KaplanMeier().fit(None, y)

    def test_other_models_refuse(self, data):
        time, cause, entry, _ = data
        y = ss.Outcomes(time, cause > 0, entry=entry)
        with pytest.raises(ss.UnfitError, match="y has delayed entry, which this model can't use"):
            ss.models.LogisticHazard().fit(entry[:, None], y)


def later(y, entry):
    """Return outcomes whose clock started before they came under observation."""
    end = None if y.censoring_time is None else y.censoring_time + entry
    return ss.Outcomes(y.time + entry, y.event, end, entry=entry)


def entered(problem, entry):
    """Return outcomes whose clock starts before their entry, and the problem as it is from there, literally."""
    y, c = problem.y, problem.curves
    training = replace(problem, training=later(problem.training, entry.max() * (problem.training.time > 0)))

    def read(i, t):
        return oracle.survival_at(c.times, c.probabilities[i], t, c.interpolation, c.extrapolation)

    times = problem.times[c.reaches(problem.times + entry.max())]
    rows = [[read(i, a + t) / (read(i, a) if a else 1.0) for t in times] for i, a in enumerate(entry)]
    literal = None
    if times.size:
        literal = ss.SurvivalCurves(np.array(rows).clip(0, 1), times, "step")
    return later(y, entry), training, replace(problem, curves=literal)


def own_curves(weighting):
    """Whether a weighting was given curves or functions of time, which have no entry to count from."""
    own = weighting.on_own_clock.values() if isinstance(weighting, ss.Weighting) else ()
    return any(not isinstance(given, ss.Outcomes) for given in own)


@pytest.mark.filterwarnings("ignore::survscore.UndefinedScoreWarning", "ignore::survscore.FewFollowedWarning")
class TestScores:
    """Those of u = T - a, C* - a and pi(a + h) / pi(a), for all weightings and metrics."""

    @pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
    @settings(max_examples=15)
    @given(data=st.data())
    def test_agree_with_the_literal_loop(self, case, data):
        problem = data.draw(problems(case.data))
        n = len(problem.y)
        entry = data.draw(st.lists(st.sampled_from([0.0, 0.5, 1.0, 3.0]), min_size=n, max_size=n).map(np.array))
        entry = np.where(problem.y.time > 0, entry, 0.0)
        assume(problem.curves.reaches(np.array([entry.max() + 0.1]))[0])
        assume((problem.curves.at_own(entry)[entry > 0] > 0).all())
        y, given_problem, literal = entered(problem, entry)
        weighting = case.weighting(given_problem)
        assume(literal.curves is not None)
        metrics = ("brier", "log", "auc")

        def scores():
            return ss.score_all(y, problem.curves, metric=metrics, weighting=weighting, times=problem.times)

        if own_curves(weighting) and entry.any():
            with pytest.raises(
                ss.UnfitError, match="with delayed entry count time from there, and curves or functions"
            ):
                scores()
            return
        for name, got in zip(metrics, scores(), strict=True):
            reached = literal.curves.times.size
            at = case.expected(name, literal)
            expected = np.array([at(t) for t in literal.curves.times])
            np.testing.assert_allclose(got.scores[:reached], expected, rtol=1e-12, atol=1e-12, err_msg=name)
            assert np.isnan(got.scores[reached:]).all()

    @pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
    @settings(max_examples=5)
    @given(data=st.data())
    def test_entry_0_is_no_entry_to_the_last_bit(self, case, data):
        problem = data.draw(problems(case.data))
        y = problem.y
        observed = ss.Outcomes(y.time, y.event, y.censoring_time, entry=np.zeros(len(y)))
        asked = {"metric": ["brier", "auc"], "weighting": case.weighting(problem), "times": problem.times}
        for with_entry, without in zip(
            ss.score_all(observed, problem.curves, **asked), ss.score_all(y, problem.curves, **asked), strict=True
        ):
            np.testing.assert_array_equal(with_entry.scores, without.scores)
            np.testing.assert_array_equal(with_entry.se, without.se)
            assert with_entry.settings == without.settings

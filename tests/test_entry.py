"""Delayed entry: outcomes that hold it, product limits, and scores with time counted from it."""

import io
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import oracle
import survscore as ss
from commands import refused, run
from registry import CASES, problems
from survscore.analysis import assumptions


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


class TestModels:
    """Their product limits are those of R's survival: test_reference.py."""

    def test_an_empty_risk_set_is_said(self):
        y = ss.Outcomes([2, 5, 6], [1, 1, 0], entry=[0, 3, 4])
        with pytest.warns(UserWarning, match="survival falls to 0 at 2, where all at risk had the event before others"):
            ss.models.KaplanMeier().fit(None, y)

    def test_others_refuse(self, y):
        with pytest.raises(ss.UnfitError, match="y has delayed entry, which this model can't use"):
            ss.models.LogisticHazard().fit(y.entry[:, None], y)


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
        literal = ss.SurvivalCurves(np.array(rows).clip(0, 1), times, interpolation="step")
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
        # equal ratios may differ in their last digit: whether predictions are tied is up to the numbers that are scored
        times = literal.curves.times
        own = problem.curves.since_entry(entry, times).probabilities
        np.testing.assert_allclose(own, literal.curves.probabilities, rtol=1e-12, atol=1e-12)
        ranked = replace(literal, curves=ss.SurvivalCurves(own, times, interpolation="step", monotone="keep"))
        for name, got in zip(metrics, scores(), strict=True):
            reached = times.size
            at = case.expected(name, ranked if name == "auc" else literal)
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


@pytest.fixture
def delayed():
    """Exponential times of 250 individuals, of whom some were observed from the start, and the true model."""
    rng = np.random.default_rng(5)
    risk, n = rng.normal(size=400), 400
    event_time, entry = rng.exponential(10 * np.exp(-risk)), rng.uniform(0, 8, n) * (rng.random(n) < 0.7)
    end = entry + rng.uniform(2, 15, n)
    there = event_time > entry
    event_time, entry, end, risk = (values[there] for values in (event_time, entry, end, risk))
    y = ss.Outcomes(np.minimum(event_time, end), event_time <= end, end, entry=entry)
    times = np.arange(0.0, 31.0)
    return y, ss.SurvivalCurves(np.exp(-np.exp(risk)[:, None] * times / 10), times, interpolation="constant-hazard")


def by_hand(y, curves, times):
    """Return outcomes and curves as a user would count them from entry."""
    return y.since_entry(), curves.conditional_on(y.entry, times=times)


@pytest.mark.filterwarnings("ignore::survscore.FewFollowedWarning")
class TestAnalyses:
    """Every analysis counts time from entry, and says so."""

    def test_comparisons(self, delayed):
        y, curves = delayed
        models = {
            "true": curves,
            "late": ss.SurvivalCurves(curves.probabilities**0.5, curves.times, interpolation="constant-hazard"),
        }
        found = ss.compare(y, models, times=[2, 5])
        later = {name: by_hand(y, one, [2, 5])[1] for name, one in models.items()}
        expected = ss.compare(y.since_entry(), later, times=[2, 5])
        for one, other in zip(found.scored, expected.scored, strict=True):
            np.testing.assert_array_equal(one.scores, other.scores)
            assert one.settings["clock"] == "time since entry"
            assert "clock" not in other.settings
        assert "individuals; time since entry; reference true; 95 % intervals" in str(found)

    def test_default_times_are_those_since_entry(self, delayed):
        y, curves = delayed
        found = ss.compare(y, {"true": curves}, weighting="administrative", null=False)
        assert found.times[-1] <= 22  # the curves end at 30, and the last entry is before 8
        expected = ss.brier_score(*by_hand(y, curves, found.times), weighting="administrative", times=found.times)
        np.testing.assert_allclose(found.scored[0].scores[0], expected.scores, atol=1e-15)

    def test_predicted_horizons_remain_those_since_entry(self, delayed):
        y, curves = delayed
        few = ss.SurvivalCurves(curves.at([2, 5, 10, 30]), [2, 5, 10, 30], interpolation="constant-hazard")
        np.testing.assert_array_equal(ss.compare(y, {"few": few}, weighting="administrative").times, [2, 5, 10])

    def test_tables_and_figures_of_one_time(self, delayed):
        y, curves = delayed
        later, conditional = by_hand(y, curves, [4.0])
        found = ss.calibration(y, curves, 4)
        assert found.slope == ss.calibration(later, conditional, 4).slope
        assert "Calibration at 4 (time since entry); " in str(found)
        found = ss.decision_curve(y, {"true": curves}, 4, thresholds=[0.2, 0.4])
        expected = ss.decision_curve(later, {"true": conditional}, 4, thresholds=[0.2, 0.4])
        np.testing.assert_array_equal(found.net_benefit, expected.net_benefit)
        assert "at 4 (time since entry)" in str(found)
        terms = ss.score_terms(y, curves, weighting="administrative", times=[4])
        np.testing.assert_array_equal(
            terms.losses, ss.score_terms(later, conditional, weighting="administrative", times=[4]).losses
        )
        assert ss.at_horizon(y, 4).event.sum() == ss.at_horizon(later, 4).event.sum()
        found, expected = (
            ss.counted_population(y, {"true": curves}, times=[4]),
            ss.counted_population(later, {"true": conditional}, times=[4]),
        )
        pd.testing.assert_frame_equal(found, expected)
        table = ss.score_table(y, {"true": curves}, horizons=[4], metric=["brier", "oe"], weighting="administrative")
        assert "individuals; time since entry; 95 % intervals" in str(table)
        assert table.settings["clock"] == "time since entry"

    def test_whole_curves(self, delayed):
        y, curves = delayed
        assert "time since entry" in ss.distribution_calibration(y, curves).notes
        assert ss.diagnose(y, {"true": curves}).sentences[-1] == "All times are time since entry."

    def test_segments_and_reports(self, delayed):
        y, curves = delayed
        by = np.where(np.arange(len(y)) % 2, "odd", "even")
        segments = ss.compare(y, {"true": curves}, weighting="administrative", times=[2, 5], by=by)
        assert "time since entry" in str(segments)
        found = ss.report(y, {"true": curves}, times=[2, 5], horizons=[5], n_curves=1)
        assert found.summary["data"]["clock"] == "time since entry"
        assert "(delayed entry). Time is counted from entry" in str(found.summary)

    def test_batches(self, delayed):
        y, curves = delayed
        parts = np.array_split(np.arange(len(y)), 3)
        batches = ss.CurveBatches(lambda: (curves[part] for part in parts), len(y))
        asked = {"weighting": "administrative", "times": [2, 5]}
        np.testing.assert_allclose(
            ss.brier_score(y, batches, **asked).scores, ss.brier_score(y, curves, **asked).scores
        )
        for times in (None, [2, 5]):
            stream = ss.StreamingScore(y, weighting="administrative", times=times)
            for part in parts:
                stream.update(curves[part])
            whole = ss.brier_score(y, curves, weighting="administrative", times=times)
            np.testing.assert_allclose(stream.result().scores, whole.scores)
            np.testing.assert_allclose(stream.result().times, whole.times)
            assert stream.result().settings["clock"] == "time since entry"

    def test_weights_causes_and_groups_are_kept(self, delayed):
        y, _ = delayed
        causes = ss.Outcomes(y.time, y.event * 2, y.censoring_time, entry=y.entry, causes=["a", "b"], weights=y.time)
        later = causes.for_cause("b").since_entry()
        assert later.causes == ("a", "b")
        assert later.chosen_cause == "b"
        np.testing.assert_array_equal(later.weights, y.time)

    def test_incidences_are_conditional_on_no_event_of_any_cause(self, delayed):
        y, curves = delayed
        kinds = np.where(np.arange(len(y)) % 3, 1, 2) * y.event
        y = ss.Outcomes(y.time, kinds, y.censoring_time, entry=y.entry, causes=["a", "b"])
        event = 1 - curves.probabilities
        grid = ss.IncidenceCurves({"a": event * 2 / 3, "b": event / 3}, curves.times, interpolation="linear")
        found = ss.brier_score(y, grid, weighting="administrative", times=[3], cause="a")
        at = grid.at([0]).shape[2]
        assert at == 1
        rows = np.arange(len(y))
        F = np.array([[np.interp(y.entry[i] + u, grid.times, grid.probabilities[i, 0]) for u in (0, 3)] for i in rows])
        S = np.array([1 - np.interp(y.entry[i], grid.times, grid.probabilities[i].sum(axis=0)) for i in rows])
        literal = ss.SurvivalCurves(1 - ((F[:, 1] - F[:, 0]) / S)[:, None], [3])
        expected = ss.brier_score(y.since_entry(), literal, weighting="administrative", times=[3], cause="a")
        np.testing.assert_allclose(found.scores, expected.scores, atol=1e-13)
        with pytest.raises(
            ss.InputError, match="must be IncidenceCurves of all 2 causes: with delayed entry, those of one"
        ):
            ss.brier_score(y, curves, weighting="administrative", times=[3], cause="a")

    def test_few_predicted_times_are_read_between(self, delayed):
        y, curves = delayed
        few = ss.SurvivalCurves(curves.at([2, 5, 30]), [2, 5, 30])
        with pytest.warns(ss.InterpolationWarning, match="with delayed entry they are read at each individual's entry"):
            ss.brier_score(y, few, weighting="administrative", times=[2])

    @pytest.mark.parametrize(
        ("change", "error", "message"),
        [
            (
                lambda y, c: (y, c.only_at(np.array([0.0, 5.0]))),
                ss.InputError,
                "the curves must reach beyond entry: they end at 5, and .* individuals of .* entered then or later",
            ),
            (
                lambda y, c: (y, ss.SurvivalCurves(c.probabilities * (c.times < 3), c.times, interpolation="step")),
                ss.InputError,
                "the curves, given that individuals are event-free at entry: survival must be above 0",
            ),
            (lambda y, c: (y, c[:5]), ss.InputError, "the curves has length 5, but y has length"),
        ],
    )
    def test_curves_that_do_not_reach_are_refused(self, delayed, change, error, message):
        y, curves = change(*delayed)
        with pytest.raises(error, match=message) as raised:
            ss.brier_score(y, curves, weighting="administrative", times=[1])
        assert "\n" not in str(raised.value)

    def test_there_is_no_score_where_curves_end(self, delayed):
        y, curves = delayed
        with pytest.warns(ss.UndefinedScoreWarning, match="the predictions end at 4.*, after the last entry"):
            found = ss.brier_score(y, curves.only_at(np.arange(13.0)), weighting="administrative", times=[2, 12])
        assert np.isfinite(found.scores[0])
        assert np.isnan(found.scores[1])

    def test_training_outcomes_on_another_clock_are_refused(self, delayed):
        y, curves = delayed
        with pytest.raises(
            ss.InputError, match="censoring: these outcomes have delayed entry, and those that are scored"
        ):
            ss.brier_score(y.since_entry(), curves, weighting=ss.IPCW(y), times=[2])

    def test_the_null_model_of_training_data_counts_from_entry(self, delayed):
        y, curves = delayed
        asked = {"weighting": "administrative", "times": [2, 5]}
        found = ss.compare(y, {"true": curves}, null=y[::2], **asked)
        later, conditional = by_hand(y, curves, [2, 5])
        expected = ss.compare(later, {"true": conditional}, null=y[::2].since_entry(), **asked)
        np.testing.assert_array_equal(found.scored[0].scores, expected.scored[0].scores)

    def test_landmarks_are_of_those_who_entered(self, delayed):
        y, curves = delayed
        asked = {"horizons": [3], "metric": "brier", "weighting": "administrative", "null": False}
        found = ss.landmark_table(y, {"true": curves}, landmarks=[4], **asked)
        rows, later = y.at_landmark(4)
        expected = ss.brier_score(later, curves[rows].conditional_on(4), weighting="administrative", times=[3])
        assert found.rows[0].estimate == expected.scores[0]
        with pytest.raises(ss.InputError, match="landmark 40: s must be before the end of follow-up"):
            ss.landmark_table(y, {"true": curves}, landmarks=[40], **asked)


class TestCommandLine:
    @pytest.fixture
    def files(self, tmp_path, delayed):
        y, curves = delayed
        rows = {"time": y.time, "event": y.event * 1, "censoring_time": y.censoring_time, "since": y.entry}
        pd.DataFrame(rows).to_csv(tmp_path / "outcomes.csv", index=False)
        pd.DataFrame(curves.probabilities, columns=[f"{t:g}" for t in curves.times]).to_csv(
            tmp_path / "net.csv", index=False
        )
        return tmp_path / "outcomes.csv", tmp_path / "net.csv"

    @pytest.mark.parametrize("study_file", [False, True])
    def test_entry_is_a_column(self, capsys, tmp_path, delayed, files, study_file):
        y, curves = delayed
        if study_file:
            path = tmp_path / "study.toml"
            path.write_text('[outcomes]\nfile = "outcomes.csv"\nentry = "since"\n[models.net]\nfile = "net.csv"\n')
            asked = ["--study", path]
        else:
            asked = [*files, "--entry", "since"]
        asked += ["--interpolation", "constant-hazard", "-w", "administrative", "-m", "brier", "-t", "2,5"]
        code, out, _ = run(capsys, "score", *asked)
        assert code == 0
        assert "305 individuals; time since entry; 95 % intervals" in out
        code, out, _ = run(capsys, "score", *asked, "--csv", "-")
        expected = ss.brier_score(y, curves, weighting="administrative", times=[2, 5])
        written = pd.read_csv(io.StringIO(out))
        np.testing.assert_allclose(written["score"], expected.scores, atol=1e-12)

    def test_dates_of_entry(self, capsys, tmp_path, delayed):
        y, curves = delayed
        seconds = 100_000

        def dates(time):
            return (np.datetime64("2000-01-01") + np.round(time * seconds).astype("m8[s]")).astype(str)

        rows = {"start": dates(0 * y.time), "event_date": np.where(y.event, dates(y.time), ""), "in": dates(y.entry)}
        pd.DataFrame({**rows, "until": dates(y.censoring_time)}).to_csv(tmp_path / "dates.csv", index=False)
        columns = [f"{seconds * t:g}" for t in curves.times]
        pd.DataFrame(curves.probabilities, columns=columns).to_csv(tmp_path / "net.csv", index=False)
        asked = "--cutoff until --entry-date in --unit s --interpolation constant-hazard -m brier -w administrative"
        files = tmp_path / "dates.csv", tmp_path / "net.csv"
        times = f"{2 * seconds},{5 * seconds}"
        code, out, _ = run(capsys, "score", *files, *asked.split(), "-t", times, "--csv", "-")
        assert code == 0
        expected = ss.brier_score(y, curves, weighting="administrative", times=[2, 5])
        np.testing.assert_allclose(pd.read_csv(io.StringIO(out))["score"], expected.scores, atol=1e-5)

    def test_bad_columns_are_refused_in_a_line(self, capsys, files):
        line = refused(capsys, "score", *files, "--entry", "time", "-w", "administrative")
        assert "entry must be before time" in line
        assert "there is no column 'when' (entry)" in refused(capsys, "score", *files, "--entry", "when")
        line = refused(capsys, "score", *files, "--entry-date", "since")
        assert line == "survscore: --entry-date is for dates, which need --cutoff\n"
        line = refused(capsys, "score", *files, "--entry", "since", "--cutoff", "2020-01-01")
        assert "entry is for times; with a cutoff, times come from dates" in line


class TestWarning:
    """Where entry is delayed, and nobody says so."""

    @staticmethod
    def _late(n, seed, late):
        """Hazards depend on x; `late` of the individuals came under observation at random up to 5."""
        rng = np.random.default_rng(seed)
        risk = np.exp(0.8 * rng.normal(size=4 * n))
        event_time, entry = rng.exponential(10 / risk), rng.uniform(0, 5, 4 * n) * (rng.random(4 * n) < late)
        end = entry + rng.uniform(2, 12, 4 * n)
        there = np.flatnonzero(event_time > entry)[:n]
        event_time, end, entry, risk = event_time[there], end[there], entry[there], risk[there]
        times = np.linspace(0, 20, 101)
        y = ss.Outcomes(np.minimum(event_time, end), event_time <= end, end)
        return y, entry, ss.SurvivalCurves(np.exp(-risk[:, None] * times / 10), times, interpolation="linear")

    def test_it_names_what_is_missing(self):
        y, entry, curves = self._late(600, 1, late=1)
        expected = "entries may be delayed, or predicted risks come too early: .* events are expected .*, and there are"
        asked = {"weighting": "administrative", "null": False}
        with pytest.warns(ss.DelayedEntryWarning, match=expected):
            ss.compare(y, {"true": curves}, times=[5], **asked)
        with pytest.warns(ss.DelayedEntryWarning, match=expected):
            table = ss.score_table(y, {"true": curves}, horizons=[5], metric="oe", **asked)
        assert table.rows[0].upper < 1  # as if the true model predicted too many events
        stated = ss.Outcomes(y.time, y.event, y.censoring_time, entry=entry)
        (row,) = ss.score_table(stated, {"true": curves}, horizons=[5], metric="oe", **asked).rows
        assert row.lower < 1 < row.upper

    def test_one_model_whose_shape_is_right_is_enough_for_silence(self):
        y, _, curves = self._late(600, 2, late=0)
        early = ss.SurvivalCurves(curves.at(20 * (curves.times / 20) ** 0.4), curves.times)
        assert assumptions._sign(y, early)
        ss.compare(y, {"true": curves, "early": early}, times=[5], weighting="administrative", null=False)

    def test_entries_that_are_all_0_are_stated(self):
        y, _, curves = self._late(600, 1, late=1)
        stated = ss.Outcomes(y.time, y.event, y.censoring_time, entry=np.zeros(len(y)))
        ss.compare(stated, {"true": curves}, times=[5], weighting="administrative", null=False)

    def test_true_models_give_no_false_alarm(self):
        alarms = []
        for seed in range(60):
            y, _, curves = self._late(300, seed, late=0)
            study = (ss.simulate.ConstantHazardStudy, ss.simulate.SineConstantAcceleratingStudy)[seed % 2]()
            sample = study.sample(400, seed)
            alarms += [
                assumptions._sign(y, curves),
                assumptions._sign(
                    sample.outcomes, sample.survival(np.linspace(1, sample.outcomes.censoring_time.max(), 100))
                ),
                assumptions._sign(ss.Outcomes(np.ceil(y.time), y.event), curves),  # rounded up
            ]
        assert np.mean([alarm != "" for alarm in alarms]) <= 0.02

    @pytest.mark.parametrize("late", [0.6, 1])
    def test_it_is_found(self, late):
        found = [assumptions._sign(*self._late(5000 if late < 1 else 300, seed, late)[::2]) for seed in range(10)]
        assert all(found)


TRUE_RATE = 0.1


def _drawn(n, rng):
    """Return outcomes after entry, the truth, and a wrong model; hazards depend on x and on the time of entry."""
    x, entry = rng.normal(size=3 * n), rng.uniform(0, 5, 3 * n)
    rate = TRUE_RATE * np.exp(0.8 * x - 0.1 * entry)
    event_time, end = rng.exponential(1 / rate), entry + rng.uniform(2, 8, 3 * n)
    kept = np.flatnonzero(event_time > entry)[:n]
    rate, entry, event_time, end = rate[kept], entry[kept], event_time[kept], end[kept]
    times = np.arange(0.0, 13.0)
    y = ss.Outcomes(np.minimum(event_time, end), event_time <= end, end, entry=entry)
    models = {
        name: ss.SurvivalCurves(np.exp(-power * rate[:, None] * times), times, interpolation="constant-hazard")
        for name, power in (("true", 1.0), ("wrong", 1.5))
    }
    return y, models, rate


def _coverage(replicates, n, weighting, horizon=3.0):
    """Return how often the true model's interval of O/E holds 1, and Brier scores and their differences the truth."""
    # the truth, of statuses without censoring: means of E[(1(T > a + h) - p)^2] over individuals as they were observed
    _, _, rate = _drawn(400_000, np.random.default_rng(0))
    p = np.exp(-rate * horizon)
    truth = np.mean(p * (1 - p))
    difference = np.mean((p**1.5 - p) ** 2)
    held = []
    for seed in range(replicates):
        y, models, _ = _drawn(n, np.random.default_rng(seed + 1))
        asked = {"weighting": weighting, "null": False}
        table = ss.score_table(y, models, horizons=[horizon], metric=["brier", "oe"], **asked).to_frame()
        brier, wrong, oe = (table.iloc[k] for k in (0, 1, 2))
        held.append(
            (
                brier.lower <= truth <= brier.upper,
                wrong.difference_lower <= difference <= wrong.difference_upper,
                oe.lower <= 1 <= oe.upper,
                oe.estimate,
            )
        )
    return np.mean(held, axis=0), np.std([row[-1] for row in held]) / np.sqrt(replicates)


@pytest.mark.nightly
@pytest.mark.statistical
@pytest.mark.parametrize("weighting", ["administrative", "projected", "ipcw"])
def test_intervals_cover_and_observed_is_expected(weighting):
    (*coverage, oe), error = _coverage(1000, 1000, weighting)
    assert 0.93 <= min(coverage) <= max(coverage) <= 0.97
    assert abs(oe - 1) < 2.6 * error

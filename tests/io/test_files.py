"""Scores from files are those from arrays, whatever the form and the order; bad files are refused in one line."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mangling
import survscore as ss
from survscore import io

TIMES = np.array([3.0, 8, 15, 29])


def scores(y, models, **options):
    found = ss.compare(y, models, weighting=["administrative", "ipcw"], times=TIMES, **options)
    return found.scores.set_index(["weighting", "model", "time"])[["score", "se"]]


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "tsv", "parquet", "pq"])
@pytest.mark.parametrize("ids", [True, False])
def test_scores_from_files_are_those_from_arrays(tmp_path, kind, ids):
    y, models, _ = mangling.study()
    study = io.read_study(*_paths(mangling.write(tmp_path, kind, ids=ids)))
    assert list(study.models) == ["net", "cox"]
    pd.testing.assert_frame_equal(scores(study.outcomes, study.models), scores(y, models), rtol=0, atol=1e-12)
    for name, curves in study.models.items():
        assert np.array_equal(curves.probabilities, models[name].probabilities)


def _paths(both):
    outcomes, predictions = both
    return outcomes, [predictions]


def test_float32_stays_float32_in_parquet(tmp_path):
    _, models, ids = mangling.study()
    curves = ss.SurvivalCurves(
        models["net"].probabilities.astype(np.float32), models["net"].times, interpolation="step", extrapolation="hold"
    )
    io.write_predictions(tmp_path / "net.parquet", {"net": curves}, ids=ids)
    found = io.read_predictions(tmp_path / "net.parquet").models["net"]
    assert found.probabilities.dtype == np.float32
    assert np.array_equal(found.probabilities, curves.probabilities)
    assert (found.interpolation, found.extrapolation) == ("step", "hold")
    wide = pd.DataFrame(curves.probabilities, columns=[str(time) for time in curves.times])
    wide.to_parquet(tmp_path / "wide.parquet")
    assert io.read_predictions(tmp_path / "wide.parquet").models["wide"].probabilities.dtype == np.float32


def test_ids_as_numbers_and_as_text_are_the_same(tmp_path):
    (tmp_path / "y.csv").write_text("id,time,event\n10,1,1\n7,2,0\n")
    pd.DataFrame({"id": [7, 10], "5": [0.7, 0.1]}).to_parquet(tmp_path / "whole.parquet")
    pd.DataFrame({"id": ["7", "10"], "5": [0.7, 0.1]}).to_parquet(tmp_path / "text.parquet")
    pd.DataFrame({"id": pd.Categorical(["7", "10"]), "5": [0.7, 0.1]}).to_parquet(tmp_path / "category.parquet")
    for name in ("whole", "text", "category"):
        study = io.read_study(tmp_path / "y.csv", [tmp_path / f"{name}.parquet"])
        assert study.models[name].probabilities.tolist() == [[0.1], [0.7]]


def test_dates_become_times(tmp_path):
    (tmp_path / "y.csv").write_text(
        "who,start,event_date,last_seen\na,2016-12-30,2017-01-09,\nb,2017-01-09,,2017-01-12\nc,2017-02-01,,\n"
    )
    options = {"cutoff": "2017-01-29", "id": "who"}
    with pytest.raises(ss.InputError, match="1 individual of 3 with a start after the cut-off"):
        io.read_outcomes(tmp_path / "y.csv", **options)
    with pytest.warns(UserWarning, match="left out 1 individual"):
        found = io.read_outcomes(tmp_path / "y.csv", late_starts="drop", groups="who", **options)
    assert found.outcomes.time.tolist() == [10, 3]
    assert found.outcomes.censoring_time.tolist() == [30, 20]
    assert found.ids.to_pylist() == found.groups.tolist() == ["a", "b"]
    frame = pd.read_csv(tmp_path / "y.csv", parse_dates=["start", "event_date", "last_seen"])
    frame["end"] = pd.Timestamp("2017-01-29")
    aware = frame.apply(lambda column: column if column.name == "who" else column.dt.tz_localize("UTC"))
    for dates in (frame, aware):  # in Parquet dates are dates already, and the cut-off may be everybody's own
        dates.to_parquet(tmp_path / "y.parquet")
        with pytest.warns(UserWarning, match="left out"):
            again = io.read_outcomes(tmp_path / "y.parquet", cutoff="end", id="who", late_starts="drop")
        assert again.outcomes.time.tolist() == [10, 3]


@pytest.mark.parametrize("ids", [True, False])
def test_predictions_of_late_starters_are_left_out_with_them(tmp_path, ids):
    (tmp_path / "y.csv").write_text(
        "id,start,event_date\na,2017-02-01,\nb,2017-01-09,2017-01-11\nc,2017-01-02,\n".replace(
            "id,", "id," if ids else "no,"
        )
    )
    pd.DataFrame({"id" if ids else "no": list("abc"), "5": [0.1, 0.2, 0.3]}).to_csv(tmp_path / "p.csv", index=False)
    with pytest.warns(UserWarning, match="left out 1 individual"):
        study = io.read_study(tmp_path / "y.csv", [tmp_path / "p.csv"], cutoff="2017-01-29", late_starts="drop")
    assert study.models["p"].probabilities.tolist() == [[0.2], [0.3]]
    assert study.outcomes.time.tolist() == [2, 27]


def test_wide_columns_may_be_named_otherwise_and_unsorted(tmp_path):
    (tmp_path / "p.csv").write_text("a at 60,note,a at 30,b at 30,b at 60\n0.5,x,0.9,0.8,0.6\n")
    models = io.read_predictions(tmp_path / "p.csv", columns="{model} at {time}").models
    assert {name: curves.probabilities.tolist() for name, curves in models.items()} == {
        "a": [[0.9, 0.5]],
        "b": [[0.8, 0.6]],
    }


def test_a_list_column_takes_its_grid_from_the_file_or_the_user(tmp_path):
    path = tmp_path / "net.parquet"
    lists = pa.array([[0.9, 0.8], [0.7, 0.5]], pa.list_(pa.float64()))
    pq.write_table(pa.table({"survival": lists}), path)
    assert io.read_predictions(path, grid=[1, 2]).models["net"].times.tolist() == [1, 2]
    table = pa.table({"survival": lists}).replace_schema_metadata({"survscore": json.dumps({"grid": [3, 4]})})
    pq.write_table(table, path)
    assert io.read_predictions(path).models["net"].times.tolist() == [3, 4]
    assert io.read_predictions(path, grid=[3, 4]).models["net"].times.tolist() == [3, 4]
    with pytest.raises(ss.InputError, match="has a grid in the file's metadata, and the one given differs"):
        io.read_predictions(path, grid=[1, 2])
    (tmp_path / "wide.csv").write_text("1,2\n0.9,0.8\n")
    with pytest.raises(ss.InputError, match="a grid is for list columns"):
        io.read_predictions(tmp_path / "wide.csv", grid=[1, 2])


def test_names_choose_and_rename_models(tmp_path):
    outcomes, predictions = mangling.write(tmp_path)
    assert list(io.read_study(outcomes, [("cox", predictions)]).models) == ["cox"]
    (tmp_path / "one.csv").write_text(pd.DataFrame({"id": mangling.study()[2], "5": 0.5}).to_csv(index=False))
    assert list(io.read_study(outcomes, [("new", tmp_path / "one.csv")]).models) == ["new"]
    with pytest.raises(ss.InputError, match="none called 'tree'"):
        io.read_study(outcomes, [("tree", predictions)])
    with pytest.raises(ss.InputError, match="two models are called 'net'"):
        io.read_study(outcomes, [predictions, ("net", predictions)])


def test_outcomes_and_predictions_may_be_one_file(tmp_path):
    y, models, _ = mangling.study()
    frame = pd.DataFrame({"time": y.time, "event": y.event, "censoring_time": y.censoring_time})
    for name, curves in models.items():
        frame[[f"{name}:{time}" for time in curves.times]] = curves.probabilities
    frame.to_parquet(tmp_path / "all.parquet")
    study = io.read_study(tmp_path / "all.parquet")
    pd.testing.assert_frame_equal(scores(study.outcomes, study.models), scores(y, models), rtol=0, atol=1e-12)


def test_extra_predictions_are_left_out_only_if_allowed(tmp_path):
    outcomes, predictions = mangling.write(tmp_path)
    lines = outcomes.read_text().splitlines(keepends=True)
    outcomes.write_text("".join(lines[:21]))
    with pytest.raises(ss.InputError, match="20 of 40 ids are not in"):
        io.read_study(outcomes, [predictions])
    study = io.read_study(outcomes, [predictions], allow_extra=True)
    y, models, _ = mangling.study()
    assert np.array_equal(study.models["net"].probabilities, models["net"].probabilities[:20])
    assert np.array_equal(study.outcomes.time, y.time[:20])


def test_a_censoring_model_is_matched_too(tmp_path):
    y, models, ids = mangling.study()
    outcomes, predictions = mangling.write(tmp_path)
    io.write_predictions(tmp_path / "g.csv", {"G": models["cox"][::-1]}, ids=ids[::-1])
    study = io.read_study(outcomes, [predictions], censoring=tmp_path / "g.csv")
    weighting = ss.IPCW(study.censoring, max_weight=3)
    found = ss.brier_score(y, study.models["net"], weighting=weighting, times=TIMES)
    wanted = ss.brier_score(y, models["net"], weighting=ss.IPCW(models["cox"], max_weight=3), times=TIMES)
    assert np.array_equal(found.scores, wanted.scores)


GOOD_Y = "id,time,event,censoring_time\na,1,1,4\nb,3,0,3\n"
GOOD_P = "id,2,3\na,0.5,0.2\nb,0.9,0.8\n"
BAD = {
    "empty outcomes": ("", GOOD_P, "y.csv: can't be read: Empty CSV"),
    "a header only": ("id,time,event\n", GOOD_P, "y.csv: has no rows"),
    "a missing id": (GOOD_Y, "id,2,3\na,0.5,0.2\n", r"p.csv: 1 of the 2 ids in .*y.csv are missing, the first 'b'"),
    "an empty id": (GOOD_Y, "id,2,3\n,0.5,0.2\nb,0.9,0.8\n", "p.csv: column 'id' has 1 missing value, .* row 0"),
    "an id twice": (GOOD_Y, "id,2,3\na,0.5,0.2\na,0.9,0.8\n", r"ids must be different: 1 of 2 rows .* the first 'a'"),
    "ids in one file only": (GOOD_Y, "2,3\n0.5,0.2\n0.9,0.8\n", "y.csv has ids, .*p.csv has none"),
    "another length": ("time,event\n1,1\n2,0\n", "2,3\n0.5,0.2\n", "p.csv has 1 row, but .*y.csv has 2"),
    "no event": ("id,time\na,1\nb,2\n", GOOD_P, "y.csv: there is no column 'event'; the columns are 'id', 'time'"),
    "text for a time": (GOOD_Y.replace("3,0,3", "x,0,3"), GOOD_P, "'time' must hold numbers, not text .* row 1: 'x'"),
    "a negative time": (GOOD_Y.replace("3,0,3", "-3,0,3"), GOOD_P, "y.csv: time must be zero or larger: 1 of 2"),
    "events in words": (GOOD_Y.replace(",1,4", ",perhaps,4"), GOOD_P, "column 'event' must hold 0 and 1.*: 1 of 2 "),
    "time after C*": (GOOD_Y.replace("3,0,3", "5,0,3"), GOOD_P, "y.csv: time must not exceed censoring_time: 1 of 2"),
    "percent": (GOOD_Y, "id,2,3\na,50,20\nb,90,80\n", "p.csv: probabilities must .* 4 values .*percentages"),
    "text for a probability": (GOOD_Y, "id,2,3\na,0.5,low\nb,0.9,0.8\n", "p.csv: column '3' must hold numbers"),
    "a missing probability": (GOOD_Y, "id,2,3\na,0.5,\nb,0.9,0.8\n", "p.csv: column '3' has 1 missing value"),
    "rising survival": (GOOD_Y, "id,2,3\na,0.5,0.6\nb,0.9,0.8\n", "p.csv: survival must not increase with time"),
    "no predictions": (GOOD_Y, "id,a,b\na,0.5,0.6\nb,0.9,0.8\n", "p.csv: no column is named by time"),
    "a time twice": (GOOD_Y, "id,2,2.0\na,0.5,0.5\nb,0.9,0.8\n", "p.csv: columns '2' and '2.0' are the same time"),
    "a column twice": (GOOD_Y, "id,2,2\na,0.5,0.5\nb,0.9,0.8\n", "p.csv: columns must .* names; repeated: '2'"),
    "a row too short": (GOOD_Y, "id,2,3\na,0.5\nb,0.9,0.8\n", "p.csv: can't be read: CSV parse error"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_files_say_what_to_fix(tmp_path, case):
    outcomes, predictions, message = BAD[case]
    (tmp_path / "y.csv").write_text(outcomes)
    (tmp_path / "p.csv").write_text(predictions)
    with pytest.raises(ss.InputError, match=message) as error:
        io.read_study(tmp_path / "y.csv", [tmp_path / "p.csv"])
    assert "\n" not in str(error.value)
    assert str(error.value).count(str(tmp_path / "y.csv")) <= 1


def test_bad_lists_say_what_to_fix(tmp_path):
    path = tmp_path / "p.parquet"

    def refused(column, message, metadata=None, **options):
        table = pa.table({"net": column})
        pq.write_table(table.replace_schema_metadata(metadata) if metadata else table, path)
        with pytest.raises(ss.InputError, match=message):
            io.read_predictions(path, **options)

    even = pa.array([[0.9, 0.8], [0.7, 0.5]])
    refused(even, "column 'net' needs a grid")
    refused(even, "has lists of 2 values, but the grid given has 3 times", grid=[1, 2, 3])
    refused(even, "grid must be strictly increasing", grid=[2, 1])
    refused(even, "but the grid in its metadata has 1 time", {"survscore": '{"grid": [1]}'})
    refused(even, "are not JSON", {"survscore": "{"})
    refused(even, "are not JSON", {"survscore": "[1, 2]"})
    refused(even, "interpolation must be one of", {"survscore": '{"grid": [1, 2], "interpolation": "cubic"}'})
    refused(pa.array([[0.9, 0.8], [0.7]]), "must have one length: 1 of 2 .* the first in row 1", grid=[1, 2])
    refused(pa.array([[0.9, 0.8], [0.7, None]]), "has 1 missing value in its lists, the first in row 1", grid=[1, 2])
    refused(pa.array([[0.9, 0.8], None]), "column 'net' has 1 missing value, the first in row 1", grid=[1, 2])
    refused(pa.array([["a", "b"]]), "column 'net' must hold numbers", grid=[1, 2])
    refused(pa.array([0.5]), "no column is named by time", grid=[1, 2])


def test_what_is_no_file_of_this_kind_is_refused(tmp_path):
    for name, content, message in (
        ("y.xlsx", b"", "is a workbook; save its sheet as CSV UTF-8"),
        ("y.txt", b"", "the ending must say what it is"),
        ("y.parquet", b"PAR1 and then nothing", "can't be read"),
        ("y.parquet", b"", "can't be read"),
        ("y.csv.gz", b"not compressed", "can't be read"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ss.InputError, match=message):
            io.read_outcomes(tmp_path / name)
    with pytest.raises(ss.InputError, match="there is no such file"):
        io.read_outcomes(tmp_path / "nowhere.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(ss.InputError, match="is a folder"):
        io.read_outcomes(tmp_path / "folder.csv")


def test_a_truncated_parquet_file_is_refused(tmp_path):
    path = mangling.write(tmp_path, "parquet")[1]
    whole = path.read_bytes()
    for size in (10, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(ss.InputError, match=r"models.parquet: can't be read"):
            io.read_predictions(path)
    spoilt = bytearray(whole)
    spoilt[200] ^= 1
    path.write_bytes(bytes(spoilt))
    with pytest.raises(ss.InputError, match=r"models.parquet: can't be read"):  # pages carry checksums
        io.read_predictions(path)


def test_separators_and_missing_values_of_other_lands(tmp_path):
    (tmp_path / "y.csv").write_text("time;event\n1,000;1\n2,500;0\n")  # thousands, or decimals
    with pytest.raises(ss.InputError, match="must hold numbers, not text"):
        io.read_outcomes(tmp_path / "y.csv")
    (tmp_path / "y.csv").write_bytes("\ufeffid,time,event\r\na,1.5,true\r\nb,2,false\r\n".encode())
    assert io.read_outcomes(tmp_path / "y.csv").outcomes.event.tolist() == [True, False]


def test_what_is_written_is_written_whole(tmp_path):
    y, models, ids = mangling.study()
    with pytest.raises(ss.InputError, match="ids has length 3"):
        io.write_outcomes(tmp_path / "y.csv", y, ids=[1, 2, 3])
    with pytest.raises(ss.InputError, match=r"must say what to write: .csv or .parquet"):
        io.write_outcomes(tmp_path / "y.txt", y)
    with pytest.raises(ss.InputError, match="has length 10"):
        io.write_predictions(tmp_path / "p.csv", {"a": models["net"], "b": models["cox"][:10]}, ids=ids)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("study", ["simple", "complicated", "independent", "constant"])
def test_simulated_files_hold_the_truth(tmp_path, study):
    outcomes, truth, leaking, covariates = io.write_study(tmp_path, study, 200, 3, "parquet")
    found = io.read_study(outcomes, [truth, leaking])
    end = found.outcomes.censoring_time
    grid = found.models["truth"].times
    wanted = found.models["truth"].probabilities * (end[:, None] > grid)
    assert np.array_equal(found.models["leaking"].probabilities, wanted)
    assert len(pd.read_parquet(covariates)) == 200


def test_simulated_causes_are_those_of_the_study(tmp_path):
    outcomes, truth, leaking, _ = io.write_study(tmp_path, "competing", 200, 3, "parquet")
    found = io.read_study(outcomes, [truth, leaking], causes=["churn", "non-payment"])
    sample = ss.simulate.CompetingRisksStudy().sample(200, 3)
    assert found.outcomes.n_by_cause == sample.outcomes.n_by_cause
    curves = found.models["leaking"]
    np.testing.assert_array_equal(found.models["truth"].probabilities, sample.incidence(curves.times).probabilities)
    before = np.concatenate(([0.0], curves.times[:-1]))
    gone = sample.outcomes.censoring_time[:, None] <= before
    np.testing.assert_allclose(curves.probabilities.sum(axis=1)[gone], 1.0)


def test_simulated_dates_give_the_same_times(tmp_path):
    (tmp_path / "dates").mkdir()
    times = io.read_outcomes(io.write_study(tmp_path, "constant", 500, 1, "csv")[0]).outcomes
    dates = io.read_outcomes(
        io.write_study(tmp_path / "dates", "constant", 500, 1, "csv", "2017-01-29")[0], cutoff="2017-01-29"
    ).outcomes
    assert np.array_equal(times.event, dates.event)
    assert np.allclose(times.time, dates.time, atol=2e-5)
    assert np.allclose(times.censoring_time, dates.censoring_time, atol=2e-5)


@pytest.mark.parametrize("name", [" 20", "+20", "2e1", "020"])
def test_columns_named_nearly_like_times_are_times(tmp_path, name):
    (tmp_path / "p.csv").write_text(f"10,{name},.5,net:40\n0.9,0.8,0.95,0.7\n")
    models = io.read_predictions(tmp_path / "p.csv").models
    assert models["p"].times.tolist() == [0.5, 10, 20]
    assert models["net"].times.tolist() == [40]


@pytest.mark.parametrize("name", ["-5", "inf", "nan", "net:-5"])
def test_columns_named_like_impossible_times_are_refused(tmp_path, name):
    (tmp_path / "p.csv").write_text(f"10,{name}\n0.9,0.8\n")
    with pytest.raises(ss.InputError, match=f"column '{name}' is named like a time, but times are finite"):
        io.read_predictions(tmp_path / "p.csv")


def test_no_model_is_lost_by_its_name(tmp_path):
    (tmp_path / "p1.csv").write_text("20,p1:20\n0.9,0.8\n")
    with pytest.raises(ss.InputError, match="two models would be called 'p1'"):
        io.read_predictions(tmp_path / "p1.csv")
    curves = ss.SurvivalCurves([[0.9]], [20])
    io.write_predictions(tmp_path / "q.csv", {"a\nb": curves, "c:d": curves})
    assert list(io.read_predictions(tmp_path / "q.csv").models) == ["a\nb", "c:d"]
    with pytest.raises(ss.InputError, match="must not be called 'id'"):
        io.write_predictions(tmp_path / "r.parquet", {"id": curves})


def test_ids_of_many_kinds(tmp_path):
    (tmp_path / "y.csv").write_text("id,time,event\n007,1,1\n7,2,0\n")  # leading zeros stay
    (tmp_path / "p.csv").write_text("id,5\n7,0.7\n007,0.1\n")
    assert io.read_study(tmp_path / "y.csv", tmp_path / "p.csv").models["p"].probabilities.tolist() == [[0.1], [0.7]]
    (tmp_path / "y.csv").write_text("id,time,event\n18446744073709551615,1,1\n7,2,0\n")
    for ids in (np.array([7, 2**64 - 1], dtype=np.uint64), ["7", "18446744073709551615"]):
        pd.DataFrame({"id": ids, "5": [0.7, 0.1]}).to_parquet(tmp_path / "p.parquet")
        study = io.read_study(tmp_path / "y.csv", tmp_path / "p.parquet")
        assert study.models["p"].probabilities.tolist() == [[0.1], [0.7]]
    (tmp_path / "y.csv").write_text("id,time,event\n1000000000000000,1,1\n7,2,0\n")
    pd.DataFrame({"id": [7.0, 1e15], "5": [0.7, 0.1]}).to_parquet(tmp_path / "p.parquet")
    assert io.read_study(tmp_path / "y.csv", tmp_path / "p.parquet").models["p"].probabilities[0, 0] == 0.1
    pd.DataFrame({"id": [7.5, 1], "5": [0.7, 0.1]}).to_parquet(tmp_path / "p.parquet")
    with pytest.raises(ss.InputError, match="ids must be whole numbers or text, but column 'id' holds fractions"):
        io.read_study(tmp_path / "y.csv", tmp_path / "p.parquet")


def test_by_order_no_id_matters(tmp_path):
    (tmp_path / "y.csv").write_text("id,time,event\na,1,1\na,2,0\n")
    (tmp_path / "p.csv").write_text("id,5\n,0.7\nb,0.1\n")
    study = io.read_study(tmp_path / "y.csv", tmp_path / "p.csv", by_order=True)
    assert study.models["p"].probabilities.tolist() == [[0.7], [0.1]]


def test_messages_name_columns_and_dates(tmp_path):
    (tmp_path / "y.csv").write_text("duration,churned\n-1,1\n2,0\n")
    with pytest.raises(ss.InputError, match=r"time must be zero or larger.*\(time is column 'duration', event is col"):
        io.read_outcomes(tmp_path / "y.csv", time="duration", event="churned")
    (tmp_path / "y.csv").write_text("start,event_date\n2017-01-01,31.1.2017\n2017-01-02,\n")
    with pytest.raises(ss.InputError, match=r"y.csv: event_date must be dates .* 1 of 2 is not, .*31\.1\.2017"):
        io.read_outcomes(tmp_path / "y.csv", cutoff="2017-02-01")
    with pytest.raises(ss.InputError, match=r"holds dates \(start, event_date\); give the data cut-off as `cutoff`"):
        io.read_outcomes(tmp_path / "y.csv")


def test_metadata_of_any_depth_is_refused(tmp_path):
    lists = pa.array([[0.9, 0.8]])
    for grid in ("[" * 100_000, '{"grid": [20, ' + "1" + "0" * 400 + "]}"):
        table = pa.table({"net": lists}).replace_schema_metadata({"survscore": grid})
        pq.write_table(table, tmp_path / "p.parquet")
        with pytest.raises(ss.InputError):
            io.read_predictions(tmp_path / "p.parquet")


def test_a_file_that_is_replaced_keeps_its_permissions_and_links(tmp_path):
    y, _, _ = mangling.study()
    target, link = tmp_path / "y.csv", tmp_path / "link.csv"
    target.write_text("")
    target.chmod(0o600)
    link.symlink_to(target)
    io.write_outcomes(link, y)
    assert link.is_symlink()
    assert target.stat().st_mode & 0o777 == 0o600
    io.write_outcomes(tmp_path / ("n" * 240 + ".csv"), y)

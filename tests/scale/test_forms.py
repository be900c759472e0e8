"""Data in parts, in whatever form predictions and outcomes come: the scores of ``survscore score`` on the same file."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mangling
import survscore as ss
from combinations import every_pair
from commands import run

MONTH = 365.25 / 12


def scores(capsys, *arguments):
    code, out, err = run(capsys, *arguments, "-m", "brier", "--json", "-")
    assert code == 0, err
    return [
        np.nan if row["score"] is None else row["score"]
        for row in json.loads(out)["scores"]
        if row["model"] != "Kaplan-Meier"
    ]


@pytest.fixture
def frame():
    """Outcomes and survival in one table, times in days."""
    y, models, ids = mangling.study(n=300)
    curves = models["net"]
    survival = pd.DataFrame(curves.probabilities, columns=[f"{time:g}" for time in curves.times])
    observed = {"time": y.time, "event": y.event.astype(int), "censoring_time": y.censoring_time}
    return pd.concat([pd.DataFrame({"id": ids, **observed}), survival], axis=1)


def grid_columns(frame):
    return [name for name in frame.columns if name[0].isdigit()]


def changed(frame, form):
    """Return the same numbers in another form, and the options that say so."""
    columns = grid_columns(frame)
    options = []
    if "event" in form:
        frame = frame.assign(**{name: 1 - frame[name] for name in columns})
        options += ["--predicts", "event"]
    if "percent" in form:
        frame = frame.assign(**{name: 100 * frame[name] for name in columns})
        options += ["--percent"]
    if "month" in form:
        frame = frame.rename(columns={name: f"month_{float(name) / MONTH!r}" for name in columns})
        options += ["--columns", "month_{time}", "--predictions-unit", "month", "--unit", "D"]
    if "words" in form:
        frame = frame.assign(event=np.where(frame["event"] == 1, "yes", "no"))
    return frame, options


FORMS = ["plain", "event", "percent", "event percent month words"]


@every_pair(ending=["csv", "parquet"], form=FORMS, weighting=["administrative", "ipcw"])
@pytest.mark.filterwarnings("ignore:in column")
def test_the_scores_of_score(capsys, tmp_path, frame, form, ending, weighting):
    table, options = changed(frame, form)
    folder = tmp_path / "parts"
    folder.mkdir()
    for k, rows in enumerate(np.array_split(np.arange(len(table)), 3)):
        part = table.iloc[rows]
        part.to_csv(folder / f"{k}.csv", index=False) if ending == "csv" else part.to_parquet(folder / f"{k}.parquet")
    whole = tmp_path / f"predictions.{ending}"
    table.to_csv(whole, index=False) if ending == "csv" else table.to_parquet(whole)
    times = ["-w", weighting, "-t", "3,8,15,29"]
    expected = scores(capsys, "score", whole, *times, *options)
    assert np.isfinite(expected).all()
    np.testing.assert_allclose(scores(capsys, "evaluate", folder, *times, *options), expected, rtol=0, atol=1e-12)


def test_options_in_brackets(capsys, tmp_path, frame):
    table, _ = changed(frame, "event percent month")
    plain, other = tmp_path / "plain.parquet", tmp_path / "other.parquet"
    frame.to_parquet(plain)
    table.to_parquet(other)
    asked = ["-w", "administrative", "-t", "3,8,15,29"]
    own = "[columns=month_{time},unit=month,predicts=event,percent]"
    found = scores(capsys, "evaluate", f"{other}{own}", "--unit", "D", *asked)
    np.testing.assert_allclose(found, scores(capsys, "evaluate", plain, *asked), rtol=0, atol=1e-12)
    code, _, err = run(capsys, "evaluate", f"{other}{own}", plain, "--unit", "D", *asked)
    assert (code, err.count("\n")) == (2, 1)
    assert "options in brackets must be the same" in err


@pytest.mark.parametrize(
    ("form", "message"),
    [("event", "--predicts event takes these"), ("percent", "read files with --percent")],
)
def test_the_advice_of_score_is_given(capsys, tmp_path, frame, form, message):
    table, _ = changed(frame, form)
    table.to_parquet(tmp_path / "x.parquet")
    code, out, err = run(capsys, "evaluate", tmp_path / "x.parquet", "-w", "administrative")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert message in err


@pytest.mark.parametrize("written", ["%d.%m.%Y", "decimal days", "end"])
def test_dates_as_they_are_written(capsys, tmp_path, frame, written):
    start = pd.Timestamp("2016-01-01") + pd.to_timedelta(np.arange(len(frame)) % 20, unit="D")
    ended = start + pd.to_timedelta(np.ceil(frame["time"]), unit="D")
    had_event = frame["event"].to_numpy(bool) & (ended < "2016-02-10").to_numpy()
    dates = pd.DataFrame({"start": start, "event_date": ended.where(had_event)})
    options = ["--cutoff", "2016-02-10"]
    if written == "end":
        over = ended.where(had_event | (np.arange(len(frame)) % 3 == 0)).where(ended < "2016-02-10")
        dates = pd.DataFrame({"start": start, "end": over, "event": np.where(had_event, "yes", "no")})
        options += ["--end", "end"]
    elif written == "decimal days":
        dates = (dates - pd.Timestamp("1970-01-01")) / pd.Timedelta("1D")
        options += ["--origin", "1970-01-01"]
    else:
        dates = dates.apply(lambda column: column.dt.strftime("%d.%m.%Y"))
        options += ["--date-format", "%d.%m.%Y"]
    path = tmp_path / "dated.csv"
    pd.concat([dates, frame[grid_columns(frame)]], axis=1).to_csv(path, index=False)
    asked = ["-w", "ipcw", "-t", "3,8,15", *options]  # administrative ones go by strata where some left
    expected = scores(capsys, "score", path, *asked)
    np.testing.assert_allclose(scores(capsys, "evaluate", path, *asked), expected, rtol=0, atol=1e-12)


def test_how_predictions_are_read_between_columns(tmp_path, capsys, frame):
    path = tmp_path / "x.parquet"
    pq.write_table(pa.Table.from_pandas(frame), path)
    asked = ["-w", "administrative", "-t", "3,8,40", "--interpolation", "step", "--extrapolation", "hold"]
    expected = scores(capsys, "score", path, *asked)
    np.testing.assert_allclose(scores(capsys, "evaluate", path, *asked), expected, rtol=0, atol=1e-12, equal_nan=True)


def test_an_arrow_file_with_changed_bytes_is_refused(capsys, tmp_path, frame):
    """Text that begins beyond the end of all text: DuckDB, which joins it with outcomes, would crash."""
    table = pa.Table.from_pandas(frame[["id", *grid_columns(frame)]], preserve_index=False)
    with pa.OSFile(str(tmp_path / "net.arrow"), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    frame[["id", "time", "event", "censoring_time"]].to_csv(tmp_path / "y.csv", index=False)
    asked = ["evaluate", tmp_path / "net.arrow", "--outcomes", tmp_path / "y.csv", "-w", "administrative", "-t", "3,8"]
    assert run(capsys, *asked)[0] == 0
    content = (tmp_path / "net.arrow").read_bytes()
    offsets = np.arange(10, 20, dtype=np.int32) * 4  # of ids of four letters
    assert content.count(offsets.tobytes()) == 1
    (tmp_path / "net.arrow").write_bytes(content.replace(offsets.tobytes(), (offsets + 10**9).tobytes()))
    code, out, err = run(capsys, *asked)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "net.arrow" in err


def test_lists_are_read_as_their_file_says(capsys, tmp_path):
    y, models, ids = mangling.study(n=300)
    steps = {
        name: ss.SurvivalCurves(curves.probabilities, curves.times, interpolation="step", extrapolation="hold")
        for name, curves in models.items()
    }
    predictions, outcomes = tmp_path / "models.parquet", tmp_path / "y.parquet"
    ss.io.write_predictions(predictions, steps, ids=ids)
    ss.io.write_outcomes(outcomes, y, ids=ids)
    asked = ["-w", "administrative", "-t", "3,8,33"]
    expected = scores(capsys, "score", outcomes, predictions, *asked)
    found = scores(capsys, "evaluate", predictions, "--outcomes", outcomes, *asked)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)

"""From files as people have them to the right verdict: what `survscore formats` proposes, and then that command."""

import json

import numpy as np
import pandas as pd
import pytest

import survscore as ss
from commands import refused, run
from survscore.simulate import CompetingRisksStudy, SineConstantAcceleratingStudy

TIMES = [25.0, 50.0, 75.0]
N = 1200


def noisy(probabilities):
    """Return predictions that order individuals worse."""
    logits = np.log(probabilities.clip(1e-6, 1 - 1e-6) / (1 - probabilities.clip(1e-6, 1 - 1e-6)))
    return 1 / (1 + np.exp(-logits - np.random.default_rng(1).normal(0, 1.5, (len(logits), 1))))


@pytest.fixture(scope="module")
def sample():
    return SineConstantAcceleratingStudy().sample(N, seed=1)


@pytest.fixture(scope="module")
def outcomes(sample):
    y = sample.outcomes
    ids = [f"c{k:04d}" for k in range(N)]
    return pd.DataFrame(
        {"id": ids, "time": y.time, "event": y.event.astype(int), "censoring_time": y.censoring_time}
    )  # fmt: skip


def predictions(folder, ids, columns):
    """Write the truth as new.csv and worse predictions as old.csv; `columns` are those of the truth, by name."""
    truth = np.column_stack(list(columns.values()))
    for name, matrix in (("new", truth), ("old", noisy(truth))):
        pd.DataFrame({ids.name: ids, **dict(zip(columns, matrix.T, strict=True))}).to_csv(
            folder / f"{name}.csv", index=False
        )


def coarse_classifiers(folder, sample, outcomes):
    outcomes.to_csv(folder / "customers.csv", index=False)
    risk = 1 - sample.survival(TIMES).probabilities
    predictions(folder, outcomes["id"], {f"p_{time:g}": risk[:, k] for k, time in enumerate(TIMES)})
    return [], 0


def months(folder, sample, outcomes):
    """Dates of a subscription, and classifiers of months: the data cut-off is not in the files."""
    cutoff, day = pd.Timestamp("2020-12-31"), 30.4375 / 2
    start = cutoff - pd.to_timedelta((outcomes["censoring_time"] * day).round(), unit="D")
    ended = start + pd.to_timedelta((outcomes["time"] * day).round(), unit="D")
    cancelled = ended.dt.strftime("%Y-%m-%d").where(outcomes["event"] == 1, "9999-12-31")
    dates = pd.DataFrame({"customer_id": outcomes["id"], "signup_date": start.dt.strftime("%Y-%m-%d")})
    dates["cancel_date"] = cancelled
    dates.to_csv(folder / "subscriptions.csv", index=False)
    risk = 1 - sample.survival([12.0, 24.0, 48.0]).probabilities
    columns = {f"month_{month}": risk[:, k].round(4) for k, month in enumerate((6, 12, 24))}
    predictions(folder, dates["customer_id"], columns)
    return ["--cutoff", "2020-12-31"], 1


def drop_outs(folder, sample, outcomes):
    """Some were lost to follow-up, and a column says so; of some, time is not when they were last seen."""
    rng = np.random.default_rng(0)
    lost = rng.random(N) < 0.1
    frame = outcomes.assign(dropped_out=lost.astype(int))
    frame.loc[lost, "time"] *= rng.random(int(lost.sum()))
    frame.loc[lost, "event"] = 0
    frame.to_csv(folder / "patients.csv", index=False)
    survival = sample.survival(TIMES).probabilities
    predictions(folder, outcomes["id"], {f"{time:g}": survival[:, k] for k, time in enumerate(TIMES)})
    return [], 0


def causes(folder, sample, outcomes):
    """A column of 0, 1 and 2 is never certain: 2 may be a drop-out."""
    study = CompetingRisksStudy().sample(N, seed=1)
    y, incidence = study.outcomes, study.incidence(TIMES)
    frame = pd.DataFrame({"id": outcomes["id"], "time": y.time, "status": y.cause, "censoring_time": y.censoring_time})
    frame.to_csv(folder / "loans.csv", index=False)
    shuffled = np.random.default_rng(2).permutation(N)
    for name, rows in (("new", np.arange(N)), ("old", shuffled)):
        columns = {f"{cause}_{time:g}": incidence.probabilities[rows, k, j]
                   for k, cause in enumerate(incidence.causes) for j, time in enumerate(TIMES)}  # fmt: skip
        pd.DataFrame({"id": outcomes["id"], **columns}).to_csv(folder / f"{name}.csv", index=False)
    return [], 4


def hive(folder, sample, outcomes):
    survival = sample.survival(TIMES).probabilities
    frame = outcomes.copy()
    for name, matrix in (("new", survival), ("old", noisy(survival))):
        frame = frame.assign(**{f"{name}:{time:g}": matrix[:, k] for k, time in enumerate(TIMES)})
    for country, rows in (("DE", frame.index % 2 == 0), ("FR", frame.index % 2 == 1)):
        part = folder / "table" / f"country={country}"
        part.mkdir(parents=True)
        frame[rows].to_parquet(part / "part-0.parquet", index=False)
    return [], 0


@pytest.mark.parametrize("write", [coarse_classifiers, months, drop_outs, causes, hive])
def test_two_commands_from_files_to_the_verdict(capsys, tmp_path, sample, outcomes, write):
    answers, questions = write(tmp_path, sample, outcomes)
    files = sorted(tmp_path.iterdir())
    code, out, _ = run(capsys, "formats", *files, "--json")
    assert code == 0
    proposal = json.loads(out)
    assert len(proposal["questions"]) == questions, proposal["questions"]
    words = proposal["command"][1:]
    for name, value in zip(answers[::2], answers[1::2], strict=True):  # what only people know
        words[words.index(name) + 1] = value
    code, out, err = run(capsys, *words)
    assert code == 0, err
    text = " ".join(out.split())
    if words[0] == "compare":
        assert text.startswith("Recommendation: old"), text[:300]
        assert "significantly worse than new, for all individuals" in text
    else:
        assert "old is significantly worse than new" in text


def proposed(capsys, *files):
    return json.loads(run(capsys, "formats", *files, "--json")[1])


def test_columns_of_drop_outs_are_asked_about(capsys, tmp_path, outcomes):
    """Unless times before C* say the same, or where nothing else does."""
    early = (outcomes["event"] == 0) & (outcomes["time"] < outcomes["censoring_time"])
    path = tmp_path / "y.csv"
    outcomes.assign(lost=early.astype(int)).to_csv(path, index=False)
    assert proposed(capsys, path)["sure"]
    outcomes.assign(lost=(outcomes.index < 50).astype(int)).to_csv(path, index=False)
    (question,) = proposed(capsys, path)["questions"]
    assert question["about"] == "lost"
    assert "says otherwise than times in" in question["text"]
    outcomes.drop(columns="censoring_time").assign(lost=early.astype(int)).to_csv(path, index=False)
    assert [one["about"] for one in proposed(capsys, path)["questions"]] == ["lost"]


def test_a_column_of_reasons_beside_the_event_is_asked_about(capsys, tmp_path, outcomes):
    path = tmp_path / "y.csv"
    outcomes.assign(end_reason=np.where(outcomes.index % 3, "moved", "died")).to_csv(path, index=False)
    (question,) = proposed(capsys, path)["questions"]
    assert question["about"] == "end_reason"
    assert "--reason" in question["text"]


@pytest.mark.parametrize("name", ["event", "outcome"])
def test_a_column_of_0_1_and_2_is_never_certain(capsys, tmp_path, outcomes, name):
    codes = outcomes["event"].where(outcomes.index % 4 != 0, 2)
    outcomes.drop(columns="event").assign(**{name: codes}).to_csv(tmp_path / "y.csv", index=False)
    assert not proposed(capsys, tmp_path / "y.csv")["sure"]


def test_times_of_long_files_are_recognised_or_named(capsys, tmp_path, outcomes):
    outcomes.to_csv(tmp_path / "y.csv", index=False)
    ids, files = np.repeat(outcomes["id"], 2), [tmp_path / "y.csv", tmp_path / "net.csv"]
    asked = ["score", *files, "-w", "administrative", "-m", "brier", "--json", "-"]
    for name, options in (("horizon", []), ("weeks", ["--time-column", "weeks"])):
        long = pd.DataFrame({"id": ids, name: np.tile([20, 40], N), "survival": np.tile([0.8, 0.6], N)})
        long.to_csv(tmp_path / "net.csv", index=False)
        code, out, err = run(capsys, *asked, *options)
        assert code == 0, err
        assert {row["time"] for row in json.loads(out)["scores"]} == {20, 40}
        command = proposed(capsys, *files)["command"]
        assert ("--time-column" in command) == bool(options)
    in_brackets = f"{tmp_path / 'net.csv'}[time-column=weeks]"
    assert run(capsys, *asked[:2], in_brackets, *asked[3:])[0] == 0
    assert "long form needs a column 'nowhere'" in refused(capsys, *asked, "--time-column", "nowhere")
    assert "time_column is for long files" in refused(capsys, *asked, "--time-column", "weeks", "--columns", "{time}")


def test_messages_about_long_files_name_their_column_of_times(tmp_path):
    path = tmp_path / "net.csv"
    for rows in ("a,2\na,-1\nb,2\nb,-1", "a,2\nb,-1\nb,2\na,-1"):  # in some order, and in none
        path.write_text("id,day,survival\n" + "\n".join(f"{row},0.5" for row in rows.splitlines()))
        with pytest.raises(ss.InputError, match=r"net\.csv: column 'day' must be"):
            ss.io.read_predictions(path, time_column="day")


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("never", ["9999-12-31", "2999-01-01"])
def test_dates_without_end(tmp_path, never, ending):
    frame = pd.DataFrame(
        {"start": ["2016-12-30", "2017-01-09", "2017-01-01"], "event_date": ["2017-01-09", never, None]}
    )
    path = tmp_path / f"y.{ending}"
    frame.to_csv(path, index=False) if ending == "csv" else frame.to_parquet(path)
    y = ss.io.read_outcomes(path, cutoff="2017-01-29", open_end=never).outcomes
    assert y.event.tolist() == [True, False, False]
    assert y.time.tolist() == [10, 20, 28]
    with pytest.raises(ss.InputError, match=rf"holds dates as late as {never}.*`open_end='{never}'`"):
        ss.io.read_outcomes(path, cutoff="2017-01-29")
    with pytest.raises(ss.InputError, match="open_end is for dates"):
        ss.io.read_outcomes(path, open_end=never)


def test_names_with_carriage_returns_are_no_formulas(tmp_path):
    """A spreadsheet begins a row at a carriage return that is not in quotation marks."""
    name = "\r=HYPERLINK(1)"
    path = tmp_path / "table.csv"
    ss.io.write_frame(path, pd.DataFrame({"model": [name, "net"], "score": [0.1, 0.2]}))
    assert path.read_bytes() == b'"model","score"\n"\r=HYPERLINK(1)",0.1\n"net",0.2\n'
    curves = ss.SurvivalCurves([[0.9]], [30])
    ss.io.write_predictions(path, {name: curves, "net": curves})
    assert path.read_bytes().startswith(b'"\r=HYPERLINK(1):30","net:30"\n')

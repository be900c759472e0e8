"""Causes of events in files: outcomes by code, label and reason, predictions by column, list and row."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import survscore as ss
from commands import run
from survscore import io

TIMES = [2.0, 4.0, 8.0]
CAUSES = ["default", "repayment"]
WHY = ["default", "repayment", "active", "repayment", "default", "moved"]
REASONS = {
    "reason": "why", "event_reasons": ["default"], "competing_reasons": ["repayment"],
    "censored_reasons": ["active", "moved"],
}  # fmt: skip
INCIDENCES = np.cumsum(np.random.default_rng(1).uniform(0.0, 0.12, (6, 2, 3)), axis=2)


@pytest.fixture
def folder(tmp_path):
    """Write outcomes of six loans, of whom one moved away, with the same causes as codes, labels and reasons."""
    codes = [{"default": 1, "repayment": 2}.get(why, 0) for why in WHY]
    end = [9.0, 9, 5, 8, 7, 9]
    time = [3.0, 4, 5, 2, 6, 4]
    frame = {"id": list("abcdef"), "time": time, "event": codes, "why": WHY, "censoring_time": end}
    frame["label"] = ["default", "repayment", "", "repayment", "default", "censored"]
    pd.DataFrame(frame).to_csv(tmp_path / "y.csv", index=False)
    return tmp_path


def wide(pattern, **more):
    columns = {"id": list("abcdef")}
    for k, cause in enumerate(CAUSES):
        for j, time in enumerate(TIMES):
            columns[pattern.format(cause=cause, number=k + 1, time=f"{time:g}")] = INCIDENCES[:, k, j]
    return pd.DataFrame({**columns, **more})


def long():
    rows = [
        (who, time, cause, INCIDENCES[i, k, j])
        for k, cause in enumerate(CAUSES) for j, time in enumerate(TIMES) for i, who in enumerate("abcdef")
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=["id", "time", "cause", "probability"]).sample(frac=1, random_state=2)


# Outcomes


def test_codes_labels_and_reasons_are_the_same_outcomes(folder):
    by_code = io.read_outcomes(folder / "y.csv", causes=CAUSES).outcomes
    assert by_code.n_by_cause == {"default": 2, "repayment": 2}
    assert by_code.dropped_out.tolist() == [False] * 5 + [True]
    by_label = io.read_outcomes(folder / "y.csv", event="label", causes=CAUSES).outcomes
    by_reason = io.read_outcomes(folder / "y.csv", **REASONS).outcomes
    assert by_reason.chosen_cause == "default"  # reasons say which one is the event
    assert by_code.chosen_cause == by_label.chosen_cause == ""
    for other in (by_label, by_reason):
        assert other.causes == by_code.causes
        np.testing.assert_array_equal(other.cause, by_code.cause)
        np.testing.assert_array_equal(other.time, by_code.time)
    unnamed = io.read_outcomes(folder / "y.csv").outcomes
    assert unnamed.causes == ("1", "2")


def test_reasons_have_names(folder):
    named = {**REASONS, "event_reasons": ["loss=default"], "competing_reasons": ["gone=repayment", "gone=moved"]}
    y = io.read_outcomes(folder / "y.csv", **{**named, "censored_reasons": ["active"]}).outcomes
    assert y.n_by_cause == {"loss": 2, "gone": 3}
    assert y.n_dropped_out == 0
    several = {"reason": "why", "event_reasons": ["loss=default", "gone=repayment"]}
    y = io.read_outcomes(folder / "y.csv", **several, censored_reasons=["active", "moved"]).outcomes
    assert (y.causes, y.chosen_cause) == (("loss", "gone"), "")
    one = {**several, "event_reasons": ["default", "repayment"]}  # one kind of event, as without names
    assert not io.read_outcomes(folder / "y.csv", **one, censored_reasons=["active", "moved"]).outcomes.causes
    joined = {**several, "event_reasons": ["default", "moved"], "competing_reasons": ["repayment"]}
    assert io.read_outcomes(folder / "y.csv", **joined, censored_reasons=["active"]).outcomes.causes == (
        "default or moved", "repayment",
    )  # fmt: skip


def test_a_reason_that_looks_like_a_name_is_a_reason(tmp_path):
    (tmp_path / "y.csv").write_text("time,why,censoring_time\n1,a=b,3\n2,b,3\n3,,3\n")
    y = io.read_outcomes(tmp_path / "y.csv", reason="why", event_reasons=["a=b"], competing_reasons=["b"]).outcomes
    assert (y.causes, y.cause.tolist()) == (("a=b", "b"), [1, 2, 0])


def test_dates_have_causes(tmp_path):
    (tmp_path / "y.csv").write_text(
        "start,end,why,code\n2017-01-01,2017-01-11,default,1\n2017-01-01,2017-01-21,repaid,2\n2017-01-11,,,0\n"
        "2017-01-01,2017-03-01,repaid,2\n2017-01-01,2017-01-05,sold,0\n"
    )
    dates = {"end": "end", "cutoff": "2017-02-01"}
    reasons = {"event_reasons": ["default"], "competing_reasons": ["repaid"], "censored_reasons": ["sold"]}
    by_reason = io.read_outcomes(tmp_path / "y.csv", reason="why", **dates, **reasons).outcomes
    by_code = io.read_outcomes(tmp_path / "y.csv", event="code", causes=["default", "repaid"], **dates).outcomes
    wanted = ss.Outcomes.from_dates(
        ["2017-01-01", "2017-01-01", "2017-01-11", "2017-01-01", "2017-01-01"],
        ["2017-01-11", "2017-01-21", None, "2017-03-01", None], "2017-02-01",
        last_seen=[None, None, None, None, "2017-01-05"], cause=["default", "repaid", None, "repaid", None],
    )  # fmt: skip
    for y in (by_reason, by_code):
        assert y.causes == wanted.causes
        for name in ("time", "cause", "censoring_time"):
            np.testing.assert_array_equal(getattr(y, name), getattr(wanted, name))
    assert by_code.cause.tolist() == [1, 2, 0, 0, 0]  # after the cut-off, an event was not seen
    assert by_reason.chosen_cause == "default"


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"event": "why", "causes": CAUSES}, r"column 'why' must hold the causes 'default', 'repayment', or no .* "
         r"1 of 6 are neither, 'moved' \(1\), the first in row 5"),
        ({"causes": ["default"]}, r"event must be 0 or the code of a cause, 1 \(default\): 2 of 6 are not"),
        ({"event": "why"}, "`reason` and `event_reasons` take other words, `causes` names of causes"),
        ({**REASONS, "competing_reasons": None}, r"that are not explained: 'repayment' \(2\), the first in row 1"),
        ({**REASONS, "event_reasons": ["x=default"], "competing_reasons": ["x=repayment"]},
         "a cause can be the event or compete with it, not both: 'x'"),
        ({**REASONS, "causes": CAUSES}, "`causes` names those in `event`; with `reason`, `event_reasons` and"),
        ({"causes": ["a", "a"]}, "causes must have different names"),
    ],
)  # fmt: skip
def test_what_causes_can_not_be(folder, said, message):
    with pytest.raises(ss.InputError, match=message) as error:
        io.read_outcomes(folder / "y.csv", **said)
    assert "\n" not in str(error.value)


# Predictions


def forms(folder):
    """Yield how a file is written, and what is said of it."""
    wide("{cause}@{time}").to_csv(folder / "usual.csv", index=False)
    yield "usual.csv", {}
    wide("cause{number}@{time}").to_csv(folder / "numbered.csv", index=False)
    yield "numbered.csv", {}
    wide("p_{cause}_{time}").to_parquet(folder / "pattern.parquet", index=False)
    yield "pattern.parquet", {"columns": "p_{cause}_{time}"}
    (100 * wide("{cause}@{time}").set_index("id")).to_csv(folder / "percent.csv")
    yield "percent.csv", {"percent": True}
    long().to_csv(folder / "long.csv", index=False)
    yield "long.csv", {}
    lists = pa.table({"id": list("abcdef"), **{c: list(INCIDENCES[:, k]) for k, c in enumerate(CAUSES)}})
    pq.write_table(lists.replace_schema_metadata({"survscore": json.dumps({"grid": TIMES})}), folder / "lists.parquet")
    yield "lists.parquet", {"columns": "{cause}"}


def test_every_form_holds_the_same_incidences(folder):
    y = io.read_outcomes(folder / "y.csv", causes=CAUSES).outcomes
    curves = ss.IncidenceCurves(INCIDENCES, TIMES, causes=CAUSES)
    wanted = ss.brier_score(y, curves, weighting="administrative", cause="repayment", times=TIMES).scores
    seen = list(forms(folder))
    assert len(seen) == 6
    for name, said in seen:
        study = io.read_study(folder / "y.csv", [folder / name], causes=CAUSES, **said)
        (read,) = study.models.values()
        np.testing.assert_allclose(read.probabilities, INCIDENCES, rtol=1e-12)
        assert read.causes == (("1", "2") if name == "numbered.csv" else tuple(CAUSES))
        scores = ss.brier_score(y, read, weighting="administrative", cause="repayment", times=TIMES).scores
        np.testing.assert_allclose(scores, wanted, rtol=1e-12)


def test_ids_of_long_files_may_be_in_any_order(folder):
    frame = long()
    frame.to_csv(folder / "long.csv", index=False)
    read = io.read_study(folder / "y.csv", [folder / "long.csv"], causes=CAUSES).models["long"]
    np.testing.assert_allclose(read.probabilities, INCIDENCES, rtol=1e-12)
    short = frame[~((frame["id"] == "c") & (frame["cause"] == "repayment"))]
    short.to_csv(folder / "short.csv", index=False)
    with pytest.raises(ss.InputError, match="the same ids for each cause: 'default' has 6 ids, 'repayment' has 5"):
        io.read_predictions(folder / "short.csv")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda frame: frame.assign(**{"default@8": 0.7, "repayment@8": 0.7}), "sum"),
        (lambda frame: frame.drop(columns="default@8"), "all causes must be predicted at the same times: 'default' is"),
        (lambda frame: frame.rename(columns={"default@8": "8"}), "predictions with a cause and without, '8' and 'def"),
        (lambda frame: frame.assign(**{"default@8": 0.0}), "incidence of cause 'default' must not decrease with time"),
        (lambda frame: frame.assign(**{"cause 1@2": 0.1, "1@2": 0.1}), "'cause 1@2' and '1@2' are the same time"),
    ],
)  # fmt: skip
def test_bad_predictions_by_cause(folder, change, message):
    change(wide("{cause}@{time}")).to_csv(folder / "p.csv", index=False)
    with pytest.raises(ss.InputError, match=message) as error:
        io.read_predictions(folder / "p.csv")
    assert str(error.value).startswith(str(folder / "p.csv"))


@pytest.mark.parametrize("columns", ["{cause}_{cause}_{time}", "{cause}{model}{model}", "{time}_{time}", "cause"])
def test_bad_patterns(folder, columns):
    wide("{cause}_{time}").to_csv(folder / "p.csv", index=False)
    with pytest.raises(ss.InputError, match=r"columns must hold \{time\} once .*, and \{model\} and \{cause\} at most"):
        io.read_predictions(folder / "p.csv", columns=columns)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_what_is_written_is_read(folder, ending):
    y = io.read_outcomes(folder / "y.csv", causes=CAUSES).outcomes
    curves = ss.IncidenceCurves(INCIDENCES, TIMES, causes=CAUSES, interpolation="step", extrapolation="hold")
    io.write_outcomes(folder / f"o.{ending}", y)
    io.write_predictions(folder / f"one.{ending}", {"net": curves})
    io.write_predictions(folder / f"two.{ending}", {"net": curves, "cox": curves[::-1]})
    found = io.read_study(folder / f"o.{ending}", [folder / f"one.{ending}"], causes=CAUSES)
    np.testing.assert_array_equal(found.outcomes.cause, y.cause)
    np.testing.assert_array_equal(found.models["one"].probabilities, INCIDENCES)
    two = io.read_predictions(folder / f"two.{ending}").models
    np.testing.assert_array_equal(two["cox"].probabilities, INCIDENCES[::-1])
    if ending == "parquet":  # which says how curves are read
        assert (two["net"].interpolation, two["net"].extrapolation) == ("step", "hold")
    with pytest.raises(ss.InputError, match="all be SurvivalCurves, or all IncidenceCurves"):
        io.write_predictions(folder / f"a.{ending}", {"net": curves, "one": curves.for_cause(1)})
    other = ss.IncidenceCurves(INCIDENCES, TIMES, causes=CAUSES)
    with pytest.raises(ss.InputError, match="need files of their own"):
        io.write_predictions(folder / f"a.{ending}", {"net": curves, "cox": other})


# Proposals


def test_formats_propose_causes_with_questions(capsys, tmp_path):
    rng = np.random.default_rng(3)
    n = 400
    cause, end = rng.integers(0, 3, n), rng.integers(8, 12, n)
    time = np.where(cause == 0, end, rng.integers(1, 8, n))
    who = [f"x{k}" for k in range(n)]
    pd.DataFrame({"id": who, "time": time, "status": cause, "censoring_time": end}).to_csv(
        tmp_path / "y.csv", index=False
    )
    values = np.cumsum(rng.uniform(0.01, 0.15, (n, 2, 3)), axis=2)
    frame = {"id": who} | {f"{c}_{t}": values[:, k, j] for k, c in enumerate(CAUSES) for j, t in enumerate((2, 4, 8))}
    pd.DataFrame(frame).to_csv(tmp_path / "p.csv", index=False)
    code, out, _ = run(capsys, "formats", tmp_path / "y.csv", tmp_path / "p.csv", "--json")
    proposal = json.loads(out)
    assert code == 0
    asked = {doubt["about"] for doubt in proposal["questions"]}
    assert asked >= {"--event", "--causes", "--cause", "--columns"}  # never a sure command for 0, 1, 2
    words = proposal["command"]
    command = words if isinstance(words, list) else words.split()
    assert "--causes default,repayment --cause default" in " ".join(command)
    assert "{cause}_{time}" in " ".join(command)
    _, out, _ = run(capsys, "formats", tmp_path / "y.csv", "--json")
    assert {doubt["about"] for doubt in json.loads(out)["questions"]} >= {"--event", "--cause"}


def test_models_are_not_taken_for_causes(tmp_path, capsys):
    rng = np.random.default_rng(3)
    survival = np.sort(rng.uniform(0.5, 1.0, (50, 2, 3)), axis=2)[:, :, ::-1]
    frame = {f"{c}_{t}": survival[:, k, j] for k, c in enumerate(("net", "cox")) for j, t in enumerate((2, 4, 8))}
    pd.DataFrame(frame).to_csv(tmp_path / "p.csv", index=False)
    _, out, _ = run(capsys, "formats", tmp_path / "p.csv", "--json")
    assert "{model}_{time}" in out
    assert "cause" not in out

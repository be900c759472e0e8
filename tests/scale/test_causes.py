"""Scores of one cause from data larger than memory are those of data in memory."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import survscore as ss
from combinations import every_pair
from commands import refused, run
from survscore.io import Form
from survscore.scale import State, evaluate_state

TIMES = np.array([3.0, 6, 12, 24])
CAUSES = ("default", "repayment")


def study(n=1500, *, dropouts, seed=1):
    """Return outcomes on whole days with two causes, the incidences of two models, and the table of both."""
    rng = np.random.default_rng(seed)
    rates = np.stack([(0.5 + rng.uniform(size=n)) / 25, np.full(n, 1 / 15)], axis=1)
    times, end = np.ceil(rng.exponential(1 / rates)), rng.integers(5, 40, n).astype(float)
    lost = np.ceil(rng.exponential(60.0, n)) if dropouts else np.full(n, np.inf)
    time = np.minimum.reduce([times[:, 0], times[:, 1], end, lost])
    cause = np.where(times[:, 0] <= time, 1, np.where(times[:, 1] <= time, 2, 0))
    y = ss.Outcomes(time, cause, end, causes=CAUSES)
    total = rates.sum(axis=1)[:, None]
    right = (rates / total)[:, :, None] * (1 - np.exp(-total * TIMES))[:, None]
    models = {"a": right, "b": right * rng.uniform(0.6, 1.0, (n, 2, 1))}
    frame = {"time": time, "event": cause.astype(np.int8), "censoring_time": end, "who": rng.integers(0, 200, n)}
    frame["plan"] = np.where(rng.uniform(size=n) < 0.4, "x", "y")
    for name, values in models.items():
        frame |= {f"{name}:{c}@{t:g}": values[:, k, j] for k, c in enumerate(CAUSES) for j, t in enumerate(TIMES)}
    curves = {name: ss.IncidenceCurves(values, TIMES, causes=CAUSES) for name, values in models.items()}
    return y, curves, pd.DataFrame(frame)


def same(found, wanted, *, but=()):
    """Assert that tables of two results are the same but for some columns, to 1e-10 of what they hold."""
    for name in ("scores", "contrasts"):
        keys = [key for key in ("plan", "metric", "weighting", "model", "time") if key in getattr(found, name)]
        mine, theirs = (getattr(one, name).sort_values(keys, ignore_index=True) for one in (found, wanted))
        assert list(mine) == list(theirs)
        for column in mine:
            if column in ("p_value", "bound_p_value", *but):  # far out, a p-value moves more than its statistic
                continue
            if mine[column].dtype.kind in "fi":
                np.testing.assert_allclose(mine[column], theirs[column], rtol=0, atol=1e-10, err_msg=column)
            else:
                assert mine[column].astype(str).tolist() == theirs[column].astype(str).tolist()


@every_pair(
    more=[{}, {"ranges": "any"}, {"groups": "who"}, {"by": "plan"}, {"metric": "auc"}],
    weighting=[ss.Administrative(dropout_strata=None), "ipcw"],
    dropouts=[False, True],
)
def test_evaluate_is_compare(dropouts, weighting, more):
    y, curves, frame = study(dropouts=dropouts)
    labels = {name: frame[more[name]].to_numpy() for name in ("groups",) if name in more}
    labels |= {"by": {"plan": frame["plan"].to_numpy()}} if "by" in more else {}
    for cause in CAUSES:
        found = ss.evaluate(pa.Table.from_pandas(frame), weighting=weighting, cause=cause, outcomes={"causes": CAUSES},
                            **more)  # fmt: skip
        wanted = ss.compare(y, curves, cause=cause, weighting=weighting, times=TIMES, null=False, **{**more, **labels})
        same(found, wanted)
        scored = getattr(found, "total", found).scored
        assert {one.cause for one in scored} == {cause}


def test_any_event_counts_where_weights_are_estimated():
    """An event of another cause ends follow-up as one of interest does, and is no drop-out."""
    _, _, frame = study(dropouts=True)
    table = pa.Table.from_pandas(frame)
    weighting = ss.Administrative(dropout_strata=None)
    right = ss.evaluate(table, weighting=weighting, cause="default", outcomes={"causes": CAUSES})
    lost = frame.assign(event=frame["event"] % 2).rename(columns=lambda name: name.replace("default@", ""))
    lost = lost.drop(columns=[name for name in lost if "repayment" in name])
    wrong = ss.evaluate(pa.Table.from_pandas(lost), weighting=weighting, form=Form(predicts="event"))
    assert (wrong.scores["score"] - right.scores["score"]).abs().max() > 0.01


def test_states_of_a_cause_add_up_and_travel():
    _, _, frame = study(dropouts=True)
    table = pa.Table.from_pandas(frame)
    asked = {"weighting": ss.Administrative(dropout_strata=None), "cause": "repayment", "outcomes": {"causes": CAUSES}}
    first = evaluate_state(table[:700], **asked)
    both = evaluate_state(table[700:], add=State.from_bytes(first.to_bytes()), **asked)
    same(both.result(), ss.evaluate(table, **asked))
    other = evaluate_state(table[:700], **{**asked, "cause": "default"})
    with pytest.raises(ss.InputError, match="another specification"):
        evaluate_state(table[700:], add=other, **asked)


@pytest.mark.parametrize("column", ["number", "words", "labels"])
def test_a_column_of_causes_may_hold_numbers_or_names(column):
    _, _, frame = study(dropouts=False)
    words = np.array(["censored", *CAUSES], dtype=object)[frame["event"]]
    held = {"number": frame["event"], "words": words, "labels": np.where(frame["event"] > 0, words, None)}[column]
    table = pa.Table.from_pandas(frame.assign(status=held))
    asked = {"weighting": "administrative", "cause": "repayment"}
    found = ss.evaluate(table, outcomes={"event": "status", "causes": CAUSES}, **asked)
    same(found, ss.evaluate(pa.Table.from_pandas(frame), outcomes={"causes": CAUSES}, **asked))
    if column == "number":
        numbered = frame.rename(columns=lambda name: name.replace("default@", "1@").replace("repayment@", "2@"))
        unnamed = ss.evaluate(pa.Table.from_pandas(numbered), weighting="administrative", cause=2)
        same(unnamed, found, but=["cause"])
        assert set(unnamed.scores["cause"]) == {"2"}


def test_patterns_lists_and_predictions_of_one_cause():
    _, curves, frame = study(dropouts=False)
    asked = {"weighting": "administrative", "cause": "default", "outcomes": {"causes": CAUSES}}
    wanted = ss.evaluate(pa.Table.from_pandas(frame), **asked)
    plain = frame[["time", "event", "censoring_time"]]
    values = {name: model.probabilities for name, model in curves.items()}
    by_pattern = plain.assign(**{f"{name}_{c}_{t:g}": array[:, k, j] for name, array in values.items()
                                 for k, c in enumerate(CAUSES) for j, t in enumerate(TIMES)})  # fmt: skip
    same(ss.evaluate(pa.Table.from_pandas(by_pattern), models="{model}_{cause}_{time}", **asked), wanted)
    patterns = {"a": "a_{cause}_{time}", "b": "b_{cause}_{time}"}
    same(ss.evaluate(pa.Table.from_pandas(by_pattern), models=patterns, **asked), wanted)
    lists = pa.Table.from_pandas(plain)
    for name, array in values.items():
        for k, c in enumerate(CAUSES):
            lists = lists.append_column(f"{name}/{c}", pa.array(list(array[:, k])))
    lists = lists.replace_schema_metadata({"survscore": f'{{"grid": {TIMES.tolist()}}}'})
    same(ss.evaluate(lists, models="{model}/{cause}", **asked), wanted)
    alone = plain.assign(**{f"{name}:{t:g}": array[:, 0, j] for name, array in values.items()
                            for j, t in enumerate(TIMES)})  # fmt: skip
    same(ss.evaluate(pa.Table.from_pandas(alone), form=Form(predicts="event"), **asked), wanted)


@pytest.mark.parametrize(
    ("change", "more", "message"),
    [
        ({}, {}, "columns of predictions have causes, 'default' and 'repayment': `cause` says which"),
        ({}, {"cause": "churn", "outcomes": {"causes": CAUSES}}, "cause must be one of 'default' and 'repayment', or"),
        ({}, {"cause": "all"}, r"evaluate has no multi-class form \(cause='all'\): name one cause, or use compare"),
        (
            {}, {"cause": "default", "outcomes": {"causes": ["default", "fraud"]}},
            "'a' must be of the causes of y, 'default' and 'fraud', not of 'default' and 'repayment': name them alike",
        ),
        (
            {}, {"cause": "default", "event_of_interest": "default", "outcomes": {"causes": CAUSES}},
            "cause and event_of_interest are two spellings",
        ),
        ({}, {"cause": "churn"}, "cause must be the number of a cause, from 1 on; `causes` gives them names"),
        ({}, {"cause": 3, "outcomes": {"causes": CAUSES}}, "cause must be one of 'default' and 'repayment'"),
        (
            {"entered": 0.0}, {"cause": "default", "entry": "entered", "outcomes": {"causes": CAUSES}},
            "no scores of a cause with delayed entry",
        ),
        ({}, {"cause": 1}, "model 'a' has no predictions of cause '1', only of 'default' and 'repayment'"),
        ({"event": 3}, {"cause": 1, "outcomes": {"causes": CAUSES}}, "event must be 0 or the code of a cause"),
        ({"event": "moved"}, {"cause": 1, "outcomes": {"causes": CAUSES}}, r"'moved' \(1500\), the first in row 0"),
        ({"event": "moved"}, {"cause": 1}, "model 'a' has no predictions|holds words"),
        ({}, {"cause": 1, "outcomes": {"cutoff": "2017-01-01"}}, "name their column as `end`"),
    ],
)  # fmt: skip
def test_what_can_not_be(change, more, message):
    _, _, frame = study(dropouts=False)
    with pytest.raises(ss.InputError, match=message):
        ss.evaluate(pa.Table.from_pandas(frame.assign(**change)), weighting="administrative", **more)


def test_dates_have_causes():
    dates = pd.DataFrame({
        "start": ["2017-01-01", "2017-01-01", "2017-01-11", "2017-01-01", "2017-01-05"],
        "end": ["2017-01-11", "2017-01-21", None, "2017-03-01", "2017-01-09"],
        "event": [1, 2, 0, 2, 1], "10": [0.8, 0.7, 0.9, 0.6, 0.7], "20": [0.6, 0.5, 0.9, 0.5, 0.6],
    })  # fmt: skip
    named = {"cutoff": "2017-02-01", "end": "end"}
    found = ss.evaluate(pa.Table.from_pandas(dates), weighting="administrative", cause=2, outcomes=named)
    y = ss.Outcomes.from_dates(
        dates["start"], dates["end"], "2017-02-01", cause=dates["event"], causes={"1": 1, "2": 2}
    )
    curves = {"predictions": ss.SurvivalCurves(dates[["10", "20"]].to_numpy(), [10, 20])}
    wanted = ss.compare(y, curves, metric="brier", weighting="administrative", times=[10, 20], null=False, cause="2")
    np.testing.assert_allclose(found.scores["score"], wanted.scores["score"], rtol=1e-12)
    with pytest.raises(ss.InputError, match="event, column 'event', has 2 causes: `cause` says which one"):
        ss.evaluate(pa.Table.from_pandas(dates), weighting="administrative", outcomes=named)


def test_the_command_line_takes_causes(capsys, tmp_path):
    _, _, frame = study(dropouts=False)
    (tmp_path / "rows").mkdir()
    for k in range(3):
        pq.write_table(pa.Table.from_pandas(frame[k::3], preserve_index=False), tmp_path / "rows" / f"{k}.parquet")
    asked = ["evaluate", tmp_path / "rows", "-w", "administrative", "--causes", "default,repayment"]
    assert run(capsys, *asked, "--cause", "default", "--csv", tmp_path / "o.csv")[0] == 0
    found = pd.read_csv(tmp_path / "o.csv")
    wanted = ss.evaluate(pa.Table.from_pandas(frame), weighting="administrative", cause=1, outcomes={"causes": CAUSES})
    np.testing.assert_allclose(found["score"], wanted.scores["score"])
    _, out, _ = run(capsys, *asked, "--cause", "default")
    assert "Brier score of cause default" in out
    message = refused(capsys, *asked)
    assert "--cause says which one scores are of" in message


def test_a_time_that_the_first_file_lacks(tmp_path):
    table = pa.Table.from_pandas(study(100, dropouts=False)[2])
    pq.write_table(table.drop_columns(["a:default@24"]), tmp_path / "0.parquet")
    pq.write_table(table.slice(0, 50), tmp_path / "1.parquet")
    with pytest.raises(ss.InputError, match=r"1\.parquet: has columns of predictions that 0\.parquet does not have"):
        ss.evaluate(tmp_path, cause="default", weighting="administrative", outcomes={"causes": CAUSES})

"""What `survscore formats FILE` proposes for tables as people have them: right, or with a question mark."""

import json
import shlex
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

import mangling
import survscore as ss
from combinations import examples
from commands import refused, run
from survscore import cli
from survscore.cli.proposing import OF_FOLDERS, guess, propose
from survscore.io.profiles import sample

CUTOFF = pd.Timestamp("2017-01-29")
N = 60
MONTH = 30.4375


@pytest.fixture(scope="module")
def truth():
    """Customers who start on some day, and leave or not before the cut-off; some are lost before."""
    rng = np.random.default_rng(17)
    start = pd.Timestamp("2015-01-01") + pd.to_timedelta(np.sort(rng.integers(0, 500, N)), "D")
    leaving = rng.exponential(500, N).round().astype(int) + 1
    end = (CUTOFF - start).days.to_numpy()
    event = leaving <= end
    days = np.where(event, leaving, end)
    last = start + pd.to_timedelta(days, "D")
    dates = pd.Series(last).where(event)
    risk = rng.uniform(0.0005, 0.003, N)
    return SimpleNamespace(
        ids=[f"C{k:04}" for k in range(N)], start=pd.Series(start), last=pd.Series(last), event=event.astype(int),
        days=days, end=end, date=dates, age=rng.integers(20, 80, N), rng=rng,
        survival=lambda times: np.exp(-np.outer(risk, times)),
    )  # fmt: skip


def csv(folder, name, columns, **how):
    pd.DataFrame(columns).to_csv(folder / name, **{"index": False, **how})
    return [folder / name]


def parquet(folder, name, columns):
    pd.DataFrame(columns).to_parquet(folder / name)
    return [folder / name]


def days_of(dates):
    return (dates - pd.Timestamp("1970-01-01")).dt.days.astype("Int64")


def decimal(dates):
    begin = pd.to_datetime(dates.dt.year.astype("Int64").astype(str) + "-01-01", errors="coerce")
    return (dates.dt.year + (dates - begin).dt.days / (365 + dates.dt.is_leap_year)).round(4)


def observed(y, **more):
    return {"time": y.days, "event": y.event, "censoring_time": y.end, **more}


def wide(y, times, name="{:g}", values=lambda survival: survival):
    return pd.DataFrame(values(y.survival(np.asarray(times))), columns=[name.format(time) for time in times])


# Of each table the right options, which of them must be in question, and what it holds


OUTCOMES = {
    "subscription export": (
        {"start": "signup_date", "event-date": "cancel_date", "cutoff": "exported_at", "id": "customer_id"}, [],
        lambda y: {"customer_id": y.ids, "plan": "basic", "signup_date": y.start, "cancel_date": y.date,
                   "mrr": y.age / 7, "exported_at": CUTOFF},
    ),
    "churn flag and end date": (
        {"start": "start_date", "end": "end_date", "event": "churned", "cutoff": "2017-01-29", "id": "account_id"},
        ["--cutoff"],
        lambda y: {"account_id": range(100, 100 + N), "region": "EU", "start_date": y.start, "end_date": y.last,
                   "churned": y.event},
    ),
    "SAS dates": (
        {"start": "ENROLDT", "event-date": "DEATHDT", "last-seen": "LASTFUDT", "cutoff": "2017-01-29", "id": "SUBJID",
         "date-format": "%d%b%Y"}, ["--cutoff"],
        lambda y: {"SUBJID": range(1001, 1001 + N), "ARM": "A"} | {
            name: dates.dt.strftime("%d%b%Y").str.upper()
            for name, dates in (("ENROLDT", y.start), ("DEATHDT", y.date), ("LASTFUDT", y.last))
        },
    ),
    "German export": (
        {"start": "Vertragsbeginn", "event-date": "Kündigung", "cutoff": "Stichtag", "id": "Kundennummer",
         "date-format": "%d.%m.%Y"}, [],
        lambda y: {"Kundennummer": y.ids, "Vertragsbeginn": y.start.dt.strftime("%d.%m.%Y"),
                   "Kündigung": y.date.dt.strftime("%d.%m.%Y"), "Umsatz": y.age / 8, "Stichtag": "29.01.2017"},
    ),
    "decimal years": (
        {"start": "entry", "end": "exit", "event": "status", "date-format": "decimal-year", "cutoff": "2017.0767"},
        ["--cutoff"],
        lambda y: {"id": range(N), "entry": decimal(y.start), "exit": decimal(y.last), "status": y.event},
    ),
    "day counts": (
        {"start": "start_day", "end": "end_day", "origin": "1970-01-01", "cutoff": "2017-01-29"}, ["--cutoff"],
        lambda y: {"id": range(N), "start_day": days_of(y.start), "end_day": days_of(y.last), "event": y.event},
    ),
    "milliseconds": (
        {"start": "created_at", "event-date": "churned_at", "cutoff": "snapshot_ts", "id": "user_id",
         "date-format": "epoch-milliseconds"}, [],
        lambda y: {"user_id": y.ids, "created_at": days_of(y.start) * 86_400_000,
                   "churned_at": days_of(y.date) * 86_400_000,
                   "snapshot_ts": (CUTOFF - pd.Timestamp("1970-01-01")).days * 86_400_000},
    ),
    "dates of which the month is unknown": (
        {"start": "start_date", "cutoff": "data_cutoff", "id": "patient_id", "date-format": "%d/%m/%Y"},
        ["--date-format"],
        lambda y: {"patient_id": y.ids, "start_date": y.start.dt.strftime("05/%m/%Y"),
                   "event_date": y.start.where(y.event == 1).dt.strftime("06/%m/%Y"), "data_cutoff": "01/02/2017"},
    ),
    "reasons of closing loans": (
        {"start": "opened", "end": "closed", "reason": "close_reason", "event-reasons": 'default,"default, 90 days"',
         "competing-reasons": "repaid", "censored-reasons": "open", "cutoff": "2017-01-29", "id": "loan_id"},
        ["--cutoff", "--event-reasons"],
        lambda y: {"loan_id": y.ids, "opened": y.start, "closed": y.last, "close_reason": np.where(
            y.event, np.where(y.age > 60, "default", "default, 90 days"), np.where(y.age > 40, "repaid", "open"))},
    ),
    "Telco": (
        {"time": "tenure", "event": "Churn", "id": "customerID"}, [],
        lambda y: {"customerID": y.ids, "gender": "Female", "SeniorCitizen": y.age % 2, "tenure": y.days // 30,
                   "Partner": "Yes", "PhoneService": np.where(y.age > 50, "Yes", "No"), "MonthlyCharges": y.age / 3,
                   "TotalCharges": y.age * 3.7, "Churn": np.where(y.event, "Yes", "No")},
    ),
    "R's lung": (
        {"reason": "status", "event-reasons": "2", "censored-reasons": "1"}, ["--event-reasons"],
        lambda y: {"inst": 3, "time": y.days, "status": 1 + y.event, "age": y.age, "sex": 1 + y.age % 2,
                   "ph.ecog": y.age % 3, "meal.cal": np.where(y.age > 40, 1175.0, np.nan)},
    ),
    "R's pbc": (
        {"event": "status", "cause": "1"}, ["--event", "--cause"],
        lambda y: {"id": range(1, N + 1), "time": y.days, "status": np.where(y.event, 1 + (y.age > 30), 0),
                   "trt": 1 + y.age % 2, "age": y.age + 0.7, "sex": "f", "stage": 1 + y.age % 4},
    ),
    "R's colon": (
        {"event": "status", "groups": "id", "by-order": True}, ["--groups"],
        lambda y: {"id": np.repeat(np.arange(1, N + 1), 2), "rx": "Obs", "status": np.repeat(y.event, 2),
                   "time": np.repeat(y.days, 2), "etype": np.tile([2, 1], N)},
    ),
    "Stata's stset": (
        {"time": "_t", "event": "_d"}, [], lambda y: {"age": y.age, "_st": 1, "_d": y.event, "_t": y.days, "_t0": 0}
    ),
    "cBioPortal": (
        {"time": "OS_MONTHS", "reason": "OS_STATUS", "event-reasons": "1:DECEASED", "censored-reasons": "0:LIVING",
         "id": "PATIENT_ID"}, ["--event-reasons"],
        lambda y: {"PATIENT_ID": y.ids, "OS_STATUS": np.where(y.event, "1:DECEASED", "0:LIVING"),
                   "OS_MONTHS": y.days / 30.4},
    ),
    "flag of being censored": (
        {"time": "duration", "reason": "censored", "event-reasons": "0", "censored-reasons": "1"}, ["--event-reasons"],
        lambda y: {"id": range(N), "duration": y.days, "censored": 1 - y.event},
    ),
    "known censoring times": (
        {"time": "duration", "event": "churned", "censoring-time": "max_duration", "id": "customer"}, [],
        lambda y: {"customer": y.ids, "duration": y.days, "churned": y.event == 1, "max_duration": y.end},
    ),
}  # fmt: skip
HOW = {"German export": {"sep": ";", "decimal": ","}, "cBioPortal": {"sep": "\t"}, "R's lung": {"na_rep": "NA"}}


def transposed(y, folder):
    turned = wide(y, [1.0, 8.0, 30.0, 90.0]).T
    turned.index = turned.index.astype(float)
    return csv(folder, "cph.csv", turned, index=True)


def long(y, folder):
    frame = wide(y, [30, 60, 90]).assign(id=y.ids).melt(id_vars="id", var_name="time", value_name="survival")
    return csv(folder, "long.csv", frame.astype({"time": float}))


def two_models(y, folder):
    both = pd.concat([wide(y, [90, 180], "cox_{:g}"), wide(y, [90, 180], "net_{:g}", lambda one: one**1.1)], axis=1)
    return csv(folder, "models.csv", both.assign(patient_id=y.ids))


def classifier_by_month(y, folder):
    risk = wide(y, np.arange(1, 25), "month_{:g}", lambda _: 1 - y.survival(np.arange(1, 25) * MONTH))
    path = csv(folder, "churn_model.csv", risk.assign(customer_id=y.ids).sample(frac=1, random_state=1))
    return path + csv(folder, "y.csv", OUTCOMES["subscription export"][2](y))


def both_in_months(y, folder):
    curves = wide(y, np.arange(1, 13), "month_{:g}", lambda _: y.survival(np.arange(1, 13) * MONTH))
    frame = {"customer_id": y.ids, "tenure_months": y.days / MONTH, "churn": y.event}
    return csv(folder, "customers.csv", frame) + csv(folder, "net.csv", curves.assign(customer_id=y.ids))


def covariates_beside(y, folder):
    frame = pd.DataFrame(observed(y, patient=y.ids) | {f"x{k}": y.rng.uniform(size=N) for k in range(1, 6)})
    return csv(folder, "all.csv", pd.concat([frame, wide(y, [90, 365], "surv_{:g}")], axis=1))


def index_that_pandas_wrote(y, folder):
    both = pd.concat([pd.DataFrame(observed(y)), wide(y, [90, 180, 365])], axis=1)
    return csv(folder, "all.csv", both, index=True)


def two_files_of_different_forms(y, folder):
    risk = wide(y, [90, 180, 365], "risk_{:g}", lambda survival: 1 - survival).assign(customer_id=y.ids)
    curves = wide(y, [90, 180, 365]).assign(customer_id=y.ids)
    path = csv(folder, "y.csv", observed(y, customer_id=y.ids))
    return path + csv(folder, "logit.csv", risk) + csv(folder, "net.csv", curves)


def beside_outcomes_and_in_another_file(y, folder):
    both = pd.concat([pd.DataFrame(observed(y, customer_id=y.ids)), wide(y, [90, 180, 365])], axis=1)
    other = wide(y, [90, 180, 365], values=lambda survival: survival**2).assign(customer_id=y.ids)
    return csv(folder, "old.csv", both) + csv(folder, "new.csv", other)


def output_of_spark(y, folder):
    both = pd.concat([pd.DataFrame(observed(y, customer_id=y.ids)), wide(y, [90, 180, 365])], axis=1)
    spark = folder / "scored.parquet"
    spark.mkdir()
    (spark / "_SUCCESS").write_text("")
    for part in range(4):
        both[part::4].to_parquet(spark / f"part-0000{part}-8f2c-c000.snappy.parquet")
    return [spark]


def months_that_nothing_calls_so(y, folder):
    curves = wide(y, [1, 2, 6, 12], "S_{:g}", lambda _: y.survival(np.array([1, 2, 6, 12]) * MONTH))
    return csv(folder, "y.csv", observed(y)) + csv(folder, "net.csv", curves)


def ids_called_differently(y, folder):
    frame = observed(y, customer_id=y.ids)
    return csv(folder, "y.csv", frame) + csv(folder, "net.csv", wide(y, [90, 365]).assign(id=y.ids))


def individuals_without_ids_of_outcomes(y, folder):
    turned = wide(y, [90.0, 180, 365]).T.set_axis(y.ids, axis=1)
    return csv(folder, "y.csv", observed(y)) + csv(folder, "cph.csv", turned, index=True)


PREDICTIONS = {
    lambda y, folder: csv(folder, "net.csv", wide(y, [30, 60, 90, 365]).assign(id=y.ids)): ({}, []),
    lambda y, folder: csv(
        folder, "p.csv", wide(y, [30, 90, 365], "p{:g}", lambda s: (100 - 100 * s).round(2)).assign(customer_id=y.ids)
    ): ({"columns": "p{time}", "predicts": "event", "percent": True, "id": "customer_id"}, []),
    lambda y, folder: csv(folder, "cox.csv", wide(y, [1, 2], "surv_{:g}y").assign(id=y.ids)): (
        {"columns": "surv_{time}y", "predictions-unit": "year", "unit": "D"}, ["--unit"]
    ),
    transposed: ({"transposed": True}, []),
    long: ({}, []),
    two_models: ({"columns": "{model}_{time}", "id": "patient_id"}, [], "compare"),
    classifier_by_month: (
        {"start": "signup_date", "event-date": "cancel_date", "cutoff": "exported_at", "id": "customer_id",
         "columns": "month_{time}", "predicts": "event", "predictions-unit": "month"}, []
    ),
    both_in_months: (
        {"time": "tenure_months", "event": "churn", "columns": "month_{time}", "id": "customer_id"}, []
    ),
    covariates_beside: ({"columns": "surv_{time}", "id": "patient"}, []),
    index_that_pandas_wrote: ({}, []),
    two_files_of_different_forms: ({"id": "customer_id"}, [], "compare"),
    beside_outcomes_and_in_another_file: ({"id": "customer_id"}, [], "compare"),
    output_of_spark: ({"id": "customer_id"}, [], "evaluate"),
    months_that_nothing_calls_so: ({"columns": "S_{time}"}, ["reading"]),
    ids_called_differently: ({}, ["--id"]),
    individuals_without_ids_of_outcomes: ({"transposed": True}, ["--id"]),
}  # fmt: skip


def write_outcomes(y, folder, name):
    write = parquet if name in ("milliseconds", "known censoring times") else csv
    file = f"y.{'parquet' if write is parquet else 'tsv' if name == 'cBioPortal' else 'csv'}"
    return write(folder, file, OUTCOMES[name][2](y), **HOW.get(name, {}))


def layouts():
    """Yield for each table its name, how it is written, and what must be proposed: options, questions, command."""
    for name, (options, asks, _) in OUTCOMES.items():
        yield name, lambda y, folder, name=name: write_outcomes(y, folder, name), options, asks, "score"
    for number, (write, (options, asks, *command)) in enumerate(PREDICTIONS.items()):
        yield f"{number} {write.__name__.strip('<>')}", write, options, asks, *(command or ["score"])


@pytest.mark.parametrize(
    ("write", "options", "asks", "command"), [pytest.param(*row, id=name) for name, *row in layouts()]
)
def test_proposals_are_right_and_ask_what_files_do_not_say(tmp_path, truth, write, options, asks, command):
    proposal = propose(write(truth, tmp_path))
    asked = {doubt.about for doubt in proposal.questions}
    assert (proposal.options, proposal.command[1]) == (options, command), asked
    assert set(asks) <= asked
    assert proposal.sure == (not asks)


# Tables that are easily misread: what is proposed without a question must be these options; None, where one is due


TRAPS = {
    "status of customers, 1 is active": (
        None, lambda y: {"customer_id": y.ids, "tenure": y.days, "status": 1 - y.event}
    ),
    "visits in windows": (
        {"time": "tenure", "event": "churn", "id": "customer_id"},
        lambda y: {"customer_id": y.ids, "tenure": y.days, "churn": y.event}
        | {f"visits_{days}d": y.age % 5 + k for k, days in enumerate((30, 60, 90))},
    ),
    "shares in windows": (
        None,
        lambda y: {"customer_id": y.ids, "tenure": y.days, "churn": y.event}
        | {f"usage_{days}d": (y.age + k) / 100 for k, days in enumerate((30, 60, 90))},
    ),
    "a Kaplan-Meier curve": (
        None,
        lambda y: {"time": np.arange(30), "survival": np.linspace(1, 0.2, 30), "lower": np.linspace(0.9, 0.1, 30)},
    ),
    "rates by calendar year": (None, lambda y: {"id": y.ids, **{str(2010 + k): (y.age + k) / 100 for k in range(5)}}),
    "positions instead of times": (None, lambda y: pd.DataFrame(y.survival(np.array([30, 60, 90, 120])))),
    "recurrence and death": (
        None, lambda y: {"id": y.ids, "time": y.days, "death": y.event, "recurrence": y.age % 2}
    ),
    "cens is 1 for events": (None, lambda y: {"horTh": "no", "age": y.age, "time": y.days, "cens": y.event}),
    "ends of which nothing says what they are": (
        None, lambda y: {"id": y.ids, "start_date": y.start, "end_date": y.date, "cutoff_date": CUTOFF}
    ),
    "a flag that contradicts the dates": (
        None,
        lambda y: {"id": y.ids, "start": y.start, "event_date": y.date, "event": 1 - y.event, "cutoff": CUTOFF},
    ),
    "events after the export": (
        None, lambda y: {"id": y.ids, "start": y.start, "event_date": y.date, "report_date": "2016-01-01"}
    ),
    "intervals of the counting process": (
        None, lambda y: {"id": y.ids, "start": 3, "time": y.days + 4, "event": y.event}
    ),
    "customers who have not logged in lately": (
        None,
        lambda y: {"id": y.ids, "signup_date": y.start, "cancel_date": y.date,
                   "last_login": y.last - pd.to_timedelta(9, "D"), "exported_at": CUTOFF},
    ),
    "a flag the other way round": (None, lambda y: observed(y, id=y.ids) | {"event": 1 - y.event}),
    "paid until": (
        None,
        lambda y: {"id": y.ids, "start_date": y.start, "end_date": y.start + pd.to_timedelta(9, "D"), "cutoff": CUTOFF,
                   "churned": y.event},
    ),
    "bank customers": (
        {"time": "Tenure", "event": "Exited", "id": "CustomerId"},
        lambda y: {"RowNumber": range(N), "CustomerId": range(700, 700 + N), "Surname": "X", "CreditScore": y.age * 9,
                   "Tenure": y.days // 365, "HasCrCard": y.age % 2, "IsActiveMember": y.age % 2,
                   "EstimatedSalary": y.age * 7.7, "Exited": y.event},
    ),
    "one time": (
        {"columns": "churn_prob_{time}", "predicts": "event"},
        lambda y: {"id": y.ids, "churn_prob_90": 1 - y.survival([90])[:, 0]},
    ),
    "predictions that are the opposite of their name": (
        None, lambda y: wide(y, [30, 60, 365], "surv_{:g}", lambda survival: 1 - survival).assign(id=y.ids)
    ),
    "reversed predictions of one time": (
        None, lambda y: observed(y, id=y.ids), lambda y: wide(y, [365], "p_{:g}").assign(id=y.ids)
    ),
    "ids that do not match": (
        None, lambda y: observed(y, id=y.ids), lambda y: wide(y, [90, 365]).assign(id=[f"x{k}" for k in y.ids])
    ),
    "flags that are missing for some": (
        None, lambda y: {"id": y.ids, "time": y.days, "event": pd.Series(y.event).mask(y.age == y.age[3])}
    ),
    "patients that enter late": (
        None, lambda y: {"_st": 1, "_d": y.event, "_t": y.days + 5, "_t0": y.age % 4}
    ),
    "weeks taken for days": (
        None, lambda y: observed(y, id=y.ids), lambda y: pd.DataFrame(
            {"id": y.ids} | {f"s_{week}": np.full(N, 1 - week / 200) for week in (13, 26, 52, 78)})
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TRAPS)
def test_nothing_is_misread_without_a_question_mark(tmp_path, truth, name):
    right, *tables = TRAPS[name]
    files = [csv(tmp_path, f"{k}.csv", table(truth))[0] for k, table in enumerate(tables)]
    try:
        proposal = propose(files)
    except ss.InputError:
        return
    assert not proposal.sure if right is None else proposal.options == right, proposal.options


# Tables that others have written


THEIRS = {
    "rossi.csv": {"time": "week", "event": "arrest"},
    "lung.csv": {"event": "status"},
    "dd.csv": {"time": "duration", "event": "observed"},
    # 1 is the event here, and being censored elsewhere: the name does not tell
    "gbsg2.csv": None,
    "multicenter_aids_cohort.tsv": None,  # with entry after the start of the clock
    "panel_test.csv": None,  # several rows of each
    "canadian_senators.csv": None,
    "merrell1955.csv": None,
    "CuZn-LeftCensoredDataset.csv": {"time": "T", "event": "E"},  # that it is censored from the left, no column tells
}


def of_lifelines(name):
    return Path(pytest.importorskip("lifelines").__file__).parent / "datasets" / name


@pytest.mark.parametrize("name", ["stanford_heart.csv", "interval_diabetes.csv", "recur.csv", "mice.csv"])
def test_intervals_are_no_outcomes(name):
    with pytest.raises(ss.InputError, match="holds neither outcomes"):
        propose([of_lifelines(name)])


@pytest.mark.parametrize("name", THEIRS)
def test_tables_that_come_with_lifelines(name):
    proposal = propose([of_lifelines(name)])
    assert proposal.sure == (THEIRS[name] is not None)
    if proposal.sure:
        assert proposal.options == THEIRS[name]


# What is proposed without a question mark runs, and gives what is meant


SURE = [pytest.param(write, id=name) for name, write, _, asks, _ in layouts() if not asks]


def other_file(folder, proposal, paths, y):
    """Write the file that a proposal has a word for: predictions for these ids, or outcomes."""
    name = proposal.options.get("id", "id")
    guessed = guess(paths[0])
    ids = {} if guessed.id is None else {name: guessed.sample.table.column(guessed.id).to_pylist()}
    if "OUTCOMES" in proposal.command:
        transposed = "transposed" in proposal.options
        ids = {} if not ids and not transposed else {name: y.ids if not transposed else range(N)}
        frame = pd.DataFrame({"time": y.days, "event": y.event.astype(int), "censoring_time": y.end, **ids})
    else:
        longest = max(y.days) / {"tenure": 30, "week": 7}.get(proposal.options.get("time"), 1)
        frame = wide(y, np.round(longest * np.array([0.1, 0.3, 0.5]), 2)).assign(**ids)
    return csv(folder, "other_file.csv", frame)[0]


@pytest.mark.parametrize("write", SURE)
def test_what_is_sure_runs(capsys, tmp_path, truth, write):
    paths = write(truth, tmp_path)
    code, out, err = run(capsys, "formats", *paths)
    assert (code, err) == (0, "")
    assert "?" not in out
    proposal = propose(paths)
    assert f"\n  {shlex.join(proposal.command)}\n" in out
    words = proposal.command[1:]
    if {"OUTCOMES", "PREDICTIONS"} & set(words):
        other = other_file(tmp_path, proposal, paths, truth)
        words = [str(other) if word in ("OUTCOMES", "PREDICTIONS") else word for word in words]
    code, out, err = run(capsys, *words, "--json", "-")
    assert code == 0, err
    made = json.loads(out)["settings"]
    assert made["individuals"] == N
    assert made.get("events", truth.event.sum()) == truth.event.sum()
    assert "reversed" not in err


def test_folders_are_told_only_what_evaluate_knows():
    known = {name for parameter in cli.cli.commands["evaluate"].params for name in parameter.opts}
    assert {f"--{name}" for name in OF_FOLDERS} <= known


# How it is told


def test_questions_are_asked(capsys, tmp_path, truth):
    paths = write_outcomes(truth, tmp_path, "SAS dates")
    code, out, err = run(capsys, "formats", *paths)
    assert (code, err) == (0, "")
    assert "Command, with 1 question(s) (?):" in out
    assert "\n? --cutoff: the data cut-off is unknown; 2017-01-29 is the largest date seen" in out
    told = json.loads(run(capsys, "formats", *paths, "--json")[1])
    assert told["sure"] is False
    assert [one["about"] for one in told["questions"]] == ["--cutoff"]
    assert told["command"][:2] == ["survscore", "score"]
    assert told["command"][-2:] == ["--id", "SUBJID"]
    assert {one["column"] for one in told["files"][str(paths[0])]["columns"]} >= {"DEATHDT", "ARM"}


def test_check_reads_all_rows(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr("survscore.io.profiles.WHOLE_BYTES", 1 << 20)
    n = 200_000
    event = np.where(np.arange(n) == n - 3, -1, np.arange(n) % 2)
    path = csv(tmp_path, "y.csv", pd.DataFrame({"time": np.arange(n), "event": event}))[0]
    assert propose([path]).sure
    assert run(capsys, "formats", path)[0] == 0
    code, out, _ = run(capsys, "formats", path, "--check")
    assert (code, "? --event" in out) == (2, True)
    for option in ("--json", "--check"):
        assert "name one" in refused(capsys, "formats", option)


@pytest.mark.parametrize("name", ["a b.csv", "it's.csv", "$(touch x).csv", "-x.csv", "a=b.csv"])
def test_names_are_quoted_for_the_shell(tmp_path, truth, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    frame = wide(truth, [30, 60], "S 'x' {:g}").assign(**{"patient $id": truth.ids})
    csv(tmp_path, name, frame.rename(columns={"patient $id": "id"}))
    command = propose([Path(name)]).command
    line = shlex.join(command).replace("survscore", "printf '%s\\0'", 1)
    seen = subprocess.run(["bash", "-c", line], capture_output=True, check=True, text=True).stdout.split("\0")[:-1]
    assert seen == command[1:]
    assert sorted(path.name for path in tmp_path.iterdir()) == [name]


def test_names_do_nothing_to_a_terminal(capsys, tmp_path, truth):
    frame = pd.DataFrame({"id": truth.ids, "time": truth.days, "event": truth.event, "\x1b[41mEVIL\n": 1})
    (path,) = csv(tmp_path, "\x1b]0;owned\x07.csv", frame.assign(**{"=cmd|' /C calc'!A0": 2}))
    for options in ([], ["--json"]):
        code, out, err = run(capsys, "formats", path, *options)
        assert (code, err) == (0, "")
        assert all(line.isprintable() for line in out.splitlines())


def test_standard_input(capsys, monkeypatch, tmp_path, truth):
    (path,) = write_outcomes(truth, tmp_path, "Telco")
    expected = propose([path]).options
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=SimpleNamespace(read=path.read_bytes)))
    code, out, _ = run(capsys, "formats", "-", "--json")
    assert (code, json.loads(out)["options"]) == (0, expected)
    assert json.loads(out)["command"][2] == "-"


# Files of any size and kind


@pytest.mark.parametrize("ending", ["csv", "csv.zst", "tsv", "parquet"])
def test_large_files_are_not_read_whole(tmp_path, truth, ending):
    n = 200_000
    number = np.arange(n)
    event, followed = number % 3 == 0, number % 700 + 0.5
    columns = {"time": followed, "event": event, "censoring_time": followed + 5 * event, "note": ["x" * 20] * n}
    table = pa.table({"customer_id": number, **columns})
    path = tmp_path / f"large.{ending}"
    frame = table.to_pandas()
    if ending == "parquet":
        pq.write_table(table, path, row_group_size=20_000)
    elif ending == "csv.zst":
        with pa.output_stream(str(path), compression="zstd") as stream:
            stream.write(frame.to_csv(index=False).encode())
    else:
        frame.to_csv(path, index=False, sep="\t" if ending == "tsv" else ",")
    guessed = guess(path)
    assert not guessed.sample.whole
    assert 1000 < guessed.sample.table.num_rows < 50_000
    proposal = propose([path])
    assert proposal.sure
    assert proposal.options == {"id": "customer_id"}
    assert "not all" in proposal.files[str(path)]["looked_at"]


def test_later_rows_are_looked_at(tmp_path):
    n = 100_000
    event = np.where(np.arange(n) > n - 100, 2, np.arange(n) % 2)
    table = pa.table({"id": np.arange(n), "time": np.arange(n) + 1.0, "event": event})
    pq.write_table(table, tmp_path / "y.parquet", row_group_size=99)
    assert not propose([tmp_path / "y.parquet"]).sure


@pytest.mark.parametrize("by", ["individual", "time"])
def test_large_long_files(tmp_path, by):
    n, times = 20_000, np.arange(1.0, 25)
    ids, survival = np.arange(n), np.exp(-times / 30)
    columns = {"customer_id": np.repeat(ids, 24), "time": np.tile(times, n), "survival": np.tile(survival, n)}
    if by == "time":
        columns = {"customer_id": np.tile(ids, 24), "time": np.repeat(times, n), "survival": np.repeat(survival, n)}
    pq.write_table(pa.table(columns), tmp_path / "net.parquet")
    proposal = propose([tmp_path / "net.parquet"])
    assert proposal.options == {"id": "customer_id"}
    assert [doubt.text for doubt in proposal.questions] == (
        [] if by == "individual" else ["ids are not repeated in the rows looked at: are they in others?"]
    )


def test_of_many_rows_few_are_read(tmp_path, monkeypatch):
    n, read = 300_000, []
    column = np.arange(n, dtype=np.float64)
    table = pa.table({"customer_id": np.arange(n), "tenure": column % 400, "churned": np.arange(n) % 2})
    pq.write_table(table, tmp_path / "y.parquet", row_group_size=n // 10)

    def in_batches(opened, *asked, **options):
        for batch in whole(opened, *asked, **options):
            read.append(batch.num_rows)
            yield batch

    def at_once(*_, **__):
        raise AssertionError("the whole file is read")

    whole = pq.ParquetFile.iter_batches
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", in_batches)
    for name in ("read", "read_row_group", "read_row_groups"):
        monkeypatch.setattr(pq.ParquetFile, name, at_once)
    assert propose([tmp_path / "y.parquet"]).sure
    assert 0 < sum(read) < n / 10


@pytest.mark.parametrize(
    ("separator", "decimal"), [(one, other) for one in (",", ";", "\t", "|") for other in (".", ",") if one != other]
)
def test_separators_and_decimal_commas(tmp_path, truth, separator, decimal):
    path = tmp_path / "net.csv"
    frame = wide(truth, [30, 60, 90]).assign(id=truth.ids)
    frame.to_csv(path, index=False, sep=separator, decimal=decimal)
    assert propose([path]).sure
    read = ss.io.read_predictions(path).models["net"].probabilities
    np.testing.assert_allclose(read, truth.survival([30, 60, 90]), rtol=1e-14)


# Whatever a file holds: an answer, or one line


def answered(capsys, *arguments):
    code, out, err = run(capsys, "formats", *arguments)
    assert code in (0, 2)
    assert (err == "") if code == 0 else (out == "" and err.startswith("survscore: ") and err.count("\n") == 1)
    assert all(line.isprintable() for line in (out + err).splitlines())
    return code


ANY = examples(50)
TEXTS = st.one_of(
    st.sampled_from(["", "0", "1", "2", "yes", "no", "alive", "2015-01-01", "01.02.2015", "20150101", "1e999", "NaN",
                     "-1", "0.5", "99", "1483228800", "2015.5", "01JAN2015", "2015-01-01T00:00:00Z", "2016-13-45"]),
    st.text(max_size=6),
)  # fmt: skip
NAMES = st.one_of(
    st.sampled_from(["id", "time", "event", "status", "start", "end", "event_date", "cutoff", "30", "60", "net:30",
                     "month_1", "month_2", "survival", "", "censoring_time", "last_seen", "reason", "_t", "_d", "t"]),
    st.text(max_size=8),
)  # fmt: skip


@ANY
@given(st.binary(max_size=400), st.sampled_from(["csv", "csv.gz", "csv.zst", "tsv", "parquet", "arrow", "feather"]))
def test_any_bytes_get_an_answer(capsys, tmp_path, content, ending):
    path = tmp_path / f"any.{ending}"
    path.write_bytes(content)
    answered(capsys, path)
    assert [one.name for one in tmp_path.iterdir()] == [path.name]
    path.unlink()


def four(values, kind=None):
    """Return columns of four values of a kind."""
    return st.lists(values, min_size=4, max_size=4).map(lambda held: pa.array(held, kind))


VALUES = st.one_of(
    four(st.floats()),
    four(st.floats(0, 1)),
    four(st.integers(-(2**63), 2**63 - 1)),
    four(st.one_of(st.none(), st.booleans()), pa.bool_()),
    four(st.integers(-(2**62), 2**62), pa.timestamp("ns")),
    four(st.integers(-(2**62), 2**62), pa.timestamp("s", "UTC")),
    four(st.integers(0, 20_000), pa.date32()),
    four(st.lists(st.floats(0, 1, width=32), max_size=3), pa.list_(pa.float32())),
    four(st.binary(max_size=4), pa.binary()),
    four(TEXTS).map(lambda column: column.dictionary_encode()),
    st.just(pa.nulls(4)),
    st.just(pa.array([{"a": 1}] * 4)),
    st.just(pa.array([1, 2, 3, 4], pa.duration("s"))),
    st.just(pa.array([1, 2, 3, None], pa.time32("s"))),
    st.just(pa.array([1, 2, 3, None], pa.decimal128(20, 2))),
)


@ANY
@given(st.lists(st.tuples(NAMES, VALUES), min_size=1, max_size=5, unique_by=lambda one: one[0]), st.data())
def test_any_columns_get_an_answer(capsys, tmp_path, columns, data):
    table = pa.table(dict(columns))
    path = tmp_path / data.draw(st.sampled_from(["any.parquet", "any.arrow"]))
    if path.suffix == ".parquet":
        try:
            pq.write_table(table, path)
        except (pa.ArrowException, ValueError):
            path.unlink(missing_ok=True)
            reject()  # no such file can be written
    else:
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
    answered(capsys, path)
    answered(capsys, path, path)
    path.unlink()


@ANY
@given(
    st.integers(2, 8),
    st.sampled_from(["time", "tenure", "duration_days", "T", "futime", "months"]),
    st.sampled_from(["event", "churned", "status", "died", "E", "censored", "Churn"]),
    st.sampled_from([None, "censoring_time", "max_duration", "c_star"]),
    st.sampled_from([None, "id", "customer_id", "PatientID"]),
    st.sampled_from(["{}", "surv_{}", "month_{}", "p{}", "risk {} days", "cox_{}", "net:{}", "x{}"]),
    st.booleans(),
    st.integers(0, 2**32 - 1),
)
def test_whatever_is_proposed_without_a_question_runs(
    capsys, tmp_path, n, time, event, end, name, pattern, rises, seed
):
    rng = np.random.default_rng(seed)
    times = rng.integers(1, 100, n)
    frame = {time: times, event: rng.integers(0, 2, n)} | ({} if name is None else {name: [f"k{k}" for k in range(n)]})
    frame |= {} if end is None else {end: times + np.where(frame[event] == 1, rng.integers(0, 9, n), 0)}
    survival = np.sort(rng.uniform(size=(n, 3)).round(rng.integers(1, 4)), axis=1)[:, :: 1 if rises else -1]
    frame |= {pattern.format(k): survival[:, j] for j, k in enumerate((10, 40, 70))}
    (path,) = csv(tmp_path, "all.csv", frame)
    code, out, _ = run(capsys, "formats", path, "--json")
    told = json.loads(out) if code == 0 else {"sure": False}
    if told["sure"] and not {"OUTCOMES", "PREDICTIONS"} & set(told["command"]):
        code, _, err = run(capsys, *told["command"][1:])
        assert code == 0, (told["command"], err, path.read_text())


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_mangled_files_get_an_answer(capsys, tmp_path, kind):
    for seed in range(60):
        rng = np.random.default_rng([seed, kind == "csv"])
        files = mangling.write(tmp_path, kind, ids=bool(rng.integers(2)))
        spoilt = files[rng.integers(2)]
        spoilt.write_bytes(mangling.mangle(spoilt.read_bytes(), rng))
        answered(capsys, *files)
        assert sorted(tmp_path.iterdir()) == sorted(files)


@pytest.mark.skipif(sys.platform == "win32", reason="links and pipes are those of POSIX")
def test_odd_paths_are_one_line(capsys, tmp_path):
    (tmp_path / "loop.csv").symlink_to(tmp_path / "loop.csv")
    (tmp_path / "device.csv").symlink_to("/dev/zero")
    (tmp_path / "empty").mkdir()
    (tmp_path / "x.txt").write_text("a")
    for name in ("loop.csv", "device.csv", "empty", "x.txt", "none.csv", "a" * 300 + ".csv"):
        assert answered(capsys, tmp_path / name) == 2


def test_of_a_small_file_that_would_become_large_little_is_read(capsys, tmp_path):
    word = "x" * (1 << 20)
    table = pa.table({"id": pa.array([word] * 200).dictionary_encode().cast(pa.string()), "time": np.arange(200.0)})
    pq.write_table(table, tmp_path / "y.parquet", compression="zstd")
    assert (tmp_path / "y.parquet").stat().st_size < 1 << 20
    assert sample(tmp_path / "y.parquet").table.nbytes < 1 << 27
    assert answered(capsys, tmp_path / "y.parquet") == 2


def test_weeks_taken_for_days_are_asked_about(tmp_path):
    rng = np.random.default_rng(1)
    days = rng.integers(30, 700, 60)
    outcomes = csv(tmp_path, "y.csv", pd.DataFrame({"id": range(60), "time": days, "event": rng.random(60) < 0.5}))
    weeks = {f"s_{week}": np.full(60, 1 - week / 200) for week in (13, 26, 52, 78)}
    predictions = csv(tmp_path, "net.csv", pd.DataFrame({"id": range(60), **weeks}))
    asked = {doubt.about: doubt.text for doubt in propose([*outcomes, *predictions]).questions}
    assert "reach up to 78, and follow-up up to 6" in asked["--predictions-unit"]

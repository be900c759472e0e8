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
LAYOUTS = {}


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
        ids=[f"C{k:04}" for k in range(N)], start=pd.Series(start), last=pd.Series(last), event=event, days=days,
        end=end, date=dates, age=rng.integers(20, 80, N), rng=rng,
        survival=lambda times: np.exp(-np.outer(risk, times)),
    )  # fmt: skip


def layout(expected, *, asks=(), command="score", sure=None):
    """Register a layout: which options are right, and which of them must be in question."""

    def register(make):
        wanted = SimpleNamespace(options=expected, asks=set(asks), command=command, sure=not asks)
        LAYOUTS[make.__name__] = (make, wanted)
        return make

    return register


def csv(folder, name, frame, **how):
    path = folder / name
    frame.to_csv(path, **{"index": False, **how})
    return [path]


def days_of(dates, origin="1970-01-01"):
    return (dates - pd.Timestamp(origin)).dt.days.astype("Int64")


def decimal(dates):
    begin = pd.to_datetime(dates.dt.year.astype("Int64").astype(str) + "-01-01", errors="coerce")
    return (dates.dt.year + (dates - begin).dt.days / (365 + dates.dt.is_leap_year)).round(4)


# Outcomes in dates


@layout({"start": "signup_date", "event-date": "cancel_date", "cutoff": "exported_at", "id": "customer_id"})
def subscription_export(folder, y):
    frame = {"customer_id": y.ids, "plan": "basic", "signup_date": y.start, "cancel_date": y.date, "mrr": y.age / 7}
    return csv(folder, "subscriptions.csv", pd.DataFrame({**frame, "exported_at": CUTOFF}))


@layout({"start": "start_date", "end": "end_date", "event": "churned", "cutoff": "2017-01-29", "id": "account_id"},
        asks=["--cutoff"])  # fmt: skip
def churn_flag_and_end_date(folder, y):
    frame = {"account_id": range(100, 100 + N), "region": "EU", "start_date": y.start, "end_date": y.last}
    return csv(folder, "accounts.csv", pd.DataFrame({**frame, "churned": y.event.astype(int)}))


@layout({"start": "dt_enrol", "event-date": "dt_death", "last-seen": "dt_lastfu", "cutoff": "2017-01-29",
         "id": "record_id"}, asks=["--cutoff"])  # fmt: skip
def redcap_export(folder, y):
    frame = {"record_id": range(1, N + 1), "redcap_event_name": "baseline_arm_1", "dt_enrol": y.start, "sex": y.age % 2,
             "dt_death": y.date, "dt_lastfu": y.last, "status": y.event.astype(int)}  # fmt: skip
    return csv(folder, "DATA_LABELS.csv", pd.DataFrame(frame))


@layout({"start": "ENROLDT", "event-date": "DEATHDT", "last-seen": "LASTFUDT", "cutoff": "2017-01-29", "id": "SUBJID",
         "date-format": "%d%b%Y"}, asks=["--cutoff"])  # fmt: skip
def sas_dates(folder, y):
    def sas(dates):
        return dates.dt.strftime("%d%b%Y").str.upper()

    frame = {"SUBJID": range(1001, 1001 + N), "ARM": "A", "ENROLDT": sas(y.start), "DEATHDT": sas(y.date)}
    return csv(folder, "adsl.csv", pd.DataFrame({**frame, "LASTFUDT": sas(y.last)}))


@layout({"start": "Vertragsbeginn", "event-date": "Kündigung", "cutoff": "Stichtag", "id": "Kundennummer",
         "date-format": "%d.%m.%Y"})  # fmt: skip
def german_export(folder, y):
    def german(dates):
        return dates.dt.strftime("%d.%m.%Y")

    frame = {"Kundennummer": y.ids, "Vertragsbeginn": german(y.start), "Kündigung": german(y.date), "Umsatz": y.age / 8}
    return csv(folder, "kunden.csv", pd.DataFrame({**frame, "Stichtag": "29.01.2017"}), sep=";", decimal=",")


@layout({"start": "entry", "end": "exit", "event": "status", "date-format": "decimal-year", "cutoff": "2017.0767"},
        asks=["--cutoff"])  # fmt: skip
def decimal_years(folder, y):
    frame = {"id": range(N), "entry": decimal(y.start), "exit": decimal(y.last), "status": y.event.astype(int)}
    return csv(folder, "cohort.csv", pd.DataFrame(frame))


@layout({"start": "start_day", "end": "end_day", "origin": "1970-01-01", "cutoff": "2017-01-29"},
        asks=["--cutoff"])  # fmt: skip
def day_counts(folder, y):
    frame = {"id": range(N), "start_day": days_of(y.start), "end_day": days_of(y.last), "event": y.event.astype(int)}
    return csv(folder, "cohort.csv", pd.DataFrame(frame))


@layout({"start": "created_at", "event-date": "churned_at", "cutoff": "snapshot_ts", "id": "user_id",
         "date-format": "epoch-milliseconds"})  # fmt: skip
def epoch_milliseconds(folder, y):
    frame = {"user_id": y.ids, "created_at": days_of(y.start) * 86_400_000, "churned_at": days_of(y.date) * 86_400_000}
    table = pd.DataFrame({**frame, "snapshot_ts": (CUTOFF - pd.Timestamp("1970-01-01")).days * 86_400_000})
    table.to_parquet(folder / "users.parquet")
    return [folder / "users.parquet"]


@layout({"start": "created", "event-date": "cancelled", "cutoff": "2017-01-29", "id": "user_id",
         "date-format": "epoch-seconds"}, asks=["--cutoff"])  # fmt: skip
def epoch_seconds(folder, y):
    frame = {"user_id": y.ids, "created": days_of(y.start) * 86_400, "cancelled": days_of(y.date) * 86_400}
    table = pd.DataFrame(frame)
    table.loc[0, "cancelled"] = int(CUTOFF.timestamp())
    return csv(folder, "users.csv", table)


@layout({"start": "start_date", "cutoff": "data_cutoff", "id": "patient_id",
         "date-format": "%d/%m/%Y"}, asks=["--date-format"])  # fmt: skip
def dates_of_which_the_month_is_unknown(folder, y):
    first = pd.Series(pd.to_datetime(y.start.dt.strftime("%Y-%m-05")))
    event = first.where(y.event) + pd.to_timedelta(1, "D")
    frame = {
        "patient_id": y.ids,
        "start_date": first.dt.strftime("%d/%m/%Y"),
        "event_date": event.dt.strftime("%d/%m/%Y"),
    }
    return csv(folder, "patients.csv", pd.DataFrame({**frame, "data_cutoff": "01/02/2017"}))


@layout({"start": "hire_date", "end": "exit_date", "reason": "exit_reason", "event-reasons": "cancelled,death",
         "censored-reasons": "still employed", "cutoff": "2017-01-29", "id": "employee_id"},
        asks=["--cutoff", "--event-reasons"])  # fmt: skip
def reasons_of_leaving(folder, y):
    why = np.where(y.event, np.where(y.age > 40, "cancelled", "death"), "still employed")
    frame = {"employee_id": y.ids, "hire_date": y.start, "exit_date": y.last, "exit_reason": why}
    return csv(folder, "staff.csv", pd.DataFrame(frame))


@layout({"start": "opened", "end": "closed", "reason": "close_reason", "event-reasons": 'default,"default, 90 days"',
         "competing-reasons": "repaid", "censored-reasons": "open", "cutoff": "2017-01-29",
         "id": "loan_id"}, asks=["--cutoff", "--event-reasons"])  # fmt: skip
def reasons_of_closing_loans(folder, y):
    ended = np.where(y.age > 40, "repaid", "open")
    why = np.where(y.event, np.where(y.age > 60, "default", "default, 90 days"), ended)
    frame = {"loan_id": y.ids, "opened": y.start, "closed": y.last, "close_reason": why}
    return csv(folder, "loans.csv", pd.DataFrame(frame))


# Outcomes in times


@layout({"time": "tenure", "event": "Churn", "id": "customerID"})
def telco(folder, y):
    frame = {"customerID": y.ids, "gender": "Female", "SeniorCitizen": y.age % 2, "tenure": y.days // 30,
             "Partner": "Yes", "PhoneService": np.where(y.age > 50, "Yes", "No"), "MonthlyCharges": y.age / 3,
             "TotalCharges": y.age * 3.7, "Churn": np.where(y.event, "Yes", "No")}  # fmt: skip
    return csv(folder, "WA_Fn-UseC_-Telco-Customer-Churn.csv", pd.DataFrame(frame))


@layout({"reason": "status", "event-reasons": "2", "censored-reasons": "1"}, asks=["--event-reasons"])
def lung_of_r(folder, y):
    frame = {"inst": 3, "time": y.days, "status": 1 + y.event, "age": y.age, "sex": 1 + y.age % 2, "ph.ecog": y.age % 3}
    return csv(
        folder, "lung.csv", pd.DataFrame({**frame, "meal.cal": np.where(y.age > 40, 1175.0, np.nan)}), na_rep="NA"
    )


@layout({"event": "status"})
def veteran_of_r(folder, y):
    frame = {"trt": 1 + y.age % 2, "celltype": "squamous", "time": y.days, "status": y.event.astype(int),
             "karno": y.age, "diagtime": y.age % 7, "age": y.age, "prior": 10 * (y.age % 2)}  # fmt: skip
    return csv(folder, "veteran.csv", pd.DataFrame(frame))


@layout({"event": "status", "cause": "1"}, asks=["--event", "--cause"])
def pbc_of_r(folder, y):
    status = np.where(y.event, 1 + (y.age > 30), 0)
    frame = {"id": range(1, N + 1), "time": y.days, "status": status, "trt": 1 + y.age % 2, "age": y.age + 0.7,
             "sex": "f", "ascites": y.age % 2, "bili": y.age / 10, "stage": 1 + y.age % 4}  # fmt: skip
    return csv(folder, "pbc.csv", pd.DataFrame(frame))


@layout({"event": "status", "groups": "id", "by-order": True}, asks=["--groups"])
def colon_of_r(folder, y):
    frame = pd.DataFrame({"id": range(1, N + 1), "study": 1, "rx": "Obs", "sex": y.age % 2, "age": y.age,
                          "status": y.event.astype(int), "time": y.days, "node4": y.age % 2})  # fmt: skip
    twice = pd.concat([frame.assign(etype=2), frame.assign(etype=1)]).sort_values("id")
    return csv(folder, "colon.csv", twice)


@layout({"time": "week", "event": "arrest"})
def rossi_of_lifelines(folder, y):
    frame = {
        "week": y.days // 7 + 1,
        "arrest": y.event.astype(int),
        "fin": y.age % 2,
        "age": y.age,
        "race": 1,
        "prio": 3,
    }
    return csv(folder, "rossi.csv", pd.DataFrame(frame))


@layout({"time": "T", "event": "E"})
def waltons_of_lifelines(folder, y):
    frame = {"T": y.days.astype(float), "E": y.event.astype(int), "group": "miR-137"}
    return csv(folder, "waltons.csv", pd.DataFrame(frame), index=True)


@layout({"time": "_t", "event": "_d"})
def stata_stset(folder, y):
    frame = {"age": y.age, "_st": 1, "_d": y.event.astype(int), "_t": y.days, "_t0": 0}
    return csv(folder, "stset.csv", pd.DataFrame(frame))


@layout({"time": "OS_MONTHS", "reason": "OS_STATUS", "event-reasons": "1:DECEASED",
         "censored-reasons": "0:LIVING", "id": "PATIENT_ID"},
        asks=["--event-reasons"])  # fmt: skip
def cbioportal(folder, y):
    frame = {"PATIENT_ID": y.ids, "OS_STATUS": np.where(y.event, "1:DECEASED", "0:LIVING"), "OS_MONTHS": y.days / 30.4}
    return csv(folder, "data_clinical_patient.tsv", pd.DataFrame(frame), sep="\t")


@layout(
    {"time": "duration", "reason": "censored", "event-reasons": "0", "censored-reasons": "1"}, asks=["--event-reasons"]
)
def flag_of_being_censored(folder, y):
    frame = {"id": range(N), "duration": y.days, "censored": 1 - y.event.astype(int)}
    return csv(folder, "units.csv", pd.DataFrame(frame))


@layout({"time": "duration", "event": "churned", "censoring-time": "max_duration", "id": "customer"})
def known_censoring_times(folder, y):
    frame = {"customer": y.ids, "duration": y.days, "churned": y.event, "max_duration": y.end}
    pd.DataFrame(frame).to_parquet(folder / "churn.parquet")
    return [folder / "churn.parquet"]


# Predictions


def wide(y, times, name="{:g}", values=lambda survival: survival):
    return pd.DataFrame(values(y.survival(np.asarray(times))), columns=[name.format(time) for time in times])


@layout({})
def wide_survival(folder, y):
    return csv(folder, "net.csv", wide(y, [30, 60, 90, 365]).assign(id=y.ids))


@layout({"columns": "p{time}", "predicts": "event", "percent": True, "id": "customer_id"})
def wide_event_probabilities_in_percent(folder, y):
    frame = wide(y, [30, 90, 365], "p{:g}", lambda survival: (100 - 100 * survival).round(2))
    frame.insert(0, "customer_id", y.ids)
    return csv(folder, "scores.csv", frame)


@layout({"transposed": True})
def transposed_by_lifelines(folder, y):
    turned = wide(y, [1.0, 8.0, 30.0, 90.0]).T
    turned.index = turned.index.astype(float)
    return csv(folder, "cph.csv", turned, index=True)


@layout({})
def unique_event_times_of_scikit_survival(folder, y):
    return csv(folder, "rsf.csv", wide(y, [7.0, 8.5, 11.0, 384.0], "{:.1f}"))


@layout({})
def long_form(folder, y):
    frame = wide(y, [30, 60, 90]).assign(id=y.ids).melt(id_vars="id", var_name="time", value_name="survival")
    return csv(folder, "long.csv", frame.astype({"time": float}))


@layout({"columns": "{model}_{time}", "id": "patient_id"}, command="compare")
def two_models_in_one_file(folder, y):
    both = pd.concat([wide(y, [90, 180], "cox_{:g}"), wide(y, [90, 180], "net_{:g}", lambda one: one**1.1)], axis=1)
    return csv(folder, "models.csv", both.assign(patient_id=y.ids))


@layout({"columns": "surv_{time}y", "predictions-unit": "year", "unit": "D"}, asks=["--unit"])
def years_in_names(folder, y):
    return csv(folder, "cox.csv", wide(y, [1, 2], "surv_{:g}y").assign(id=y.ids))


# Both


@layout({"start": "signup_date", "event-date": "cancel_date", "cutoff": "exported_at", "id": "customer_id",
         "columns": "month_{time}", "predicts": "event", "predictions-unit": "month"})  # fmt: skip
def export_and_classifier_by_month(folder, y):
    months = np.arange(1, 25)
    risk = wide(y, months, "month_{:g}", lambda survival: 1 - y.survival(months * 30.4375))
    path = csv(folder, "churn_model.csv", risk.assign(customer_id=y.ids).sample(frac=1, random_state=1))
    return path + subscription_export(folder, y)


@layout({"time": "tenure_months", "event": "churn", "columns": "month_{time}", "id": "customer_id"})
def both_in_months(folder, y):
    frame = pd.DataFrame({"customer_id": y.ids, "tenure_months": y.days / 30.4375, "churn": y.event.astype(int)})
    curves = wide(y, np.arange(1, 13), "month_{:g}", lambda _: y.survival(np.arange(1, 13) * 30.4375))
    return csv(folder, "customers.csv", frame) + csv(folder, "net.csv", curves.assign(customer_id=y.ids))


@layout({"columns": "surv_{time}", "id": "patient"})
def covariates_beside(folder, y):
    frame = pd.DataFrame({"patient": y.ids, "time": y.days, "event": y.event.astype(int), "censoring_time": y.end})
    for k in range(1, 6):
        frame[f"x{k}"] = y.rng.uniform(size=N)
    return csv(folder, "all.csv", pd.concat([frame, wide(y, [90, 365], "surv_{:g}")], axis=1))


@layout({})
def index_that_pandas_wrote(folder, y):
    frame = pd.DataFrame({"time": y.days, "event": y.event.astype(int), "censoring_time": y.end})
    both = pd.concat([frame, wide(y, [90, 180, 365])], axis=1)
    return csv(folder, "all.csv", both, index=True)


@layout({"id": "customer_id"}, command="compare")
def predictions_in_two_files_of_different_forms(folder, y):
    frame = pd.DataFrame({"customer_id": y.ids, "tenure_days": y.days, "churned": y.event.astype(int)})
    frame = frame.rename(columns={"tenure_days": "time", "churned": "event"}).assign(censoring_time=y.end)
    risk = wide(y, [90, 180, 365], "risk_{:g}", lambda survival: 1 - survival).assign(customer_id=y.ids)
    curves = wide(y, [90, 180, 365]).assign(customer_id=y.ids)
    return csv(folder, "y.csv", frame) + csv(folder, "logit.csv", risk) + csv(folder, "net.csv", curves)


@layout({"id": "customer_id"}, command="compare")
def predictions_beside_outcomes_and_in_another_file(folder, y):
    frame = pd.DataFrame({"customer_id": y.ids, "time": y.days, "event": y.event.astype(int), "censoring_time": y.end})
    both = pd.concat([frame, wide(y, [90, 180, 365])], axis=1)
    other = wide(y, [90, 180, 365], values=lambda survival: survival**2).assign(customer_id=y.ids)
    return csv(folder, "old.csv", both) + csv(folder, "new.csv", other)


@layout({"id": "customer_id"}, command="evaluate")
def output_of_spark(folder, y):
    frame = pd.DataFrame({"customer_id": y.ids, "time": y.days, "event": y.event.astype(int), "censoring_time": y.end})
    both = pd.concat([frame, wide(y, [90, 180, 365])], axis=1)
    spark = folder / "scored.parquet"
    spark.mkdir()
    (spark / "_SUCCESS").write_text("")
    for part in range(4):
        both[part::4].to_parquet(spark / f"part-0000{part}-8f2c-c000.snappy.parquet")
    return [spark]


@layout({"columns": "S_{time}"}, asks=["reading"])
def months_that_nothing_calls_so(folder, y):
    frame = pd.DataFrame({"time": y.days, "event": y.event.astype(int), "censoring_time": y.end})
    curves = wide(y, [1, 2, 6, 12], "S_{:g}", lambda _: y.survival(np.array([1, 2, 6, 12]) * 30.4375))
    return csv(folder, "y.csv", frame) + csv(folder, "net.csv", curves)


@layout({}, asks=["--id"])
def files_that_call_ids_differently(folder, y):
    frame = pd.DataFrame({"customer_id": y.ids, "time": y.days, "event": y.event.astype(int), "censoring_time": y.end})
    return csv(folder, "y.csv", frame) + csv(folder, "net.csv", wide(y, [90, 365]).assign(id=y.ids))


@layout({"transposed": True}, asks=["--id"])
def names_of_individuals_without_ids_of_outcomes(folder, y):
    frame = pd.DataFrame({"time": y.days, "event": y.event.astype(int), "censoring_time": y.end})
    turned = wide(y, [90.0, 180, 365]).T.set_axis(y.ids, axis=1)
    return csv(folder, "y.csv", frame) + csv(folder, "cph.csv", turned, index=True)


def is_right(proposal, wanted):
    return (
        proposal.options == wanted.options
        and proposal.command[1] == wanted.command
        and wanted.asks <= {doubt.about for doubt in proposal.questions}
        and proposal.sure == wanted.sure
    )


def test_proposals_are_right_or_have_a_question_mark(tmp_path, truth):
    right, wrong = [], []
    for name, (make, wanted) in LAYOUTS.items():
        folder = tmp_path / name
        folder.mkdir()
        try:
            proposal = propose(make(folder, truth))
        except ss.InputError as error:
            print(error)
            wrong.append(name)
            continue
        (right if is_right(proposal, wanted) else wrong).append(name)
        if name in wrong:
            print(name, proposal.options, [f"{doubt.about}: {doubt.text}" for doubt in proposal.questions])
            assert not proposal.sure, name
        assert proposal.sure or wanted.asks or name in wrong, name
    assert len(LAYOUTS) >= 20
    print(len(right), len(LAYOUTS), wrong)
    assert len(right) >= 0.9 * len(LAYOUTS), wrong


# Tables that are easily misread: whatever is proposed must be the one right reading, or in question


TRAPS = {}


def trap(right=None):
    """Register a table, and the only options that may be proposed for it without a question mark."""

    def register(make):
        TRAPS[make.__name__] = (make, right)
        return make

    return register


@trap()
def status_of_customers_where_one_is_active(folder, y):
    frame = {"customer_id": y.ids, "tenure": y.days, "status": 1 - y.event.astype(int)}
    return csv(folder, "customers.csv", pd.DataFrame(frame))


@trap()
def active_customers(folder, y):
    return csv(folder, "c.csv", pd.DataFrame({"user": y.ids, "tenure": y.days, "is_active": ~y.event}))


@trap({"time": "tenure", "event": "churn", "id": "customer_id"})
def visits_in_windows(folder, y):
    frame = pd.DataFrame({"customer_id": y.ids, "tenure": y.days, "churn": y.event.astype(int)})
    for k, window in enumerate((30, 60, 90)):
        frame[f"visits_{window}d"] = y.age % 5 + k
    return csv(folder, "features.csv", frame)


@trap()
def shares_in_windows(folder, y):
    frame = pd.DataFrame({"customer_id": y.ids, "tenure": y.days, "churn": y.event.astype(int)})
    for k, window in enumerate((30, 60, 90)):
        frame[f"usage_{window}d"] = (y.age + k) / 100
    return csv(folder, "features.csv", frame)


@trap()
def table_of_a_kaplan_meier_curve(folder, y):
    survival = np.linspace(1, 0.2, 30)
    frame = {"time": np.arange(30), "survival": survival, "lower": survival - 0.1, "upper": survival * 0.99}
    return csv(folder, "km.csv", pd.DataFrame(frame))


@trap()
def rates_by_calendar_year(folder, y):
    frame = pd.DataFrame({"id": y.ids, **{str(2010 + k): (y.age + k) / 100 for k in range(5)}})
    return csv(folder, "rates.csv", frame)


@trap()
def answers_from_one_to_five(folder, y):
    return csv(folder, "answers.csv", pd.DataFrame({str(k): y.rng.integers(1, 6, N) for k in range(1, 6)}))


@trap()
def positions_instead_of_times(folder, y):
    curves = pd.DataFrame(y.survival(np.array([30, 60, 90, 120])))
    return csv(folder, "rsf.csv", curves)


@trap()
def recurrence_and_death(folder, y):
    frame = {"id": y.ids, "time": y.days, "death": y.event.astype(int), "recurrence": y.age % 2}
    return csv(folder, "two.csv", pd.DataFrame(frame))


@trap()
def two_durations(folder, y):
    frame = {"id": y.ids, "duration": y.age + 2, "tenure": y.days, "churn": y.event.astype(int)}
    return csv(folder, "calls.csv", pd.DataFrame(frame))


@trap()
def cens_that_is_one_for_events(folder, y):
    frame = {"horTh": "no", "age": y.age, "time": y.days, "cens": y.event.astype(int)}
    return csv(folder, "GBSG2.csv", pd.DataFrame(frame))


@trap()
def ends_of_which_nothing_says_what_they_are(folder, y):
    frame = {"id": y.ids, "start_date": y.start, "end_date": y.date, "cutoff_date": CUTOFF}
    return csv(folder, "contracts.csv", pd.DataFrame(frame))


@trap()
def flag_that_contradicts_the_dates(folder, y):
    frame = {"id": y.ids, "start": y.start, "event_date": y.date, "event": (~y.event).astype(int), "cutoff": CUTOFF}
    return csv(folder, "contradiction.csv", pd.DataFrame(frame))


@trap()
def events_after_the_export(folder, y):
    frame = {"id": y.ids, "start": y.start, "event_date": y.date, "report_date": "2016-01-01"}
    return csv(folder, "early.csv", pd.DataFrame(frame))


@trap()
def cancelled_by_whom(folder, y):
    status = np.where(y.event, np.where(y.age > 50, "Cancelled", "Upgraded"), "Active")
    frame = {"id": y.ids, "start_date": y.start, "end_date": y.last, "status": status, "exported_at": CUTOFF}
    return csv(folder, "status.csv", pd.DataFrame(frame))


@trap()
def intervals_of_the_counting_process(folder, y):
    frame = pd.DataFrame({"id": y.ids, "start": 3, "time": y.days + 4, "event": y.event.astype(int)})
    return csv(folder, "heart.csv", frame)


@trap()
def customers_who_have_not_logged_in_lately(folder, y):
    frame = {"id": y.ids, "signup_date": y.start, "cancel_date": y.date, "last_login": y.last - pd.to_timedelta(9, "D")}
    return csv(folder, "logins.csv", pd.DataFrame({**frame, "exported_at": CUTOFF}))


@trap()
def flag_the_other_way_round(folder, y):
    frame = {"id": y.ids, "time": y.days, "event": (~y.event).astype(int), "censoring_time": y.end}
    return csv(folder, "turned.csv", pd.DataFrame(frame))


@trap()
def paid_until(folder, y):
    frame = {"id": y.ids, "start_date": y.start, "end_date": y.start + pd.to_timedelta(9, "D"), "cutoff": CUTOFF}
    return csv(folder, "paid.csv", pd.DataFrame({**frame, "churned": y.event.astype(int)}))


@trap()
def several_beginnings(folder, y):
    frame = {"id": y.ids, "diagnosis_date": y.start, "surgery_date": y.start + pd.to_timedelta(9, "D")}
    return csv(folder, "surgery.csv", pd.DataFrame({**frame, "death_date": y.date, "cutoff": CUTOFF}))


@trap({"time": "Tenure", "event": "Exited", "id": "CustomerId"})
def bank_customers(folder, y):
    frame = {"RowNumber": range(N), "CustomerId": range(700, 700 + N), "Surname": "X", "CreditScore": y.age * 9,
             "Tenure": y.days // 365, "HasCrCard": y.age % 2, "IsActiveMember": y.age % 2,
             "EstimatedSalary": y.age * 7.7, "Exited": y.event.astype(int)}  # fmt: skip
    return csv(folder, "Churn_Modelling.csv", pd.DataFrame(frame))


@trap()
def members_of_kkbox(folder, y):
    def numbers(dates):
        return dates.dt.strftime("%Y%m%d").astype(int)

    frame = {"msno": y.ids, "registration_init_time": numbers(y.start), "is_churn": y.event.astype(int)}
    return csv(folder, "train.csv", pd.DataFrame({**frame, "membership_expire_date": numbers(y.last)}))


@trap({"columns": "churn_prob_{time}", "predicts": "event"})
def one_time(folder, y):
    return csv(folder, "scores.csv", pd.DataFrame({"id": y.ids, "churn_prob_90": 1 - y.survival([90])[:, 0]}))


@trap()
def one_probability_without_a_time(folder, y):
    frame = {"id": y.ids, "churn_probability": 1 - y.survival([90])[:, 0], "score_1": y.survival([90])[:, 0]}
    return csv(folder, "scores.csv", pd.DataFrame(frame))


@trap()
def predictions_that_are_the_opposite_of_their_name(folder, y):
    return csv(folder, "net.csv", wide(y, [30, 60, 365], "surv_{:g}", lambda survival: 1 - survival).assign(id=y.ids))


@trap()
def outcomes_and_reversed_predictions_of_one_time(folder, y):
    frame = pd.DataFrame({"id": y.ids, "time": y.days, "event": y.event.astype(int), "censoring_time": y.end})
    return csv(folder, "y.csv", frame) + csv(folder, "net.csv", wide(y, [365], "p_{:g}").assign(id=y.ids))


@trap()
def ids_that_do_not_match(folder, y):
    frame = pd.DataFrame({"id": y.ids, "time": y.days, "event": y.event.astype(int), "censoring_time": y.end})
    return csv(folder, "y.csv", frame) + csv(folder, "net.csv", wide(y, [90, 365]).assign(id=[f"x{k}" for k in y.ids]))


@trap()
def rows_that_do_not_match(folder, y):
    frame = pd.DataFrame({"time": y.days, "event": y.event.astype(int), "censoring_time": y.end})
    return csv(folder, "y.csv", frame) + csv(folder, "net.csv", wide(y, [90, 365])[:-1])


@trap()
def flags_that_are_missing_for_some(folder, y):
    frame = pd.DataFrame({"id": y.ids, "time": y.days, "event": pd.Series(y.event.astype(int)).astype("Int64")})
    frame.loc[3, "event"] = pd.NA
    return csv(folder, "y.csv", frame)


@trap()
def patients_that_enter_late(folder, y):
    frame = pd.DataFrame({"_st": 1, "_d": y.event.astype(int), "_t": y.days + 5, "_t0": y.age % 4})
    return csv(folder, "late.csv", frame)


@pytest.mark.parametrize("name", TRAPS)
def test_nothing_is_misread_without_a_question_mark(tmp_path, truth, name):
    make, right = TRAPS[name]
    try:
        proposal = propose(make(tmp_path, truth))
    except ss.InputError:
        return
    assert not proposal.sure or proposal.options == right, proposal.options


# Tables that others have written


THEIRS = {
    "rossi.csv": {"time": "week", "event": "arrest"},
    "waltons_dataset.csv": {"time": "T", "event": "E"},
    "larynx.csv": {"event": "death"},
    "kidney_transplant.csv": {"event": "death"},
    "lung.csv": {"event": "status"},
    "dd.csv": {"time": "duration", "event": "observed"},
    "regression.csv": {"time": "T", "event": "E"},
    "g3.csv": {},
    # 1 is the event in the first two, and being censored in the third: the names do not tell
    "gbsg2.csv": None,
    "ACTG175.csv": None,
    "nh4.csv": None,
    "lymphoma.csv": None,
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


SURE = [name for name, (_, wanted) in LAYOUTS.items() if wanted.sure]


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


@pytest.mark.parametrize("name", SURE)
def test_what_is_sure_runs(capsys, tmp_path, truth, name):
    paths = LAYOUTS[name][0](tmp_path, truth)
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
    paths = redcap_export(tmp_path, truth)
    code, out, err = run(capsys, "formats", *paths)
    assert (code, err) == (0, "")
    assert "Command, with 1 question(s) (?):" in out
    assert "\n? --cutoff: the data cut-off is unknown; 2017-01-29 is the largest date seen" in out
    told = json.loads(run(capsys, "formats", *paths, "--json")[1])
    assert told["sure"] is False
    assert [one["about"] for one in told["questions"]] == ["--cutoff"]
    assert told["command"][:2] == ["survscore", "score"]
    assert told["command"][-2:] == ["--id", "record_id"]
    assert {one["column"] for one in told["files"][str(paths[0])]["columns"]} >= {"dt_death", "sex"}


def test_both_readings_are_told(tmp_path, truth):
    (doubt,) = propose(lung_of_r(tmp_path, truth)).questions
    assert "2 is the event, as assumed; otherwise say --event-reasons 1 --censored-reasons 2" in doubt.text


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


def test_many_columns_are_not_all_printed(capsys, tmp_path, truth):
    frame = pd.DataFrame({"time": truth.days, "event": truth.event.astype(int)})
    frame = pd.concat(
        [frame, pd.DataFrame({f"gene{chr(97 + k % 26)}{k}x": truth.age * 3 + k for k in range(300)})], axis=1
    )
    code, out, _ = run(capsys, "formats", *csv(tmp_path, "genes.csv", frame))
    assert code == 0
    assert len(out.splitlines()) < 80
    assert "and 242 more columns" in out


def test_standard_input(capsys, monkeypatch, tmp_path, truth):
    (path,) = telco(tmp_path, truth)
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


def test_files_with_long_lines(tmp_path):
    survival = np.sort(np.random.default_rng(1).uniform(size=(60, 5000)), axis=0)[::-1]
    pd.DataFrame(survival, index=np.arange(60.0)).to_csv(tmp_path / "cph.csv")
    assert (tmp_path / "cph.csv").stat().st_size > 4 << 20
    proposal = propose([tmp_path / "cph.csv"])
    assert proposal.sure
    assert proposal.options == {"transposed": True}


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


def test_thousands_are_no_decimals(tmp_path):
    (tmp_path / "y.csv").write_text("time;event\n1,000;1\n2,500;0\n")
    with pytest.raises(ss.InputError, match="must hold numbers, not text"):
        ss.io.read_outcomes(tmp_path / "y.csv")


@pytest.mark.parametrize("unit", ["epoch-seconds", "epoch-milliseconds"])
def test_dates_since_the_epoch(tmp_path, unit):
    day = 86_400 * (1000 if "milli" in unit else 1)
    (tmp_path / "y.csv").write_text(f"start,event_date\n{17167 * day},{17181 * day + day // 2}\n{17168 * day},\n")
    y = ss.io.read_outcomes(tmp_path / "y.csv", date_format=unit, cutoff="2017-01-31").outcomes
    np.testing.assert_allclose(y.time, [14.5, 29])
    (tmp_path / "y.csv").write_text(f"start,event_date\n{day * 10**6},\n{17168 * day},\n")
    with pytest.raises(ss.InputError, match="since 1970, within 290 years: 1 of 2"):
        ss.io.read_outcomes(tmp_path / "y.csv", date_format=unit, cutoff="2017-01-31")


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


@ANY
@given(st.lists(NAMES, min_size=1, max_size=6, unique=True), st.data())
def test_any_table_gets_an_answer(capsys, tmp_path, names, data):
    rows = data.draw(st.integers(1, 6))
    frame = pd.DataFrame({name: data.draw(st.lists(TEXTS, min_size=rows, max_size=rows)) for name in names})
    path = tmp_path / "any.csv"
    frame.to_csv(path, index=False)
    before = path.read_bytes()
    for options in ([], ["--json"]):
        answered(capsys, path, *options)
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == [path.name]


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
    (path,) = csv(tmp_path, "all.csv", pd.DataFrame(frame))
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

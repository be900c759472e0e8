"""KKBox: every rule by hand, all of them against the literal version, raw files that are not what they should be."""

import csv
import gzip
import os

import numpy as np
import pandas as pd
import pytest

import survscore as ss
from datasets import kkbox_oracle as oracle
from survscore.datasets.kkbox import prepare, synthesize, true_survival
from survscore.datasets.kkbox.prepared import split
from survscore.datasets.kkbox.raw import COLUMNS


def transaction(msno, made, expires, **changes):
    row = {
        "msno": msno, "payment_method_id": 41, "payment_plan_days": 30, "plan_list_price": 149,
        "actual_amount_paid": 149, "is_auto_renew": 1, "transaction_date": made, "membership_expire_date": expires,
        "is_cancel": 0,
    }  # fmt: skip
    return row | changes


def member(msno, **changes):
    return {
        "msno": msno, "city": 5, "bd": 30, "gender": "male", "registered_via": 7, "registration_init_time": 20150101,
    } | changes  # fmt: skip


#: Somebody whose rows are always kept, so that there is output.
ANCHOR = transaction("anchor", 20160101, 20160131)


def write(folder, transactions, members=(), labels=()):
    folder.mkdir(parents=True, exist_ok=True)
    contents = {"transactions": transactions, "members_v3": members or [member("nobody")],
                "train": labels or [{"msno": "nobody", "is_churn": 0}]}  # fmt: skip
    for name, rows in contents.items():
        with (folder / f"{name}.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, list(COLUMNS[name]))
            writer.writeheader()
            writer.writerows(rows)
    return folder


def prepared(tmp_path, transactions, members=(), labels=()):
    """Return the spells of customer "a", and the summary."""
    write(tmp_path / "raw", [*transactions, ANCHOR], members, labels)
    summary = prepare(tmp_path / "raw", tmp_path / "out.parquet")
    frame = pd.read_parquet(tmp_path / "out.parquet")
    return frame[frame.msno == "a"].to_dict("records"), summary


# Rules at their limits


@pytest.mark.parametrize(("expires", "event", "time"), [(20170129, True, 28.0), (20170130, False, 28.0)])
def test_expiry_on_the_last_churn_date_is_churn_and_a_day_later_not(tmp_path, expires, event, time):
    (row,), _ = prepared(tmp_path, [transaction("a", 20170101, expires)])
    assert (row["event"], row["time"]) == (event, time)


@pytest.mark.parametrize(("back", "n_spells"), [(20160301, 1), (20160302, 2)])
def test_a_gap_is_more_than_30_days(tmp_path, back, n_spells):
    # expires on 2016-01-31; 30 days later is 2016-03-01
    rows, _ = prepared(tmp_path, [transaction("a", 20160101, 20160131), transaction("a", back, 20160401)])
    assert len(rows) == n_spells
    if n_spells == 2:
        assert (rows[0]["time"], rows[0]["event"]) == (30.0, True)
        assert (rows[1]["n_prev_churns"], rows[1]["no_prev_churns"]) == (1, 0)
        assert rows[1]["log_days_between_subs"] == pytest.approx(np.log(31 + 1))


@pytest.mark.parametrize(
    ("bd", "age", "strange"),
    [(30, 29, 0), (0, 0, 1), (1000, 100, 1), (-50, 0, 1), (1, 0, 1), (101, 100, 1), (100, 99, 0)],
)
def test_age_is_that_at_the_start(tmp_path, bd, age, strange):
    (row,), _ = prepared(tmp_path, [transaction("a", 20160101, 20160131)], [member("a", bd=bd)])  # 1.16 years before
    assert (row["age_at_start"], row["strange_age"]) == (age, strange)


# All rules together


def random_raw(rng, n_customers=60):
    """Messy raw data: short spans, ties, absurd expiries, so that all rules meet."""
    transactions, members, labels = [], [], []
    day = np.datetime64("2016-09-01")

    def number(offset):
        return int(str(day + int(offset)).replace("-", ""))

    for i in range(n_customers):
        msno = f"c{i}"
        for _ in range(rng.integers(1, 8)):
            made = int(rng.integers(0, 181))
            expires = made + int(rng.choice([-20, -1, 0, 1, 7, 30, 31, 60]))
            transactions.append(
                transaction(
                    msno, number(made), number(expires), payment_method_id=int(rng.integers(30, 42)),
                    plan_list_price=int(rng.integers(0, 200)), is_cancel=int(rng.integers(0, 2)),
                )
            )  # fmt: skip
        if rng.random() < 0.8:
            registered = None if rng.random() < 0.2 else number(rng.integers(-300, 60))
            gender = rng.choice(["male", "female", ""])
            members.append(
                member(msno, bd=int(rng.integers(-20, 130)), registration_init_time=registered, gender=gender)
            )
        if rng.random() < 0.6:
            labels.append({"msno": msno, "is_churn": int(rng.integers(0, 2))})
    rng.shuffle(transactions)
    return transactions, members, labels


def test_every_rule_drops_some_of_these_spells():
    dropped = [oracle.prepare(*random_raw(np.random.default_rng(seed)))[1] for seed in range(12)]
    assert len({reason for reasons in dropped for reason in reasons}) == 5


@pytest.mark.parametrize("seed", range(12))
def test_sql_agrees_with_the_literal_version_row_by_row(tmp_path, seed):
    transactions, members, labels = random_raw(np.random.default_rng(seed))
    write(tmp_path, transactions, members, labels)
    summary = prepare(tmp_path, tmp_path / "out.parquet")
    expected, reasons = oracle.prepare(transactions, members, labels)
    got = pd.read_parquet(tmp_path / "out.parquet")
    key = ["msno", "n_prev_churns"]
    wanted = pd.DataFrame(expected).sort_values(key).reset_index(drop=True)
    got = got.sort_values(key).reset_index(drop=True)
    got["start_date"] = pd.to_datetime(got["start_date"]).dt.date
    assert len(wanted) > 20
    pd.testing.assert_frame_equal(got[wanted.columns], wanted, check_dtype=False, rtol=1e-12)
    told = {k.removeprefix("spells: "): v for k, v in summary.dropped.items() if k.startswith("spells: ")}
    assert len(told) == 5
    assert {reason: count for reason, count in told.items() if count} == reasons
    assert (summary.spells, summary.events) == (len(wanted), wanted.event.sum())


# Forms of the raw files


@pytest.fixture(scope="module")
def raw_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("raw")
    synthesize(folder, customers=3000, seed=1)
    return folder


@pytest.fixture(scope="module")
def frame(raw_folder, tmp_path_factory):
    """What is made of them."""
    out = tmp_path_factory.mktemp("prepared") / "out.parquet"
    prepare(raw_folder, out)
    return pd.read_parquet(out)


@pytest.mark.parametrize("form", ["gz", "7z"])
def test_packed_files_give_the_same(raw_folder, frame, tmp_path, form):
    for name in COLUMNS:
        source = raw_folder / f"{name}.csv"
        if form == "gz":
            with gzip.open(tmp_path / f"{name}.csv.gz", "wb") as file:
                file.write(source.read_bytes())
        else:
            py7zr = pytest.importorskip("py7zr")
            with py7zr.SevenZipFile(tmp_path / f"{name}.csv.7z", "w") as archive:
                archive.write(source, f"data/{name}.csv")
    prepare(tmp_path, tmp_path / "packed.parquet", memory="1GB")
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "packed.parquet"), frame)
    assert sorted(path.suffix for path in tmp_path.iterdir()) == sorted([f".{form}"] * 3 + [".parquet"])


def spoil(folder, name, change):
    path = folder / f"{name}.csv"
    lines = path.read_text().splitlines()
    change(lines)
    path.write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("transactions", lambda lines: lines.__setitem__(0, "a,b"), r"row 1: the columns must be msno,"),
        ("transactions", lambda lines: lines.__setitem__(2, lines[2].replace("2016", "2099", 1) + ",9"), "row 3"),
        ("transactions", lambda lines: lines.__setitem__(2, "a,41,30,149,149,1,20161345,20170101,0"),
         r"row 3: transaction_date is no date written yyyymmdd \(20161345\); 1 rows in all"),
        ("transactions", lambda lines: lines.__setitem__(2, "a,41,30,149,x,1,20160101,20170101,0"), "row 3"),
        ("transactions", lambda lines: lines.__setitem__(2, "a,41,30,149,,1,20160101,20170101,0"),
         "row 3: actual_amount_paid is missing"),
        ("transactions", lambda lines: lines.__setitem__(2, "a,41,30,149,-5,1,20160101,20170101,0"),
         r"row 3: actual_amount_paid is negative \(-5\)"),
        ("transactions", lambda lines: lines.__setitem__(2, "a,41,30,149,5,7,20160101,20170101,0"),
         r"row 3: is_auto_renew is neither 0 nor 1 \(7\)"),
        ("transactions", lambda lines: lines.__setitem__(2, "a,41,30,149,5,1,2016111,20170101,0"),
         r"row 3: transaction_date is no date written yyyymmdd \(2016111\)"),
        ("transactions", lambda lines: lines.__setitem__(2, " a,41,30,149,5,1,20160101,20170101,0"),
         "row 3: msno has spaces around it"),
        ("train", lambda lines: lines.append("z,5"), "row 3: is_churn is neither 0 nor 1"),
        ("transactions", lambda lines: lines.__setitem__(slice(1, None), []), "holds no rows"),
        ("members_v3", lambda lines: lines.append(lines[1]), "is there a second time"),
        ("train", lambda lines: lines.append(lines[1]), "train.csv, row .* is there a second time"),
        ("train", lambda lines: lines.clear(), "row 1: the columns must be msno,is_churn"),
    ],
)  # fmt: skip
def test_files_that_are_wrong_are_named_with_the_row(tmp_path, name, change, message):
    rows = [transaction("a", 20160101, 20160131), transaction("b", 20160105, 20160131), ANCHOR]
    write(tmp_path / "raw", rows)
    spoil(tmp_path / "raw", name, change)
    before = {path: path.read_bytes() for path in (tmp_path / "raw").iterdir()}
    with pytest.raises(ss.InputError, match=message) as caught:
        prepare(tmp_path / "raw", tmp_path / "out.parquet")
    assert "\n" not in str(caught.value)
    assert {path: path.read_bytes() for path in (tmp_path / "raw").iterdir()} == before
    assert [path.name for path in tmp_path.iterdir()] == ["raw"]  # nothing half-written


def test_missing_files_and_folders(tmp_path):
    with pytest.raises(ss.InputError, match="is not a folder"):
        prepare(tmp_path / "absent", tmp_path / "out.parquet")
    write(tmp_path / "raw", [ANCHOR])
    (tmp_path / "raw" / "train.csv").unlink()
    with pytest.raises(ss.InputError, match=r"holds no train.csv, .csv.gz or .csv.7z"):
        prepare(tmp_path / "raw", tmp_path / "out.parquet")
    with pytest.raises(ss.InputError, match="there is no folder"):
        prepare(write(tmp_path / "raw", [ANCHOR]), tmp_path / "absent" / "out.parquet")
    for memory in ("lots", "-4GB", "0GB", "4"):
        with pytest.raises(ss.InputError, match="memory must be a size such as 4GB"):
            prepare(tmp_path / "raw", tmp_path / "out.parquet", memory=memory)
    with pytest.raises(ss.InputError, match="no spell is left"):
        prepare(write(tmp_path / "raw", [transaction("a", 20170215, 20170315)]), tmp_path / "out.parquet")


@pytest.mark.parametrize("kind", ["truncated gz", "not gz", "not 7z", "truncated 7z", "7z of another file"])
def test_archives_that_are_wrong(raw_folder, tmp_path, kind):
    for name in ("members_v3", "train"):
        os.link(raw_folder / f"{name}.csv", tmp_path / f"{name}.csv")
    data = (raw_folder / "transactions.csv").read_bytes()
    if kind.endswith("gz"):
        path = tmp_path / "transactions.csv.gz"
        packed = gzip.compress(data)
        path.write_bytes(packed[: len(packed) // 2] if kind == "truncated gz" else b"plain text")
    else:
        py7zr = pytest.importorskip("py7zr")
        path = tmp_path / "transactions.csv.7z"
        with py7zr.SevenZipFile(path, "w") as archive:
            archive.write(raw_folder / "train.csv" if "another" in kind else raw_folder / "transactions.csv",
                          "train.csv" if "another" in kind else "transactions.csv")  # fmt: skip
        if kind == "truncated 7z":
            path.write_bytes(path.read_bytes()[:-200])
        elif kind == "not 7z":
            path.write_bytes(b"plain text")
    with pytest.raises(ss.InputError, match=r"transactions\.csv\.") as caught:
        prepare(tmp_path, tmp_path / "out.parquet")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "out.parquet").exists()
    assert not [entry for entry in tmp_path.iterdir() if entry.is_dir()]


def test_an_interrupt_leaves_nothing_behind(raw_folder, tmp_path):
    def interrupt(done, total, what):
        if done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prepare(raw_folder, tmp_path / "out.parquet", progress=interrupt)
    assert list(tmp_path.iterdir()) == []


# Synthetic raw files


def test_synthetic_files_have_the_form_of_the_real_ones(raw_folder):
    for name, columns in COLUMNS.items():
        frame = pd.read_csv(raw_folder / f"{name}.csv")
        assert list(frame.columns) == list(columns)
        assert frame.msno.str.len().eq(44).all()
    transactions = pd.read_csv(raw_folder / "transactions.csv")
    members = pd.read_csv(raw_folder / "members_v3.csv")
    assert 6 < len(transactions) / 3000 < 12
    assert 2.5 < len(members) / 3000 < 3.2
    assert members.msno.is_unique
    assert (transactions.membership_expire_date < transactions.transaction_date).any()
    assert transactions.duplicated(["msno", "transaction_date"]).any()
    assert not set(transactions.msno) <= set(members.msno)
    assert members.bd.min() < 0
    assert members.bd.max() > 100
    assert transactions.transaction_date.between(20150101, 20170228).all()


def test_the_same_seed_gives_the_same_files(raw_folder, tmp_path):
    synthesize(tmp_path / "same", customers=3000, seed=1)
    synthesize(tmp_path / "other", customers=3000, seed=2)
    for name in COLUMNS:
        same, other = ((tmp_path / kind / f"{name}.csv").read_bytes() for kind in ("same", "other"))
        assert same == (raw_folder / f"{name}.csv").read_bytes() != other


def test_prepared_durations_are_those_that_were_simulated(tmp_path):
    """The quirks change nothing: an event is where the truth put it, and its time a whole number of plans."""
    synthesize(tmp_path, customers=8000, seed=3)
    prepare(tmp_path, tmp_path / "out.parquet")
    frame, truth = (pd.read_parquet(tmp_path / name) for name in ("out.parquet", "truth.parquet"))
    both = frame.merge(truth, on=["msno", "n_prev_churns"])
    assert len(both) == len(frame)
    events = both[both.event]
    assert (events.time % events.plan_days == 0).all()
    # among those followed for a year, as many survive as the truth says; those dropped for their labels had survived
    times = np.array([60.0, 180.0])
    survival = true_survival(frame, truth, times).probabilities
    for j, t in enumerate(times):
        known = frame.censoring_time >= 400
        free = ~(frame.event & (frame.time <= t))[known]
        expected = survival[known, j]
        assert abs((free - expected).sum()) < 4 * np.sqrt((expected * (1 - expected)).sum())


def test_truth_of_other_files_is_refused(frame, tmp_path):
    synthesize(tmp_path / "other", customers=100, seed=9)
    with pytest.raises(ss.InputError, match="truth says nothing about"):
        true_survival(frame, pd.read_parquet(tmp_path / "other" / "truth.parquet"), [30])
    with pytest.raises(ss.InputError, match="customers must be a whole number"):
        synthesize(tmp_path, customers=0, seed=1)


# What comes after


def test_split_never_divides_a_customer(frame):
    assert not frame.isna().any().any()
    sizes = {"train": 1000, "validation": 200, "test": 1000}
    parts = split(frame, by="msno", sizes=sizes, seed=1)
    for name, size in sizes.items():
        assert size <= len(parts[name]) < size + 6
    customers = [set(part.msno) for part in parts.values()]
    assert not customers[0] & customers[1]
    assert not customers[0] & customers[2]
    assert not customers[1] & customers[2]
    again = split(frame, by="msno", sizes=sizes, seed=1)
    assert parts["test"].equals(again["test"])
    for bad, message in (
        ({"by": "customer"}, "no column 'customer'"),
        ({"sizes": {"train": 10**7}}, "add up to 10000000 rows"),
        ({"sizes": {"train": 0}}, "at least 1"),
        ({"sizes": {"train": 2.5}}, "whole number"),
        ({"sizes": {}}, "at least one part"),
        ({"sizes": {"train": 0.9, "test": 0.2}}, "add up to"),
        ({"seed": -1}, "seed must be a whole number"),
    ):
        with pytest.raises(ss.InputError, match=message):
            split(frame, **{"by": "msno", "sizes": sizes, "seed": 1} | bad)


def test_a_full_disk_and_too_little_memory_are_told(raw_folder, tmp_path, monkeypatch):
    import duckdb

    from survscore.datasets.kkbox import raw

    for error, expected, message in (
        (duckdb.IOException("IO Error: No space left on device"), OSError, "No space left"),
        (duckdb.OutOfMemoryException("Out of Memory Error"), ss.InputError, "memory=4GB is not enough"),
    ):
        monkeypatch.setattr(raw, "load", lambda *_, error=error: (_ for _ in ()).throw(error))
        with pytest.raises(expected, match=message):
            prepare(raw_folder, tmp_path / "out.parquet")
        assert list(tmp_path.iterdir()) == []

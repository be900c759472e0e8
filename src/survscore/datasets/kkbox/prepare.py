r"""From raw transactions to survival data, under the rules of the paper's study.

A customer's transactions, in the order of time, fall into *spells* of membership. A spell ends in churn if the next
transaction comes more than 30 days after its membership expired, if it is the customer's last and expired by the last
churn date, or if the training labels say so. All customers are followed up to the last churn date, so the censoring
time of a spell is that date minus its start, whether it ended in churn or not.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from survscore._utils.jobs import Progress, silent
from survscore._validation import InputError
from survscore.datasets.kkbox import raw
from survscore.io.files import replaceable, temporary_folder, written_whole
from survscore.io.tables import connect

LAST_CHURN_DATE = "2017-01-29"  # 30 days before the last transactions in the data
AGE_DATE = "2017-03-01"  # when members gave the ages that the file holds
GAP_DAYS = 30

_DAY = "date_diff('day', DATE '1970-01-01', strptime({}::VARCHAR, '%Y%m%d')::DATE)"
_LAST = f"date_diff('day', DATE '1970-01-01', DATE '{LAST_CHURN_DATE}')"
_AGE = f"date_diff('day', DATE '1970-01-01', DATE '{AGE_DATE}')"

# One customer's transactions in order: `place` is the file's order, which breaks ties on the same day.
_ORDERED = f"""
CREATE TABLE ordered AS
SELECT c.customer, t.rowid AS place, t.* EXCLUDE (msno, transaction_date, membership_expire_date),
       {_DAY.format("t.transaction_date")} AS made, {_DAY.format("t.membership_expire_date")} AS expires
FROM transactions t JOIN customers c USING (msno)
"""

# Rule 1 looks at all transactions, rule 2 drops those that expire before they were made, rules 3 to 5 look at the rest.
_SPELLED = f"""
CREATE TABLE spelled AS
WITH gaps AS (
    SELECT *, coalesce(lead(made) OVER by_time > expires + {GAP_DAYS}, false) AS gap
    FROM ordered WINDOW by_time AS (PARTITION BY customer ORDER BY made, place)
), valid AS (
    SELECT * FROM gaps WHERE expires >= made
)
SELECT *, lead(place) OVER by_time IS NULL AS is_last,
       coalesce(sum(gap::INTEGER) OVER (by_time ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0)::INTEGER AS spell
FROM valid WINDOW by_time AS (PARTITION BY customer ORDER BY made, place)
"""

# Rule 6: a spell's last transaction decides how it ended. Rule 8: its first day's last one tells the covariates.
_SPELLS = f"""
CREATE TABLE spells AS
WITH ends AS (
    SELECT customer, spell, min(made) AS start,
           arg_max(expires, made * {1 << 34} + place) AS expires,
           arg_max(made, made * {1 << 34} + place) AS ended,
           arg_max(gap, made * {1 << 34} + place) AS gap,
           arg_max(is_last, made * {1 << 34} + place) AS is_last,
           arg_min(struct_pack(payment_method_id, payment_plan_days, plan_list_price, actual_amount_paid,
                               is_auto_renew, is_cancel), made * {1 << 34} - place) AS first_day
    FROM spelled GROUP BY customer, spell
)
SELECT e.*, coalesce(e.is_last AND l.is_churn = 1, false) AS label,
       e.is_last AND e.ended <= {_LAST} AND e.expires <= {_LAST} AS final,
       coalesce(e.start - lag(e.expires) OVER (PARTITION BY e.customer ORDER BY e.spell), 0) AS days_between_subs
FROM ends e JOIN customers c USING (customer) LEFT JOIN train l USING (msno)
"""

# Rule 7: what is observed, with the reason where a spell is dropped.
_OBSERVED = f"""
CREATE TABLE observed AS
WITH followed AS (
    SELECT s.*, c.msno, m.* EXCLUDE (msno), (gap OR final OR label) AS churned, expires - start AS length,
           {_LAST} - start AS censoring_time,
           start - {_DAY.format("m.registration_init_time")} AS days_since_reg_init
    FROM spells s JOIN customers c USING (customer) LEFT JOIN members m USING (msno)
), censored AS (
    SELECT *, churned AND length <= censoring_time AS event,
           CASE WHEN churned AND length <= censoring_time THEN length ELSE censoring_time END AS time
    FROM followed
)
SELECT *, CASE
    WHEN label AND NOT gap AND NOT final AND length > censoring_time THEN 'churn known only from the labels, after C*'
    WHEN gap AND final AND label THEN 'churn by gap, final and by label at once'
    WHEN censoring_time <= 0 THEN 'starts on or after the last churn date'
    WHEN time <= 0 THEN 'no duration'
    WHEN days_since_reg_init < 0 THEN 'starts before the registration'
    END AS dropped
FROM censored
"""

# Rule 8: covariates known at the start.
_OUTPUT = f"""
SELECT msno, time::DOUBLE AS time, event, censoring_time::DOUBLE AS censoring_time,
       (DATE '1970-01-01' + start::INTEGER)::DATE AS start_date,
       spell AS n_prev_churns,
       ln(days_between_subs + 1.0) AS log_days_between_subs,
       ln(coalesce(days_since_reg_init, -1) + 2.0) AS log_days_since_reg_init,
       ln(first_day.payment_plan_days + 1.0) AS log_payment_plan_days,
       ln(first_day.plan_list_price + 1.0) AS log_plan_list_price,
       ln(first_day.actual_amount_paid + 1.0) AS log_actual_amount_paid,
       first_day.is_auto_renew AS is_auto_renew, first_day.is_cancel AS is_cancel,
       age AS age_at_start, (age <= 0 OR age >= 100)::INTEGER AS strange_age,
       (days_since_reg_init IS NULL)::INTEGER AS nan_days_since_reg_init,
       (spell = 0)::INTEGER AS no_prev_churns,
       coalesce(city::VARCHAR, 'missing') AS city,
       coalesce(nullif(gender, ''), 'missing') AS gender,
       coalesce(registered_via::VARCHAR, 'missing') AS registered_via,
       first_day.payment_method_id::VARCHAR AS payment_method_id
FROM (SELECT *, CASE WHEN bd IS NULL THEN -1  -- greatest and least pass over what is missing
                     ELSE greatest(0, least(100, round(bd - ({_AGE} - start) / 365.25)))::INTEGER END AS age
      FROM observed WHERE dropped IS NULL)
ORDER BY customer, spell
"""

_CUSTOMERS = """
CREATE TABLE customers AS SELECT row_number() OVER () AS customer, msno
FROM (SELECT msno, min(rowid) AS first FROM transactions GROUP BY msno ORDER BY first)
"""
_MEMBERS = "CREATE TABLE members AS SELECT m.* FROM members_v3 m SEMI JOIN customers USING (msno)"
# Each step in words, its statement, and the tables that are not needed after it.
_STEPS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("customers", _CUSTOMERS, ()),
    ("members of these customers", _MEMBERS, ()),
    ("order of transactions", _ORDERED, ("transactions", "members_v3")),
    ("gaps and spells", _SPELLED, ("ordered",)),
    ("one row per spell", _SPELLS, ()),
    ("what was observed", _OBSERVED, ("spelled",)),
)
_REASONS = re.findall(r"THEN '(.*)'", _OBSERVED)  # why a spell is dropped


@dataclass(frozen=True)
class Summary:
    """What went in, what was dropped and why, and what came out.

    Attributes
    ----------
    read : dict of str to int
        Rows of each raw file.
    dropped : dict of str to int
        Rows that each rule dropped: transactions first, then spells.
    noted : dict of str to int
        Spells that churned after C*, and are censored there; spells of customers who are not among the members.
    spells, customers, events : int
        In the output.
    censoring_time : tuple of float
        Smallest and largest.
    invariants : dict of str to bool
        What always holds of the output, as checked.
    """

    read: dict[str, int]
    dropped: dict[str, int]
    noted: dict[str, int]
    spells: int
    customers: int
    events: int
    censoring_time: tuple[float, float]
    invariants: dict[str, bool] = field(default_factory=dict)


def prepare(folder: str | Path, out: str | Path, *, memory: str = "4GB", progress: Progress | None = None) -> Summary:
    """Make survival data from Kaggle's raw KKBox files.

    Parameters
    ----------
    folder : path
        Holds ``transactions``, ``members_v3`` and ``train``, each as ``.csv``, ``.csv.gz`` or ``.csv.7z``. They are
        only read.
    out : path
        Of the Parquet file to write: `time`, `event`, `censoring_time`, the covariates, `msno` and `start_date`. A
        file that is there is replaced, but not a raw one.
    memory : str
        How much the database may use; beyond it spills to disk, beside `out`.
    progress : callable, optional
        Called with what is being done.

    Returns
    -------
    Summary
    """
    import duckdb

    target = Path(out)
    paths = raw.find(Path(folder))
    if not target.parent.is_dir():
        raise InputError(f"there is no folder {target.parent}")
    if replaceable(target) in [path.resolve() for path in raw.candidates(Path(folder))]:
        raise InputError(f"{target}: is a raw file, which is only read; write to another")
    if not re.fullmatch(r"(?=.*[1-9])\d*[.]?\d+ ?[KMGT]i?B", memory, flags=re.IGNORECASE):
        raise InputError(f"memory must be a size such as 4GB, not {memory!r}")
    tell = progress or silent
    with temporary_folder(target.parent) as scratch:
        try:
            database = connect(scratch / "work.duckdb", memory_limit=memory)
        except duckdb.Error as error:
            raise InputError(f"memory: {str(error).splitlines()[0]}") from None
        with database:
            # a progress bar of its own would write over ours
            database.execute(f"SET temp_directory = {_quoted(scratch)}; SET enable_progress_bar = false")
            try:
                return _interruptible(database, lambda: _run(database, paths, target, scratch, tell))
            except duckdb.OutOfMemoryException:
                raise InputError(f"memory={memory} is not enough, or the disk is full; give more") from None
            except duckdb.IOException as error:
                raise OSError(str(error).splitlines()[0]) from None


def _run(database: Any, paths: dict[str, Path], target: Path, scratch: Path, tell: Progress) -> Summary:
    total = len(paths) + len(_STEPS) + 1
    read: dict[str, int] = {}
    for done, (name, path) in enumerate(paths.items()):
        tell(done, total, f"reading {path.name}")
        read[name] = raw.load(database, name, path, scratch)
    for name in ("members_v3", "train"):
        twice = database.execute(
            f"SELECT msno, max(rowid) FROM {name} GROUP BY msno HAVING count(*) > 1 ORDER BY 2 LIMIT 1"
        ).fetchone()
        if twice:
            raise InputError(f"{paths[name]}, row {twice[1] + 2}: msno {twice[0]} is there a second time")
    dropped: dict[str, int] = {}
    for number, (what, statement, done_with) in enumerate(_STEPS):
        tell(len(paths) + number, total, what)
        database.execute(statement)
        if statement == _SPELLED:
            (kept,) = database.execute("SELECT count(*) FROM spelled").fetchone()
            dropped["transactions that expire before they were made"] = read["transactions"] - int(kept)
        for table in done_with:
            database.execute(f"DROP TABLE {table}")
    tell(total - 1, total, f"writing {target.name}")
    database.execute(f"CREATE TABLE output AS {_OUTPUT}")
    found = dict(database.execute("SELECT dropped, count(*) FROM observed GROUP BY 1").fetchall())
    dropped |= {f"spells: {reason}": int(found.get(reason, 0)) for reason in _REASONS}
    summary = _summary(database, read, dropped)
    with written_whole(target) as temporary:
        database.execute(f"COPY output TO {_quoted(temporary)} (FORMAT parquet, USE_TMP_FILE false)")
    tell(total, total, "")
    return summary


def _interruptible(database: Any, work: Callable[[], Summary]) -> Summary:
    """Do some work with a database in a thread, so that an interrupt of this one ends its queries at once.

    A query that runs in the main thread looks for signals once in many seconds.
    """
    with ThreadPoolExecutor(1) as threads:
        done = threads.submit(work)
        try:
            while not done.done():  # not without end, in which Windows would hear nothing
                wait([done], timeout=0.5)
            return done.result()
        except BaseException:
            while not done.done():  # between two queries, there is none to interrupt
                database.interrupt()
                wait([done], timeout=0.05)
            raise


def _quoted(path: Path) -> str:
    """Return a path as SQL writes it."""
    return "'" + str(path).replace("'", "''") + "'"


def _summary(database: Any, read: dict[str, int], dropped: dict[str, int]) -> Summary:
    spells, customers, events, least, most = database.execute(
        "SELECT count(*), count(DISTINCT msno), count(*) FILTER (event), min(censoring_time), max(censoring_time) "
        "FROM output"
    ).fetchone()
    if not spells:
        raise InputError(
            "no spell is left: all were dropped (" + "; ".join(f"{k}: {v}" for k, v in dropped.items()) + ")"
        )
    columns = [row[0] for row in database.execute("DESCRIBE output").fetchall()]
    broken = {
        "time <= censoring_time": "time > censoring_time",
        "time = censoring_time for the censored": "NOT event AND time <> censoring_time",
        "time > 0": "time <= 0",
        "no missing values": " OR ".join(f"{column} IS NULL" for column in columns),
        "all numbers finite": " OR ".join(f"NOT isfinite({c})" for c in columns if c.startswith("log_")),
    }
    invariants = {
        rule: database.execute(f"SELECT count(*) FROM output WHERE {condition}").fetchone()[0] == 0
        for rule, condition in broken.items()
    }
    failed = [rule for rule, holds in invariants.items() if not holds]
    if failed:
        raise RuntimeError(f"the prepared data break a rule they must keep: {'; '.join(failed)}")
    late, strangers = database.execute(
        "SELECT count(*) FILTER (churned AND NOT event), count(*) FILTER (m.msno IS NULL) "
        "FROM observed LEFT JOIN members m USING (msno) WHERE dropped IS NULL"
    ).fetchone()
    noted = {"churn after C*, censored there": int(late), "not among the members": int(strangers)}
    return Summary(read, dropped, noted, spells, customers, events, (least, most), invariants)

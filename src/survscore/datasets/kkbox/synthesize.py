r"""Raw files of the form of Kaggle's, with a known truth.

A spell of membership renews after every plan of d days with probability :math:`1 - p(x)`, so that the duration is
:math:`K d` with K geometric, and :math:`S(t \mid x) = [1 - p(x)]^{\lfloor t / d \rfloor}`. Payment methods and prices
change with the calendar, as in the real data: covariates tell something about the start, and so about the censoring.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import ArrayLike, NDArray
from pyarrow import csv

from survscore._utils.jobs import Progress, silent
from survscore._validation import InputError, as_times, check_whole
from survscore.curves import SurvivalCurves
from survscore.datasets.kkbox import raw
from survscore.datasets.kkbox.raw import COLUMNS
from survscore.io.files import written_whole

CUSTOMERS_PER_BLOCK = 100_000
#: Customers of the real data, and rows of its files: about 2.4 M with 21.5 M transactions, 6.8 M members, 1 M labels.
REAL_CUSTOMERS = 2_400_000
OTHER_MEMBERS = 1.95  # members without a transaction, per customer
EPOCH = np.datetime64("1970-01-01", "D")
FIRST_DAY, LAST_DAY = (int((np.datetime64(day, "D") - EPOCH).astype(int)) for day in ("2015-01-01", "2017-02-28"))
LABEL_DAYS = tuple(int((np.datetime64(day, "D") - EPOCH).astype(int)) for day in ("2017-02-01", "2017-02-28"))
MOST_SPELLS = 6
RETURNS, TWICE_A_DAY, EXPIRED_BEFORE, NOT_A_MEMBER = 0.4, 0.03, 0.01, 0.11

#: Payment methods: number, share, from when on it is there (as a share of the whole span), effect on the logit of
#: churn, and how often it renews by itself.
METHODS = np.array(
    [
        (41, 0.52, 0.00, -0.5, 0.95),
        (40, 0.09, 0.00, -0.1, 0.90),
        (39, 0.07, 0.00, 0.1, 0.85),
        (38, 0.10, 0.00, 0.9, 0.02),
        (37, 0.05, 0.00, -0.2, 0.95),
        (36, 0.04, 0.15, 0.2, 0.50),
        (35, 0.03, 0.30, 1.0, 0.05),
        (34, 0.04, 0.40, -0.4, 0.98),
        (33, 0.02, 0.55, -0.3, 0.95),
        (30, 0.02, 0.65, 0.0, 0.80),
        (29, 0.05, 0.75, 0.6, 0.10),
        (23, 0.05, 0.85, 0.2, 0.60),
    ]
)
#: Plans: days, share, list price.
PLANS = np.array(
    [(30, 0.86, 149), (7, 0.03, 0), (31, 0.03, 149), (90, 0.04, 447), (180, 0.025, 894), (410, 0.015, 1788)]
)
#: Plan of 30 days: list price, share, from when on it is there.
PRICES = np.array([(149, 0.6, 0.0), (99, 0.3, 0.1), (129, 0.25, 0.45), (180, 0.5, 0.7)])


@dataclass(frozen=True)
class _Spells:
    """Spells of some customers in one round: first, second, ..."""

    customer: NDArray[np.int64]
    spell: int
    start: NDArray[np.int64]
    method: NDArray[np.int64]
    plan_days: NDArray[np.int64]
    price: NDArray[np.int64]
    auto_renew: NDArray[np.int64]
    churn: NDArray[np.float64]
    n_plans: NDArray[np.int64]

    @property
    def end(self) -> NDArray[np.int64]:
        """The day on which the membership expires for good."""
        return self.start + self.n_plans * self.plan_days


def synthesize(
    folder: str | Path, *, customers: int, seed: int, overwrite: bool = False, progress: Progress | None = None
) -> dict[str, int]:
    """Write raw files ``transactions.csv``, ``members_v3.csv`` and ``train.csv``, and the truth, ``truth.parquet``.

    Parameters
    ----------
    folder : path
        Is made if it is not there.
    customers : int
        With transactions. The real data have about 2.4 million.
    seed : int
        The same seed gives the same files.
    overwrite : bool
        Replace files that are there. Without, raw files in the folder are an error, also packed ones, which are not
        replaced: `prepare` would read these instead of them.
    progress : callable, optional
        Called with how many customers are done, of how many.

    Returns
    -------
    dict of str to int
        Rows of each file.
    """
    check_whole("customers", customers, 1)
    where = Path(folder)
    there = [path for path in (*raw.candidates(where), where / "truth.parquet") if path.exists()]
    if there and not overwrite:
        raise InputError(f"{there[0]}: is there already; `overwrite=True` replaces raw files")
    where.mkdir(parents=True, exist_ok=True)
    tell = progress or silent
    kinds = {"VARCHAR": pa.string(), "INTEGER": pa.int64()}
    schemas = {name: pa.schema([(c, kinds[kind]) for c, kind in columns.items()]) for name, columns in COLUMNS.items()}
    schemas["truth"] = pa.schema(
        [("msno", pa.string()), ("n_prev_churns", pa.int64()), ("plan_days", pa.int64()), ("churn", pa.float64())]
    )
    rows = dict.fromkeys(schemas, 0)
    with ExitStack() as stack:
        writers: dict[str, Any] = {}
        for name, schema in schemas.items():
            file = "truth.parquet" if name == "truth" else f"{name}.csv"
            path = stack.enter_context(written_whole(where / file))
            writer = pq.ParquetWriter(path, schema) if name == "truth" else _csv_writer(path, schema)
            writers[name] = stack.enter_context(writer)
        for number, start in enumerate(range(0, customers, CUSTOMERS_PER_BLOCK)):
            tell(start, customers, "customers")
            n = min(CUSTOMERS_PER_BLOCK, customers - start)
            for name, columns in _block(n, np.random.default_rng((seed, number))).items():
                table = pa.table(columns, schema=schemas[name])
                writers[name].write_table(table)
                rows[name] += table.num_rows
    tell(customers, customers, "")
    return rows


def true_survival(frame: pd.DataFrame, truth: pd.DataFrame, times: ArrayLike) -> SurvivalCurves:
    """Return the true survival of prepared spells.

    Parameters
    ----------
    frame : pandas.DataFrame
        Prepared from synthetic raw files.
    truth : pandas.DataFrame
        Their ``truth.parquet``.
    times : array_like
        Days since the start.

    Returns
    -------
    SurvivalCurves
        Step functions.
    """
    grid = as_times(times)
    found = frame[["msno", "n_prev_churns"]].merge(truth, on=["msno", "n_prev_churns"], how="left")
    absent = int(found["churn"].isna().sum())
    if absent:
        raise InputError(f"truth says nothing about {absent} of {len(frame)} spells: it belongs to other files")
    n_renewals = np.floor(grid / found["plan_days"].to_numpy()[:, None])
    return SurvivalCurves((1.0 - found["churn"].to_numpy()[:, None]) ** n_renewals, grid, interpolation="step")


@contextmanager
def _csv_writer(path: Path, schema: pa.Schema) -> Iterator[Any]:
    """Give a writer of tables without quotes; the header is our own, since older pyarrow would quote it."""
    options = csv.WriteOptions(include_header=False, quoting_style="none")
    with path.open("wb") as file:
        file.write((",".join(schema.names) + "\n").encode("ascii"))
        with csv.CSVWriter(file, schema, write_options=options) as writer:
            yield writer


def _block(n: int, rng: np.random.Generator) -> dict[str, dict[str, Any]]:
    """Return the tables of some customers, and of members who never bought anything."""
    msno = _identifiers(n, rng)
    person = _people(n, rng)
    rounds = list(_rounds(n, person, rng))
    lasting = np.concatenate([np.column_stack([s.customer, s.start, s.end]) for s in rounds])
    others = _identifiers(round(OTHER_MEMBERS * n), rng)
    strangers = _people(len(others), rng)
    first_start = np.full(n, LAST_DAY)
    np.minimum.at(first_start, lasting[:, 0], lasting[:, 1])
    registered = np.concatenate(
        [_registration(first_start, rng), rng.integers(FIRST_DAY - 3000, LAST_DAY, len(others))]
    )
    listed = np.concatenate([rng.random(n) >= NOT_A_MEMBER, np.ones(len(others), dtype=bool)])
    both = {
        key: np.concatenate([person[key], strangers[key]])[listed] for key in ("city", "bd", "gender", "registered_via")
    }
    return {
        "transactions": _transactions(rounds, msno, rng),
        "members_v3": {
            "msno": np.concatenate([msno, others])[listed],
            **both,
            "registration_init_time": _yyyymmdd(registered[listed]),
        },
        "train": _labels(lasting, msno, rng),
        "truth": {
            "msno": np.concatenate([msno[s.customer] for s in rounds]),
            "n_prev_churns": np.concatenate([np.full(s.customer.size, s.spell) for s in rounds]),
            "plan_days": np.concatenate([s.plan_days for s in rounds]),
            "churn": np.concatenate([s.churn for s in rounds]),
        },
    }


def _identifiers(n: int, rng: np.random.Generator) -> NDArray[np.object_]:
    """Return identifiers like the real ones: 32 random bytes in base64."""
    raw = rng.bytes(32 * n)
    return np.array([base64.b64encode(raw[i : i + 32]).decode() for i in range(0, 32 * n, 32)], dtype=object)


def _people(n: int, rng: np.random.Generator) -> dict[str, NDArray[Any]]:
    cities = np.array([1, *range(3, 23)])
    city = rng.choice(cities, n, p=np.array([0.7, *[0.3 / 20] * 20]))
    gender = rng.choice(np.array(["", "male", "female"], dtype=object), n, p=[0.6, 0.21, 0.19])
    age = rng.normal(29, 9, n).round().astype(np.int64)
    absurd = rng.random(n) < 0.01
    age[absurd] = rng.integers(-3000, 2000, int(absurd.sum()))
    bd = np.where(gender == "", 0, age)
    via = rng.choice(np.array([3, 4, 7, 9, 13]), n, p=[0.18, 0.37, 0.2, 0.24, 0.01])
    return {"city": city, "gender": gender, "bd": bd, "registered_via": via}


def _registration(start: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """Return registration dates: most on the first day or in the years before, a few impossible ones after it."""
    before = np.where(rng.random(start.size) < 0.3, 0, rng.exponential(700, start.size)).astype(np.int64)
    before[rng.random(start.size) < 0.005] = -5
    return np.asarray(np.maximum(start - before, FIRST_DAY - 4000))


def _rounds(n: int, person: dict[str, NDArray[Any]], rng: np.random.Generator) -> Iterator[_Spells]:
    """Yield the first spells of all customers, then the second ones of those who come back, and so on."""
    span = LAST_DAY - FIRST_DAY
    customer = np.arange(n)
    start = FIRST_DAY + (span * rng.random(n) ** 0.8).astype(np.int64)  # more and more of them
    for spell in range(MOST_SPELLS):
        spells = _draw(customer, spell, start, person, rng)
        yield spells
        gap = 31 + rng.exponential(70, customer.size).astype(np.int64)
        back = (rng.random(customer.size) < RETURNS) & (spells.end + gap <= LAST_DAY)
        customer, start = customer[back], (spells.end + gap)[back]
        if customer.size == 0:
            return


def _draw(
    customer: NDArray[np.int64],
    spell: int,
    start: NDArray[np.int64],
    person: dict[str, NDArray[Any]],
    rng: np.random.Generator,
) -> _Spells:
    n, when = start.size, (start - FIRST_DAY) / (LAST_DAY - FIRST_DAY)
    method = METHODS[_pick(METHODS[:, 1], METHODS[:, 2], when, rng)]
    plan = PLANS[rng.choice(len(PLANS), n, p=PLANS[:, 1] / PLANS[:, 1].sum())]
    plan_days, price = plan[:, 0].astype(np.int64), plan[:, 2].astype(np.int64)
    monthly = plan_days == 30
    price[monthly] = PRICES[_pick(PRICES[:, 1], PRICES[:, 2], when[monthly], rng), 0]
    auto_renew = (rng.random(n) < method[:, 4]).astype(np.int64)
    age = np.clip(person["bd"][customer], 0, 80)
    logit = (
        -1.9
        - 1.7 * auto_renew
        + method[:, 3]
        + 0.5 * np.log(plan_days / 30.0)
        - 0.012 * age
        + 0.3 * (person["registered_via"][customer] == 4)
        + 0.25 * spell
        - 0.004 * (price - 149)
    )
    churn = 1.0 / (1.0 + np.exp(-logit))
    n_plans = np.minimum(rng.geometric(churn), 2000)
    number = method[:, 0].astype(np.int64)
    return _Spells(customer, spell, start, number, plan_days, price, auto_renew, churn, n_plans)


def _pick(
    shares: NDArray[np.float64], since: NDArray[np.float64], when: NDArray[np.float64], rng: np.random.Generator
) -> NDArray[np.intp]:
    """Draw among what is there at each time; what came later grows at the expense of the rest."""
    grown = np.where(when[:, None] >= since, shares * (1.0 + 2.0 * (when[:, None] - since) * (since > 0)), 0.0)
    cumulated = np.cumsum(grown, axis=1)
    return np.asarray(np.count_nonzero(cumulated < rng.random((when.size, 1)) * cumulated[:, -1:], axis=1))


def _transactions(rounds: list[_Spells], msno: NDArray[np.object_], rng: np.random.Generator) -> dict[str, Any]:
    """Return all transactions up to the last day of the data, those of a day in the order in which they were made."""
    parts = []
    for spells in rounds:
        # plan j starts on start + j d; whatever would begin after the data cut-off is left out
        n_seen = np.minimum(spells.n_plans, -(-(LAST_DAY + 1 - spells.start) // spells.plan_days))
        row = np.repeat(np.arange(spells.start.size), n_seen)
        j = np.arange(row.size) - np.repeat(np.cumsum(n_seen) - n_seen, n_seen)
        due = spells.start[row] + j * spells.plan_days[row]
        early = np.where((j > 0) & (spells.auto_renew[row] == 0), rng.integers(0, 4, row.size), 0)
        made = np.maximum(due - np.minimum(early, spells.plan_days[row] - 1), spells.start[row])
        price = spells.price[row]
        paid = np.where(rng.random(row.size) < 0.04, 0, price)
        parts.append(
            np.column_stack(
                [
                    spells.customer[row],
                    spells.method[row],
                    spells.plan_days[row],
                    price,
                    paid,
                    spells.auto_renew[row],
                    made,
                    due + spells.plan_days[row],
                    np.zeros(row.size, dtype=np.int64),
                ]
            )
        )
    true = np.concatenate(parts)
    twice = true[rng.random(len(true)) < TWICE_A_DAY]
    twice[:, 4] = 0  # a first try, before the one that counts
    cancelled = true[rng.random(len(true)) < EXPIRED_BEFORE]
    cancelled[:, 7] = cancelled[:, 6] - 1 - rng.integers(0, 60, len(cancelled))
    cancelled[:, 8] = 1
    everything = np.concatenate([twice, cancelled, true])  # a stable order by day keeps the true one last
    everything = everything[np.argsort(everything[:, 6], kind="stable")]
    columns = dict(zip(list(COLUMNS["transactions"])[1:], everything.T[1:], strict=True))
    columns["transaction_date"] = _yyyymmdd(columns["transaction_date"])
    columns["membership_expire_date"] = _yyyymmdd(columns["membership_expire_date"])
    return {"msno": msno[everything[:, 0]], **columns}


def _labels(lasting: NDArray[np.int64], msno: NDArray[np.object_], rng: np.random.Generator) -> dict[str, Any]:
    """Return the labels of those whose membership ends in the month asked about, and of as many others."""
    first, last = LABEL_DAYS
    current = np.zeros(len(msno), dtype=bool)
    churned = np.zeros(len(msno), dtype=np.int64)
    alive = lasting[(lasting[:, 1] <= first) & (lasting[:, 2] >= first)]
    current[alive[:, 0]] = True
    churned[alive[alive[:, 2] <= last, 0]] = 1
    asked = current & (rng.random(len(msno)) < 0.95)
    return {"msno": msno[asked], "is_churn": churned[asked]}


def _yyyymmdd(days: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return dates as the files write them."""
    date = pd.to_datetime(days, unit="D")
    return np.asarray(date.year * 10_000 + date.month * 100 + date.day, dtype=np.int64)

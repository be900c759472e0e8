"""Sample weights and delayed entry: evaluate gives what compare gives, in memory and in passes over the rows."""

import numpy as np
import pyarrow as pa
import pytest

import survscore as ss
from commands import run
from scale_tables import make, same
from survscore.scale import evaluate_state

pytestmark = [
    pytest.mark.filterwarnings("ignore::survscore.UndefinedScoreWarning"),  # few are followed in some countries
    pytest.mark.filterwarnings("ignore::survscore.FewFollowedWarning"),
]
TIMES = (30.0, 96.0, 162.0)
PASSES = [1000, 100_000]  # of all rows, or in memory


@pytest.fixture(scope="module")
def case():
    made, rng = make(2500, seed=3), np.random.default_rng(1)
    made.often, made.weight = rng.integers(0, 4, 2500).astype(float), rng.gamma(2, 1, 2500)
    made.entry = np.floor(rng.uniform(0, np.minimum(made.y.time - 1, 20).clip(0)))
    for name, values in (("often", made.often), ("weight", made.weight), ("entry", made.entry)):
        made.table = made.table.append_column(name, pa.array(values))
    made.table = made.table.append_column("one", pa.array(np.ones(2500)))
    made.table = made.table.append_column("zero", pa.array(np.zeros(2500)))
    return made


def compared(case, y=None, **more):
    weighting = [ss.Administrative(dropout_strata=None), "ipcw", ss.Projected(strata=case.country)]
    y = case.y if y is None else y
    return ss.compare(y, case.models, weighting=weighting, times=TIMES, null=False, **more)


def evaluated(case, table=None, **more):
    weighting, table = ["administrative", "ipcw", "projected"], case.table if table is None else table
    return ss.evaluate(table, weighting=weighting, strata="country", times=TIMES, **more)


@pytest.mark.parametrize("rank_rows", PASSES)
@pytest.mark.parametrize("kind", ["probability", "frequency"])
@pytest.mark.parametrize("more", ["", "groups", "by"])
def test_weights(case, rank_rows, kind, more):
    if more == "by" and rank_rows > 2500:
        return  # is that of compare
    name = "often" if kind == "frequency" else "weight"
    y = case.y.weighted(getattr(case, name), kind)
    labels = {"": {}, "groups": {"groups": case.customer}, "by": {"by": {"country": case.country}}}[more]
    columns = {"": {}, "groups": {"groups": "customer"}, "by": {"by": "country"}}[more]
    # those of weight 0 have no part, nor labels
    if kind == "frequency":
        rows = case.often > 0
        y, models = y[rows], {name: one[rows] for name, one in case.models.items()}
        labels = {"": {}, "groups": {"groups": case.customer[rows]}, "by": {"by": {"country": case.country[rows]}}}[
            more
        ]
        weighting = [ss.Administrative(dropout_strata=None), "ipcw", ss.Projected(strata=case.country[rows])]
        wanted = ss.compare(y, models, weighting=weighting, times=TIMES, null=False, **labels)
    else:
        wanted = compared(case, y, **labels)
    found = evaluated(case, weights=name, weight_kind=kind, rank_rows=rank_rows, **columns)
    if more == "by":
        for label, part in found.parts.items():
            same(part, wanted.parts[label], score=1e-10, se=1e-10)
        found, wanted = found.total, wanted.total
    same(found, wanted, score=1e-10, se=1e-10)
    mean, other = (result.integrated().contrasts["se"] for result in (found, wanted))
    np.testing.assert_allclose(mean, other, rtol=1e-9)
    assert found.scored[0].settings["sample_weights"] == kind


@pytest.mark.parametrize("rank_rows", PASSES)
def test_weights_of_one_and_entry_at_zero_change_nothing(case, rank_rows):
    plain = evaluated(case, rank_rows=rank_rows, groups="customer")
    same(evaluated(case, rank_rows=rank_rows, groups="customer", weights="one"), plain, score=1e-13, se=1e-12)
    same(evaluated(case, rank_rows=rank_rows, groups="customer", entry="zero"), plain, score=1e-13, se=1e-12)


@pytest.mark.parametrize("rank_rows", PASSES)
def test_frequencies_are_repeated_rows(case, rank_rows):
    often = case.often.astype(int)
    repeated = case.table.take(np.repeat(np.arange(2500), often))
    found = evaluated(case, weights="often", weight_kind="frequency", rank_rows=rank_rows)
    same(found, evaluated(case, repeated, groups=None, by=(), rank_rows=10**6), score=1e-10, se=1e-10)


@pytest.mark.parametrize("rank_rows", PASSES)
@pytest.mark.parametrize("groups", [None, "customer"])
def test_entry(case, rank_rows, groups):
    y = ss.Outcomes(case.y.time, case.y.event, case.y.censoring_time, entry=case.entry)
    labels = {} if groups is None else {"groups": case.customer}
    found = evaluated(case, entry="entry", rank_rows=rank_rows, groups=groups)
    wanted = compared(case, y, **labels)
    exact = groups or rank_rows > 2500
    same(found, wanted, score=1e-10, se=1e-10 if exact else 0.05)
    assert found.scored[0].settings["clock"] == "time since entry"


def test_entry_in_one_pass_and_in_sums_of_several_days(case, tmp_path):
    y = ss.Outcomes(case.y.time, case.y.event, case.y.censoring_time, entry=case.entry)
    asked = {"weighting": "administrative", "entry": "entry", "times": TIMES}
    wanted = ss.compare(y, case.models, weighting=ss.Administrative(dropout_strata=None), times=TIMES, null=False)
    same(ss.evaluate(case.write(tmp_path / "files", 3), **asked), wanted, score=1e-10, se=1e-10)
    first = evaluate_state(case.table.slice(0, 1000), **asked)
    same(ss.evaluate(case.table.slice(1000), add=first, **asked), wanted, score=1e-10, se=1e-10)


def test_dates_of_entry(case):
    start = np.datetime64("2020-01-01") + np.arange(2500) % 50
    days = case.y.time.astype("timedelta64[D]")
    columns = {
        "start": start, "event_date": np.where(case.y.event, start + days, np.datetime64("NaT")),
        "entered": start + case.entry.astype("timedelta64[D]"), "weight": case.weight,
        **{name: case.table[name] for name in case.table.column_names if ":" in name},
    }  # fmt: skip
    outcomes = {"cutoff": "2022-01-01"}
    options = {"weighting": "ipcw", "times": TIMES, "outcomes": outcomes}
    found = ss.evaluate(pa.table(columns), entry="entered", weights="weight", **options)
    y = ss.Outcomes.from_dates(
        start, columns["event_date"], "2022-01-01", entry_date=columns["entered"], weights=case.weight
    )
    same(found, ss.compare(y, case.models, weighting="ipcw", times=TIMES, null=False), score=1e-10, se=1e-10)


def test_the_command_line(case, tmp_path, capsys):
    folder = case.write(tmp_path / "files", 2)
    options = ("--weights", "weight", "--entry", "entry", "-t", "30,96", "--csv")
    code, *_ = run(capsys, "evaluate", folder, "-w", "administrative", *options, tmp_path / "out.csv")
    assert code == 0
    asked = {"weighting": "administrative", "weights": "weight", "entry": "entry", "times": [30, 96]}
    found = np.genfromtxt(tmp_path / "out.csv", delimiter=",", names=True, dtype=None, encoding="utf-8")
    assert found["se"] == pytest.approx(ss.evaluate(folder, **asked).scores["se"].to_numpy())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weights": "below"}, "weights"),
        ({"entry": "time"}, "entry"),
        ({"entry": "entry", "times": [30, 360]}, "given that individuals are event-free at entry"),
        ({"weights": "weight", "weight_kind": "often"}, "weight_kind must be"),
    ],
)
def test_what_is_refused(case, options, message):
    table = case.table.append_column("below", pa.array(case.weight - 3))
    with pytest.raises(ss.InputError, match=message):
        ss.evaluate(table, weighting="administrative", **{"times": TIMES, **options})
    for name in ("weights", "groups"):
        with pytest.raises(ss.InputError, match="take a second pass over the data"):
            evaluate_state(case.table, weighting="administrative", **{name: "one"})

"""Several passes over more rows than are ranked give what compare gives of all rows, whatever is asked for together."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import survscore as ss
from combinations import examples
from scale_tables import same

TIMES = np.array([3.0, 6.0, 10.0, 15.0])
ROWS = 1200  # more than `rank_rows` also without those of weight 0


def study(seed, *, whole, ends, drop_outs):
    """Return columns in which much happens exactly at evaluation times; with `ends` "late", nobody has C* < t.

    And with "early", nobody has C* >= t at the last one.
    """
    rng = np.random.default_rng(seed)
    n, rate = ROWS, rng.gamma(2, 0.03, ROWS)
    end = rng.uniform(*{"late": (15, 25), "early": (1, 14)}.get(ends, (1, 25)), n)
    event_time = np.where(rng.random(n) < 0.2, rng.choice(TIMES, n), rng.exponential(1 / rate))
    last_seen = rng.exponential(30, n) if drop_outs else np.full(n, np.inf)
    if whole:
        end, event_time, last_seen = np.ceil(end), np.ceil(event_time), np.ceil(last_seen)
    segment = rng.choice(["x", "y"], n)
    segment[0] = "alone"  # of one individual, and in one file only
    columns = {
        "time": np.minimum(np.minimum(event_time, end), last_seen), "censoring_time": end,
        "event": np.where(event_time <= np.minimum(end, last_seen), rng.integers(1, 3, n), 0).astype(np.int8),
        "segment": segment, "plan": rng.choice(["p", "q"], n), "customer": rng.integers(0, 300, n),
        "often": rng.choice([0.0, 1.0, 2.0, 3.0], n, p=[0.1, 0.4, 0.3, 0.2]), "weight": rng.gamma(2, 1e-4, n),
    }  # fmt: skip
    columns["often"][0] = 1.0
    curves = np.exp(-rate[:, None] * TIMES)
    models = {"a": curves, "b": np.minimum.accumulate((curves ** rng.gamma(9, 1 / 9, (n, 1))).astype(np.float32), 1)}
    return columns, {name: values.astype(np.float32) for name, values in models.items()}


@pytest.mark.filterwarnings("ignore")  # of few individuals, and that compare warns of more
@examples(12)
@given(
    seed=st.integers(0, 999), whole=st.booleans(), drop_outs=st.booleans(), cause=st.booleans(),
    ends=st.sampled_from(["known", "early", "late", "unknown"]), weights=st.sampled_from([None, "weight", "often"]),
    by=st.booleans(), groups=st.booleans(), strata=st.sampled_from([None, "plan"]),
    population=st.sampled_from([None, "fixed"]), max_weight=st.sampled_from([None, 1.2]), cuts=st.integers(0, ROWS),
)  # fmt: skip
@example(1, True, True, False, "unknown", "weight", False, False, None, None, None, 7)
@example(2, False, True, True, "late", "often", True, True, "plan", "fixed", 1.2, 900)
@example(3, True, False, False, "known", "weight", True, True, None, "fixed", None, 1)
@example(5, False, True, True, "early", "weight", True, False, "plan", None, None, 600)
@example(4, True, True, True, "late", "weight", True, False, None, None, None, 0)
def test_what_is_asked_for_together(
    seed, whole, drop_outs, cause, ends, weights, by, groups, strata, population, max_weight, cuts
):
    by = by or not (groups or weights)  # else standard errors are those of a sample
    columns, models = study(seed, whole=whole, ends=ends, drop_outs=drop_outs)
    if not cause:
        columns["event"] = columns["event"] > 0
    known = [ss.Administrative(population=population, max_weight=max_weight, dropout_strata=None)]
    others = [ss.IPCW(max_weight=max_weight), *(known if ends != "unknown" else [])]
    table = {name: values for name, values in columns.items() if ends != "unknown" or name != "censoring_time"}
    table = pa.table(table | {f"{name}:{t:g}": of[:, j] for name, of in models.items() for j, t in enumerate(TIMES)})
    kind = "frequency" if weights == "often" else "probability"
    found = ss.evaluate(
        lambda: pa.RecordBatchReader.from_batches(
            table.schema, [*table.slice(cuts).to_batches(), *table.slice(0, cuts).to_batches()]
        ),
        weighting=[*others, ss.Projected() if strata else ss.Projected(strata=None)], strata=strata,
        by="segment" if by else (), groups="customer" if groups else None, weights=weights, weight_kind=kind,
        cause=1 if cause else None, ranges="any", rank_rows=1000,
    )  # fmt: skip

    rows = columns["often"] > 0 if weights == "often" else np.ones(ROWS, dtype=np.bool_)
    columns = {name: values[rows] for name, values in columns.items()}
    y = ss.Outcomes(
        columns["time"], columns["event"], None if ends == "unknown" else columns["censoring_time"],
        causes=("1", "2") if cause else None, weights=None if weights is None else columns[weights], weight_kind=kind,
    )  # fmt: skip
    wanted = ss.compare(
        y.for_cause("1") if cause else y,
        {name: ss.SurvivalCurves(of[rows], TIMES) for name, of in models.items()}, times=TIMES, null=False,
        weighting=[*others, ss.Projected(strata=columns["plan"] if strata else None)], ranges="any",
        by={"segment": columns["segment"]} if by else None, groups=columns["customer"] if groups else None,
    )  # fmt: skip
    pairs = [(found, wanted)]
    if by:
        assert found.n_spanning == wanted.n_spanning
        pairs = [(found.total, wanted.total), *((part, wanted.parts[label]) for label, part in found.parts.items())]
    for one, other in pairs:
        same(one, other, score=1e-9, se=1e-7)
        assert one.n == other.n
        assert one.n_dropped_out == other.n_dropped_out
        if not any(np.isnan(of_weighting.scores[:, :2]).any() for of_weighting in other.scored):  # of two times or more
            means = [result.integrated(nan="stop") for result in (one, other)]
            np.testing.assert_allclose(means[0].contrasts["se"], means[1].contrasts["se"], rtol=1e-7)
        projected, expected = one.scored[-1], other.scored[-1]
        assert (projected.by_theta is None, projected.parts is None) == (
            expected.by_theta is None,
            expected.parts is None,
        )
        scored = ~np.isnan(expected.scores[0])
        for name in ("scores", "predicted", "event_free") if projected.by_theta is not None else ():
            got, want = (getattr(result.by_theta, name) for result in (projected, expected))
            if name != "scores":
                got, want = got[..., scored], want[..., scored]
            np.testing.assert_allclose(got, want, rtol=1e-8, err_msg=name)
        for name in ("share", "dropped_out", "observed", "projected") if projected.parts is not None else ():
            got, want = (getattr(result.parts, name) for result in (projected, expected))
            np.testing.assert_allclose(got, want, rtol=1e-8, atol=1e-10, err_msg=name)

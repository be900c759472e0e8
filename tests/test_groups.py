"""Groups: the compiled way through them, against every influence added up."""

import numpy as np
import pytest

import survscore as ss
from survscore.engine import compiled, second_moments
from survscore.inference.units import Groups, PowerSums

N, TIMES = 1500, np.linspace(1, 45, 9)
GRID = np.linspace(2, 50, 12)


def outcomes(*, whole, dropping_out, seed=0):
    rng = np.random.default_rng(seed)
    event_time, end, lost = rng.exponential(20, N), rng.uniform(5, 60, N), rng.exponential(100, N)
    if whole:
        event_time, end, lost = np.ceil(event_time), np.ceil(end), np.ceil(lost)
    if not dropping_out:
        lost = np.full(N, np.inf)
    time = np.minimum(np.minimum(event_time, end), lost)
    return ss.Outcomes(time, (event_time <= end) & (event_time <= lost), end)


def curves(seed, dtype=np.float64, rate=0.02):
    rates = np.random.default_rng(seed).gamma(2, rate, N)
    return ss.SurvivalCurves(np.exp(-rates[:, None] * GRID).astype(dtype), GRID)


MODELS = {"a": curves(1), "b": curves(2, np.float32), "c": curves(3, np.float32)}
OTHERS = outcomes(whole=False, dropping_out=True, seed=9)[:400]
WEIGHTINGS = {
    "administrative": ss.Administrative(),
    "administrative, capped, by n": ss.Administrative(max_weight=1.2, normalize="n"),
    "administrative, population": ss.Administrative(population=curves(4, rate=0.01)),
    "drop-out of others": ss.Administrative(dropout=OTHERS),
    "ipcw": ss.IPCW(),
    "ipcw, capped": ss.IPCW(max_weight=2),
    "ipcw, martingale": ss.IPCW(variance="martingale"),
    "ipcw of others": ss.IPCW(OTHERS),
    "ipcw of curves": ss.IPCW(curves(5, rate=0.01)),
}


def errors(backend, y, models, **options):
    with ss.config.using(backend=backend):
        result = ss.compare(y, models, times=TIMES, ranges=[(5, 30)], **options)
    tables = [result.scores, result.integrated(5, 30).scores]
    tables += [result.contrasts] if len(models) + options["null"] > 1 else []
    return np.concatenate([table["se"].to_numpy(dtype=float) for table in tables])


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", WEIGHTINGS)
@pytest.mark.parametrize("whole", [False, True], ids=["continuous times", "whole times"])
def test_compiled_groups_are_the_sums_of_their_members(name, whole):
    y = outcomes(whole=whole, dropping_out=True)
    rng = np.random.default_rng(6)
    cases = [(3, False, "a", "brier"), (400, False, "ab", "brier"), (400, True, "ab", "log"), (N, True, "abc", "brier")]
    for n_groups, null, several, metric in cases:
        groups = rng.integers(0, n_groups, N)
        options = {"weighting": WEIGHTINGS[name], "groups": groups, "null": null, "metric": metric}
        models = {model: MODELS[model] for model in several}
        slow, fast = (errors(backend, y, models, **options) for backend in ("numpy", "compiled"))
        np.testing.assert_allclose(fast, slow, rtol=1e-11, atol=1e-13, err_msg=f"{n_groups} groups of {several}")


@pytest.mark.parametrize("cells", [1, 5000])
@pytest.mark.parametrize("backend", ["numpy", "compiled"])
def test_tables_of_groups_may_be_made_in_parts(cells, backend, monkeypatch):
    y, groups = outcomes(whole=False, dropping_out=True), np.arange(N) // 3
    for weighting in ("administrative", "ipcw"):
        options = {"weighting": weighting, "groups": groups, "null": True}
        at_once = errors(backend, y, MODELS, **options)
        with monkeypatch.context() as patch:
            patch.setattr(compiled, "TABLE_CELLS", cells)
            patch.setattr(second_moments, "TABLE_CELLS", cells)
            np.testing.assert_allclose(errors(backend, y, MODELS, **options), at_once, rtol=1e-11)


def test_groups_do_not_depend_on_what_they_are_called():
    numbers = np.array([7, 3, 3, 9, 7, 7])
    expected = Groups.of(numbers, 6)
    others = [numbers * 10**9, numbers - 20, numbers / 2]
    others += [numbers.astype(kind) for kind in (np.uint8, str, object, "datetime64[D]")]
    for labels in others:
        found = Groups.of(labels, 6)
        assert found.n_groups == expected.n_groups == 3
        # the same partition
        assert len(set(zip(found.codes.tolist(), expected.codes.tolist(), strict=True))) == 3
    assert Groups.of(np.array([True, False, True]), 3).n_groups == 2
    with pytest.raises(ss.InputError, match="labels of one kind"):
        Groups.of(np.array([1, "a"], dtype=object), 2)


@pytest.mark.parametrize("n_groups", [1, 5, 150])
def test_sums_of_powers_of_sizes(n_groups):
    rng = np.random.default_rng(0)
    codes = np.unique(rng.integers(0, n_groups, 2000), return_inverse=True)[1].astype(np.int32)
    stop = rng.integers(0, 13, 2000).astype(np.int32)
    sizes = np.array([[((codes == g) & (stop > t)).sum() for t in range(12)] for g in range(codes.max() + 1)])
    found, literal = PowerSums.of_groups(stop, Groups(codes, int(codes.max()) + 1), 12), PowerSums.of(sizes)
    np.testing.assert_allclose(found.powers, literal.powers, rtol=1e-13)
    np.testing.assert_array_equal(found.largest, literal.largest)


@pytest.mark.parametrize("groups", [None, np.arange(N) // 4, np.arange(N) % 400], ids=["none", "in order", "mixed"])
def test_the_number_of_cores_does_not_matter(groups, monkeypatch):
    monkeypatch.setattr(compiled, "ROWS", 100)  # so that even these are shared out
    y = outcomes(whole=False, dropping_out=True)
    for weighting in ("administrative", "ipcw", ss.IPCW(max_weight=1.5), ss.IPCW(strata=np.arange(N) % 3)):
        options = {"weighting": weighting, "null": True, "groups": groups}
        found = []
        for threads in (1, 2, 16):
            monkeypatch.setattr(type(ss.config), "n_cores", lambda self, threads=threads: threads)
            found.append(errors("compiled", y, MODELS, **options))
        np.testing.assert_allclose(found[1], found[0], rtol=1e-11)
        np.testing.assert_allclose(found[2], found[0], rtol=1e-11)

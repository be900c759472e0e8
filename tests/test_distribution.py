"""Calibration of whole distributions: against literal versions by quadrature, and by simulation."""

import math

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.interpolate import interp1d

import survscore as ss
from combinations import every_pair
from survscore.inference.smooth_test import pooling

LEGENDRE = [
    np.ones_like,
    lambda u: math.sqrt(3) * (2 * u - 1),
    lambda u: math.sqrt(5) * (6 * u**2 - 6 * u + 1),
    lambda u: math.sqrt(7) * (20 * u**3 - 30 * u**2 + 12 * u - 1),
]
LONG, SHORT = 9.0, 3.0  # of follow-up: 27 and 60 % are censored


def case(
    seed, n=500, *, follow_up=LONG, shape=1.0, n_times=20, interpolation="linear", dropping=0.0, width=None, **wrong
):
    """Individuals whose C* tells of the risk, and curves that are right at grid points unless told otherwise."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    rate = 0.25 * np.exp(0.7 * x)
    star = (rng.exponential(size=n) / rate) ** (1 / shape)
    end = follow_up * rng.uniform(0.3, 1, n) * np.exp(-0.2 * x)
    leaving = rng.exponential(1 / dropping, n) if dropping else np.full(n, np.inf)
    times = np.linspace(0, 2 * follow_up, n_times + 1)[1:]
    if width is not None:  # time is counted in units of the grid
        star, end, leaving = (np.ceil(time / width) * width for time in (star, end, leaving))
        times = np.arange(1, math.ceil(end.max() / width) + 1) * width
    y = ss.Outcomes(np.minimum(np.minimum(star, end), leaving), (star <= end) & (star <= leaving), end)
    hazard = rate[:, None] * times**shape
    survival = np.exp(-((wrong.get("factor", 1.0) * hazard) ** wrong.get("power", 1.0)))
    return y, ss.SurvivalCurves(survival, times, interpolation=interpolation)


# Literal versions: loops over individuals and intervals, Legendre's polynomials, quadrature, a pseudo-inverse


def mean_score(h, start, stop):
    if stop - start < 1e-15:
        return h(np.asarray(start))
    return integrate.fixed_quad(h, start, stop, n=8)[0] / (stop - start)


def literal_intervals(y, curves, observed, n_bins):
    """W, its covariance, and observed, expected events with their covariance by bin: by intervals of the grid."""
    total, covariance = np.zeros(4), np.zeros((4, 4))
    seen, expected, bin_covariance = np.zeros(n_bins), np.zeros(n_bins), np.zeros((n_bins, n_bins))
    for i in range(len(y)):
        end = np.inf if y.censoring_time is None else y.censoring_time[i]
        own, own_bins = np.zeros(4), np.zeros(n_bins)
        before, opened = 1.0, 0.0
        for time, after in zip(curves.times.tolist(), curves.probabilities[i].tolist(), strict=True):
            if time > end or (observed and y.time[i] <= opened and opened > 0):
                break
            score = np.array([mean_score(h, 1 - before, 1 - after) for h in LEGENDRE])
            in_bin = min(int((1 - (before + after) / 2) * n_bins), n_bins - 1)
            if y.event[i] and (opened < y.time[i] <= time or y.time[i] == time == 0):
                total += score
                seen[in_bin] += 1
            weight = variance = before - after
            if observed:
                q = weight / before
                weight, variance = q, q * (1 - q)
                if not y.event[i] and y.time[i] < time:  # left within the interval
                    f = 1 - (1 - q) ** ((y.time[i] - opened) / (time - opened))
                    weight = f * (1 - q) / (1 - f)
                    # so that f q (1 - q) + (1 - f) v is the variance of 1 - q with probability f, and -weight otherwise
                    variance = (f * (1 - q) ** 2 + (1 - f) * weight**2 - f * q * (1 - q)) / (1 - f)
            own += weight * score
            own_bins[in_bin] += weight
            covariance += variance * np.outer(score, score)
            bin_covariance[in_bin, in_bin] += variance
            before, opened = after, time
        total -= own
        expected += own_bins
        if not observed:
            covariance -= np.outer(own, own)
            bin_covariance -= np.outer(own_bins, own_bins)
    return total, covariance, seen, expected, bin_covariance


def literal_continuous(y, curves, observed, n_bins):
    """The same for curves that are taken at their word between grid points."""
    total, covariance, of_events = np.zeros(4), np.zeros((4, 4)), np.zeros((4, 4))
    seen, expected, bin_covariance = np.zeros(n_bins), np.zeros(n_bins), np.zeros((n_bins, n_bins))

    def area(function, start, stop):
        return integrate.quad(function, start, stop, epsabs=1e-13, epsrel=1e-13)[0] if stop > start else 0.0

    def density(u):
        return 1 / (1 - u) if observed else 1.0

    for i in range(len(y)):
        survival = interp1d(np.append(0, curves.times), np.append(1, curves.probabilities[i]))
        last = curves.times[-1]
        stop = 1 - float(survival(min(y.time[i] if observed else y.censoring_time[i], last)))
        own = np.array([area(lambda u, h=h: h(np.asarray(u)) * density(u), 0, stop) for h in LEGENDRE])
        covariance += [
            [area(lambda u, g=g, h=h: g(np.asarray(u)) * h(np.asarray(u)) * density(u), 0, stop) for g in LEGENDRE]
            for h in LEGENDRE
        ]
        own_bins = np.array([area(density, k / n_bins, min((k + 1) / n_bins, stop)) for k in range(n_bins)])
        if y.event[i] and y.time[i] <= last:
            risk = 1 - float(survival(y.time[i]))
            scores = [h(np.asarray(risk)) for h in LEGENDRE]
            total += scores
            of_events += np.outer(scores, scores)
            seen[min(int(risk * n_bins), n_bins - 1)] += 1
        total -= own
        expected += own_bins
        bin_covariance += np.diag(own_bins)
        if not observed:
            covariance -= np.outer(own, own)
            bin_covariance -= np.outer(own_bins, own_bins)
    if observed:
        covariance = (covariance + of_events) / 2
    return total, covariance, seen, expected, bin_covariance


@every_pair(
    ties=[False, True],
    interpolation=["linear", "step", "constant-hazard"],
    test=["smooth", "martingale", "lost", "unknown"],
)
def test_intervals_are_the_literal_ones(test, interpolation, ties):
    y, curves = case(
        3,
        120,
        shape=0.8,
        n_times=9,
        interpolation=interpolation,
        dropping=0.1 * (test == "lost"),
        width=1.5 if ties else None,
    )
    if test == "unknown":
        y = ss.Outcomes(y.time, y.event)
    found = ss.distribution_calibration(y, curves, test="martingale" if test == "martingale" else "auto", n_bins=5)
    assert found.test == ("smooth" if test == "smooth" else "martingale")
    check_against(literal_intervals(y, curves, test != "smooth", 5), found)


@pytest.mark.parametrize("lost", [False, True])
def test_continuous_curves_are_the_literal_ones(lost):
    y, curves = case(4, 60, n_times=30, dropping=0.1 * lost)
    found = ss.distribution_calibration(y, curves, form="continuous", n_bins=5)
    check_against(literal_continuous(y, curves, lost, 5), found)


def check_against(literal, found):
    total, covariance, seen, expected, bin_covariance = literal
    assert found.statistic == pytest.approx(total @ np.linalg.solve(covariance, total), rel=1e-9)
    assert found.df == 4
    assert found.p_value == pytest.approx(stats.chi2.sf(found.statistic, 4), rel=1e-10)
    z = np.linalg.solve(np.linalg.cholesky(covariance), total)
    np.testing.assert_allclose([one.z for one in found.components], z, atol=1e-9)
    assert found.statistic == pytest.approx(np.sum(z**2), rel=1e-9)
    np.testing.assert_array_equal(found.bins.observed, seen)
    np.testing.assert_allclose(found.bins.expected, expected, atol=1e-10)
    inside = (found.bins.lower <= 1) & (found.bins.upper >= 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        near = np.abs(seen - expected) / np.sqrt(np.diag(bin_covariance)) <= stats.norm.ppf(0.975)
    np.testing.assert_array_equal(inside[expected > 0], near[expected > 0])


def test_the_test_of_bins_is_the_literal_one():
    y, curves = case(5, 300, follow_up=SHORT)
    _, _, seen, expected, covariance = literal_intervals(y, curves, False, 10)
    pool = pooling(expected, 5)
    assert (pool @ expected >= 5).all()
    assert (pool.sum(axis=0) == 1).all()
    found = ss.distribution_calibration(y, curves, test="bins")
    deviation = pool @ (seen - expected)
    assert found.statistic == pytest.approx(
        deviation @ np.linalg.pinv(pool @ covariance @ pool.T) @ deviation, rel=1e-9
    )
    assert (found.test, found.df) == ("bins", len(pool))
    smooth = ss.distribution_calibration(y, curves)
    assert found.components == smooth.components


def test_groups_are_the_literal_ones():
    y, curves = case(6, 200)
    groups = np.arange(200) % 25
    by_group = np.array([literal_intervals(y[groups == g], curves[groups == g], False, 10)[0] for g in range(25)])
    total, covariance = by_group.sum(axis=0), by_group.T @ by_group
    found = ss.distribution_calibration(y, curves, groups=groups)
    assert found.statistic == pytest.approx(total @ np.linalg.solve(covariance, total), rel=1e-9)
    assert found.n_groups == 25
    alone = ss.distribution_calibration(y, curves)
    np.testing.assert_array_equal(alone.bins.observed, found.bins.observed)
    assert (alone.bins.upper != found.bins.upper).any()
    few = found.bins.expected < 10
    assert 0 < few.sum() < few.size
    np.testing.assert_array_equal(np.isnan(found.bins.lower), few)  # groups don't tell the variance of so few
    np.testing.assert_array_equal(np.isnan(found.bins.upper), few)


def test_small_risks_lose_no_digits():
    # Legendre's polynomials on [0, 1] are collinear to six digits where risks stay below two per cent
    y, curves = case(7, 4000)
    rare = ss.SurvivalCurves(1 - (1 - curves.probabilities) / 50, curves.times)
    y = ss.Outcomes(y.time, y.event & (np.arange(4000) % 50 == 0), y.time)
    found = ss.distribution_calibration(y, rare)
    total, covariance, *_ = literal_intervals(y, rare, False, 10)
    assert found.df == 4
    assert found.statistic == pytest.approx(total @ np.linalg.solve(covariance, total), rel=1e-4)


# What holds


def test_curves_that_end_early_are_followed_to_their_end():
    y, curves = case(10, 300)
    short = ss.SurvivalCurves(curves.probabilities[:, :4], curves.times[:4])
    held = ss.SurvivalCurves(curves.probabilities[:, :4], curves.times[:4], extrapolation="hold")
    cut = ss.distribution_calibration(y.until(curves.times[3]), curves)
    for one in (short, held):
        found = ss.distribution_calibration(y, one)
        assert found.statistic == pytest.approx(cut.statistic, rel=1e-12)
        assert any("not counted" in note for note in found.notes)
    endless = ss.Outcomes(y.time, np.ones(300), np.full(300, np.inf))
    assert ss.distribution_calibration(endless, short).test == "smooth"


def test_torch_tensors_are_taken():
    torch = pytest.importorskip("torch")
    y, curves = case(11, 100)
    moved = curves.to("cpu")
    assert isinstance(moved.probabilities, torch.Tensor)
    assert ss.distribution_calibration(y, moved).statistic == ss.distribution_calibration(y, curves).statistic


def test_the_form_and_the_test_that_were_used_are_told():
    y, curves = case(12, 300)
    found = ss.distribution_calibration(y, curves)
    assert (found.test, found.exposure, found.form, found.reliable) == ("smooth", "known", "intervals", True)
    assert "no sign that the curves are wrong" in repr(found)
    y, curves = case(12, 300, dropping=0.05)
    found = ss.distribution_calibration(y, curves)
    assert (found.test, found.exposure) == ("martingale", "observed")
    assert "dropped out: events are expected during follow-up" in found.notes[0]
    unknown = ss.distribution_calibration(ss.Outcomes(y.time, y.event), curves)
    assert "censoring_time is unknown" in unknown.notes[0]
    asked = ss.distribution_calibration(y, curves, test="martingale")
    assert not any("martingale" in note for note in asked.notes)
    assert asked.statistic == found.statistic


# Where there is too little, or nothing


def test_too_little_for_a_test_is_told():
    y, curves = case(14, 500)
    few = ss.distribution_calibration(y[:2], curves[:2])
    assert math.isnan(few.statistic)
    assert math.isnan(few.p_value)
    assert "expect only" in few.reason
    flat = ss.distribution_calibration(y, ss.SurvivalCurves(np.ones((500, 2)), [1, 5]))
    assert "expect no event during follow-up" in flat.reason
    assert np.isnan(flat.bins.ratio).all()
    grouped = ss.distribution_calibration(y, curves, groups=np.arange(500) % 9)
    assert grouped.reason == "9 groups are too few: a test needs 10"
    assert all(found.conclusion.startswith("no test: ") for found in (few, flat, grouped))
    rough = ss.distribution_calibration(y, curves, groups=np.arange(500) % 12)
    assert not rough.reliable
    assert "too few events for a reliable test" in repr(rough)
    y = ss.Outcomes([1.0, 1.5], [0, 1], [1.0, 1.8])
    for test in ("auto", "martingale"):  # of a whole interval, no individual is followed
        found = ss.distribution_calibration(y, ss.SurvivalCurves([[0.5], [0.5]], [2]), test=test)
        assert (found.observed, found.expected) == (0, 0)
        assert found.reason is not None


def test_everybody_followed_to_the_end_leaves_three_degrees_of_freedom():
    rng = np.random.default_rng(16)
    rate, times = rng.gamma(2, 0.5, 400), np.linspace(0.5, 30, 60)
    survival = np.exp(-rate[:, None] * times)
    survival[:, -1] = 0.0
    star = rng.exponential(1 / rate)
    y = ss.Outcomes(np.minimum(star, 30), np.ones(400), np.full(400, 50.0))
    found = ss.distribution_calibration(y, ss.SurvivalCurves(survival, times))
    assert found.df == 3  # how many have the event is no question
    assert (found.components[0].words, found.expected) == ("unknown", pytest.approx(400))
    assert found.p_value > 0.001
    # one who outlives a survival of zero can't be
    outlived = ss.Outcomes(np.append(y.time[1:], 50), np.append(y.event[1:], 0), y.censoring_time)
    found = ss.distribution_calibration(outlived, ss.SurvivalCurves(survival, times))
    assert (found.statistic, found.p_value) == (math.inf, 0.0)
    assert found.conclusion == "the curves are wrong: what happened has probability zero"
    assert found.notes[-1].startswith("1 individual had the event where the curve is flat, or outlived")


def test_events_at_time_zero():
    y = ss.Outcomes(np.repeat([0.0, 2.0], [20, 80]), np.repeat([1, 0], [20, 80]), np.full(100, 2.0))
    found = ss.distribution_calibration(y, ss.SurvivalCurves(np.full((100, 2), 0.8), [0, 2]))
    assert (found.observed, found.expected) == (20, pytest.approx(20))
    assert found.statistic == pytest.approx(0, abs=1e-12)


def test_bad_input_is_refused():
    y, curves = case(18, 50, dropping=0.3)
    for settings, message in (
        ({"test": "exact"}, "test must be one of 'auto', 'smooth'"),
        ({"test": "smooth"}, r"test='smooth' needs each individual's exposure, but \d+ of 50 dropped"),
        ({"test": "smooth", "y": ss.Outcomes(y.time, y.event)}, "but censoring_time is unknown"),
        (
            {"form": "continuous", "curves": case(18, 50, interpolation="step")[1]},
            "form='continuous' needs curves that fall between grid points",
        ),
        ({"n_bins": 10**9}, "n_bins must be at most 1000"),
        ({"curves": curves[:49]}, "curves has length 49, but y has length 50"),
    ):
        with pytest.raises(ss.InputError, match=message):
            ss.distribution_calibration(**{"y": y, "curves": curves, **settings})


@pytest.mark.parametrize("form", ["intervals", "continuous"])
def test_curves_that_rise_are_no_distributions(form):
    y, curves = case(19, 2000, n_times=100)
    rising = curves.probabilities.copy()
    rising[1500, 1] = rising[1500, 0] + 1e-3
    kept = ss.SurvivalCurves(rising, curves.times, monotone="keep")
    with pytest.raises(ss.InputError, match=r"curves must not rise with time .* row 1500 does at time 0\.36"):
        ss.distribution_calibration(y, kept, form=form)
    ss.distribution_calibration(y, ss.SurvivalCurves(rising, curves.times, monotone="enforce"), form=form)

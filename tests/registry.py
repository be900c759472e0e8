"""Every metric and every weighting, with data they accept and the oracle they must agree with.

A new one joins all tests in test_common.py by one line here; test_registry.py fails until it has that line.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from hypothesis import strategies as st

import oracle
import survscore as ss

#: What has settings of its own is asked for with these.
ASKED: dict[str, Any] = {"net_benefit": ss.NetBenefit(0.3)}


def _scored_by(name):
    return lambda y, curves, **settings: ss.score_all(y, curves, metric=ASKED.get(name, name), **settings)[0]


LOSSES = {"brier": ss.brier_score, "log": ss.log_loss}
#: What regressions are fitted for: they need more individuals than a handful.
CURVED = ("miscalibration", "ici", "e50", "e90")
FITTED = {name: _scored_by(name) for name in ("slope", "in_the_large", *CURVED)}
#: What the smallest of problems have.
UNFITTED = {**LOSSES, "auc": ss.auc, "oe": _scored_by("oe"), "net_benefit": _scored_by("net_benefit")}
#: The literal version of each metric is `oracle.metric`.
METRICS = {**UNFITTED, **FITTED}


def _read(curves, i, t, reader=oracle.survival_at):
    return reader(curves.times, curves.probabilities[i], t, curves.interpolation, curves.extrapolation)


@dataclass(frozen=True)
class Problem:
    """Outcomes, predictions, curves for G and for the population, training data, and evaluation times."""

    y: ss.Outcomes
    curves: ss.SurvivalCurves
    censoring: ss.SurvivalCurves
    training: ss.Outcomes
    times: np.ndarray

    def take(self, rows: Any) -> Problem:
        return Problem(self.y[rows], self.curves[rows], self.censoring[rows], self.training, self.times)

    def pi(self, t: float) -> list[float]:
        return [_read(self.curves, i, t) for i in range(len(self.curves))]

    def G(self, i: int, t: float) -> float:
        return _read(self.censoring, i, t)

    def G_before(self, i: int, t: float) -> float:
        return _read(self.censoring, i, t, oracle.survival_before)

    def ends_before(self, t: float) -> bool:
        """Whether the curves of G say nothing at t."""
        return bool(self.censoring.extrapolation == "nan" and t > self.censoring.times[-1])


Weighted = Any  # what the oracle's weights are: pairs and who belongs, or None


@dataclass(frozen=True)
class Case:
    """A weighting: how to ask the library for it, and how it is defined.

    `definition(problem, t, mass, training_mass)` is literal; masses say how often each individual counts.
    """

    name: str
    weighting: Callable[[Problem], Any]
    definition: Callable[..., Weighted]
    data: str = "any"  # or "drop-outs", "administrative", "uncensored": what the weighting accepts
    by_n: bool = False
    #: Whether scores may be of one of several causes.
    of_causes: bool = True

    @property
    def projects(self) -> bool:
        """Whether statuses may be fractions."""
        return self.name.startswith("projected")

    def weights(self, problem: Problem, t: float, mass: Any = None, training_mass: Any = None) -> Weighted:
        """The weights by definition; an event of another cause is a status without the event of interest."""
        return oracle.of_cause(self.definition(problem, t, mass, training_mass), problem.y.event_of_interest)

    def problems(self, **sizes: Any) -> st.SearchStrategy[Problem]:
        """Problems that the weighting accepts, half of them of one of several causes."""
        return problems(self.data, causes=self.of_causes, **sizes)

    def expected(self, metric: str, problem: Problem) -> Callable[[float], float]:
        return lambda t: oracle.metric(metric, self.weights(problem, t), problem.pi(t), by_n=self.by_n)


@dataclass(frozen=True)
class Seen:
    """How a weighting sees histories: `seen(problem, mass, training_mass)` returns until, G(t) and G(t-)."""

    name: str
    weighting: Callable[[Problem], Any]
    seen: Callable[..., tuple[Any, Callable[[float], Any], Callable[[float], Any]]]
    data: str = "any"

    def problems(self, metric: str = "", **sizes: Any) -> st.SearchStrategy[Problem]:
        """Problems that the weighting accepts; of one cause where the metric needs no weights, or has them for it."""
        whole = self.data in ("uncensored", "administrative")
        return problems(self.data, causes=whole or metric.startswith("concordance"), **sizes)


def _seen(source=None, *, ends=True, start=None):
    def seen(p, mass=None, training_mass=None):
        until = p.y.censoring_time if ends else np.full(len(p.y), np.inf)
        if start is not None:
            until = np.where(until >= start(p), until, -np.inf)
        scored = source == "scored"
        if source is None or (ends and not p.y.dropped_out.any()):
            return until, lambda t: 1.0, lambda t: 1.0
        y, masses = (p.y, mass) if scored else (p.training, training_mass)
        at, before = oracle.product_limit(list(y.time), list(y.dropped_out if ends else ~y.event), masses)
        return until, at, before

    return seen


SEEN = [
    Seen("uncensored", lambda p: "uncensored", _seen(ends=False), data="uncensored"),
    Seen("administrative", lambda p: "administrative", _seen("scored"), data="drop-outs"),
    Seen("administrative, nobody lost", lambda p: "administrative", _seen(), data="administrative"),
    Seen("administrative training", lambda p: ss.Administrative(dropout=p.training), _seen("training"), "drop-outs"),
    Seen(
        "administrative fixed",
        lambda p: ss.Administrative(population="fixed"),
        _seen("scored", start=lambda p: p.times[-1]),
        "drop-outs",
    ),
    Seen(
        "administrative from 3",
        lambda p: ss.Administrative(population=3),
        _seen("scored", start=lambda p: 3),
        "drop-outs",
    ),
    Seen("ipcw", lambda p: "ipcw", _seen("scored", ends=False)),
    Seen("ipcw training", lambda p: ss.IPCW(p.training), _seen("training", ends=False)),
]


def _concordance(kind, risk="final"):
    def expected(p, tau, until, G, G_before, mass=None):
        c = p.curves

        def risk_at(i, s):
            if risk == "final":
                return -_read(c, i, tau)
            if c.interpolation == "step":
                return -_read(c, i, s)
            return -_read(c, i, min([g for g in c.times if g >= s] + [tau]) if s > 0 else 0.0)

        strata = strata_of(p) if kind == "weighted" else None
        own = p.y.event_of_interest
        return oracle.concordance(
            p.y.time, own, until, tau, risk_at, kind, G_before, strata, mass, others=p.y.event & ~own
        )

    return expected


def _crps(p, tau, until, G, G_before, mass=None):
    knots = [*p.curves.times, *p.training.time]
    pi = lambda i, s: _read(p.curves, i, s)  # noqa: E731
    return oracle.crps(*_own_history(p, until), until, tau, pi, knots, G, G_before, mass)


def _log_score(p, tau, until, G, G_before, mass=None):
    c = p.curves
    return oracle.log_score(
        *_own_history(p, until), until, tau, c.times, c.probabilities, c.interpolation, c.extrapolation, mass
    )


def _own_history(p, until):
    """When each left, and whether with the event of interest: who had another one stays as long as followed."""
    own = p.y.event_of_interest
    return np.where(p.y.event & ~own, until, p.y.time), own


def strata_of(p):
    """Two strata; labels go with the individuals, so that they can be picked."""
    return [int(10 * row[0]) % 2 for row in p.censoring.probabilities]


def _training_strata(p):
    """Strata of the training data; of the third, where there is one, nobody is scored."""
    return [i % 3 for i in range(len(p.training))]


def _strata_in_training(p):
    """Strata of the scored individuals, none that the training data lack."""
    return [min(label, len(p.training) - 1) for label in strata_of(p)]


#: Metrics of histories: how to ask for them, and ``expected(problem, tau, until, G, G_before, mass)``.
HISTORIES = {
    "concordance": (lambda p: ss.Concordance(), _concordance("cohort")),
    "concordance (pooled)": (lambda p: ss.Concordance("pooled"), _concordance("pooled")),
    "concordance (weighted)": (lambda p: ss.Concordance("weighted", strata=strata_of(p)), _concordance("weighted")),
    "concordance (harrell)": (lambda p: ss.Concordance("harrell"), _concordance("harrell")),
    "concordance (antolini)": (lambda p: ss.Concordance(risk="antolini"), _concordance("cohort", "antolini")),
    "concordance (weighted, antolini)": (
        lambda p: ss.Concordance("weighted", "antolini", strata=strata_of(p)),
        _concordance("weighted", "antolini"),
    ),
    "crps": (lambda p: ss.CRPS(), _crps),
    "log_score": (lambda p: ss.LogScore(), _log_score),
}


def _estimated(mass, time, left):
    at, before = oracle.product_limit(list(time), list(left), mass)
    return (lambda i, t: at(t)), (lambda i, t: before(t))


def _by_stratum(p, source, leaves, masses):
    """Return G(i, t), G(i, t-), and the strata of the scored individuals."""
    fitted_on = p.y if source == "scored" else p.training
    scored = strata_of(p) if source == "scored" else _strata_in_training(p)
    fitted = scored if source == "scored" else _training_strata(p)
    return *oracle.stratified_product_limit(fitted_on.time, leaves(fitted_on), fitted, scored, masses), scored


def _zero(p, G, t, cap=np.inf):
    """Whether nobody can stand for the event-free of some stratum, even if nobody is asked to."""
    return any(oracle.inverse(G(i, t), cap) is None for i in range(len(p.y)))


def _ipcw(source, *, stratified=False, **settings):
    def weights(p, t, mass=None, training_mass=None):
        fitted_on, masses, strata = *((p.y, mass) if source == "scored" else (p.training, training_mass)), None
        if stratified:
            G, G_before, strata = _by_stratum(p, source, lambda y: ~y.event, masses)
        else:
            G, G_before = _estimated(masses, fitted_on.time, ~fitted_on.event)
        if _zero(p, G, t, settings.get("cap", np.inf)):
            return None
        return oracle.weights_ipcw(p.y.time, p.y.event, t, G, G_before, strata=strata, **settings)

    return weights


def _ipcw_given(G, G_before, **settings):
    def weights(p, t, mass=None, training_mass=None):
        return oracle.weights_ipcw(
            p.y.time, p.y.event, t, lambda i, t: G(p, i, t), lambda i, t: G_before(p, i, t), **settings
        )

    return weights


def _unless_curves_end(weights):
    # where the curves say nothing there is no score, even if nobody is event-free any more
    return lambda p, t, *masses: None if p.ends_before(t) else weights(p, t, *masses)


def one_curve(**settings):
    return ss.Administrative(dropout_strata=None, **settings)


def without_predictions(weighting):
    """Return one weighting, or several, as they are where predictions are not at hand."""
    if isinstance(weighting, (list, tuple)):
        return [without_predictions(one) for one in weighting]
    return (
        one_curve() if weighting == "administrative" else getattr(weighting, "without_predictions", lambda: weighting)()
    )


def _dropout_strata(p, times):
    y = p.y
    return oracle.dropout_strata(y.time, y.event, y.censoring_time, times, p.pi) if times.size else [0] * len(y)


def _admin(source=None, *, stratified=False, strata_by=None, followed_to=None, population=False, **settings):
    def weights(p, t, mass=None, training_mass=None):
        y = p.y
        Gd = Gd_before = strata = None
        if stratified:
            masses = mass if source == "scored" else training_mass
            Gd, Gd_before, strata = _by_stratum(p, source, lambda y: y.dropped_out, masses)
        elif strata_by is not None:
            strata = strata_by(p, p.times[p.curves.reaches(p.times)])
            Gd, Gd_before = oracle.stratified_product_limit(y.time, y.dropped_out, strata, strata, mass)
        elif source == "scored":
            Gd, Gd_before = _estimated(mass, y.time, y.dropped_out)
        elif source == "training":
            Gd, Gd_before = _estimated(training_mass, p.training.time, p.training.dropped_out)
        elif source == "curves":
            Gd, Gd_before = p.G, p.G_before
        elif source == "function":
            Gd = Gd_before = lambda i, t: 2.0 ** (-t / 8)
        common = Gd is not None and source != "curves" and y.dropped_out.any()
        if common and _zero(p, Gd, t, settings.get("cap", np.inf)):
            return None
        lasting = None if followed_to is None else lambda i, t: y.censoring_time[i] >= followed_to(p)
        more = {"eligible": lasting, "population": p.G if population else None, "strata": strata, **settings}
        return oracle.weights_administrative(y.time, y.event, y.censoring_time, t, Gd, Gd_before, **more)

    return weights


def _projected(strata=None, theta=1.0):
    """Statuses by the curves of strata, or of each individual if these are "curves"."""

    def weights(p, t, mass=None, training_mass=None):
        y, codes = p.y, projected_strata(p, strata)
        share = p.G if strata == "curves" else oracle.stratified_share(y.time, y.event, codes, mass)
        stays = None
        if len(y.causes) > 1:
            own = y.event_of_interest
            both = oracle.stays_without(y.time, own, y.event & ~own, codes, mass, theta)
            stays = lambda i, c, t: both(i, c, t)[0]  # noqa: E731
        return oracle.weights_projected(y.time, y.event, t, share, theta, stays=stays)

    return weights


def projected_strata(p, strata):
    """Return the strata that statuses are projected in."""
    codes = [0] * len(p.y)
    if strata == "ranks":
        times = p.times[p.curves.reaches(p.times)]
        if times.size:
            codes = oracle.rank_strata(p.y.time, p.y.event, p.y.censoring_time, times, [p.pi])
    return strata_of(p) if strata == "given" else codes


def _half(p, i, t):
    return 2.0 ** (-t / 8)


LOST = "drop-outs"

CASES = [
    Case(
        "uncensored",
        lambda p: "uncensored",
        lambda p, t, *_: oracle.weights_uncensored(p.y.time, p.y.event, t),
        "uncensored",
    ),
    Case("administrative", lambda p: one_curve(), _admin("scored"), LOST),
    Case(
        "administrative own ranks",
        lambda p: "administrative",
        _admin("scored", strata_by=_dropout_strata),
        LOST,
    ),
    Case(
        "administrative own ranks capped / n",
        lambda p: ss.Administrative(max_weight=1.2718, normalize="n"),
        _admin("scored", strata_by=_dropout_strata, cap=1.2718),
        LOST,
        by_n=True,
    ),
    Case("administrative, nobody lost", lambda p: "administrative", _admin(), "administrative"),
    Case("administrative / n", lambda p: one_curve(normalize="n"), _admin("scored"), LOST, by_n=True),
    Case("administrative capped", lambda p: one_curve(max_weight=1.2718), _admin("scored", cap=1.2718), LOST),
    Case("administrative training", lambda p: ss.Administrative(dropout=p.training), _admin("training"), LOST),
    Case(
        "administrative training capped / n",
        lambda p: ss.Administrative(dropout=p.training, max_weight=1.2718, normalize="n"),
        _admin("training", cap=1.2718),
        LOST,
        by_n=True,
    ),
    Case(
        "administrative curves",
        lambda p: ss.Administrative(dropout=p.censoring),
        _unless_curves_end(_admin("curves")),
        "lost",
    ),
    Case(
        "administrative function",
        lambda p: ss.Administrative(dropout=lambda t: np.exp2(-np.asarray(t) / 8)),
        _admin("function"),
        LOST,
    ),
    Case(
        "administrative fixed",
        lambda p: one_curve(population="fixed"),
        _admin("scored", followed_to=lambda p: max([p.times[0], *p.times[p.curves.reaches(p.times)]])),
        LOST,
    ),
    Case("administrative from 3", lambda p: one_curve(population=3), _admin("scored", followed_to=lambda p: 3), LOST),
    Case(
        "administrative population",
        lambda p: ss.Administrative(population=p.censoring),
        _unless_curves_end(_admin("scored", population=True)),
        LOST,
    ),
    Case(
        "administrative strata",
        lambda p: ss.Administrative(dropout_strata=strata_of(p)),
        _admin("scored", stratified=True),
        LOST,
    ),
    Case(
        "administrative strata capped",
        lambda p: ss.Administrative(dropout_strata=strata_of(p), max_weight=1.2718),
        _admin("scored", stratified=True, cap=1.2718),
        LOST,
    ),
    Case(
        "administrative strata training / n",
        lambda p: ss.Administrative(
            p.training, dropout_strata=_strata_in_training(p), training_strata=_training_strata(p), normalize="n"
        ),
        _admin("training", stratified=True),
        LOST,
        by_n=True,
    ),
    Case("projected", lambda p: ss.Projected(min_followed=1), _projected("ranks")),
    Case(
        "projected mean ranks",
        lambda p: ss.Projected(strata="mean-ranks", theta=0.7, min_followed=1),
        _projected("ranks", 0.7),
    ),
    Case("projected one stratum", lambda p: ss.Projected(strata=None, min_followed=1), _projected()),
    Case(
        "projected strata",
        lambda p: ss.Projected(strata=strata_of(p), theta=1.5, min_followed=1),
        _projected("given", 1.5),
        LOST,
    ),
    Case(
        "projected curves",
        lambda p: ss.Projected(reference=p.censoring, theta=0.5, min_followed=1),
        _unless_curves_end(_projected("curves", 0.5)),
        of_causes=False,
    ),
    Case("ipcw", lambda p: "ipcw", _ipcw("scored")),
    Case("ipcw / n", lambda p: ss.IPCW(normalize="n"), _ipcw("scored"), by_n=True),
    Case("ipcw capped", lambda p: ss.IPCW(max_weight=1.5321), _ipcw("scored", cap=1.5321)),
    Case("ipcw training", lambda p: ss.IPCW(p.training), _ipcw("training")),
    Case(
        "ipcw known",
        lambda p: ss.IPCW("known"),
        _ipcw_given(lambda p, i, t: 1.0, lambda p, i, t: 1.0),
        "administrative",
    ),
    Case("ipcw curves", lambda p: ss.IPCW(p.censoring), _unless_curves_end(_ipcw_given(Problem.G, Problem.G_before))),
    Case(
        "ipcw curves capped",
        lambda p: ss.IPCW(p.censoring, max_weight=3),
        _unless_curves_end(_ipcw_given(Problem.G, Problem.G_before, cap=3)),
    ),
    Case("ipcw strata", lambda p: ss.IPCW(strata=strata_of(p)), _ipcw("scored", stratified=True)),
    Case(
        "ipcw strata capped / n",
        lambda p: ss.IPCW(strata=strata_of(p), max_weight=1.5321, normalize="n"),
        _ipcw("scored", stratified=True, cap=1.5321),
        by_n=True,
    ),
    Case(
        "ipcw strata training",
        lambda p: ss.IPCW(p.training, strata=_strata_in_training(p), training_strata=_training_strata(p)),
        _ipcw("training", stratified=True),
    ),
    Case("ipcw function", lambda p: ss.IPCW(lambda t: np.exp2(-np.asarray(t) / 8)), _ipcw_given(_half, _half)),
]


def assert_same(found, expected, rtol=1e-10):
    """Compare everything that evaluations return."""

    def close(one, other, names, rtol, atol=0.0):
        for name in names:
            value, wanted = (getattr(of, name) for of in (one, other))
            assert (value is None) == (wanted is None), name
            if value is not None:
                size = np.nanmax(np.abs(wanted), initial=0.0)  # of what is added up and taken off
                np.testing.assert_allclose(value, wanted, rtol=rtol, atol=atol * (1e-3 + size), err_msg=name)

    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert (one.metric, one.undefined) == (other.metric, other.undefined)
        close(one, other, ["scores"], rtol, 1e-15)
        counts = ["n_counted", "n_effective", "n_events", "n_event_free"]
        close(one.support, other.support, counts, rtol, 1e-12)
        close(one.support.units, other.support.units, ["counted", "largest_share", "degrees"], 1e3 * rtol)
        several = {
            "moments": ["pointwise", "averages", "of_averages", "over_time"],
            "bounds": ["known", "lower", "upper", "of_averages"],
            "parts": ["observed", "projected"],
            "by_theta": ["scores", "predicted"],
        }
        for name, fields in several.items():
            results = [getattr(of, name) for of in (one, other)]
            assert (results[0] is None) == (results[1] is None), name
            if results[0] is not None:
                close(*results, fields, 1e3 * rtol if name == "moments" else 10 * rtol, 1e-13)


# Half-integers up to 6 make ties of all kinds: T = t, T = C*, T = t = C*, grid points at each of them.
# Whole arrays are read off one string of bytes: to draw their numbers one by one takes longer than all that is tested.
HALVES = st.integers(0, 12).map(lambda k: k / 2)
GRIDS = st.integers(1, (1 << 13) - 1).map(lambda bits: np.flatnonzero(bits >> np.arange(13) & 1) / 2)
DTYPES = st.sampled_from([np.float32, np.float64])
INTERPOLATIONS = st.sampled_from(["linear", "step", "constant-hazard"])
EXTRAPOLATIONS = st.sampled_from(["hold", "nan"])
#: Where formulas break: both ends, and the closest to either that single precision has.
ODD = np.array([0.0, 1.0, 1 - 2.0**-24, 2.0**-149, 2.0**-126, 2.0**-24, 0.5])


@cache
def halves_of(n):
    """Return a strategy of arrays of half-integers up to 6."""
    return st.binary(min_size=n, max_size=n).map(lambda drawn: np.frombuffer(drawn, np.uint8) % 13 / 2)


@cache
def probabilities_of(shape, lowest=0.0):
    """Return a strategy of matrices from `lowest` to 1, in numbers that single precision has, a quarter of them odd."""

    def read(drawn):
        coarse, fine = np.frombuffer(drawn, np.uint8).astype(int).reshape(2, *shape)
        plain = lowest + (1 - lowest) * (256 * coarse + fine) / 65535
        return np.where(fine % 4 == 0, np.maximum(ODD, lowest)[coarse % ODD.size], plain).astype(np.float32)

    size = 2 * shape[0] * shape[1]
    return st.binary(min_size=size, max_size=size).map(read)


@st.composite
def curves_of(draw, n, *, lowest=0.0, dtypes=DTYPES):
    grid = draw(GRIDS)
    values = draw(probabilities_of((n, grid.size), lowest))
    probabilities = -np.sort(-values.astype(draw(dtypes)), axis=1)
    return ss.SurvivalCurves(
        probabilities, grid, interpolation=draw(INTERPOLATIONS), extrapolation=draw(EXTRAPOLATIONS)
    )


@st.composite
def outcomes_of(draw, n, data="any", causes=False):
    """Outcomes of one kind of event; with `causes`, half of them of one of up to three causes."""
    y = draw(_outcomes_of_one_kind(n, data))
    names = draw(st.sampled_from([(), ("a", "b"), ("a", "b", "c")])) if causes else ()
    if not names:
        return y
    kinds = draw(halves_of(n)).astype(int) % len(names) + 1
    return with_causes(y, kinds, draw(st.sampled_from(names)), names)


def with_causes(y, kinds, interest, names=("a", "b")):
    """The same outcomes with a cause of each event, of which one is of interest."""
    codes = {name: code for code, name in enumerate(names, 1)}
    return ss.Outcomes(y.time, y.event * kinds, y.censoring_time, causes=codes).for_cause(interest)


@st.composite
def _outcomes_of_one_kind(draw, n, data="any"):
    star, end = draw(halves_of(n)), draw(halves_of(n))
    if data == "uncensored":  # without event only where followed to the end
        end = np.full(n, 6.5)
        star = np.where(draw(st.booleans()), star, np.where(star > 4, np.inf, star))
    event, time = star <= end, np.minimum(star, end)
    if data in ("drop-outs", "lost"):
        dropping = draw(halves_of(n))
        event, time = event & (star <= dropping), np.minimum(time, dropping)
        if data == "lost" and not (~event & (time < end)).any():  # the first, whoever it is
            time, event, end = time.copy(), event.copy(), end.copy()
            event[0], end[0] = False, time[0] + 0.5
    if data == "any" and draw(st.booleans()):
        return ss.Outcomes(time, event)
    return ss.Outcomes(time, event, end)


@st.composite
def problems(draw, data="any", min_size=1, max_size=12, causes=False):
    n = draw(st.integers(min_size, max_size))
    dtype = st.just(draw(DTYPES))  # of both, since loops are compiled for each pair of types
    return Problem(
        y=draw(outcomes_of(n, data, causes)),
        curves=draw(curves_of(n, dtypes=dtype)),
        censoring=draw(curves_of(n, dtypes=dtype)),
        training=draw(_outcomes_of_one_kind(draw(st.integers(1, 8)), "lost")),
        times=draw(GRIDS),
    )


def fitted_problem(data, seed, n=40, *, causes=False):
    """A problem with enough of each status for regressions, with tied times and predictions."""
    problem = random_problem(n, 5, seed, lost=data in ("drop-outs", "lost"))
    y = problem.y
    if data == "uncensored":
        y = ss.Outcomes(np.random.default_rng(seed).exponential(60, n).round(1), np.ones(n))
    else:
        y = ss.Outcomes(np.ceil(y.time / 3) * 3, y.event, np.ceil(y.censoring_time / 3) * 3)
    if causes:
        y = with_causes(y, 1 + (np.random.default_rng(seed).random(n) < 0.4), "a")
    curves = ss.SurvivalCurves(problem.curves.probabilities.round(2), problem.curves.times, extrapolation="hold")
    return replace(problem, y=y, curves=curves, times=np.array([15.0, 30.0]))


def random_problem(n, m, seed=0, dtype=np.float64, same_grid=True, lost=False, causes=False):
    """A larger problem, without hypothesis; administrative data, with drop-outs or without."""
    rng = np.random.default_rng(seed)
    star, end = rng.exponential(60, n).round(1), rng.uniform(1, 100, n).round(1)
    dropping = rng.exponential(150, n).round(1) if lost else np.full(n, np.inf)
    time = np.minimum(np.minimum(star, end), dropping)
    y = ss.Outcomes(time, (star <= end) & (star <= dropping), end)
    training = y[: n // 2]
    if causes:
        y = with_causes(y, rng.integers(1, 3, n), "b")
    grid = np.linspace(1, 100, m)

    def curves(interpolation, lowest=0.0):
        rate = rng.gamma(2, 1 / 120, (n, 1))
        values = lowest + (1 - lowest) * np.exp(-rate * grid)
        return ss.SurvivalCurves(values.astype(dtype), grid, interpolation=interpolation, extrapolation="hold")

    times = grid if same_grid else np.linspace(0, 110, m // 2 + 3)
    return Problem(y, curves("linear"), curves("step", 0.2), training, times)

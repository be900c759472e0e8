"""Data that end on one date, with what honest predictions may know of the calendar, and predictions that leak."""

from dataclasses import dataclass

import numpy as np
from scipy.stats import norm
from sklearn.linear_model import PoissonRegressor

import survscore as ss
from survscore.engine.null import KaplanMeierNull

END = 100.0
TIMES = np.arange(1.0, END + 1)
BIN = 10  # units of time per row of the regression


@dataclass(frozen=True)
class CalendarStudy:
    """Hazards by age, risk, calendar date and date of entry.

    trend: by which factor the hazard changes over 100 units of calendar time; jump: by which it changes on the cut-off
    date, and wave: by which it changes 15 units before; cohort: by how much the latest starters are riskier than the
    earliest; r2: which share of the variance of C* the covariate tells.
    """

    hazard: float = 0.008
    trend: float = 1.0
    jump: float = 1.0
    cohort: float = 1.0
    r2: float = 0.8
    drop_out: float = 0.0
    wave: float = 1.0

    def sample(self, n, seed):
        rng = np.random.default_rng(seed)
        told = rng.uniform(10, 90, n)
        noise = np.sqrt(80.0**2 / 12 * (1 - self.r2) / self.r2)
        end = np.clip(told + noise * rng.standard_normal(n), 1.0, None)
        risk = rng.standard_normal(n)
        hazards = self.hazards(risk, end)
        exponential = rng.exponential(size=n)
        event_time = self.event_times(hazards, exponential)
        left = rng.exponential(1 / self.drop_out, n) if self.drop_out else np.full(n, np.inf)
        seen = np.minimum(end, left)
        y = ss.Outcomes(np.minimum(event_time, seen), event_time <= seen, end)
        return CalendarSample(self, y, risk, told, noise, hazards)

    def hazards(self, risk, end):
        """Return everybody's hazard in each unit of time, (n, 100)."""
        calendar = TIMES - 0.5 - end[:, None]
        log_hazard = np.log(self.hazard) + 0.5 * risk[:, None] + np.log(self.trend) * calendar / 100
        log_hazard += np.log(self.jump) * (calendar > 0) + np.log(self.cohort) * (0.5 - end[:, None] / 100)
        return np.exp(log_hazard + np.log(self.wave) * (calendar > -15))

    @staticmethod
    def event_times(hazards, exponential):
        total = np.cumsum(hazards, axis=1)
        passed = (total < exponential[:, None]).sum(axis=1)
        happened = passed < END
        row, column = np.arange(len(total)), np.minimum(passed, int(END) - 1)
        before = total[row, column] - hazards[row, column]
        return np.where(happened, column + (exponential - before) / hazards[row, column], np.inf)


@dataclass(frozen=True, eq=False)
class CalendarSample:
    study: CalendarStudy
    y: ss.Outcomes
    risk: np.ndarray
    told: np.ndarray
    noise: float
    hazards: np.ndarray

    @property
    def truth(self):
        return ss.SurvivalCurves(np.exp(-np.cumsum(self.hazards, axis=1)), TIMES, interpolation="constant-hazard")

    def honest(self, train):
        """Return the truth, a wrong model, one curve for all and a regression on date of entry, fitted elsewhere."""
        wrong = 0.8 * self.study.hazard * np.exp(0.2 * self.risk)[:, None] * TIMES
        curve = KaplanMeierNull.of(train.y, scored=False).prediction(TIMES).at(TIMES)
        return {
            "truth": self.truth,
            "wrong": ss.SurvivalCurves(np.exp(-wrong), TIMES),
            "one curve": ss.SurvivalCurves(np.repeat(curve, len(self.y), axis=0), TIMES, interpolation="step"),
            "entry date": self.by_entry_date(train),
        }

    def by_entry_date(self, train):
        """Poisson regression of events by age (with its square), risk and date of entry."""
        starts = np.arange(0.0, END, BIN)
        exposure = np.clip(train.y.time[:, None] - starts, 0, BIN)
        events = train.y.event[:, None] & (train.y.time[:, None] > starts) & (train.y.time[:, None] <= starts + BIN)

        def design(sample, ages):
            age, entry = ages / 50 - 1, sample.y.censoring_time[:, None] / 50 - 1
            columns = (age, age**2, sample.risk[:, None], entry)
            return np.stack(np.broadcast_arrays(*columns), axis=-1)

        used = exposure > 0
        model = PoissonRegressor(alpha=0.0, tol=1e-8, max_iter=1000)
        model.fit(design(train, starts + BIN / 2)[used], (events / exposure.clip(1e-9))[used], exposure[used])
        hazards = model.predict(design(self, TIMES - 0.5).reshape(-1, 4)).reshape(self.hazards.shape)
        return ss.SurvivalCurves(np.exp(-np.cumsum(hazards, axis=1)), TIMES, interpolation="constant-hazard")

    def not_censored(self):
        """P(C* > t | X)."""
        return norm.sf(np.arange(END + 1), self.told[:, None], self.noise)

    def leaking(self):
        """What classifiers per horizon learn that drop the censored, given all data of the world: a / (a + b)."""
        survival = np.exp(-np.cumsum(self.hazards, axis=1))
        before = np.concatenate((np.ones((len(survival), 1)), survival[:, :-1]), axis=1)
        kept = self.not_censored()
        event_free = survival * kept[:, 1:]
        events = np.cumsum((before - survival) * (kept[:, 1:] + kept[:, :-1]) / 2, axis=1)
        return ss.SurvivalCurves(event_free / (event_free + events), TIMES, monotone="enforce")

    def product(self):
        """The truth times P(C* > t | X)."""
        return ss.SurvivalCurves(self.truth.probabilities * self.not_censored()[:, 1:], TIMES)

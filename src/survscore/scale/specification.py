"""What is to be computed of a data set, as plain data: it travels to other machines, and states carry it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survscore._utils.parallel import cached_property
from survscore._validation import InputError, as_times, check_choice, check_level, check_whole
from survscore.engine.inputs import one_or_more
from survscore.io.forms import Form
from survscore.io.tables import listed
from survscore.metrics import LOSSES, Brier, FollowUpMetric, Log, Loss, Metric, as_metric
from survscore.outcomes import Outcomes
from survscore.scale.columns import ModelColumns, OutcomeColumns, model_columns
from survscore.weighting import IPCW, Administrative, Projected, Uncensored, Weighting

if TYPE_CHECKING:
    import pyarrow as pa

#: Where weights are estimated from the data: sums by every unit of time, or by given times at which somebody leaves.
MOST_BINS = 1 << 14
RANK_ROWS = 100_000  # ranks among so many are off by .002 at most times
Bins = Literal["units"] | tuple[float, ...] | None


class BinsNeededError(InputError):
    """Some individuals drop out, and the specification has no bins to weight for that, or bins too coarse."""


@dataclass(frozen=True)
class Specification:
    """What is computed, of which columns.

    Attributes
    ----------
    outcomes : OutcomeColumns
    models : tuple of ModelColumns
    metrics : tuple of Loss
        None: the rows are wanted as they are.
    weightings : tuple of Weighting
    times : tuple of float
        The evaluation times.
    by : tuple of str
        Columns whose values make segments.
    groups : str, optional
        The column of labels of individuals that depend on each other.
    over_time : bool
        Whether second moments over time are kept, for errors of means over time.
    bins : {"units"}, tuple of float or None
        Where G is estimated from the data: by which times events are grouped. ``"units"``: times are whole numbers.
        None: nobody leaves, or it does not matter.
    strata : str, optional
        The column of the strata in which statuses are projected; None: what the weighting says.
    rank_rows : int
        Of how many rows, drawn at random, strata by ranks and preliminary estimates are made. What takes two passes is
        computed in memory of rows that are not more.
    """

    outcomes: OutcomeColumns
    models: tuple[ModelColumns, ...]
    metrics: tuple[Loss, ...]
    weightings: tuple[Weighting, ...]
    times: tuple[float, ...]
    by: tuple[str, ...] = ()
    groups: str | None = None
    over_time: bool = False
    bins: Bins = None
    level: float = 0.95
    strata: str | None = None
    rank_rows: int = RANK_ROWS

    version: ClassVar[int] = 2  # of the form of states

    def __post_init__(self) -> None:
        check_level(self.level)
        check_whole("rank_rows", self.rank_rows, 1000)
        for name in (*self.by, *(one for one in (self.groups, self.strata) if one is not None)):
            if not isinstance(name, str):
                raise InputError(f"by, groups and strata must be names of columns, not {name!r}")
        if sum(isinstance(one, Projected) for one in self.weightings) > 1:
            raise InputError("weighting names several projected ones: name one, which has strata and curves of its own")
        times = as_times(self.times)
        if self.bins is None or isinstance(self.bins, str):
            check_choice("bins", self.bins or "units", ("units",))
        elif not np.all(np.diff(self.bins, prepend=-np.inf, append=np.inf) > 0):
            raise InputError("bins must be times in rising order")
        for model in self.models:
            if not model.reaches(times):
                raise InputError(
                    f"times must be within the reach of all models: {model.name!r} ends at {model.grid[-1]:g}, and the "
                    f"last time is {times[-1]:g}; extrapolation='hold' holds its last value"
                )

    # Sizes

    @property
    def n_pairs(self) -> int:
        """How many variances there are: of every model, and of every difference."""
        return len(self.models) * (len(self.models) + 1) // 2

    @cached_property
    def at(self) -> NDArray[np.float64]:
        """The evaluation times as an array."""
        return np.array(self.times)

    @property
    def names(self) -> tuple[str, ...]:
        """The models."""
        return tuple(model.name for model in self.models)

    def columns(self, available: Sequence[str]) -> list[str]:
        """Return the columns that are needed, of those there are, each once."""
        several = [*self.outcomes.names(available), *(c for model in self.models for c in model.columns)]
        return list(dict.fromkeys([*several, *self.label_columns()]))

    def label_columns(self) -> list[str]:
        """Return the columns that hold labels: of segments, strata and groups."""
        return [*self.by, *(name for name in (self.strata, self.groups) if name is not None)]

    @property
    def projected(self) -> Projected | None:
        """The projected weighting, if there is one."""
        return next((one for one in self.weightings if isinstance(one, Projected)), None)

    @property
    def in_one_pass(self) -> tuple[Weighting, ...]:
        """The other weightings, whose sums one pass makes."""
        return tuple(one for one in self.weightings if not isinstance(one, Projected))

    @property
    def two_passes(self) -> bool:
        """Whether variances need each individual's influence, and with it a second pass."""
        several = self.groups is not None or self.projected is not None or self.outcomes.weights is not None
        estimated = self.bins is not None or any(isinstance(one, IPCW) for one in self.weightings)
        return several or (self.over_time and estimated)

    def numeric(self) -> list[str]:
        """Return the columns that must hold numbers: of a CSV file, these are read as such whatever they look like."""
        observed = self.outcomes
        times = [] if observed.dated else [observed.time, observed.censoring_time, observed.entry]
        return [
            *(name for name in (*times, observed.weights) if name is not None),
            *(c for model in self.models for c in model.columns),
        ]

    # As plain data

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "version": self.version,
            "outcomes": asdict(self.outcomes),
            "models": [asdict(model) for model in self.models],
            "metrics": [{"name": one.name, "epsilon": one.epsilon} for one in self.metrics],
            "weightings": [_weighting_to_json(one) for one in self.weightings],
            "times": list(self.times),
            "by": list(self.by),
            "groups": self.groups,
            "over_time": self.over_time,
            "bins": list(self.bins) if isinstance(self.bins, tuple) else self.bins,
            "level": self.level,
            "strata": self.strata,
            "rank_rows": self.rank_rows,
        }

    @classmethod
    def from_json(cls, data: Any) -> Specification:
        """Take plain data; raise if they are something else."""
        try:
            if data["version"] != cls.version:
                raise InputError(f"a specification of version {data['version']!r}, not {cls.version}")
            found = cls(
                OutcomeColumns(**_tuples(data["outcomes"])),
                tuple(ModelColumns(**_tuples(model)) for model in data["models"]),
                tuple(_loss(one) for one in data["metrics"]),
                tuple(_weighting_from_json(one) for one in data["weightings"]),
                tuple(data["times"]),
                tuple(data["by"]),
                data["groups"],
                bool(data["over_time"]),
                tuple(data["bins"]) if isinstance(data["bins"], list) else data["bins"],
                float(data["level"]),
                data["strata"],
                data["rank_rows"],
            )
            if json.dumps(found.to_json(), sort_keys=True) != json.dumps(data, sort_keys=True):
                raise ValueError("it holds something else than it may")
            return found
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"not a specification of survscore: {error}") from None

    @cached_property
    def digest(self) -> str:
        """A number that is the same for the same specification."""
        text = json.dumps(self.to_json(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


def as_metrics(metric: Any) -> tuple[Metric, ...]:
    """Return metrics by name, or as they are."""
    return tuple(as_metric(given) for given in one_or_more(metric, Metric, "metric"))


def is_sum(metric: Metric) -> bool:
    """Whether a metric is a sum over individuals that is known to machines elsewhere, by its exact class."""
    return type(metric) in (Brier, Log)


def check_sums(metrics: Sequence[Metric], what_for: str) -> None:
    """Raise unless all metrics are sums over individuals, which `what_for` needs."""
    for metric in metrics:
        if not is_sum(metric):
            raise InputError(
                f"metric must be one of {', '.join(map(repr, LOSSES))} for {what_for}, not {metric.name!r}: it is no "
                "sum over individuals, and evaluate gathers the rows for it"
            )


def as_known_weightings(weighting: Any) -> tuple[Weighting, ...]:
    """Return weightings whose settings are plain data, of all individuals together; none has strata."""
    if weighting is None:
        raise InputError("weighting must be given: 'administrative', 'projected', 'ipcw' or 'uncensored'")
    found = []
    for given in one_or_more(weighting, Weighting, "weighting"):
        if isinstance(given, str):
            check_choice("weighting", given, tuple(KNOWN))
        one = (KNOWN[given]() if isinstance(given, str) else given).without_predictions()
        _weighting_to_json(one)
        found.append(one)
    return tuple(found)


KNOWN: dict[str, type[Weighting]] = {one.name: one for one in (Uncensored, Administrative, IPCW, Projected)}


def bins_of(what: Specification, outcomes: Outcomes) -> NDArray[np.int32]:
    """Return each individual's bin: how many exits can have come before."""
    time = outcomes.time
    if what.bins is None:
        return np.zeros(time.size, dtype=np.int32)
    if isinstance(what.bins, tuple):
        return np.searchsorted(np.array(what.bins), time, side="left").astype(np.int32)
    whole = time == np.floor(time)
    if not whole.all():
        first = int(np.argmin(whole))
        raise BinsNeededError(
            f"times must be whole numbers for bins='units': {int((~whole).sum())} of {time.size} are not, the first in "
            f"row {first} ({time[first]:g}); evaluate looks at the times first, and takes any"
        )
    last = int(time.max(initial=0.0))
    if last >= MOST_BINS:
        raise BinsNeededError(
            f"times reach {last}, too many units for bins='units' (at most {MOST_BINS}): use a coarser unit, or "
            "evaluate, which looks at the times first"
        )
    return time.astype(np.int32)


def _weighting_to_json(weighting: Weighting) -> dict[str, Any]:
    match weighting:
        case Uncensored():
            return {"name": weighting.name}
        case Administrative(
            dropout="kaplan-meier" | "refuse", normalize="weights", variance="exact", dropout_strata=None
        ) if weighting.population is None or isinstance(weighting.population, (str, int, float)):
            settings = {"dropout": weighting.dropout, "population": weighting.population}
            return {"name": weighting.name, "max_weight": weighting.max_weight, **settings}
        case IPCW(censoring="kaplan-meier", normalize="weights", variance="exact", strata=None):
            return {"name": weighting.name, "max_weight": weighting.max_weight}
        case Projected(reference=None, theta=1) if weighting.strata is None or isinstance(weighting.strata, str):
            return {"name": weighting.name, "strata": weighting.strata, "min_followed": weighting.min_followed}
    raise InputError(
        f"weighting {str(weighting)!r} can't be had for data that come in parts: there are 'uncensored', "
        "'administrative' and 'ipcw' with weights by one Kaplan-Meier curve of the data, divided by their sum, and "
        "'projected' with strata by ranks, of a column (strata=), or one"
    )


def _weighting_from_json(data: dict[str, Any]) -> Weighting:
    check_choice("weighting", data["name"], tuple(KNOWN))
    return KNOWN[data["name"]](**{key: value for key, value in data.items() if key != "name"}).without_predictions()


def _loss(data: dict[str, Any]) -> Loss:
    check_choice("metric", data["name"], LOSSES)
    return Brier() if data["name"] == Brier.name else Log(data["epsilon"])


def _tuples(model: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in model.items()}


def specify(
    schema: pa.Schema,
    *,
    weighting: Any,
    models: Any = None,
    metric: Any = "brier",
    times: ArrayLike | None = None,
    outcomes: OutcomeColumns | None = None,
    by: str | Sequence[str] = (),
    groups: str | None = None,
    over_time: bool = False,
    bins: Bins = None,
    level: float = 0.95,
    form: Form | None = None,
    strata: str | None = None,
    rank_rows: int = RANK_ROWS,
) -> Specification:
    """Return what to compute of tables with this schema.

    Parameters
    ----------
    schema : pyarrow.Schema
        Which columns there are.
    weighting : str, Weighting, or several
        ``"administrative"``, ``"ipcw"`` or ``"uncensored"``, or instances whose weights come from the data.
    models : optional
        Where predictions are. None: columns named by time, with the model before a colon (``net:30``). A pattern with
        ``{time}`` and perhaps ``{model}``. A list of names, which picks among these. A mapping of names to patterns, or
        to `ModelColumns`.
    metric : str or Metric, or several
        What to compute. If they are not all "brier" or "log", the specification has none.
    times : array_like, optional
        The evaluation times; by default those that are columns of every model.
    outcomes : OutcomeColumns, optional
        Where outcomes are.
    by : str or sequence of str
        Columns whose values make segments.
    groups : str, optional
        The column of labels of individuals that depend on each other.
    over_time : bool
        Whether means over time have standard errors.
    bins : {"units"}, sequence of float or None
        See `Specification`.
    level : float
        Of confidence intervals.
    form : Form, optional
        What predictions look like, if they are not survival in the outcomes' unit.
    strata, rank_rows
        See `Specification`.
    """
    names = [field.name for field in schema]
    observed = OutcomeColumns() if outcomes is None else outcomes
    if observed.censoring_time == "censoring_time" and "censoring_time" not in names:
        observed = replace(observed, censoring_time=None)
    if observed.dated and observed.last_seen is None and "last_seen" in names:
        observed = replace(observed, last_seen="last_seen")
    found = model_columns(schema, models, form, observed)
    if times is None:
        common = sorted(set.intersection(*(set(model.grid) for model in found)))
        if not common:
            raise InputError("the models have no time in common: name the times")
        wanted = tuple(common)
    else:
        wanted = tuple(as_times(times).tolist())
    metrics = as_metrics(metric)
    # with delayed entry, predictions are read at each individual's own times
    whole = any(isinstance(one, FollowUpMetric) for one in metrics) or observed.entry_column is not None
    if not whole:
        found = tuple(model.only(wanted) for model in found)
    segments = (by,) if isinstance(by, str) else tuple(by)
    more = (observed.entry_column, observed.weights)
    missing = [name for name in (*segments, groups, strata, *more) if name is not None and name not in names]
    if missing:
        raise InputError(f"there is no column {missing[0]!r}; the columns are {listed(names)}")
    losses = tuple(one for one in metrics if isinstance(one, Loss)) if all(map(is_sum, metrics)) else ()
    weightings = as_known_weightings(weighting)
    if strata is not None and not any(isinstance(one, Projected) for one in weightings):
        raise InputError("strata is for weighting 'projected': it names the column of the strata of statuses")
    return Specification(
        observed, found, losses, weightings, wanted, segments, groups,
        over_time=over_time, strata=strata, rank_rows=rank_rows,
        bins=tuple(bins) if bins is not None and not isinstance(bins, str) else bins, level=level,
    )  # fmt: skip

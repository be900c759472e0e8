"""What was observed: event times, event indicators and, where they are known, censoring times."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survscore._utils import arrays as _arrays
from survscore._utils.dates import Unit, word
from survscore._utils.parallel import cached_property
from survscore._validation import (
    InputError,
    as_array,
    as_event,
    as_index,
    as_vector,
    check_choice,
    check_length,
    check_rule,
    plural,
    shown,
    warn,
)
from survscore.causes import ALL_CAUSES, ALL_STATUSES, Cause, CauseNames, Causes, in_words

if TYPE_CHECKING:
    from survscore._utils.dates import Dates, FollowUp

LateStarts = Literal["raise", "drop"]
WeightKind = Literal["probability", "importance", "frequency"]
EVENT_FIELD = "event"
WEIGHT_KINDS = ("probability", "importance", "frequency")
#: The fields with a value for each individual.
VECTORS = ("time", "event", "censoring_time", "cause", "entry", "weights")
#: What time is counted from in scores of outcomes with delayed entry.
SINCE_ENTRY = "time since entry"
CENSORING_FIELD = "censoring_time"  # of a structured array, which may hold it beside event and time
ENTRY_FIELD = "entry"
MANY_EVENTS = 10  # so many at the very censoring time are no coincidence


@dataclass(frozen=True, eq=False, repr=False)
class Outcomes:
    r"""Right-censored event times, checked once.

    With event time :math:`T^*_i` and censoring time :math:`C^*_i`, what is seen of individual
    :math:`i` is :math:`T_i = \min(T^*_i, C^*_i)` and :math:`D_i = 1\{T^*_i \le C^*_i\}`: where event and
    censoring coincide, the event is observed. Under administrative censoring :math:`C^*_i` is known for
    each individual, also for those who had the event.

    Parameters
    ----------
    time : array_like of shape (n,)
        :math:`T_i`, finite and not negative.
    event : array_like of shape (n,)
        :math:`D_i`: true (or 1) where the event was observed at `time`, false (or 0) where
        the individual was still event-free then. Under competing risks the cause of the event: 1, 2, ...
    censoring_time : array_like of shape (n,), optional
        :math:`C^*_i`, at least `time`; infinite for individuals who can't be censored. An individual
        without event whose `time` is smaller than this dropped out (see `dropped_out`). A warning says so if all with
        event have it exactly then, as if the time of the event had been passed in its place.
    causes : sequence of str, or mapping of str to int, optional
        The names of the causes 1, 2, ..., or of the codes that `event` has for them; causes are numbered in the order
        of their codes. By default causes are called by their numbers, and there is more than one if `event` has numbers
        larger than 1.
    entry : array_like of shape (n,), optional
        Delayed entry (left truncation): when each individual came under observation, on the clock of `time`; before
        `time`, and 0 where observed from the start. Individuals who had the event earlier are not in the data. Scores
        are then of predictions given that the individual was event-free at its entry, with time counted from there; see
        `since_entry`.
    weights : array_like of shape (n,), optional
        The sample weight of each individual, finite and not negative, and not all zero: everything that is computed
        from the outcomes then uses them. They must be known at the start: with weights that depend on what happened
        later, such as revenue, a score is improper. See `weighted`.
    weight_kind : {"probability", "importance", "frequency"}, default "probability"
        What weights are; see `weighted`.

    Attributes
    ----------
    event : ndarray of bool
        Whether an event was observed, of any cause.
    cause : ndarray of int8, or None
        Under competing risks the cause of each event, numbered from 1 on; 0 without event.
    causes : tuple of str
        The names of the causes; empty without competing risks.
    weights : ndarray, or None
        As given; None where all count alike.
    weight_kind : str, or None
        What weights are; None without weights.
    dates : Dates or None
        The dates of which they were made, for `as_of`, if they were made by `from_dates`.

    Notes
    -----
    `Outcomes` can be sliced, indexed with positions or a boolean mask, and serves as ``y`` in
    scikit-learn's splitters and searches. The arrays are copies and read-only. Tensors on a CUDA device stay there, and
    share their memory if they are float64 (time) and boolean (event): do not write to them.

    **Competing risks.** An event of another cause is not censoring: the individual can no longer have the event of
    interest, and from then on its status is known. Scores are of one cause at a time (``cause=``, or `for_cause`).
    Censored at the time of the other event, an individual would count as if the event could still come, which
    overstates the risk: with hazards of 0.01 (default) and 0.03 (repayment) a month,
    :math:`\frac{0.01}{0.04} (1 - e^{-0.04 \cdot 24})` = 15 % default within 24 months, and
    :math:`1 - e^{-0.01 \cdot 24}` = 21 % would be estimated.

    Examples
    --------
    >>> import survscore as ss
    >>> y = ss.Outcomes(time=[2, 5, 3], event=[1, 0, 1], censoring_time=[4, 5, 8])
    >>> y
    Outcomes(3 individuals, 2 events (66.7 %), time 2 to 5, censoring_time known (4 to 8), no drop-outs)
    >>> y[y.event].censoring_time
    array([4., 8.])

    Loans that default, or are repaid:

    >>> y = ss.Outcomes([2, 3, 5], [1, 2, 0], causes=["default", "repayment"])
    >>> y
    Outcomes(3 individuals, 2 events (66.7 %: 1 default, 1 repayment), time 2 to 5, censoring_time unknown)
    >>> y.event, y.cause
    (array([ True,  True, False]), array([1, 2, 0], dtype=int8))
    >>> y.for_cause("default").event_of_interest
    array([ True, False, False])
    """

    time: NDArray[np.float64]
    event: NDArray[np.bool_]
    censoring_time: NDArray[np.float64] | None = None
    dates: Dates | None = None
    cause: NDArray[np.int8] | None = None
    causes: tuple[str, ...] = ()
    #: The number of the cause that scores are of; 0 where none was chosen.
    interest: int = 0
    #: The codes that causes had in what was given, in order; empty where these are 1, 2, ...
    cause_codes: tuple[int, ...] = ()
    #: When each individual came under observation, where that was after time 0 (delayed entry).
    entry: NDArray[np.float64] | None = None
    #: The sample weight of each individual; None where all count alike.
    weights: NDArray[np.float64] | None = None
    weight_kind: WeightKind | None = None
    #: What results say of time, where an analysis counts it from elsewhere than was given: from delayed entry.
    clock: str = ""

    def __init__(
        self,
        time: ArrayLike,
        event: ArrayLike,
        censoring_time: ArrayLike | None = None,
        *,
        causes: CauseNames | None = None,
        entry: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        weight_kind: WeightKind = "probability",
    ) -> None:
        on_device = [tensor for tensor in map(_arrays.resident, (time, event, censoring_time)) if tensor is not None]
        device = on_device[0].device if on_device else None
        checked_time = as_vector(time, "time", device=device)
        if len(checked_time) == 0:
            raise InputError("time is empty: outcomes need at least one individual")
        named, codes = Causes.read(event, causes, device=device)
        checked_event = as_event(event, device=device) if codes is None else codes != 0
        check_length("event", len(checked_event), "time", len(checked_time))
        checked_censoring = None
        if censoring_time is not None:
            checked_censoring = as_vector(censoring_time, "censoring_time", allow_infinite=True, device=device)
            check_length("censoring_time", len(checked_censoring), "time", len(checked_time))
            _check_not_after(checked_time, checked_censoring)
            _warn_if_cut_at_event(checked_time, checked_event, checked_censoring)
        checked_entry = None
        if entry is not None:
            checked_entry = as_vector(entry, "entry", device=device)
            check_length("entry", len(checked_entry), "time", len(checked_time))
            _check_before(checked_entry, checked_time)
        self._set(
            time=checked_time, event=checked_event, censoring_time=checked_censoring, cause=codes,
            causes=named.names, cause_codes=named.codes, entry=checked_entry,
            **_weight_fields(weights, weight_kind, len(checked_time), device),
        )  # fmt: skip

    # Other ways in

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        time: str,
        event: str,
        censoring_time: str | None = None,
        causes: CauseNames | None = None,
        entry: str | None = None,
        weights: str | None = None,
        weight_kind: WeightKind = "probability",
    ) -> Self:
        """Take the columns of a data frame.

        Parameters
        ----------
        frame : data frame
            Of any library that narwhals knows: pandas, polars, pyarrow, DuckDB and others; lazy
            frames are collected, only the named columns.
        time, event, censoring_time, entry, weights : str
            The names of the columns.
        causes : sequence of str, or mapping of str to int, optional
            As for `Outcomes`.
        weight_kind : {"probability", "importance", "frequency"}, default "probability"
            As for `Outcomes`.

        Returns
        -------
        Outcomes

        Examples
        --------
        >>> import pandas as pd
        >>> import survscore as ss
        >>> frame = pd.DataFrame({"days": [10, 30], "churned": [True, False], "max_days": [40, 30]})
        >>> ss.Outcomes.from_frame(frame, time="days", event="churned", censoring_time="max_days")
        Outcomes(2 individuals, 1 event (50.0 %), time 10 to 30, censoring_time known (30 to 40), no drop-outs)
        """
        import narwhals as nw

        try:
            table = nw.from_native(frame)
        except TypeError:
            raise InputError(f"frame must be a data frame, not {type(frame).__name__}") from None
        named = {"time": time, "event": event}
        optional = {"censoring_time": censoring_time, "entry": entry, "weights": weights}
        named |= {argument: column for argument, column in optional.items() if column is not None}
        available = table.collect_schema().names()
        for argument, column in named.items():
            if column not in available:
                raise InputError(f"{argument}: there is no column {column!r}; the columns are {available}")
        table = table.select(*dict.fromkeys(named.values()))
        if isinstance(table, nw.LazyFrame):
            table = table.collect()
        arrays = {}
        for argument, column in named.items():
            missing = int(table[column].null_count())
            if missing:
                raise InputError(f"{argument}: column {column!r} has {missing} missing values")
            arrays[argument] = table[column].to_numpy()
        return cls(**arrays, causes=causes, weight_kind=weight_kind)

    @classmethod
    def from_structured(
        cls,
        array: NDArray[Any],
        *,
        censoring_time: ArrayLike | None = None,
        causes: CauseNames | None = None,
        entry: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        weight_kind: WeightKind = "probability",
    ) -> Self:
        """Take scikit-survival's structured array: one boolean field (the event) and one of numbers (the time).

        Fields called ``censoring_time`` and ``entry`` hold the censoring times and the times of entry; see
        `to_structured`. Under competing risks the event is a field of integers, called ``event``: 0, or the cause.

        Parameters
        ----------
        array : structured array of shape (n,)
            As made by ``sksurv.util.Surv``, or by `to_structured`.
        censoring_time, entry : array_like of shape (n,), optional
            The censoring times and the times of entry, where they are known and the array does not hold them.
        causes, weights, weight_kind
            As for `Outcomes`.

        Returns
        -------
        Outcomes

        Examples
        --------
        >>> import numpy as np
        >>> import survscore as ss
        >>> array = np.array([(True, 3.0), (False, 4.0)], dtype=[("status", bool), ("days", float)])
        >>> ss.Outcomes.from_structured(array)
        Outcomes(2 individuals, 1 event (50.0 %), time 3 to 4, censoring_time unknown)
        >>> kinds = [("status", bool), ("days", float), ("censoring_time", float)]
        >>> ss.Outcomes.from_structured(np.array([(True, 3.0, 9.0), (False, 4.0, 4.0)], dtype=kinds)).censoring_time
        array([9., 4.])
        """
        names = getattr(getattr(array, "dtype", None), "names", None) or ()
        carried = [name for name in (CENSORING_FIELD, ENTRY_FIELD) if name in names]
        events = [name for name in names if array.dtype[name].kind == "b"]
        if not events:  # codes of competing risks
            events = [name for name in names if name == EVENT_FIELD and array.dtype[name].kind in "iu"]
        others = (name for name in names if name not in (*events, *carried))
        times = [name for name in others if array.dtype[name].kind in "iuf"]
        if len(names) != 2 + len(carried) or len(events) != 1 or len(times) != 1:
            raise InputError(
                "array must be structured with one boolean field (event) and one of numbers (time), and may have "
                f"further ones of numbers called {CENSORING_FIELD!r} and {ENTRY_FIELD!r}; codes of causes are whole "
                f"numbers called {EVENT_FIELD!r}" + (f"; its fields are {list(names)}" if names else "")
            )
        given = {CENSORING_FIELD: censoring_time, ENTRY_FIELD: entry}
        for name in carried:
            if given[name] is not None:
                raise InputError(f"{name} was given twice: as an argument, and as the field {name!r}")
            given[name] = array[name]
        return cls(array[times[0]], array[events[0]], causes=causes, weights=weights, weight_kind=weight_kind, **given)

    @classmethod
    def from_dates(
        cls,
        start: ArrayLike,
        event_date: ArrayLike,
        cutoff: Any,
        *,
        unit: Unit = "D",
        last_seen: ArrayLike | None = None,
        entry_date: ArrayLike | None = None,
        late_starts: LateStarts = "raise",
        cause: ArrayLike | None = None,
        causes: CauseNames | None = None,
        weights: ArrayLike | None = None,
        weight_kind: WeightKind = "probability",
    ) -> Self:
        r"""Derive time, event and :math:`C^*` from dates and the data cut-off.

        :math:`C^*_i` = `cutoff` - `start` for each individual: use this for administrative censoring.
        Events after the cut-off were not seen then, and are censored at the cut-off.

        Parameters
        ----------
        start : array_like of dates, shape (n,)
            From when on time is counted.
        event_date : array_like of dates, shape (n,)
            When the event happened; missing (``NaT``, ``None``) where none did.
        cutoff : date, or array_like of dates
            The data cut-off, as an instant: a date without time of day is its midnight. An event at this very
            instant counts as observed.
        unit : {"D", "W", "M", "Y", "h", "min", "s"}, default "D"
            The unit of the times that result. Months ("M") and years ("Y") are those of the calendar: whole ones since
            `start`, plus the fraction of the one begun. From 31 January, one month has passed on 28 February (29, in
            leap years), and two on 31 March; on 14 February it is half a month (14 of 28 days).
        last_seen : array_like of dates, shape (n,), optional
            When those without event were last known to be event-free. Where this is before the cut-off,
            the individual dropped out: it is censored then, though its :math:`C^*` is later.
            Missing means followed up to the cut-off. It does not matter where the event was observed. An
            individual who had another event that rules out this one (a competing risk) was not lost: give the date of
            that event, and its `cause`.
        entry_date : array_like of dates, shape (n,), optional
            When each individual came under observation, if that was not at `start` (delayed entry): individuals who had
            the event between these dates are not in the data. An account of 2010 in a database that begins in 2015 has
            its opening as `start`, and the beginning of the database as `entry_date`.
        late_starts : {"raise", "drop"}, default "raise"
            What to do with individuals who start after the cut-off, or were not under observation before it.
            ``"drop"`` leaves them out and says in a warning how many.
        cause : array_like of shape (n,), optional
            Under competing risks the cause of each event: text or numbers. Not read where there was no event.
        causes : sequence, or mapping of str to labels, optional
            The causes in order, as `cause` has them, or their names and what `cause` has for each; for numbers also the
            names of 1, 2, ... By default all that occur, sorted, also after the cut-off.
        weights, weight_kind
            As for `Outcomes`; of all individuals, also of those who are left out.

        Returns
        -------
        Outcomes

        Examples
        --------
        >>> import survscore as ss
        >>> y = ss.Outcomes.from_dates(
        ...     start=["2016-12-30", "2017-01-09", "2017-01-19"],
        ...     event_date=["2017-01-09", None, "2017-02-10"],
        ...     cutoff="2017-01-29",
        ... )
        >>> y.time, y.event, y.censoring_time
        (array([10., 20., 10.]), array([ True, False, False]), array([30., 20., 10.]))
        """
        from survscore._utils import dates as _dates  # pandas is loaded only where dates need it

        check_choice("late_starts", late_starts, ("raise", "drop"))
        follow_up = _dates.follow_up(start, event_date, cutoff, unit, last_seen, late_starts == "drop", entry_date)
        made: Self = cls.of_follow_up(follow_up, cause, causes)
        if weights is None:
            return made
        given = as_array(weights, "weights")
        check_length("weights", len(given), "start", len(follow_up.kept))
        return made.weighted(given[follow_up.kept], weight_kind)

    @classmethod
    def of_follow_up(
        cls, follow_up: FollowUp, cause: ArrayLike | None = None, causes: CauseNames | None = None
    ) -> Self:
        """Take what dates have come to; `cause` is that of all individuals, also of those who were left out."""
        made = cls(follow_up.time, follow_up.event, follow_up.censoring_time, entry=follow_up.entry)
        object.__setattr__(made, "dates", follow_up.dates)
        if cause is None:
            if causes is not None:
                raise InputError("causes are names for what cause holds: give cause, too")
            return made
        labels = as_array(cause, "cause")
        check_length("cause", len(labels), "start", len(follow_up.kept))
        named, codes = Causes.of_labels(labels[follow_up.kept], follow_up.event, follow_up.dated, causes)
        return made._with(cause=codes, causes=named)

    @classmethod
    def concatenate(cls, parts: Iterable[Outcomes]) -> Self:
        """Join several outcomes, in order. All have censoring times, or none has.

        Examples
        --------
        >>> import survscore as ss
        >>> y = ss.Outcomes([1, 2], [1, 0])
        >>> len(ss.Outcomes.concatenate([y, y[:1]]))
        3
        """
        several = list(parts)
        if not several:
            raise InputError("parts is empty")
        if not all(isinstance(part, Outcomes) for part in several):
            raise InputError("parts must be Outcomes")
        censored = [part.censoring_time for part in several if part.censoring_time is not None]
        if len(censored) not in (0, len(several)):
            raise InputError(
                f"parts must all have a censoring_time, or none: {len(censored)} of {len(several)} have one"
            )
        first: Any = several[0]
        other = next((part for part in several if (part.causes, part.interest) != (first.causes, first.interest)), None)
        if other is not None:
            known = [one._named_causes() for one in (first, other)]
            raise InputError(f"parts must all have the same causes: one has {known[0]}, another {known[1]}")
        if len({part.weight_kind for part in several}) > 1:
            raise InputError("parts must all have weights of the same kind, or none")
        if len({part.entry is None for part in several}) > 1:
            raise InputError("parts must all have entry times, or none")
        vectors = {name: [getattr(part, name) for part in several] for name in VECTORS}
        dated = [part.dates for part in several if part.dates is not None]
        joined: Self = first._with(
            **{name: None if some[0] is None else _arrays.concatenate(some) for name, some in vectors.items()},
            dates=dated[0].joined(dated[1:]) if len(dated) == len(several) else None,
            causes=next((part._numbered for part in several if part.cause_codes), first._numbered),
        )
        return joined

    # Numbers and properties

    def for_cause(self, cause: Cause) -> Self:
        """Return the same with one cause as the event of interest, which all scores of it are then of.

        Parameters
        ----------
        cause : str or int
            The name of the cause, or its number from 1 on; ``"all"`` for multi-class scores, over event-free and all
            causes. Where the codes of the causes are not 1, 2, ..., numbers are refused: a code could be taken for a
            place.

        Returns
        -------
        Outcomes
            With the same times, and all causes. Without competing risks there is one cause, 1.

        Examples
        --------
        >>> import survscore as ss
        >>> y = ss.Outcomes([2, 3, 5], [1, 2, 0], causes=["default", "repayment"])
        >>> y.for_cause("repayment").event_of_interest
        array([False,  True, False])
        """
        if not self.causes and (np.ndim(cause) or cause not in (1, "1")):
            raise InputError(f"y has events of one kind, so that cause can't be {cause!r}: give it the causes (event=)")
        number = (self._numbered if self.causes else Causes(("1",))).number(cause)
        return self._with(interest=number if self.causes else 0)

    def any_event(self) -> Self:
        """Return the same with events of one kind: whatever the cause."""
        return self._with(cause=None, causes=Causes(()), interest=0)

    @cached_property
    def event_of_interest(self) -> NDArray[np.bool_]:
        """Who had the event that scores are of: any event, unless there are several causes."""
        if self.cause is None or self.interest == ALL_STATUSES:
            return self.event
        if not self.interest:
            listed = ", ".join(map(repr, self.causes))
            raise InputError(
                f"y has competing causes ({listed}): say which one scores are of (`cause=`, or y.for_cause)"
            )
        of_interest: NDArray[np.bool_] = _read_only(self.cause == self.interest)
        return of_interest

    @property
    def competing(self) -> bool:
        """Whether scores are of one of several causes: of a single one, they are those of events of one kind."""
        return self.interest > 0 and len(self.causes) > 1

    @cached_property
    def dropped_out(self) -> NDArray[np.bool_]:
        """Who was lost before their own censoring time: no event, and `time` below `censoring_time`."""
        if self.censoring_time is None:
            raise InputError("dropped_out needs censoring_time: without it, drop-outs can't be recognised")
        dropped_out: NDArray[np.bool_] = _read_only(~self.event & (self.time < self.censoring_time))
        return dropped_out

    @cached_property
    def n_dropped_out(self) -> int | None:
        """How many were lost before their own censoring time; None where that is unknown."""
        return None if self.censoring_time is None else self.n_of(self.dropped_out)

    @cached_property
    def n_individuals(self) -> int:
        """How many individuals there are: one in each row, or with frequency weights the sum of these."""
        return len(self) if self.weight_kind != "frequency" else int(self.weights.sum())  # type: ignore[union-attr]

    def n_of(self, flags: NDArray[np.bool_]) -> int:
        """Return how many individuals have a flag; see `n_individuals`."""
        if self.weight_kind != "frequency" or self.weights is None:
            return _arrays.count_true(flags)
        return int(self.weights[flags].sum())

    def weighted(self, weights: ArrayLike | None, weight_kind: WeightKind = "probability") -> Self:
        r"""Return the same with a sample weight for each individual, which everything computed from it then uses.

        Parameters
        ----------
        weights : array_like of shape (n,), or None
            Finite and not negative, and not all zero; None removes weights. They must be known at the start: weights
            that depend on what happened later, such as revenue, make a score improper.
        weight_kind : {"probability", "importance", "frequency"}, default "probability"
            ``"probability"``: the inverse probability of being in the sample; ``"importance"``: how much an individual
            matters. Scores and standard errors of both are computed alike, and their scale has no effect.
            ``"frequency"``: whole numbers, of how many equal individuals a row stands for; results are those of the
            repeated rows.

        Returns
        -------
        Outcomes

        Examples
        --------
        >>> import survscore as ss
        >>> y = ss.Outcomes([1, 2, 4], [1, 0, 1]).weighted([2, 1, 0.5])
        >>> y[y.event].weights
        array([2. , 0.5])
        """
        return self._with(**_weight_fields(weights, weight_kind, len(self), self.device))

    def at_landmark(self, s: ArrayLike) -> AtLandmark:
        r"""Return who is at risk at a landmark, and what happened to them afterwards, with time counted from there.

        Those with :math:`T_i > s` are event-free and under observation at s, if they had entered by then; then
        :math:`C^*_i > s`, too. Their outcomes are :math:`T_i - s`, :math:`D_i` and :math:`C^*_i - s`.

        Parameters
        ----------
        s : float or array_like of shape (n,)
            The landmark; or one for each individual, such as its age on a day, and NaN for those who are not scored.

        Returns
        -------
        rows, outcomes
            Positions of these individuals, and their `Outcomes`, which have the same causes, and no dates.

        Examples
        --------
        >>> import survscore as ss
        >>> y = ss.Outcomes(time=[2, 5, 3], event=[1, 0, 1], censoring_time=[4, 5, 8])
        >>> rows, later = y.at_landmark(2)
        >>> rows, later.time, later.censoring_time
        (array([1, 2]), array([3., 1.]), array([3., 6.]))
        """
        given = np.asarray(_arrays.to_host(as_array(s, "s")), dtype=np.float64)
        landmark = np.broadcast_to(given, (len(self),)) if given.size == 1 else given
        if landmark.shape != (len(self),):
            raise InputError(f"s must be a number, or one for each of the {len(self)} individuals")
        broken = landmark < 0  # NaN is not
        if broken.any() or np.isinf(landmark).any() or (given.size == 1 and np.isnan(landmark).any()):
            first = int(np.argmax(broken | ~np.isfinite(landmark)))
            raise InputError(f"s must be zero or later, and finite, not {landmark[first]:g} (position {first})")
        followed = _arrays.to_host(self.time) > landmark
        rows = np.flatnonzero(followed if self.entry is None else followed & (_arrays.to_host(self.entry) <= landmark))
        if np.isnan(landmark).all():
            raise InputError("s is missing (NaN) for all individuals: none had started by then")
        if not rows.size and followed.any():
            raise InputError(f"s must not be before all have entered: nobody was under observation by {shown(s)}")
        if not rows.size:
            last = float(self.time.max())
            raise InputError(
                f"s must be before the end of follow-up: no individual is at risk at {float(np.nanmin(landmark)):g}, "
                f"the last was seen at {last:g}"
            )
        some = self[rows]
        after = _arrays.beside(landmark[rows], self.time)
        end = None if some.censoring_time is None else some.censoring_time - after
        return AtLandmark(rows, some._with(time=some.time - after, censoring_time=end, entry=None, dates=None))

    def since_entry(self) -> Self:
        r"""Return the same with time counted from each individual's entry: what scores of delayed entry are of.

        With entry :math:`a_i` these are :math:`T_i - a_i`, :math:`D_i` and :math:`C^*_i - a_i`. Causes, weights and
        the order of individuals stay as they are. Scores do this themselves, and compare with predictions given that
        the individual was event-free at its entry,

        .. math:: P(T^*_i > a_i + h \mid T^*_i > a_i) = \frac{\pi_i(a_i + h)}{\pi_i(a_i)} ,

        which are ``curves.conditional_on(y.entry, times=...)``.

        Returns
        -------
        Outcomes
            Without entry. The same, if all were observed from the start.

        Examples
        --------
        >>> import survscore as ss
        >>> y = ss.Outcomes(time=[60, 72], event=[1, 0], censoring_time=[75, 72], entry=[50, 65])
        >>> y.since_entry().time, y.since_entry().censoring_time
        (array([10.,  7.]), array([25.,  7.]))
        """
        if self.entry is None:
            return self
        dates = None if self.dates is None else replace(self.dates, since_entry=True)
        if not bool((self.entry > 0).any()):
            return self._with(entry=None, dates=dates)
        end = None if self.censoring_time is None else self.censoring_time - self.entry
        return self._with(time=self.time - self.entry, censoring_time=end, entry=None, dates=dates)

    def on_clock(self, clock: str) -> Self:
        """Return the same with what results say of time."""
        return self._with(clock=clock)

    def until(self, end: ArrayLike) -> Self:
        r"""Return what would have been observed, had follow-up ended earlier.

        Parameters
        ----------
        end : float or array_like of shape (n,)
            Where to end, for all or for each; later ends than :math:`C^*_i` change nothing.

        Returns
        -------
        Outcomes
            With :math:`C^*_i` the smaller of the old one and `end`, and events after it not seen.

        Examples
        --------
        >>> import survscore as ss
        >>> y = ss.Outcomes(time=[2, 5, 3], event=[1, 0, 1], censoring_time=[4, 5, 8]).until(2.5)
        >>> y.time, y.event, y.censoring_time
        (array([2. , 2.5, 2.5]), array([ True, False, False]), array([2.5, 2.5, 2.5]))
        """
        given = as_vector(np.atleast_1d(as_array(end, "end")), "end", allow_infinite=True)
        if given.size != 1:
            check_length("end", given.size, "the outcomes", len(self))
        ends = _arrays.beside(np.broadcast_to(given, len(self)), self.time)
        if self.entry is not None:
            unseen = (self.entry >= ends) & (self.entry > 0)
            check_rule("end", "after entry (y[y.entry < end] are those under observation by then)", unseen, ends)
        seen = self.time <= ends
        return self._with(
            time=_arrays.minimum(self.time, ends),
            event=self.event & seen,
            censoring_time=None if self.censoring_time is None else _arrays.minimum(self.censoring_time, ends),
            cause=None if self.cause is None else self.cause * seen,
            dates=None,
        )

    def as_of(self, date: Any, *, late_starts: LateStarts = "raise") -> Self:
        r"""Return what was known on an earlier day, of outcomes that were made by `from_dates`.

        The same as `from_dates` with this cut-off, to the bit: events after it had not been seen, and who was lost
        later was still there. For outcomes without dates there is `until`.

        Parameters
        ----------
        date : date, or array_like of dates
            The earlier cut-off, as an instant: a date without time of day is its midnight, in UTC if the dates had a
            time zone. Where follow-up ended earlier, that date is kept.
        late_starts : {"raise", "drop"}, default "raise"
            What to do with individuals who start after it. ``"drop"`` leaves them out and says in a warning how many;
            ``y[y.dates.start <= date]`` are the others.

        Returns
        -------
        Outcomes

        Examples
        --------
        >>> import survscore as ss
        >>> y = ss.Outcomes.from_dates(["2016-12-30", "2017-01-09"], ["2017-01-19", None], "2017-01-29")
        >>> then = y.as_of("2017-01-14")
        >>> then.time, then.event, then.censoring_time
        (array([15.,  5.]), array([False, False]), array([15.,  5.]))
        """
        if self.dates is None:
            raise InputError(
                "as_of needs outcomes that were made by Outcomes.from_dates; of times, y.until(end) is what was known "
                "at an earlier end"
            )
        from survscore._utils import dates as _dates

        known = self.dates
        ends = np.minimum(known.cutoff, _dates.instants(date, "date", len(self)))
        then = self.from_dates(
            known.start, known.event_date, ends, unit=known.unit, last_seen=known.last_seen, late_starts=late_starts,
            entry_date=known.entry_date, cause=self.cause,
            causes={name: code for code, name in enumerate(self.causes, 1)} if self.causes else None,
            weights=self.weights, weight_kind=self.weight_kind or "probability",
        )  # fmt: skip
        then = then._with(causes=self._numbered, interest=self.interest, clock=self.clock)
        return then.since_entry() if known.since_entry else then

    # Where it lives

    @property
    def device(self) -> Any:
        """The torch device that holds it; None for NumPy arrays in the processor's memory."""
        return _arrays.device_of(self.time)

    def to(self, device: Any) -> Self:
        """Return the same as torch tensors on a device, such as ``"cuda"``."""
        return self._each(lambda vector: _arrays.to_device(vector, device))

    def numpy(self) -> Self:
        """Return the same as NumPy arrays in the processor's memory.

        Examples
        --------
        >>> import survscore as ss
        >>> ss.Outcomes([1, 2], [1, 0]).numpy().time
        array([1., 2.])
        """
        return self if self.device is None else self.to(None)

    def to_structured(self, *, censoring_time: bool = False, entry: bool = False) -> NDArray[Any]:
        """Return a structured array, as scikit-survival takes it: fields ``event`` and ``time``.

        Under competing risks ``event`` is the number of the cause, 0 without event. Sample weights have no field in it.

        Parameters
        ----------
        censoring_time : bool, default False
            Whether to add a field of that name. Scorers, splitters, models and adapters of this library read it;
            scikit-survival's own estimators take two fields only.
        entry : bool, default False
            The same for the times of entry. Outcomes with delayed entry are refused without it, since they would become
            those of individuals who were observed from the start.

        Returns
        -------
        structured array of shape (n,)

        Examples
        --------
        >>> import survscore as ss
        >>> ss.Outcomes([1, 2], [1, 0]).to_structured()
        array([( True, 1.), (False, 2.)], dtype=[('event', '?'), ('time', '<f8')])
        >>> ss.Outcomes([1, 2], [1, 0], [3, 2]).to_structured(censoring_time=True).dtype.names
        ('event', 'time', 'censoring_time')
        """
        fields: dict[str, Any] = {EVENT_FIELD: self.event if self.cause is None else self.cause, "time": self.time}
        if censoring_time:
            if self.censoring_time is None:
                raise InputError("censoring_time can't be a field: it is unknown in these outcomes")
            fields[CENSORING_FIELD] = self.censoring_time
        if entry and self.entry is None:
            raise InputError("entry can't be a field: these outcomes have none")
        if self.entry is not None:
            if not entry:
                raise InputError(
                    "outcomes have delayed entry, which two fields can't say: entry=True adds a third, "
                    "y.since_entry() counts time from it"
                )
            fields[ENTRY_FIELD] = self.entry
        kind_of_event = np.bool_ if self.cause is None else np.int8
        kinds = [(name, kind_of_event if name == EVENT_FIELD else np.float64) for name in fields]
        array = np.empty(len(self), dtype=kinds)
        for name, values in fields.items():
            array[name] = _arrays.to_host(values)
        return array

    # As a sequence of individuals; `shape` and `(key, ...)` are what scikit-learn's indexing asks for

    def __len__(self) -> int:
        return len(self.time)

    @property
    def shape(self) -> tuple[int]:
        """``(n,)``."""
        return (len(self),)

    def __getitem__(self, key: Any) -> Self:
        if isinstance(key, tuple) and len(key) == 2 and key[1] is Ellipsis:
            key = key[0]
        if isinstance(key, (int, np.integer)):
            key = [range(len(self))[key]]  # a range raises IndexError beyond its ends
        key = as_index(key, self.time)
        if self.time[key].ndim != 1:
            raise IndexError("outcomes are one-dimensional")
        dates = None if self.dates is None else self.dates[_arrays.to_host(key) if _arrays.is_tensor(key) else key]
        return self._each(lambda vector: vector[key], dates=dates)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError("outcomes become an array only by a copy")
        if self.weights is not None:
            raise InputError(
                "sample weights have no place in an array of outcomes: pass y.weighted(None), and the weights as "
                "sample_weight"
            )
        # with all that is known: scikit-learn makes arrays of targets on its way to an estimator
        array = self.to_structured(censoring_time=self.censoring_time is not None, entry=self.entry is not None)
        return array if dtype is None else array.astype(dtype)

    def _facts(self) -> list[tuple[str, str]]:
        """Return what there is to say beside the numbers of individuals and events."""
        n = len(self)
        facts = [("of interest", in_words(self.chosen_cause).removeprefix("of "))] if self.interest else []
        facts += [("time", _range(self.time))] if n else []
        if self.censoring_time is None:
            facts.append(("censoring_time", "unknown"))
        elif n:
            facts.append(("censoring_time", f"known ({_range(self.censoring_time)})"))
            facts.append(("dropped out", f"{self.n_dropped_out:,}"))
        facts += [("entry", _range(self.entry))] if self.entry is not None and n else []
        return facts + ([(f"{self.weight_kind} weights", _range(self.weights))] if self.weights is not None else [])

    def _repr_html_(self) -> str:
        from survscore.results.tables import Cell, Part, Tables, as_html

        n, events = self.n_individuals, self.n_of(self.event)
        rows: list[tuple[Cell, ...]] = [
            ("individuals", f"{n:,}" if n == len(self) else f"{n:,} in {len(self):,} rows"),
            ("with event", f"{events:,} ({100 * events / max(n, 1):.1f} %)"),
            *((f"of cause {name}", f"{count:,}") for name, count in self.n_by_cause.items()),
            *self._facts(),
            *([("in", f"{word(self.dates.unit)}s")] if self.dates is not None else []),
        ]
        return as_html(Tables("", [Part("Outcomes", ("", ""), rows, (), "lr")]))

    def __repr__(self) -> str:
        n, events = self.n_individuals, self.n_of(self.event)
        by_cause = ", ".join(f"{count} {in_words(name)}" for name, count in self.n_by_cause.items())
        facts = [
            f"{plural(n, 'individual')}{'' if n == len(self) else f' in {len(self)} rows'}",
            f"{plural(events, 'event')} ({100 * events / max(n, 1):.1f} %{f': {by_cause}' if by_cause else ''})",
        ]
        lost = plural(self.n_dropped_out, "drop-out") if self.n_dropped_out else "no drop-outs"
        facts += [lost if name == "dropped out" else f"{name} {value}" for name, value in self._facts()]
        return f"Outcomes({', '.join(facts)})"

    @property
    def chosen_cause(self) -> str:
        """The name of the cause that scores are of, ``"all"`` for all together; empty where none was chosen."""
        if self.interest == ALL_STATUSES:
            return ALL_CAUSES
        return self.causes[self.interest - 1] if self.interest else ""

    @property
    def n_by_cause(self) -> dict[str, int]:
        """How many events there are of each cause; empty without competing risks."""
        if self.cause is None:
            return {}
        return {name: self.n_of(self.cause == code) for code, name in enumerate(self.causes, start=1)}

    def _named_causes(self) -> str:
        of_interest = f" (of interest {self.chosen_cause!r})" if self.interest else ""
        return f"{', '.join(map(repr, self.causes)) or 'none'}{of_interest}"

    @property
    def _numbered(self) -> Causes:
        return Causes(self.causes, self.cause_codes)

    def _each(self, change: Callable[[Any], Any], **changed: Any) -> Self:
        """Return the same with each vector changed alike."""
        vectors = {name: getattr(self, name) for name in VECTORS}
        return self._with(
            **{name: None if vector is None else change(vector) for name, vector in vectors.items()}, **changed
        )

    def _with(self, *, causes: Causes | None = None, **changed: Any) -> Self:
        """Return outcomes with vectors, or other fields, that need no check in place of their own."""
        if causes is not None:
            changed |= {"causes": causes.names, "cause_codes": causes.codes}
        made = object.__new__(type(self))
        made._set(**{field.name: getattr(self, field.name) for field in fields(self)} | changed)
        return made

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            frozen = value if name not in VECTORS or value is None else _read_only(value)
            object.__setattr__(self, name, frozen)


class AtLandmark(NamedTuple):
    """Who is at risk at a landmark, by position, and what happened to them after it."""

    rows: NDArray[np.intp]
    outcomes: Outcomes


def as_outcomes(y: Any) -> Outcomes:
    """Return a target as `Outcomes`; structured arrays, as scikit-survival's, are taken too."""
    if isinstance(y, Outcomes):
        return y
    if getattr(getattr(y, "dtype", None), "names", None):
        return Outcomes.from_structured(y)
    if y is None:
        raise InputError("requires y to be passed, but the target y is None: it holds Outcomes")
    raise InputError(f"y must be Outcomes (or scikit-survival's structured array), not {type(y).__name__}")


def _range(vector: Any) -> str:
    return f"{vector.min():g} to {vector.max():g}"


def _read_only(vector: Any) -> Any:
    """Return a vector that can't be written to; tensors have no such state."""
    if not _arrays.is_tensor(vector):
        vector.flags.writeable = False
    return vector


def _weight_fields(weights: ArrayLike | None, weight_kind: WeightKind, n: int, device: Any) -> dict[str, Any]:
    """Return sample weights and their kind as fields of outcomes, checked."""
    check_choice("weight_kind", weight_kind, WEIGHT_KINDS)
    if weights is None:
        return {"weights": None, "weight_kind": None}
    given = as_vector(weights, "weights", device=device)
    check_length("weights", len(given), "time", n)
    if not bool((given > 0).any()):
        raise InputError("weights must not all be zero")
    broken = given != given.round()
    if weight_kind == "frequency" and bool(broken.any()):
        first = _arrays.first_true(broken)
        raise InputError(
            f"weights of kind 'frequency' must be whole numbers: {_arrays.count_true(broken)} of {n} are not, the "
            f"first at position {first} ({float(given[first]):g}); other weights are of kind 'probability' or "
            "'importance'"
        )
    return {"weights": given, "weight_kind": weight_kind}


def _warn_if_cut_at_event(
    time: NDArray[np.float64], event: NDArray[np.bool_], censoring_time: NDArray[np.float64]
) -> None:
    """Warn about a common mistake: the event's time given as the censoring time of those who had it."""
    first = _arrays.first_true(event) if event.any() else 0
    if time[first] != censoring_time[first]:  # as nearly always: no need to look at the others
        return
    if _arrays.count_true(event) >= MANY_EVENTS and bool((time[event] == censoring_time[event]).all()):
        warn(
            "all individuals with event have it exactly at their censoring_time. That should be when they would have "
            "been censored (cut-off minus start); scores are wrong if it is the time of the event",
        )


def _check_not_after(time: NDArray[np.float64], censoring_time: NDArray[np.float64]) -> None:
    late = time > censoring_time
    if late.any():
        first = _arrays.first_true(late)
        raise InputError(
            f"time must not exceed censoring_time: {_arrays.count_true(late)} of {len(late)} do, the first at "
            f"position {first} ({time[first]} > {censoring_time[first]}); an event after the censoring time "
            "was not observed: set time to censoring_time and event to 0 there"
        )


def _check_before(entry: NDArray[np.float64], time: NDArray[np.float64]) -> None:
    late = (entry >= time) & (entry > 0)  # observed from the start, and not for long: time 0
    if late.any():
        first = _arrays.first_true(late)
        raise InputError(
            f"entry must be before time: {_arrays.count_true(late)} of {len(late)} {'is' if late.sum() == 1 else 'are'}"
            f" not, the first at position {first} ({entry[first]} >= {time[first]}); both are counted from the same "
            "start, and individuals who had the event before entry were never observed: leave them out"
        )

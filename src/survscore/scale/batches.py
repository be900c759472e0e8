"""One batch of rows as a specification reads it: outcomes, labels and predictions at the evaluation times."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from survscore._utils.arrays import read_only
from survscore._utils.dates import as_unit
from survscore._utils.parallel import cached_property
from survscore._validation import InputError, as_event, plural
from survscore.causes import MOST_CAUSES, Causes
from survscore.curves import SurvivalCurves
from survscore.io.flags import codes_of_words, flags_of_words, is_text
from survscore.io.predictions import from_percentages
from survscore.io.tables import listed
from survscore.metrics.sample import OTHER_EVENT
from survscore.outcomes import Outcomes
from survscore.scale.columns import ModelColumns
from survscore.scale.specification import Specification
from survscore.weighting.interval_weights import IntervalWeights

if TYPE_CHECKING:
    import pyarrow as pa

Labels = tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Batch:
    """Rows of a table, as Arrow has them: by column.

    Attributes
    ----------
    specification : Specification
        Which columns are what.
    table : pyarrow.RecordBatch
        The rows.
    """

    specification: Specification
    table: pa.RecordBatch

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset(self.table.schema.names)

    @cached_property
    def outcomes(self) -> Outcomes:
        """What was observed; with delayed entry, counted from there."""
        return self.given_outcomes.since_entry()

    @cached_property
    def given_outcomes(self) -> Outcomes:
        """What was observed, as it was given."""
        columns = self.specification.outcomes
        if columns.dated:
            return self._from_dates()
        more = {"weights": columns.weights, "entry": columns.entry}
        given: dict[str, Any] = {name: self._values(column) for name, column in more.items() if column is not None}
        given["weight_kind"] = columns.weight_kind
        end = columns.censoring_time
        times, ends = self._values(columns.time), None if end is None else self._values(end)
        if columns.cause is None:
            return Outcomes(times, self._had_event(), ends, **given)
        return Outcomes(times, self._codes(), ends, causes=self._causes, **given).for_cause(self._causes[0])

    @property
    def _causes(self) -> tuple[str, str]:
        """The cause of interest, and what any other is called here: which one it is does not matter."""
        name = self.specification.outcomes.cause_name
        return name, f"other than {name}"

    def _had_event(self) -> NDArray[np.bool_]:
        """Return who had the event; raise if there are several causes, and none was named."""
        events = self._events()
        causes, _ = Causes.read(events, None)
        if causes.names:
            name = self.specification.outcomes.event
            raise InputError(
                f"event, column {name!r}, has {len(causes.names)} causes: `cause` says which one scores are of"
            )
        return np.asarray(as_event(events))

    def _codes(self) -> NDArray[np.int8]:
        """Return 1 for events of the cause of interest, 2 for those of any other, 0 without event."""
        columns = self.specification.outcomes
        values, name = self._values(columns.event), columns.event
        if is_text(self._column(name).type):
            if not columns.causes:
                raise InputError(f"column {name!r} holds words: `causes` says which causes there are")
            values = codes_of_words(values, name, columns.causes)
        # where causes have no names, there is none beyond all numbers
        named = columns.causes or tuple(map(str, range(1, MOST_CAUSES + 1)))
        try:
            _, codes = Causes.read(values.astype(np.int8) if values.dtype == np.bool_ else values, named)
        except InputError as error:
            raise InputError(f"{error} (event is column {name!r})") from None
        ours = codes == columns.cause_number
        return np.where(ours, 1, np.where(codes > 0, 2, 0)).astype(np.int8)

    def _events(self) -> NDArray[Any]:
        """Return who had the event, which words may say."""
        name = self.specification.outcomes.event
        return flags_of_words(self._values(name), name) if is_text(self._column(name).type) else self._values(name)

    def _from_dates(self) -> Outcomes:
        from survscore.io.dates import read_dates  # which loads pandas

        columns = self.specification.outcomes

        def dates(name: str | None) -> Any:
            if name is None:
                return None
            return read_dates(self._values(name), f"column {name!r}", columns.date_format, columns.origin)

        cutoff: Any = columns.cutoff
        if cutoff in self._names:
            cutoff = dates(cutoff)
        else:
            with suppress(InputError):  # it is written as usual, whatever the files write
                cutoff = read_dates(np.array([cutoff], dtype=object), "cutoff", columns.date_format, columns.origin)[0]
        event_date, last_seen = dates(columns.event_date if columns.end is None else columns.end), None
        kinds: dict[str, Any] = {}
        if columns.end is None:
            last_seen = dates(columns.last_seen)
        else:
            if columns.cause is not None:
                kinds = {"cause": self._codes(), "causes": dict(zip(self._causes, (1, 2), strict=True))}
            had_event = kinds["cause"] != 0 if kinds else self._had_event()
            ended = np.asarray(event_date).astype(object)
            missing = np.array([one is None or one != one for one in ended]) & had_event  # noqa: PLR0124 - NaT
            if missing.any():
                raise InputError(
                    f"column {columns.end!r} must hold a date for every individual with event: {int(missing.sum())} of "
                    f"{int(had_event.sum())} have none, the first in row {int(np.argmax(missing))}"
                )
            nothing = np.full(ended.shape, None, dtype=object)
            event_date, last_seen = np.where(had_event, ended, nothing), np.where(had_event, nothing, ended)
        kinds |= {} if columns.weights is None else {"weights": self._values(columns.weights)}
        start, unit, entry_date = dates(columns.start), as_unit("unit", columns.unit), dates(columns.entry_date)
        made = Outcomes.from_dates(
            start, event_date, cutoff, unit=unit, last_seen=last_seen, entry_date=entry_date,
            weight_kind=columns.weight_kind, **kinds,  # type: ignore[arg-type]
        )  # fmt: skip
        return made.for_cause(self._causes[0]) if columns.cause is not None else made

    def segments(self) -> tuple[NDArray[np.int32], list[Labels]]:
        """Return each individual's segment as a number, and the labels of each."""
        if not self.specification.by:
            return np.zeros(len(self), dtype=np.int32), [()]
        codes = np.zeros(len(self), dtype=np.int32)
        labels: list[Labels] = [()]
        for name in self.specification.by:
            encoded = self._encoded(name)
            values = [str(value) for value in encoded.dictionary.to_pylist()]
            both = codes * np.int64(len(values)) + encoded.indices.to_numpy(zero_copy_only=False)
            # only the combinations that there are: of two columns of ids, all would not fit in memory
            present, codes = _distinct(both, len(labels) * len(values))
            labels = [(*labels[code // len(values)], values[code % len(values)]) for code in present.tolist()]
        return codes, labels

    def labels(self, name: str) -> NDArray[np.object_]:
        """Return each individual's label in a segmenting column, as text."""
        encoded = self._encoded(name)
        values = np.array([str(value) for value in encoded.dictionary.to_pylist()], dtype=object)
        return np.asarray(values[encoded.indices.to_numpy(zero_copy_only=False)])

    def groups(self) -> pa.DictionaryArray:
        """Return the labels of individuals that belong together."""
        if self.specification.groups is None:
            raise TypeError("no groups were asked for")
        return self._encoded(self.specification.groups)

    def columns(self, model: ModelColumns) -> Iterator[NDArray[Any]]:
        """Yield what a model predicts at each evaluation time; with delayed entry, for those event-free then."""
        entry = self.given_outcomes.entry
        if entry is not None:
            try:
                later = self.curves(model).since_entry(entry, self.specification.at)
            except InputError as error:
                raise InputError(
                    f"model {model.name!r}, given that individuals are event-free at entry: {error}"
                ) from None
            yield from np.ascontiguousarray(later.at(self.specification.at).T)
            return
        grid = np.array(model.grid)
        places = np.searchsorted(grid, self.specification.at)
        places = np.minimum(places, grid.size - 1)
        direct = bool((grid[places] == self.specification.at).all())
        if model.of_lists or not direct or model.monotone == "enforce":
            yield from np.ascontiguousarray(self.curves(model).at(self.specification.at).T)
            return
        for place in places.tolist():
            yield model.survival(self._numbers(model.columns[place]))

    def at_times(
        self, order: NDArray[np.int32] | None
    ) -> Iterator[tuple[tuple[NDArray[Any], ...], tuple[NDArray[Any], ...], float]]:
        """Yield what all models predict at each evaluation time, in an order that may be given.

        With it come the columns of the time before, where models are checked not to rise (empty elsewhere), and by how
        much rounding lets them. Columns in another order are checked here, others by those who read them first.
        """
        from survscore.scale import _kernels

        what = self.specification
        columns = [self.columns(model) for model in what.models]
        turns: list[NDArray[Any]] = []
        before: tuple[NDArray[Any], ...] = ()
        for j in range(len(what.times)):
            several = [next(column) for column in columns]
            kind = np.result_type(*several)
            tolerance = 4.0 * float(np.finfo(kind).eps)
            taken = tuple(read_only(np.ascontiguousarray(column, dtype=kind)) for column in several)
            compared = tuple(
                before[a] if j and model.monotone == "check" else taken[a][:0] for a, model in enumerate(what.models)
            )
            if order is not None:
                if not turns:  # two, in turn: memory that is new costs as much as a pass over it
                    turns = [np.empty((len(taken), len(self)), dtype=kind) for _ in range(2)]
                bad = [
                    _kernels.take_column(column, order, previous, tolerance, out)
                    for column, previous, out in zip(taken, compared, turns[j % 2], strict=True)
                ]
                if any(bad):
                    self.check()
                taken = tuple(map(read_only, turns[j % 2]))
                yield taken, tuple(column[:0] for column in taken), tolerance
            else:
                yield taken, compared, tolerance
            before = taken

    def check(self) -> None:
        """Raise unless all columns are probabilities that do not rise: the same is said of curves in memory."""
        for model in self.specification.models:
            self.curves(model)

    def check_columns(self, columns: list[list[NDArray[Any]]]) -> None:
        """Raise unless predictions, by model and time, are probabilities that do not rise."""
        from survscore.scale import _kernels

        for model, several in zip(self.specification.models, columns, strict=True):
            before, tolerance = several[0][:0], 4.0 * float(np.finfo(several[0].dtype).eps)
            for column in several:
                if _kernels.is_no_survival(read_only(column), read_only(before), tolerance):
                    self.check()
                before = column if model.monotone == "check" else before

    def curves(self, model: ModelColumns) -> SurvivalCurves:
        """Return a model's predictions as if they were in memory; raise where they are none, naming the model."""
        kinds: dict[str, Any] = {"extrapolation": model.extrapolation, "monotone": model.monotone}
        make = SurvivalCurves if model.predicts == "survival" else SurvivalCurves.from_event_probabilities
        try:
            matrix, grid = self._matrix(model), np.array(model.grid)
            if model.percent:
                matrix = from_percentages(matrix, grid, model.predicts, all_of_them=False)  # type: ignore[arg-type]
            return make(matrix, grid, interpolation=model.interpolation, **kinds)  # type: ignore[arg-type]
        except InputError as error:
            raise InputError(f"model {model.name!r}: {error}") from None

    def _matrix(self, model: ModelColumns) -> NDArray[Any]:
        if not model.of_lists:
            return np.stack([self._numbers(name) for name in model.columns], axis=1)
        import pyarrow.compute as pc

        column = self.table.column(model.columns[0])
        lengths = np.asarray(pc.list_value_length(column).to_numpy(zero_copy_only=False))
        if (lengths != len(model.grid)).any():
            first = int(np.argmax(lengths != len(model.grid)))
            raise InputError(
                f"column {model.columns[0]!r} must have lists of the grid's {plural(len(model.grid), 'time')}; row "
                f"{first} has {lengths[first]}"
            )
        flat = column.flatten()
        return np.asarray(flat.to_numpy(zero_copy_only=False)).reshape(-1, len(model.grid))

    def _numbers(self, name: str) -> NDArray[Any]:
        column = self._column(name)
        values = np.asarray(column.to_numpy(zero_copy_only=False))
        return values if values.dtype in (np.float32, np.float64) else values.astype(np.float64)

    def _values(self, name: str) -> NDArray[Any]:
        return np.asarray(self._column(name).to_numpy(zero_copy_only=False))

    def _encoded(self, name: str) -> pa.DictionaryArray:
        """Return labels with their codes; raise if some are missing."""
        import pyarrow as pa

        column = self._column(name)
        if column.null_count:
            first = int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
            raise InputError(
                f"column {name!r} must have a label for every individual: {column.null_count} of {len(self)} are "
                f"missing, the first in row {first}"
            )
        return column if pa.types.is_dictionary(column.type) else column.dictionary_encode()

    def _column(self, name: str) -> pa.Array:
        if name not in self._names:
            raise InputError(f"there is no column {name!r}; the columns are {listed(self.table.schema.names)}")
        return self.table.column(name)


def with_weight(what: Specification, rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows that have a weight: the others have no part in anything."""
    import pyarrow.compute as pc

    name = what.outcomes.weights
    if name is None or name not in rows.schema.names:
        return rows
    none = pc.equal(rows.column(name), 0)
    return rows.filter(pc.invert(pc.fill_null(none, False))) if pc.any(none).as_py() else rows


def _distinct(codes: NDArray[np.int64], n: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return which codes below `n` there are, and the place of each individual's among them."""
    if n > 4 * codes.size + 1024:
        present, places = np.unique(codes, return_inverse=True)
        return present, places.astype(np.int32)
    present = np.flatnonzero(np.bincount(codes, minlength=n))
    place_of = np.zeros(n, dtype=np.int32)
    place_of[present] = np.arange(present.size)
    return present, place_of[codes]


def by_cause(weights: IntervalWeights, outcomes: Outcomes) -> IntervalWeights:
    """Return weights whose labels tell events of another cause from none: `OTHER_EVENT`."""
    if not outcomes.interest:
        return weights
    others = outcomes.event & ~outcomes.event_of_interest
    return replace(weights, label=np.where(others, np.int8(OTHER_EVENT), weights.label))

"""One file of a data set: where it lies, what it must hold, and its rows in batches."""

from __future__ import annotations

import hashlib
import os
import posixpath
import stat
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from survscore._validation import InputError, plural, shown
from survscore.io.column_names import columns_by_time
from survscore.io.files import kind_of
from survscore.io.tables import arrow, listed
from survscore.scale.filesystems import Description, name_of, opened, reason
from survscore.scale.formats import Reader, arrow_reader, csv_reader, parquet_reader

if TYPE_CHECKING:
    import pyarrow as pa

ROWS = 131072
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"  # how folders spell a missing value
_READABLE = {"parquet": "Parquet", "csv": "CSV", "arrow": "Arrow IPC"}
_PLAIN = {"float": "float32", "double": "float64", "halffloat": "float16"}


class BadFileError(InputError):
    """A file can't be read or does not hold what it must; the message names it and says why.

    Attributes
    ----------
    file : str
        Its name.
    what : str
        What is wrong.
    """

    def __init__(self, file: str, what: str) -> None:
        super().__init__(f"{file}: {what}")
        self.file = file
        self.what = what

    def __reduce__(self) -> tuple[Any, ...]:  # it may be raised in another process
        return type(self), (self.file, self.what)


@dataclass(frozen=True)
class ExpectedSchema:
    """The columns that every part must have, and of which type: those of the first.

    Attributes
    ----------
    part : str
        The name of the first part, for messages.
    types : dict of str to str
        By column, in words that are the same for types that hold the same values.
    names : tuple of str
        All its columns, needed or not.
    naming : tuple of str, optional
        How columns of predictions are named, by patterns, "" for the usual one: another file may not have more of
        them, as a time that the first file lacks would be left out of all. None: columns were named one by one.
    models : tuple of str
        The models, where only some were asked for; without, all count.
    """

    part: str
    types: Mapping[str, str]
    names: tuple[str, ...] = ()
    naming: tuple[str, ...] | None = None
    models: tuple[str, ...] = ()

    @classmethod
    def of(cls, part: str, schema: pa.Schema, columns: Sequence[str]) -> ExpectedSchema:
        """Return what `schema` says of some of its columns."""
        return cls(part, {name: type_name(schema.field(name).type) for name in columns}, tuple(schema.names))

    def unexpected(self, names: Sequence[str]) -> list[str]:
        """Return the columns of predictions among `names` that the first part does not have."""
        new = sorted(set(names) - set(self.names))
        if self.naming is None or not new:
            return []
        found: list[str] = []
        for pattern in self.naming:
            for model, columns in columns_by_time(new, pattern or None).items():
                if not self.models or model in self.models:
                    found += columns.values()
        return found


@dataclass(frozen=True)
class FilePart:
    """One file of a data set: its name travels to where it is read, never its rows.

    Attributes
    ----------
    path : str
        Within the file system.
    filesystem : dict
        How to reach it, in plain values; may hold credentials, and is not shown.
    format : {"parquet", "csv", "arrow"}
        What it is written in.
    size : int
        In bytes, when it was listed.
    etag : str
        What tells its content from an earlier one: its ETag, or when it was last changed, in nanoseconds.
    constants : dict of str to str, int, float or None
        What the names of folders say, ``country=DE``; None for ``__HIVE_DEFAULT_PARTITION__``.
    row_groups : tuple of int, optional
        Of a Parquet file, from which to before which row group; None: all of them.
    relative : str
        Its path below the folder that was named.
    digest : str
        Of its content; "" until somebody asks for it.
    """

    path: str
    filesystem: Description = field(repr=False, hash=False)
    format: str
    size: int
    etag: str
    constants: Mapping[str, Any] = field(default_factory=dict, hash=False)
    row_groups: tuple[int, int] | None = None
    relative: str = ""
    digest: str = ""

    @property
    def name(self) -> str:
        """Its path, or its address without credentials."""
        return name_of(self.filesystem, self.path)

    @property
    def id(self) -> str:
        """What states know it by: path below the source, size, digests of its content and of where it lies."""
        place = hashlib.sha256(self.name.encode()).hexdigest()[:16]
        return f"{self.relative or posixpath.basename(self.path)}|{self.size}|{self.digest}|{place}"

    @property
    def uncounted_id(self) -> str:
        """The same where none of its rows were counted, so that it may come again."""
        return replace(self, digest="").id

    @property
    def ids(self) -> tuple[str, ...]:
        """The files that it stands for: the id of its own, but of a file's pieces only the first has it."""
        return (self.id,) if self.row_groups is None or self.row_groups[0] == 0 else ()

    def split(self, n: int, rows: int = 1) -> list[FilePart]:
        """Return up to `n` pieces of at least so many rows, which are the file; without row groups it stays whole."""
        if self.format != "parquet" or self.row_groups is not None or n < 2:
            return [self]
        with self._reader(()) as reader:
            after = np.cumsum(reader.groups)
        n = min(n, int(after[-1]) // rows) if after.size else 1
        if n < 2:
            return [self]
        ends = np.searchsorted(after, after[-1] * np.arange(1, n) / n) + 1
        bounds = np.unique([0, *np.minimum(ends, after.size), after.size]).tolist()
        return [replace(self, row_groups=pair) for pair in pairwise(bounds)]

    def schema(self, *, numeric: Collection[str] = ()) -> pa.Schema:
        """Return the names and types of its columns, with those that the names of folders give."""
        with self._reader(numeric) as reader:
            return self._full_schema(reader.schema)

    def batches(
        self,
        columns: Sequence[str],
        *,
        rows: int = ROWS,
        nullable: Collection[str] = (),
        numeric: Collection[str] = (),
        expected: ExpectedSchema | None = None,
        checksums: bool = False,
        labels: Collection[str] = (),
    ) -> Iterator[pa.RecordBatch]:
        """Read some columns, in the calling thread.

        Parameters
        ----------
        columns : sequence of str
            In the order in which they are given back. Those the file does not have may be names of folders.
        rows : int
            The most that a batch holds.
        nullable : collection of str
            Columns in which values may be missing.
        numeric : collection of str
            Columns that must hold numbers, or lists of them.
        expected : ExpectedSchema, optional
            What the first file holds, where this is another.
        checksums : bool
            Verify those of a Parquet file's pages; takes a fifth to a half longer.
        labels : collection of str
            Columns of which only the distinct values are looked at: they may come as numbers with a dictionary.

        Yields
        ------
        pyarrow.RecordBatch

        Raises
        ------
        BadFileError
            If it can't be read, has changed since it was listed, or does not hold what it must.
        """
        with self._reader(numeric, checksums, labels) as reader:
            check_columns(self.name, self._full_schema(reader.schema), expected, columns, numeric, BadFileError)
            there = set(reader.schema.names)
            own = [name for name in columns if name in there]
            given = [name for name in columns if name not in there]
            doubly = [name for name in own if name in self.constants]
            first = reader.first
            for batch in reader.batches(own, rows):
                whole = batch if not given else self._with_constants(batch, columns, there, labels)
                check_complete(self.name, whole, nullable, first, BadFileError)
                for name in doubly:
                    self._check_constant(name, whole.column(name), first)
                yield whole
                first += len(whole)

    def _full_schema(self, schema: pa.Schema) -> pa.Schema:
        pa = arrow()
        for name, value in self.constants.items():
            if name not in schema.names:
                schema = schema.append(pa.field(name, _type_of(value)))
        return schema

    def _with_constants(
        self, batch: pa.RecordBatch, columns: Sequence[str], own: Collection[str], labels: Collection[str]
    ) -> pa.RecordBatch:
        arrays = [
            batch.column(name) if name in own else self._constant(name, len(batch), name in labels) for name in columns
        ]
        return arrow().RecordBatch.from_arrays(arrays, names=list(columns))

    def _constant(self, name: str, count: int, label: bool) -> pa.Array:
        pa = arrow()
        value = self.constants[name]
        if label:  # a folder without a value is a segment of its own, called as it is
            value = NO_VALUE if value is None else value
            one = pa.array([value])
            return pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, dtype=np.int32)), one)
        return pa.nulls(count, _type_of(value)) if value is None else pa.repeat(pa.scalar(value), count)

    def _check_constant(self, name: str, column: pa.Array, first: int) -> None:
        """Raise if the file says of a column other than its folder does."""
        import pyarrow.compute as pc

        pa = arrow()
        value = self.constants[name]
        said = NO_VALUE if value is None else str(value)
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        try:
            wanted = pa.scalar(None if value is None else said, pa.string()).cast(column.type)
            other = column.is_valid() if value is None else pc.fill_null(pc.not_equal(column, wanted), True)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # '2024-W1' is no number at all
            other = pa.array(np.ones(len(column), dtype=bool))
        if pc.any(other).as_py():
            row = pc.index(other, True).as_py()
            raise BadFileError(
                self.name,
                f"its folder says {name}={shown(said)}, but its own column {name!r} does not in "
                f"{plural(pc.sum(other).as_py(), 'row')}, the first in row {first + row} ({shown(column[row])})",
            )

    @contextmanager
    def _reader(
        self, numeric: Collection[str], checksums: bool = False, labels: Collection[str] = ()
    ) -> Iterator[Reader]:
        pa = arrow()
        try:
            local = self.filesystem["type"] == "local"
            if local:
                status = os.stat(self.path)
                if not stat.S_ISREG(status.st_mode):
                    raise BadFileError(self.name, f"is {kind_of(status.st_mode)}, not a file")
            if self.size == 0:
                raise BadFileError(self.name, "is empty: it has 0 bytes")
            if local:
                self._check_unchanged(status.st_size, str(status.st_mtime_ns))
            system = opened(self.filesystem)
            if self.format == "csv":
                if not local:  # a stream does not know how long it is
                    self._check_listed(system)
                yield csv_reader(lambda: system.open_input_stream(self.path, compression="detect"), numeric)
                return
            with system.open_input_file(self.path) as file:  # no map: if the file is shortened, that kills the process
                self._check_unchanged(file.size(), self.etag)
                yield (
                    arrow_reader(file)
                    if self.format == "arrow"
                    else parquet_reader(
                        file, local=local, checksums=checksums, row_groups=self.row_groups, labels=labels
                    )
                )
        except BadFileError:
            raise
        except FileNotFoundError:
            raise BadFileError(self.name, "is no longer there, though it was listed") from None
        except (InputError, PermissionError) as error:
            raise BadFileError(self.name, reason(error, self.filesystem)) from None
        except (pa.ArrowException, OSError, ValueError, KeyError, MemoryError, OverflowError) as error:
            # of what is remote, it may be the way there that is wrong
            way = isinstance(error, OSError) and self.filesystem["type"] != "local"
            what = "can't be read" if way else f"can't be read as {_READABLE[self.format]}"
            raise BadFileError(self.name, f"{what}: {reason(error, self.filesystem)}") from None

    def _check_listed(self, system: Any) -> None:
        there = system.get_file_info(self.path)
        if not there.is_file:
            raise FileNotFoundError
        self._check_unchanged(there.size, self.etag)

    def _check_unchanged(self, size: int, etag: str) -> None:
        if size != self.size:
            raise BadFileError(self.name, f"has changed since it was listed: {self.size} bytes then, {size} now")
        if etag != self.etag:
            raise BadFileError(self.name, "has changed since it was listed: it was written to")


def _type_of(value: Any) -> Any:
    """Return the type of a column that the name of a folder gives; where it has no value, of text."""
    pa = arrow()
    return pa.scalar("" if value is None else value).type


def counted_twice(files: Collection[str], others: Collection[str]) -> str | None:
    """Return in words which of some files, by their ids, are among others; None if there are none.

    A file is known again by its content, wherever it lies, and by its place: one that was written to since would be
    counted once as it was, and once as it is.
    """
    told = [(*one.rsplit("|", 3), "", "", "")[:4] for one in others]
    contents = {(size, digest): path for path, size, digest, _ in told if digest}
    places = {place: path for path, _, digest, place in told if digest}
    wrong = []
    for one in sorted(files):
        path, size, digest, place = (*one.rsplit("|", 3), "", "", "")[:4]
        if not digest and (place or one not in others):
            continue
        other = contents.get((size, digest))
        if other is None and place not in places and one not in others:
            continue
        if other is None and one not in others:
            wrong.append(f"{path} (written to since it was counted)")
        else:
            wrong.append(path if other in (None, path) else f"{path} (the same as {other})")
    return f"{plural(len(wrong), 'file')} would be counted twice, the first {wrong[0]}" if wrong else None


def check_columns(
    name: str,
    schema: pa.Schema,
    expected: ExpectedSchema | None,
    columns: Sequence[str],
    numeric: Collection[str],
    error: Any,
) -> None:
    """Raise unless something has the columns that are needed, once each, of the types that the first file has.

    Parameters
    ----------
    name : str
        Of a file, or of what else gives rows.
    schema : pyarrow.Schema
        What it holds.
    expected : ExpectedSchema or None
        What the first file holds; None for the first itself.
    columns : sequence of str
        Those that are needed.
    numeric : collection of str
        Those that must hold numbers, or lists of them.
    error : callable
        Takes the name and what is wrong, and returns what is raised.
    """
    needed = list(columns)
    counts = Counter(schema.names)
    missing = [column for column in needed if not counts[column]]
    if missing:
        there = f"; {expected.part} has" if expected is not None and missing[0] in expected.types else ""
        raise error(name, f"has no column {listed(missing)}{there}; its columns are {listed(schema.names)}")
    unexpected = expected.unexpected(schema.names) if expected is not None else []
    if expected is not None and unexpected:
        raise error(
            name, f"has columns of predictions that {expected.part} does not have, {listed(unexpected)}: write all "
            "files alike, or say which models and times to score"
        )  # fmt: skip
    twice = [column for column in needed if counts[column] > 1]
    if twice:
        raise error(name, f"columns must have different names; repeated: {listed(twice)}")
    for column in needed:
        kind = schema.field(column).type
        if column in numeric and not is_numeric(kind):
            raise error(name, f"column {column!r} must hold numbers, not {type_name(kind)}")
        wanted = expected.types.get(column) if expected is not None else None
        if expected is not None and wanted is not None and type_name(kind) != wanted:
            raise error(
                name, f"column {column!r} is {type_name(kind)}, but {wanted} in {expected.part}; write all files alike"
            )


def check_complete(name: str, batch: pa.RecordBatch, nullable: Collection[str], first: int, error: Any) -> None:
    """Raise if values are missing in columns other than `nullable`, or in lists in them."""
    types = arrow().types
    for column, values in zip(batch.schema.names, batch.columns, strict=True):
        if column in nullable:
            continue
        if values.null_count:
            row = int(np.argmax(values.is_null().to_numpy(zero_copy_only=False)))
            raise error(
                name,
                f"column {column!r} has {plural(values.null_count, 'missing value')} in the "
                f"{plural(len(values), 'row')} from row {first} on, the first in row {first + row}",
            )
        if types.is_nested(values.type) and hasattr(values, "flatten") and not types.is_struct(values.type):
            inner = values.flatten()
            if inner.null_count:
                raise error(name, f"column {column!r} has {plural(inner.null_count, 'missing value')} in its lists")


def is_numeric(kind: Any) -> bool:
    """Whether a type is one of numbers, or of lists of them."""
    types = arrow().types
    if _is_list(kind):
        kind = kind.value_type
    return bool(types.is_integer(kind) or types.is_floating(kind))


@lru_cache(maxsize=1024)  # there are many columns in many files, and few types
def type_name(kind: Any) -> str:
    """Return a word for a type: the same for types that differ only in how they are laid out in memory."""
    types = arrow().types
    if types.is_dictionary(kind):
        return type_name(kind.value_type)
    if any(is_text(kind) for is_text in (types.is_string, types.is_large_string, types.is_string_view)):
        return "text"
    if _is_list(kind):
        length = f" of {kind.list_size}" if types.is_fixed_size_list(kind) else ""
        return f"lists{length} of {type_name(kind.value_type)}"
    return _PLAIN.get(str(kind), str(kind))


def _is_list(kind: Any) -> bool:
    types = arrow().types
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))

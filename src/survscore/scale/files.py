"""One file of a data set: what it must hold, and its rows in batches."""

from __future__ import annotations

import csv as text_csv
import hashlib
import os
import posixpath
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from survscore._validation import InputError, plural, shown
from survscore.io.files import kind_of
from survscore.io.forms import NamedColumns
from survscore.io.tables import DELIMITERS, IPC_MAGIC, MISSING, arrow, listed

if TYPE_CHECKING:
    import pyarrow as pa

ROWS = 131072
FORMATS = {"parquet": "Parquet", "csv": "CSV", "arrow": "Arrow IPC"}
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"  # how folders spell a missing value
# Remote row groups of at most so many bytes are requested at once, larger ones in blocks of each column.
AHEAD, BLOCK, REMOTE_BLOCK = 64 << 20, 1 << 16, 1 << 22
CSV_HEAD, CSV_BLOCK = 1 << 16, 4 << 20
_PLAIN = {"float": "float32", "double": "float64", "halffloat": "float16"}
_SECRET = re.compile(r"key|secret|token|password|credential|sas|proxy|user", re.IGNORECASE)
_IN_ADDRESSES = (re.compile(r"(://)[^/\s@]+(?=@)"), re.compile(r"(://[^\s?]*\?)[^\s'\"]+"))  # users, and tokens


class BadFileError(InputError):
    """A file or another source cannot be read, or has invalid contents; the message names it and the reason.

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
    """The columns that all files must have, with types in words, and all `names` of the first file.

    `naming` has the patterns by which columns of predictions were recognised, "" for the usual names: another file must
    not have more of them (of the `models` that were named, if any), since a time that the first file lacks would be
    left out of all. It is None where columns were named one by one.
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
        """Return the columns of predictions among `names` that the first file does not have."""
        new, unexpected = sorted(set(names) - set(self.names)), set()
        for pattern in self.naming or () if new else ():
            named = NamedColumns.of(new, [], pattern or None)
            by_time, by_cause = (
                {model: own for model, own in by_model.items() if not self.models or model in self.models}
                for by_model in (named.by_time, named.by_cause)
            )
            unexpected |= replace(named, by_time=by_time, by_cause=by_cause).columns  # type: ignore[arg-type]
        return sorted(unexpected)


@dataclass(frozen=True)
class FilePart:
    """One file, or some of its row groups: what travels to where it is read, instead of its rows.

    The file system may hold credentials and is not shown. Size and time of change (0 if unknown) are those of when the
    file was listed; `constants` are columns in the names of folders, None for `NO_VALUE`; `relative` is the path below
    the source; the digest of the content is "" until `identified` adds it.
    """

    path: str
    filesystem: Any = field(repr=False, hash=False)
    format: str
    size: int
    changed: int = 0
    constants: Mapping[str, Any] = field(default_factory=dict, hash=False)
    row_groups: tuple[int, int] | None = None
    relative: str = ""
    digest: str = ""

    @property
    def name(self) -> str:
        """Its path, or its address without credentials."""
        return name_of(self.filesystem, self.path)

    @property
    def short_name(self) -> str:
        """Its path below the source, which states may hold."""
        return self.relative or posixpath.basename(self.path)

    @property
    def is_local(self) -> bool:
        """Whether it is on this machine."""
        return bool(self.filesystem.type_name == "local")

    @property
    def id(self) -> str:
        """What states know it by: path below the source, size, digests of its content and of where it is stored."""
        place = hashlib.sha256(self.name.encode()).hexdigest()[:16]
        return f"{self.short_name}|{self.size}|{self.digest}|{place}"

    @property
    def uncounted_id(self) -> str:
        """The same where none of its rows were counted, so that it may come again."""
        return replace(self, digest="").id

    @property
    def start(self) -> int:
        """The first of its row groups."""
        return 0 if self.row_groups is None else self.row_groups[0]

    @property
    def ids(self) -> tuple[str, ...]:
        """Its id; of several pieces of a file only the first has it."""
        return () if self.start else (self.id,)

    def split(self, n: int, rows: int = 1) -> list[FilePart]:
        """Return up to `n` pieces of at least so many rows; a file without row groups stays whole."""
        if self.format != "parquet" or self.row_groups is not None or n < 2:
            return [self]
        with self._opened() as reader:
            after = np.cumsum(reader.groups)
        n = min(n, int(after[-1]) // rows) if after.size else 1
        if n < 2:
            return [self]
        ends = np.searchsorted(after, after[-1] * np.arange(1, n) / n) + 1
        bounds = np.unique([0, *np.minimum(ends, after.size), after.size]).tolist()
        return [replace(self, row_groups=pair) for pair in pairwise(bounds)]

    def schema(self, *, numeric: Collection[str] = ()) -> pa.Schema:
        """Return the names and types of its columns, with those that the names of folders give."""
        with self._opened(numeric) as reader:
            return self._with_folders(reader.schema)

    def expected(self, columns: Sequence[str], *, numeric: Collection[str] = ()) -> ExpectedSchema:
        """Return the types of its columns, with which those of other files are compared."""
        schema = self.schema(numeric=numeric)
        check_columns(self.name, schema, None, columns, numeric)
        return ExpectedSchema.of(self.short_name, schema, columns)

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
        """Read some columns, in the calling thread, in batches of at most so many rows.

        Values may be missing in the columns `nullable`; `numeric` must hold numbers, or lists of them. Of `labels` only
        the distinct values are used: they may be read as dictionaries. To verify `checksums` of Parquet pages takes a
        fifth to a half longer.
        """
        with self._opened(numeric, checksums, labels) as reader:
            check_columns(self.name, self._with_folders(reader.schema), expected, columns, numeric)
            own = [name for name in columns if name in reader.schema.names]
            first = reader.first
            for batch in reader.batches(own or reader.schema.names[:1], rows):
                # by name: of Parquet, a column '30' comes with one that is called '30.5'
                arrays = [
                    batch.column(name) if name in own else self._constant(name, len(batch), name in labels)
                    for name in columns
                ]
                whole = arrow().RecordBatch.from_arrays(arrays, names=list(columns))
                check_complete(self.name, whole, nullable, first)
                for name in self.constants.keys() & set(own):
                    self._check_constant(name, whole.column(name), first)
                yield whole
                first += len(whole)

    def _with_folders(self, schema: pa.Schema) -> pa.Schema:
        for name, value in self.constants.items():
            if name not in schema.names:
                schema = schema.append(arrow().field(name, _scalar(value).type))
        return schema

    def _constant(self, name: str, count: int, label: bool) -> pa.Array:
        value = self.constants[name]
        if not label:
            return arrow().repeat(_scalar(value), count)
        # a folder without a value is a segment of its own
        return arrow().repeat(_scalar(NO_VALUE if value is None else value), count).dictionary_encode()

    def _check_constant(self, name: str, column: pa.Array, first: int) -> None:
        """Raise if a column of the file contradicts the name of its folder."""
        import pyarrow.compute as pc

        pa = arrow()
        value = self.constants[name]
        column = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
        try:
            wanted = _scalar(value).cast(column.type)
            same = column.is_null() if value is None else pc.fill_null(pc.equal(column, wanted), False)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # '2024-W1' is no number at all
            same = pa.array(np.zeros(len(column), dtype=bool))
        row = pc.index(same, False).as_py()
        if row >= 0:
            folder = f"{name}={shown(NO_VALUE if value is None else value)}"
            what = f"its own column {name!r} does not in row {first + row} ({shown(column[row])})"
            raise BadFileError(self.name, f"its folder says {folder}, but {what}")

    @contextmanager
    def _opened(
        self, numeric: Collection[str] = (), checksums: bool = False, labels: Collection[str] = ()
    ) -> Iterator[Reader]:
        """Give a reader of the file; what goes wrong meanwhile becomes one line with its name."""
        pa = arrow()
        try:
            self._check_unchanged()
            if self.format == "csv":
                yield _csv(lambda: self.filesystem.open_input_stream(self.path, compression="detect"), numeric)
                return
            with self.filesystem.open_input_file(self.path) as file:
                yield _arrow(file) if self.format == "arrow" else _parquet(file, self, checksums, labels)
        except BadFileError:
            raise
        except FileNotFoundError:
            raise BadFileError(self.name, "is no longer there, though it was listed") from None
        except (InputError, PermissionError) as error:
            raise BadFileError(self.name, reason(error, self.filesystem)) from None
        except (pa.ArrowException, OSError, ValueError, KeyError, MemoryError, OverflowError) as error:
            # of a remote file, the connection may be at fault
            remote = isinstance(error, OSError) and not self.is_local
            what = "can't be read" if remote else f"can't be read as {FORMATS[self.format]}"
            raise BadFileError(self.name, f"{what}: {reason(error, self.filesystem)}") from None

    def _check_unchanged(self) -> None:
        there = self.filesystem.get_file_info(self.path)
        if there.type.name == "NotFound":
            raise FileNotFoundError
        if not there.is_file:
            kind = kind_of(os.stat(self.path).st_mode) if self.is_local else "a folder"
            raise BadFileError(self.name, f"is {kind}, not a file")
        if self.size == 0:
            raise BadFileError(self.name, "is empty: it has 0 bytes")
        changed = "has changed since it was listed"
        if there.size != self.size:
            raise BadFileError(self.name, f"{changed}: {self.size} bytes then, {there.size} now")
        if (there.mtime_ns or 0) != self.changed:
            raise BadFileError(self.name, f"{changed}: it was written to")


class Reader(NamedTuple):
    """An open file: its schema, and a function that reads some of its columns in batches of at most so many rows."""

    schema: Any
    batches: Callable[[Sequence[str], int], Iterator[Any]]
    groups: tuple[int, ...] = ()  # the rows of every row group, in Parquet
    first: int = 0  # the row of the file with which reading begins


def _parquet(file: Any, part: FilePart, checksums: bool, labels: Collection[str]) -> Reader:
    """Read Parquet by `ParquetFile`: scanners of `pyarrow.dataset` hold whole row groups, decoded, of any size.

    The file is read, not mapped: a map is hardly faster, and ends the process if the file shrinks meanwhile.
    """
    import pyarrow.parquet as pq

    metadata = pq.read_metadata(file)
    names = metadata.schema.to_arrow_schema().names
    start, stop = part.row_groups or (0, metadata.num_row_groups)
    largest = max((metadata.row_group(group).total_byte_size for group in range(start, stop)), default=0)
    # Where every request takes long, a row group is requested at once, unless it would fill the memory; elsewhere a
    # small buffer, which stays in the processor's cache, is as fast as a map.
    ahead = not part.is_local and largest <= AHEAD
    opened = pq.ParquetFile(
        file,
        metadata=metadata,
        pre_buffer=ahead,
        buffer_size=0 if ahead else BLOCK if part.is_local else REMOTE_BLOCK,
        read_dictionary=[name for name in labels if name in names],
        page_checksum_verification=checksums,
    )
    groups = tuple(metadata.row_group(group).num_rows for group in range(metadata.num_row_groups))
    promised = sum(groups[start:stop])

    def batches(columns: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:
        read = 0
        # what is requested ahead stays in memory until all of it is read: of all groups together, that is the file
        for some in [[group] for group in range(start, stop)] if ahead else [range(start, stop)]:
            for batch in opened.iter_batches(rows, row_groups=list(some), columns=list(columns), use_threads=False):
                read += batch.num_rows
                yield batch
        if read != promised:
            raise InputError(f"it is damaged: it promises {promised} rows, and holds {read}")

    return Reader(opened.schema_arrow, batches, groups, sum(groups[:start]))


def _arrow(file: Any) -> Reader:
    """Read Arrow's own format, a file or a stream."""
    ipc = arrow().ipc
    is_file = file.read(len(IPC_MAGIC)) == IPC_MAGIC
    file.seek(0)
    open_as = ipc.open_file if is_file else ipc.open_stream
    schema = open_as(file).schema

    def batches(columns: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:
        file.seek(0)
        options = ipc.IpcReadOptions(included_fields=[schema.names.index(name) for name in columns], use_threads=False)
        opened = open_as(file, options=options)
        for batch in map(opened.get_batch, range(opened.num_record_batches)) if is_file else opened:
            batch.validate(full=True)  # the format has no checksums, and changed bytes may crash what reads them
            yield from sliced(batch, rows)

    return Reader(schema, batches)


def _csv(open_stream: Callable[[], Any], numeric: Collection[str]) -> Reader:
    """Read CSV as a stream; types are those of the first block, but of numbers float64."""
    from pyarrow import csv

    with open_stream() as stream:
        head = stream.read(CSV_HEAD)
    if not head.strip():
        raise InputError("it is empty: there is not even a header")
    header = head.splitlines()[0].decode("utf-8-sig")
    delimiter = max(DELIMITERS, key=header.count)
    names = next(text_csv.reader([header], delimiter=delimiter))

    def opened(columns: Sequence[str]) -> Any:
        return csv.open_csv(
            open_stream(),
            read_options=csv.ReadOptions(block_size=CSV_BLOCK, use_threads=False),
            parse_options=csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            convert_options=csv.ConvertOptions(
                null_values=MISSING,
                strings_can_be_null=True,
                include_columns=list(columns),
                column_types={name: arrow().float64() for name in numeric if name in names},
            ),
        )

    def batches(columns: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:
        with opened(columns) as reader:
            for batch in reader:
                yield from sliced(batch, rows)

    if len(set(names)) < len(names):  # refused by `check_columns`, which names them
        return Reader(arrow().schema([(name, arrow().null()) for name in names]), batches)
    with opened(names) as reader:
        return Reader(reader.schema, batches)


# What files, and other sources of rows, must hold


def checked(
    name: str,
    several: Iterable[Any],
    columns: Sequence[str],
    *,
    rows: int,
    nullable: Collection[str],
    numeric: Collection[str],
    expected: ExpectedSchema | None = None,
) -> Iterator[pa.RecordBatch]:
    """Give some columns of record batches or tables that are not from files; see `FilePart.batches`."""
    first = 0
    for given in several:
        check_rows(name, given)
        check_columns(name, given.schema, expected, columns, numeric)
        expected = expected or ExpectedSchema.of("the first batch", given.schema, columns)
        chosen = given.select(list(columns))
        for batch in [chosen] if isinstance(chosen, arrow().RecordBatch) else chosen.to_batches():
            for piece in sliced(batch, rows):
                check_complete(name, piece, nullable, first)
                first += len(piece)
                yield piece


def sliced(batch: pa.RecordBatch, rows: int) -> Iterator[pa.RecordBatch]:
    """Give a batch in pieces of at most so many rows, without a copy."""
    for start in range(0, max(batch.num_rows, 1), rows):
        yield batch.slice(start, rows)


def check_rows(name: str, given: Any) -> Any:
    """Return what some source has given; raise unless these are rows."""
    if not isinstance(given, arrow().RecordBatch | arrow().Table):
        what = "nothing" if given is None else type(given).__name__
        raise InputError(f"{name} must give pyarrow RecordBatches or Tables, not {what}")
    return given


def check_columns(
    name: str, schema: pa.Schema, expected: ExpectedSchema | None, columns: Sequence[str], numeric: Collection[str]
) -> None:
    """Raise unless the columns that are needed are there, once each, with the types of the first file."""
    counts = Counter(schema.names)
    missing = [column for column in columns if not counts[column]]
    if missing:
        there = f"; {expected.part} has" if expected is not None and missing[0] in expected.types else ""
        raise BadFileError(name, f"has no column {listed(missing)}{there}; its columns are {listed(schema.names)}")
    if expected is not None and (unexpected := expected.unexpected(schema.names)):
        what = f"has columns of predictions that {expected.part} does not have, {listed(unexpected)}"
        raise BadFileError(name, f"{what}: write all files alike, or say which models and times to score")
    twice = [column for column in columns if counts[column] > 1]
    if twice:
        raise BadFileError(name, f"columns must have different names; repeated: {listed(twice)}")
    for column in columns:
        kind = schema.field(column).type
        if column in numeric and not is_numeric(kind):
            raise BadFileError(name, f"column {column!r} must hold numbers, not {type_name(kind)}")
        if expected is not None and type_name(kind) != (wanted := expected.types.get(column, type_name(kind))):
            what = f"column {column!r} is {type_name(kind)}, but {wanted} in {expected.part}"
            raise BadFileError(name, f"{what}; write all files alike")


def check_complete(name: str, batch: pa.RecordBatch, nullable: Collection[str], first: int) -> None:
    """Raise if values are missing in columns other than `nullable`, or in lists in them."""
    for column, values in zip(batch.schema.names, batch.columns, strict=True):
        if column in nullable:
            continue
        if values.null_count:
            row = int(np.argmax(values.is_null().to_numpy(zero_copy_only=False)))
            raise BadFileError(
                name,
                f"column {column!r} has {plural(values.null_count, 'missing value')} in the "
                f"{plural(len(values), 'row')} from row {first} on, the first in row {first + row}",
            )
        inner = values.flatten().null_count if _is_list(values.type) else 0
        if inner:
            raise BadFileError(name, f"column {column!r} has {plural(inner, 'missing value')} in its lists")


def is_numeric(kind: Any) -> bool:
    """Whether a type is one of numbers, or of lists of them."""
    types = arrow().types
    kind = kind.value_type if _is_list(kind) else kind
    return bool(types.is_integer(kind) or types.is_floating(kind))


@lru_cache(maxsize=1024)  # there are many columns in many files, and few types
def type_name(kind: Any) -> str:
    """Return a word for a type: the same for types that differ only in how they are laid out in memory."""
    types = arrow().types
    if types.is_dictionary(kind):
        return type_name(kind.value_type)
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return "text"
    if _is_list(kind):
        length = f" of {kind.list_size}" if types.is_fixed_size_list(kind) else ""
        return f"lists{length} of {type_name(kind.value_type)}"
    return _PLAIN.get(str(kind), str(kind))


def _is_list(kind: Any) -> bool:
    types = arrow().types
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def _scalar(value: Any) -> Any:
    """Return what the name of a folder says; text, where it has no value."""
    return arrow().scalar(value, arrow().string() if value is None else None)


def counted_twice(files: Collection[str], others: Collection[str]) -> str | None:
    """Return in words which of some files, by their ids, are among others; None if there are none.

    A file is recognised by its content, wherever it is, and by its place: one that was written to since would be
    counted once as it was, and once as it is. One without rows has no digest, and may come again.
    """
    there: dict[Any, str] = {}
    for path, size, digest, place in map(_split_id, others):
        there |= {(size, digest): path, place: path} if digest or not place else {}
    wrong = []
    for path, size, digest, place in map(_split_id, sorted(files)):
        same = there.get((size, digest)) if digest or not place else None
        if same is not None:
            wrong.append(path if same == path else f"{path} (the same as {same})")
        elif digest and place in there:
            wrong.append(f"{path} (written to since it was counted)")
    return f"{plural(len(wrong), 'file')} would be counted twice, the first {wrong[0]}" if wrong else None


def _split_id(id: str) -> tuple[str, str, str, str]:
    """Return path, size, digest of the content and place; of any other text it is the whole of it."""
    path, *rest = id.rsplit("|", 3)
    return (path, *rest) if len(rest) == 3 else (path, id, "", "")  # type: ignore[return-value]


# Names and messages hold no credentials


def name_of(filesystem: Any, path: str) -> str:
    """Return what to call a file: its path, or its address without credentials."""
    inner = getattr(getattr(filesystem, "handler", None), "fs", None)
    if filesystem.type_name == "local" or (inner is None and filesystem.type_name.startswith("py::")):
        return path  # of this machine, or within something that has no addresses, such as a Delta table
    protocol = getattr(inner, "protocol", filesystem.type_name)
    if "://" not in path:  # some, like http, keep the whole address
        path = f"{protocol if isinstance(protocol, str) else protocol[0]}://{path.lstrip('/')}"
    return without_secrets(path).replace("://***@", "://").removesuffix("?***")


def reason(error: BaseException, source: Any) -> str:
    """Return on one line what a reader complains about, without the secrets of a file system, or of its options."""
    text = " ".join(str(error).split("Detail: Python exception:")[0].split()) or type(error).__name__
    options = source if isinstance(source, Mapping) else options_of(source)
    for secret in sorted(_secrets(options), key=len, reverse=True):
        text = text.replace(secret, "***")
    return shown(without_secrets(text).rstrip(" ."), most=300)


def without_secrets(text: str) -> str:
    """Return a text without users and tokens in addresses."""
    for part in _IN_ADDRESSES:
        text = part.sub(r"\1***", text)
    return text


def options_of(filesystem: Any) -> dict[str, Any]:
    """Return the options with which a file system was made."""
    if hasattr(filesystem, "handler"):
        return dict(getattr(getattr(filesystem.handler, "fs", None), "storage_options", {}))
    made = filesystem.__reduce__()[1][0]  # how it would be copied to another process
    return dict(made) if isinstance(made, Mapping) else {}


def _secrets(options: Mapping[str, Any]) -> Iterator[str]:
    for key, value in options.items():
        if isinstance(value, Mapping):
            yield from _secrets(value)
        elif isinstance(value, str) and len(value) > 3 and _SECRET.search(key):
            yield value

"""Data frames out of R's own files, without R.

R writes objects in a format of its own, of which this reads the part that data need: vectors, factors, dates, lists and
their attributes. Functions, environments and other code are refused, so nothing of a file can run. Every length that a
file claims is held against the bytes that are there before anything of that length is made.

Two kinds of files hold such objects: ``.rda`` (or ``.RData``), with one or several by name, and the pair ``.rdb`` and
``.rdx`` of an installed package, with many that can be fetched one by one.
"""

from __future__ import annotations

import bz2
import lzma
import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from survscore._validation import InputError, shown

if TYPE_CHECKING:
    import pandas as pd

MOST_BYTES = 32 * 2**20  # of a file, and of what it unpacks to; the largest set that is known has one
MOST_OBJECTS = 200_000  # each text of a vector is one
DEEPEST = 40  # objects within objects
NA_INTEGER = -(2**31)
NO_TEXT = -1  # the length of a missing text

# The kinds of objects, as R numbers them
NULL, SYMBOL, PAIRLIST, TEXT, LOGICAL, INTEGER, REAL, COMPLEX, TEXTS = 0, 1, 2, 9, 10, 13, 14, 15, 16
LIST, POINTER, RAW = 19, 22, 24
COMPACT, BASE_ENVIRONMENT, EMPTY_ENVIRONMENT, GLOBAL_ENVIRONMENT, NIL, REFERENCE = 238, 241, 242, 253, 254, 255
NOTHING = (NULL, BASE_ENVIRONMENT, EMPTY_ENVIRONMENT, GLOBAL_ENVIRONMENT, NIL)
NUMBERS = {LOGICAL: ">i4", INTEGER: ">i4", REAL: ">f8", COMPLEX: ">c16", RAW: "u1"}
HAS_ATTRIBUTES, HAS_TAG = 1 << 9, 1 << 10


class _BrokenError(Exception):
    """What is wrong with a file, in words that follow its name."""


@dataclass(frozen=True, eq=False)
class RObject:
    """An object of R.

    Attributes
    ----------
    kind : int
        As R numbers kinds.
    value : Any
        An array of numbers, or a list of texts or of objects.
    attributes : dict of str to RObject
        Such as ``names``, ``class`` and ``levels``.
    """

    kind: int
    value: Any
    attributes: dict[str, RObject] = field(default_factory=dict)

    def texts(self, attribute: str) -> list[str | None]:
        """Return the texts of an attribute; none, where it is missing."""
        found = self.attributes.get(attribute)
        return list(found.value) if found is not None and found.kind == TEXTS else []


Named: TypeAlias = list[tuple[str | None, RObject]]  # a pairlist


def read_rda(path: Path) -> Iterator[tuple[str, RObject]]:
    """Yield the objects of an ``.rda`` or ``.RData`` file, with their names.

    Parameters
    ----------
    path : Path
        Of the file.
    """
    try:
        data = _unpacked(_bytes_of(path))
        if data[:5] not in (b"RDX2\n", b"RDX3\n"):
            raise _BrokenError("is no .rda file in R's binary format (R's save() makes one)")
        objects = _Reader(data[5:]).whole()
        if objects.kind not in (PAIRLIST, *NOTHING):
            raise _BrokenError("holds no objects by name")
        named: Named = objects.value or []
    except _BrokenError as error:
        raise InputError(f"{path} {error}") from None
    yield from ((name, one) for name, one in named if name is not None)


def read_lazy(path: Path, name: str) -> RObject | None:
    """Return an object out of an installed package's ``.rdb`` file; None, where it is not in there.

    Parameters
    ----------
    path : Path
        Of the ``.rdb`` file; the ``.rdx`` file, its index, lies beside it.
    name : str
        Of the object.
    """
    index_file = path.with_suffix(".rdx")
    if not index_file.is_file():
        raise InputError(f"{path} can't be read without {index_file.name} beside it, its index")
    try:
        index = _by_name(_Reader(_unpacked(_bytes_of(index_file))).whole())
        places = _by_name(index["variables"])
        if name not in places:
            return None
        place, compression = places[name].value, index["compressed"].value
        start, length, packing = int(place[0]), int(place[1]), int(compression[0])
    except (_BrokenError, KeyError, IndexError, TypeError, ValueError, OverflowError) as error:
        why = str(error) if isinstance(error, _BrokenError) else "is no index of an .rdb file"
        raise InputError(f"{index_file} {why}") from None
    try:
        data = _bytes_of(path)
        if not (start >= 0 and 4 < length <= len(data) - start):
            raise _BrokenError(f"ends before {shown(name)}, or its index is that of another file")
        return _Reader(_unpacked_piece(data[start : start + length], packing)).whole()
    except _BrokenError as error:
        raise InputError(f"{path} {error}") from None


def as_frame(found: RObject, what: str) -> pd.DataFrame:
    """Return a data frame of R as one of pandas: factors are categories, dates are datetime64.

    Parameters
    ----------
    found : RObject
        The data frame.
    what : str
        What it is called in messages.
    """
    import pandas as pd

    try:
        if found.kind != LIST or "data.frame" not in found.texts("class"):
            raise _BrokenError("is no data frame")
        names = found.texts("names")
        if len(names) != len(found.value) or None in names or len(set(names)) != len(names):
            raise _BrokenError("has columns without a name of their own")
        columns = {str(name): _column(one, str(name)) for name, one in zip(names, found.value, strict=True)}
        if len({len(column) for column in columns.values()}) > 1:
            raise _BrokenError("has columns of different lengths")
    except _BrokenError as error:
        raise InputError(f"{what} {error}") from None
    return pd.DataFrame(columns)


def _column(found: RObject, name: str) -> Any:
    import pandas as pd

    kinds = found.texts("class")
    if found.kind == TEXTS:
        return pd.Series(found.value, dtype=object)
    if found.kind not in (LOGICAL, INTEGER, REAL):
        raise _BrokenError(f"has a column that holds no numbers, texts or dates: {shown(name)}")
    values: NDArray[Any] = found.value
    missing = np.isnan(values) if found.kind == REAL else values == NA_INTEGER
    if "factor" in kinds:
        levels = found.texts("levels")
        codes = np.where(missing, 0, values).astype(np.int64) if found.kind == INTEGER else np.array([-1])
        if None in levels or len(set(levels)) != len(levels) or ((codes < 0) | (codes > len(levels))).any():
            raise _BrokenError(f"has a column whose levels do not fit its values: {shown(name)}")
        return pd.Series(pd.Categorical.from_codes(codes - 1, categories=pd.Index(levels)))
    if "Date" in kinds:
        days = np.where(missing, 0, values)
        if not (np.abs(days) < 100_000).all():
            raise _BrokenError(f"has a column with dates before 1697 or after 2243: {shown(name)}")
        dates = days.astype(np.int64).astype("datetime64[D]")
        return pd.Series(np.where(missing, np.datetime64("NaT"), dates).astype("datetime64[ns]"))
    if found.kind == REAL or missing.any():
        return pd.Series(np.where(missing, np.nan, values))
    return pd.Series(values.astype(bool if found.kind == LOGICAL else np.int64))


def _by_name(found: RObject) -> Mapping[str, RObject]:
    if found.kind != LIST:
        raise _BrokenError("is no index of an .rdb file")
    return {str(name): one for name, one in zip(found.texts("names"), found.value, strict=False)}


class _Reader:
    """Reads one object out of bytes, and never past their end."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.place = 0
        self.references: list[RObject] = []
        self.n_objects = 0

    def whole(self) -> RObject:
        """Return the object that the bytes are, from the first to the last."""
        if self.take(2) != b"X\n":
            raise _BrokenError("is not in R's binary format (XDR)")
        version = self.integer()
        self.take(8)  # which versions of R wrote it, and can read it
        if version not in (2, 3):
            raise _BrokenError(f"is in version {version} of R's format; 2 and 3 are known")
        if version == 3:
            self.take(self.length(1))  # the encoding of texts that do not tell theirs
        found = self.item(0)
        if self.place != len(self.data):
            raise _BrokenError("goes on after its end: it is damaged")
        return found

    def take(self, n: int) -> bytes:
        end = self.place + n
        if end > len(self.data):
            raise _BrokenError("ends too early: it is truncated or damaged")
        taken = self.data[self.place : end]
        self.place = end
        return taken

    def integer(self) -> int:
        return int(struct.unpack(">i", self.take(4))[0])

    def length(self, width: int) -> int:
        """Return how many things of some bytes each follow, which must be there."""
        n = self.integer()
        if not 0 <= n * width <= len(self.data) - self.place:
            raise _BrokenError(f"claims {n} values where there are not so many: it is truncated or damaged")
        return n

    def item(self, depth: int) -> RObject:
        """Return the object that begins here."""
        return self.flagged(self.integer(), depth)

    def flagged(self, flags: int, depth: int) -> RObject:
        """Return the object whose kind, and what it has, was just read."""
        self.n_objects += 1
        if depth > DEEPEST or self.n_objects > MOST_OBJECTS:
            raise _BrokenError("holds too many objects, or too many within each other, for a data frame")
        kind = flags & 0xFF
        if kind in NOTHING:
            return RObject(kind, None)
        if kind == REFERENCE:
            return self.referenced((flags >> 8) & 0xFFFFFF)
        if kind == SYMBOL:
            return self.remembered(RObject(SYMBOL, self.item(depth + 1).value))
        if kind == PAIRLIST:
            return self.pairlist(flags, depth)
        if kind == COMPACT:
            return self.compact(depth)
        found = self.vector(kind, depth)
        if flags & HAS_ATTRIBUTES:
            found.attributes.update(self.attributes(depth))
        return found

    def vector(self, kind: int, depth: int) -> RObject:
        """Return an object that may have attributes, without them."""
        if kind == TEXT:
            return RObject(TEXT, self.text())
        if kind in NUMBERS:
            width = np.dtype(NUMBERS[kind])
            values = np.frombuffer(self.take(self.length(width.itemsize) * width.itemsize), width)
            return RObject(kind, values.astype(width.newbyteorder("=")))
        if kind == POINTER:  # as data.table leaves one in its frames; what it points to is not in the file
            found = self.remembered(RObject(POINTER, None))
            self.item(depth + 1)
            self.item(depth + 1)
            return found
        if kind not in (TEXTS, LIST):
            raise _BrokenError(f"holds something that is no data, such as a function (R's kind {kind}): it is not read")
        items = [self.item(depth + 1) for _ in range(self.length(4))]
        if kind == LIST:
            return RObject(LIST, items)
        if any(one.kind != TEXT for one in items):
            raise _BrokenError("has texts that are none: it is damaged")
        return RObject(TEXTS, [one.value for one in items])

    def attributes(self, depth: int) -> dict[str, RObject]:
        found = self.item(depth + 1)
        named: Named = found.value if found.kind == PAIRLIST else []
        return {name: one for name, one in named if name is not None}

    def pairlist(self, flags: int, depth: int) -> RObject:
        """Return a chain of objects with names. Each says what follows: another link, nothing, or a last object."""
        chain: Named = []
        while flags & 0xFF == PAIRLIST:
            if flags & HAS_ATTRIBUTES:
                self.item(depth + 1)
            name = self.item(depth + 1).value if flags & HAS_TAG else None
            chain.append((name if isinstance(name, str) else None, self.item(depth + 1)))
            flags = self.integer()
        last = self.flagged(flags, depth + 1)
        return RObject(PAIRLIST, chain if last.kind in NOTHING else [*chain, (None, last)])

    def compact(self, depth: int) -> RObject:
        """Return a vector that R keeps in another form: a range of numbers, or one that is wrapped."""
        about, state, attributes = self.item(depth + 1), self.item(depth + 1), self.attributes(depth)
        form = about.value[0][1].value if about.kind == PAIRLIST and about.value else None
        if form in ("compact_intseq", "compact_realseq") and state.kind == REAL and state.value.size == 3:
            n, first, step = state.value
            if not (0 <= n <= MOST_OBJECTS and abs(first) < 2**31 and abs(step) == 1):
                raise _BrokenError("has a range of numbers that is too long, or none")
            values = first + step * np.arange(int(n))
            integers = form == "compact_intseq"
            return RObject(INTEGER if integers else REAL, values.astype(np.int32) if integers else values, attributes)
        if isinstance(form, str) and form.startswith("wrap_") and state.kind in (LIST, PAIRLIST) and state.value:
            wrapped: RObject = state.value[0] if state.kind == LIST else state.value[0][1]
            return RObject(wrapped.kind, wrapped.value, {**wrapped.attributes, **attributes})
        raise _BrokenError(f"holds a vector in a form that is not known ({shown(form)})")

    def text(self) -> str | None:
        length = self.integer()
        if length == NO_TEXT:
            return None
        if not 0 <= length <= len(self.data) - self.place:
            raise _BrokenError("ends within a text: it is truncated or damaged")
        text = self.take(length)
        try:
            return text.decode("utf-8")
        except UnicodeDecodeError:
            return text.decode("latin-1")

    def remembered(self, found: RObject) -> RObject:
        self.references.append(found)
        return found

    def referenced(self, number: int) -> RObject:
        number = number or self.integer()
        if not 1 <= number <= len(self.references):
            raise _BrokenError("refers to something that it does not hold: it is damaged")
        return self.references[number - 1]


def _bytes_of(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise _BrokenError(f"can't be read: {error.strerror}") from None
    if len(data) > MOST_BYTES:
        raise _BrokenError(f"is larger than {MOST_BYTES >> 20} MB: no set that is known is")
    return data


def _unpacked(data: bytes) -> bytes:
    """Return what a whole file unpacks to, by how it begins."""
    if data[:2] == b"\x1f\x8b":
        return _decompressed(zlib.decompressobj(wbits=31), data)
    if data[:3] == b"BZh":
        return _decompressed(bz2.BZ2Decompressor(), data)
    if data[:6] == b"\xfd7zXZ\x00":
        return _decompressed(lzma.LZMADecompressor(memlimit=256 * 2**20), data)
    return data


def _unpacked_piece(piece: bytes, packing: int) -> bytes:
    """Return what a piece of an ``.rdb`` file unpacks to; it begins with its length, and with how it is packed."""
    claimed = int.from_bytes(piece[:4], "big")
    if claimed > MOST_BYTES:
        raise _BrokenError(f"claims to unpack to {claimed >> 20} MB: no set that is known does")
    if packing == 1:
        data = _decompressed(zlib.decompressobj(), piece[4:])
    elif packing in (2, 3) and piece[4:5] == b"Z":
        filters = [{"id": lzma.FILTER_LZMA2, "dict_size": 2**23}]
        data = _decompressed(lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=filters), piece[5:])
    elif packing in (2, 3) and piece[4:5] == b"2":
        data = _decompressed(bz2.BZ2Decompressor(), piece[5:])
    elif packing in (2, 3) and piece[4:5] == b"0":
        data = piece[5:]
    else:
        raise _BrokenError("is packed in a way that is not known")
    if len(data) != claimed:
        raise _BrokenError("unpacks to another length than it claims: it is damaged")
    return data


def _decompressed(decompressor: Any, data: bytes) -> bytes:
    try:
        unpacked: bytes = decompressor.decompress(data, MOST_BYTES + 1)
    except (zlib.error, lzma.LZMAError, OSError, ValueError):
        raise _BrokenError("can't be unpacked: it is damaged") from None
    if len(unpacked) > MOST_BYTES:
        raise _BrokenError(f"unpacks to more than {MOST_BYTES >> 20} MB: no set that is known does")
    if not decompressor.eof:
        raise _BrokenError("ends too early: it is truncated")
    if decompressor.unused_data:
        raise _BrokenError("goes on after its end: it is damaged")
    return unpacked

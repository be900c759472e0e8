"""Data frames out of R's own files by the package rdata, without R.

A file may come from anywhere, and rdata trusts what it reads. So what a file unpacks to is bounded, nothing but data is
parsed (no functions or bytecode, whose sizes a damaged file could choose), and whatever fails is an `InputError` of one
line.
"""

from __future__ import annotations

import bz2
import lzma
import warnings
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from rdata.conversion import DEFAULT_CLASS_MAP, convert
from rdata.parser import DEFAULT_ALTREP_MAP, RObject, RObjectType
from rdata.parser._xdr import ParserXDR  # the only way to bound what is parsed

from survscore._validation import InputError, shown

MOST_BYTES = 32 * 2**20  # of a file, and of what it unpacks to; the largest known set has one
MOST_OBJECTS = 200_000  # each text of a vector is one
# The types of data; data.table leaves an external pointer in its frames, but not what it points to.
DATA = {
    RObjectType[name]
    for name in ("NIL", "NILVALUE", "SYM", "LIST", "CHAR", "LGL", "INT", "REAL", "STR", "VEC", "REF", "EXTPTR")
}
# How a whole file begins, by how it is packed; and how a piece of an .rdb file does, which begins with its length.
PACKED: dict[bytes, Callable[[], Any]] = {
    b"\x1f\x8b": lambda: zlib.decompressobj(wbits=31),
    b"BZh": bz2.BZ2Decompressor,
    b"\xfd7zXZ\x00": lambda: lzma.LZMADecompressor(memlimit=256 * 2**20),
}
PACKED_PIECE: dict[bytes, Callable[[], Any]] = {
    b"2": bz2.BZ2Decompressor,
    b"Z": lambda: lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=[{"id": lzma.FILTER_LZMA2, "dict_size": 2**23}]),
}


class _BrokenError(Exception):
    """What is wrong with a file, in words that follow its name."""


def read_frame(path: Path, name: str) -> pd.DataFrame:
    """Return a data frame out of an ``.rda``, ``.RData`` or ``.rdb`` file of R.

    An ``.rdb`` file, with the objects of an installed package, has its index (``.rdx``) beside it. Factors are
    categories, dates are datetime64, whole numbers with missing values are floats.
    """
    found = _of_package(path, name) if path.suffix == ".rdb" else _saved(path, name)
    with _one_line(path):
        if not isinstance(found, pd.DataFrame):
            raise _BrokenError(f"holds a {shown(name)} that is no data frame")
        return pd.DataFrame({str(column): _column(found[column]) for column in found.columns})


def _saved(path: Path, name: str) -> Any:
    """Return an object out of a file that R's ``save`` has written."""
    with _one_line(path):
        data = _unpacked(_bytes_of(path))
        if data[:5] not in (b"RDX2\n", b"RDX3\n"):
            raise _BrokenError("is no .rda file in R's binary format (R's save() makes one)")
        objects = _objects(data[5:])
        if not isinstance(objects, Mapping) or name not in objects:
            raise _BrokenError(f"holds no {name}")
        return objects[name]


def _of_package(path: Path, name: str) -> Any:
    """Return an object out of an installed package's ``.rdb`` file, by the index in the ``.rdx`` file beside it."""
    index_file = path.with_suffix(".rdx")
    if not index_file.is_file():
        raise InputError(f"{path} can't be read without {index_file.name} beside it, its index")
    with _one_line(index_file):
        index = _objects(_unpacked(_bytes_of(index_file)))
        if name not in index["variables"]:
            raise InputError(f"{path} holds no {name}")
        start, length = map(int, index["variables"][name])
        (packing,) = map(int, index["compressed"])
    with _one_line(path):
        data = _bytes_of(path)
        if not (start >= 0 and 4 < length <= len(data) - start):
            raise _BrokenError(f"ends before {shown(name)}, or its index is that of another file")
        return _objects(_unpacked_piece(data[start : start + length], packing))


@contextmanager
def _one_line(path: Path) -> Iterator[None]:
    """Turn whatever goes wrong with a file into an `InputError` that names it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of classes that rdata does not know, which stay numbers
            yield
    except InputError:
        raise
    except _BrokenError as error:
        raise InputError(f"{path} {error}") from None
    except Exception as error:  # damaged bytes make the parser raise anything
        reason = f"{type(error).__name__}: {error}".partition("\n")[0]
        raise InputError(f"{path} can't be read as R's data, it may be damaged: {shown(reason, 200)}") from None


class _BoundedParser(ParserXDR):
    """rdata's parser, for data of a bounded size only."""

    n_objects = 0

    def parse_R_object(self, *positional: Any, **named: Any) -> RObject:  # noqa: N802
        self.n_objects += 1
        if self.n_objects > MOST_OBJECTS:
            raise _BrokenError("holds too many objects for a data frame")
        found: RObject = super().parse_R_object(*positional, **named)
        if found.info.type not in DATA:
            raise _BrokenError(f"holds something that is no data ({found.info.type.name}), such as a function")
        return found

    def _parse_array_values(self, dtype: Any, length: int) -> Any:
        values = super()._parse_array_values(dtype, length)
        if len(values) != length:
            raise _BrokenError("ends too early: it is truncated or damaged")
        return values

    def _parse_bytecode(self, *_: Any, **__: Any) -> Any:
        raise _BrokenError("holds something that is no data, such as a function")


def _bounded_range(kind: bytes) -> Any:
    """Return how a range of numbers is read, which R stores as its length, first value and step."""

    def read(state: Any) -> tuple[Any, Any]:
        n, _, step = state.value
        if not (0 <= n <= MOST_OBJECTS and abs(step) == 1):
            raise _BrokenError("has a range of numbers that is too long, or none")
        return DEFAULT_ALTREP_MAP[kind](state)

    return read


RANGES = {kind: _bounded_range(kind) for kind in (b"compact_intseq", b"compact_realseq")}


def _dates(days: Any, _: Any) -> Any:
    """Return R's dates, which are days since 1970; rdata has no class for them."""
    values: NDArray[Any] = np.ma.filled(np.ma.asarray(days, dtype=float), np.nan)
    if (np.abs(values) >= 100_000).any():
        raise _BrokenError("has dates before 1697 or after 2243")
    whole = np.nan_to_num(values).astype("datetime64[D]").astype("datetime64[ns]")
    return np.where(np.isnan(values), np.datetime64("NaT", "ns"), whole)


CLASSES: dict[str | bytes, Any] = {
    **{name: DEFAULT_CLASS_MAP[name] for name in ("data.frame", "factor", "ordered")},
    "Date": _dates,
}


def _objects(data: bytes) -> Any:
    """Return what serialized bytes hold, from the first to the last, as objects of Python."""
    if data[:2] != b"X\n":
        raise _BrokenError("is not in R's binary format (XDR)")
    altrep = {**DEFAULT_ALTREP_MAP, **RANGES}
    parser = _BoundedParser(memoryview(data)[2:], expand_altrep=True, altrep_constructor_dict=altrep)
    parsed = parser.parse_all()
    if parser.file.read(1):
        raise _BrokenError("goes on after its end: it is damaged")
    # version 2 does not say which encoding unmarked texts have; latin-1 reads any bytes
    return convert(parsed, CLASSES, default_encoding=None if parsed.extra.encoding else "latin_1")


def _column(column: pd.Series[Any]) -> Any:
    """Return a column with NumPy's types, as tables of Python packages have them."""
    if isinstance(column.dtype, pd.CategoricalDtype) or column.dtype.kind in "fM":
        return column.array
    if column.dtype.kind in "iub":
        whole = np.int64 if column.dtype.kind != "b" else bool
        return column.to_numpy(float, na_value=np.nan) if column.hasnans else column.to_numpy(whole)
    if isinstance(column.dtype, pd.StringDtype):
        return column.astype(object).where(column.notna(), None).array
    raise _BrokenError(f"has a column that holds no numbers, texts or dates: {shown(column.name)}")


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
    for magic, decompressor in PACKED.items():
        if data.startswith(magic):
            return _decompressed(decompressor(), data)
    return data


def _unpacked_piece(piece: bytes, packing: int) -> bytes:
    """Return what a piece of an ``.rdb`` file unpacks to; it begins with its length, and with how it is packed."""
    kind = piece[4:5]
    if packing == 1:
        data = _decompressed(zlib.decompressobj(), piece[4:])
    elif packing in (2, 3) and kind in PACKED_PIECE:
        data = _decompressed(PACKED_PIECE[kind](), piece[5:])
    elif packing in (2, 3) and kind == b"0":
        data = piece[5:]
    else:
        raise _BrokenError("is packed in a way that is not known")
    if len(data) != int.from_bytes(piece[:4], "big"):
        raise _BrokenError("unpacks to another length than it claims: it is damaged")
    return data


def _decompressed(decompressor: Any, data: bytes) -> bytes:
    unpacked: bytes = decompressor.decompress(data, MOST_BYTES + 1)
    if len(unpacked) > MOST_BYTES:
        raise _BrokenError(f"unpacks to more than {MOST_BYTES >> 20} MB: no set that is known does")
    if not decompressor.eof:
        raise _BrokenError("ends too early: it is truncated")
    if decompressor.unused_data:
        raise _BrokenError("goes on after its end: it is damaged")
    return unpacked

"""The reader of R's files: it agrees with another one, and bytes that were not written by R do no harm."""

import bz2
import gzip
import lzma
import struct
import warnings
import zlib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from survscore import InputError
from survscore.datasets import r_serialized
from survscore.datasets.r_serialized import as_frame, read_lazy, read_rda

rdata = pytest.importorskip("rdata", reason="needs rdata: pip install '.[dev]'")

HEADER = b"X\n" + struct.pack(">iii", 2, 0x30500, 0x20300)
INTEGER, REAL, TEXTS, LIST, TEXT, SYMBOL, PAIRLIST, NIL, ALTREP, CLOSURE = 13, 14, 16, 19, 9, 1, 2, 254, 238, 3
WITH_ATTRIBUTES, WITH_TAG = 1 << 9, 1 << 10


# What R writes, written here


def integer(value):
    return struct.pack(">i", value)


def text(value):
    return integer(TEXT) + integer(len(value)) + value.encode()


def integers(values, flags=0):
    return integer(INTEGER | flags) + integer(len(values)) + struct.pack(f">{len(values)}i", *values)


def reals(values, flags=0):
    return integer(REAL | flags) + integer(len(values)) + struct.pack(f">{len(values)}d", *values)


def texts(*values):
    return integer(TEXTS) + integer(len(values)) + b"".join(map(text, values))


def pairs(**values):
    items = (integer(PAIRLIST | WITH_TAG) + integer(SYMBOL) + text(name) + value for name, value in values.items())
    return b"".join(items) + integer(NIL)


def frame(**columns):
    attributes = pairs(**{"names": texts(*columns), "class": texts("data.frame")})
    return integer(LIST | WITH_ATTRIBUTES) + integer(len(columns)) + b"".join(columns.values()) + attributes


def rda(written, name="data"):
    return b"RDX2\n" + HEADER + pairs(**{name: written})


def saved(folder, content, file="data.rda"):
    path = folder / file
    path.write_bytes(content)
    return path


def read(folder, content):
    return as_frame(dict(read_rda(saved(folder, content)))["data"], "data")


SMALL = rda(
    frame(
        a=integers([1, 2, -(2**31)]),
        b=reals([0.5, np.nan, 2.0]),
        c=integers([1, 2, 1], WITH_ATTRIBUTES) + pairs(**{"levels": texts("no", "yes"), "class": texts("factor")}),
        d=reals([0.0, 365.0, np.nan], WITH_ATTRIBUTES) + pairs(**{"class": texts("Date")}),
        e=texts("x", "y", "z"),
    )
)


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lzma.compress], ids=["plain", "gz", "bz2", "xz"])
def test_a_frame_is_read_however_it_is_packed(tmp_path, pack):
    expected = pd.DataFrame(
        {
            "a": [1.0, 2.0, np.nan],
            "b": [0.5, np.nan, 2.0],
            "c": pd.Categorical(["no", "yes", "no"]),
            "d": pd.to_datetime(["1970-01-01", "1971-01-01", None]),
            "e": ["x", "y", "z"],
        }
    )
    pd.testing.assert_frame_equal(read(tmp_path, pack(SMALL)), expected)


@pytest.mark.parametrize(
    ("packing", "pack"),
    [
        (1, zlib.compress),
        (2, lambda data: b"2" + bz2.compress(data)),
        (3, lambda data: b"Z" + lzma.compress(data, lzma.FORMAT_RAW, filters=[{"id": lzma.FILTER_LZMA2, "preset": 6}])),
        (3, lambda data: b"0" + data),
    ],
)
def test_a_piece_of_an_installed_package_is_read(tmp_path, packing, pack):
    written = HEADER + frame(a=integers([1, 2]))
    piece = len(written).to_bytes(4, "big") + pack(written)
    path = saved(tmp_path, b"before" + piece, "Rdata.rdb")
    saved(tmp_path, gzip.compress(index(6, len(piece), packing)), "Rdata.rdx")
    assert as_frame(read_lazy(path, "data"), "data")["a"].tolist() == [1, 2]
    assert read_lazy(path, "other") is None


def index(start, length, packing):
    def named(**values):
        return (
            integer(LIST | WITH_ATTRIBUTES)
            + integer(len(values))
            + b"".join(values.values())
            + pairs(names=texts(*values))
        )

    return HEADER + named(variables=named(data=integers([start, length])), compressed=integers([packing]))


# Another reader


def told_by_rdata(path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of classes that it does not know, and of what it takes for another format
        return rdata.read_rda(path)


WRITTEN_BY_R = sorted(Path(rdata.TESTDATA_PATH).glob("**/*.rda"))


@pytest.mark.parametrize("path", WRITTEN_BY_R, ids=lambda path: path.stem)
def test_files_of_every_kind_are_read_as_by_rdata_or_refused_in_a_line(path):
    refused = None
    try:
        objects = dict(read_rda(path))
    except InputError as error:
        refused = str(error)
    if refused:
        assert refused.startswith(f"{path} ")
        assert "\n" not in refused
        return
    expected = told_by_rdata(path)
    assert list(objects) == list(expected)
    for name, other in expected.items():
        if not isinstance(other, pd.DataFrame):
            continue
        try:
            found = as_frame(objects[name], name)
        except InputError:
            assert any(dtype.kind == "c" for dtype in other.dtypes if isinstance(dtype, np.dtype))
            continue
        assert list(found.columns) == list(other.columns)
        for column in found.columns:
            assert found[column].astype(object).where(found[column].notna(), None).tolist() == [
                None if pd.isna(value) else value for value in other[column]
            ]


def test_data_frames_of_those_files_are_not_refused():
    kinds = [path for path in WRITTEN_BY_R if "dataframe" in path.stem and "ascii" not in path.stem]
    assert len(kinds) > 5
    for path in kinds:
        for name, found in read_rda(path):
            if "dtypes" not in path.stem:  # those have a column of complex numbers
                as_frame(found, name)
    for path in WRITTEN_BY_R:  # vectors in a form of their own, as they may be in frames
        if "altrep" in path.stem and "deferred" not in path.stem and "ascii" not in path.stem:
            ((name, found),) = read_rda(path)
            np.testing.assert_array_equal(found.value, told_by_rdata(path)[name])


# Bytes that were not written by R


def outcome(folder, content):
    """Return the frame, or the message; anything but `InputError` is a failure."""
    try:
        found = dict(read_rda(saved(folder, content)))
        return (
            as_frame(found["data"], "data") if "data" in found else "another name"
        )  # its name may be what was changed
    except InputError as error:
        return str(error)


@pytest.mark.parametrize("pack", [bytes, gzip.compress, lzma.compress, bz2.compress], ids=["plain", "gz", "xz", "bz2"])
def test_a_file_that_ends_early_is_refused_wherever_it_ends(tmp_path, pack):
    whole = pack(SMALL)
    for end in range(len(whole)):
        message = outcome(tmp_path, whole[:end])
        assert isinstance(message, str), end
        assert "\n" not in message


def test_a_file_that_goes_on_is_refused(tmp_path):
    assert "goes on after its end" in outcome(tmp_path, SMALL + b"more")
    assert "goes on after its end" in outcome(tmp_path, gzip.compress(SMALL) + b"more")


@settings(max_examples=300)
@given(st.integers(5, len(SMALL) - 1), st.binary(min_size=1, max_size=8))
def test_bytes_that_are_changed_do_no_harm(tmp_path_factory, place, bytes_):
    outcome(tmp_path_factory.getbasetemp(), SMALL[:place] + bytes_ + SMALL[place + len(bytes_) :])


@settings(max_examples=200)
@given(st.binary(max_size=200))
def test_any_bytes_do_no_harm(tmp_path_factory, bytes_):
    folder = tmp_path_factory.getbasetemp()
    for content in (bytes_, b"RDX3\n" + bytes_, b"RDX2\n" + HEADER + bytes_, gzip.compress(bytes_)):
        outcome(folder, content)


def altrep(form, *numbers):
    about = integer(PAIRLIST) + integer(SYMBOL) + text(form) + integer(NIL)
    return integer(ALTREP) + about + reals(numbers) + integer(NIL)


DEEP = b"".join(integer(LIST) + integer(1) for _ in range(100_000)) + integer(NIL)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is no .rda file"),
        (b"PK\x03\x04", "is no .rda file"),
        (b"RDA2\nA\n2\n", "is no .rda file"),
        (b"RDX2\nA\n", "not in R's binary format"),
        (b"RDX2\nX\n" + struct.pack(">iii", 9, 0, 0), "version 9 of R's format"),
        (b"RDX2\n" + HEADER + integers([1]), "holds no objects by name"),
        (rda(integer(CLOSURE)), "no data, such as a function"),
        (rda(integer(INTEGER) + integer(2**31 - 1)), "claims 2147483647 values"),
        (rda(integer(INTEGER) + integer(-1)), "claims -1 values"),
        (rda(integer(LIST) + integer(2**31 - 1)), "claims 2147483647 values"),
        (rda(integer(TEXTS) + integer(1) + integer(TEXT) + integer(2**31 - 1)), "ends within a text"),
        (rda(integer(TEXTS) + integer(1) + integers([1])), "texts that are none"),
        (rda(integer(255 | 7 << 8)), "refers to something that it does not hold"),
        (rda(DEEP), "too many within each other"),
        (rda(integer(LIST) + integer(200_000) + integer(NIL) * 200_000), "too many objects"),
        (rda(frame(a=altrep("compact_intseq", 1e12, 1, 1))), "a range of numbers that is too long"),
        (rda(frame(a=altrep("compact_intseq", np.nan, 1, 1))), "a range of numbers that is too long"),
        (rda(frame(a=altrep("mmap_real", 1, 1, 1))), "a form that is not known (mmap_real)"),
        (rda(integers([1, 2])), "is no data frame"),
        (rda(frame(a=integers([1]), b=integers([1, 2]))), "columns of different lengths"),
        (rda(frame(a=frame(b=integers([1])))), "a column that holds no numbers, texts or dates: a"),
        (
            rda(frame(a=integers([3], WITH_ATTRIBUTES) + pairs(**{"levels": texts("x"), "class": texts("factor")}))),
            "levels do not fit its values: a",
        ),
        (
            rda(frame(a=reals([np.inf], WITH_ATTRIBUTES) + pairs(**{"levels": texts("x"), "class": texts("factor")}))),
            "levels do not fit its values: a",
        ),
        (rda(frame(a=reals([1e300], WITH_ATTRIBUTES) + pairs(**{"class": texts("Date")}))), "dates before 1697"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(tmp_path, content, message):
    told = outcome(tmp_path, content)
    assert message in told
    assert "\n" not in told


def test_a_range_of_numbers_is_read(tmp_path):
    found = read(tmp_path, rda(frame(a=altrep("compact_intseq", 3, 5, 1), b=altrep("compact_realseq", 3, 2, -1))))
    assert found["a"].tolist() == [5, 6, 7]
    assert found["b"].tolist() == [2.0, 1.0, 0.0]


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, bz2.compress], ids=["gz", "xz", "bz2"])
def test_a_file_that_unpacks_to_too_much_is_refused(tmp_path, monkeypatch, pack):
    monkeypatch.setattr(r_serialized, "MOST_BYTES", 2**20)
    assert "unpacks to more than 1 MB" in outcome(tmp_path, pack(bytes(2**24)))
    assert "is larger than 1 MB" in outcome(tmp_path, bytes(2**20 + 1))


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ((0, 10**6, 1), "ends before data, or its index is that of another file"),
        ((-5, 10, 1), "ends before data"),
        ((10**9, 10, 1), "ends before data"),
        ((0, 50, 1), "claims to unpack to 3855 MB"),
        ((50, 50, 1), "can't be unpacked"),
        ((50, 50, 7), "packed in a way that is not known"),
        ((100, 20, 1), "unpacks to another length than it claims"),
    ],
)
def test_an_index_that_lies_is_found_out(tmp_path, place, message):
    packed = zlib.compress(b"abc")
    content = b"\xf0\xf0" * 25 + bytes(50) + (7).to_bytes(4, "big") + packed
    path = saved(tmp_path, content + bytes(50), "Rdata.rdb")
    if place[0] == 100:
        place = (100, 4 + len(packed), 1)
    saved(tmp_path, index(*place), "Rdata.rdx")
    with pytest.raises(InputError) as error:
        read_lazy(path, "data")
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@settings(max_examples=200)
@given(st.integers(0, 150), st.binary(min_size=1, max_size=8))
def test_an_index_whose_bytes_are_changed_does_no_harm(tmp_path_factory, place, bytes_):
    folder, whole = tmp_path_factory.getbasetemp(), index(0, 30, 1)
    path = saved(folder, bytes(40), "Rdata.rdb")
    saved(folder, whole[:place] + bytes_ + whole[place + len(bytes_) :], "Rdata.rdx")
    with pytest.raises(InputError) as error:
        raise InputError("not there") if read_lazy(path, "data") is None else AssertionError
    assert "\n" not in str(error.value)


def test_an_index_must_be_there(tmp_path):
    with pytest.raises(InputError, match=r"without Rdata\.rdx beside it"):
        read_lazy(saved(tmp_path, b"", "Rdata.rdb"), "data")

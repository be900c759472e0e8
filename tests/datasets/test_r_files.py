"""Data frames out of R's files, and that bytes which R did not write do no harm."""

import bz2
import gzip
import lzma
import struct
import zlib

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from combinations import examples
from survscore import InputError

pytest.importorskip("rdata", reason="needs rdata: pip install 'survscore[datasets]'")
from survscore.datasets import r_files
from survscore.datasets.r_files import read_frame

HEADER = b"X\n" + struct.pack(">iii", 2, 0x30500, 0x20300)
INTEGER, REAL, TEXTS, LIST, TEXT, SYMBOL, PAIRLIST = 13, 14, 16, 19, 9, 1, 2
NIL, ALTREP, CLOSURE, BYTECODE = 254, 238, 3, 21
IS_OBJECT, WITH_ATTRIBUTES, WITH_TAG = 1 << 8, 1 << 9, 1 << 10
OF_A_CLASS = IS_OBJECT | WITH_ATTRIBUTES


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


def frame(n=3, **columns):
    rows = integers([-(2**31), -n])  # how R writes that rows have no names
    attributes = pairs(**{"names": texts(*columns), "row.names": rows, "class": texts("data.frame")})
    return integer(LIST | IS_OBJECT | WITH_ATTRIBUTES) + integer(len(columns)) + b"".join(columns.values()) + attributes


def rda(written, name="data"):
    return b"RDX2\n" + HEADER + pairs(**{name: written})


def saved(folder, content, file="data.rda"):
    path = folder / file
    path.write_bytes(content)
    return path


def read(folder, content):
    return read_frame(saved(folder, content), "data")


SMALL = rda(
    frame(
        a=integers([1, 2, -(2**31)]),
        b=reals([0.5, np.nan, 2.0]),
        c=integers([1, 2, 1], OF_A_CLASS) + pairs(**{"levels": texts("no", "yes"), "class": texts("factor")}),
        d=reals([0.0, 365.0, np.nan], OF_A_CLASS) + pairs(**{"class": texts("Date")}),
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
    written = HEADER + frame(2, a=integers([1, 2]))
    piece = len(written).to_bytes(4, "big") + pack(written)
    path = saved(tmp_path, b"before" + piece, "Rdata.rdb")
    saved(tmp_path, gzip.compress(index(6, len(piece), packing)), "Rdata.rdx")
    assert read_frame(path, "data")["a"].tolist() == [1, 2]
    with pytest.raises(InputError, match="holds no other"):
        read_frame(path, "other")


def index(start, length, packing):
    def named(**values):
        items = integer(len(values)) + b"".join(values.values())
        return integer(LIST | WITH_ATTRIBUTES) + items + pairs(names=texts(*values))

    return HEADER + named(variables=named(data=integers([start, length])), compressed=integers([packing]))


# Bytes that were not written by R


def outcome(folder, content):
    """Return the frame, or the message; anything but `InputError` is a failure."""
    try:
        return read_frame(saved(folder, content), "data")
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


@examples(100)
@given(st.integers(5, len(SMALL) - 1), st.binary(min_size=1, max_size=8))
def test_bytes_that_are_changed_do_no_harm(tmp_path_factory, place, bytes_):
    outcome(tmp_path_factory.getbasetemp(), SMALL[:place] + bytes_ + SMALL[place + len(bytes_) :])


@examples(70)
@given(st.binary(max_size=200))
def test_any_bytes_do_no_harm(tmp_path_factory, bytes_):
    folder = tmp_path_factory.getbasetemp()
    for content in (bytes_, b"RDX3\n" + bytes_, b"RDX2\n" + HEADER + bytes_, gzip.compress(bytes_)):
        outcome(folder, content)


def altrep(form, *numbers):
    about = integer(PAIRLIST) + integer(SYMBOL) + text(form) + integer(NIL)
    return integer(ALTREP) + about + reals(numbers) + integer(NIL)


DAMAGED = "can't be read as R's data"
FACTOR = pairs(**{"levels": texts("x"), "class": texts("factor")})
DEEP = b"".join(integer(LIST) + integer(1) for _ in range(100_000)) + integer(NIL)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is no .rda file"),
        (b"PK\x03\x04", "is no .rda file"),
        (b"RDA2\nA\n2\n", "is no .rda file"),
        (b"RDX2\nA\n", "not in R's binary format"),
        (b"RDX2\nX\n" + struct.pack(">iii", 9, 0, 0), "version 9 unsupported"),
        (b"RDX2\n" + HEADER + integers([1]), "holds no data"),
        (rda(integers([1]), name="other"), "holds no data"),
        (rda(integer(CLOSURE) + integer(NIL) * 2), "something that is no data (CLO), such as a function"),
        (rda(integer(BYTECODE) + integer(2**31 - 1)), "something that is no data"),
        (rda(integer(INTEGER) + integer(2**31 - 1)), "ends too early"),
        (rda(integer(INTEGER) + integer(-1)), "ends too early"),
        (rda(integer(LIST) + integer(2**31 - 1)), "ends too early"),
        (rda(integer(TEXTS) + integer(1) + integer(TEXT) + integer(2**31 - 1)), "ends too early"),
        (rda(integer(255 | 7 << 8)), DAMAGED),
        (rda(DEEP), DAMAGED),
        (rda(integer(LIST) + integer(200_000) + integer(NIL) * 200_000), "too many objects"),
        (rda(frame(a=altrep("compact_intseq", 1e12, 1, 1))), "a range of numbers that is too long"),
        (rda(frame(a=altrep("compact_intseq", np.nan, 1, 1))), "a range of numbers that is too long"),
        (rda(frame(a=altrep("mmap_real", 1, 1, 1))), DAMAGED),
        (rda(integers([1, 2])), "is no data frame"),
        (rda(frame(a=integers([1]), b=integers([1, 2]))), DAMAGED),
        (rda(frame(1, a=frame(1, b=integers([1])))), DAMAGED),
        (rda(frame(1, a=integer(LIST) + integer(1) + integers([1]))), "no numbers, texts or dates: a"),
        (rda(frame(1, a=integers([3], OF_A_CLASS) + FACTOR)), DAMAGED),
        (rda(frame(1, a=reals([np.inf], OF_A_CLASS) + FACTOR)), DAMAGED),
        (rda(frame(1, a=reals([1e300], OF_A_CLASS) + pairs(**{"class": texts("Date")}))), "dates before 1697"),
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
    monkeypatch.setattr(r_files, "MOST_BYTES", 2**20)
    assert "unpacks to more than 1 MB" in outcome(tmp_path, pack(bytes(2**24)))
    assert "is larger than 1 MB" in outcome(tmp_path, bytes(2**20 + 1))


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ((0, 10**6, 1), "ends before data, or its index is that of another file"),
        ((-5, 10, 1), "ends before data"),
        ((10**9, 10, 1), "ends before data"),
        ((0, 50, 1), DAMAGED),
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
        read_frame(path, "data")
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@examples(70)
@given(st.integers(0, 150), st.binary(min_size=1, max_size=8))
def test_an_index_whose_bytes_are_changed_does_no_harm(tmp_path_factory, place, bytes_):
    folder, whole = tmp_path_factory.getbasetemp(), index(0, 30, 1)
    path = saved(folder, bytes(40), "Rdata.rdb")
    saved(folder, whole[:place] + bytes_ + whole[place + len(bytes_) :], "Rdata.rdx")
    with pytest.raises(InputError) as error:
        read_frame(path, "data")
    assert "\n" not in str(error.value)

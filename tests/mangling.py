"""Files of every form with the same content, and ways to break them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.feather

import survscore as ss
from survscore import io

N = 40


def study(seed=0, n=N):
    """Return outcomes and two models' curves, with ids."""
    rng = np.random.default_rng(seed)
    rate = rng.gamma(2, 0.03, n)
    event_time, end = rng.exponential(1 / rate).round(3), rng.uniform(5, 40, n).round(2)
    y = ss.Outcomes(np.minimum(event_time, end), event_time <= end, end)
    grid = np.array([2.5, 5, 10, 17.25, 30])
    models = {
        "net": ss.SurvivalCurves(np.exp(-rate[:, None] * grid), grid),
        "cox": ss.SurvivalCurves(np.exp(-1.5 * rate[:, None] * grid), grid),
    }
    return y, models, np.array([f"p{k:03d}" for k in range(n)])


def write(folder, kind="csv", *, seed=0, n=N, ids=True, shuffled=True):
    """Write outcomes and predictions, the latter in another order if there are ids; return both paths."""
    y, models, labels = study(seed, n)
    order = np.random.default_rng(seed + 1).permutation(n) if ids and shuffled else np.arange(n)
    outcomes, predictions = folder / f"outcomes.{kind}", folder / f"models.{kind}"
    io.write_outcomes(outcomes, y, ids=labels if ids else None)
    io.write_predictions(
        predictions, {name: curves[order] for name, curves in models.items()}, ids=labels[order] if ids else None
    )
    return outcomes, predictions


def content(frame, ending):
    """Return the bytes of a file that holds a table, without its index."""
    table, sink = pa.Table.from_pandas(frame, preserve_index=False), pa.BufferOutputStream()
    if ending == "parquet":
        return frame.to_parquet()
    if ending == "feather":
        pa.feather.write_feather(table, sink)
    elif ending == "arrow":
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
    else:
        text = frame.to_csv(index=False).encode()
        if "." not in ending:
            return text
        with pa.CompressedOutputStream(sink, {"zst": "zstd", "gz": "gzip"}[ending.split(".")[1]]) as packed:
            packed.write(text)
    return sink.getvalue().to_pybytes()


def mangle(content: bytes, rng: np.random.Generator) -> bytes:
    """Return the bytes, broken in one of many ways."""
    data = bytearray(content)
    size = len(data)
    kind = rng.integers(9)
    at = int(rng.integers(size))
    if kind == 0:  # cut short
        return bytes(data[:at])
    if kind == 1:  # one byte changed
        data[at] = int(rng.integers(256))
    elif kind == 2:  # several bytes changed
        for k in rng.integers(size, size=10):
            data[k] = int(rng.integers(256))
    elif kind == 3:  # a piece left out
        del data[at : at + int(rng.integers(1, 50))]
    elif kind == 4:  # a piece twice
        data[at:at] = data[at : at + int(rng.integers(1, 80))]
    elif kind == 5:  # something put in
        data[at:at] = rng.choice(
            [b"\x00", b",", b"\n", b'"', b"abc", b"1e400", b"-1", b"nan", b"\xff\xfe", b"::", b"50"]
        )
    elif kind == 6:  # lines in another order
        lines = content.split(b"\n")
        rng.shuffle(lines)
        return b"\n".join(lines)
    elif kind == 7:  # one value replaced
        parts = content.split(b",")
        parts[int(rng.integers(len(parts)))] = rng.choice(
            [b"", b"x", b"-3", b"101", b"1e9", b"NaN", b"inf", b"2017-01-01"]
        )
        return b",".join(parts)
    else:  # the start replaced
        data[: int(rng.integers(1, 30))] = bytes(rng.integers(0, 256, 12, dtype=np.uint8))
    return bytes(data)

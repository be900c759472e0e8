"""Some rows of a table of any size: its first ones, and some from its middle and its end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from survscore._validation import InputError
from survscore.io.files import check_regular
from survscore.io.limits import sampled_parquet
from survscore.io.tables import (
    ARROW_ENDINGS,
    CSV_ENDINGS,
    ENDINGS,
    IPC_MAGIC,
    PARQUET_ENDINGS,
    STANDARD_INPUT,
    TableFile,
    arrow,
    listed,
    open_table,
    parsed_csv,
    readable,
)

if TYPE_CHECKING:
    import pyarrow as pa

ROWS = 2000  # of each of three places in a file
WHOLE_BYTES = 2 << 20  # files of text up to here are read whole
FEWEST_LINES, MOST_BYTES = 50, 64 << 20  # where lines are long
PIECE_BYTES = 256 << 10  # of text, from the middle and the end of larger ones


@dataclass(frozen=True, eq=False)
class Sample:
    """Some rows of a table.

    Attributes
    ----------
    path : Path
        The file or folder.
    table : pyarrow.Table
        The rows.
    n_rows : int or None
        How many there are in all, where that is known without reading them.
    whole : bool
        Whether these are all rows.
    folder : bool
        Whether the table is a folder of files.
    """

    path: Path
    table: pa.Table
    n_rows: int | None
    whole: bool
    folder: bool = False

    def file(self, text: Collection[str] = ()) -> TableFile:
        """Return a file to read from as if it held only these rows; `text` is as for `open_table`."""
        if self.whole and not self.folder and str(self.path) != STANDARD_INPUT:
            return open_table(self.path, text=text)
        return TableFile(self.path, self.table.schema, self.table.num_rows, self.table.select)


def sample(path: Path) -> Sample:
    """Return some rows of a file, of standard input, or of a folder of files such as Spark writes."""
    if str(path) == STANDARD_INPUT:
        file = open_table(path)
        return Sample(path, file.read(file.names), file.n_rows, whole=True)
    if path.is_dir():
        return _sample_of_folder(path)
    name = path.name.lower()
    check_regular(path)
    if name.endswith(PARQUET_ENDINGS):
        found = _sample_of_parquet(path)
    elif name.endswith(ARROW_ENDINGS):
        found = _sample_of_arrow(path)
    elif name.endswith(ENDINGS):
        found = _sample_of_csv(path)
    else:
        open_table(path)  # says which endings there are
        raise InputError(f"{path}: can't be read")
    repeated = [column for column, count in Counter(found.table.column_names).items() if count > 1]
    if repeated:
        raise InputError(f"{path}: columns must have different names; repeated: {listed(repeated)}")
    if found.table.num_rows == 0:
        raise InputError(f"{path}: has no rows")
    return found


def _sample_of_parquet(path: Path) -> Sample:
    with readable(path):
        table, n_rows = sampled_parquet(path, ROWS)
    return Sample(path, table, n_rows, whole=table.num_rows == n_rows)


def _sample_of_arrow(path: Path) -> Sample:
    pa = arrow()
    with readable(path), pa.OSFile(str(path)) as stream:
        begins = stream.read(len(IPC_MAGIC))
        stream.seek(0)
        if begins == IPC_MAGIC:
            opened = pa.ipc.open_file(stream)
            count = opened.num_record_batches
            picked = sorted({0, count // 2, count - 1} & set(range(count)))
            batches = [opened.get_batch(k) for k in picked]
            every = len(picked) == count
        else:
            opened = pa.ipc.open_stream(stream)
            batches = [batch for batch, _ in zip(opened, range(3), strict=False)]
            every = len(batches) < 3
        for batch in batches:
            batch.validate(full=True)
        n_rows = sum(len(batch) for batch in batches) if every else None
        parts = [batch.slice(0, ROWS) for batch in batches]
        table = pa.Table.from_batches(parts, schema=opened.schema)
        table = pa.table(table.to_pydict(), schema=table.schema) if table.num_rows < 1 else table
        return Sample(path, table, n_rows, whole=n_rows == table.num_rows)


def _sample_of_csv(path: Path) -> Sample:
    pa = arrow()
    with readable(path):
        with pa.input_stream(str(path)) as stream:
            head = stream.read(WHOLE_BYTES + 1)
            if len(head) <= WHOLE_BYTES:
                file = open_table(path)
                return Sample(path, file.read(file.names), file.n_rows, whole=True)
            while head.count(b"\n") < FEWEST_LINES and len(head) < MOST_BYTES and (more := stream.read(WHOLE_BYTES)):
                head += more
        shortest = PIECE_BYTES * 2 if head.count(b"\n", 0, PIECE_BYTES * 2) >= FEWEST_LINES else len(head)
        head = head[: head.rfind(b"\n", 0, shortest) + 1] or head
        try:
            table = parsed_csv(path, head + b"".join(_later_lines(path, len(head))))
        except (pa.ArrowInvalid, InputError):  # where a line break was inside of a text
            table = parsed_csv(path, head)
        return Sample(path, table, None, whole=False)


def _later_lines(path: Path, after: int) -> Iterator[bytes]:
    """Yield whole lines from the middle and from the end of a file that is not packed, after so many bytes."""
    if not path.name.lower().endswith((".csv", ".tsv")):
        return
    size = path.stat().st_size
    with path.open("rb") as stream:
        for place in (size // 2, size - PIECE_BYTES):
            if place < after:
                continue
            stream.seek(place)
            piece = stream.read(PIECE_BYTES)
            yield piece[piece.find(b"\n") + 1 : piece.rfind(b"\n") + 1]


def _sample_of_folder(folder: Path) -> Sample:
    """Return rows of the first, the middle and the last file of a folder, as Spark and others write tables."""
    pa = arrow()
    try:
        paths = sorted(
            path
            for path in folder.rglob("*")
            if path.name.lower().endswith((*PARQUET_ENDINGS, *CSV_ENDINGS))
            and not any(part.startswith(("_", ".")) for part in path.relative_to(folder).parts)
        )
    except OSError as error:
        raise InputError(f"{folder}: can't be read: {error.strerror}") from None
    if not paths:
        raise InputError(f"{folder}: is a folder without files that end in .csv, .tsv, .parquet or .pq")
    picked = sorted({0, len(paths) // 2, len(paths) - 1})
    samples = [sample(paths[k]) for k in picked]
    with readable(folder):
        table = pa.concat_tables([one.table for one in samples], promote_options="permissive")
    known = [one.n_rows for one in samples if one.n_rows is not None]
    whole = len(picked) == len(paths) and all(one.whole for one in samples)
    n_rows = sum(known) if len(known) == len(paths) else None
    return Sample(folder, table, n_rows, whole=whole, folder=True)

"""Some rows of a table of any size: its first ones; of Parquet and of folders also some from the middle and the end."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.dataset import dataset

from survscore._validation import InputError
from survscore.io.files import check_regular
from survscore.io.limits import rows_that_fit
from survscore.io.tables import CSV_ENDINGS, PARQUET_ENDINGS, check_table, open_table, parsed_csv, readable

ROWS = 2000  # of each of three places in a file
WHOLE_ROWS, WHOLE_BYTES = 20_000, 8 << 20  # smaller files are read whole
PIECE_BYTES, FEWEST_LINES = 1 << 20, 50  # of larger ones, unless lines are long
KINDS = {"parquet": PARQUET_ENDINGS, "csv": CSV_ENDINGS}


@dataclass(frozen=True, eq=False)
class Sample:
    """Some rows of a table; `n_rows` is how many there are in all, where that is known without reading them."""

    path: Path
    table: pa.Table
    n_rows: int | None
    folder: bool = False

    @property
    def whole(self) -> bool:
        """Whether these are all rows."""
        return bool(self.n_rows == self.table.num_rows)


def sample(path: Path, *, whole: bool = False) -> Sample:
    """Return some rows of a file, of standard input, or of a folder of files such as Spark writes; or all of a file."""
    name = path.name.lower().removesuffix(".zst")
    if path.is_dir():
        return _of_folder(path, whole=whole)
    found = None
    if not whole and name.endswith((*PARQUET_ENDINGS, *CSV_ENDINGS)):
        check_regular(path)
        with readable(path):
            found = _of_parquet(path) if name.endswith(PARQUET_ENDINGS) else _of_csv(path)
    if found is None:
        file = open_table(path)
        return Sample(path, file.read(file.names), file.n_rows)
    with readable(path):
        check_table(path, found.table.column_names, found.table.num_rows)
    return found


def _of_parquet(path: Path) -> Sample:
    """Return the first rows of the first, the middle and the last row group, fewer where texts may be long."""
    with pq.ParquetFile(path, page_checksum_verification=True) as opened:
        count, n_rows = opened.metadata.num_row_groups, opened.metadata.num_rows
        rows = rows_that_fit(path, opened.metadata, n_rows if n_rows <= WHOLE_ROWS else ROWS)
        picked = range(count) if n_rows <= rows else sorted({0, count // 2, count - 1})
        pieces = (opened.iter_batches(rows, row_groups=[group], use_threads=False) for group in picked)
        batches = [batch for piece in pieces for batch in islice(piece, 1)]
        schema = batches[0].schema if batches else opened.schema_arrow
        table = pa.Table.from_batches([batch.cast(schema) for batch in batches], schema=schema)
        return Sample(path, table.replace_schema_metadata(opened.schema_arrow.metadata), n_rows)


def _of_csv(path: Path) -> Sample | None:
    """Return the first lines; None of a small file."""
    with pa.input_stream(str(path)) as stream:
        head = stream.read(WHOLE_BYTES + 1)
    if len(head) <= WHOLE_BYTES:
        return None
    few = head[:PIECE_BYTES] if head.count(b"\n", 0, PIECE_BYTES) >= FEWEST_LINES else head
    return Sample(path, parsed_csv(path, few[: few.rfind(b"\n") + 1] or few), None)


def _of_folder(folder: Path, *, whole: bool) -> Sample:
    """Return the first rows of a folder, as Spark and others write tables, with columns for names such as day=1."""
    names = sorted(path.name.lower() for path in folder.rglob("*") if path.name[0] not in "._")
    kind = next((kind for kind, ends in KINDS.items() if any(name.endswith(ends) for name in names)), None)
    if kind is None:
        raise InputError(f"{folder}: is a folder without files that end in .csv, .tsv, .parquet or .pq")
    with readable(folder):
        table = dataset(folder, format=kind, partitioning="hive", exclude_invalid_files=True)
        rows = table.to_table() if whole else table.head(3 * ROWS)
        check_table(folder, rows.column_names, rows.num_rows)
        return Sample(folder, rows, table.count_rows(), folder=True)

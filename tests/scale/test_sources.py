"""Every kind of source gives the same rows; what is not there is missed."""

import os

import fsspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.dataset as ds
import pyarrow.feather
import pyarrow.fs
import pyarrow.parquet as pq
import pytest

from survscore._validation import InputError
from survscore.scale.files import BadFileError
from survscore.scale.sources import identified, open_source

COLUMNS = ["30", "duration", "event", "id"]


def rows_of(source, columns=COLUMNS, **options):
    batches = list(source.batches(columns, **options))
    assert all(batch.schema.names == list(columns) for batch in batches)
    return sorted(
        row for batch in batches for row in zip(*(batch.column(name).to_pylist() for name in columns), strict=True)
    )


def expected_rows(table, columns=COLUMNS):
    return sorted(zip(*(table.column(name).to_pylist() for name in columns), strict=True))


def relation(table, path):
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    connection.register("given", table)
    return connection.sql("SELECT * FROM given")


IN_MEMORY = {
    "table": lambda table, path: table,
    "batch": lambda table, path: table.combine_chunks().to_batches()[0],
    "reader": lambda table, path: table.to_reader(7),
    "dataset": lambda table, path: ds.dataset(table),
    "polars": lambda table, path: pytest.importorskip("polars").from_arrow(table),
    "duckdb": relation,
    "pandas": lambda table, path: table.drop_columns(["curve"]).to_pandas(),
    "generator of tables": lambda table, path: (table.slice(k, 20) for k in range(0, 60, 20)),
    "list of batches": lambda table, path: table.to_batches(7),
    "function": lambda table, path: lambda: iter(table.to_batches(7)),
}
ONCE = {"reader", "generator of tables"}


@pytest.mark.parametrize("kind", IN_MEMORY)
def test_what_is_in_memory_gives_its_rows(kind, table, tmp_path):
    source = open_source(IN_MEMORY[kind](table, tmp_path))
    assert source.parts is None
    assert set(COLUMNS) <= set(source.schema().names)
    assert rows_of(source) == expected_rows(table)
    assert source.rereadable == (kind not in ONCE)
    if source.rereadable:
        assert rows_of(source, ["id"]) == expected_rows(table, ["id"])
    else:
        with pytest.raises(InputError, match="can't be read again"):
            next(source.batches(["id"]))


@pytest.mark.parametrize("kind", ["table", "reader", "polars", "pandas"])
def test_what_is_in_memory_is_checked_like_files(kind, table, tmp_path):
    def source(changed=table):
        return open_source(IN_MEMORY[kind](changed, tmp_path), name="predictions")

    with pytest.raises(InputError, match=r"^predictions: has no column 'surname'; its columns are"):
        list(source().batches(["id", "surname"]))
    with pytest.raises(InputError, match=r"^predictions: column 'id' must hold numbers, not text"):
        list(source().batches(["id"], numeric=["id"]))
    holed = table.set_column(1, "duration", pa.array([None if k == 33 else float(k) for k in range(60)]))
    with pytest.raises(InputError, match=r"^predictions: column 'duration' has 1 missing value"):
        list(source(holed).batches(["duration"]))
    assert sum(len(batch) for batch in source(holed).batches(["duration"], nullable=["duration"])) == 60


def paths_of(folder):
    return sorted(folder.glob("country=*/part-*.parquet"))


FROM_FILES = {
    "text": str,
    "relative": os.path.relpath,
    "uri": lambda folder: folder.as_uri(),
    "pattern": lambda folder: f"{folder}/*/part-*.parquet",
    "pattern of folders": lambda folder: f"{folder}/country=[DF]?",
    "deepest pattern": lambda folder: f"{folder}/**",
    "list": paths_of,
    "list of folders": lambda folder: [folder / "country=DE", folder / "country=FR"],
    "dataset": lambda folder: ds.dataset(folder, partitioning="hive"),
}


@pytest.mark.parametrize("kind", FROM_FILES)
def test_files_give_their_rows_and_the_names_of_folders(kind, folder, table):
    source = open_source(FROM_FILES[kind](folder))
    assert len(source.parts) == 6
    assert source.rereadable
    assert rows_of(source) == expected_rows(table)
    if kind != "dataset":
        assert [part.path for part in source.parts] == [str(path) for path in paths_of(folder)]
    assert {dict(part.constants)["country"] for part in source.parts} == {"DE", "FR"}
    countries = dict(rows_of(source, ["id", "country"]))
    assert countries == {f"i{k:03d}": "DE" if k // 10 % 2 == 0 else "FR" for k in range(60)}
    assert sum(len(batch) for batch in source.batches(["country"])) == 60  # no column of the files at all
    assert "country" in source.schema().names


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "tsv", "arrow", "arrows", "feather"])
def test_other_formats_hold_the_same(kind, tmp_path, table):
    flat = table.drop_columns(["curve"]).set_column(3, "30", table["30"].cast("float64"))
    path = tmp_path / "data" / f"file.{kind}"
    path.parent.mkdir()
    if kind in ("csv", "csv.gz", "tsv"):
        with pa.output_stream(str(path)) as stream:
            pa.csv.write_csv(flat, stream, pa.csv.WriteOptions(delimiter="\t" if kind == "tsv" else ","))
    elif kind == "feather":
        pyarrow.feather.write_feather(flat, path, compression="zstd")
    else:
        with {"arrow": pa.ipc.new_file, "arrows": pa.ipc.new_stream}[kind](path, flat.schema) as writer:
            writer.write_table(flat)
    assert rows_of(open_source(path.parent), rows=7) == expected_rows(flat)
    if kind != "csv.gz":
        renamed = path.rename(path.parent / "noending")
        source = open_source(renamed, format="csv" if kind in ("csv", "tsv") else "arrow")
        assert rows_of(source) == expected_rows(flat)


def test_numbers_in_csv_are_float_even_if_the_first_block_looks_whole(tmp_path):
    for k, values in enumerate(["1\n0", "0.5\n1"]):
        (tmp_path / f"{k}.csv").write_text(f"30\n{values}\n")
    with pytest.raises(BadFileError, match=r"1\.csv: column '30' is float64, but int64 in .*0\.csv"):
        list(open_source(tmp_path).batches(["30"]))
    assert rows_of(open_source(tmp_path), ["30"], numeric=["30"]) == [(0.0,), (0.5,), (1.0,), (1.0,)]
    (tmp_path / "1.csv").write_text("30\nmuch\n")
    with pytest.raises(BadFileError, match=r"1\.csv: can't be read as CSV: .*much"):
        list(open_source(tmp_path).batches(["30"], numeric=["30"]))


def test_a_dataset_with_a_filter_or_other_types_is_not_taken_for_its_files(folder):
    whole = ds.dataset(folder, partitioning="hive")
    some = open_source(whole.filter(pc.field("duration") > 5))
    assert some.parts is None
    assert all(row[0] > 5 for row in rows_of(some, ["duration"]))
    schema = whole.schema.set(whole.schema.names.index("30"), pa.field("30", pa.float64()))
    cast = open_source(ds.dataset(folder, partitioning="hive", schema=schema))
    assert cast.parts is None
    assert next(cast.batches(["30"])).schema.field("30").type == pa.float64()


def test_fsspec_by_address_and_by_file_system(folder, table):
    memory = fsspec.filesystem("memory")
    memory.put(str(folder), "/survscore-data", recursive=True)
    try:
        for source in (
            open_source("memory://survscore-data"),
            open_source("memory://survscore-data/*/part-*.parquet"),
            open_source(ds.dataset("/survscore-data", filesystem=memory, partitioning="hive", format="parquet")),
        ):
            assert rows_of(source, [*COLUMNS, "country"])[0][-1] in ("DE", "FR")
            assert rows_of(source) == expected_rows(table)
            assert all(part.size and part.name.startswith("memory://survscore-data/") for part in source.parts)
    finally:
        memory.rm("/survscore-data", recursive=True)


def test_a_name_with_the_signs_of_a_pattern_is_a_name(tmp_path, table):
    pq.write_table(table, tmp_path / "data[1]*.parquet")
    assert rows_of(open_source(tmp_path / "data[1]*.parquet")) == expected_rows(table)


def test_ids_change_with_the_content_alone(folder):
    before = {part.path: part.id for part in identified(open_source(folder)).parts}
    touched, changed = paths_of(folder)[1:3]
    os.utime(touched, ns=(1, 1))
    pq.write_table(pq.ParquetFile(changed).read().slice(1), changed)
    after = {part.path: part.id for part in identified(open_source(folder)).parts}
    assert {path for path in before if before[path] != after[path]} == {str(changed)}


def test_no_files_and_none_twice(tmp_path, folder):
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "_SUCCESS").write_text("")
    first = paths_of(folder)[0]
    for source, message in (
        (tmp_path / "empty", "empty: there are no files in this folder"),
        (f"{folder}/*/nothing-*.parquet", "no file matches this pattern"),
        (tmp_path / "nowhere", "there is no such file or folder"),
        ([], "empty list"),
        ([first, os.path.relpath(first)], r"source holds 1 file more than once, the first .*part-0\.parquet"),
        (3, "source must be a path"),
        ([tmp_path, 3], "source must be a list of paths, but one is of type int"),
    ):
        with pytest.raises(InputError, match=message):
            open_source(source)
    with pytest.raises(InputError, match="format is for files, but source is of type Table"):
        open_source(pa.table({"a": [1]}), format="csv")


def test_what_the_ending_does_not_say(folder):
    (folder / "README.txt").write_text("about these files")
    with pytest.raises(InputError, match=r"README\.txt: the ending must say what it is"):
        open_source(folder)
    (folder / "README.txt").rename(folder / "more.csv")
    with pytest.raises(InputError, match=r"files must be of one format: .* is parquet, but .*more.csv is csv"):
        open_source(folder)
    (folder / "_delta_log").mkdir()
    (folder / "_delta_log" / "0.json").write_text("{}")
    with pytest.raises(InputError, match="is a Delta table"):
        open_source(folder)


def test_links(tmp_path, folder):
    (folder / "again").symlink_to(folder)
    with pytest.raises(InputError, match="again: is a link to a folder above it"):
        open_source(folder)
    (folder / "again").unlink()
    (tmp_path / "dat").mkdir()
    (folder / "other").symlink_to(tmp_path / "dat")  # begins alike, but is not above
    (folder / "_lost").symlink_to(tmp_path / "nowhere")
    assert len(open_source(folder).parts) == 6
    (folder / "lost.parquet").symlink_to(tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"lost\.parquet: there is no such file"):
        open_source(folder)


def test_a_manifest_misses_what_is_missing(folder, table, tmp_path):
    names = [str(path.relative_to(folder)) for path in paths_of(folder)]
    manifest, within = tmp_path / "manifest.txt", folder / "manifest.txt"
    manifest.write_text("\n".join(names) + "\n")
    for given in (manifest, names, within):
        if given == within:
            within.write_text(manifest.read_text())
        assert rows_of(open_source(folder, manifest=given)) == expected_rows(table)
    within.unlink()
    paths_of(folder)[4].unlink()
    (folder / "country=FR" / "late.parquet").write_text("")
    with pytest.raises(
        InputError,
        match=r"manifest\.txt: not the files in .*: 1 of 6 files missing, the first 'country=FR/part-3\.parquet'; "
        r"1 file unexpected, the first 'country=FR/late\.parquet'$",
    ):
        open_source(folder, manifest=manifest)
    with pytest.raises(InputError, match="there is no such file"):
        open_source(folder, manifest=tmp_path / "nowhere.txt")
    with pytest.raises(InputError, match="names no files"):
        open_source(folder, manifest=[])


def test_a_stream_keeps_its_types():
    batches = [pa.record_batch({"30": pa.array([0.5], kind)}) for kind in (pa.float64(), pa.float32())]
    with pytest.raises(InputError, match="column '30' is float32, but float64 in the first batch"):
        list(open_source(batches).batches(["30"]))

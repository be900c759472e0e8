"""Storage that speaks S3, on this machine."""

import os
import pickle
import urllib.request

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import survscore as ss
from scale_tables import in_folders, make
from survscore._validation import InputError
from survscore.scale.files import BadFileError
from survscore.scale.sources import open_source

boto3 = pytest.importorskip("boto3")
server = pytest.importorskip("moto.server")

SECRET = "hush-this-is-secret"
KEY = "AKIDOFSOMEBODY"


@pytest.fixture(autouse=True)
def straight(monkeypatch):
    """Reach this machine without a detour, and look for credentials nowhere."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_PROXY", "localhost,127.0.0.1")
    monkeypatch.setenv("no_proxy", "localhost,127.0.0.1")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.fixture
def running():
    here = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    here.start()
    # what is stored outlives the server
    host, port = here.get_host_and_port()
    urllib.request.urlopen(urllib.request.Request(f"http://{host}:{port}/moto-api/reset", method="POST")).close()
    yield here
    here.stop()


@pytest.fixture
def options(running):
    host, port = running.get_host_and_port()
    return {
        "endpoint_override": f"{host}:{port}",
        "scheme": "http",
        "region": "us-east-1",
        "access_key": KEY,
        "secret_key": SECRET,
    }


@pytest.fixture
def bucket(options, folder):
    client = boto3.client(
        "s3",
        endpoint_url=f"http://{options['endpoint_override']}",
        region_name="us-east-1",
        aws_access_key_id=KEY,
        aws_secret_access_key=SECRET,
    )
    client.create_bucket(Bucket="scores")
    for path in folder.rglob("*"):
        if path.is_file():
            client.upload_file(str(path), "scores", f"data/{path.relative_to(folder)}")
    return client


def ids_of(source):
    return sorted(one for batch in source.batches(["id", "country", "30"]) for one in batch.column(0).to_pylist())


@pytest.mark.parametrize("format", ["parquet", "csv"])
def test_names_of_folders_are_columns(bucket, options, format, tmp_path):
    """Text, whole numbers, dates and no value, as on this machine."""
    table = make(300, n_times=2).table
    country = pa.array([None if one == "NO" else one for one in table["country"].to_pylist()])
    table = table.set_column(table.column_names.index("country"), "country", country)
    table = table.append_column("year", pa.array([2024 + k % 2 for k in range(300)]))
    for path in in_folders(table, ["country", "year"], tmp_path / "lake", format).rglob(f"*.{format}"):
        bucket.upload_file(str(path), "scores", str(path.relative_to(tmp_path)))
    asked = {"weighting": "administrative", "times": [30], "by": ["country", "year"]}
    here = ss.evaluate(tmp_path / "lake", **asked)
    there = ss.evaluate("s3://scores/lake", storage_options=options, **asked)
    assert {country for country, _ in there.parts} == {"DE", "FR", "__HIVE_DEFAULT_PARTITION__"}
    for label, part in there.parts.items():
        pd.testing.assert_frame_equal(part.scores, here.parts[label].scores, rtol=1e-10)


def test_a_public_bucket_and_one_that_is_not(bucket, options, table):
    public = {name: value for name, value in options.items() if name not in ("access_key", "secret_key")}
    source = open_source("s3://scores/data", storage_options=public | {"anonymous": True})
    with pytest.raises(BadFileError, match=r"part-0\.parquet: can't be read: .*ACCESS_DENIED") as caught:
        ids_of(source)
    assert_clean(caught)
    for part in source.parts:
        bucket.put_object_acl(Bucket="scores", Key=part.path.removeprefix("scores/"), ACL="public-read")
    assert ids_of(source) == table["id"].to_pylist()


def test_parts_are_read_elsewhere_and_hide_credentials(bucket, options):
    parts = open_source("s3://scores/data", storage_options=options).parts
    part = pickle.loads(pickle.dumps(parts[0]))
    assert sum(len(batch) for batch in part.batches(["30"])) == 10
    for shown in (part.id, repr(part), repr(open_source("s3://scores/data", storage_options=options)), part.name):
        assert SECRET not in shown
        assert KEY not in shown
    bucket.delete_object(Bucket="scores", Key=part.path.removeprefix("scores/"))
    with pytest.raises(BadFileError, match=r"^s3://scores/data/country=DE/part-0\.parquet: is no longer there"):
        list(part.batches(["30"]))
    bucket.put_object(Bucket="scores", Key=parts[1].path.removeprefix("scores/"), Body=b"x" * 50)
    with pytest.raises(BadFileError, match=r"has changed since it was listed: \d+ bytes then, 50 now"):
        list(parts[1].batches(["30"]))


def test_a_bucket_that_is_not_there(bucket, options):
    for address in ("s3://elsewhere/data", "s3://scores/nothing"):
        with pytest.raises(InputError, match=address.removesuffix("/data")) as caught:
            open_source(address, storage_options=options)
        assert_clean(caught)


def test_a_connection_that_is_lost(bucket, options, running):
    parts = open_source("s3://scores/data", storage_options=options).parts
    running.stop()
    try:
        with pytest.raises(BadFileError, match=r"part-0\.parquet: can't be read: ") as caught:
            list(parts[0].batches(["30"]))
        assert_clean(caught)
        with pytest.raises(InputError, match="can't be listed") as caught:
            open_source("s3://scores/data", storage_options=options)
        assert_clean(caught)
    finally:
        running.start()


def test_options_nobody_knows(options):
    with pytest.raises(InputError, match=r"`storage_options` do not fit s3://: .*'secret'") as caught:
        open_source("s3://scores/data", storage_options=options | {"secret": SECRET})
    assert_clean(caught)


def assert_clean(caught):
    text = str(caught.value)
    assert "\n" not in text
    assert SECRET not in text
    assert KEY not in text


@pytest.mark.parametrize("ahead", [0, 1 << 20])
def test_row_groups_are_asked_for_at_once_or_in_pieces(ahead, bucket, options, table, tmp_path, monkeypatch):
    monkeypatch.setattr("survscore.scale.files.AHEAD", ahead)
    pq.write_table(table, tmp_path / "many.parquet", row_group_size=4)
    bucket.upload_file(os.fspath(tmp_path / "many.parquet"), "scores", "more/many.parquet")
    source = open_source("s3://scores/more", storage_options=options)
    read = [one for batch in source.batches(["id"]) for one in batch.column(0).to_pylist()]
    assert read == table["id"].to_pylist()

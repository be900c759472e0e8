"""Addresses become file systems; secrets stay where they are needed."""

import pytest
from pyarrow import fs

from survscore._validation import InputError
from survscore.scale.files import name_of, options_of, reason
from survscore.scale.listing import opened
from survscore.scale.sources import open_source

SECRET = "hush-this-is-secret"
KEY = "AKIDOFSOMEBODY"
S3 = {"region": "eu-west-1", "secret_key": SECRET, "access_key": KEY}


def test_addresses_become_file_systems_and_paths():
    system, path = opened("s3://scores/data/part-?.parquet", S3)
    assert path == "scores/data/part-?.parquet"
    assert options_of(system).items() >= (S3 | {"connect_timeout": 5.0}).items()
    system, path = opened("gs://box/data/*.parquet", {"anonymous": True})
    assert (path, options_of(system)["anonymous"]) == ("box/data/*.parquet", True)
    if hasattr(fs, "AzureFileSystem"):
        system, path = opened("abfs://box@account.dfs.core.windows.net/data", {"account_key": "aHVzaA=="})
        assert (path, options_of(system)["account_name"]) == ("box/data", "account")
    with pytest.raises(InputError, match="names no bucket"):
        opened("s3://")


def test_credentials_are_no_part_of_addresses():
    with pytest.raises(InputError, match="credentials are for `storage_options`") as caught:
        open_source(f"s3://{KEY}:half/{SECRET}@scores/data")
    assert SECRET not in str(caught.value)
    assert "half" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        f"no access for {SECRET}",
        f"GET https://somebody:{SECRET}@host/a.parquet failed",
        f"GET https://host/a.parquet?x=1&token={SECRET} failed",
    ],
)
def test_reasons_hold_no_secrets(text):
    for options in (fs.S3FileSystem(**S3), {"nested": {"secret_key": SECRET}}):
        told = reason(OSError(text + "\n  over there"), options)
        assert SECRET not in told
        assert "***" in told
        assert told.endswith("over there")


def test_names_hold_no_secrets():
    class Web:
        type_name = "https"

    assert name_of(Web(), f"https://somebody:{SECRET}@host/a.parquet?token={SECRET}") == "https://host/a.parquet"
    assert name_of(fs.S3FileSystem(**S3), "box/a.parquet") == "s3://box/a.parquet"
    assert name_of(fs.LocalFileSystem(), "/data/a.parquet") == "/data/a.parquet"


def test_options_must_be_options():
    with pytest.raises(InputError, match="`storage_options` must be a dict with names of options"):
        opened("s3://box/data", {3: "a"})

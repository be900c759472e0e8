"""Addresses become descriptions; secrets stay where they are needed."""

import pytest

from survscore._validation import InputError
from survscore.scale.filesystems import LOCAL, checked_options, described_filesystem, described_uri, name_of, reason
from survscore.scale.sources import open_source

SECRET = "hush-this-is-secret"
KEY = "AKIDOFSOMEBODY"


def test_credentials_in_addresses_go_into_options():
    description, path = described_uri(f"s3://{KEY}:{SECRET}@scores/data/a.parquet?region=eu-west-1", None)
    assert path == "scores/data/a.parquet"
    assert description == {
        "type": "s3",
        "options": {"access_key": KEY, "secret_key": SECRET, "region": "eu-west-1"},
    }
    description, path = described_uri("abfs://box@account.dfs.core.windows.net/data", {"account_key": SECRET})
    assert (path, description["options"]["account_name"]) == ("box/data", "account")
    description, path = described_uri("gs://anonymous@box/data/*.parquet", None)
    assert (path, description["options"]) == ("box/data/*.parquet", {"anonymous": True})
    with pytest.raises(InputError, match="names no bucket"):
        described_uri("s3://", None)


def test_a_secret_with_a_slash_is_not_shown():
    with pytest.raises(InputError, match="has a ':' in the name of the bucket") as caught:
        open_source(f"s3://{KEY}:half/{SECRET}@scores/data")
    assert SECRET not in str(caught.value)
    assert "half" not in str(caught.value)


def test_an_account_has_to_be_named():
    with pytest.raises(InputError, match="source names no account"):
        described_uri("abfs://box/data", None)


@pytest.mark.parametrize(
    "text",
    [
        f"no access for {SECRET}",
        f"GET https://somebody:{SECRET}@host/a.parquet failed",
        f"GET https://host/a.parquet?x=1&token={SECRET} failed",
    ],
)
def test_reasons_hold_no_secrets(text):
    told = reason(OSError(text + "\n  over there"), {"type": "s3", "options": {"nested": {"secret_key": SECRET}}})
    assert SECRET not in told
    assert "***" in told
    assert told.endswith("over there")


def test_names_hold_no_secrets():
    web = {"type": "fsspec", "protocol": "https"}
    assert name_of(web, f"https://somebody:{SECRET}@host/a.parquet?token={SECRET}") == "https://host/a.parquet"
    assert name_of({"type": "s3", "options": {"secret_key": SECRET}}, "box/a.parquet") == "s3://box/a.parquet"
    assert name_of(LOCAL, "/data/a.parquet") == "/data/a.parquet"


@pytest.mark.parametrize("wrong", [3, {3: "a"}, ["key"]])
def test_options_must_be_options(wrong):
    with pytest.raises(InputError, match="storage_options must be a dict with names of options"):
        checked_options(wrong)


def test_what_is_no_file_system():
    with pytest.raises(InputError, match="filesystem must be one of pyarrow or fsspec, not int"):
        described_filesystem(3)


def test_a_path_that_is_none(tmp_path):
    with pytest.raises(InputError, match="source must be a list of paths, but one is of type int"):
        open_source([tmp_path, 3])
    with pytest.raises(InputError, match="not an empty text"):
        open_source("")

"""File systems as plain descriptions that can be sent along, and what lies in their folders.

A description is JSON: ``{"type": "local"}``, ``{"type": "s3", "options": {...}}`` or
``{"type": "fsspec", "protocol": "memory", "options": {...}}``. Options may hold credentials; what is shown of a file
never does.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import parse_qsl, unquote, urlsplit
from urllib.request import url2pathname

from survscore._validation import InputError, shown
from survscore.io.tables import arrow

Description: TypeAlias = Mapping[str, Any]

LOCAL: Description = {"type": "local"}
IGNORED = ("_", ".")  # how names begin that are not part of the data
URI = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]+)://")
ARROW_SCHEMES = {"s3": "s3", "gs": "gs", "gcs": "gs", "abfs": "abfs", "abfss": "abfs"}
# A lost connection ends in seconds, not after the minutes that the defaults of some clients allow.
CONNECT_SECONDS, REQUEST_SECONDS, ATTEMPTS, RETRY_SECONDS = 5.0, 10.0, 3, 30.0
SECRET = re.compile(r"key|secret|token|password|credential|sas|proxy|user", re.IGNORECASE)

IN_ADDRESSES = (re.compile(r"(://)[^/\s@]+(?=@)"), re.compile(r"(://[^\s?]*\?)[^\s'\"]+"))  # who asks, and tokens


class Entry(NamedTuple):
    """What a folder says about one of its members."""

    path: str
    folder: bool
    size: int = 0
    etag: str = ""
    inode: str = ""  # the same under every name of a file of this machine


def described_uri(uri: str, options: Mapping[str, Any] | None) -> tuple[Description, str]:
    """Return the file system that a URI is about, and the path within it.

    Credentials in the URI go where those in the options are, so that the path holds none.
    """
    options = checked_options(options)
    scheme = uri.split("://", 1)[0].lower()
    if scheme == "file":
        if options:
            raise InputError("`storage_options` are for remote storage, but the source is a local path")
        return LOCAL, os.path.abspath(url2pathname(urlsplit(uri).path))
    if scheme not in ARROW_SCHEMES:
        return _described_fsspec_uri(uri, scheme, options)
    kind = ARROW_SCHEMES[scheme]
    authority, _, key = uri.split("://", 1)[1].partition("/")  # by hand: a key may hold '#' and '?' of a glob
    user, _, host = authority.rpartition("@")
    name, _, password = user.partition(":")
    if "?" in key and "=" in key.rsplit("?", 1)[1]:
        key, _, query = key.rpartition("?")
        options = dict(parse_qsl(query)) | options
    if kind == "s3" and user:
        options = {"access_key": unquote(name), "secret_key": unquote(password)} | options
    elif kind == "gs" and user:
        options = (
            {"anonymous": True} if name == "anonymous" else {"access_token": unquote(password or name)}
        ) | options
    elif kind == "abfs" and "." in host:  # abfs://container@account.dfs.core.windows.net/path
        options = {"account_name": host.split(".", 1)[0]} | options
        if password:
            options = {"account_key": unquote(password)} | options
        host = name
    if not host:
        raise InputError(f"source names no bucket: {scheme}://BUCKET/PATH is expected")
    if ":" in host:  # half a secret with a slash in it; not to be shown
        raise InputError(
            f"source has a ':' in the name of the bucket, {scheme}://BUCKET/PATH is expected; credentials are for "
            "storage_options"
        )
    if kind == "abfs" and "account_name" not in options:
        raise InputError(
            "source names no account: abfs://CONTAINER@ACCOUNT.dfs.core.windows.net/PATH is expected, "
            "or storage_options={'account_name': ...}"
        )
    if kind == "s3" and not {"region", "endpoint_override"} & set(options):
        options = _with_region(options, host)
    return {"type": kind, "options": options}, f"{host}/{key}".rstrip("/")


def described_filesystem(filesystem: Any) -> tuple[Description, str]:
    """Return the description of an open file system, and the path that its own paths begin with."""
    fs = _fs()
    if isinstance(filesystem, fs.LocalFileSystem):
        return LOCAL, ""
    if isinstance(filesystem, fs.SubTreeFileSystem):
        inner, prefix = described_filesystem(filesystem.base_fs)
        return inner, prefix + filesystem.base_path
    if isinstance(filesystem, fs.PyFileSystem) and isinstance(filesystem.handler, fs.FSSpecHandler):
        filesystem = filesystem.handler.fs
    for kind, name in _CLASSES.items():
        # pyarrow tells how a file system was made only by the way it would be copied to another process
        if isinstance(filesystem, getattr(fs, name, ())):
            told: Any = filesystem.__reduce__()[1]
            made = {option: value for option, value in told[0].items() if _is_set(value)}
            return {"type": kind, "options": checked_options(made)}, ""
    protocol = getattr(filesystem, "protocol", None)
    if not isinstance(protocol, str | tuple | list) or not hasattr(filesystem, "storage_options"):
        raise InputError(f"filesystem must be one of pyarrow or fsspec, not {type(filesystem).__name__}")
    if getattr(filesystem, "storage_args", ()):
        raise InputError("filesystem must be made with named options only, for it to be opened again elsewhere")
    protocol = protocol if isinstance(protocol, str) else protocol[0]
    options = checked_options(filesystem.storage_options, "options of the filesystem")
    return {"type": "fsspec", "protocol": protocol, "options": options}, ""


def opened(description: Description) -> Any:
    """Return the pyarrow file system of a description; the same one for the same process."""
    # A connection doesn't survive a fork: what a child process opens is its own.
    return _opened(json.dumps(description, sort_keys=True), os.getpid())


def name_of(description: Description, path: str) -> str:
    """Return what to call a file: its path, or its address without credentials."""
    kind = description["type"]
    if kind == "local":
        return path
    scheme = str(description["protocol"]) if kind == "fsspec" else str(kind)
    if "://" in path:  # some, like http, keep the whole address
        parts = urlsplit(path)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
    return f"{scheme}://{path.lstrip('/')}"


def reason(error: BaseException, description: Description) -> str:
    """Return on one line what a reader complains about, without the secrets in the description."""
    text = " ".join(str(error).split("Detail: Python exception:")[0].split()) or type(error).__name__
    for secret in sorted(_secrets(description.get("options", {})), key=len, reverse=True):
        text = text.replace(secret, "***")
    return shown(without_secrets(text).rstrip(" ."), most=300)


def without_secrets(text: str) -> str:
    """Return a text without what addresses in it say of who asks."""
    for part in IN_ADDRESSES:
        text = part.sub(r"\1***", text)
    return text


def entry(description: Description, path: str) -> Entry | None:
    """Return what lies at a path, if anything does."""
    return entries_at(description, [path])[0]


def entries_at(description: Description, paths: Sequence[str]) -> list[Entry | None]:
    """Return what lies at each path, if anything does; of remote storage, several are asked for at once."""
    with listing(description, paths[0]):
        if description["type"] == "local":
            return [_local_entry(path) if os.path.lexists(path) else None for path in paths]
        if description["type"] == "fsspec":
            inner = opened(description).handler.fs
            return [_fsspec_entry(inner.info(path)) if inner.exists(path) else None for path in paths]
        found = [_arrow_entry(info) for info in opened(description).get_file_info(list(paths))]
    return found


def entries(description: Description, folder: str, *, recursive: bool) -> list[Entry]:
    """Return the members of a folder in no particular order; if recursive, those of folders in it too."""
    with listing(description, folder):
        if description["type"] == "local":
            return list(_local_entries(folder, recursive))
        if description["type"] == "fsspec":
            inner = opened(description).handler.fs
            found = inner.find(folder, withdirs=True, detail=True).values() if recursive else inner.ls(folder, True)
            return [_fsspec_entry(info) for info in found if info["name"].strip("/") != folder.strip("/")]
        selector = _fs().FileSelector(folder, recursive=recursive)
        found = [_arrow_entry(info) for info in opened(description).get_file_info(selector)]
    return [one for one in found if one is not None]


@contextmanager
def listing(description: Description, path: str) -> Iterator[None]:
    """Turn what goes wrong while looking for files into one line."""
    try:
        yield
    except (InputError, ImportError):
        raise
    except FileNotFoundError as error:
        missing = getattr(error, "filename", None) or name_of(description, path)
        raise InputError(f"{missing}: there is no such file or folder") from None
    except (arrow().ArrowException, OSError, ValueError) as error:
        raise InputError(f"{name_of(description, path)}: can't be listed: {reason(error, description)}") from None


def checked_options(options: Mapping[str, Any] | None, name: str = "storage_options") -> dict[str, Any]:
    """Return options that can be sent along; their values appear in no message."""
    if options is None:
        return {}
    if not isinstance(options, Mapping) or not all(isinstance(key, str) for key in options):
        raise InputError(f"{name} must be a dict with names of options, not {type(options).__name__}")
    for key, value in options.items():
        try:
            json.dumps(value)
        except (TypeError, ValueError):
            raise InputError(
                f"{name} must hold numbers, text, lists and dicts: {key!r} is of type {type(value).__name__}"
            ) from None
    return dict(options)


_CLASSES = {"s3": "S3FileSystem", "gs": "GcsFileSystem", "abfs": "AzureFileSystem"}


@lru_cache(maxsize=32)
def _opened(description: str, process: int) -> Any:
    fs, told = _fs(), json.loads(description)
    kind, options = told["type"], told.get("options", {})
    if kind == "local":
        return fs.LocalFileSystem()
    if kind == "fsspec":
        return fs.PyFileSystem(fs.FSSpecHandler(_fsspec_filesystem(told["protocol"], options)))
    if not hasattr(fs, _CLASSES[kind]):
        raise ImportError(f"{kind}:// needs a pyarrow that is built with {_CLASSES[kind]}: pip install -U pyarrow")
    if kind == "s3":
        attempts = options.pop("max_attempts", ATTEMPTS)
        options = {"connect_timeout": CONNECT_SECONDS, "request_timeout": REQUEST_SECONDS} | options
        options["retry_strategy"] = fs.AwsStandardS3RetryStrategy(max_attempts=attempts)
    if kind == "gs":
        from datetime import timedelta

        options["retry_time_limit"] = timedelta(seconds=options.get("retry_time_limit", RETRY_SECONDS))
    try:
        return getattr(fs, _CLASSES[kind])(**options)
    except TypeError as error:
        raise InputError(f"storage_options do not fit {kind}://: {reason(error, told)}") from None
    except (ValueError, OSError) as error:
        raise InputError(f"storage_options of {kind}:// are refused: {reason(error, told)}") from None


def _described_fsspec_uri(uri: str, scheme: str, options: Mapping[str, Any]) -> tuple[Description, str]:
    fsspec = _fsspec(scheme)
    try:
        filesystem, path = fsspec.core.url_to_fs(uri, **options)
    except ImportError as error:
        raise ImportError(f"{scheme}:// needs a package that is not installed: {error}") from None
    except (ValueError, TypeError, OSError) as error:
        raise InputError(f"{scheme}:// can't be opened: {reason(error, {'options': options})}") from None
    merged = dict(options) | dict(filesystem.storage_options)  # what the address itself says, such as a host
    return {"type": "fsspec", "protocol": scheme, "options": checked_options(merged)}, path


def _fsspec_filesystem(protocol: str, options: Mapping[str, Any]) -> Any:
    try:
        return _fsspec(protocol).filesystem(protocol, **options)
    except ImportError as error:
        raise ImportError(f"{protocol}:// needs a package that is not installed: {error}") from None


def _fsspec(scheme: str) -> Any:
    try:
        import fsspec  # type: ignore[import-untyped]
        import fsspec.core  # type: ignore[import-untyped]
    except ImportError:
        raise ImportError(f"{scheme}:// needs fsspec: pip install fsspec, and what it needs for {scheme}") from None
    return fsspec


def _fs() -> Any:
    arrow()
    from pyarrow import fs

    return fs


def _with_region(options: dict[str, Any], bucket: str) -> dict[str, Any]:
    """Return the options with the region of the bucket, where nothing else says it and it can be asked for."""
    if os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION"):
        return options
    try:
        return options | {"region": _fs().resolve_s3_region(bucket)}
    except (OSError, ValueError):  # listing says what is wrong, in its own words
        return options


def _is_set(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(isinstance(one, str) and one for one in value.values())
    return value is not None and value != "" and not (isinstance(value, float) and value < 0)


def _secrets(options: Any) -> Iterator[str]:
    for key, value in options.items():
        if isinstance(value, Mapping):
            yield from _secrets(value)
        elif isinstance(value, str) and len(value) > 3 and SECRET.search(key):
            yield value


def _local_entry(path: str) -> Entry:
    status = os.stat(path)
    return _of_status(path, status)


def _of_status(path: str, status: os.stat_result) -> Entry:
    folder = stat.S_ISDIR(status.st_mode)
    return Entry(path, folder, status.st_size, str(status.st_mtime_ns), f"{status.st_dev}:{status.st_ino}")


def _local_entries(folder: str, recursive: bool) -> Iterator[Entry]:
    with os.scandir(folder) as members:
        for member in members:
            hidden = member.name.startswith(IGNORED)
            try:
                status = member.stat()
            except FileNotFoundError:
                if hidden:  # what others are still writing comes and goes
                    continue
                raise
            status = status if os.name == "posix" else os.stat(member.path)  # elsewhere it has no inode
            yield _of_status(member.path, status)
            if recursive and member.is_dir() and not hidden:
                above = os.path.realpath(member.path)
                if member.is_symlink() and os.path.commonpath([above, os.path.realpath(folder)]) == above:
                    raise InputError(f"{member.path}: is a link to a folder above it")
                yield from _local_entries(member.path, recursive)


def _arrow_entry(info: Any) -> Entry | None:
    kinds = _fs().FileType
    if info.type == kinds.NotFound:
        return None
    return Entry(info.path, info.type == kinds.Directory, info.size or 0, str(info.mtime_ns or ""))


def _fsspec_entry(info: Mapping[str, Any]) -> Entry:
    etag = next(
        (info[key] for key in ("ETag", "etag", "md5Hash", "mtime", "LastModified", "created") if key in info), ""
    )
    folder = info["type"] == "directory" or (not info.get("size") and info["name"].endswith("/"))
    return Entry(info["name"], folder, info.get("size") or 0, str(etag).strip('"'))

"""From a folder, a pattern, an address, a dataset, or a list of paths to the files that they mean."""

from __future__ import annotations

import os
import pickle
import posixpath
import re
import stat
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import timedelta
from fnmatch import fnmatchcase
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

from survscore._validation import InputError, check_choice, plural, shown
from survscore.io.files import check_regular
from survscore.io.tables import arrow, listed
from survscore.scale.files import FORMATS, NO_VALUE, FilePart, name_of, reason

ENDINGS = {
    "parquet": (".parquet", ".pq"),
    "csv": (".csv", ".csv.gz", ".tsv", ".tsv.gz"),
    "arrow": (".arrow", ".arrows", ".feather", ".ipc"),
}
IGNORED = ("_", ".")  # how names begin that are not part of the data
# In these folders lie files that no longer count beside those that do: only the log tells which.
LOGGED = {"_delta_log": "a Delta table", ".hoodie": "a Hudi table"}
MAGIC = re.compile(r"[*?\[]")
ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]+)://")
NATIVE = {"s3": "S3", "gs": "Gcs", "gcs": "Gcs", "abfs": "Azure", "abfss": "Azure"}
S3_SECONDS = {"connect_timeout": 5.0, "request_timeout": 10.0}  # by default, a lost connection takes minutes to end
GCS_SECONDS = 30.0
FOOTERS = 16  # that are asked for at once


class Entry(NamedTuple):
    """What lies at a path; of files of this machine, `key` is the same under all of their names."""

    path: str
    folder: bool
    size: int
    changed: int
    key: str


def file_parts(
    paths: str | Path | Sequence[str | Path],
    *,
    storage_options: Mapping[str, Any] | None = None,
    format: str | None = None,
    manifest: str | Path | Sequence[str] | None = None,
) -> list[FilePart]:
    """Return the files that paths mean: those of a folder and below by name, those of a list in its order.

    See `open_source`. Patterns have ``*``, ``**``, ``?`` and ``[...]``; of folders, what begins with ``_`` or ``.`` is
    left out.
    """
    if format is not None:
        check_choice("format", format, tuple(FORMATS))
    several = [paths] if isinstance(paths, str | Path) else list(paths)
    if not several:
        raise InputError("source is an empty list of paths")
    for path in several:
        if not isinstance(path, str | Path):
            raise InputError(f"source must be a list of paths, but one is of type {type(path).__name__}")
    places = [opened(os.fspath(path), storage_options) for path in several]
    system = places[0][0]
    if any(other != system for other, _ in places):
        raise InputError("source must be a list of paths of one file system with one set of storage_options")
    found: list[Entry] = []
    roots = []
    for (_, path), there in zip(places, _entries(system, [path for _, path in places]), strict=True):
        files, root = _files(system, path, there)
        found += files
        roots += [root] * len(files)
    root = roots[0] if len(places) == 1 else common_folder(roots)
    if manifest is not None:
        found = _checked_manifest(system, found, root, manifest, storage_options)
    if not found:
        raise InputError(f"{name_of(system, places[0][1])}: there are no files")
    formats = [format or _format(system, one.path) for one in found]
    other = next((k for k, one in enumerate(formats) if one != formats[0]), None)
    if other is not None:
        raise InputError(
            f"files must be of one format: {name_of(system, found[0].path)} is {formats[0]}, "
            f"but {name_of(system, found[other].path)} is {formats[other]}"
        )
    return _parts(system, found, root, formats[0], with_types([_folders(one.path, root) for one in found]))


def dataset_parts(source: Any) -> list[FilePart] | None:
    """Return the files of a pyarrow Dataset, if reading them gives the rows and the types that the dataset gives."""
    from pyarrow import dataset, fs

    if not isinstance(source, dataset.FileSystemDataset) or getattr(source, "_scan_options", None):
        return None  # not from files, or only some of their rows
    kinds = {dataset.ParquetFileFormat: "parquet", dataset.IpcFileFormat: "arrow"}
    format = next((word for one, word in kinds.items() if isinstance(source.format, one)), None)
    fragments = list(source.get_fragments())
    if format is None or not fragments:
        return None
    for column in fragments[0].physical_schema:
        if column.name in source.schema.names and not source.schema.field(column.name).type.equals(column.type):
            return None
    if format == "parquet":  # whether these are all row groups is at the end of each file
        with ThreadPoolExecutor(FOOTERS) as pool:
            if not all(pool.map(lambda one: len(one.row_groups) == one.metadata.num_row_groups, fragments)):
                return None
    system, prefix = source.filesystem, ""
    while isinstance(system, fs.SubTreeFileSystem):
        system, prefix = system.base_fs, system.base_path + prefix
    try:
        pickle.dumps(system)
    except (TypeError, pickle.PicklingError):
        return None  # it can't be sent along: the dataset is read as a stream
    paths = [prefix + fragment.path for fragment in fragments]
    paths = [os.path.abspath(path) for path in paths] if system.type_name == "local" else paths
    found = []
    for path, there in zip(paths, _entries(system, paths), strict=True):
        if there is None:
            raise InputError(f"{name_of(system, path)}: there is no such file, though it is in the dataset")
        found.append(there)
    keys = [dataset.get_partition_keys(fragment.partition_expression) for fragment in fragments]
    constants = [{k: v if isinstance(v, int | None) else str(v) for k, v in one.items()} for one in keys]
    return _parts(system, found, common_folder([posixpath.dirname(path) for path in paths]), format, constants)


def _parts(
    system: Any, found: Sequence[Entry], root: str, format: str, constants: Sequence[Mapping[str, Any]]
) -> list[FilePart]:
    """Return the files; raise if one is named twice, or there under two names: by links, its rows would count twice."""
    keys = Counter(one.key for one in found)
    repeated = [one for one in found if keys[one.key] > 1]
    if repeated:
        first = repeated[0]
        other = next(one for one in repeated[1:] if one.key == first.key)
        links = f", which {name_of(system, other.path)} is, too, by a link" if other.path != first.path else ""
        raise InputError(
            f"source holds {plural(sum(count > 1 for count in keys.values()), 'file')} more than once, "
            f"the first {name_of(system, first.path)}{links}"
        )
    return [
        FilePart(one.path, system, format, one.size, one.changed, values, relative=_relative(one.path, root))
        for one, values in zip(found, constants, strict=True)
    ]


# Where paths lead


def opened(address: str, options: Mapping[str, Any] | None = None) -> tuple[Any, str]:
    """Return the file system that a path or an address is about, and the path within it."""
    from pyarrow import fs

    if not isinstance(options or {}, Mapping) or not all(isinstance(key, str) for key in options or {}):
        raise InputError(f"`storage_options` must be a dict with names of options, not {type(options).__name__}")
    options = dict(options or {})
    if not address:
        raise InputError("source must be a path, not an empty text")
    scheme = address.split("://", 1)[0].lower() if ADDRESS.match(address) else "file"
    try:
        if scheme == "file":
            if options:
                raise InputError("`storage_options` are for remote storage, but the source is a local path")
            path = url2pathname(urlsplit(address).path) if "://" in address else address
            return fs.LocalFileSystem(), os.path.abspath(path).replace(os.sep, "/")
        if scheme in NATIVE:
            return _native(scheme, address, options)
        import fsspec.core  # type: ignore[import-untyped]

        system, path = fsspec.core.url_to_fs(address, **options)
        return fs.PyFileSystem(fs.FSSpecHandler(system)), path
    except ImportError as error:
        raise ImportError(f"{scheme}:// needs a package that is not installed: {error}") from None
    except TypeError as error:
        raise InputError(f"`storage_options` do not fit {scheme}://: {reason(error, options)}") from None
    except InputError:
        raise
    except (arrow().ArrowException, ValueError, OSError) as error:
        raise InputError(f"{scheme}:// can't be opened: {reason(error, options)}") from None


def _native(scheme: str, address: str, options: dict[str, Any]) -> tuple[Any, str]:
    """Open what pyarrow knows by itself."""
    from pyarrow import fs

    kind = NATIVE[scheme]
    if not hasattr(fs, f"{kind}FileSystem"):
        raise ImportError(f"a pyarrow built with {kind}FileSystem: pip install -U pyarrow")
    bucket, _, key = address.split("://", 1)[1].partition("/")
    if kind == "Azure" and "@" in bucket:  # abfs://container@account.dfs.core.windows.net/path
        bucket, _, account = bucket.partition("@")
        options = {"account_name": account.split(".")[0]} | options
    if not bucket:
        raise InputError(f"source names no bucket: {scheme}://BUCKET/PATH is expected")
    if "@" in bucket or ":" in bucket:  # secrets, or half of one with a slash in it: not to be shown
        raise InputError(f"source must be like {scheme}://BUCKET/PATH: credentials are for `storage_options`")
    if kind == "Azure" and "account_name" not in options:
        raise InputError(
            "source names no account: abfs://CONTAINER@ACCOUNT.dfs.core.windows.net/PATH is expected, "
            "or `storage_options={'account_name': ...}`"
        )
    if kind == "S3":
        options = S3_SECONDS | options
        known = {"region", "endpoint_override"} & set(options) or {"AWS_REGION", "AWS_DEFAULT_REGION"} & set(os.environ)
        with suppress(OSError, ValueError):  # listing says what is wrong, in its own words
            options = options if known else options | {"region": fs.resolve_s3_region(bucket)}
    elif kind == "Gcs":
        options |= {"retry_time_limit": timedelta(seconds=options.get("retry_time_limit", GCS_SECONDS))}
    return getattr(fs, f"{kind}FileSystem")(**options), f"{bucket}/{key}".rstrip("/")


# What lies there


@contextmanager
def _listing(system: Any, path: str) -> Iterator[None]:
    """Turn what goes wrong while looking for files into one line."""
    try:
        yield
    except FileNotFoundError as error:
        raise InputError(f"{error.filename or name_of(system, path)}: there is no such file or folder") from None
    except InputError:
        raise
    except (arrow().ArrowException, OSError, ValueError) as error:
        raise InputError(f"{name_of(system, path)}: can't be listed: {reason(error, system)}") from None


def _entries(system: Any, paths: Sequence[str]) -> list[Entry | None]:
    """Return what lies at each path, if anything does; of remote storage, several are asked for at once."""
    with _listing(system, paths[0]):
        if system.type_name == "local":
            return [_local(path) if os.path.lexists(path) else None for path in paths]
        return [_remote(info) for info in system.get_file_info(list(paths))]


def _local(path: str) -> Entry:
    status = os.stat(path)
    key = f"{status.st_dev}:{status.st_ino}"
    return Entry(path, stat.S_ISDIR(status.st_mode), status.st_size, status.st_mtime_ns, key)


def _remote(info: Any) -> Entry | None:
    kind = info.type.name
    path = str(info.path)
    return None if kind == "NotFound" else Entry(path, kind == "Directory", info.size or 0, info.mtime_ns or 0, path)


def _members(system: Any, folder: str, *, deep: bool = False) -> Iterator[Entry]:
    """Give the members of a folder, in no particular order; if `deep`, those of folders in it, too."""
    from pyarrow.fs import FileSelector

    with _listing(system, folder):
        if system.type_name == "local":
            yield from _local_members(folder, deep, ())
        else:
            yield from filter(None, map(_remote, system.get_file_info(FileSelector(folder, recursive=deep))))


def _local_members(folder: str, deep: bool, above: tuple[str, ...]) -> Iterator[Entry]:
    """By hand, as pyarrow leaves out links that lead nowhere, and follows those that lead round in circles."""
    above = (*above, _local(folder).key)
    for name in os.listdir(folder):
        path, hidden = posixpath.join(folder, name), name.startswith(IGNORED)
        if hidden and not os.path.exists(path):  # what others are still writing comes and goes
            continue
        one = _local(path)
        yield one
        if deep and one.folder and not hidden:
            if one.key in above:
                raise InputError(f"{path}: is a link to a folder above it")
            yield from _local_members(path, deep, above)


def _below(system: Any, folder: str) -> Iterator[Entry]:
    """Give what is not hidden in a folder and in those below it."""
    for one in _members(system, folder, deep=True):
        names = _relative(one.path, folder).split("/")
        for name in LOGGED.keys() & set(names):
            raise InputError(
                f"{name_of(system, folder)}: is {LOGGED[name]}, whose log says which files count; "
                "give the list of these, or a pyarrow Dataset of them"
            )
        if not any(name.startswith(IGNORED) for name in names):
            yield one


def _files(system: Any, path: str, there: Entry | None) -> tuple[list[Entry], str]:
    """Return the files that one path means, by name, and the folder below which names of folders count."""
    if there is None and MAGIC.search(path):
        return _matches(system, path)
    if there is None:
        raise InputError(f"{name_of(system, path)}: there is no such file or folder")
    if not there.folder:
        return [there], _unnamed(posixpath.dirname(path))
    files = sorted(one for one in _below(system, path) if not one.folder)
    if not files:
        raise InputError(f"{name_of(system, path)}: there are no files in this folder")
    return files, path


def _matches(system: Any, pattern: str) -> tuple[list[Entry], str]:
    """Return the files that match a pattern, and those in folders that do."""
    segments = pattern.split("/")
    literal = next(k for k, segment in enumerate(segments) if MAGIC.search(segment))
    root, segments = "/".join(segments[:literal]) or ("/" if pattern.startswith("/") else ""), segments[literal:]
    found = [one for one in _entries(system, [root]) if one is not None and one.folder]
    for k, segment in enumerate(segments):
        folders = [one.path for one in found if one.folder]
        if segment == "**":
            inside = [(one, _relative(one.path, folder)) for folder in folders for one in _below(system, folder)]
            found = [one for one, path in inside if _fits(path.split("/"), segments[k:])]
            break
        members = [one for folder in folders for one in _members(system, folder)]
        found = [one for one in members if _is_named(posixpath.basename(one.path.rstrip("/")), segment)]
    files = {one.path: one for one in found if not one.folder}
    for folder in found if segments[-1] != "**" else []:  # a folder means all that is in it
        if folder.folder:
            files |= {one.path: one for one in _below(system, folder.path) if not one.folder}
    if not files:
        raise InputError(f"{name_of(system, pattern)}: no file matches this pattern")
    return [files[path] for path in sorted(files)], _unnamed(root)


def _is_named(name: str, pattern: str) -> bool:
    """Whether a name fits a pattern; one that is hidden has to be asked for, as by '_*'."""
    return fnmatchcase(name, pattern) and pattern.startswith(IGNORED) >= name.startswith(IGNORED)


def _fits(names: Sequence[str], segments: Sequence[str]) -> bool:
    """Whether the names in a path fit the segments of a pattern, of which ``**`` stands for any number of folders."""
    if segments[:1] == ["**"]:
        return segments == ["**"] or any(_fits(names[k:], segments[1:]) for k in range(len(names)))
    if not names or not segments:
        return not names and not segments
    return fnmatchcase(names[0], segments[0]) and _fits(names[1:], segments[1:])


def _checked_manifest(
    system: Any, found: list[Entry], root: str, manifest: str | Path | Sequence[str], options: Mapping[str, Any] | None
) -> list[Entry]:
    """Return the files without the manifest, or raise if they are not those that it names."""
    where = "manifest"
    if isinstance(manifest, str | Path):
        remote = ADDRESS.match(str(manifest)) and not str(manifest).lower().startswith("file:")
        place, path = opened(os.fspath(manifest), options if remote else None)
        where = name_of(place, path)
        if not remote:  # what is no file may never end
            check_regular(Path(path))
        with _listing(place, path), place.open_input_stream(path, compression=None) as stream:
            names = [line.strip() for line in stream.read().decode().splitlines() if line.strip()]
        found = [one for one in found if place != system or one.path != path]
    else:
        names = [str(name) for name in manifest]
    if not names:
        raise InputError(f"{where}: names no files")
    there = {_relative(one.path, root) for one in found}
    wanted = {name.removeprefix("./") for name in names}
    missing, unexpected = sorted(wanted - there), sorted(there - wanted)
    wrong = []
    if missing:
        wrong.append(f"{len(missing)} of {plural(len(wanted), 'file')} missing, the first {shown(missing[0])!r}")
    if unexpected:
        wrong.append(f"{plural(len(unexpected), 'file')} unexpected, the first {shown(unexpected[0])!r}")
    if wrong:
        raise InputError(f"{where}: not the files in {name_of(system, root)}: {'; '.join(wrong)}")
    return found


def _format(system: Any, path: str) -> str:
    name = posixpath.basename(path).lower()
    format = next((format for format, endings in ENDINGS.items() if name.endswith(endings)), None)
    if format is None:
        known = listed([ending for endings in ENDINGS.values() for ending in endings])
        raise InputError(
            f"{name_of(system, path)}: the ending must say what it is, one of {known}; "
            "or say `format=`, or begin names that do not count with '_'"
        )
    return format


# What names of folders say


def with_types(texts: Sequence[Mapping[str, str]]) -> list[dict[str, Any]]:
    """Return what the names of folders say as whole numbers or numbers, where all of a name are so; None for no value.

    Only if they are written as numbers are printed: '01' and '1.10' are labels.
    """
    known: dict[str, set[str]] = {}
    for one in texts:
        for name, text in one.items():
            known.setdefault(name, set()).add(text)
    kinds = {name: _kind_of(several - {NO_VALUE}) for name, several in known.items()}
    return [{name: None if text == NO_VALUE else kinds[name](text) for name, text in one.items()} for one in texts]


def _kind_of(texts: set[str]) -> type:
    for kind in (int, float):
        with suppress(ValueError):
            if texts and all(str(kind(text)) == text and abs(kind(text)) < 1 << 62 for text in texts):
                return kind
    return str


def _folders(path: str, root: str) -> dict[str, str]:
    """Return what the names of folders between a root and a file say: ``country=DE``."""
    named = (folder.partition("=") for folder in _relative(path, root).split("/")[:-1])
    return {unquote(key): unquote(value) for key, equals, value in named if equals and key}


def common_folder(roots: Sequence[str]) -> str:
    """Return the deepest folder that all roots are in, above folders whose names say something."""
    levels = zip(*(root.split("/") for root in roots), strict=False)
    return _unnamed("/".join(level[0] for level in takewhile(lambda level: len(set(level)) == 1, levels)))


def _unnamed(root: str) -> str:
    """Return the folder above those named ``key=value``: who names a file names these, too."""
    while "=" in posixpath.basename(root):
        root = posixpath.dirname(root)
    return root


def _relative(path: str, root: str) -> str:
    path, root = path.strip("/"), root.strip("/")
    return path.removeprefix(root + "/") if root else path

"""From a folder, a pattern, an address, a dataset, or a list of paths to the files that they mean."""

from __future__ import annotations

import os
import pickle
import posixpath
import re
import stat
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import timedelta
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

from survscore._validation import InputError, check_choice, plural, shown
from survscore.io.files import check_regular
from survscore.io.tables import arrow, listed
from survscore.scale.files import FORMATS, NO_VALUE, FilePart, name_of, reason

ENDINGS = {
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    **dict.fromkeys((".csv", ".csv.gz", ".tsv", ".tsv.gz"), "csv"),
    **dict.fromkeys((".arrow", ".arrows", ".feather", ".ipc"), "arrow"),
}
IGNORED = ("_", ".")  # how names begin that are not part of the data
# These folders contain files that no longer count beside those that do: only the log knows which.
LOGGED = {"_delta_log": "a Delta table", ".hoodie": "a Hudi table"}
EVERYTHING = ("**",)  # the pattern of all that is in a folder
MAGIC = re.compile(r"[*?\[]")
ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]+)://")
NATIVE = {"s3": "S3", "gs": "Gcs", "gcs": "Gcs", "abfs": "Azure", "abfss": "Azure"}
S3_SECONDS = {"connect_timeout": 5.0, "request_timeout": 10.0}  # by default, a lost connection takes minutes to end
GCS_SECONDS = 30.0
AT_ONCE = 16  # files whose ends are read at the same time


class Entry(NamedTuple):
    """A file or folder; of files of this machine, `key` is the same under all of their names."""

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

    See `open_source`. Patterns have ``*``, ``**``, ``?`` and ``[...]``; in folders, names that begin with ``_`` or
    ``.`` are ignored.
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
    entries: list[Entry] = []
    roots = []
    for (_, path), entry in zip(places, _entries(system, [path for _, path in places]), strict=True):
        files, root = _files(system, path, entry)
        entries += files
        roots.append(root)
    root = roots[0] if len(places) == 1 else _unnamed(posixpath.commonpath(roots))
    if manifest is not None:
        entries = _checked_manifest(system, entries, root, manifest, storage_options)
    if not entries:
        raise InputError(f"{name_of(system, places[0][1])}: there are no files")
    formats = [format or _format(system, entry.path) for entry in entries]
    for entry, other in zip(entries, formats, strict=True):
        if other != formats[0]:
            raise InputError(
                f"files must be of one format: {name_of(system, entries[0].path)} is {formats[0]}, "
                f"but {name_of(system, entry.path)} is {other}"
            )
    return _parts(system, entries, root, formats[0], with_types([_folders(entry.path, root) for entry in entries]))


def dataset_parts(source: Any) -> list[FilePart] | None:
    """Return the files of a pyarrow Dataset, if reading them gives the rows and the types that the dataset gives."""
    from pyarrow import dataset, fs

    if not isinstance(source, dataset.FileSystemDataset) or getattr(source, "_scan_options", None):
        return None  # not from files, or only some of their rows
    kinds = {dataset.ParquetFileFormat: "parquet", dataset.IpcFileFormat: "arrow"}
    format = next((format for kind, format in kinds.items() if isinstance(source.format, kind)), None)
    fragments = list(source.get_fragments())
    if format is None or not fragments:
        return None
    for column in fragments[0].physical_schema:
        if column.name in source.schema.names and not source.schema.field(column.name).type.equals(column.type):
            return None
    if format == "parquet":  # whether these are all row groups is at the end of each file
        with ThreadPoolExecutor(AT_ONCE) as pool:
            if not all(pool.map(lambda part: len(part.row_groups) == part.metadata.num_row_groups, fragments)):
                return None
    system, prefix = source.filesystem, ""
    while isinstance(system, fs.SubTreeFileSystem):
        system, prefix = system.base_fs, system.base_path + prefix
    try:
        pickle.dumps(system)
    except (TypeError, pickle.PicklingError):
        return None  # it can't be sent to other processes: the dataset is read as a stream
    paths = [prefix + fragment.path for fragment in fragments]
    paths = [os.path.abspath(path) for path in paths] if system.type_name == "local" else paths
    entries = []
    for path, entry in zip(paths, _entries(system, paths), strict=True):
        if entry is None:
            raise InputError(f"{name_of(system, path)}: there is no such file, though it is in the dataset")
        entries.append(entry)
    keys = [dataset.get_partition_keys(fragment.partition_expression) for fragment in fragments]
    constants = [{k: v if isinstance(v, int | None) else str(v) for k, v in values.items()} for values in keys]
    return _parts(system, entries, _unnamed(posixpath.commonpath(map(posixpath.dirname, paths))), format, constants)


def _parts(
    system: Any, entries: Sequence[Entry], root: str, format: str, constants: Sequence[Mapping[str, Any]]
) -> list[FilePart]:
    """Return the files; raise if one is named twice, or there under two names: by links, its rows would count twice."""
    by_key: dict[str, list[Entry]] = defaultdict(list)
    for entry in entries:
        by_key[entry.key].append(entry)
    repeated = [same for same in by_key.values() if len(same) > 1]
    if repeated:
        first, other = repeated[0][:2]
        links = f", which {name_of(system, other.path)} is, too, by a link" if other.path != first.path else ""
        count = f"source holds {plural(len(repeated), 'file')} more than once"
        raise InputError(f"{count}, the first {name_of(system, first.path)}{links}")
    return [
        FilePart(entry.path, system, format, entry.size, entry.changed, values, relative=_relative(entry.path, root))
        for entry, values in zip(entries, constants, strict=True)
    ]


# File systems


def opened(address: str, options: Mapping[str, Any] | None = None) -> tuple[Any, str]:
    """Return the file system of a path or an address, and the path within it."""
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
    except InputError:
        raise
    except TypeError as error:
        raise InputError(f"`storage_options` do not fit {scheme}://: {reason(error, options)}") from None
    except (arrow().ArrowException, ValueError, OSError) as error:
        raise InputError(f"{scheme}:// can't be opened: {reason(error, options)}") from None


def _native(scheme: str, address: str, options: dict[str, Any]) -> tuple[Any, str]:
    """Open one of pyarrow's own file systems."""
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
        with suppress(OSError, ValueError):  # if it fails, listing gives the reason
            options = options if known else options | {"region": fs.resolve_s3_region(bucket)}
    elif kind == "Gcs":
        options |= {"retry_time_limit": timedelta(seconds=options.get("retry_time_limit", GCS_SECONDS))}
    return getattr(fs, f"{kind}FileSystem")(**options), f"{bucket}/{key}".rstrip("/")


# Listing


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
    """Return what is at each path, None for nothing; of remote storage, several are requested at once."""
    with _listing(system, paths[0]):
        if system.type_name == "local":
            return [_local(path) if os.path.lexists(path) else None for path in paths]
        infos = system.get_file_info(list(paths))
        return [None if info.type.name == "NotFound" else _remote(info) for info in infos]


def _local(path: str) -> Entry:
    status = os.stat(path)
    key = f"{status.st_dev}:{status.st_ino}"
    return Entry(path, stat.S_ISDIR(status.st_mode), status.st_size, status.st_mtime_ns, key)


def _remote(info: Any) -> Entry:
    return Entry(str(info.path), info.type.name == "Directory", info.size or 0, info.mtime_ns or 0, str(info.path))


def _members(system: Any, folder: str, deep: bool) -> Iterator[Entry]:
    """Give the members of a folder, in no particular order; of remote storage those of folders in it, too, if `deep`.

    Local folders are listed by `os`: pyarrow leaves out links whose target is missing, and follows circles of links.
    """
    from pyarrow.fs import FileSelector

    with _listing(system, folder):
        if system.type_name != "local":
            yield from map(_remote, system.get_file_info(FileSelector(folder, recursive=deep)))
            return
        for name in os.listdir(folder):
            path = posixpath.join(folder, name)
            # temporary files of other processes come and go
            if not name.startswith(IGNORED) or os.path.exists(path):
                yield _local(path)


def _walk(system: Any, folder: str, patterns: set[tuple[str, ...]], above: tuple[str, ...] = ()) -> Iterator[Entry]:
    """Give the files in a folder whose path, or that of a folder above them, fits one of some patterns.

    A pattern has a segment for every name, and ``**`` for any number of folders.
    """
    local = system.type_name == "local"
    above = (*above, _local(folder).key) if local else ()
    deep = not local and patterns == {EVERYTHING}
    for entry in _members(system, folder, deep):
        rest = patterns
        for name in _relative(entry.path, folder).split("/"):
            if name in LOGGED and any(first == "**" for first, *_ in rest):
                raise InputError(
                    f"{name_of(system, folder)}: is {LOGGED[name]}, whose log says which files count; "
                    "give the list of these, or a pyarrow Dataset of them"
                )
            rest = _after(rest, name)
        if entry.folder and rest and not deep:
            if entry.key in above:
                raise InputError(f"{entry.path}: is a link to a folder above it")
            yield from _walk(system, entry.path, rest, above)
        elif not entry.folder and EVERYTHING in rest:
            yield entry


def _after(patterns: set[tuple[str, ...]], name: str) -> set[tuple[str, ...]]:
    """Return what remains of patterns after a name; where one has ended, all that is below fits.

    Hidden names only fit segments such as '_*'.
    """
    rest: set[tuple[str, ...]] = set()
    for pattern in patterns:
        first, more = pattern[0], pattern[1:]
        if first == "**":
            rest |= {pattern} if not name.startswith(IGNORED) else set()
            rest |= _after({more}, name) if more else set()
        elif fnmatchcase(name, first) and first.startswith(IGNORED) >= name.startswith(IGNORED):
            rest.add(more or EVERYTHING)
    return rest


def _files(system: Any, path: str, entry: Entry | None) -> tuple[list[Entry], str]:
    """Return the files that one path means, by name, and the folder below which names of folders count."""
    if entry is not None and not entry.folder:
        return [entry], _unnamed(posixpath.dirname(path))
    if entry is not None:
        files, nothing = sorted(_walk(system, path, {EVERYTHING})), "there are no files in this folder"
        root = path
    else:
        segments = path.split("/")
        literal = next((k for k, segment in enumerate(segments) if MAGIC.search(segment)), None)
        if literal is None:
            raise InputError(f"{name_of(system, path)}: there is no such file or folder")
        above = "/".join(segments[:literal]) or ("/" if path.startswith("/") else "")
        (there,) = _entries(system, [above])
        is_folder = there is not None and there.folder
        files = sorted(_walk(system, above, {tuple(segments[literal:])})) if is_folder else []
        root, nothing = _unnamed(above), "no file matches this pattern"
    if not files:
        raise InputError(f"{name_of(system, path)}: {nothing}")
    return files, root


def _checked_manifest(
    system: Any,
    entries: list[Entry],
    root: str,
    manifest: str | Path | Sequence[str],
    options: Mapping[str, Any] | None,
) -> list[Entry]:
    """Return the files without the manifest, or raise if they are not those that it names."""
    where = "manifest"
    if isinstance(manifest, str | Path):
        remote = ADDRESS.match(str(manifest)) and not str(manifest).lower().startswith("file:")
        place, path = opened(os.fspath(manifest), options if remote else None)
        where = name_of(place, path)
        if not remote:  # reading a pipe or a device may never end
            check_regular(Path(path))
        with _listing(place, path), place.open_input_stream(path, compression=None) as stream:
            names = [line.strip() for line in stream.read().decode().splitlines() if line.strip()]
        entries = [entry for entry in entries if place != system or entry.path != path]
    else:
        names = [str(name) for name in manifest]
    if not names:
        raise InputError(f"{where}: names no files")
    there, wanted = {_relative(entry.path, root) for entry in entries}, {name.removeprefix("./") for name in names}
    missing, unexpected = sorted(wanted - there), sorted(there - wanted)
    wrong = []
    if missing:
        wrong.append(f"{len(missing)} of {plural(len(wanted), 'file')} missing, the first {shown(missing[0])!r}")
    if unexpected:
        wrong.append(f"{plural(len(unexpected), 'file')} unexpected, the first {shown(unexpected[0])!r}")
    if wrong:
        raise InputError(f"{where}: not the files in {name_of(system, root)}: {'; '.join(wrong)}")
    return entries


def _format(system: Any, path: str) -> str:
    for ending, format in ENDINGS.items():
        if path.lower().endswith(ending):
            return format
    raise InputError(
        f"{name_of(system, path)}: the ending must say what it is, one of {listed(list(ENDINGS))}; "
        "or say `format=`, or begin names that do not count with '_'"
    )


# Names of folders


def with_types(texts: Sequence[Mapping[str, str]]) -> list[dict[str, Any]]:
    """Return the values in names of folders, as numbers where all of a name are numbers; None for no value.

    Only if they are written as numbers are printed: '01' and '1.10' are labels.
    """
    known: dict[str, set[str]] = defaultdict(set)
    for values in texts:
        for name, text in values.items():
            known[name].add(text)
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


def _unnamed(root: str) -> str:
    """Return the folder above those named ``key=value``, which count, too, where they are part of the path."""
    while "=" in posixpath.basename(root):
        root = posixpath.dirname(root)
    return root


def _relative(path: str, root: str) -> str:
    path, root = path.strip("/"), root.strip("/")
    return path.removeprefix(root + "/") if root else path

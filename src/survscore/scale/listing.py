"""From a folder, a pattern, or a list of paths to the files that they mean."""

from __future__ import annotations

import fnmatch
import os
import posixpath
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from survscore._validation import InputError, check_choice, plural, shown
from survscore.io.files import check_regular
from survscore.io.tables import listed
from survscore.scale.files import NO_VALUE, FilePart
from survscore.scale.filesystems import (
    IGNORED,
    LOCAL,
    URI,
    Description,
    Entry,
    checked_options,
    described_uri,
    entries,
    entries_at,
    entry,
    listing,
    name_of,
    opened,
)
from survscore.scale.formats import ENDINGS, FORMATS, format_of

MAGIC = re.compile(r"[*?\[]")
# In these folders lie files that no longer count beside those that do: only the log tells which.
LOGGED = {"_delta_log": "a Delta table", ".hoodie": "a Hudi table"}


def file_parts(
    paths: str | Path | Sequence[str | Path],
    *,
    storage_options: Mapping[str, Any] | None = None,
    format: str | None = None,
    manifest: str | Path | Sequence[str] | None = None,
) -> list[FilePart]:
    """Return the files that paths mean: those of a folder and below by name, those of a list in its order.

    Parameters
    ----------
    paths : path or sequence of paths
        Files, folders, patterns with ``*``, ``**``, ``?`` and ``[...]``, or addresses such as ``s3://bucket/folder``.
        Of folders, what begins with ``_`` or ``.`` is left out.
    storage_options : dict, optional
        How to reach remote storage.
    format : {"parquet", "csv", "arrow"}, optional
        By default what the files' endings say.
    manifest : path or sequence of str, optional
        The names of all files relative to the folder: a text file with one per line, or the names.
    """
    if format is not None:
        check_choice("format", format, FORMATS)
    several = [paths] if isinstance(paths, str | Path) else list(paths)
    if not several:
        raise InputError("source is an empty list of paths")
    for path in several:
        if not isinstance(path, str | Path):
            raise InputError(f"source must be a list of paths, but one is of type {type(path).__name__}")
    places = [_place(os.fspath(path), storage_options) for path in several]
    description = places[0][0]
    if any(other != description for other, _ in places):
        raise InputError("source must be a list of paths of one file system with one set of storage_options")
    found: list[tuple[Entry, str]] = []
    for (_, path), there in zip(places, entries_at(description, [path for _, path in places]), strict=True):
        found += _found(description, path, there)
    check_different(description, [one for one, _ in found])
    root = found[0][1] if len(places) == 1 else common_folder([root for _, root in found])
    found = [(one, root) for one, _ in found] if len(places) > 1 else found
    if manifest is not None:
        found = _checked_manifest(description, found, root, manifest)
    if not found:
        raise InputError(f"{name_of(description, places[0][1])}: there are no files")
    formats = [format or _format(description, one.path) for one, _ in found]
    if len(set(formats)) > 1:
        other = next(k for k, one in enumerate(formats) if one != formats[0])
        raise InputError(
            f"files must be of one format: {name_of(description, found[0][0].path)} is {formats[0]}, "
            f"but {name_of(description, found[other][0].path)} is {formats[other]}"
        )
    constants = with_types([constants_in(one.path, root) for one, root in found])
    return [
        FilePart(one.path, description, kind, one.size, one.etag, values, relative=_relative(one.path, root))
        for (one, root), kind, values in zip(found, formats, constants, strict=True)
    ]


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
        try:
            if texts and all(str(kind(text)) == text and abs(kind(text)) < 1 << 62 for text in texts):
                return kind
        except ValueError:
            continue
    return str


def check_different(description: Description, found: Sequence[Entry]) -> None:
    """Raise if a file is named twice, or is there under two names: by links, its rows would count twice."""
    keys = Counter(one.inode or one.path for one in found)
    repeated = [one for one in found if keys[one.inode or one.path] > 1]
    if repeated:
        first = repeated[0]
        other = next(one for one in repeated[1:] if (one.inode or one.path) == (first.inode or first.path))
        links = f", which {name_of(description, other.path)} is, too, by a link" if other.path != first.path else ""
        raise InputError(
            f"source holds {plural(sum(count > 1 for count in keys.values()), 'file')} more than once, "
            f"the first {name_of(description, first.path)}{links}"
        )


def constants_in(path: str, root: str) -> dict[str, str]:
    """Return what the names of folders between a root and a file say: ``country=DE``."""
    folders = _relative(path, root).split("/")[:-1]
    named = (folder.partition("=") for folder in folders)
    return {unquote(key): unquote(value) for key, equals, value in named if equals and key}


def _place(path: str, options: Mapping[str, Any] | None) -> tuple[Description, str]:
    if not path:
        raise InputError("source must be a path, not an empty text")
    if URI.match(path):
        return described_uri(path, options)
    if checked_options(options):
        raise InputError("`storage_options` are for remote storage, but the source is a local path")
    return LOCAL, os.path.abspath(path)  # where it is read, another folder may be the current one


def _found(description: Description, path: str, there: Entry | None) -> list[tuple[Entry, str]]:
    """Return the files that one path means, each with the folder below which names of folders count."""
    if there is None and MAGIC.search(path):
        return _matches(description, path)
    if there is None:
        raise InputError(f"{name_of(description, path)}: there is no such file or folder")
    if not there.folder:
        return [(there, _unnamed(posixpath.dirname(_slashed(path))))]
    files = sorted(_below(description, path))
    if not files:
        raise InputError(f"{name_of(description, path)}: there are no files in this folder")
    return [(one, path) for one in files]


def _below(description: Description, folder: str) -> Iterator[Entry]:
    for one in entries(description, folder, recursive=True):
        names = _relative(one.path, folder).split("/")
        for name, table in LOGGED.items():
            if name in names:
                raise InputError(
                    f"{name_of(description, folder)}: is {table}, whose log says which files count; "
                    "give the list of these, or a pyarrow Dataset of them"
                )
        if not one.folder and not any(name.startswith(IGNORED) for name in names):
            yield one


def _matches(description: Description, pattern: str) -> list[tuple[Entry, str]]:
    """Return the files that match a pattern, and those in folders that do."""
    segments = _slashed(pattern).split("/")
    literal = next(k for k, segment in enumerate(segments) if MAGIC.search(segment))
    root = "/".join(segments[:literal]) or ("/" if pattern.startswith("/") else "")
    there = entry(description, root)
    matched = list(_expanded(description, root, segments[literal:])) if there is not None and there.folder else []
    files = {one.path: one for one in matched if not one.folder}
    for folder in matched:
        # '**' matches the files in a folder by itself; any other pattern that ends in a folder means all of it
        if folder.folder and segments[-1] != "**":
            files |= {one.path: one for one in _below(description, folder.path)}
    if not files:
        raise InputError(f"{name_of(description, pattern)}: no file matches this pattern")
    return [(files[path], _unnamed(root)) for path in sorted(files)]


def _expanded(description: Description, folder: str, segments: list[str]) -> Iterator[Entry]:
    """Give what matches a pattern below a folder, level by level up to the first ``**``."""
    if segments[0] == "**":
        matches = re.compile(_translated(segments)).fullmatch
        for one in entries(description, folder, recursive=True):
            if matches(_relative(one.path, folder)):
                yield one
        return
    # Names that are hidden have to be asked for: '*' does not match '_SUCCESS' and '.part.crc'.
    matches = re.compile(_translated(segments[:1])).fullmatch
    for one in entries(description, folder, recursive=False):
        if matches(posixpath.basename(_slashed(one.path).rstrip("/"))):
            if len(segments) == 1:
                yield one
            elif one.folder:
                yield from _expanded(description, one.path, segments[1:])


def _translated(segments: Sequence[str]) -> str:
    """Return the regular expression of a pattern for paths of visible names."""
    visible = rf"(?![{''.join(IGNORED)}])"
    pattern = ""
    for k, segment in enumerate(segments):
        last = k == len(segments) - 1
        if segment == "**":
            pattern += f"(?:{visible}[^/]+/)*" + (f"{visible}[^/]+" if last else "")
            continue
        # A segment of its own: fnmatch's '*' would run over '/', too
        body = fnmatch.translate(segment).removesuffix(r"\Z").removesuffix(r"\z").replace(".*", "[^/]*")
        pattern += ("" if segment.startswith(IGNORED) else visible) + body + ("" if last else "/")
    return pattern


def _checked_manifest(
    description: Description, found: list[tuple[Entry, str]], root: str, manifest: str | Path | Sequence[str]
) -> list[tuple[Entry, str]]:
    """Return the files without the manifest, or raise if they are not those that it names."""
    where = "manifest"
    if isinstance(manifest, str | Path):
        place, path = _manifest_place(description, os.fspath(manifest))
        where = name_of(place, path)
        if place == LOCAL:  # what is no file may never end
            check_regular(Path(path))
        with listing(place, path), opened(place).open_input_stream(path, compression=None) as stream:
            names = [line.strip() for line in stream.read().decode().splitlines() if line.strip()]
        found = [one for one in found if place != description or one[0].path != path]
    else:
        names = [str(name) for name in manifest]
    if not names:
        raise InputError(f"{where}: names no files")
    there = {_relative(one.path, root) for one, _ in found}
    wanted = {name.removeprefix("./") for name in names}
    missing, unexpected = sorted(wanted - there), sorted(there - wanted)
    wrong = []
    if missing:
        wrong.append(f"{len(missing)} of {plural(len(wanted), 'file')} missing, the first {shown(missing[0])!r}")
    if unexpected:
        wrong.append(f"{plural(len(unexpected), 'file')} unexpected, the first {shown(unexpected[0])!r}")
    if wrong:
        raise InputError(f"{where}: not the files in {name_of(description, root)}: {'; '.join(wrong)}")
    return found


def _manifest_place(description: Description, manifest: str) -> tuple[Description, str]:
    if not URI.match(manifest):
        return LOCAL, os.path.abspath(manifest)
    if manifest.lower().startswith("file://"):
        return described_uri(manifest, None)
    options = description.get("options")
    place, path = described_uri(manifest, options)
    return ({**place, "options": options}, path) if place["type"] == description["type"] else (place, path)


def _format(description: Description, path: str) -> str:
    format = format_of(posixpath.basename(_slashed(path)))
    if format is None:
        known = listed([ending for endings in ENDINGS.values() for ending in endings])
        raise InputError(
            f"{name_of(description, path)}: the ending must say what it is, one of {known}; "
            "or say `format=`, or begin names that do not count with '_'"
        )
    return format


def common_folder(roots: Sequence[str]) -> str:
    """Return the deepest folder that all roots are in, above folders whose names say something."""
    split = [_slashed(root).split("/") for root in roots]
    shared = 0
    for level in zip(*split, strict=False):
        if len(set(level)) > 1:
            break
        shared += 1
    return _unnamed("/".join(split[0][:shared]))


def _unnamed(root: str) -> str:
    """Return the folder above those named ``key=value``: who names a file names these, too."""
    while "=" in posixpath.basename(root):
        root = posixpath.dirname(root)
    return root


def _relative(path: str, root: str) -> str:
    path, root = _slashed(path).strip("/"), _slashed(root).strip("/")
    return path.removeprefix(root + "/") if root else path


def _slashed(path: str) -> str:
    return path.replace(os.sep, "/") if os.sep != "/" else path

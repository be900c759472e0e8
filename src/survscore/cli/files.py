"""Files that the command line names, each with options of its own, and study files: TOML for ``--study``."""

from __future__ import annotations

import datetime
import difflib
import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from survscore._validation import InputError, shown
from survscore.cli import options
from survscore.io.files import check_regular
from survscore.io.flags import joined_words

if TYPE_CHECKING:
    from survscore.io import Form

FLAGS = ("percent", "transposed", "long")
SETTINGS = ("columns", "time-column", "grid", "interpolation", "extrapolation", "monotone", "predicts", "unit")


@dataclass(frozen=True)
class Source:
    """A file of predictions: what to call its model, where it is, and what is said of it alone."""

    name: str | None
    path: Path
    own: dict[str, Any]

    @classmethod
    def of(cls, given: Path | Source) -> Source:
        """Return what is meant by ``[NAME=]FILE[OPTIONS]``; a file that is called just so is that file."""
        if isinstance(given, Source):
            return given
        if given.exists():
            return cls(None, given, {})
        text, own = str(given), {}
        opens = text.rfind("[")
        if text.endswith("]") and opens > 0 and not _is_there(text.partition("=")[2]):
            own = own_options(text[opens + 1 : -1], text)
            text = text[:opens]
        name, equals, rest = text.partition("=")
        if equals and name and rest and not Path(text).exists():
            return cls(name, Path(rest), own)
        return cls(None, Path(text), own)

    @staticmethod
    def settings(name: str, value: str, whole: str) -> dict[str, Any]:
        """Return what one of `SETTINGS` says."""
        return {name.replace("-", "_"): _times(value, whole) if name == "grid" else value}

    def form(self, shared: Form) -> Form:
        """Return what the file looks like: as it is said of all, but for what is said of it alone."""
        try:
            return replace(shared, **self.own)
        except InputError as error:
            raise InputError(f"{self.path}: {error}") from None


def _is_there(text: str) -> bool:
    return bool(text) and Path(text).exists()


def own_options(text: str, whole: str) -> dict[str, Any]:
    """Return the options that are in the brackets of a source."""
    own: dict[str, Any] = {}
    for part in text.split(","):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if name.replace("-", "_") in own:
            raise InputError(f"{whole}: {name} is said twice")
        if name in FLAGS and not equals:
            own[name] = True
        elif name in SETTINGS and value:
            own |= Source.settings(name, value, whole)
        else:
            raise InputError(
                f"{whole}: in brackets there may be {', '.join(f'{setting}=...' for setting in SETTINGS)}, "
                f"{', '.join(FLAGS)}, separated by commas, not {part.strip()!r}"
            )
    return own


def _times(text: str, whole: str) -> Any:
    try:
        return options.TIMES.convert(text, None, click.get_current_context())
    except click.UsageError as error:
        raise InputError(f"{whole}: grid: {error.message}") from None


def shared_form(arguments: dict[str, Any]) -> Form:
    """Return what the options say of all files of predictions."""
    from survscore.io import Form

    names = ("grid", "columns", "time_column", "interpolation", "extrapolation", "monotone", "predicts", *FLAGS)
    return Form(**{name: arguments[name] for name in names}, unit=arguments["predictions_unit"])


def sources(paths: tuple[Path | Source, ...]) -> list[Source]:
    """Return the files of predictions that were named."""
    return [Source.of(path) for path in paths]


LARGEST = 1 << 20  # bytes
# Which tables there are, beside [models.NAME]: what an option is about.
TABLES = ("outcomes", "models", "score", "compare", "report", "table")
OUTCOME_OPTIONS = (
    "id",
    "time",
    "event",
    "causes",
    "censoring-time",
    "entry",
    "cutoff",
    "start",
    "event-date",
    "last-seen",
    "entry-date",
    "unit",
    "end",
    "reason",
    "event-reasons",
    "competing-reasons",
    "censored-reasons",
    "date-format",
    "origin",
    "open-end",
    "drop-late-starts",
    "weights",
    "weight-kind",
)


def _load(context: click.Context, parameter: click.Parameter, path: Path | None) -> None:
    """Take what a study file says for what the command line leaves out."""
    if path is None:
        return
    context.meta.setdefault(options.READING, []).append(path)
    context.default_map = {**(context.default_map or {}), **defaults(context.command, read_study_file(path), path)}


study = click.option(
    "--study",
    type=options.FILE,
    metavar="FILE",
    is_eager=True,
    expose_value=False,
    callback=_load,
    help="Take files and options from a TOML file, where the command line leaves them out.",
)


def read_study_file(path: Path) -> dict[str, Any]:
    """Return the tables of a study file."""
    check_regular(path)
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST + 1)
    except OSError as error:
        raise InputError(f"{path}: can't be read: {error.strerror}") from None
    if len(content) > LARGEST:
        raise InputError(f"{path}: is no study file: it has more than {LARGEST >> 20} MB")
    try:
        tables = tomllib.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise InputError(f"{path}: is no study file: it is not written in UTF-8") from None
    except (tomllib.TOMLDecodeError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: is no TOML: {shown(error, most=200)}") from None
    for name, table in tables.items():
        _known(path, "", name, TABLES)
        if not isinstance(table, dict):
            raise InputError(f"{path}: {name} must be a table, [{name}], not a value")
    return tables


def defaults(command: click.Command, tables: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """Return what a study file says, by the names of a command's parameters."""
    from survscore.cli import cli

    parameters = {name: _by_option(cli.commands[name]) for name in ("score", "compare", "report", "table")}
    own = _by_option(command)
    said: dict[str, Any] = {}
    for table, allowed in (
        ("outcomes", {name: parameters["score"][name] for name in OUTCOME_OPTIONS}),
        *(
            (name, {key: one for key, one in known.items() if key not in OUTCOME_OPTIONS})
            for name, known in parameters.items()
        ),
    ):
        for key, value in tables.get(table, {}).items():
            if table == "outcomes" and key == "file":
                said["outcomes"] = _file(path, "[outcomes] file", value)
                continue
            _known(path, f"[{table}] ", key, [*(["file"] if table == "outcomes" else []), *allowed])
            if table in ("outcomes", "score", command.name) and key in own:
                said[str(own[key].name)] = _value(path, f"[{table}] {key}", allowed[key], value)
    models = tables.get("models", {})
    unnamed = {key: value for key, value in models.items() if not isinstance(value, dict)}
    sources = [_model(path, None, unnamed)] if unnamed else []
    sources += [_model(path, name, model) for name, model in models.items() if isinstance(model, dict)]
    return said | ({"predictions": sources} if sources else {})


def _by_option(command: click.Command) -> dict[str, click.Parameter]:
    """Return the options of a command by their long names."""
    named: dict[str, click.Parameter] = {}
    for parameter in command.params:
        longest = max(parameter.opts, key=len)
        if isinstance(parameter, click.Option) and longest not in ("--study", "--help", "--help-all"):
            named[longest.removeprefix("--")] = parameter
    return named


def _known(path: Path, where: str, key: str, known: Any) -> None:
    if key in known:
        return
    near = difflib.get_close_matches(key, known, n=1)
    hint = f", did you mean {near[0]}?" if near else ";"
    raise InputError(f"{path}: {where}there is no {shown(key)!r}{hint} Known are {', '.join(known)}")


def _model(path: Path, name: str | None, model: Mapping[str, Any]) -> Source:
    """Return a file of predictions, named, or with names of its own for its models."""
    where = "[models]" if name is None else f"[models.{shown(name)}]"
    for key in model:
        _known(path, f"{where} ", key, ("file", *SETTINGS, *FLAGS))
    if "file" not in model:
        raise InputError(f"{path}: {where} must say the file of the predictions: file = ...")
    own: dict[str, Any] = {}
    for key, value in model.items():
        if key == "file":
            continue
        if key in FLAGS:
            if not isinstance(value, bool):
                raise InputError(f"{path}: {where} {key} must be true or false, not {shown(value)!r}")
            own[key] = value
        else:
            text = _text(path, f"{where} {key}", value, joined=key == "grid")
            own |= Source.settings(key, _beside(path, text) if key == "grid" else text, f"{path}: {where}")
    return Source(name, _file(path, f"{where} file", model["file"]), own)


def _value(path: Path, where: str, parameter: click.Parameter, value: Any) -> Any:
    """Return a value as the command line would have it: text, a list of texts, or whether a flag is set."""
    if isinstance(parameter, click.Option) and parameter.is_flag:
        if not isinstance(value, bool):
            raise InputError(f"{path}: {where} must be true or false, not {shown(value)!r}")
        return value
    if parameter.type in (options.TIMES, options.MODEL_OR_FILE):
        several = parameter.type is options.TIMES
        beside = _beside(path, _text(path, where, value, joined=several))
        return [beside] if several else beside
    if isinstance(parameter.type, click.Path):
        return _file(path, where, value)
    if isinstance(parameter, click.Option) and parameter.multiple:
        return [_text(path, where, one) for one in (value if isinstance(value, list) else [value])]
    if parameter.callback is options.words and isinstance(value, list) and value:
        return joined_words([_text(path, where, one) for one in value])
    return _text(path, where, value)


def _text(path: Path, where: str, value: Any, *, joined: bool = False) -> str:
    if joined and isinstance(value, list) and value:
        return ",".join(_text(path, where, one) for one in value)
    if isinstance(value, (datetime.date, datetime.datetime)):
        return value.isoformat()
    if isinstance(value, bool) or not isinstance(value, (str, int, float)) or value == "":
        wanted = "text, a number, or a list of them" if joined else "text or a number"
        raise InputError(f"{path}: {where} must be {wanted}, not {shown(value)!r}")
    if isinstance(value, float) and not math.isfinite(value):
        raise InputError(f"{path}: {where} must be a finite number, not {value}")
    return str(value)


def _file(path: Path, where: str, value: Any) -> Path:
    """Return a file that a study file names, relative to itself."""
    if not isinstance(value, str) or not value or "\0" in value:
        raise InputError(f"{path}: {where} must name a file, not {shown(value)!r}")
    return Path(value) if value == "-" else path.parent / value


def _beside(path: Path, text: str) -> str:
    """Return times as they are, or the text file that holds them, if it lies beside the study file."""
    try:
        beside = path.parent / text
        return str(beside) if beside.is_file() else text
    except (OSError, ValueError):  # no name of a file
        return text

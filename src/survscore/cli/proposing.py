"""The command that files seem to need, in print: a line for a shell, a study file, or JSON."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from survscore._validation import InputError, shown, without_controls
from survscore.cli.screen import one_line
from survscore.cli.study_files import as_toml
from survscore.io.flags import REASON_OPTIONS, split_words
from survscore.weighting import Administrative

if TYPE_CHECKING:
    from survscore.io.proposals import Proposal

MOST_ROWS = 60  # of columns that are printed
WIDEST = 40


def propose(paths: tuple[Path, ...], *, as_json: bool, toml: bool) -> None:
    """Print what files look like, and what to say of them."""
    from survscore.io.proposals import propose as look_at

    proposal = look_at(list(paths))
    if as_json:
        click.echo(json.dumps(as_data(proposal), indent=1))
    elif toml:
        click.echo(study_file(proposal), nl=False)
    else:
        click.echo("\n".join(page(proposal)))


def command_line(proposal: Proposal) -> list[str]:
    """Return the words of the proposed command."""
    options = dict(proposal.options)
    files = [_safe(proposal.outcomes), *(_source(model.path, model.own) for model in proposal.models)]
    if proposal.command == "evaluate":
        files, options = _of_folders(proposal, options)
    # without it, comparisons show administrative and projected scores, and what to conclude from both
    usual = proposal.command == "compare" and proposal.weighting == Administrative.name
    words = ["survscore", proposal.command, *files, *([] if usual else ["-w", proposal.weighting])]
    for name, value in options.items():
        words += [f"--{name}"] if value is True else [f"--{name}", str(value)]
    return words


def checking_line(proposal: Proposal) -> list[str] | None:
    """Return the words of the command that reads all rows as proposed; None, where there is none."""
    from survscore.cli.formats import formats

    known = {name for parameter in formats.params for name in parameter.opts}
    there = [proposal.outcomes] if proposal.outcomes in proposal.columns else []
    there += [model.path for model in proposal.models if model.path in proposal.columns and not model.own]
    if proposal.command == "evaluate" or len(there) < len(proposal.columns):
        return None
    words = ["survscore", "formats", "--check", *map(_safe, there)]
    for name, value in proposal.options.items():
        if f"--{name}" in known:
            words += [f"--{name}"] if value is True else [f"--{name}", str(value)]
    return words


def _of_folders(proposal: Proposal, options: dict[str, Any]) -> tuple[list[str], dict[str, Any]]:
    """Return the sources of `evaluate`, and its options: outcomes are one, where they are in a table of their own."""
    if not proposal.models:
        return [_safe(proposal.outcomes)], options
    return [_safe(model.path) for model in proposal.models], {"outcomes": _safe(proposal.outcomes), **options}


def _safe(path: str) -> str:
    """Return a path that is not taken for an option."""
    return f"./{path}" if path.startswith("-") and path != "-" else path


def _source(path: str, own: dict[str, Any]) -> str:
    if not own:
        return _safe(path)
    said = ",".join(name if value is True else f"{name}={value}" for name, value in own.items())
    stem = Path(path).name.split(".")[0].replace("=", "-") or "model"
    return f"{stem}={path}[{said}]"


def quoted(words: list[str]) -> str:
    """Return a command as a shell takes it, without characters that would do something to a terminal."""
    return " ".join(shlex.quote(word) if word.isprintable() else _ansi_quoted(word) for word in words)


def _ansi_quoted(word: str) -> str:
    kept = "".join(
        char if char.isprintable() and char not in "\\'" else "".join(f"\\x{byte:02x}" for byte in _bytes(char))
        for char in word
    )
    return f"$'{kept}'"


def _bytes(char: str) -> bytes:
    return char.encode("utf-8", errors="surrogateescape")


def page(proposal: Proposal) -> list[str]:
    """Return what is printed, in lines: the columns, the command, what is in question, and what else there is."""
    lines = []
    for path, columns in proposal.columns.items():
        lines += [f"{shown(path, most=500)} ({proposal.looked_at[path]})", ""]
        rows = [("column", "values", "looks like", "since")]
        for column in columns[:MOST_ROWS]:
            looks = column.looks_like + ("?" if column.unsure else "")
            rows.append((shown(column.column, WIDEST), column.kind, looks or "-", shown(column.why, 100)))
        lines += _aligned(rows)
        if len(columns) > MOST_ROWS:
            lines.append(f"  and {len(columns) - MOST_ROWS} more columns")
        lines.append("")
    doubtful = f", with {'a question' if len(proposal.doubts) == 1 else f'{len(proposal.doubts)} questions'} (?)"
    lines += [f"Command{'' if proposal.sure else doubtful}:", "", f"  {quoted(command_line(proposal))}", ""]
    lines += [f"? {shown(doubt.about, WIDEST)}: {one_line(doubt.text)}" for doubt in proposal.doubts]
    if proposal.doubts:
        lines.append("")
    placeholders = [name for name in ("OUTCOMES", "PREDICTIONS") if name in command_line(proposal)]
    notes = [f"{name} stands for a file that you name." for name in placeholders]
    notes += [one_line(note) for note in proposal.notes]
    if proposal.held:
        notes += ["Read so, these rows hold", *(f"  {one_line(text)}" for text in proposal.held)]
    checking = checking_line(proposal)
    partly = any(not told.startswith("all ") for told in proposal.looked_at.values())
    if checking is not None and partly:
        notes.append(f"Not all rows were looked at; this checks them: {quoted(checking)}")
    return [*lines, *notes]


def _aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]) - 1)]
    return ["  " + "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]]).rstrip()
            for row in rows]  # fmt: skip


def as_data(proposal: Proposal) -> dict[str, Any]:
    """Return a proposal as plain data."""
    return {
        "command": command_line(proposal),
        "sure": proposal.sure,
        "questions": [{"about": doubt.about, "text": one_line(doubt.text)} for doubt in proposal.doubts],
        "notes": [one_line(note) for note in proposal.notes],
        "options": proposal.options,
        "files": {
            path: {
                "looked_at": proposal.looked_at[path],
                "columns": [
                    {"column": one.column, "values": one.kind, "looks_like": one.looks_like, "since": one.why,
                     "unsure": one.unsure}
                    for one in columns
                ],
            }
            for path, columns in proposal.columns.items()
        },
        "read": [one_line(text) for text in proposal.held],
    }  # fmt: skip


OF_SCORES = ("by-order", "groups", "cause")  # options that are not about the file of outcomes


def study_file(proposal: Proposal) -> str:
    """Return the study file that says the same as the proposed command."""
    from survscore.cli.sources import FLAGS, SETTINGS

    if proposal.command == "evaluate":
        raise InputError("study files are for score, compare, report and table, which read no folders")
    of_models = {name: name for name in (*FLAGS, *SETTINGS)} | {"unit": "predictions-unit"}
    options = dict(proposal.options)
    shared = {own: options.pop(name) for own, name in of_models.items() if name in options}
    outcomes: dict[str, Any] = {"file": proposal.outcomes} | {
        name: split_words(str(value)) if name in (*REASON_OPTIONS, "causes", "open-end") else value
        for name, value in options.items()
        if name not in OF_SCORES
    }
    usual = proposal.command == "compare" and proposal.weighting == Administrative.name
    score: dict[str, Any] = {} if usual else {"weighting": [proposal.weighting]}
    score |= {name: value for name, value in options.items() if name in OF_SCORES}
    tables: dict[str, Any] = {"outcomes": outcomes}
    if proposal.models:
        tables["models"] = _models(proposal, shared)
    else:
        score |= {of_models[own]: value for own, value in shared.items()}
    questions = [f"# ? {without_controls(doubt.about)}: {one_line(doubt.text)}\n" for doubt in proposal.doubts]
    return "".join(questions) + as_toml({**tables, **({"score": score} if score else {})})


def _models(proposal: Proposal, shared: dict[str, Any]) -> dict[str, Any]:
    """Return the table of models: those of a file with several keep their names, others are called like the file."""
    models: dict[str, Any] = {}
    for model in proposal.models:
        said = {"file": model.path, **shared, **model.own}
        stem = Path(model.path).name.split(".")[0] or "model"
        name = next(one for one in (stem, *(f"{stem}-{k}" for k in range(2, 10_000))) if one not in models)
        if model.n_models == 1:
            models[name] = said
        elif "file" in models:
            raise InputError("a study file takes one file that holds several models; name the others by hand")
        else:
            models = {**said, **models}
    return models

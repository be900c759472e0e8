"""The command line: parse, call, print. What is heavy is imported by the command that needs it."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, suppress
from typing import Any

import click

from survscore._validation import InputError
from survscore._version import __version__
from survscore.cli.checking import check
from survscore.cli.evaluating import evaluate
from survscore.cli.scoring import compare, formats, report, score, simulate
from survscore.cli.screen import one_line
from survscore.cli.studies import atlas, demo, kkbox, reproduce
from survscore.cli.tabling import backtest, table
from survscore.io.ending import end, ended_by_signals

COMMANDS = (
    score,
    compare,
    table,
    report,
    evaluate,
    backtest,
    check,
    formats,
    simulate,
    demo,
    reproduce,
    atlas,
    kkbox,
)


class InOrder(click.Group):
    """A group that lists its commands as they were added, not by name."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return their names."""
        return list(self.commands)

    def make_context(self, *arguments: Any, **extra: Any) -> click.Context:
        """Read the arguments; asked for help, print it."""
        with _closed_pipes():
            return super().make_context(*arguments, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        with _closed_pipes():
            return super().invoke(ctx)


class ClosedPipeError(Exception):
    """Nobody reads what is printed any more."""


@contextmanager
def _closed_pipes() -> Iterator[None]:
    """Tell a closed pipe from other errors before click and rich do, who would end as if checks had failed."""
    try:
        yield
    except (BrokenPipeError, SystemExit) as error:
        if isinstance(error, SystemExit) and not isinstance(error.__context__, BrokenPipeError):
            raise
        raise ClosedPipeError from None


@click.group(cls=InOrder, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="survscore")
def cli() -> None:
    """Score time-to-event predictions under administrative censoring.

    \b
    Getting started:
      survscore simulate play                              writes example files
      survscore compare play/outcomes.csv play/truth.csv play/leaking.csv     recommends a model
      survscore report play/outcomes.csv play/truth.csv play/leaking.csv -o report.html
      survscore formats                                    describes what files must look like

    "survscore COMMAND --help" is the manual of a command.
    """  # noqa: D301


for command in COMMANDS:
    cli.add_command(command)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; a user's mistake is one line on standard error and exit code 2."""
    for stream in (sys.stdout, sys.stderr):  # a terminal that knows no UTF-8 gets question marks, not an error
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    with ended_by_signals() as told:
        try:
            code = _exit_code(arguments)
        except BaseException:  # numba may raise something else for an interrupt
            if not told:
                raise
        if told:
            end(told[0])
    if code:
        sys.exit(code)


def _exit_code(arguments: list[str] | None) -> int:
    with ExitStack() as stack:
        if sys.stderr is None:  # closed: nobody is told anything, but the work is done
            stack.enter_context(redirect_stderr(stack.enter_context(open(os.devnull, "w", encoding="utf-8"))))
        if sys.stdout is None:  # a file opened next would take its place, and all that is printed
            return _told("standard output is closed; send it to /dev/null if it is of no use")
        try:
            code = _run(arguments)
            sys.stdout.flush()
        except (BrokenPipeError, ClosedPipeError):  # the reader has seen enough
            _give_up_output()
            return 128 + 13  # as of other programs, which SIGPIPE ends
        except OSError as error:
            code = _told(error)
            _give_up_output()
    return code


def _run(arguments: list[str] | None) -> int:
    """Run a command, and return the exit code; of what is wrong with reading and writing, OSError."""
    try:
        cli.main(args=arguments, prog_name="survscore", standalone_mode=False)
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else 0
    except (click.exceptions.Abort, KeyboardInterrupt):
        return _told("interrupted", 130)
    except click.exceptions.NoArgsIsHelpError as error:  # no command: the help is the answer
        click.echo(error.format_message())
        return 2
    except click.ClickException as error:
        return _told(error.format_message())
    except (InputError, ImportError, MemoryError) as error:
        return _told("there is not enough memory for that" if isinstance(error, MemoryError) else error)
    return 0


def _told(message: object, code: int = 2) -> int:
    """Say what is wrong in one line, and return the exit code."""
    with suppress(OSError):  # standard error may be a closed pipe as well
        click.echo(f"survscore: {one_line(message)}", err=True)
    return code


def _give_up_output() -> None:
    """Drop what nobody takes, which Python would try to write once more at its end."""
    try:
        sys.stdout.flush()
    except OSError:
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

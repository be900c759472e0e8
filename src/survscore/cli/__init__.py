"""The command line: parse, call, print. What is heavy is imported by the command that needs it."""

from __future__ import annotations

import io
import signal
import sys
import threading

import click

from survscore._validation import InputError
from survscore._version import __version__
from survscore.cli.checking import check
from survscore.cli.evaluating import evaluate
from survscore.cli.formats import completion, formats
from survscore.cli.scoring import compare, report, score, simulate
from survscore.cli.screen import one_line
from survscore.cli.studies import demo, kkbox, reproduce
from survscore.cli.tabling import table

COMMANDS = (score, compare, table, report, evaluate, check, formats, simulate, demo, reproduce, kkbox, completion)


class InOrder(click.Group):
    """A group that lists its commands as they were added, not by name."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return their names."""
        return list(self.commands)


@click.group(cls=InOrder, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="survscore")
def cli() -> None:
    """Score time-to-event predictions when the data end on a known date.

    \b
    To begin with:
      survscore simulate play                              writes files to play with
      survscore compare play/outcomes.csv play/truth.csv play/leaking.csv -w administrative -w ipcw
      survscore report play/outcomes.csv play/truth.csv play/leaking.csv -o report.html
      survscore formats                                    says what your own files must look like

    "survscore COMMAND --help" is the manual of a command.
    """  # noqa: D301


for command in COMMANDS:
    cli.add_command(command)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; a user's mistake is one line on standard error and exit code 2."""
    if threading.current_thread() is threading.main_thread():  # asked to end, clean up as after Ctrl-C
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    for stream in (sys.stdout, sys.stderr):  # a terminal that knows no UTF-8 gets question marks, not an error
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        cli.main(args=arguments, prog_name="survscore", standalone_mode=False)
    except (click.exceptions.Abort, KeyboardInterrupt):
        click.echo("survscore: interrupted", err=True)
        sys.exit(130)
    except SystemError as error:  # compiled code wraps what a signal raises in it
        if not isinstance(error.__cause__, (KeyboardInterrupt, SystemExit)):
            raise
        sys.exit(130 if isinstance(error.__cause__, KeyboardInterrupt) else 143)
    except click.exceptions.NoArgsIsHelpError as error:  # no command: the help is the answer
        click.echo(error.format_message())
        sys.exit(2)
    except click.ClickException as error:
        click.echo(f"survscore: {one_line(error.format_message())}", err=True)
        sys.exit(2)
    except MemoryError:
        click.echo("survscore: there is not enough memory for that", err=True)
        sys.exit(2)
    except (InputError, OSError, ImportError) as error:
        click.echo(f"survscore: {one_line(error)}", err=True)
        sys.exit(2)

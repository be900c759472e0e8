"""Help by topic: what most people need by default, everything by ``--help-all``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from survscore._validation import plural

MOST_SHOWN = 25
#: By topic, the options that ``--help`` shows of commands that have more than `MOST_SHOWN`, and those that only
#: ``--help-all`` does.
TOPICS: dict[str, tuple[str, str]] = {
    "Input": (
        "study id time event censoring-time cutoff start event-date cause predicts columns outcomes format "
        "state results",
        "causes end reason event-reasons competing-reasons censored-reasons last-seen entry entry-date weights "
        "weight-kind date-format origin open-end drop-late-starts percent interpolation extrapolation monotone "
        "transposed long time-column "
        "grid by-order allow-extra models manifest skip-bad-files checksums storage-option add",
    ),
    "Times": ("horizons range unit predictions-unit as-of", "predicted-on"),
    "Method": (
        "weighting metric reference by groups threshold",
        "level null correction dropout population dropout-strata strata reference-curves theta cap divide-by train "
        "censoring censoring-interpolation draws seed threads memory-limit jobs",
    ),
    "Output": (
        "out full json csv toml check history init help help-all",
        "parquet junit markdown record run-id state-out title individuals layout",
    ),
}
#: What most people do not need of commands with many options of their own.
RARE = {
    "check": "by groups range columns unit",
    "report": "as-of history",
    "evaluate": "start event-date",
}
MORE = "More"  # options that no topic names


def _long_name(parameter: click.Parameter) -> str:
    return max(parameter.opts, key=len).removeprefix("--")


class Command(click.Command):
    """A command whose help is grouped by topic."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        if self.n_options > MOST_SHOWN:
            everything = click.Option(["--help-all"], is_flag=True, is_eager=True, expose_value=False,
                                      callback=_show_all, help="Show all options and exit.")  # fmt: skip
            self.params.append(everything)

    @property
    def n_options(self) -> int:
        """How many options there are, beside that for help."""
        return sum(isinstance(one, click.Option) for one in self.params)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options of each topic; of few options, all in one list."""
        if self.n_options <= MOST_SHOWN:
            super().format_options(ctx, formatter)
            return
        everything = bool(ctx.meta.get(__name__))
        rare = RARE.get(self.name or "", "").split()
        options = {_long_name(one): one for one in self.get_params(ctx) if isinstance(one, click.Option)}
        left_out = dict(options)
        topics = [*TOPICS.items(), (MORE, ("", " ".join(options.keys() - _named())))]
        for topic, (usual, others) in topics:
            names = [name for name in options if name in f"{usual} {others}".split()]
            shown = [name for name in names if everything or (name in usual.split() and name not in rare)]
            records = [options[name].get_help_record(ctx) for name in shown]
            if records:
                with formatter.section(topic):
                    formatter.write_dl([record for record in records if record is not None])
            left_out = {name: one for name, one in left_out.items() if name not in shown}
        if left_out:
            formatter.write_paragraph()
            formatter.write_text(f"{plural(len(left_out), 'more option')}: {ctx.command_path} --help-all")


def _named() -> set[str]:
    return {name for names in TOPICS.values() for name in " ".join(names).split()}


def _show_all(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value:
        ctx.meta[__name__] = True
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()


def command(**settings: Any) -> Callable[[Callable[..., Any]], Command]:
    """Return the decorator that makes a command of a function."""
    return click.command(cls=Command, **settings)

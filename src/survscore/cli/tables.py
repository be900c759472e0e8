"""Results as tables in the terminal."""

from __future__ import annotations

from typing import Any


def print_demo(summary: Any, n: int) -> None:
    """Print which method each weighting prefers, and where that is wrong."""
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from survscore.inference import normal_quantile

    hazard, bce, z = "Logistic-Hazard", "BCE", normal_quantile(0.95)
    truth = dict(zip(*(summary.loc[summary.weighting == "uncensored", c] for c in ("loss", "prefers")), strict=True))
    console = Console()
    fooled = []
    for loss, title in (("brier", "Integrated Brier score"), ("log", "Integrated logarithmic loss")):
        heading = f"{title} of {n} simulated individuals, with 95 % intervals (lower is better)"
        table = Table(title=heading, title_justify="left", box=SIMPLE, pad_edge=False)
        table.add_column("weighting")
        for column in (hazard, bce, "difference"):
            table.add_column(column, justify="right", no_wrap=True)
        table.add_column("prefers")
        for row in summary[summary.loss == loss].to_dict("records"):
            verdict = row["prefers"] or "neither"
            if truth[loss] and verdict not in (truth[loss], "neither"):
                verdict += " [bold red]wrong[/]"
                fooled.append(row["weighting"])
            table.add_row(
                escape(row["weighting"]),
                *(f"{row[model]:.4f} ±{z * row[f'{model} se']:.4f}" for model in (hazard, bce)),
                f"{row['difference']:+.4f} ±{(row['upper'] - row['lower']) / 2:.4f}",
                verdict,
            )
        console.print(table)
    console.print(
        f"The uncensored score, which real data do not allow, prefers {truth['brier'] or 'neither'}. "
        + (f"Fooled: {escape('; '.join(dict.fromkeys(fooled)))}." if fooled else "No score was fooled.")
    )


def print_claims(name: str, claims: Any, replicates: int) -> None:
    """Print the claims about a figure, and whether they hold."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    losses = [loss for loss in dict.fromkeys(claims.loss) if loss] or [""]
    how = "holds" if replicates == 1 else f"held in, of {replicates} replicates"
    table = Table(title=f"What the paper says about {name}: {how}, margin and 95 % interval", title_justify="left")
    table.add_column("claim")
    for loss in losses:
        table.add_column({"brier": "Brier score", "log": "log loss"}.get(loss, ""))
    for claim, rows in claims.groupby("claim", sort=False):
        by_loss = {row["loss"]: _answer(row) for row in rows.to_dict("records")}
        table.add_row(escape(claim), *([by_loss[""]] if "" in by_loss else [by_loss[loss] for loss in losses]))
    Console().print(table)


def _answer(row: Any) -> str:
    from rich.markup import escape

    if not row["replicates"]:
        return f"[dim]not checked: needs {row['needs']}[/]"
    held = round(row["share"] * row["replicates"])
    style = "green" if row["holds"] else "yellow" if held else "bold red"
    answer = ("yes" if held else "no") if row["replicates"] == 1 else str(held)
    interval = f" [{row['lower']:+.3f}, {row['upper']:+.3f}]" if row["lower"] == row["lower"] else ""
    margin = escape(f"{row['margin']:+.3f}{interval}")
    return f"[{style}]{answer}[/] {margin}"


def print_scores(means: Any, by_time: Any, n: int, level: float) -> None:
    """Print each model's mean score with its interval, and its score at some of the times."""
    from survscore.reports.words import loss_name

    console, times = _console(), _some(by_time["time"].unique())
    wholes = {(row["loss"], row["weighting"], row["model"]): row for row in means.to_dict("records")}
    for loss, of_loss in by_time.groupby("loss", sort=False):
        console.print(f"[bold]{_capital(loss_name(loss))}[/] of {n:,} individuals, lower is better")
        for weighting, part in of_loss.groupby("weighting", sort=False):
            table = _table(str(weighting))
            table.add_column("model")
            if wholes:
                table.add_column(f"mean ({100 * level:g} %)", justify="right", no_wrap=True)
                table.add_column("over time", no_wrap=True)
            for time in times:
                table.add_column(f"at {_plain(time)}", justify="right", no_wrap=True)
            for model, rows in part.groupby("model", sort=False):
                cells = [_cell(str(model))]
                whole = wholes.get((loss, weighting, model))
                if whole is not None:
                    half = (whole["upper"] - whole["lower"]) / 2
                    cells += [f"{whole['score']:.4f} ±{half:.4f}", f"{_plain(whole['from'])} to {_plain(whole['to'])}"]
                scores = rows.set_index("time")["score"]
                table.add_row(*cells, *(_score(scores[time]) for time in times))
            console.print(table)


def print_comparison(tables: Any, sentences: Any, settings: Any, n: int) -> None:
    """Print scores, differences to the reference with p-values, and what weightings disagree about."""
    from survscore.reports import words

    console = _console()
    level, reference, span = settings["level"], settings["reference"], settings["range"]
    over = f"mean over {_plain(span[0])} to {_plain(span[1])}" if span else "at one time"
    contrasts = tables["verdicts"] if span else tables["contrasts"]
    found = {(row["loss"], row["weighting"], row["model"]): row for row in contrasts.to_dict("records")}
    scores = tables["means"] if span else tables["scores"]
    for loss, of_loss in scores.groupby("loss", sort=False):
        name = _capital(words.loss_name(loss))
        console.print(f"[bold]{name}[/] of {n:,} individuals, {over}, {100 * level:g} % intervals, lower is better")
        for weighting, part in of_loss.groupby("weighting", sort=False):
            table = _table(str(weighting))
            for heading in ("model", "score", f"difference to {reference}", "p", "verdict"):
                table.add_column(_cell(heading), justify="left" if heading in ("model", "verdict") else "right")
            for row in part.to_dict("records"):
                cells = [_cell(row["model"]), _score(row["score"])]
                contrast = found.get((loss, weighting, row["model"]))
                table.add_row(*cells, *(["", "", "reference"] if contrast is None else _contrast(contrast)))
            console.print(table)
        for sentence in sentences[loss]:
            console.print(f"[bold yellow]Careful.[/] {_cell(sentence)}\n")


def _contrast(row: Any) -> list[str]:
    from survscore.reports import words

    verdict = words.outcome(row)
    style = {"better": "green", "worse": "red"}.get(verdict, "dim")
    p = "<0.001" if row["p_value"] < 0.001 else f"{row['p_value']:.3f}"
    return [f"{row['difference']:+.4f} ±{(row['upper'] - row['lower']) / 2:.4f}", p, f"[{style}]{verdict}[/]"]


def _console() -> Any:
    from rich.console import Console

    return Console()


def _table(title: str) -> Any:
    from rich.box import SIMPLE
    from rich.table import Table

    return Table(title=_cell(title), title_justify="left", box=SIMPLE, pad_edge=False)


def _cell(text: str) -> str:
    from rich.markup import escape

    return escape(text)


def _some(times: Any, most: int = 4) -> list[float]:
    """Return some of the times, from early to the last."""
    if len(times) <= most:
        return [float(time) for time in times]
    return [float(times[round(k * (len(times) - 1) / most)]) for k in range(1, most + 1)]


def _score(value: float) -> str:
    return "-" if value != value else f"{value:.4f}"  # noqa: PLR0124 - NaN


def _plain(value: float) -> str:
    return f"{value:.4g}"


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]

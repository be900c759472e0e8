"""What a rule compares with: a model of the same run, or a run of the history."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from survscore._validation import shown
from survscore.checks.rules import FIRST, LAST, Rule, nearest
from survscore.checks.runs import Run


@dataclass(frozen=True, eq=False)
class Target:
    """What is compared with.

    Attributes
    ----------
    name : str
        Of the model; or what the rule calls the run.
    is_run : bool
        Whether it is a run.
    run : Run or None
        That run; None of a model, and where the history has no such run of the cause yet.
    """

    name: str
    is_run: bool = False
    run: Run | None = None

    @property
    def absent(self) -> bool:
        """Whether there is no earlier run of this cause to compare with."""
        return self.is_run and self.run is None

    @property
    def told(self) -> str:
        """What it is called in words."""
        if not self.is_run:
            return self.name
        if self.run is None:
            return f"the {self.name} run" if self.name in (LAST, FIRST) else f"run {self.name}"
        return f"run {self.run.id}"


def resolve_reference(rule: Rule, run: Run, earlier: Sequence[Run] | None) -> Target | None:
    """Return what a rule compares with; None if it compares with nothing.

    Parameters
    ----------
    rule : Rule
        Which names it.
    run : Run
        That is checked.
    earlier : sequence of Run, or None
        The history, oldest first; None, where there is no history at all. Only runs of the same cause of events are
        compared with.
    """
    wanted = rule.reference
    models = run.names("model")
    if wanted is None:
        if rule.value != "skill":
            return None
        if run.null is None or run.null not in models:
            raise rule.wrong("skill needs the null model, which the results do not hold, or a reference")
        return Target(run.null)
    is_model = wanted.kind != "run" and wanted.name in models
    comparable = [one for one in earlier or () if one.cause == run.cause]
    stored = _stored(wanted.name, comparable) if wanted.kind != "model" else []
    # a run of another cause has a name, too: it is a run that can't be compared with, and not a mistake in the rules
    named = wanted.name in (LAST, FIRST) or bool(_stored(wanted.name, earlier or ()))
    is_run = wanted.kind != "model" and named
    if is_model and is_run:
        raise rule.wrong(
            f"reference {shown(wanted.name)!r} is a model and a run; "
            f"say {{model = {shown(wanted.name)!r}}} or {{run = {shown(wanted.name)!r}}}"
        )
    if is_model:
        return Target(wanted.name)
    if rule.value == "skill" and is_run:
        raise rule.wrong("skill is against a model, not against a run of the history")
    if earlier is None and (is_run or wanted.kind == "run"):
        raise rule.wrong(f"reference {shown(wanted.name)!r} is a run, which needs a history: --history FILE")
    if is_run:
        return Target(wanted.name, is_run=True, run=stored[-1] if stored else None)
    kinds = {"model": models, "run": [one.id for one in earlier or ()]}
    known = kinds[wanted.kind] if wanted.kind else [*models, LAST, FIRST, *kinds["run"]]
    what = {"model": "no model of the results", "run": "no run of the history"}.get(
        wanted.kind or "", "neither a model of the results nor a run of the history"
    )
    raise rule.wrong(f"reference {shown(wanted.name)!r} is {what}; {nearest(wanted.name, known)}")


def _stored(name: str, earlier: Sequence[Run]) -> list[Run]:
    """Return the runs that a name may mean, the one to take last: by place, id, or the day or moment of their date."""
    if name in (LAST, FIRST):
        return list(earlier[-1:] if name == LAST else earlier[:1])
    of_id = [one for one in earlier if one.id == name]
    is_date = len(name) >= len("2025-01-31") and name[:4].isdigit()
    return of_id or [one for one in earlier if is_date and one.date.startswith(name.replace(" ", "T"))]

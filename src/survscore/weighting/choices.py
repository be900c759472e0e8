"""Which weightings some data allow, and which to trust."""

from __future__ import annotations

from dataclasses import dataclass

from survscore.outcomes import Outcomes


@dataclass(frozen=True)
class WeightingChoices:
    """Which weightings fit some data."""

    #: Those that are possible, the one to trust first.
    names: tuple[str, ...]
    #: Whether the only possible one can't be trusted if the data end on a known date.
    misleading: bool
    #: The same in words.
    sentence: str


def weightings_that_fit(outcomes: Outcomes) -> WeightingChoices:
    """Return which weightings these data allow, and which to trust."""
    if outcomes.event.all():
        return WeightingChoices(("uncensored",), False, "Nobody is censored, so 'uncensored' fits these data")
    if outcomes.censoring_time is None:
        return WeightingChoices(
            ("ipcw",),
            True,
            "Without censoring_time the choice is IPCW(); if the data end on a known date, give everybody's "
            "censoring_time (Outcomes.from_dates derives it) and use 'administrative'",
        )
    dropped_out = int(outcomes.dropped_out.sum())
    weighted = f" and weights for the {dropped_out} of {len(outcomes)} who dropped out" if dropped_out else ""
    return WeightingChoices(
        ("administrative", "ipcw"),
        False,
        f"All censoring times are known, so 'administrative' fits these data{weighted}; IPCW() is possible, "
        "but biased if the predictions can tell the censoring times",
    )

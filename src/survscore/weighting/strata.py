"""Strata: groups of individuals with a product-limit curve each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from survscore._validation import InputError, as_labels, check_length, shown


@dataclass(frozen=True, eq=False)
class Strata:
    """One label per individual."""

    labels: NDArray[Any]  #: Shape (n,).
    name: str  #: The argument by which they were given, for messages.

    @classmethod
    def of(cls, given: Any, name: str) -> Strata | None:
        """Take what a user gave: None for one stratum."""
        if given is None or isinstance(given, Strata):
            return given
        return cls(as_labels(given, name), name)

    def rows(self, rows: Any) -> Strata:
        """Return those of some individuals."""
        return Strata(self.labels[rows], self.name)

    def codes(self, n: int, training: Strata | None = None) -> tuple[NDArray[np.int32], int]:
        """Return labels as numbers from 0 on, and how many there are; in the order of `training`, if given."""
        check_length(self.name, self.labels.size, "y", n)
        try:
            known = np.unique(self.labels if training is None else training.labels)
            place = np.searchsorted(known, self.labels).clip(max=known.size - 1)
        except TypeError:  # numbers and text have no order
            raise InputError(f"{self.name} and training_strata must be labels of one kind") from None
        unknown = known[place] != self.labels
        if unknown.any():
            first = int(np.argmax(unknown))
            raise InputError(
                f"{self.name} must be strata of the training data: {int(unknown.sum())} of {n} are not, the first at "
                f"position {first} ({shown(self.labels[first])})"
            )
        return place.astype(np.int32), known.size

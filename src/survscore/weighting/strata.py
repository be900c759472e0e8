"""Strata: groups of individuals with a product-limit curve each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from survscore._utils import arrays
from survscore._validation import InputError, as_array, check_length, missing_labels, shown


@dataclass(frozen=True, eq=False)
class Strata:
    """One label per individual."""

    #: Shape (n,).
    labels: NDArray[Any]
    #: The argument by which they were given, for messages.
    name: str

    @classmethod
    def of(cls, given: Any, name: str) -> Strata | None:
        """Take what a user gave: None for one stratum."""
        if given is None or isinstance(given, Strata):
            return given
        labels = as_array(arrays.to_host(given) if arrays.is_tensor(given) else given, name)
        if labels.ndim != 1:
            raise InputError(f"{name} must be one-dimensional, one label per individual, not of shape {labels.shape}")
        missing = missing_labels(labels)
        if missing.any():
            raise InputError(
                f"{name} must be given for everybody: {missing.sum()} of {labels.size} are missing, "
                f"the first at position {int(np.argmax(missing))}"
            )
        kinds = {type(label) for label in labels.tolist()} if labels.dtype.kind == "O" else set()
        if len(kinds) > 1 and not all(issubclass(kind, (int, float, np.number)) for kind in kinds):
            raise InputError(f"{name} must be labels of one kind, such as numbers or text")
        return cls(labels, name)

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

"""Folds in which events are shared out evenly."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survscore._validation import check_length, check_whole
from survscore.outcomes import as_outcomes


@dataclass(frozen=True)
class EventKFold:
    """K folds with about the same share of events each, and with groups kept whole.

    A splitter as scikit-learn's, for its searches and for `cross_validate`. It reads the event out of `Outcomes` or a
    structured array, which ``StratifiedKFold`` can't. With groups it is ``StratifiedGroupKFold``: nobody is tested by
    a model that has seen others of the same group.

    Parameters
    ----------
    n_splits : int, default 5
        The number of folds, at least 2.
    shuffle : bool, default False
        Whether individuals are shuffled first.
    random_state : int, optional
        Of the shuffling.

    Examples
    --------
    >>> import numpy as np
    >>> import survscore as ss
    >>> y = ss.Outcomes(time=[1, 2, 3, 4, 5, 6], event=[1, 1, 1, 0, 0, 0])
    >>> for train, test in ss.EventKFold(3).split(np.zeros((6, 1)), y):
    ...     print(test, y[test].event)
    [0 3] [ True False]
    [1 4] [ True False]
    [2 5] [ True False]
    """

    n_splits: int = 5
    shuffle: bool = False
    random_state: int | None = None

    def __post_init__(self) -> None:
        check_whole("n_splits", self.n_splits, 2)

    def split(
        self, X: Any, y: Any, groups: ArrayLike | None = None
    ) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Yield the positions of those to train on, and of those to test.

        Parameters
        ----------
        X : any
            Not looked at.
        y : Outcomes or structured array
            What was observed.
        groups : array_like of shape (n,), optional
            Labels of individuals that belong together.

        Yields
        ------
        train, test : ndarray
        """
        from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

        event = as_outcomes(y).numpy().event
        if groups is not None:
            groups = np.asarray(groups)
            check_length("groups", len(groups), "y", event.size)
        kind = StratifiedKFold if groups is None else StratifiedGroupKFold
        splitter = kind(self.n_splits, shuffle=self.shuffle, random_state=self.random_state)
        yield from splitter.split(np.zeros((event.size, 1)), event, groups)

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of folds; the arguments are not looked at."""
        return self.n_splits

    def get_metadata_routing(self) -> Any:
        """Tell scikit-learn, where it routes metadata, that `split` wants the groups, if there are any."""
        from sklearn.utils.metadata_routing import MetadataRequest

        request = MetadataRequest(owner=self)
        request.split.add_request(param="groups", alias=True)
        return request

"""Calls that run side by side in processes, by joblib."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from survscore._validation import InputError


@contextmanager
def results_of(calls: Iterable[tuple[Any, ...]], n_jobs: int | None) -> Iterator[Iterator[Any]]:
    """Give the results of calls, each a function and its arguments, in their order as they come.

    What is under way is given up if the block is left early. Without joblib, calls are made one after the other.
    """
    try:
        from joblib import Parallel, delayed
    except ImportError:
        if n_jobs not in (None, 1):
            raise InputError("n_jobs needs joblib: pip install joblib") from None
        yield (work(*given) for work, *given in calls)
        return
    finished = Parallel(n_jobs=n_jobs, return_as="generator")(delayed(work)(*given) for work, *given in calls)
    try:
        yield finished
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # joblib counts what it cancels, which may hide why
            finished.close()

"""How the library computes: with NumPy, compiled code or torch, and on how many cores."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

Backend = Literal["auto", "numpy", "compiled", "torch"]
BACKENDS = ("auto", "numpy", "compiled", "torch")

#: Cells (individuals times evaluation times, of all models) from which "auto" takes the compiled loops. Below, NumPy
#: needs less time than it takes to load them.
LARGE_MATRIX = 1 << 23


@dataclass(init=False)  # defaults stay those of the class, and need no check
class Config:
    """Settings of the whole library, as ``survscore.config``.

    Attributes
    ----------
    backend : {"auto", "numpy", "compiled", "torch"}
        What computes: NumPy, code compiled by numba, or torch. ``"auto"`` (default) depends on the size of the input
        alone: NumPy for small data, compiled code where it saves more time than compiling takes. They agree to 1e-12.
        What has no compiled form, such as a loss of your own, runs in NumPy. ``"torch"`` scores and compares with torch
        what is in the processor's memory, and keeps tensors of curves as they are; curves on a CUDA device are scored
        there by torch whatever this says.
    threads : int or None
        How many cores to use at most; None takes all that the process may use. Results differ by rounding only.

    Examples
    --------
    >>> import survscore as ss
    >>> ss.config.backend
    'auto'
    >>> with ss.config.using(backend="numpy", threads=1):
    ...     ss.config.backend
    'numpy'
    """

    backend: Backend = "auto"
    threads: int | None = field(default=None)

    def __setattr__(self, name: str, value: object) -> None:
        from survscore._validation import check_choice, check_whole  # which in the end imports this module

        if name == "backend":
            check_choice("config.backend", value, BACKENDS)
        elif name == "threads":
            if value is not None:
                check_whole("config.threads", value, 1)
        else:
            raise AttributeError(f"config has no setting {name!r}; it has 'backend' and 'threads'")
        super().__setattr__(name, value)

    @contextmanager
    def using(self, *, backend: Backend | None = None, threads: int | None = None) -> Iterator[Config]:
        """Change settings for the length of a ``with`` block.

        Parameters
        ----------
        backend, threads
            As the attributes; None leaves a setting as it is.
        """
        before = (self.backend, self.threads)
        try:
            self.backend = self.backend if backend is None else backend
            self.threads = self.threads if threads is None else threads
            yield self
        finally:
            self.backend, self.threads = before

    def compiles(self, n_cells: int) -> bool:
        """Whether the compiled loops run for a matrix of this many cells."""
        by_size = self.backend in ("auto", "torch")  # what torch does not do goes by size
        return self.backend == "compiled" or (by_size and n_cells >= LARGE_MATRIX)

    def n_cores(self) -> int:
        """Return how many cores to use; the environment variable NUMBA_NUM_THREADS lowers it, too."""
        try:
            available = len(os.sched_getaffinity(0))
        except AttributeError:  # not on every platform
            available = os.cpu_count() or 1
        limit = os.environ.get("NUMBA_NUM_THREADS", "")
        limits = [self.threads or available, int(limit) if limit.isdigit() and int(limit) > 0 else available]
        return min(available, *limits)


config = Config()

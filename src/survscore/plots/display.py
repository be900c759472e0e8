"""What all displays have in common: where they were drawn, and how they are saved."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from survscore._validation import InputError, check_number
from survscore.io.files import written_whole
from survscore.plots.style import Canvas, root_figure

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Kinds of files, and what is left out of them so that the same figure is the same file.
FORMATS: dict[str, dict[str, Any]] = {".pdf": {"CreationDate": None}, ".png": {}, ".svg": {"Date": None}}
#: Letters stay letters, as journals ask and editors need; names of an SVG's parts do not change from run to run.
SAVING: Any = {"pdf.fonttype": 42, "svg.fonttype": "none", "svg.hashsalt": "survscore"}


def save_figure(figure: Figure, path: str | Path, *, dpi: float = 300) -> Path:
    """Write a figure to a file, whole or not at all; see `Display.save`."""
    import matplotlib as mpl

    target = Path(path)
    kind = target.suffix.lower()
    if kind not in FORMATS:
        raise InputError(f"path must end with {', '.join(FORMATS)}, not {target.name!r}")
    check_number("dpi", dpi, "above zero", lambda dots: dots > 0)
    with mpl.rc_context(SAVING), written_whole(target) as temporary:
        figure.savefig(temporary, format=kind[1:], dpi=dpi, metadata=FORMATS[kind])
    return target


@dataclass(eq=False, repr=False)
class Display(ABC):
    """Numbers that can be drawn.

    Attributes
    ----------
    ax_, figure_
        The matplotlib objects, once drawn.
    """

    ax_: Axes | None = field(default=None, kw_only=True)
    figure_: Figure | None = field(default=None, kw_only=True)

    @abstractmethod
    def plot(self) -> Self:
        """Draw; most displays do so into axes that they are given, or a new figure."""

    @abstractmethod
    def to_frame(self) -> pd.DataFrame:
        """Return the numbers that are drawn, as a table."""

    def save(self, path: str | Path, *, dpi: float = 300) -> Path:
        """Write the figure to a file, whole or not at all; one that is not drawn yet is drawn first.

        The file has the size at which the figure was drawn (``plot(width=3.4)``: one column of a journal), so that
        letters keep theirs. The same figure makes the same file.

        Parameters
        ----------
        path : str or Path
            Ends with ``.pdf``, ``.svg`` or ``.png``. The folder is made if it is not there.
        dpi : float, default 300
            Dots per inch, of a PNG.

        Returns
        -------
        Path
            Where it is.
        """
        figure: Any = self.plot().figure_ if self.figure_ is None else self.figure_
        return save_figure(figure, path, dpi=dpi)

    def _drawn(self, on: Canvas) -> Self:
        self.ax_ = on.ax
        self.figure_ = root_figure(on.ax)
        return self

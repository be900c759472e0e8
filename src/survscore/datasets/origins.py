"""Where data lie: in files of Python packages and of R packages that are installed, or where a user says."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from glob import glob
from importlib.util import find_spec
from pathlib import Path

import pandas as pd

from survscore._validation import InputError, shown

LIBRARY_VARIABLES = ("R_LIBS", "R_LIBS_USER", "R_LIBS_SITE")
# Where R is at home, with folders site-library and library in it; a star stands for a version
HOMES = (
    "/usr/local/lib/R",
    "/usr/lib/R",
    "/usr/lib64/R",
    "/usr/share/R",
    "/opt/R/*/lib/R",
    "/opt/homebrew/opt/r/lib/R",
    "/Library/Frameworks/R.framework/Resources",
    "C:/Program Files/R/R-*",
)
# What users install for themselves
PERSONAL = (
    "~/R/*-library/*",
    "~/AppData/Local/R/win-library/*",
    "~/Library/R/*/*/library",
    "/opt/homebrew/lib/R/*/site-library",
)
MOST_BYTES = 32 * 2**20  # of a text file; the largest known set has one
RDA_ENDINGS = (".rda", ".RData", ".rdata")
LAZY_FILE = "Rdata.rdb"  # all objects of a package whose data are loaded when they are asked for


@dataclass(frozen=True)
class TextFile:
    """A table that a Python package holds as text; the package is not imported to read its file.

    `distribution` is as it is installed, `file` the path within the package, `separator` as for ``pandas.read_csv``,
    and `texts` are columns that stay texts, though they look like numbers.
    """

    package: str
    distribution: str
    file: str
    separator: str = ","
    texts: tuple[str, ...] = ()

    @property
    def how_to_get(self) -> str:
        """How the package is installed."""
        return f"pip install {self.distribution}"

    def find(self) -> Path | None:
        """Return where the file is; None, where the package is not installed."""
        spec = find_spec(self.package)
        folders = () if spec is None else spec.submodule_search_locations or ()
        return next((file for file in (Path(folder) / self.file for folder in folders) if file.is_file()), None)

    def read(self, path: Path) -> pd.DataFrame:
        """Return the table of a file."""
        if not path.is_file():
            raise InputError(f"path: there is no file {path}; it must be {Path(self.file).name} of {self.distribution}")
        if path.stat().st_size > MOST_BYTES:
            raise InputError(f"{path} is larger than {MOST_BYTES >> 20} MB: no set that is known is")
        try:
            return pd.read_csv(path, sep=self.separator, dtype=dict.fromkeys(self.texts, str), compression=None)
        except OSError as error:
            raise InputError(f"{path} can't be read: {error.strerror}") from None
        except (ValueError, OverflowError) as error:  # pandas' own errors are such, and those of bytes that are no text
            raise InputError(f"{path} can't be read as a table: {first_line(error)}") from None


@dataclass(frozen=True)
class RFrame:
    """A data frame that an R package holds; R is not run.

    `file` is the name of the ``.rda`` file that holds it in the package's source, if it is another than its own.
    """

    package: str
    name: str
    file: str | None = None

    @property
    def how_to_get(self) -> str:
        """How the package is installed."""
        return (
            f"install.packages({self.package!r}) in R, or apt-get install r-cran-{self.package.lower()}, "
            "or path= a copy of the package"
        ).replace("'", '"')

    def find(self) -> Path | None:
        """Return where it is; None, where no R library that is known has the package."""
        folders = (library / self.package / "data" for library in r_libraries())
        return next((file for folder in folders if (file := self._within(folder)) is not None), None)

    def read(self, path: Path) -> pd.DataFrame:
        """Return the data frame out of a file, or out of a folder: a library, a package, or its data."""
        if path.is_dir():
            folders = (path, path / "data", path / self.package / "data")
            file = next((found for folder in folders if (found := self._within(folder)) is not None), None)
            if file is None:
                raise InputError(f"path: {path} is no R library, package or folder of data with {self.name} in it")
        else:
            file = path
        if not file.is_file():
            raise InputError(f"path: there is no file or folder {file}")
        if file.suffix not in (*RDA_ENDINGS, ".rdb"):
            raise InputError(f"path: {file} must end with .rda, .RData or .rdb, or be a folder with an R package")
        try:
            from survscore.datasets.r_files import read_frame
        except ImportError:
            raise ImportError("data of R packages need rdata: pip install 'survscore[datasets]'") from None
        return read_frame(file, self.name)

    def _within(self, folder: Path) -> Path | None:
        """Return the file of a package's folder of data that has the object; None, if there is none."""
        stems = dict.fromkeys((self.name, self.file or self.name))
        names = (*(f"{stem}{ending}" for stem in stems for ending in RDA_ENDINGS), LAZY_FILE)
        return next((folder / name for name in names if os.path.isfile(folder / name)), None)


def first_line(error: Exception) -> str:
    """Return what an error says, as part of a message of one line."""
    line = str(error).partition("\n")[0].removesuffix(" You might want to try:")  # what pandas then lists
    return shown(line, 200) or type(error).__name__


def r_libraries() -> Iterator[Path]:
    """Yield folders in which R packages may be installed: those that R's own variables name, and the usual ones."""
    for variable in LIBRARY_VARIABLES:
        # R itself fills in what a percent sign stands for, such as its version; those folders are among the usual ones
        yield from (Path(name) for name in os.environ.get(variable, "").split(os.pathsep) if name and "%" not in name)
    for pattern in PERSONAL:
        yield from map(Path, _newest_first(pattern))
    homes = [os.environ.get("R_HOME", ""), str(Path(sys.prefix) / "lib" / "R")]  # the latter is that of conda
    for pattern in HOMES:
        homes += _newest_first(pattern)
    yield from (Path(home) / library for home in homes if home for library in ("site-library", "library"))


def _newest_first(pattern: str) -> list[str]:
    return sorted(glob(os.path.expanduser(pattern)), reverse=True)

"""Where data lie: in files of Python packages and of R packages that are installed, or where a user says."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from survscore._validation import InputError
from survscore.datasets.r_serialized import as_frame, read_lazy, read_rda

if TYPE_CHECKING:
    import pandas as pd

LIBRARY_VARIABLES = ("R_LIBS", "R_LIBS_USER", "R_LIBS_SITE")
LIBRARIES = (
    "/usr/local/lib/R/site-library",
    "/usr/lib/R/site-library",
    "/usr/lib/R/library",
    "/usr/lib64/R/library",
    "/usr/share/R/library",
    "/usr/local/lib/R/library",
    "/Library/Frameworks/R.framework/Resources/library",
)
LIBRARY_PATTERNS = (  # a folder, and what may be in it
    ("~", "R/*-library/*"),
    ("~", "Library/R/*/*/library"),
    ("/opt/R", "*/lib/R/library"),
    ("/opt/homebrew/lib/R", "*/site-library"),
    ("/opt/homebrew/opt/r/lib/R", "library"),
    ("%LOCALAPPDATA%", "R/win-library/*"),
    ("%PROGRAMFILES%", "R/R-*/library"),
)
RDA_ENDINGS = (".rda", ".RData", ".rdata")
LAZY_FILE = "Rdata.rdb"  # all objects of a package whose data are loaded when they are asked for
MOST_BYTES = 64 * 2**20


@dataclass(frozen=True)
class TextFile:
    """A table that a Python package holds as text.

    Attributes
    ----------
    package : str
        As it is imported; it is not imported to read its file.
    distribution : str
        As it is installed.
    file : str
        Its path within the package.
    separator : str
        Between values, as for ``pandas.read_csv``.
    texts : tuple of str
        Columns that stay texts, though they look like numbers.
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
        import pandas as pd

        if not path.is_file():
            raise InputError(f"path: {path} is no file; it must be {Path(self.file).name} of {self.distribution}")
        try:
            if path.stat().st_size > MOST_BYTES:
                raise InputError(f"path: {path} is larger than {MOST_BYTES >> 20} MB: no set that is known is")
            return pd.read_csv(path, sep=self.separator, dtype=dict.fromkeys(self.texts, str))
        except OSError as error:
            raise InputError(f"path: {path} can't be read: {error.strerror}") from None
        except (ValueError, OverflowError) as error:  # pandas' own errors of parsing, and bytes that are no text
            first = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise InputError(f"path: {path} can't be read as a table: {first}") from None


@dataclass(frozen=True)
class RFrame:
    """A data frame that an R package holds. R is not run.

    Attributes
    ----------
    package : str
        Such as ``"MASS"``.
    name : str
        Of the object.
    file : str, optional
        The name of the ``.rda`` file that holds it in the package's source, if it is another.
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
        file: Path | None = path
        if path.is_dir():
            folders = (path, path / "data", path / self.package / "data")
            file = next((found for folder in folders if (found := self._within(folder)) is not None), None)
            if file is None:
                raise InputError(f"path: {path} holds no R package with {self.name} of {self.package}")
        elif not path.is_file():
            raise InputError(f"path: there is no {path}")
        return as_frame(self._object(file), f"{self.name} in {file}")

    def _within(self, folder: Path) -> Path | None:
        """Return the file of a package's folder of data that has the object; None, if there is none."""
        stems = dict.fromkeys((self.name, self.file or self.name))
        files = (folder / f"{stem}{ending}" for stem in stems for ending in RDA_ENDINGS)
        lazy = folder / LAZY_FILE
        return next((file for file in (*files, lazy) if _is_file(file)), None)

    def _object(self, file: Any) -> Any:
        if file.suffix in RDA_ENDINGS:
            found = dict(read_rda(file)).get(self.name)
        elif file.suffix == ".rdb":
            found = read_lazy(file, self.name)
        else:
            endings = ", ".join((*RDA_ENDINGS[:2], ".rdb"))
            raise InputError(f"path: {file} must end with {endings}, or be a folder with an R package")
        if found is None:
            raise InputError(f"{file} holds no {self.name}")
        return found


def r_libraries() -> Iterator[Path]:
    """Yield the folders in which R packages are usually installed, and those that R's own variables name."""
    for variable in LIBRARY_VARIABLES:
        for folder in os.environ.get(variable, "").split(os.pathsep):
            if folder and "%" not in folder:  # R fills these in, which differ by its version; they are looked for below
                yield Path(folder).expanduser()
    homes = [os.environ["R_HOME"]] if os.environ.get("R_HOME") else []
    homes.append(str(Path(sys.prefix) / "lib" / "R"))  # of conda
    for home in homes:
        yield from (Path(home) / "site-library", Path(home) / "library")
    yield from map(Path, LIBRARIES)
    for folder, pattern in LIBRARY_PATTERNS:
        base = Path(os.path.expandvars(os.path.expanduser(folder)) if "%" not in folder else _variable(folder))
        if _is_folder(base):
            yield from sorted(base.glob(pattern), reverse=True)


def _variable(written: str) -> str:
    """Return what a variable of Windows holds; a folder that is nowhere, where there is none."""
    return os.environ.get(written.strip("%")) or "/nowhere"


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a folder that may not be looked into
        return False


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        return False

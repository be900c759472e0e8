"""Which versions of other packages a study was run with."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version


def versions_of(packages: Iterable[str]) -> dict[str, str]:
    """Return the version of each package, or that it is not installed."""
    found = {}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found

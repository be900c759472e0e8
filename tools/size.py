"""How large the package is: lines, lines of code and files by folder of src/survscore.

Lines are physical lines of .py files; lines of code are those without docstrings, comments and blank lines.
"""

from __future__ import annotations

import argparse
import ast
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "src" / "survscore"
#: Folders around the computing half: files in, pages out, models and studies.
AROUND = ("scale", "io", "cli", "reports", "plots", "models", "adapters", "datasets", "checks", "paper")
ROOT = "(root)"


@dataclass(frozen=True)
class Size:
    """Lines and files of some part."""

    lines: int = 0
    code: int = 0
    files: int = 0

    def __add__(self, other: Size) -> Size:
        return Size(self.lines + other.lines, self.code + other.code, self.files + other.files)

    @classmethod
    def of(cls, source: str) -> Size:
        """Measure one file."""
        lines, prose = source.splitlines(), set[int]()
        for node in ast.walk(ast.parse(source)):
            documented = isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
            if documented and ast.get_docstring(node, clean=False) is not None:
                prose |= set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
        code = [line for row, line in enumerate(lines, 1) if row not in prose and line.strip()]
        return cls(len(lines), sum(not line.lstrip().startswith("#") for line in code), 1)


def sizes(package: Path = PACKAGE) -> dict[str, Size]:
    """Return the size of each folder of the package, and of the modules at its root."""
    found: dict[str, Size] = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package).parts
        folder = parts[0] if len(parts) > 1 else ROOT
        found[folder] = found.get(folder, Size()) + Size.of(path.read_text(encoding="utf-8"))
    return found


def total(some: Iterable[Size]) -> Size:
    """Return the size of several parts together."""
    return sum(some, Size())


def rows(found: dict[str, Size]) -> list[tuple[str, Size]]:
    """Return the table: the computing half and its total, the rest, and the whole."""
    computing = {folder: size for folder, size in found.items() if folder not in AROUND}
    around = {folder: size for folder, size in found.items() if folder in AROUND}
    return [
        *computing.items(),
        ("computing half", total(computing.values())),
        *around.items(),
        ("total", total(found.values())),
    ]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--markdown", action="store_true", help="print a Markdown table")
    table = rows(sizes())
    if parser.parse_args().markdown:
        print("| folder | lines | code | files |\n| --- | ---: | ---: | ---: |")
        for name, size in table:
            mark = "**" if name in ("computing half", "total") else ""
            cells = (name, size.lines, size.code, size.files)
            print("|", " | ".join(f"{mark}{cell}{mark}" for cell in cells), "|")
        return
    wide = max(len(name) for name, _ in table)
    print(f"{'':{wide}}  {'lines':>6}  {'code':>6}  files")
    for name, size in table:
        print(f"{name:{wide}}  {size.lines:6}  {size.code:6}  {size.files:5}")


if __name__ == "__main__":
    main()

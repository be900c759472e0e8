"""Print the lowest versions that pyproject.toml allows, as constraints for pip.

``python tools/lowest.py models report`` prints those of the core and of the named extras, one ``name==version`` a line.
Only what the project asks for itself is listed; pip chooses the rest. ``make lowest`` installs them and runs tests.
"""

import re
import sys
import tomllib
from pathlib import Path

PYPROJECT = Path(__file__).parent.parent / "pyproject.toml"
REQUIREMENT = re.compile(r"(?P<name>[A-Za-z0-9._-]+)(\[(?P<extras>[^]]*)\])?(?P<specifiers>[^;]*)(;.*)?")


def lowest(project, extras):
    """Return {name: lowest version} of the core and of extras; where two ask for the same, the higher one."""
    optional = project["optional-dependencies"]
    unknown = [extra for extra in extras if extra not in optional]
    if unknown:
        raise SystemExit(f"lowest.py: there is no extra {unknown[0]!r}; there are {', '.join(optional)}")
    waiting = [*project["dependencies"], *(requirement for extra in extras for requirement in optional[extra])]
    versions = {}
    while waiting:
        requirement = waiting.pop(0)
        parts = REQUIREMENT.fullmatch(requirement)
        if parts["name"] == project["name"]:
            waiting += [inner for extra in parts["extras"].split(",") for inner in optional[extra.strip()]]
            continue
        minimum = re.search(r">=\s*([0-9][0-9.]*)", parts["specifiers"])
        if minimum is None:
            raise SystemExit(f"lowest.py: {requirement!r} has no lowest version; write {parts['name']}>=...")
        versions[parts["name"]] = max(versions.get(parts["name"], ""), minimum[1], key=_numbers)
    return versions


def _numbers(version):
    return tuple(int(number) for number in version.split(".") if number)


if __name__ == "__main__":
    project = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]
    for name, version in sorted(lowest(project, sys.argv[1:]).items()):
        print(f"{name}=={version}")

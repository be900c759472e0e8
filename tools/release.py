"""Check that a tag, the version, the changelog and the citation tell of the same release.

``python tools/release.py v1.2.3`` ends with 1, and says why, if they do not.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def problems(tag, root=ROOT):
    """Return what is wrong with a release of this tag, in lines."""
    version = _only(r'^__version__ = "(.+)"$', root / "src" / "survscore" / "_version.py")
    cited = _only(r"^version: (.+)$", root / "CITATION.cff")
    cited_date = _only(r"^date-released: (.+)$", root / "CITATION.cff")
    newest, date = re.search(
        r"^## (\S+)(?: \((.+)\))?$", (root / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.MULTILINE
    ).groups()
    claims = [
        (tag == f"v{version}", f"the tag is {tag}, and the version {version}: tag v{version}"),
        (newest == version, f"the changelog begins with {newest}, not with {version}"),
        (cited == version, f"CITATION.cff names version {cited}, not {version}"),
        (cited_date == date, f"CITATION.cff names the date {cited_date}, and the changelog {date}"),
    ]
    return [problem for holds, problem in claims if not holds]


def _only(pattern, path):
    (found,) = re.findall(pattern, path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return found


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("release.py: give the tag, as in: python tools/release.py v1.2.3")
    if wrong := problems(sys.argv[1]):
        raise SystemExit("\n".join(f"release.py: {problem}" for problem in wrong))

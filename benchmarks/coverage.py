"""How often the intervals that the library prints hold the truth: ``python benchmarks/coverage.py``.

The work is done by ``interval_coverage.py``. numba looks for a package of the name that this script has, and must not
find it in its place.
"""

from __future__ import annotations

if __name__ not in {"__main__", "__mp_main__"}:
    raise ImportError("this is a script, not the package coverage")

if __name__ == "__main__":
    from interval_coverage import main

    main()

"""What can only be measured in a fresh process; run by ``scores.py``, prints one line of JSON.

``fresh.py memory NAME ROWS``: bytes that a call needs beyond its inputs.
``fresh.py first ROWS COLUMNS``: seconds of the first call, from raw arrays.
"""

from __future__ import annotations

import json
import sys
import time

from data import simulate
from measure import extra_memory
from ours import OURS, TWO_RAW

WARM_UP_ROWS = 2_000


def memory(name: str, n: int) -> int:
    """Return the extra memory of a call, when all that it loads and compiles is there already."""
    from peers import PEERS
    from survscore import config

    prepare = OURS[name] if name in OURS else PEERS[name].prepare
    data = simulate(n)
    with config.using(backend="compiled"):  # the warm-up is small, but must go the way of the large
        prepare(data.head(WARM_UP_ROWS))()
    return extra_memory(prepare(data))


def first(n: int, n_times: int) -> float:
    """Return the time of the first call in this process."""
    call = OURS[TWO_RAW](simulate(n, n_times))
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["memory", name, rows]:
            print(json.dumps(memory(name, int(rows))))
        case ["first", rows, columns]:
            print(json.dumps(first(int(rows), int(columns))))
        case _:
            sys.exit(__doc__)

"""What holds before anything is imported, and what is collected."""

import os

if "PYTEST_XDIST_WORKER" in os.environ:
    # each worker has a core; networks that train on all of them at once would spend most of it waiting for each other
    os.environ.setdefault("OMP_NUM_THREADS", "1")

collect_ignore = ["tests/reference"]

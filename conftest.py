"""What holds before anything is imported, and what is collected.

No scripts that need peers, and modules that need Triton only where it is; they have no examples.
"""

import os
from importlib.util import find_spec

if "PYTEST_XDIST_WORKER" in os.environ:
    # each worker has a core; networks that train on all of them at once would spend most of it waiting for each other
    os.environ.setdefault("OMP_NUM_THREADS", "1")

NEED_TRITON = [
    "src/survscore/_tensor_kernels.py",
    "src/survscore/engine/_triton.py",
    "src/survscore/engine/_triton_exits.py",
    "src/survscore/engine/_triton_means.py",
    "src/survscore/engine/_triton_moments.py",
    "src/survscore/engine/_triton_squares.py",
    "src/survscore/engine/tensor_exits.py",
    "src/survscore/engine/tensor_identity.py",
    "src/survscore/engine/tensor_kernels.py",
    "src/survscore/engine/tensor_means.py",
]

collect_ignore = ["tests/reference", *([] if find_spec("triton") else NEED_TRITON)]

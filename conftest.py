"""What is collected: no scripts that need peers; modules that need Triton only where it is, they have no examples."""

from importlib.util import find_spec

NEED_TRITON = [
    "src/survscore/_tensor_kernels.py",
    "src/survscore/engine/_triton.py",
    "src/survscore/engine/_triton_exits.py",
    "src/survscore/engine/_triton_moments.py",
    "src/survscore/engine/tensor_exits.py",
    "src/survscore/engine/tensor_identity.py",
    "src/survscore/engine/tensor_kernels.py",
]

collect_ignore = ["tests/reference", *([] if find_spec("triton") else NEED_TRITON)]

"""What is collected: modules that need Triton only where it is installed; they have no examples to run."""

from importlib.util import find_spec

collect_ignore = (
    []
    if find_spec("triton")
    else [
        "src/survscore/_tensor_kernels.py",
        "src/survscore/engine/_triton.py",
        "src/survscore/engine/_triton_exits.py",
        "src/survscore/engine/_triton_moments.py",
        "src/survscore/engine/tensor_exits.py",
        "src/survscore/engine/tensor_identity.py",
        "src/survscore/engine/tensor_kernels.py",
    ]
)

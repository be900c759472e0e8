"""KKBox's churn data: from raw transactions to survival data, and raw files of the same form with a known truth."""

from survscore.datasets.kkbox.prepare import Summary, prepare
from survscore.datasets.kkbox.prepared import CATEGORICAL, NUMERIC, Description, describe, outcomes_of, read
from survscore.datasets.kkbox.synthesize import synthesize, true_survival

__all__ = [
    "CATEGORICAL",
    "NUMERIC",
    "Description",
    "Summary",
    "describe",
    "outcomes_of",
    "prepare",
    "read",
    "synthesize",
    "true_survival",
]

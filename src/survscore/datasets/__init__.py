"""Data sets: real ones out of other packages, and KKBox from raw files to outcomes and covariates."""

from survscore.datasets.loading import Dataset, available, describe, load, names

__all__ = ["Dataset", "available", "describe", "load", "names"]

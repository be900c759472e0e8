"""Data sets: from raw files to outcomes and covariates."""

"""Whether IPCW can be trusted on some data, and whether models know everybody's C*.

cliff, two_weightings, covariates, weights (evidence, each with its uncertainty) -> answer (the rule) -> diagnosis.
"""

from survscore.diagnostics.diagnosis import Diagnosis, diagnose

__all__ = ["Diagnosis", "diagnose"]

"""Whether IPCW can be trusted on some data, and whether models know everybody's C*.

cliff, two_weightings, covariates, weights (evidence, each with its uncertainty) -> answer (the rule) -> diagnosis
-> leaks (the same rule for those who did not ask).
"""

from survscore.analysis.diagnostics.diagnosis import Diagnosis, diagnose
from survscore.analysis.diagnostics.leaks import leaking_models

__all__ = ["Diagnosis", "diagnose", "leaking_models"]

r"""Rubin's rules: one estimate of those from several imputed data sets.

With M estimates :math:`Q_m` and their variances :math:`U_m`, the estimate is their mean, and its variance
:math:`T = W + (1 + 1/M) B` has a part within, the mean of the :math:`U_m`, and a part between, the sample variance of
the :math:`Q_m`. Degrees of freedom are those of Barnard and Rubin (1999), which never exceed those of complete data.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]


class Pooled(NamedTuple):
    """Estimates over imputations."""

    estimate: Values
    se: Values
    #: Of freedom.
    degrees: Values
    #: The fraction of missing information: how much of the precision was lost with the values that are missing.
    missing_information: Values


def rubin(estimates: Values, errors: Values, complete_degrees: Values | float = np.inf) -> Pooled:
    """Pool estimates, (imputations, quantities), with their standard errors; NaN where any is."""
    m = len(estimates)
    within, between = np.mean(np.square(errors), axis=0), np.var(estimates, axis=0, ddof=1)
    added = (1.0 + 1.0 / m) * between
    total = within + added
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.where(total > 0, added / total, 0.0)
        old = np.where(share > 0, (m - 1) / np.square(share), np.inf)
        complete = np.broadcast_to(np.asarray(complete_degrees, dtype=np.float64), share.shape)
        known = np.where(np.isfinite(complete), (complete + 1) / (complete + 3) * complete * (1.0 - share), np.inf)
        degrees = np.where(np.isinf(old), known, np.where(np.isinf(known), old, old * known / (old + known)))
        ratio = added / within
        missing = np.where(within > 0, (ratio + 2.0 / (degrees + 3.0)) / (ratio + 1.0), 1.0)
        missing = np.where(added > 0, missing, 0.0)
    absent = np.isnan(total)
    return Pooled(
        np.mean(estimates, axis=0), np.sqrt(total), np.where(absent, np.nan, degrees), np.where(absent, np.nan, missing)
    )

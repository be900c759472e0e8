"""Many questions at once: p-values that allow for how many were asked."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survscore._validation import check_choice

Correction = Literal["holm", "benjamini-hochberg", "none"]
CORRECTIONS: tuple[Correction, ...] = ("holm", "benjamini-hochberg", "none")


def adjusted(p_values: ArrayLike, correction: Correction = "holm") -> NDArray[np.float64]:
    r"""Return p-values adjusted for the number of questions; the first axis is that of the questions.

    With p-values in rising order, :math:`p_{(1)} \le \dots \le p_{(m)}`:

    - Holm, which bounds the probability of any false alarm: :math:`\tilde p_{(i)} = \max_{j \le i} \min(1, (m - j + 1)
      p_{(j)})`;
    - Benjamini and Hochberg, which bounds the expected share of false alarms among all alarms:
      :math:`\tilde p_{(i)} = \min_{j \ge i} \min(1, m p_{(j)} / j)`.

    Parameters
    ----------
    p_values : array_like
        NaN where there is none; such questions are not counted.
    correction : {"holm", "benjamini-hochberg", "none"}
        How to adjust. Holm's holds however the questions depend on each other.

    Examples
    --------
    >>> from survscore.inference.multiplicity import adjusted
    >>> adjusted([0.01, 0.04, 0.03]).round(4)
    array([0.03, 0.06, 0.06])
    >>> adjusted([0.01, 0.04, 0.03], "benjamini-hochberg").round(4)
    array([0.03, 0.04, 0.04])
    """
    check_choice("correction", correction, CORRECTIONS)
    given = np.asarray(p_values, dtype=np.float64)
    if correction == "none" or given.shape[0] == 0:
        return given.copy()
    order = np.argsort(given, axis=0, kind="stable")  # NaN last
    rising = np.take_along_axis(given, order, axis=0)
    asked = np.sum(~np.isnan(given), axis=0)
    place = np.arange(given.shape[0]).reshape(-1, *[1] * (given.ndim - 1))
    if correction == "holm":
        monotone = np.fmax.accumulate(np.maximum(asked - place, 1) * rising, axis=0)
    else:
        monotone = np.fmin.accumulate((asked / (place + 1) * rising)[::-1], axis=0)[::-1]
    result = np.empty_like(given)
    np.put_along_axis(result, order, np.minimum(monotone, 1.0), axis=0)
    return np.where(np.isnan(given), np.nan, result)

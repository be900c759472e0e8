"""Censoring distributions: product-limit estimates, and whatever else gives P(not censored by t)."""

from survscore.censoring.distributions import (
    CensoringCurves,
    CensoringDistribution,
    CensoringFunction,
    KaplanMeierCensoring,
    KnownCensoring,
)

__all__ = ["CensoringCurves", "CensoringDistribution", "CensoringFunction", "KaplanMeierCensoring", "KnownCensoring"]

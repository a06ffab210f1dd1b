"""A numeric check of every claim, one file for each part of the theory, as in theory/claims.

A check gets the same number without the formula: by enumeration, simulation, quadrature or a spectral radius.
"""

from theory.checking import Check
from theory.checks import coherence, delay, laws, metrics, models, surrogate

CHECKS: dict[str, Check] = (
    laws.CHECKS | surrogate.CHECKS | delay.CHECKS | coherence.CHECKS | metrics.CHECKS | models.CHECKS
)
"""Claim id -> check."""

"""Claims on metrics."""

from theory.claims.record import Claim

METRICS: tuple[Claim, ...] = ()

"""Claims on surrogate."""

from theory.claims.record import Claim

SURROGATE: tuple[Claim, ...] = ()

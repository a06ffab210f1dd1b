"""Claims on delay."""

from theory.claims.record import Claim

DELAY: tuple[Claim, ...] = ()

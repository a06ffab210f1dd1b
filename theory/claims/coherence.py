"""Claims on coherence."""

from theory.claims.record import Claim

COHERENCE: tuple[Claim, ...] = ()

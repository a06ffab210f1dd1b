"""Claims on models."""

from theory.claims.record import Claim

MODELS: tuple[Claim, ...] = ()

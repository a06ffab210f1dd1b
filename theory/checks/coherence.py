"""Checks of the claims on coherence."""

from theory.checking import Check

CHECKS: dict[str, Check] = {}

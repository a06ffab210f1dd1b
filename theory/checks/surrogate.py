"""Checks of the claims on surrogate."""

from theory.checking import Check

CHECKS: dict[str, Check] = {}

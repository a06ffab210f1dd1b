"""Checks of the claims on metrics."""

from theory.checking import Check

CHECKS: dict[str, Check] = {}

"""Checks of the claims on laws."""

from theory.checking import Check

CHECKS: dict[str, Check] = {}

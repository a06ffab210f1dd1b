"""Checks of the claims on delay."""

from theory.checking import Check

CHECKS: dict[str, Check] = {}

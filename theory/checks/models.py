"""Checks of the claims on models."""

from theory.checking import Check

CHECKS: dict[str, Check] = {}

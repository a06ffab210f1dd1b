"""Drift models as symbolic objects: flow inside a cycle, map at the sync, exits."""

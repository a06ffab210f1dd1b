"""Experiment files (TOML) that ship with the project; every one is loaded by a test."""

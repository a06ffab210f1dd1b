"""Exact mathematics: the symbols, the claims, every formula with its source, and a check of every claim.

symbols     the symbol table: word, letter, LaTeX, unit, assumption, meaning
formula     one formula: left side, expression, argument order, claim
claims      the claims, each with its assumptions, source and status; checks: how a machine holds each
surrogate   the behaviour-dependent GRPO surrogate on enumerated policies, its bias and its curvature
bias        the bias bound, a sawtooth that is zero at every sync
delay       exact linear stability with stale gradients
models      drift models as symbolic objects; drift, persistent, thresholds: the formulas of the mean-field model
coherence   drift inside a cycle; growth: the same with momentum
metrics     drift metrics of a log-ratio; conversions: from one to the others

Names only: importing the package loads nothing, and sympy is loaded by the modules that hold formulas.
"""

"""Exact mathematics: the symbols, the claims and every formula with its source.

symbols     the symbol table: word, letter, LaTeX, unit, assumption, meaning
claims      the claims C1 to C9, each with its assumptions, source and status
formula     one formula: left side, expression, argument order, claim
bias        the staleness-induced bias, its O(S*eta) bound and its reset at the sync
drift       the memory map from sync to sync, its boundary, its exit budget
thresholds  the two-constraint rules and the smooth form that joins them
numeric     formula -> NumPy callable

Names only: importing the package loads nothing, and sympy is loaded by the modules that hold formulas.
"""

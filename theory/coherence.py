"""The drift argument: how drift grows inside a cycle says how the boundary falls with S.

Normalized steps along directions whose mean pairwise cosine is q add up like a partly coherent walk. If a run turns
unstable at a fixed drift at the end of a cycle, the learning rate on the boundary is what keeps that drift constant.
"""

import sympy as sp

from theory.formula import Formula
from theory.symbols import S, alpha, beta, eta, q

_first, _second = sp.symbols("first second", positive=True, integer=True)
_drift, _constant = sp.symbols("drift constant", positive=True)


def _square_displacement() -> sp.Expr:
    """Sum over all pairs of S unit steps: one on the diagonal, q off it."""
    pairs = sp.summation(q, (_first, 1, S), (_second, 1, S)) - sp.summation(q, (_first, 1, S))
    return sp.expand(sp.summation(1, (_first, 1, S)) + pairs)


def _local_exponent() -> sp.Expr:
    """Slope of log eta_max on log S where eta_max * displacement is constant."""
    displacement = sp.sqrt(_square_displacement())
    return sp.factor(sp.simplify(-S * sp.diff(sp.log(displacement), S)))


def _boundary_exponent() -> sp.Expr:
    """Slope of log eta against log S on a line of constant drift eta**alpha * S**beta."""
    (rate,) = sp.solve(sp.Eq(_constant * eta**alpha * S**beta, _drift), eta)
    return sp.simplify(S * sp.diff(sp.log(rate), S))


SQUARE_DISPLACEMENT = Formula(
    "square displacement of a cycle", sp.Symbol("D_S") ** 2, _square_displacement, (S, q), "C9"
)
"""Mean square distance [steps^2] after S unit steps whose mean pairwise cosine is q."""

LOCAL_EXPONENT = Formula("local boundary exponent", sp.Symbol("a_S"), _local_exponent, (S, q), "C9")
"""Slope of log eta_max on log S [1]: -1/2 where nothing is coherent (q = 0), -1 where all is (q = 1)."""

BOUNDARY_EXPONENT = Formula("boundary exponent", sp.Symbol("a"), _boundary_exponent, (alpha, beta), "C9")
"""Slope of log eta_max on log S [1] where the drift at the end of a cycle grows as eta^alpha * S^beta."""

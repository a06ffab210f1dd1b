"""One formula: a left side, an expression, the order of its arguments, and the claim it belongs to."""

from dataclasses import dataclass

import sympy as sp

from theory import symbols
from theory.claims import claim


@dataclass(frozen=True)
class Formula:
    """A formula of the theory.

    Parameters
    ----------
    name : str
    left : sympy expression
        What the formula gives, for example `eta` or `S*eta`.
    expression : sympy expression
        The right side.
    arguments : tuple of sympy symbols
        The order in which numbers are given; exactly the free symbols of the expression.
    claim_id : str
        Id of the claim in theory/claims.py.

    Raises
    ------
    ValueError
        If the arguments are not exactly the free symbols, each once, or the claim is unknown.
    """

    name: str
    left: sp.Basic
    expression: sp.Basic
    arguments: tuple[sp.Symbol, ...]
    claim_id: str

    def __post_init__(self) -> None:
        claim(self.claim_id)
        free = sorted(self.expression.free_symbols, key=str)
        if sorted(self.arguments, key=str) != free:
            raise ValueError(
                f"arguments of {self.name} must be the free symbols {free}, each once, "
                f"got {list(self.arguments)}. Give them in the order of the call."
            )

    @property
    def equation(self) -> sp.Eq:
        """The formula as a sympy equation."""
        return sp.Eq(self.left, self.expression, evaluate=False)

    @property
    def latex(self) -> str:
        """The formula in LaTeX, printed by sympy from the expression and the symbol table."""
        return symbols.latex(self.equation)

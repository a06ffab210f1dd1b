"""One formula: a left side, what it equals, the order of its arguments, and the claim it belongs to."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

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
    right : sympy expression, or function that returns one
        A definition as it stands, or the function that derives the right side; it is called on first use.
    arguments : tuple of sympy symbols
        The order in which numbers are given; exactly the free symbols of the expression.
    claim_id : str
        Id of the claim in theory/claims.

    Raises
    ------
    ValueError
        If the claim is unknown, or the arguments are not exactly the free symbols, each once. The second is seen
        when `expression` is first read.
    """

    name: str
    left: sp.Basic
    right: sp.Basic | Callable[[], sp.Basic]
    arguments: tuple[sp.Symbol, ...]
    claim_id: str

    def __post_init__(self) -> None:
        claim(self.claim_id)
        if isinstance(self.right, sp.Basic):
            self.expression  # noqa: B018  # a definition is checked at once

    @cached_property
    def expression(self) -> sp.Basic:
        """The right side, derived once."""
        expression = self.right if isinstance(self.right, sp.Basic) else self.right()
        free = sorted(expression.free_symbols, key=str)
        if sorted(self.arguments, key=str) != free:
            raise ValueError(
                f"arguments of {self.name} must be the free symbols {free}, each once, "
                f"got {list(self.arguments)}. Give them in the order of the call."
            )
        return expression

    @property
    def derivation(self) -> str:
        """How the right side comes about, in a sentence; empty for a definition."""
        return "" if isinstance(self.right, sp.Basic) else " ".join((self.right.__doc__ or "").split())

    @property
    def equation(self) -> sp.Eq:
        """The formula as a sympy equation."""
        return sp.Eq(self.left, self.expression, evaluate=False)

    @property
    def latex(self) -> str:
        """The formula in LaTeX, printed by sympy from the expression and the symbol table."""
        return symbols.latex(self.equation)

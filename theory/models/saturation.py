"""Saturating responses: how a normalized update answers its drive. Odd, slope one at zero, one at infinity."""

from collections.abc import Callable
from dataclasses import dataclass

import sympy as sp

from theory.errors import InputError

_y = sp.Symbol("y", real=True)
_WAY_OUT = "Rescale the function, or use TANH, ALGEBRAIC or ERF."


@dataclass(frozen=True)
class Saturation:
    """A saturating response.

    Parameters
    ----------
    name : str
    phi : function of a sympy expression that returns one

    Raises
    ------
    InputError
        If phi is not odd, its slope at zero is not one, or its limit at infinity is not one.

    Source: claim C30 (theory/claims).

    >>> Saturation("hyperbolic tangent", sp.tanh)(sp.Integer(0))
    0
    """

    name: str
    phi: Callable[[sp.Expr], sp.Expr]

    def __post_init__(self) -> None:
        value = sp.sympify(self.phi(_y))
        even_part = sp.simplify(value + value.subs(_y, -_y))
        if even_part != 0:
            raise InputError(f"saturation {self.name}", "be odd", f"phi(y) + phi(-y) = {even_part}", _WAY_OUT)
        slope = sp.limit(sp.diff(value, _y), _y, 0)
        if slope != 1:
            raise InputError(f"saturation {self.name}", "have slope 1 at zero", slope, _WAY_OUT)
        top = sp.limit(value, _y, sp.oo)
        if top != 1:
            raise InputError(f"saturation {self.name}", "have the limit 1 at infinity", top, _WAY_OUT)

    def __call__(self, drive: sp.Expr) -> sp.Expr:
        """Return phi of a drive."""
        return self.phi(drive)


def _algebraic(drive: sp.Expr) -> sp.Expr:
    return drive / sp.sqrt(1 + drive**2)


def _erf(drive: sp.Expr) -> sp.Expr:
    return sp.erf(sp.sqrt(sp.pi) / 2 * drive)


TANH = Saturation("tanh", sp.tanh)
"""The response of the memory map; its flow inside a cycle is explicit."""

ALGEBRAIC = Saturation("algebraic", _algebraic)
"""z/sqrt(1 + z^2); reaches one slower than tanh, as 1 - 1/(2*z^2)."""

ERF = Saturation("erf", _erf)
"""erf(sqrt(pi)/2*z), the mean sign of a drive in Gaussian noise; reaches one faster than tanh."""

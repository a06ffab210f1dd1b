"""Exact flow of persistent drift inside a cycle for any saturation that sympy can integrate, and its fixed points.

The drive obeys dz/d(eta*t) = (k_w*v/sigma)*phi(z), so the clock is the integral of 1/phi, explicit in z even where z
is not explicit in the clock. A fixed point of the cycle is likewise explicit in P = S*eta.
"""

import sympy as sp

from theory.errors import InputError
from theory.models.saturation import Saturation
from theory.symbols import h, k_s, k_w, m, rho, sigma, v, z, z0


def clock_of_drive(saturation: Saturation) -> sp.Expr:
    """eta*t in which the drive rises from z0 to z.

    Parameters
    ----------
    saturation : Saturation

    Returns
    -------
    expression [1]
        In z, z0, k_w, v and sigma.

    Raises
    ------
    InputError
        If sympy has no integral of 1/phi.

    Source: claim C31 (theory/claims).
    """
    integral = sp.integrate(1 / saturation(z), z)
    if integral.has(sp.Integral):
        raise InputError(
            f"saturation {saturation.name}", "have an integral of 1/phi", integral, "Use TANH or ALGEBRAIC."
        )
    algebraic, rest = sp.expand(integral).as_independent(sp.Function, as_Add=True)
    integral = sp.simplify(algebraic) + rest
    return sigma / (k_w * v) * (integral - integral.subs(z, z0))


def fixed_point_product(saturation: Saturation) -> sp.Expr:
    """S*eta at which the memory m is the same from cycle to cycle.

    The drift of such a cycle is (1 - rho)*m/k_s, so P is the clock of the drive's rise from (h + m)/sigma.

    Parameters
    ----------
    saturation : Saturation

    Returns
    -------
    expression [1]
        In m, h, k_s, k_w, rho, v and sigma.

    Raises
    ------
    InputError
        As `clock_of_drive`.

    Source: claim C31 (theory/claims).
    """
    drift = (1 - rho) * m / k_s
    begin = (h + m) / sigma
    return clock_of_drive(saturation).subs({z: begin + k_w * drift / sigma, z0: begin}, simultaneous=True)

"""What the symbolic form of the built-in drift models adds to theory/persistent.py and theory/thresholds.py."""

import sympy as sp

from theory.formula import Formula
from theory.models.builders import lagged_oscillator, persistent_drift, stale_quadratic
from theory.models.cycle import boundary, closed_elasticities, multiplier
from theory.models.exits import exit_clock
from theory.models.flows import clock_of_drive, fixed_point_product
from theory.models.saturation import ALGEBRAIC, TANH
from theory.symbols import K, P, R_batch, S, eta, f, h, k_s, k_w, m, mu, rho, sigma, tau, v, z, z0
from theory.symbols import multiplier as growth

_SLOPES = (k_s, k_w, rho, v, sigma)


def _within_elasticity() -> sp.Expr:
    """Differentiate the logarithm of the closed boundary by log(k_w)."""
    return closed_elasticities(persistent_drift())["k_w"]


def _across_elasticity() -> sp.Expr:
    """Differentiate the logarithm of the closed boundary by log(k_s)."""
    return closed_elasticities(persistent_drift())["k_s"]


def _retention_elasticity() -> sp.Expr:
    """Differentiate the logarithm of the closed boundary by log(rho)."""
    return closed_elasticities(persistent_drift())["rho"]


def _algebraic_clock() -> sp.Expr:
    """Separate the variables of dz/dtau = (k_w*v/sigma)*z/sqrt(1 + z^2) and integrate from z0 to z."""
    return clock_of_drive(ALGEBRAIC)


def _tanh_fixed_point() -> sp.Expr:
    """Put the drift that keeps the memory, (1 - rho)*m/k_s, into the exact clock for tanh."""
    return fixed_point_product(TANH)


def _algebraic_fixed_point() -> sp.Expr:
    """Put the drift that keeps the memory, (1 - rho)*m/k_s, into the exact clock for z/sqrt(1 + z^2)."""
    return fixed_point_product(ALGEBRAIC)


def _stale_multiplier() -> sp.Expr:
    """Take the one eigenvalue that is not zero of the cycle of the stale quadratic."""
    return multiplier(stale_quadratic())


def _stale_boundary() -> sp.Expr:
    """Solve for the P at which the cycle of the stale quadratic has an eigenvalue on the unit circle."""
    return boundary(stale_quadratic())


def _wholly_stale_boundary() -> sp.Expr:
    """Take the limit f -> 1 of the boundary of the stale quadratic."""
    return sp.limit(boundary(stale_quadratic()), f, 1)


def _oscillator_boundary() -> sp.Expr:
    """Solve for the P at which the flow of the lagged oscillator loses its damping."""
    return boundary(lagged_oscillator())


def _saturated_product() -> sp.Expr:
    """Follow d on the saturated flow of persistent drift from a sync to the exit at the end of a cycle."""
    return exit_clock(persistent_drift(), "batch")


WITHIN_ELASTICITY = Formula(
    "elasticity to the slope inside a cycle", sp.Symbol("e_w"), _within_elasticity, (k_s, k_w, rho), "C30"
)
"""d log(S*eta on the boundary) / d log(k_w) [1]."""

ACROSS_ELASTICITY = Formula(
    "elasticity to the slope across a sync", sp.Symbol("e_s"), _across_elasticity, (k_s, k_w, rho), "C30"
)
"""d log(S*eta on the boundary) / d log(k_s) [1]."""

RETENTION_ELASTICITY = Formula(
    "elasticity to the retention", sp.Symbol("e_rho"), _retention_elasticity, (k_s, k_w, rho), "C30"
)
"""d log(S*eta on the boundary) / d log(rho) [1]."""

ALGEBRAIC_CLOCK = Formula(
    "clock of the drive, algebraic saturation", tau, _algebraic_clock, (z, z0, k_w, v, sigma), "C31"
)
"""eta*t [1] in which the drive rises from z0 to z, for phi = z/sqrt(1 + z^2)."""

TANH_FIXED_POINT = Formula("S*eta of a kept memory, tanh", P, _tanh_fixed_point, (m, h, *_SLOPES), "C31")
"""S*eta [1] at which a cycle leaves the memory m as it was, for phi = tanh."""

ALGEBRAIC_FIXED_POINT = Formula(
    "S*eta of a kept memory, algebraic saturation", P, _algebraic_fixed_point, (m, h, *_SLOPES), "C31"
)
"""S*eta [1] at which a cycle leaves the memory m as it was, for phi = z/sqrt(1 + z^2)."""

STALE_MULTIPLIER = Formula("multiplier of the stale quadratic", growth, _stale_multiplier, (P, K, f), "C32")
"""Factor [1] per cycle, with its sign; f other than 1."""

STALE_BOUNDARY = Formula("boundary of the stale quadratic", S * eta, _stale_boundary, (K, f), "C32")
"""S*eta [1] at which the multiplier is -1; f > 1/2 and other than 1."""

WHOLLY_STALE_BOUNDARY = Formula("boundary of the wholly stale quadratic", S * eta, _wholly_stale_boundary, (K,), "C32")
"""S*eta [1] at f = 1."""

OSCILLATOR_BOUNDARY = Formula("boundary of the lagged oscillator", S * eta, _oscillator_boundary, (K, mu), "C33")
"""S*eta [1] at which the damping is zero, to first order in the lag S."""

SATURATED_PRODUCT = Formula("S*eta a batch survives at full speed", S * eta, _saturated_product, (R_batch, v), "C34")
"""S*eta [1] at which saturated drift meets R_batch at the end of a cycle."""

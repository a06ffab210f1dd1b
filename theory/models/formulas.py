"""The formulas of the built-in drift models, derived from their symbolic form."""

import sympy as sp

from theory.formula import Formula
from theory.models.builders import lagged_oscillator, persistent_drift, stale_quadratic, two_constraint
from theory.models.cycle import boundary, closed_elasticities, multiplier
from theory.models.exits import crossover_lag, exit_clock
from theory.models.flows import clock_of_drive, fixed_point_product
from theory.models.saturation import ALGEBRAIC, TANH
from theory.symbols import G_upd, K, P, R_batch, R_crit, S, T, eta, f, h, k_s, k_w, m, mu, rho, sigma, tau, v, z, z0
from theory.symbols import multiplier as growth

_SLOPES = (k_s, k_w, rho, v, sigma)


def _persistent_growth() -> sp.Expr:
    """Linearise a cycle of persistent drift and take the one eigenvalue that is not zero."""
    return multiplier(persistent_drift())


def _persistent_boundary() -> sp.Expr:
    """Solve for the P at which the linearised cycle of persistent drift has an eigenvalue on the unit circle."""
    return boundary(persistent_drift())


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


def _saturated_budget() -> sp.Expr:
    """Follow x on the saturated flow of persistent drift from the start to the exit."""
    return exit_clock(persistent_drift(), "region")


def _cycle_product() -> sp.Expr:
    """Follow d of the two-constraint model from a sync to the exit at the end of a cycle."""
    return exit_clock(two_constraint(), "batch")


def _crossover() -> sp.Expr:
    """Solve for the S at which both exits of the two-constraint model allow the same learning rate."""
    return crossover_lag(two_constraint(), cycle_end="batch", within="region")


PERSISTENT_GROWTH = Formula("growth of a small memory in a cycle", growth, _persistent_growth, (P, *_SLOPES), "C30")
"""Factor [1] per cycle at h = 0, for any saturation."""

PERSISTENT_BOUNDARY = Formula("boundary of persistent drift for any phi", S * eta, _persistent_boundary, _SLOPES, "C30")
"""S*eta [1] on the stability boundary at h = 0, rho < 1, for any saturation."""

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

SATURATED_BUDGET = Formula("eta*T a run survives at full speed", eta * T, _saturated_budget, (R_crit, v), "C34")
"""eta*T [1] at which saturated drift meets R_crit."""

CYCLE_PRODUCT = Formula("S*eta a batch survives", S * eta, _cycle_product, (R_batch, G_upd), "C34")
"""S*eta [1] at which the drift of a cycle of the two-constraint model is R_batch."""

CROSSOVER_LAG = Formula("crossover lag", S, _crossover, (T, R_batch, R_crit), "C34")
"""Sync interval [optimizer steps] above which the end of a cycle and not the horizon binds."""

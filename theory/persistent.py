"""Persistent drift: the drive also grows inside a cycle, and directions persist across syncs.

With d the displacement since the last sync, m what the syncs have left and h the honest signal, the drive is
z = (h + m + k_w*d)/sigma and the displacement grows at v*tanh(z) per unit of eta*t. At a sync d is taken into
the memory, m -> rho*m + k_s*d, and starts again at 0. The run ends when the displacement at the end of a cycle
reaches R_batch (the batch stops being usable) or the displacement in all reaches R_crit (the surrogate does).
Without feedback inside a cycle (k_w -> 0) and without retention (rho = 0) this is the memory map of
theory/drift.py, with C = sigma/(k_s*v), its h in units of sigma and its R = R_crit/v.
"""

import sympy as sp

from theory.formula import Formula
from theory.symbols import R_crit, S, T, d, eta, h, k, k_s, k_w, m, multiplier, rho, sigma, tau, v, z, z0

_product = sp.Symbol("product", positive=True)


def _drive_rate() -> sp.Expr:
    """Differentiate the drive by the clock: only d changes inside a cycle."""
    speed = v * sp.tanh(z)
    return sp.diff((h + m + k_w * d) / sigma, d) * speed


def _elapsed() -> sp.Expr:
    """Separate the variables of dz/dtau = rate*tanh(z) and integrate: the clock from z0 to z."""
    integral = sp.integrate(sp.cosh(z) / sp.sinh(z), z)
    return sp.logcombine(integral - integral.subs(z, z0), force=True) * sp.tanh(z) / _drive_rate()


def _drive() -> sp.Expr:
    """Solve the elapsed clock for sinh(z)."""
    steepness = sp.Symbol("steepness", positive=True)
    (solved,) = sp.solve(sp.Eq(_elapsed().subs(sp.sinh(z), steepness), tau), steepness)
    return sp.asinh(solved)


def _drift() -> sp.Expr:
    """Displacement that raises the drive from z0 to z(tau)."""
    (displacement,) = sp.solve(sp.Eq(k_w * d / sigma, _drive() - z0), d)
    return sp.expand(displacement)


def _clock_of_drift() -> sp.Expr:
    """Elapsed clock when the drive has risen by k_w*d/sigma."""
    steepness = sp.Symbol("steepness", positive=True)
    clock = _elapsed().subs(sp.sinh(z), steepness)
    return clock.subs(steepness, sp.sinh(z0 + k_w * d / sigma))


def _growth() -> sp.Expr:
    """Factor by which a small memory grows from sync to sync at h = 0."""
    start = sp.Symbol("start", nonnegative=True)  # z0 is positive, and the slope is taken at zero
    following = rho * m + k_s * _drift().subs(tau, _product).subs(z0, start).subs(start, m / sigma)
    return sp.expand(sp.diff(following, m).subs(m, 0))


def _growth_of_cycle() -> sp.Expr:
    """Differentiate the next memory by a small one at h = 0, over a cycle of S*eta."""
    return _growth().subs(_product, S * eta)


def _boundary() -> sp.Expr:
    """S*eta at which a small memory neither grows nor dies."""
    (product,) = sp.solve(sp.Eq(_growth(), 1), _product)
    return sp.simplify(product)


def _across_only() -> sp.Expr:
    """Let rho and then k_w go to zero in the boundary."""
    return sp.limit(_boundary().subs(rho, 0), k_w, 0)


def _one_slope() -> sp.Expr:
    """Put k_s = rho*k_w into the boundary."""
    return sp.simplify(_boundary().subs(k_s, rho * k_w))


def _saturated_budget() -> sp.Expr:
    """eta*T at exit when the update is saturated from the start."""
    speed = sp.limit(v * sp.tanh(z), z, sp.oo)
    (budget,) = sp.solve(sp.Eq(speed * tau, R_crit), tau)
    return budget


DRIVE_RATE = Formula("flow of the drive", sp.Derivative(z, tau), _drive_rate, (z, k_w, v, sigma), "C5")
"""dz/d(eta*t) [1] inside a cycle."""

DRIVE = Formula("drive inside a cycle", z, _drive, (tau, z0, k_w, v, sigma), "C5")
"""z [1]: sinh(z) grows exponentially from sinh(z0)."""

DRIFT = Formula("drift inside a cycle", d, _drift, (tau, z0, k_w, v, sigma), "C5")
"""Displacement since the last sync [parameter distance]."""

CLOCK_OF_DRIFT = Formula("clock of a drift", tau, _clock_of_drift, (d, z0, k_w, v, sigma), "C6")
"""eta*t [1] since the last sync at which the displacement since then is d."""

NEXT_MEMORY = Formula("memory across a sync", sp.Function("m")(k + 1), rho * m + k_s * d, (m, d, rho, k_s), "C5")
"""Memory drive of the next cycle [1]."""

GROWTH = Formula("growth of a small memory", multiplier, _growth_of_cycle, (S, eta, k_s, k_w, rho, v, sigma), "C5")
"""Factor [1] per cycle at h = 0; above 1 drift stays alive."""

BOUNDARY_PRODUCT = Formula("boundary of persistent drift", S * eta, _boundary, (k_s, k_w, rho, v, sigma), "C5")
"""S*eta [1] on the stability boundary at h = 0, rho < 1."""

ACROSS_ONLY_PRODUCT = Formula(
    "boundary without feedback inside a cycle",
    S * eta,
    _across_only,
    (k_s, v, sigma),
    "C5",
)
"""S*eta [1] for k_w, rho -> 0: the C of the memory map."""

ONE_SLOPE_PRODUCT = Formula(
    "boundary when a sync keeps a share of the whole drive",
    S * eta,
    _one_slope,
    (k_w, rho, v, sigma),
    "C5",
)
"""S*eta [1] for k_s = rho*k_w."""

SATURATED_BUDGET = Formula("saturated budget", eta * T, _saturated_budget, (R_crit, v), "C6")
"""eta*T [1] at exit at full drift speed."""

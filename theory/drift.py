"""The memory map: mean-field drift of one persistent direction from sync to sync, and its exit.

In cycle k the mean normalized update is u_k and the displacement grows by S*eta*u_k. Across the sync the
displacement feeds back on the next update: u_{k+1} = phi(h + J*S*eta*u_k/sigma), phi = tanh, which is odd,
saturates, and has slope 1 at zero. With C = sigma/J the gain is kappa = S*eta/C; S enters nowhere else.
The run leaves the region where the surrogate is valid when the displacement reaches R.
"""

import sympy as sp

from theory.formula import Formula
from theory.symbols import C, J, R, S, T, eta, h, k, kappa, multiplier, n, sigma, u, u0, ustar

_next_memory = sp.tanh(h + kappa * u)
_clock = sp.Symbol("tau", positive=True)


def _gain() -> sp.Expr:
    """J*S*eta/sigma with sigma = C*J."""
    return (J * S * eta / sigma).subs(sigma, C * J)


def _boundary() -> sp.Expr:
    """Learning rate at which the map's multiplier at u = h = 0 is one."""
    slope = sp.diff(_next_memory, u).subs({u: 0, h: 0})
    (rate,) = sp.solve(sp.Eq(slope.subs(kappa, _gain()), 1), eta)
    return rate


def _multiplier_at_fixed_point() -> sp.Expr:
    """Slope of the map where tanh(h + kappa*u) = u."""
    return sp.diff(_next_memory, u).subs(_next_memory, ustar)


def _gain_of_fixed_point() -> sp.Expr:
    """Solve the fixed-point equation for the gain, in which it is linear."""
    (gain,) = sp.solve(sp.Eq(sp.atanh(ustar), h + kappa * ustar), kappa)
    return gain


def _amplitude() -> sp.Expr:
    """Solve kappa - 1 = atanh(u)/u - 1 to lowest order in u: the fixed point just above the boundary."""
    excess = sp.series(_gain_of_fixed_point().subs(h, 0) - 1, ustar, 0, 4).removeO()
    (amplitude,) = sp.solve(sp.Eq(excess, kappa - 1), ustar)
    return amplitude


def _budget_at(memory: sp.Expr) -> sp.Expr:
    """eta*T at which a displacement that grows at the rate `memory` reaches R."""
    (clock,) = sp.solve(sp.Eq(memory * _clock, R), _clock)
    return sp.simplify(clock)


def _steady_budget() -> sp.Expr:
    """Solve for the clock at which a displacement that grows at the rate u reaches R."""
    return _budget_at(u)


def _linear_budget() -> sp.Expr:
    """Put the fixed point of the linearised map into the exit budget of steady drift."""
    return _budget_at(_linear_memory())


def _linear_memory() -> sp.Expr:
    """Solve for the fixed point of the linearised map u -> h + kappa*u."""
    linear = sp.series(_next_memory.subs({h: h * _clock, u: u * _clock}), _clock, 0, 2).removeO().subs(_clock, 1)
    (memory,) = sp.solve(sp.Eq(linear, u), u)
    return memory


def _growth_cycles() -> sp.Expr:
    """Cycles of the linear growth u0*kappa**n from u0 to the fixed point."""
    (cycles,) = sp.solve(sp.Eq(sp.log(u0) + n * sp.log(kappa), sp.log(ustar)), n)
    return cycles


def _budget_from_start() -> sp.Expr:
    """Add up the cycles of linear growth and the steady drift over what they leave of R."""
    product = C * kappa
    excess = sp.Symbol("excess", positive=True)
    covered = sp.summation(product * u0 * kappa**k, (k, 0, n - 1)).subs(kappa, 1 + excess)
    covered = sp.simplify(covered).subs(excess, kappa - 1).subs(kappa**n, ustar / u0)
    budget = product * n + _budget_at(ustar) - sp.simplify(covered / ustar)
    return budget.subs(n, _growth_cycles())


CRITICAL_PRODUCT = Formula("critical product", C, sigma / J, (sigma, J), "C5")
"""C [1]: noise over feedback slope."""

GAIN = Formula("feedback gain", kappa, _gain, (S, eta, C), "C5")
"""kappa [1]; above 1 drift stays alive without honest signal."""

NEXT_MEMORY = Formula("memory map", sp.Function("u")(k + 1), _next_memory, (u, kappa, h), "C5")
"""Memory of the next cycle [1]."""

BOUNDARY = Formula("stability boundary", eta, _boundary, (S, C), "C5")
"""Largest stable learning rate [1] at h = 0: where a small memory neither grows nor dies."""

MULTIPLIER = Formula("multiplier at the fixed point", multiplier, _multiplier_at_fixed_point, (ustar, kappa), "C5")
"""Factor [1] by which a small deviation from the fixed point grows in a cycle; below 1 it is stable."""

GAIN_OF_FIXED_POINT = Formula("gain of a fixed point", kappa, _gain_of_fixed_point, (ustar, h), "C5")
"""The gain [1] that has this fixed point: the fixed-point equation, explicit in the gain."""

AMPLITUDE = Formula("memory just above the boundary", ustar, _amplitude, (kappa,), "C5")
"""Fixed point [1] at h = 0 to lowest order in kappa - 1; 4.5 % too high at kappa = 1.05."""

EXIT_BUDGET = Formula("exit budget of steady drift", eta * T, _steady_budget, (R, u), "C6")
"""eta*T [1] at exit when the memory is at its fixed point from the start."""

LINEAR_MEMORY = Formula("memory below the boundary", u, _linear_memory, (kappa, h), "C7")
"""Fixed point [1] for a small honest signal and kappa < 1."""

LINEAR_EXIT_BUDGET = Formula("exit budget below the boundary", eta * T, _linear_budget, (R, kappa, h), "C7")
"""eta*T [1] at exit for a small honest signal and kappa < 1."""

GROWTH_CYCLES = Formula("cycles of growth", n, _growth_cycles, (kappa, u0, ustar), "C6")
"""Cycles of linear growth from the start to saturation at h = 0, kappa > 1; it need not be whole."""

EXIT_BUDGET_FROM_START = Formula(
    "exit budget from a small memory", eta * T, _budget_from_start, (R, C, kappa, u0, ustar), "C6"
)
"""eta*T [1] at exit at h = 0, kappa > 1: linear growth until `ustar`, then steady drift over the rest of R.

Growth is never faster than linear and memory never above its fixed point, so it comes out low: by 1 to 3 %
for kappa from 1.05 to 5, R = 50*C, u0 = 1e-3.
"""

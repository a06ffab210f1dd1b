import numpy as np
import pytest
import sympy as sp
from scipy.integrate import solve_ivp

from tests.support.tolerances import CLOSED_FORM
from theory import drift, persistent
from theory.numeric import numpy_function
from theory.symbols import C, J, R, R_crit, S, d, eta, h, k_s, k_w, m, rho, sigma, tau, u, v, z, z0

ODE = 1e-10
"""Relative tolerance of the solver below; the closed form may differ from it by ten times as much."""


def test_the_explicit_drive_solves_the_flow():
    drive = persistent.DRIVE.expression
    flow = persistent.DRIVE_RATE.expression.subs(z, drive)
    assert sp.simplify(sp.diff(drive, tau) - flow) == 0
    assert sp.simplify(sp.sinh(drive.subs(tau, 0)) - sp.sinh(z0)) == 0


@pytest.mark.parametrize("start", [1e-4, 0.3, 2.0])
def test_the_explicit_drive_and_drift_match_the_solver(start):
    """Displacement and drive integrated together, no closed form used."""
    slope, speed, noise, end = 1.5, 0.7, 0.4, 2.0

    def flow(_, state):
        return [speed * np.tanh(start + slope * state[0] / noise)]

    solved = solve_ivp(flow, (0.0, end), [0.0], rtol=ODE, atol=1e-14).y[0, -1]
    found = float(numpy_function(persistent.DRIFT)(end, start, slope, speed, noise))
    assert found == pytest.approx(solved, rel=10 * ODE)
    drive = float(numpy_function(persistent.DRIVE)(end, start, slope, speed, noise))
    assert drive == pytest.approx(start + slope * solved / noise, rel=10 * ODE)


def test_the_clock_inverts_the_drift():
    clock = persistent.CLOCK_OF_DRIFT.expression.subs(d, persistent.DRIFT.expression)
    values = {tau: 0.9, z0: 0.2, k_w: 1.5, v: 0.7, sigma: 0.4}
    assert float(clock.subs(values)) == pytest.approx(0.9, rel=CLOSED_FORM)


def test_growth_is_the_slope_of_one_cycle_of_a_tiny_memory():
    product, across, within, kept, speed, noise = 0.8, 0.9, 1.5, 0.3, 0.7, 0.4
    tiny = 1e-7
    displacement = numpy_function(persistent.DRIFT)(product, tiny / noise, within, speed, noise)
    following = numpy_function(persistent.NEXT_MEMORY)(tiny, displacement, kept, across)
    growth = numpy_function(persistent.GROWTH)(1.0, product, across, within, kept, speed, noise)
    assert float(following / tiny) == pytest.approx(float(growth), rel=1e-7)  # asinh loses 9 digits at 1e-7


def test_growth_and_boundary_are_those_of_the_design():
    expected = rho + (k_s / k_w) * (sp.exp(k_w * v * S * eta / sigma) - 1)
    assert sp.simplify(persistent.GROWTH.expression - expected) == 0
    boundary = sigma / (k_w * v) * sp.log(1 + (1 - rho) * k_w / k_s)
    assert sp.simplify(sp.exp(k_w * v / sigma * (persistent.BOUNDARY_PRODUCT.expression - boundary))) == 1
    on_it = persistent.GROWTH.expression.subs(eta, persistent.BOUNDARY_PRODUCT.expression / S)
    assert sp.simplify(on_it) == 1


def test_without_flow_feedback_and_retention_it_is_the_memory_map():
    """The drift of a cycle is v*S*eta*tanh(z0), the boundary C = sigma/(k_s*v), and the map that of theory.drift."""
    straight = sp.diff(sp.expand(persistent.DRIFT.expression * k_w), k_w).subs(k_w, 0)  # d*k_w is 0 at k_w = 0
    assert sp.simplify(straight - v * tau * sp.sinh(z0) / sp.sqrt(1 + sp.sinh(z0) ** 2)) == 0  # v*tau*tanh(z0)
    assert persistent.ACROSS_ONLY_PRODUCT.expression == sigma / (k_s * v)
    assert persistent.ACROSS_ONLY_PRODUCT.expression == drift.CRITICAL_PRODUCT.expression.subs(J, k_s * v)
    after = persistent.NEXT_MEMORY.expression.subs({rho: 0, d: v * S * eta * u})
    gain = drift.GAIN.expression.subs(C, persistent.ACROSS_ONLY_PRODUCT.expression)
    assert sp.simplify(after / sigma - gain * u) == 0
    assert sp.limit(persistent.GROWTH.expression.subs(rho, 0), k_w, 0) == gain


def test_boundary_where_a_sync_keeps_a_share_of_the_whole_drive():
    expected = sp.log(1 / rho) * sigma / (k_w * v)
    assert sp.simplify(persistent.ONE_SLOPE_PRODUCT.expression - expected) == 0
    growth = persistent.GROWTH.expression.subs(k_s, rho * k_w)
    assert sp.simplify(growth - rho * sp.exp(k_w * v * S * eta / sigma)) == 0


def test_saturated_budget_is_radius_over_speed():
    assert persistent.SATURATED_BUDGET.expression == R_crit / v
    assert drift.EXIT_BUDGET.expression.subs(u, 1).subs(R, R_crit / v) == persistent.SATURATED_BUDGET.expression
    saturated = sp.limit(persistent.DRIVE_RATE.expression * sigma / k_w, z, sp.oo)
    assert saturated == v


def test_the_flow_is_the_slope_of_the_drive_times_the_speed():
    drive = (h + m + k_w * d) / sigma
    assert persistent.DRIVE_RATE.expression == sp.diff(drive, d) * v * sp.tanh(z)

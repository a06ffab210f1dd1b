import numpy as np
import pytest
import sympy as sp
from scipy.optimize import brentq

from tests.support.tolerances import CLOSED_FORM, LIMIT, ROUNDED
from theory import drift
from theory.numeric import numpy_function
from theory.symbols import C, R, S, eta, h, kappa, u, ustar


def fixed_point(gain, honest_signal):
    """The positive fixed point of the map, by bracketing."""
    return brentq(lambda value: np.tanh(honest_signal + gain * value) - value, 1e-12, 1.0, xtol=1e-15, rtol=1e-14)


def test_boundary_is_where_the_linear_map_neither_grows_nor_shrinks():
    assert sp.simplify(drift.BOUNDARY.expression * S - C) == 0
    slope = sp.diff(drift.NEXT_MEMORY.expression, u).subs({u: 0, h: 0})
    assert slope.subs(kappa, drift.GAIN.expression).subs(eta, drift.BOUNDARY.expression) == 1


@pytest.mark.parametrize(("gain", "stable"), [(0.9, True), (0.999, True), (1.001, False), (1.5, False)])
def test_zero_memory_is_stable_below_one_and_the_other_fixed_point_above(gain, stable):
    assert (numpy_function(drift.MULTIPLIER)(0.0, gain) < 1.0) == stable
    if not stable:
        assert numpy_function(drift.MULTIPLIER)(fixed_point(gain, 0.0), gain) < 1.0


@pytest.mark.parametrize(("gain", "expected"), [(1.05, 0.37), (1.2, 0.66), (1.5, 0.86), (2.0, 0.96), (3.0, 0.995)])
def test_fixed_points_without_honest_signal(gain, expected):
    assert fixed_point(gain, 0.0) == pytest.approx(expected, abs=5e-3)


@pytest.mark.parametrize("honest_signal", [0.0, 0.05])
def test_gain_of_a_fixed_point_inverts_the_fixed_point_equation(honest_signal):
    for gain in (1.1, 1.5, 3.0):
        found = numpy_function(drift.GAIN_OF_FIXED_POINT)(fixed_point(gain, honest_signal), honest_signal)
        assert found == pytest.approx(gain, rel=1e-9)


def test_amplitude_is_the_leading_order():
    assert sp.simplify(drift.AMPLITUDE.expression**2 - 3 * (kappa - 1)) == 0
    errors = [
        numpy_function(drift.AMPLITUDE)(1.0 + excess) / fixed_point(1.0 + excess, 0.0) - 1.0 for excess in (0.05, 5e-4)
    ]
    assert errors[0] == pytest.approx(0.045, abs=5e-4)
    assert errors[1] == pytest.approx(errors[0] / 100.0, rel=0.1)  # the relative error is of first order


@pytest.mark.parametrize(("gain", "expected"), [(0.5, 503), (0.9, 144), (1.0, 100), (1.5, 57), (4.0, 50)])
def test_exit_budget_with_honest_signal(gain, expected):
    budget = numpy_function(drift.EXIT_BUDGET)(50.0, fixed_point(gain, 0.05))
    assert budget == pytest.approx(expected, abs=ROUNDED)


def test_exit_budget_without_feedback_is_radius_over_signal():
    budget = numpy_function(drift.EXIT_BUDGET)(50.0, np.tanh(0.05))
    assert budget == pytest.approx(1000.833, abs=1e-3)  # R/tanh(h), not R/h = 1000


def test_linear_budget_is_the_limit_of_a_small_signal():
    signal, gain = 1e-5, 0.5
    exact = numpy_function(drift.EXIT_BUDGET)(50.0, fixed_point(gain, signal))
    assert numpy_function(drift.LINEAR_EXIT_BUDGET)(50.0, gain, signal) == pytest.approx(exact, rel=LIMIT)
    memory = drift.LINEAR_MEMORY.expression
    assert sp.simplify(drift.EXIT_BUDGET.expression.subs(u, memory) - R * (1 - kappa) / h) == 0


def test_growth_cycles_count_the_linear_growth():
    cycles = numpy_function(drift.GROWTH_CYCLES)(1.5, 1e-3, 0.8)
    assert 1e-3 * 1.5**cycles == pytest.approx(0.8, rel=CLOSED_FORM)


def test_budget_from_start_sums_growth_and_steady_drift():
    gain, start, product = 2.0, 0.5**5, 0.4
    covered = sum(product * start * gain**cycle for cycle in range(5))  # five cycles from 1/32 to 1
    expected = 5 * product + (3.0 - covered) / 1.0
    found = numpy_function(drift.EXIT_BUDGET_FROM_START)(3.0, product / gain, gain, start, 1.0)
    assert found == pytest.approx(expected, rel=CLOSED_FORM)


def test_budget_from_start_has_the_steady_limit():
    expression = drift.EXIT_BUDGET_FROM_START.expression
    start = drift.EXIT_BUDGET_FROM_START.arguments[3]
    assert sp.simplify(expression.subs(start, ustar) - R / ustar) == 0

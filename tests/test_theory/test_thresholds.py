import numpy as np
import pytest
import sympy as sp

from tests.support.tolerances import CLOSED_FORM, LIMIT
from theory import thresholds
from theory.drift import BOUNDARY, LINEAR_EXIT_BUDGET
from theory.numeric import numpy_function
from theory.symbols import B, C, R, R_batch, R_crit, S, T, h

INTERVALS = np.array([1.0, 4.0, 16.0, 64.0])


def test_min_form_is_flat_up_to_the_crossover_and_falls_as_one_over_s_beyond():
    crossover = float(numpy_function(thresholds.CROSSOVER)(1000, 0.5, 25.0))
    assert crossover == pytest.approx(1000 * 0.5 / 25.0, rel=CLOSED_FORM)
    rates = numpy_function(thresholds.MIN_RULE)(crossover * np.array([0.25, 0.5, 1, 2, 4]), 1000, 0.5, 25.0, 2.0)
    np.testing.assert_allclose(rates / rates[2], [1, 1, 1, 0.5, 0.25], rtol=CLOSED_FORM)


def test_max_form_falls_first_and_is_flat_beyond():
    crossover = 1000 * 0.02 / 0.8  # C/S = B/T
    rates = numpy_function(thresholds.MAX_FORM)(crossover * np.array([0.25, 0.5, 1, 2, 4]), 1000, 0.02, 0.8)
    np.testing.assert_allclose(rates / rates[2], [4, 2, 1, 1, 1], rtol=CLOSED_FORM)


def test_min_rule_holds_exactly_when_both_constraints_do():
    rates = numpy_function(thresholds.MIN_RULE)(INTERVALS, 1000, 0.5, 25.0, 2.0)
    a_cycle = numpy_function(thresholds.STALENESS_RATE)(INTERVALS, 0.5, 2.0)
    a_run = numpy_function(thresholds.HORIZON_RATE)(1000, 25.0, 2.0)
    np.testing.assert_allclose(INTERVALS * a_cycle * 2.0, 0.5, rtol=CLOSED_FORM)
    np.testing.assert_allclose(1000 * a_run * 2.0, 25.0, rtol=CLOSED_FORM)
    np.testing.assert_array_equal(rates, np.minimum(a_cycle, a_run))
    np.testing.assert_allclose(
        numpy_function(thresholds.MIN_FORM)(INTERVALS, 1000, 0.25, 12.5), rates, rtol=CLOSED_FORM
    )


def test_smooth_form_adds_the_two_inverse_rates():
    budget = thresholds.HONEST_BUDGET.expression
    assert budget == R / h
    assert sp.simplify(1 / thresholds.SMOOTH_RATE.expression - S / C - T * h / R) == 0
    assert sp.simplify(1 / thresholds.SMOOTH_RATE.expression - 1 / BOUNDARY.expression - T / budget) == 0


def test_smooth_form_solves_the_linear_exit_budget():
    rate = numpy_function(thresholds.SMOOTH_RATE)(INTERVALS, 1000, 0.02, 0.8, 0.05)
    budget = numpy_function(LINEAR_EXIT_BUDGET)(0.8, INTERVALS * rate / 0.02, 0.05)
    np.testing.assert_allclose(1000 * rate, budget, rtol=CLOSED_FORM)


def test_limits_of_the_smooth_form():
    rate = thresholds.SMOOTH_RATE.expression
    assert sp.limit(rate, h, 0) == C / S
    assert sp.limit(rate, T, 0, "+") == C / S
    assert sp.limit(rate, S, 0, "+") == R / (T * h)
    assert sp.limit(rate * T, T, sp.oo) == R / h


def test_smooth_form_lies_between_half_the_min_form_and_the_min_form():
    smooth = numpy_function(thresholds.SMOOTH_RATE)(INTERVALS, 1000, 0.02, 0.8, 0.05)
    sharp = numpy_function(thresholds.MIN_FORM)(INTERVALS, 1000, 0.02, 0.8 / 0.05)
    assert np.all(smooth < sharp)
    assert np.all(smooth > sharp / 2)
    crossover = 1000 * 0.02 / (0.8 / 0.05)
    at_crossover = numpy_function(thresholds.SMOOTH_RATE)(crossover, 1000, 0.02, 0.8, 0.05)
    assert at_crossover == pytest.approx(0.02 / crossover / 2, rel=CLOSED_FORM)


def test_min_and_max_form_are_the_two_sides_of_one_pair():
    low = numpy_function(thresholds.MIN_FORM)(INTERVALS, 1000, 0.02, 0.8)
    high = numpy_function(thresholds.MAX_FORM)(INTERVALS, 1000, 0.02, 0.8)
    np.testing.assert_allclose(low * high, 0.02 / INTERVALS * 0.8 / 1000, rtol=CLOSED_FORM)
    assert thresholds.CROSSOVER.expression.subs({R_batch: C, R_crit: B}) == T * C / B


def test_without_honest_signal_the_smooth_form_is_the_boundary():
    rate = numpy_function(thresholds.SMOOTH_RATE)(INTERVALS, 1000, 0.02, 0.8, 0.0)
    np.testing.assert_allclose(rate, 0.02 / INTERVALS, rtol=LIMIT)

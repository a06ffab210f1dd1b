"""How far the steps of a cycle carry, and the boundary exponent that follows."""

import itertools

import numpy as np
import pytest
import sympy as sp

from tests.support.tolerances import CLOSED_FORM, ROUNDED
from theory.coherence import BOUNDARY_EXPONENT, LOCAL_EXPONENT, SQUARE_DISPLACEMENT
from theory.numeric import numpy_function
from theory.symbols import S, alpha, beta, q

SLOPE = 1e-6
"""A central difference in log S with a step of 1e-4 against the derivative: its error is of second order."""
HUNDREDTH = ROUNDED / 100
"""A number that was written down with two digits."""


def steps_with_cosine(num_steps, cosine):
    """Unit vectors, every two of which have the same cosine: one shared axis, and one axis each."""
    own = np.sqrt(1.0 - cosine) * np.eye(num_steps)
    return np.column_stack([np.full(num_steps, np.sqrt(cosine)), own])


@pytest.mark.parametrize("cosine", [0.0, 0.01, 0.3, 1.0])
@pytest.mark.parametrize("num_steps", [1, 2, 7, 64])
def test_the_square_displacement_is_the_sum_over_all_pairs_of_steps(num_steps, cosine):
    steps = steps_with_cosine(num_steps, cosine)
    pairs = sum(float(one @ other) for one, other in itertools.product(steps, steps))
    assert float(steps.sum(axis=0) @ steps.sum(axis=0)) == pytest.approx(pairs, rel=CLOSED_FORM)
    assert float(numpy_function(SQUARE_DISPLACEMENT)(num_steps, cosine)) == pytest.approx(pairs, rel=CLOSED_FORM)


def test_the_mean_cosine_is_all_that_counts():
    """Steps in random directions: the sum is that of S^2 cosines, whose mean off the diagonal is q."""
    steps = np.random.default_rng(0).normal(size=(20, 5))
    steps /= np.linalg.norm(steps, axis=1, keepdims=True)
    mean = (steps @ steps.T)[~np.eye(20, dtype=bool)].mean()
    total = steps.sum(axis=0)
    assert float(numpy_function(SQUARE_DISPLACEMENT)(20, mean)) == pytest.approx(total @ total, rel=CLOSED_FORM)


def test_what_is_not_coherent_falls_with_the_root_of_the_interval_and_what_is_with_the_interval():
    exponent = LOCAL_EXPONENT.expression
    assert sp.simplify(exponent.subs(q, 0)) == -sp.Rational(1, 2)
    assert sp.simplify(exponent.subs(q, 1)) == -1
    assert sp.simplify(SQUARE_DISPLACEMENT.expression.subs(q, 0)) == S
    assert sp.simplify(SQUARE_DISPLACEMENT.expression.subs(q, 1) - S**2) == 0


def test_any_coherence_wins_over_a_long_cycle():
    assert sp.limit(LOCAL_EXPONENT.expression.subs(q, sp.Rational(1, 100)), S, sp.oo) == -1


@pytest.mark.parametrize("cosine", [0.0, 0.02, 0.5])
@pytest.mark.parametrize("interval", [2.0, 8.0, 100.0])
def test_the_local_exponent_is_the_slope_of_the_rate_that_keeps_the_displacement(interval, cosine):
    h = 1e-4
    squares = numpy_function(SQUARE_DISPLACEMENT)(interval * np.exp([-h, h]), cosine)
    log_rates = -0.5 * np.log(squares)
    slope = (log_rates[1] - log_rates[0]) / (2 * h)
    assert float(numpy_function(LOCAL_EXPONENT)(interval, cosine)) == pytest.approx(slope, rel=SLOPE)


@pytest.mark.parametrize(
    ("share", "exponents"),
    [(0.1, (-0.52, -0.57, -0.70, -0.86)), (0.22, (-0.58, -0.72, -0.88, -0.96))],
)
def test_the_exponents_of_the_design(share, exponents):
    """Gradients whose signal has this share of their length: q is its square."""
    found = numpy_function(LOCAL_EXPONENT)([4.0, 16.0, 64.0, 256.0], share**2)
    np.testing.assert_allclose(found, exponents, atol=HUNDREDTH)


def test_the_boundary_exponent_is_minus_beta_over_alpha():
    assert sp.simplify(BOUNDARY_EXPONENT.expression + beta / alpha) == 0
    constant, level = 3.0, 0.25
    rates = [(level / (constant * interval**0.6)) ** (1 / 0.8) for interval in (4.0, 8.0)]
    slope = np.log(rates[1] / rates[0]) / np.log(2.0)
    assert float(numpy_function(BOUNDARY_EXPONENT)(0.8, 0.6)) == pytest.approx(slope, rel=CLOSED_FORM)


def test_coherent_steps_are_a_drift_that_grows_with_the_interval():
    """Displacement eta * sqrt(D^2) has alpha = 1 and, at q = 0 and q = 1, a power of S."""
    for cosine, power in ((0, sp.Rational(1, 2)), (1, sp.Integer(1))):
        walked = sp.sqrt(SQUARE_DISPLACEMENT.expression.subs(q, cosine))
        assert sp.simplify(walked / S**power) == 1
        assert BOUNDARY_EXPONENT.expression.subs({alpha: 1, beta: power}) == LOCAL_EXPONENT.expression.subs(q, cosine)

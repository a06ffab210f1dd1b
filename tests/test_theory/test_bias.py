import numpy as np
import pytest
import sympy as sp

from tests.support.tolerances import CLOSED_FORM
from theory import bias
from theory.numeric import numpy_function
from theory.symbols import L_D, G_upd, L_b, L_phi, M, S, eta


def test_slope_is_sampling_part_plus_integrand_part():
    assert sp.expand(bias.BIAS_SLOPE.expression - (2 * M * L_D + L_phi)) == 0


def test_sampling_part_bounds_the_difference_of_two_expectations():
    rng = np.random.default_rng(20260701)
    for _ in range(200):
        p, q = rng.dirichlet(np.ones(5), size=2)
        f = rng.uniform(-1.0, 1.0, size=5)
        total_variation = 0.5 * np.abs(p - q).sum()
        bound = numpy_function(bias.BIAS_SLOPE)(np.abs(f).max(), total_variation, 0.0)
        assert abs(f @ (p - q)) <= bound
    f = np.sign(p - q)  # the bound is reached, so its factor 2 is needed
    assert abs(f @ (p - q)) == pytest.approx(float(numpy_function(bias.BIAS_SLOPE)(1.0, total_variation, 0.0)))


def test_sawtooth_is_zero_at_every_sync_and_grows_by_one_update_a_step():
    step = np.arange(1, 13)
    bound = numpy_function(bias.STEP_BOUND)(step, 4, 0.5, 3.0, 2.0)
    np.testing.assert_array_equal(bound, [0.0, 3.0, 6.0, 9.0] * 3)


def test_the_step_bound_is_the_lag_bound_at_its_lag():
    step = np.arange(1, 40)
    np.testing.assert_array_equal(
        numpy_function(bias.STEP_BOUND)(step, 7, 0.1, 1.3, 0.7),
        numpy_function(bias.LAG_BOUND)((step - 1) % 7, 0.1, 1.3, 0.7),
    )


@pytest.mark.parametrize("interval", [1, 2, 5, 64])
def test_maximum_and_mean_of_a_cycle(interval):
    lags = np.arange(interval)
    bound = numpy_function(bias.LAG_BOUND)(lags, 0.1, 1.3, 0.7)
    maximum = numpy_function(bias.CYCLE_MAXIMUM)(interval, 0.1, 1.3, 0.7)
    mean = numpy_function(bias.CYCLE_MEAN)(interval, 0.1, 1.3, 0.7)
    np.testing.assert_allclose(maximum, bound.max(), rtol=CLOSED_FORM)
    np.testing.assert_allclose(mean, bound.mean(), rtol=CLOSED_FORM)


def test_the_bound_is_of_order_s_eta():
    ratio = bias.CYCLE_MAXIMUM.expression / (S * eta)
    assert sp.limit(ratio, S, sp.oo) == L_b * G_upd
    assert sp.limit(bias.CYCLE_MEAN.expression / (S * eta), S, sp.oo) == L_b * G_upd / 2

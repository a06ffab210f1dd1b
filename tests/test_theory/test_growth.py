"""Drift inside a cycle with momentum, a restoring rate, and what it says about the boundary."""

import itertools

import numpy as np
import pytest
import sympy as sp

from tests.support.tolerances import CLOSED_FORM, LIMIT, ROUNDED
from theory import coherence, growth
from theory.checks.coherence import CHECKS
from theory.errors import InputError
from theory.growth import CycleDrift, cosine_from_drift, cosine_from_slope
from theory.numeric import numpy_function
from theory.symbols import S, beta1, eta, j, q

THOUSANDTH = ROUNDED / 1000
"""A number that was written down with three digits."""
SAMPLED = 0.05
"""10 000 coordinates give a mean square to 1.4 %: with a fixed seed a false alarm has a chance of 5e-4."""
NEARLY = 1e-5
"""The closed form a step of 1e-7 beside its removable gap, where cancellation costs half of the digits."""
COSINES = (0.0, 0.01, 0.3, 1.0)


@pytest.mark.parametrize("claim_id", CHECKS)
def test_every_check_holds(claim_id):
    assert [comparison for comparison in CHECKS[claim_id]() if not comparison.holds] == []


def test_without_momentum_it_is_the_walk_of_unit_steps():
    plain = coherence.SQUARE_DISPLACEMENT.expression
    assert sp.expand(growth.SQUARE_DRIFT.expression.subs(j, S).subs(beta1, 0).subs(0**S, 0) - plain) == 0


@pytest.mark.parametrize(("momentum", "rms"), [(0.9, 0.229), (0.0, 1.0), (0.95, 0.160)])
def test_an_update_is_small_in_pure_noise_and_full_where_all_persists(momentum, rms):
    found = numpy_function(growth.UPDATE_RMS)([0.0, 1.0], momentum)
    np.testing.assert_allclose(found, [rms, 1.0], atol=THOUSANDTH)


def test_updates_of_pure_noise_look_aligned():
    """Consecutive updates have the cosine beta1 though the gradients have none."""
    one, zero = numpy_function(growth.COVARIANCE)([1.0, 0.0], 0.0, 0.9)
    assert one / zero == pytest.approx(0.9, rel=CLOSED_FORM)


@pytest.mark.parametrize("cosine", [0.0, 0.1])
def test_torch_adam_drifts_as_the_formula_says(cosine):
    torch = pytest.importorskip("torch")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        squares = torch_adam_squares(torch, cosine, num_lags=30)
    finally:
        torch.set_num_threads(threads)
    lags = np.arange(1, 31)
    np.testing.assert_allclose(squares / CycleDrift(cosine).square(lags), np.ones(30), atol=SAMPLED)


def torch_adam_squares(torch, cosine, *, num_lags, rate=1e-3, warm_up=400, width=10_000):
    generator = torch.Generator().manual_seed(1)
    place = torch.zeros(width, dtype=torch.float64, requires_grad=True)
    adam = torch.optim.Adam([place], lr=rate, betas=(0.9, 0.999))
    persistent = torch.randint(0, 2, (width,), generator=generator).double() * 2 - 1
    squares = []
    for step in range(warm_up + num_lags):
        if step == warm_up:
            start = place.detach().clone()
        noise = torch.randn(width, generator=generator, dtype=torch.float64)
        place.grad = cosine**0.5 * persistent + (1 - cosine) ** 0.5 * noise
        adam.step()
        if step >= warm_up:
            squares.append(float(((place.detach() - start) ** 2).mean()) / rate**2)
    return np.array(squares)


@pytest.mark.parametrize("cosine", COSINES)
@pytest.mark.parametrize("rate", [0.01, 0.3])
def test_the_restored_drift_is_the_sum_over_all_pairs(cosine, rate):
    covariance = numpy_function(growth.COVARIANCE)
    for lag in (1, 2, 5, 12):
        total = sum(
            (1 - rate) ** (one + other) * float(covariance(abs(one - other), cosine, 0.8))
            for one, other in itertools.product(range(lag), repeat=2)
        )
        assert float(CycleDrift(cosine, 0.8, rate).square(lag)) == pytest.approx(total, rel=CLOSED_FORM)


def test_a_small_restoring_rate_changes_nothing_and_its_gap_is_closed():
    lags = np.array([1, 3, 10, 50])
    with_it, without = (CycleDrift(0.05, 0.9, rate).square(lags) for rate in (1e-6, 0.0))
    np.testing.assert_allclose(with_it, without, rtol=1e-4)  # 50 lags lose 1e-6 each
    around = np.mean([CycleDrift(0.05, 0.9, rate).square(lags) for rate in (0.1 - 1e-4, 0.1 + 1e-4)], axis=0)
    np.testing.assert_allclose(CycleDrift(0.05, 0.9, 0.1).square(lags), around, rtol=NEARLY)


def test_the_exponent_starts_at_one_rises_and_returns():
    exponents = CycleDrift(0.001).exponent([2, 150, 1_000_000])
    assert exponents[0] < -0.9
    assert exponents[1] > -0.62
    assert exponents[2] == pytest.approx(-1.0, abs=1e-3)
    assert float(CycleDrift(0.0).exponent(1e9)) == pytest.approx(-0.5, abs=LIMIT * 100)
    assert float(CycleDrift(1.0).exponent(7)) == pytest.approx(-1.0, rel=CLOSED_FORM)


def test_a_restoring_rate_flattens_the_drift_and_the_boundary():
    exponents = CycleDrift(0.05, 0.9, 0.02).exponent([2, 50, 200, 1000])
    assert np.all(np.diff(exponents) > 0.0)
    assert -1e-6 < exponents[-1] <= 0.0
    settled = CycleDrift(0.05, 0.9, 0.02).square(2000)
    assert float(settled) == pytest.approx(float(numpy_function(growth.PLATEAU)(0.05, 0.9, 0.02)), rel=CLOSED_FORM)


def test_the_crossovers_part_the_three_stretches():
    cosine, momentum = 1e-4, 0.9
    end = float(numpy_function(growth.BALLISTIC_END)(momentum))
    start = float(numpy_function(growth.COHERENT_START)(cosine))
    assert (end, start) == (pytest.approx(19.0), pytest.approx(9999.0))
    slopes = CycleDrift(cosine, momentum).slope([1, np.sqrt(end * start), 100 * start])
    np.testing.assert_allclose(slopes, [1.0, 0.5, 1.0], atol=0.05)  # far from a crossover, not infinitely far
    assert float(numpy_function(growth.NO_DIFFUSION)(momentum)) == pytest.approx(0.05)


@pytest.mark.parametrize("momentum", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("cosine", COSINES)
def test_the_cosine_comes_back(cosine, momentum):
    walk = CycleDrift(cosine, momentum)
    squares = tuple(float(value) for value in 7.0 * walk.square((2, 40)))
    assert cosine_from_drift((2, 40), squares, momentum=momentum) == pytest.approx(cosine, abs=LIMIT)
    assert cosine_from_slope(float(walk.slope(25)), 25, momentum=momentum) == pytest.approx(cosine, abs=LIMIT)


def test_noise_breaks_the_product_but_not_for_long():
    product = numpy_function(growth.PRODUCT)([1.0, 16.0, 1e8], 0.05, 0.0, 1.0)
    limit = float(numpy_function(growth.LIMIT_PRODUCT)(0.05, 1.0))
    assert np.all(np.diff(product) > 0.0)
    assert product[0] == pytest.approx(1.0, rel=CLOSED_FORM)
    assert product[-1] == pytest.approx(limit, rel=1e-6)  # 1/(2*q*S) is 1e-7
    assert sp.limit(growth.CLOCK_SQUARE.expression / eta, q, 0) == sp.Symbol("tau", nonnegative=True)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: CycleDrift(1.2), r"pair_cosine must be in \[0, 1\], got 1.2\. Average"),
        (lambda: CycleDrift(float("nan")), r"pair_cosine must be in \[0, 1\], got nan"),
        (lambda: CycleDrift(0.1, 1.0), r"momentum must be in \[0, 1\), got 1.0\. Give Adam's beta1"),
        (lambda: CycleDrift(0.1, 0.9, 1.0), r"restoring must be 0 or in \[1e-6, 1\), got 1.0"),
        (lambda: CycleDrift(0.1).square(0), r"lags must be numbers of steps >= 1, got 0\. At lag 0"),
        (lambda: CycleDrift(0.1).exponent([2, np.nan]), r"sync_intervals must be numbers of steps >= 1"),
        (lambda: cosine_from_drift((5, 2), (1.0, 2.0)), r"lags must grow, got \(5, 2\)"),
        (lambda: cosine_from_drift((2, 5), (0.0, 2.0)), r"squares must be two positive finite numbers"),
        (lambda: cosine_from_slope(float("inf"), 5), r"slope must be finite, got inf"),
        (lambda: cosine_from_slope(0.5, 5, momentum=-0.1), r"momentum must be in \[0, 1\), got -0.1"),
    ],
)
def test_bad_input_says_what_must_hold(build, message):
    with pytest.raises(InputError, match=message):
        build()

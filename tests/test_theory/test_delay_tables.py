"""Known numbers of the stable learning rate, and bad input."""

import numpy as np
import pytest

from theory.delay.schedules import Ema, Fixed, HeavyBall, Late, Mixed, Periodic, Weights
from theory.delay.stability import stability
from theory.errors import InputError

INTERVALS = (1, 2, 4, 8, 16, 32, 64, 128)
HUNDREDTH = 0.0051
"""A number that was written down with two decimals."""
FOUR = 5.1e-5
"""A number that was written down with four decimals."""


@pytest.mark.parametrize(
    ("kept", "products"),
    [
        (0.0, (2, 2, 2, 2, 2, 2, 2, 2)),
        (0.5, (6, 5.00, 3.58, 2.66, 2.29, 2.13, 2.06, 2.03)),
        (0.9, (38, 4.22, 2.92, 2.71, 2.98, 4.07, 2.78, 2.33)),
        (0.99, (398, 4.02, 2.69, 2.32, 2.20, 2.19, 2.28, 2.55)),
    ],
)
def test_products_with_momentum(kept, products):
    mean = [interval * stability(Periodic(interval), momentum=Ema(kept)).upper for interval in INTERVALS]
    ball = [interval * stability(Periodic(interval), momentum=HeavyBall(kept)).upper for interval in INTERVALS]
    np.testing.assert_allclose(mean, products, atol=HUNDREDTH)
    np.testing.assert_allclose(np.array(ball) / (1.0 - kept), products, atol=HUNDREDTH)


def test_fixed_lags():
    found = [stability(Fixed(lag)).upper for lag in (0, 1, 2, 4, 8, 16)]
    np.testing.assert_allclose(found, (2, 1, 0.6180, 0.3473, 0.1845, 0.0952), atol=FOUR)
    assert stability(Fixed(3)).constant == pytest.approx(np.pi / 2)


def test_mixed_lags():
    found = [count * stability(Mixed(count)).upper for count in (2, 4, 8, 16)]
    np.testing.assert_allclose(found, (4.00, 4.69, 4.87, 4.92), atol=HUNDREDTH)
    assert stability(Mixed(3)).constant == pytest.approx(np.pi**2 / 2)
    assert stability(Weights((0.25,) * 4)).upper == pytest.approx(stability(Mixed(4)).upper)
    assert stability(Weights((0.25,) * 4)).constant is None


def test_late_syncs():
    np.testing.assert_allclose([7 * stability(Late(7, late)).upper for late in (0, 1, 2)], (2, 1, 0.6180), atol=FOUR)


def test_partly_fresh_gradients():
    shares = (0.6, 0.75, 0.9, 0.99, 1.0, 1.2, 1.5)
    constants = [stability(Periodic(5), stale_share=share).constant for share in shares]
    np.testing.assert_allclose(constants, (4.02, 2.77, 2.23, 2.02, 2, 1.68, 1.39), atol=HUNDREDTH)
    assert stability(Periodic(3), stale_share=0.4).upper == pytest.approx(2.641, abs=5e-4)
    found = stability(Periodic(2), stale_share=0.75)
    assert found.upper == pytest.approx(1.172, abs=5e-4)
    np.testing.assert_allclose(found.islands, [(6.83, 8.0)], atol=HUNDREDTH)


@pytest.mark.parametrize(("lag", "ratio"), [(1, 1.00), (4, 1.06), (8, 1.12), (16, 1.20), (32, 1.30), (128, 1.47)])
def test_heavy_ball_at_a_fixed_lag(lag, ratio):
    assert stability(Fixed(lag), momentum=HeavyBall(0.9)).upper * lag / 0.1 == pytest.approx(ratio, abs=HUNDREDTH)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Periodic(0), "sync_interval must be an integer >= 1, got 0"),
        (lambda: Mixed(2.0), "sync_interval must be an integer >= 1, got 2.0"),
        (lambda: Late(2, -1), "cycles_late must be an integer >= 0, got -1"),
        (lambda: Fixed(-1), "lag must be an integer >= 0, got -1"),
        (lambda: Weights((0.5, 0.4)), r"weights must sum to 1, got 0\.9"),
        (lambda: Weights((1.5, -0.5)), "weights must be parts of 0 or more"),
        (lambda: Weights(()), "weights must be parts of 0 or more"),
        (lambda: Ema(1.0), r"beta must be in \[0, 1\), got 1.0"),
        (lambda: HeavyBall(-0.1), r"mu must be in \[0, 1\), got -0.1"),
        (lambda: stability(Periodic(2), stale_share=2.0), "stale_share must be above 0 and below 2, got 2.0"),
        (lambda: stability(Periodic(2), weight_decay=float("nan")), "weight_decay must be a finite number >= 0"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(make, sentence):
    with pytest.raises(InputError, match=sentence):
        make()

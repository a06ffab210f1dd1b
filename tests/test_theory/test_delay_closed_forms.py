"""Closed forms with old gradients: against the stable intervals, each other and their limits."""

import numpy as np
import pytest
import sympy as sp

from tests.support.tolerances import CLOSED_FORM
from theory.checks.delay import CHECKS
from theory.delay import formulas as delay
from theory.delay.schedules import Ema, Fixed, HeavyBall, Late, Mixed, Periodic
from theory.delay.stability import stability
from theory.numeric import numpy_function
from theory.symbols import S, a, beta1, f, mu

CROSSING = 1e-10
"""A bisected crossing against a closed form; the root it is read from is good to about 1e-13."""
LONG = 2e-2
"""A product at S = 100 against its limit, whose error is of the order 1/S."""


def value(formula, *arguments):
    return float(numpy_function(formula)(*arguments))


@pytest.mark.parametrize("claim_id", CHECKS)
def test_every_check_holds(claim_id):
    assert all(one.holds for one in CHECKS[claim_id]()), CHECKS[claim_id]()


@pytest.mark.parametrize("lag", [0, 1, 2, 7, 40])
def test_a_fixed_lag(lag):
    assert stability(Fixed(lag)).upper == pytest.approx(value(delay.FIXED_BOUND, lag), rel=CROSSING)


@pytest.mark.parametrize(("interval", "late"), [(1, 0), (5, 0), (64, 0), (3, 1), (16, 2)])
def test_late_syncs(interval, late):
    found = stability(Late(interval, late))
    assert found.upper == pytest.approx(value(delay.LATE_BOUND, interval, late), rel=CROSSING)
    assert found.constant == pytest.approx(interval * found.upper, rel=CROSSING)


@pytest.mark.parametrize("interval", [2, 3, 4, 7, 32])
@pytest.mark.parametrize("share", [0.2, 0.45, 0.55, 0.75, 0.999, 1.001, 1.3, 1.9])
def test_partly_fresh_gradients(interval, share):
    found = stability(Periodic(interval), stale_share=share)
    if share > 0.5:
        expected = value(delay.STALE_BOUND, interval, share)
    elif interval % 2:
        expected = value(delay.FRESH_ODD_BOUND, interval, share)
    else:
        expected = value(delay.FRESH_EVEN_BOUND, share)
    assert found.upper == pytest.approx(expected, rel=CROSSING)
    island = 0.5 < share < 1.0 and interval % 2 == 0
    assert len(found.islands) == island
    if island:
        ends = (value(delay.ISLAND_START, interval, share), value(delay.FRESH_EVEN_BOUND, share))
        assert found.islands[0] == pytest.approx(ends, rel=CROSSING)


@pytest.mark.parametrize("kept", [0.1, 0.5, 0.9, 0.99])
@pytest.mark.parametrize("interval", [2, 3, 8, 32, 64, 200])
def test_momentum_binds_by_the_turn_or_the_flip(interval, kept):
    both = [value(formula, interval, kept) for formula in (delay.MEAN_FLIP, delay.MEAN_TURN)]
    assert stability(Periodic(interval), momentum=Ema(kept)).upper == pytest.approx(min(both), rel=CROSSING)


def test_the_peak_of_the_product_is_where_turn_and_flip_meet():
    intervals = np.arange(2.0, 200.0)
    turn, flip = (numpy_function(formula)(intervals, 0.9) for formula in (delay.MEAN_TURN, delay.MEAN_FLIP))
    meet = int(np.argmax(turn > flip))
    assert np.all(turn[:meet] <= flip[:meet])
    assert np.all(turn[meet:] > flip[meet:])
    late_peak = int(np.argmax((intervals * np.minimum(turn, flip))[10:])) + 10
    assert abs(late_peak - meet) <= 1
    assert 30.0 <= intervals[late_peak] <= 36.0


def test_momentum_without_a_sync_lag_is_the_known_bound():
    one = sp.simplify(delay.MEAN_FLIP.expression.subs(S, 1) - 2 * (1 + beta1) / (1 - beta1))
    assert one == 0
    assert sp.simplify(delay.MEAN_FLIP.expression.subs(beta1, 0) - 2 / S) == 0


def test_heavy_ball_is_the_mean_with_a_larger_step():
    for schedule in (Periodic(7), Fixed(3), Mixed(4)):
        mean, ball = (stability(schedule, momentum=kind(0.8), stale_share=0.9) for kind in (Ema, HeavyBall))
        assert mean.upper == pytest.approx(ball.upper * value(delay.HEAVY_BALL_GAIN, 0.8), rel=CLOSED_FORM)
        assert ball.constant == pytest.approx(0.2 * mean.constant, rel=CLOSED_FORM)
    assert sp.simplify(delay.HEAVY_BALL_GAIN.expression - 1 / (1 - mu)) == 0
    assert stability(Fixed(1), momentum=HeavyBall(0.9)).upper == pytest.approx(0.1, rel=CROSSING)


@pytest.mark.parametrize("decay", [0.0, 0.7, 3.0, 5.0])
def test_weight_decay(decay):
    assert stability(Fixed(0), weight_decay=decay).upper == pytest.approx(value(delay.DECAY_FRESH, decay), rel=CROSSING)
    assert stability(Fixed(1), weight_decay=decay).upper == pytest.approx(value(delay.DECAY_LATE, decay), rel=CROSSING)


def test_the_closed_forms_meet_where_they_should():
    assert sp.simplify(delay.CYCLE_MULTIPLIER.expression.subs(S, 1) - (1 - a)) == 0
    assert sp.limit(delay.STALE_LIMIT.expression, f, 1) == 2
    assert value(delay.FIXED_LIMIT, 1.0, 0.0) == pytest.approx(np.pi / 2, rel=CLOSED_FORM)
    assert value(delay.MIXED_PRODUCT, np.pi, 1.0) == pytest.approx(np.pi**2 / 2, rel=CLOSED_FORM)
    for share in (0.6, 0.9, 1.4):
        expected = np.arccos(-(1 - share) / share) / np.sqrt(2 * share - 1)
        assert value(delay.FIXED_LIMIT, share, 0.0) == pytest.approx(expected, rel=CLOSED_FORM)


@pytest.mark.parametrize(
    ("long", "given"),
    [
        (Periodic(100), {"stale_share": 0.75}),
        (Periodic(100), {"stale_share": 1.4, "weight_decay": 0.2}),
        (Late(100, 1), {"stale_share": 0.8, "momentum": Ema(0.1)}),
        (Fixed(99), {"stale_share": 0.9}),
        (Mixed(100), {"stale_share": 0.85}),
        (Mixed(100), {"stale_share": 1.3, "weight_decay": 0.1}),
    ],
)
def test_long_cycles_approach_the_constant(long, given):
    interval = long.lag + 1 if isinstance(long, Fixed) else long.sync_interval
    found = stability(long, **given)
    assert interval * found.upper == pytest.approx(found.constant, rel=LONG)


def test_no_constant_where_the_fresh_part_is_large_enough():
    assert stability(Periodic(4), stale_share=0.5).constant is None
    assert stability(Fixed(4), stale_share=0.5).constant is None
    assert stability(Mixed(4), stale_share=0.82).constant is None
    assert stability(Mixed(4), stale_share=0.823).constant is not None

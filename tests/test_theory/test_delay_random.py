"""Stable intervals against the steps written out, over random settings."""

import numpy as np
import pytest

from tests.support.delays import Run, crossing, one_lag, period_radius, sync_lags
from theory.delay.schedules import Ema, Fixed, HeavyBall, Late, Mixed, NoMomentum, Periodic, Weights
from theory.delay.stability import stability

CROSSING = 1e-9
"""A crossing that both sides bisect; the radius of up to twenty steps multiplied is good to about 1e-13."""
SETTINGS = 80
"""For each of the five kinds of schedule."""


def periodic(rng):
    interval = int(rng.integers(1, 9))
    return Periodic(interval), sync_lags(interval, 0)


def late(rng):
    interval, cycles = int(rng.integers(1, 6)), int(rng.integers(0, 3))
    return Late(interval, cycles), sync_lags(interval, cycles)


def fixed(rng):
    lag = int(rng.integers(0, 13))
    return Fixed(lag), one_lag(lag)


def mixed(rng):
    count = int(rng.integers(1, 9))
    return Mixed(count), ((1.0 / count,) * count,)


def weights(rng):
    drawn = rng.dirichlet(np.ones(rng.integers(1, 9)))
    parts = tuple(float(part) for part in drawn / drawn.sum())
    return Weights(parts), (parts,)


def random_setting(rng, schedule_of):
    schedule, lags = schedule_of(rng)
    kept = float(rng.uniform(0.0, 0.97))
    momentum, step = [
        (NoMomentum(), {}),
        (Ema(kept), {"keep": kept, "gain": 1.0 - kept}),
        (HeavyBall(kept), {"keep": kept}),
    ][rng.integers(3)]
    share = 1.0 if rng.random() < 0.3 else float(rng.uniform(0.05, 1.95))
    decay = 0.0 if rng.random() < 0.4 else float(rng.uniform(0.0, 1.5))
    found = stability(schedule, momentum=momentum, stale_share=share, weight_decay=decay)
    return found, Run(lags, share, decay=decay, **step)


@pytest.mark.parametrize("schedule_of", [periodic, late, fixed, mixed, weights])
def test_random_settings_agree_with_the_steps_written_out(schedule_of):
    rng = np.random.default_rng(0)
    for _ in range(SETTINGS):
        found, run = random_setting(rng, schedule_of)
        assert abs(crossing(run, found.upper) / found.upper - 1.0) < CROSSING, (found, run)
        for low, high in found.islands:
            assert abs(crossing(run, high, reach=1e-7) / high - 1.0) < CROSSING, (found, run)
            assert abs(crossing(run, low, reach=1e-7) / low - 1.0) < CROSSING, (found, run)


@pytest.mark.parametrize("schedule_of", [periodic, late, fixed, mixed, weights])
def test_what_is_stable_and_what_is_not_is_told_at_random_points(schedule_of):
    """Below the upper end, in and between the islands, and up to a hundred times beyond."""
    rng = np.random.default_rng(1)
    for _ in range(SETTINGS):
        found, run = random_setting(rng, schedule_of)
        intervals = [(0.0, found.upper), *found.islands]
        inside = found.upper * rng.uniform(0.0, 1.0, size=5)
        for a in [*inside, *(found.upper * np.geomspace(1.001, 100.0, 25))]:
            stable = any(low < a < high for low, high in intervals)
            assert stable == (period_radius(run, a) < 1.0), (a, found, run)


def test_settings_with_islands_are_among_the_random_ones():
    rng = np.random.default_rng(1)
    found = [random_setting(rng, schedule_of)[0] for schedule_of in (periodic, late, fixed) for _ in range(SETTINGS)]
    assert sum(bool(one.islands) for one in found) >= 10

"""Which learning rates are stable on a quadratic when gradients are old."""

from dataclasses import dataclass

import numpy as np

from theory.delay.crossings import Interval, affine_intervals, stable_intervals
from theory.delay.cycles import Past, cycle_crossings, cycle_radius, lagged, synced
from theory.delay.limits import limit
from theory.delay.schedules import Ema, Fixed, HeavyBall, Late, Mixed, Momentum, NoMomentum, Periodic, Schedule, Weights
from theory.errors import InputError

_NO_MOMENTUM = NoMomentum()

LONGEST = 300
"""Steps of all cycles that a gradient is late, up to which the search in a is well conditioned in float64."""


@dataclass(frozen=True)
class Stability:
    """Stable values of a = eta times the curvature.

    Attributes
    ----------
    upper : float
        Upper end [1] of the stable interval that starts at 0; the end itself is not stable.
    islands : tuple of (low, high)
        Stable intervals above it, from below.
    constant : float or None
        Limit [1] of S*a at the upper end as S grows, with all else as given; None where S*a has no limit, or the
        schedule is no family in S.
    """

    upper: float
    islands: tuple[Interval, ...]
    constant: float | None


def stability(
    schedule: Schedule,
    *,
    momentum: Momentum = _NO_MOMENTUM,
    stale_share: float = 1.0,
    weight_decay: float = 0.0,
) -> Stability:
    """Exact stable learning rates of gradient steps on a quadratic with old gradients.

    Parameters
    ----------
    schedule : Periodic, Late, Fixed, Mixed or Weights
        How old the gradients are.
    momentum : NoMomentum, Ema or HeavyBall
    stale_share : float
        Share of the curvature [1] that acts on the old x, in (0, 2); the rest acts on the present x.
    weight_decay : float
        Decoupled decay as a share of the curvature [1]: x <- (1 - a*weight_decay)*x - ... in each step.

    Returns
    -------
    Stability

    Raises
    ------
    InputError
        If `stale_share` is outside (0, 2), `weight_decay` is negative or not finite, `momentum` is none of the
        three, or a cycle with partly fresh gradients or decay is longer than `LONGEST` steps.

    Notes
    -----
    With decay, a single marginal point inside a stable interval (a = 1 for decay 1) may go unseen.

    Source: claims C16 to C22.

    >>> round(stability(Periodic(4)).upper, 12)
    0.5
    """
    if not 0.0 < stale_share < 2.0:
        raise InputError("stale_share", "be above 0 and below 2", stale_share, "A wholly stale gradient is 1.")
    if not 0.0 <= weight_decay < np.inf:
        raise InputError("weight_decay", "be a finite number >= 0", weight_decay, "No decay is 0.")
    if not isinstance(momentum, NoMomentum | Ema | HeavyBall):
        raise InputError("momentum", "be NoMomentum, Ema or HeavyBall", repr(momentum), "For Adam's use Ema(0.9).")
    past, scale = _past(momentum, stale_share, weight_decay)
    intervals = [(scale * low, scale * high) for low, high in _intervals(schedule, past)]
    constant = limit(schedule, stale_share, past.weight_decay)
    return Stability(intervals[0][1], tuple(intervals[1:]), None if constant is None else scale * constant)


def _past(momentum: Momentum, stale_share: float, weight_decay: float) -> tuple[Past, float]:
    """The step as one with a mean gradient, and the rate that heavy ball has for a rate of 1 there."""
    if isinstance(momentum, HeavyBall):  # the sum of gradients is the mean over 1 - mu; so the decay is rescaled
        scale = 1.0 - momentum.mu
        return Past(momentum.mu, stale_share, weight_decay * scale), scale
    return Past(momentum.beta if isinstance(momentum, Ema) else 0.0, stale_share, weight_decay), 1.0


def _intervals(schedule: Schedule, past: Past) -> tuple[Interval, ...]:
    if isinstance(schedule, Periodic):
        return _synced_intervals(schedule.sync_interval, 0, past)
    if isinstance(schedule, Late):
        return _synced_intervals(schedule.sync_interval, schedule.cycles_late, past)
    return affine_intervals(*lagged(_weights(schedule), past))


def _weights(schedule: Fixed | Mixed | Weights) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    if isinstance(schedule, Weights):
        return np.trim_zeros(np.array(schedule.weights, dtype=np.float64), "b")
    if isinstance(schedule, Mixed):
        return np.full(schedule.sync_interval, 1.0 / schedule.sync_interval)
    weights = np.zeros(schedule.lag + 1)
    weights[-1] = 1.0
    return weights


def _synced_intervals(sync_interval: int, cycles_late: int, past: Past) -> tuple[Interval, ...]:
    if past.stale_share == 1.0 and past.weight_decay == 0.0:
        return affine_intervals(*synced(sync_interval, cycles_late, past.beta))
    if sync_interval == 1:  # a cycle is a step
        return affine_intervals(*lagged(_weights(Fixed(cycles_late)), past))
    if sync_interval * (cycles_late + 1) > LONGEST:
        rule = f"be at most {LONGEST} steps, late cycles included, with partly fresh gradients or decay"
        raise InputError("sync_interval", rule, sync_interval, "Use `constant` of a shorter cycle, over S.")
    crossings = cycle_crossings(sync_interval, cycles_late, past)
    return stable_intervals(crossings, lambda a: cycle_radius(a, sync_interval, cycles_late, past))

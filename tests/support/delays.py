"""Delayed gradients step by step: the past is stacked, the steps of a period are multiplied."""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq


@dataclass(frozen=True)
class Run:
    """lags[i][j]: share of lag j in the i-th step of a period; stale share, momentum and decay as in a learner."""

    lags: tuple[tuple[float, ...], ...]
    stale_share: float = 1.0
    keep: float = 0.0
    gain: float = 1.0
    decay: float = 0.0


def sync_lags(interval, late):
    """The step i of a cycle is i + late*interval behind."""
    depth = (late + 1) * interval
    return tuple(tuple(np.eye(depth)[i + late * interval]) for i in range(interval))


def one_lag(lag):
    return ((*np.zeros(lag), 1.0),)


def period_radius(run, a):
    depth = max(len(row) for row in run.lags)
    period = np.eye(depth + 1)
    for row in run.lags:
        gradient = np.zeros(depth + 1)
        gradient[: len(row)] = run.stale_share * np.array(row)
        gradient[0] += 1.0 - run.stale_share
        buffer = run.gain * gradient
        buffer[depth] += run.keep
        step = np.zeros((depth + 1, depth + 1))
        for older in range(1, depth):
            step[older, older - 1] = 1.0
        step[depth] = buffer
        step[0] = -a * buffer
        step[0, 0] += 1.0 - a * run.decay
        period = step @ period
    return np.abs(np.linalg.eigvals(period)).max()


def crossing(run, near, reach=1e-3):
    """The a within a share `reach` of `near` at which the radius passes one; NaN if it does not."""
    low, high = near * (1.0 - reach), near * (1.0 + reach)
    if (period_radius(run, low) < 1.0) == (period_radius(run, high) < 1.0):
        return np.nan
    return brentq(lambda a: period_radius(run, a) - 1.0, low, high, xtol=1e-16, rtol=1e-14)


def first_unstable(run, top, count):
    """Lowest of `count` equally spaced a up to `top` that is not stable; infinity if all are."""
    for a in np.linspace(top / count, top, count):
        if period_radius(run, a) >= 1.0:
            return a
    return np.inf

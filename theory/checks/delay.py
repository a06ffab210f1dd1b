"""Checks of the claims on delay: spectral radii of steps written out, and where they pass one."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from theory.checking import Check, Comparison, close
from theory.delay import formulas as delay
from theory.formula import Formula
from theory.numeric import numpy_function

EXACT = 1e-9
"""A crossing found by bisection against a closed form."""
LIMIT = 2e-3
"""A limit extrapolated from three finite S: the next order, 1/S^3, is left."""


def _radius(a: float, steps: list[NDArray[np.float64]], keep: float, gain: float, decay: float) -> float:
    """Spectral radius of steps on (x_t, ..., x_{t-L}, m), each with its weights of the lags 0 to L."""
    size = len(steps[0])
    cycle = np.eye(size + 1)
    for weights in steps:
        step = np.zeros((size + 1, size + 1))
        step[-1] = [*(gain * weights), keep]
        step[0] = -a * step[-1]
        step[0, 0] += 1.0 - a * decay
        step[np.arange(1, size), np.arange(size - 1)] = 1.0
        cycle = step @ cycle
    return float(np.max(np.abs(np.linalg.eigvals(cycle))))


def _crossing(
    steps: list[NDArray[np.float64]],
    near: float,
    *,
    keep: float = 0.0,
    gain: float = 1.0,
    decay: float = 0.0,
    reach: float = 0.03,
) -> float:
    """The a near `near`, within a share `reach` of it, at which the radius of the steps passes one."""
    span = ((1.0 - reach) * near, (1.0 + reach) * near)
    found = brentq(lambda a: _radius(a, steps, keep, gain, decay) - 1.0, *span, xtol=1e-13)
    return float(found)


def _lags(weights: list[float], share: float = 1.0) -> NDArray[np.float64]:
    mixed = share * np.array(weights)
    mixed[0] += 1.0 - share
    return np.asarray(mixed, dtype=np.float64)


def _cycle(interval: int, late: int = 0, share: float = 1.0) -> list[NDArray[np.float64]]:
    """Weights of each step of a cycle: all on the sync point `late` cycles before the last."""
    past = np.eye((late + 1) * interval)
    return [_lags(list(past[late * interval + step]), share) for step in range(interval)]


def _fixed(lag: int, share: float = 1.0) -> list[NDArray[np.float64]]:
    return [_lags([*np.zeros(lag), 1.0], share)]


def _value(formula: Formula, *arguments: float) -> float:
    return float(numpy_function(formula)(*arguments))


def _extrapolated(product: Callable[[int], float]) -> float:
    """Limit of a product from S = 12, 24 and 48, its errors in 1/S and 1/S^2 removed."""
    return (8.0 * product(48) - 6.0 * product(24) + product(12)) / 3.0


def fixed_lag() -> tuple[Comparison, ...]:
    """Step the whole past forward and bisect where its spectral radius passes one."""
    lags = (0, 1, 2, 5)
    bounds = [_value(delay.FIXED_BOUND, lag) for lag in lags]
    found = [_crossing(_fixed(lag), bound) for lag, bound in zip(lags, bounds, strict=True)]
    limits, seen = [], []
    for share, decay in ((1.0, 0.0), (0.8, 0.0), (0.9, 0.2), (1.3, 0.0)):
        limit = _value(delay.FIXED_LIMIT, share, decay)
        product = _at_lag(limit, share, decay)
        limits.append(limit)
        seen.append(_extrapolated(product))
    return (
        close("bound at a lag", found, bounds, rtol=EXACT),
        close("S times the bound, long lag", seen, limits, rtol=LIMIT),
    )


def _at_lag(limit: float, share: float, decay: float) -> Callable[[int], float]:
    return lambda S: S * _crossing(_fixed(S - 1, share), limit / S, decay=decay, reach=0.25)


def periodic_sync() -> tuple[Comparison, ...]:
    """Multiply the steps of a cycle and bisect where the spectral radius passes one."""
    periodic = [_value(delay.PERIODIC_BOUND, S) for S in (1, 3, 8)]
    late = [_value(delay.LATE_BOUND, S, d) for S, d in ((3, 0), (4, 1), (3, 2))]
    seen = [_crossing(_cycle(S), bound) for S, bound in zip((1, 3, 8), periodic, strict=True)]
    seen_late = [_crossing(_cycle(S, d), bound) for (S, d), bound in zip(((3, 0), (4, 1), (3, 2)), late, strict=True)]
    return (close("periodic", seen, periodic, rtol=EXACT), close("late", seen_late, late, rtol=EXACT))


def mixed_lags() -> tuple[Comparison, ...]:
    """Bisect the spectral radius at two S and extrapolate S times the bound."""
    angles = (2.0, 3.5, 4.0)
    shares = [_value(delay.MIXED_SHARE, angle) for angle in angles]
    limits = [_value(delay.MIXED_PRODUCT, angle, share) for angle, share in zip(angles, shares, strict=True)]
    seen = [_extrapolated(_at_mix(limit, share)) for limit, share in zip(limits, shares, strict=True)]
    whole = _value(delay.MIXED_LIMIT)
    return (
        close("partly fresh", seen, limits, rtol=LIMIT),
        close("wholly stale", _extrapolated(_at_mix(whole, 1.0)), whole, rtol=LIMIT),
    )


def _at_mix(limit: float, share: float) -> Callable[[int], float]:
    return lambda S: S * _crossing([_lags([1.0 / S] * S, share)], limit / S, reach=0.25)


def partly_fresh() -> tuple[Comparison, ...]:
    """Multiply the steps of a cycle: its multiplier, and bisection to where it passes one."""
    cases = (
        (delay.STALE_BOUND, (2, 0.75), 2),
        (delay.STALE_BOUND, (5, 1.4), 5),
        (delay.FRESH_ODD_BOUND, (3, 0.4), 3),
        (delay.ISLAND_START, (2, 0.75), 2),
    )
    bounds = [_value(formula, *arguments) for formula, arguments, _ in cases]
    seen = [
        _crossing(_cycle(S, share=float(arguments[-1])), bound)
        for (_, arguments, S), bound in zip(cases, bounds, strict=True)
    ]
    even = [_value(delay.FRESH_EVEN_BOUND, share) for share in (0.3, 0.75)]
    seen_even = [_crossing(_cycle(2, share=share), bound) for share, bound in zip((0.3, 0.75), even, strict=True)]
    limits = [_value(delay.STALE_LIMIT, share) for share in (0.75, 1.2)]
    grown = [_extrapolated(_at_share(limit, share)) for limit, share in zip(limits, (0.75, 1.2), strict=True)]
    multiplier = _value(delay.CYCLE_MULTIPLIER, 4, 0.9, 0.7)
    return (
        close("bounds", seen, bounds, rtol=EXACT),
        close("even S", seen_even, even, rtol=EXACT),
        close("long cycle", grown, limits, rtol=LIMIT),
        close("cycle", _radius(0.9, _cycle(4, share=0.7), 0.0, 1.0, 0.0), abs(multiplier), rtol=EXACT),
    )


def _at_share(limit: float, share: float) -> Callable[[int], float]:
    return lambda S: S * _crossing(_cycle(S, share=share), limit / S, reach=0.25)


def momentum() -> tuple[Comparison, ...]:
    """Multiply the steps of a cycle with the mean gradient in the state and bisect the spectral radius."""
    turning, flipping = ((2, 0.9), (8, 0.9), (4, 0.99)), ((1, 0.9), (40, 0.9), (8, 0.5))
    turn = [_value(delay.MEAN_TURN, *case) for case in turning]
    flip = [_value(delay.MEAN_FLIP, *case) for case in flipping]
    seen_turn = [_crossing(_cycle(S), near, keep=b, gain=1 - b) for (S, b), near in zip(turning, turn, strict=True)]
    seen_flip = [_crossing(_cycle(S), near, keep=b, gain=1 - b) for (S, b), near in zip(flipping, flip, strict=True)]
    return (close("turn", seen_turn, turn, rtol=EXACT), close("flip", seen_flip, flip, rtol=EXACT))


def heavy_ball() -> tuple[Comparison, ...]:
    """Bisect the bound with the sum of gradients in the state, and with their mean at a larger step."""
    late = [_value(delay.HEAVY_BALL_LATE, mu) for mu in (0.0, 0.5, 0.9)]
    seen = [_crossing(_fixed(1), bound, keep=mu) for mu, bound in zip((0.0, 0.5, 0.9), late, strict=True)]
    mean = _crossing(_fixed(1), 1.0, keep=0.8, gain=1.0 - 0.8)
    ball = _crossing(_fixed(1), 0.2, keep=0.8)
    return (
        close("lag one", seen, late, rtol=EXACT),
        close("mean over sum", mean / ball, _value(delay.HEAVY_BALL_GAIN, 0.8), rtol=EXACT),
    )


def weight_decay() -> tuple[Comparison, ...]:
    """Bisect the spectral radius of a step that also shrinks x."""
    decays = (0.0, 0.5, 2.0, 4.0)
    fresh = [_value(delay.DECAY_FRESH, decay) for decay in decays]
    late = [_value(delay.DECAY_LATE, decay) for decay in decays]
    seen = [_crossing(_fixed(0), bound, decay=decay) for decay, bound in zip(decays, fresh, strict=True)]
    seen_late = [_crossing(_fixed(1), bound, decay=decay) for decay, bound in zip(decays, late, strict=True)]
    return (close("fresh", seen, fresh, rtol=EXACT), close("lag one", seen_late, late, rtol=EXACT))


CHECKS: dict[str, Check] = {
    "C16": fixed_lag,
    "C17": periodic_sync,
    "C18": mixed_lags,
    "C19": partly_fresh,
    "C20": momentum,
    "C21": heavy_ball,
    "C22": weight_decay,
}

"""Stable intervals of polynomials: where a root can cross the unit circle, and which intervals between are stable.

A root of a real polynomial crosses the circle at 1, at -1 or as a pair. The crossings are all found as roots of
another polynomial, so none can be missed; each interval between two is then decided by its middle.
"""

from collections.abc import Callable

import numpy as np
from numpy.polynomial import chebyshev, polynomial
from numpy.typing import NDArray
from scipy.optimize import brentq

Array = NDArray[np.float64]
Interval = tuple[float, float]

NEAR = 1e-6
"""A root this close to the real axis or to the end of an interval counts: a double root is found to about 1e-8."""
SAME = 1e-8
"""Crossings this close, as a share of their size, are one."""
ZERO = 1e-12
"""A crossing this small, as a share of the largest, is the start of the first interval, a = 0, with its rounding."""
AT_INFINITY = 1e-10
"""A slope this small, as a share of its coefficients, is zero with its rounding: the crossing is at infinite a."""
TOUCH = 1e-10
"""A radius this close to one at a crossing touches the circle."""


def radius(coefficients: Array) -> float:
    """Largest modulus of the roots of a polynomial.

    Parameters
    ----------
    coefficients : array, shape (degree + 1,)
        From the constant term upwards; the last is not zero.
    """
    roots = polynomial.polyroots(np.trim_zeros(coefficients, "f"))
    return float(np.max(np.abs(roots), initial=0.0))


def affine_crossings(constant: Array, slope: Array) -> Array:
    """All a > 0 at which constant(z) + a*slope(z) has a root on the unit circle.

    There a = -constant/slope must be real. The imaginary part of constant*conj(slope) on the circle is sin(w) times
    a polynomial in cos(w), of which every root is found.

    Parameters
    ----------
    constant, slope : array, shape (degree + 1,)
        Real coefficients from the constant term upwards.

    Returns
    -------
    array, shape (crossings,)
        Not sorted.
    """
    products = np.convolve(constant, slope[::-1])  # of z^(1 - len) to z^(len - 1)
    middle = len(slope) - 1
    sines = products[middle + 1 :] - products[middle - 1 :: -1]  # of sin(w), sin(2w), ...
    angles = np.concatenate([[0.0, np.pi], _angles(sines)])
    points = np.exp(1j * angles)
    above, below = polynomial.polyval(points, constant), polynomial.polyval(points, slope)
    kept = np.abs(below) > AT_INFINITY * np.sum(np.abs(slope))
    found = -(above[kept] / below[kept]).real
    return np.asarray(found[found > ZERO * np.max(found, initial=0.0)], dtype=np.float64)


def _angles(sines: Array) -> Array:
    """Angles in (0, pi) at which sum_k sines[k-1]*sin(k*w) is zero, polished by Newton steps."""
    cosines = np.zeros(len(sines))
    for order in range(len(sines)):  # U_n = 2*(T_n + T_{n-2} + ...), with T_0 once
        cosines[order] = 2.0 * np.sum(sines[order::2])
    cosines[0] /= 2.0
    near = real_roots(cosines)
    angles = np.arccos(np.clip(near, -1.0, 1.0))
    orders = np.arange(1, len(sines) + 1)
    for _ in range(3):
        phase = np.outer(angles, orders)
        value, rate = np.sin(phase) @ sines, np.cos(phase) @ (orders * sines)
        with np.errstate(divide="ignore", invalid="ignore"):
            step = value / rate
        angles = angles - np.where(np.abs(step) < NEAR, step, 0.0)  # a long step is no polish
    return angles


def real_roots(coefficients: Array) -> Array:
    """Roots in [-1, 1] of a Chebyshev series, those within `NEAR` of it included.

    Parameters
    ----------
    coefficients : array, shape (degree + 1,)
    """
    size = float(np.max(np.abs(coefficients), initial=0.0))
    if size == 0.0:
        return np.zeros(0)
    last = int(np.flatnonzero(np.abs(coefficients) > 1e-15 * size)[-1])
    roots = chebyshev.chebroots(coefficients[: last + 1] / size)
    kept = (np.abs(roots.imag) < NEAR) & (np.abs(roots.real) < 1.0 + NEAR)
    return np.asarray(roots.real[kept], dtype=np.float64)


INSIDE = 0.4837
"""Where in an interval its stability is looked at: no round share, where a marginal point of its own may lie."""


def stable_intervals(crossings: Array, radius_at: Callable[[float], float]) -> tuple[Interval, ...]:
    """Stable intervals between crossings, with polished ends.

    Parameters
    ----------
    crossings : array, shape (crossings,)
        All a > 0 at which a root may cross the circle; others do no harm.
    radius_at : callable
        Spectral radius at a.

    Returns
    -------
    tuple of (low, high)
        From below; the last is bounded, or its end is the last crossing.
    """
    ends = _apart(np.sort(crossings))
    middles = [low + INSIDE * (high - low) for low, high in zip([0.0, *ends], ends, strict=False)] + [2.0 * ends[-1]]
    stable = [radius_at(middle) < 1.0 for middle in middles]
    intervals: list[Interval] = []
    low = 0.0
    for index, end in enumerate(ends):
        if stable[index] != stable[index + 1]:
            end = _polished(radius_at, middles[index], middles[index + 1])
        elif not (stable[index] and radius_at(end) > 1.0 - TOUCH):
            continue
        if stable[index]:
            intervals.append((low, end))
        low = end
    return (*intervals, (low, np.inf)) if stable[-1] else tuple(intervals)


def affine_intervals(constant: Array, slope: Array) -> tuple[Interval, ...]:
    """Stable intervals of the polynomial constant + a*slope, coefficients from the constant term upwards."""

    def radius_at(a: float) -> float:
        return radius(constant + a * slope)

    return stable_intervals(affine_crossings(constant, slope), radius_at)


def _apart(ends: Array) -> list[float]:
    kept: list[float] = []
    for end in ends:
        if not kept or end > kept[-1] * (1.0 + SAME):
            kept.append(float(end))
    return kept


def _polished(radius_at: Callable[[float], float], low: float, high: float) -> float:
    """Where the radius passes one between two middles, with one crossing between them."""
    return float(brentq(lambda a: radius_at(a) - 1.0, low, high, xtol=1e-15 * high, rtol=1e-14))

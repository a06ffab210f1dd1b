"""The characteristic polynomials of delayed gradients on a quadratic, in a = eta times the curvature.

x <- (1 - a*omega)*x - a*m with m <- beta*m + (1 - beta)*g and g = (1 - rho)*x + rho*(stale x), all in units of the
curvature. Where every cycle does the same to the sync points, or every step the same to the past, the polynomial is
affine in a; else its coefficients are polynomials in a.
"""

from dataclasses import dataclass
from math import comb

import numpy as np
from numpy.polynomial import chebyshev

from theory.delay.crossings import Array, radius, real_roots


@dataclass(frozen=True)
class Past:
    """What a step is made of.

    Attributes
    ----------
    beta : float
        Share of the mean gradient kept.
    stale_share : float
        rho, share of the curvature that acts on the stale x.
    weight_decay : float
        omega, decay as a share of the curvature.
    """

    beta: float
    stale_share: float
    weight_decay: float


def lagged(weights: Array, past: Past) -> tuple[Array, Array]:
    """Polynomial constant + a*slope when lag j has the weight weights[j] in every step.

    Parameters
    ----------
    weights : array, shape (lags,)

    Returns
    -------
    constant, slope : array, shape (lags + 2,)
        From the constant term upwards.
    """
    shares = past.stale_share * weights
    shares[0] += 1.0 - past.stale_share
    older = np.zeros(len(weights) + 2)
    older[1:-1] = (1.0 - past.beta) * shares[::-1]
    kept = np.array([-past.beta, 1.0])
    constant, decay = np.zeros(len(weights) + 2), np.zeros(len(weights) + 2)
    constant[-3:] = np.convolve([-1.0, 1.0], kept)
    decay[-3:-1] = past.weight_decay * kept
    return constant, older + decay


def synced(sync_interval: int, cycles_late: int, beta: float) -> tuple[Array, Array]:
    """Polynomial constant + a*slope of the sync points, all of the curvature stale and no decay.

    A cycle adds the same gradient S times: the mean of the gradients moves to it by 1 - beta^S, and the sum of the
    means is k of the old mean and S - k of the gradient.

    Returns
    -------
    constant, slope : array, shape (cycles_late + 3,)
        From the constant term upwards.
    """
    kept = beta**sync_interval
    old = float(np.sum(beta ** np.arange(1, sync_interval + 1)))
    constant, slope = np.zeros(cycles_late + 3), np.zeros(cycles_late + 3)
    constant[-3:] = np.convolve([-1.0, 1.0], [-kept, 1.0])
    slope[:2] = [old * (1.0 - kept) - (sync_interval - old) * kept, sync_interval - old]
    return constant, slope


def cycle_polynomials(rates: Array, sync_interval: int, cycles_late: int, past: Past) -> Array:
    """Characteristic polynomial of a cycle in which part of the gradient is fresh, or x decays.

    Parameters
    ----------
    rates : array, shape (rates,)
        Values of a.

    Returns
    -------
    array, shape (rates, cycles_late + 3)
        From the constant term upwards.
    """
    new, fresh = 1.0 - past.beta, 1.0 - past.stale_share
    steps = np.zeros((len(rates), 3, 3))
    mean = np.array([new * fresh, past.beta, new * past.stale_share])  # of x, the mean and the stale x
    steps[:, 0] = -rates[:, None] * mean
    steps[:, 0, 0] += 1.0 - rates * past.weight_decay
    steps[:, 1] = mean
    steps[:, 2, 2] = 1.0
    cycles = np.linalg.matrix_power(steps, sync_interval)
    pushed, pushed_mean = cycles[:, 0, 2], cycles[:, 1, 2]
    found = np.zeros((len(rates), cycles_late + 3))
    found[:, -1] = 1.0
    found[:, -2] -= cycles[:, 0, 0] + cycles[:, 1, 1]
    found[:, -3] += np.linalg.det(cycles[:, :2, :2])
    found[:, 1] -= pushed
    found[:, 0] += cycles[:, 1, 1] * pushed - cycles[:, 0, 1] * pushed_mean
    return found


def cycle_radius(rate: float, sync_interval: int, cycles_late: int, past: Past) -> float:
    """Spectral radius of that cycle at one a."""
    return radius(cycle_polynomials(np.array([rate]), sync_interval, cycles_late, past)[0])


def cycle_crossings(sync_interval: int, cycles_late: int, past: Past) -> Array:
    """All a > 0, up to where no cycle is stable, at which a root may cross the unit circle.

    A crossing at 1, at -1 or of a pair is a zero of p(1), p(-1) or prod_{i<j}(l_i*l_j - 1), which are polynomials in
    a of known degree. Each is interpolated on pieces that double in length, so that small a are resolved as well.

    Returns
    -------
    array, shape (crossings,)
        Not sorted.
    """
    degree = sync_interval * (cycles_late + 1) + 2
    nodes = chebyshev.chebpts1(degree + 1)
    top = last_rate(sync_interval, cycles_late, past)
    edges = [top]
    while edges[-1] > 0.5 / sync_interval:
        edges.append(0.5 * edges[-1])
    found = []
    for low, high in zip([*edges[1:], 0.0], edges, strict=True):
        polynomials = cycle_polynomials(low + 0.5 * (nodes + 1.0) * (high - low), sync_interval, cycles_late, past)
        for values in (
            polynomials.sum(axis=1),
            polynomials @ (-1.0) ** np.arange(cycles_late + 3),
            _pairs(polynomials),
        ):
            roots = real_roots(_series(values))
            found.append(low + 0.5 * (roots + 1.0) * (high - low))
    crossings = np.concatenate(found)
    return crossings[crossings > 1e-9 * edges[-1]]


def _series(values: Array) -> Array:
    """Chebyshev series through values at the points of chebpts1, of all degrees these allow."""
    size = len(values)
    angles = np.pi * (np.arange(size) + 0.5)[::-1] / size
    series = 2.0 / size * (np.cos(np.outer(np.arange(size), angles)) @ values)
    series[0] /= 2.0
    return np.asarray(series, dtype=np.float64)


def _pairs(polynomials: Array) -> Array:
    """prod_{i<j}(l_i*l_j - 1) over the roots of each polynomial."""
    size = polynomials.shape[1] - 1
    companions = np.zeros((len(polynomials), size, size))
    companions[:, np.arange(1, size), np.arange(size - 1)] = 1.0
    companions[:, :, -1] = -polynomials[:, :-1]
    roots = np.linalg.eigvals(companions)
    first, second = np.triu_indices(size, 1)
    product = np.prod(roots[:, first] * roots[:, second] - 1.0, axis=1)
    return np.asarray(product.real, dtype=np.float64)


def last_rate(sync_interval: int, cycles_late: int, past: Past) -> float:
    """An a above which no cycle is stable.

    The coefficients of a stable polynomial are at most binomials. This bounds trace and determinant of the S-th power
    of the step matrix, and so both its eigenvalues by `size`; its trace and determinant are linear in a, so an
    interval of a remains. When x decays so fast that it changes sign in a step, this is a working bound.
    """
    beta, decay = past.beta, past.weight_decay
    slope = decay + (1.0 - beta) * (1.0 - past.stale_share)
    terms = cycles_late + 2
    size = (8.0 + 3.0 * decay + comb(terms, 2) + terms) ** (1.0 / sync_interval)
    bounds = [
        ((size - 1.0) * (size - beta), beta * decay - slope * size),
        ((size + 1.0) * (size + beta), beta * decay + slope * size),
        (beta + size**2, beta * decay),
    ]
    flat = (terms + 1.0) / (sync_interval * past.stale_share)
    return min([room / rate for room, rate in bounds if rate > 1e-12], default=flat)

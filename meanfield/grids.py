"""Posteriors on grids, without random numbers: coarse, refined on the mass, then equally weighted atoms.

Every fitted quantity of this package is a function of such atoms, so an interval of a derived quantity
(the largest stable rate at some S, a predictive risk) needs no second approximation.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

NUM_ATOMS = 4096
"""Number of equally weighted atoms that stand for a posterior."""
MAX_ROUNDS = 6
"""Upper limit on refinements; three are usual."""
LOG_DROP = 8.0
"""An axis keeps what lies within this many log units of its peak (4 standard deviations)."""
MIN_SHRINK = 0.7
"""Refining stops once no axis shrinks below this fraction of its range."""


def log_axis(bounds: tuple[float, float], num_points: int) -> Array:
    """Uniform grid of the logarithm between two positive numbers, shape (num_points,)."""
    return np.linspace(float(np.log(bounds[0])), float(np.log(bounds[1])), num_points)


def posterior_atoms(log_posterior: Callable[..., Array], axes: tuple[Array, ...], *, fixed: int) -> list[Array]:
    """Equally weighted atoms of a posterior given by its logarithm on a grid.

    Parameters
    ----------
    log_posterior : callable
        Takes the axes, returns the unnormalised log density on their product, shape (n_0, n_1, ...).
    axes : tuple of arrays
        Uniformly spaced starting axes over the whole prior range; an axis of one point stays as it is.
    fixed : int
        Index of an axis that is never narrowed (the scale of the noise: at a large scale the likelihood is
        broad, so a coarse grid cannot step over a narrow peak of the other axes).

    Returns
    -------
    list of arrays, each shape (NUM_ATOMS,)
    """
    bounds = [(axis[0], axis[-1]) for axis in axes]
    values = log_posterior(*axes)
    for _ in range(MAX_ROUNDS):
        narrowed = tuple(
            axis if index == fixed else _narrow(axis, _profile(values, index), bounds[index])
            for index, axis in enumerate(axes)
        )
        shrink = [_span(new) / _span(old) for new, old in zip(narrowed, axes, strict=True) if len(old) > 1]
        if min(shrink) > MIN_SHRINK:
            break
        axes = narrowed
        values = log_posterior(*axes)
    return _draw(values, axes, bounds)


def _span(axis: Array) -> float:
    return float(axis[-1] - axis[0])


def _profile(values: Array, index: int) -> Array:
    others = tuple(other for other in range(values.ndim) if other != index)
    profile: Array = values.max(axis=others)
    return profile


def _narrow(axis: Array, profile: Array, bound: tuple[float, float]) -> Array:
    """Cut an axis to the part that carries mass, one step wider on each side, inside the prior range."""
    if len(axis) == 1:
        return axis
    kept = np.flatnonzero(profile > profile.max() - LOG_DROP)
    step = axis[1] - axis[0]
    low = max(bound[0], axis[kept[0]] - step)
    high = min(bound[1], axis[kept[-1]] + step)
    return np.linspace(low, high, len(axis))


def _draw(values: Array, axes: tuple[Array, ...], bounds: list[tuple[float, float]]) -> list[Array]:
    """Systematic resampling of the cells, then a low-discrepancy offset inside each cell."""
    weights = np.exp(values - values.max()).ravel()
    cumulative = np.cumsum(weights)
    targets = (np.arange(NUM_ATOMS) + 0.5) / NUM_ATOMS * cumulative[-1]
    cells = np.unravel_index(np.searchsorted(cumulative, targets), values.shape)
    offsets = low_discrepancy(len(axes))
    atoms = []
    for axis, cell, offset, bound in zip(axes, cells, offsets, bounds, strict=True):
        step = axis[1] - axis[0] if len(axis) > 1 else 0.0
        atoms.append(np.clip(axis[cell] + (offset - 0.5) * step, *bound))
    return atoms


def low_discrepancy(num_axes: int) -> Array:
    """Additive recurrence of the generalised golden ratio, shape (num_axes, NUM_ATOMS), in [0, 1)."""
    ratio = 2.0
    for _ in range(40):
        ratio = (1.0 + ratio) ** (1.0 / (num_axes + 1))
    steps = ratio ** -np.arange(1.0, num_axes + 1)
    sequence: Array = (0.5 + steps[:, None] * np.arange(1, NUM_ATOMS + 1)) % 1.0
    return sequence

"""Where small drift neither grows nor dies, over any two quantities: multiplier 1 of the linearised cycle."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np
import sympy as sp
from numpy.typing import NDArray

from meanfield.engine.values import numbers_of
from meanfield.explore.presets import model_of
from meanfield.explore.state import ExplorerState
from meanfield.grids import Array
from theory.errors import InputError
from theory.models.cycle import linear_cycle
from theory.models.model import DriftModel
from theory.symbols import P

POINTS = 41
"""Points of an axis at which the multiplier is looked at first."""
HALVINGS = 24
"""Of the piece between two such points: what is left is 1e-8 of the logarithm."""
_STEEP = 700.0
"""Logarithm of a multiplier beyond which it is cut off: there a float ends."""
_ORDER = 14
"""Of the Taylor series of an exponential, for a norm up to 1: the next term is 1/15!, about 1e-12."""


def boundary(state: ExplorerState) -> tuple[Array, Array] | None:
    """Lines on which small drift neither grows nor dies, with the signals off.

    Parameters
    ----------
    state : ExplorerState

    Returns
    -------
    (array, array), shape (n,) each, or None
        Lines in x and y with NaN between them, empty where there is none in the picture; None for a model without a
        state that feeds back, which has no threshold.

    Source: claim C30 (theory/claims). Error: 1e-6 at the points; they are joined by straight lines in the logarithms.
    """
    import contourpy

    model = model_of(state.model)
    if not has_boundary(model):
        return None

    def growth(places: Array) -> Array:
        """Logarithm of the multiplier at places, shape (..., 2), of the logarithms of x and y."""
        x, y = np.moveaxis(np.exp(places), -1, 0)
        return _log_multiplier(model, {**state.numbers, state.x.name: x, state.y.name: y})

    logs = [np.log(np.geomspace(*axis.ends, POINTS)) for axis in (state.x, state.y)]
    mesh = growth(np.stack(np.meshgrid(*logs), axis=-1))
    lines: Any = contourpy.contour_generator(logs[0], logs[1], mesh).lines(0.0)
    gap = np.full((1, 2), np.nan)
    joined = [np.concatenate([_located(line, logs, growth), gap]) for line in lines]
    points = np.exp(np.concatenate([gap, *joined])[1:])
    return points[:, 0], points[:, 1]


def _located(line: Array, logs: list[Array], growth: Callable[[Array], Array]) -> Array:
    """Halve the sides of the mesh on which the points of a line lie; the multiplier may be far from straight there."""
    low, high = np.empty_like(line), np.empty_like(line)
    for column, axis in enumerate(logs):
        place = (line[:, column] - axis[0]) / (axis[1] - axis[0])
        low[:, column] = axis[np.clip(np.floor(place + 1e-9), 0, axis.size - 1).astype(int)]
        high[:, column] = axis[np.clip(np.ceil(place - 1e-9), 0, axis.size - 1).astype(int)]
    alive: NDArray[np.bool_] = growth(low) > 0.0
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        same = ((growth(middle) > 0.0) == alive)[:, None]
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    return 0.5 * (low + high)


@cache
def has_boundary(model: DriftModel) -> bool:
    """Whether a state of the model feeds back, so that there is a threshold."""
    try:
        linear_cycle(model)
    except InputError:
        return False
    return True


@cache
def _jacobians(model: DriftModel) -> Callable[..., Any]:
    cycle = linear_cycle(model)
    compiled: Callable[..., Any] = sp.lambdify(
        (*model.parameters, P), [list(cycle.flow), list(cycle.sync)], modules="numpy"
    )
    return compiled


def _log_multiplier(model: DriftModel, values: Mapping[str, Any]) -> Array:
    """Logarithm of the spectral radius of the cycle map, shape of the broadcast values."""
    shape = np.broadcast_shapes(*(np.shape(value) for value in values.values()))
    product = np.broadcast_to(values["sync_interval"] * values["learning_rate"], shape)
    with np.errstate(all="ignore"):
        flow, sync = (
            _stacked(items, product.shape) for items in _jacobians(model)(*numbers_of(model, values), product)
        )
        carried = sync @ exponentials(product[..., None, None] * flow)
        finite = np.all(np.isfinite(carried), axis=(-2, -1))
        radius = np.abs(np.linalg.eigvals(np.where(finite[..., None, None], carried, 0.0))).max(axis=-1)
        return np.where(finite, np.clip(np.log(radius), -_STEEP, _STEEP), _STEEP)


def exponentials(matrices: Array) -> Array:
    """Exponential of every matrix, shape (..., n, n): scaled to a norm up to 1, Taylor series, squared again.

    What scipy.linalg.expm does for one matrix after the other, for all at once; not finite where it overflows.
    """
    norms = np.abs(matrices).sum(axis=-1).max(axis=-1)
    halvings = np.ceil(np.log2(np.maximum(norms, 1.0)))[..., None, None]
    small = matrices * 0.5**halvings
    here = np.eye(matrices.shape[-1])
    found: Array = here + small / _ORDER
    for order in range(_ORDER - 1, 0, -1):
        found = here + small @ found / order
    for done in range(int(halvings.max())):
        found = np.where(halvings > done, found @ found, found)
    return found


def _stacked(items: list[Any], shape: tuple[int, ...]) -> Array:
    """Entries of square matrices -> matrices, shape (*shape, n, n)."""
    size = int(np.sqrt(len(items)))
    every = np.stack([np.broadcast_to(item, shape) for item in items], axis=-1)
    return np.asarray(every.reshape(*shape, size, size), dtype=np.float64)

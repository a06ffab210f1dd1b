"""State of the explorer -> numbers: the grid of outcomes, the limits of the exits, the boundary of small drift."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import sympy as sp
import xarray as xr
from numpy.typing import NDArray

from meanfield.engine.diagram import phase_diagram
from meanfield.explore.presets import model_of
from meanfield.explore.state import ExplorerState
from meanfield.grids import Array
from meanfield.outcomes import Outcome
from theory.errors import InputError
from theory.models.cycle import linear_cycle
from theory.models.model import DriftModel
from theory.symbols import P, S, eta

COARSE = 4
"""Every so many cells a coarse picture has one."""
BOUNDARY_POINTS = 61
"""Points of an axis at which the multiplier is looked at; the boundary is interpolated between them."""
STABLE, FAILED, FIRST_EXIT = 0, 1, 2
"""Kinds of cells in a picture; from the last one on, the exits of the model in their order."""
_STEEP = 50.0
"""Logarithm of a multiplier beyond which it is cut off."""
_ORDER = 14
"""Of the Taylor series of an exponential, for a norm up to 1: the next term is 1/15!, about 1e-12."""


@dataclass(frozen=True, eq=False)
class Picture:
    """Outcome of every cell.

    Attributes
    ----------
    x, y : arrays, shapes (num_columns,) and (num_rows,)
        Values of the cells.
    kind : array of int8, shape (num_rows, num_columns)
        STABLE, FAILED, or FIRST_EXIT plus the index of an exit.
    collapse_step : array, shape (num_rows, num_columns) [optimizer step]
        NaN where no exit fires.
    """

    x: Array
    y: Array
    kind: NDArray[np.int8]
    collapse_step: Array


def picture(state: ExplorerState) -> Picture:
    """Simulate a run for each cell.

    Parameters
    ----------
    state : ExplorerState

    Returns
    -------
    Picture

    Raises
    ------
    InputError
        If the engine refuses a value.
    """
    return _picture(diagram(state, *state.centres()))


def coarse_picture(state: ExplorerState) -> Picture:
    """Simulate every fourth cell on a side, and the last; the others show the nearest of these. Else as `picture`."""
    full = state.centres()
    few = [values[np.unique([*range(0, values.size, COARSE), values.size - 1])] for values in full]
    small = _picture(diagram(state, few[0], few[1]))
    columns, rows = (_nearest(coarse, values) for coarse, values in zip(few, full, strict=True))
    cells = np.ix_(rows, columns)
    return Picture(full[0], full[1], small.kind[cells], small.collapse_step[cells])


def diagram(state: ExplorerState, x: Array, y: Array) -> xr.Dataset:
    """Return the phase diagram of a state for these values of its axes, as `meanfield.engine.diagram` gives it."""
    axes = {state.x.name: x, state.y.name: y}
    return phase_diagram(model_of(state.model), state.fixed, axes=axes, horizon=state.horizon)


def _picture(found: xr.Dataset) -> Picture:
    outcome, index = found["outcome"].values.T, found["exit"].values.T
    kind = np.where(outcome == Outcome.FAILED.code, FAILED, np.where(index >= 0, FIRST_EXIT + index, STABLE))
    x, y = (found[name].values for name in found["outcome"].dims)
    return Picture(x, y, np.ascontiguousarray(kind, dtype=np.int8), found["collapse_step"].values.T)


def _nearest(coarse: Array, values: Array) -> NDArray[np.int64]:
    """Index of the coarse value that is nearest to each value, in the logarithm."""
    found: NDArray[np.int64] = np.searchsorted(np.sqrt(coarse[1:] * coarse[:-1]), values)
    return found


def edges(centres: Array) -> Array:
    """Borders of cells on a logarithmic axis: halfway between centres, shape (n,) -> (n + 1,)."""
    logs = np.log(centres)
    middles = 0.5 * (logs[1:] + logs[:-1])
    found: Array = np.exp(np.concatenate([[2.0 * logs[0] - middles[0]], middles, [2.0 * logs[-1] - middles[-1]]]))
    return found


@dataclass(frozen=True)
class Limit:
    """An exit in numbers: its name, the states in its expression, and its limit."""

    name: str
    states: tuple[str, ...]
    limit: float


def limits(state: ExplorerState) -> tuple[Limit, ...]:
    """Return the exits of the chosen run, or of the fixed values where none is chosen."""
    model = model_of(state.model)
    values = state.numbers if state.selected is None else state.run_values(*state.selected)
    run = {S: values["sync_interval"], eta: values["learning_rate"]}
    numbers = {symbol: run.get(symbol, values.get(str(symbol))) for symbol in model.parameters}
    return tuple(
        Limit(
            item.name,
            tuple(str(symbol) for symbol in model.states if item.expression.has(symbol)),
            float(item.limit.subs(numbers)),
        )
        for item in model.exits
    )


def boundary(state: ExplorerState) -> tuple[Array, Array] | None:
    """Where small drift neither grows nor dies: multiplier 1 of the linearised cycle, with the signals off.

    Parameters
    ----------
    state : ExplorerState

    Returns
    -------
    (array, array), shape (n,) each, or None
        Lines in x and y with NaN between them, empty where there is none in the picture; None for a model without a
        state that feeds back, which has no threshold.

    Source: claim C30 (theory/claims). Error: that of interpolation between `BOUNDARY_POINTS`, below 1 %.
    """
    import contourpy

    model = model_of(state.model)
    if not has_boundary(model):
        return None
    x, y = (np.geomspace(*axis.ends, BOUNDARY_POINTS) for axis in (state.x, state.y))
    mesh = dict(zip((state.x.name, state.y.name), np.meshgrid(x, y), strict=True))
    growth = _log_multiplier(model, {**state.numbers, **mesh})
    lines = contourpy.contour_generator(np.log(x), np.log(y), growth).lines(0.0)
    gap = np.full((1, 2), np.nan)
    points = np.exp(np.concatenate([gap, *(np.concatenate([line, gap]) for line in lines)])[1:])
    return points[:, 0], points[:, 1]


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


def _log_multiplier(model: DriftModel, values: dict[str, Any]) -> Array:
    """Logarithm of the spectral radius of the cycle map, shape of the broadcast values."""
    S_, eta_ = values["sync_interval"], values["learning_rate"]
    shape = np.broadcast_shapes(*(np.shape(value) for value in values.values()))
    product = np.broadcast_to(S_ * eta_, shape)
    run = {S: S_, eta: eta_}
    numbers = [run.get(symbol, values.get(str(symbol))) for symbol in model.parameters]
    with np.errstate(all="ignore"):
        flow, sync = (_stacked(items, product.shape) for items in _jacobians(model)(*numbers, product))
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

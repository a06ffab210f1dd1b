"""State of the explorer -> numbers: the grid of outcomes, the limits of the exits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from meanfield.engine.diagram import phase_diagram
from meanfield.engine.values import numbers_of
from meanfield.explore.presets import model_of
from meanfield.explore.state import ExplorerState
from meanfield.grids import Array
from meanfield.outcomes import Outcome

COARSE = 4
"""Every so many cells a coarse picture has one."""
STABLE, FAILED, FIRST_EXIT = 0, 1, 2
"""Kinds of cells in a picture; from the last one on, the exits of the model in their order."""


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
    numbers = dict(zip(model.parameters, numbers_of(model, values), strict=True))
    return tuple(
        Limit(
            item.name,
            tuple(str(symbol) for symbol in model.states if item.expression.has(symbol)),
            float(item.limit.subs(numbers)),
        )
        for item in model.exits
    )

"""Phase diagrams of a drift model over any of its parameters, S and eta: every cell, or those near a boundary."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import metadata
from itertools import product
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from meanfield import results
from meanfield.clocks import first_step
from meanfield.engine.compiled import TOLERANCE, Adaptive, EulerMaruyama, compile_model
from meanfield.engine.members import Exits
from meanfield.engine.values import grid_members, grid_of
from meanfield.grids import Array
from meanfield.hybrid import FAILED
from meanfield.outcomes import Outcome
from theory.models.model import DriftModel

LEVELS = 3
"""Halvings of the coarsest grid of `refined_diagram`: it begins with every eighth point of an axis."""


def phase_diagram(
    model: DriftModel,
    values: Mapping[str, float],
    *,
    axes: Mapping[str, ArrayLike],
    horizon: int,
    tolerance: float = TOLERANCE,
) -> xr.Dataset:
    """Simulate one run for each cell of a grid.

    Parameters
    ----------
    model : DriftModel
        Without noise.
    values : mapping from a name to a number
        Every parameter of the model, "sync_interval" and "learning_rate", but for the axes.
    axes : mapping from a name to an array, shape (n_i,)
        Strictly increasing.
    horizon : int [optimizer step]
    tolerance : float
        Relative error of a step in every state.

    Returns
    -------
    Dataset
        As `meanfield.results.model_diagram` says, the axes in their order. A run whose states stop being numbers is
        `failed`.

    Raises
    ------
    InputError
        If a value cannot be used.

    Source: claim C30 (theory/claims).
    """
    grid = grid_of(model, values, axes)
    members, method = grid_members(model, values, grid), Adaptive(tolerance)
    exits = compile_model(model).exits(members, horizon=horizon, method=method)
    shape = tuple(axis.size for axis in grid.values())
    variables = {
        name: value.reshape(shape) for name, value in variables_of(exits, members.learning_rate, horizon).items()
    }
    return labelled(model, values, grid, horizon, method, {**variables, "simulated": np.ones(shape)})


def refined_diagram(
    model: DriftModel,
    values: Mapping[str, float],
    *,
    axes: Mapping[str, ArrayLike],
    horizon: int,
    tolerance: float = TOLERANCE,
    levels: int = LEVELS,
) -> xr.Dataset:
    """Simulate only the cells near a boundary; the others take the outcome of the coarser cell around them.

    A cell of the coarser grid is halved if its corners, or those of a cell beside it, end in different ways. What is
    smaller than a coarsest cell can be missed.

    Parameters
    ----------
    model, values, axes, horizon, tolerance
        As `phase_diagram`.
    levels : int
        Halvings; the coarsest grid has every 2**levels-th point of an axis, and its last.

    Returns
    -------
    Dataset
        As `phase_diagram`; where `simulated` is 0 there is an outcome and an exit, but no collapse step.

    Raises
    ------
    InputError
        If a value cannot be used.

    Source: claim C30 (theory/claims).
    """
    grid = grid_of(model, values, axes)
    compiled, method = compile_model(model), Adaptive(tolerance)
    everyone = grid_members(model, values, grid)
    shape = tuple(axis.size for axis in grid.values())
    found = {name: np.full(shape, np.nan) for name in ("outcome", "exit", *_CLOCKS)}
    simulated = np.zeros(shape, dtype=bool)
    wanted = np.zeros(shape, dtype=bool)
    lattice = _lattice(shape, 2**levels)
    wanted[np.ix_(*lattice)] = True
    for level in range(levels, -1, -1):
        cells = np.flatnonzero(wanted & ~simulated)
        if cells.size:
            exits = compiled.exits(everyone.taken(cells), horizon=horizon, method=method)
            for name, value in variables_of(exits, everyone.learning_rate[cells], horizon).items():
                found[name].ravel()[cells] = value
            simulated.ravel()[cells] = True
        if level:
            finer = _lattice(shape, 2 ** (level - 1))
            wanted = _fill(found, lattice, finer, simulated)
            lattice = finer
    return labelled(model, values, grid, horizon, method, {**found, "simulated": simulated})


_CLOCKS = ("collapse_step", "cumulative_learning_rate_at_exit")


def _lattice(shape: tuple[int, ...], stride: int) -> list[NDArray[np.int64]]:
    return [np.unique([*range(0, size, stride), size - 1]) for size in shape]


def _fill(
    found: Mapping[str, Array],
    lattice: list[NDArray[np.int64]],
    finer: list[NDArray[np.int64]],
    simulated: NDArray[np.bool_],
) -> NDArray[np.bool_]:
    """Give the finer points the outcome of the corner below them; return those that lie in or beside a mixed cell."""
    mixed = _beside(_mixed(found["outcome"], lattice) | _mixed(found["exit"], lattice))
    below = [np.searchsorted(coarse, fine, side="right") - 1 for coarse, fine in zip(lattice, finer, strict=True)]
    for name in ("outcome", "exit"):
        corners = found[name][np.ix_(*lattice)][np.ix_(*below)]
        kept = simulated[np.ix_(*finer)]
        found[name][np.ix_(*finer)] = np.where(kept, found[name][np.ix_(*finer)], corners)
    inside = [np.minimum(index, max(len(coarse) - 2, 0)) for index, coarse in zip(below, lattice, strict=True)]
    wanted = np.zeros(simulated.shape, dtype=bool)
    wanted[np.ix_(*finer)] = mixed[np.ix_(*inside)]
    return wanted


def _mixed(values: Array, lattice: list[NDArray[np.int64]]) -> NDArray[np.bool_]:
    """Cells of a lattice whose corners differ, shape (max(len - 1, 1), ...)."""
    corners = values[np.ix_(*lattice)]
    cuts = [(slice(None, -1), slice(1, None)) if size > 1 else (slice(None),) for size in corners.shape]
    every = np.array([corners[cut] for cut in product(*cuts)])
    return np.asarray(every.min(axis=0) != every.max(axis=0))


def _beside(cells: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """These cells and all that touch them."""
    wide = np.pad(cells, 1)
    cuts = [(slice(None, -2), slice(1, -1), slice(2, None))] * cells.ndim
    return np.asarray(np.any([wide[cut] for cut in product(*cuts)], axis=0))


def variables_of(exits: Exits, learning_rate: Array, horizon: int) -> dict[str, Array]:
    """Return what a diagram says of every member, flat: outcome, exit, collapse step, eta*t at exit."""
    collapsed = exits.code >= 0
    steps = first_step(exits.clock, learning_rate)
    ended = np.where(exits.code == FAILED, Outcome.FAILED.code, Outcome.STABLE.code)
    return {
        "outcome": np.where(collapsed, Outcome.COLLAPSED.code, ended),
        "exit": np.where(collapsed, exits.code, -1),
        "collapse_step": np.where(collapsed, np.minimum(steps, horizon), np.nan),
        "cumulative_learning_rate_at_exit": np.where(collapsed, exits.clock, np.nan),
    }


def labelled(
    model: DriftModel,
    values: Mapping[str, float],
    grid: Mapping[str, Array],
    horizon: int,
    method: Adaptive | EulerMaruyama,
    variables: Mapping[str, ArrayLike],
) -> xr.Dataset:
    """Put the variables of a diagram into a Dataset that names model, values, method and versions."""
    return results.build(
        results.model_diagram(tuple(grid)),
        coordinates=grid,
        variables=variables,
        attributes=attributes_of(model, values, grid, horizon, method),
    )


def attributes_of(
    model: DriftModel,
    values: Mapping[str, float],
    grid: Mapping[str, Array],
    horizon: int,
    method: Adaptive | EulerMaruyama,
) -> dict[str, Any]:
    """Return the attributes from which a diagram can be made again."""
    packages = ("driftlaw", "numpy", "numba", "sympy", "xarray")
    return {
        "parameters": json.dumps({"model": model.name, **values}),
        "axes": json.dumps(list(grid)),
        "exits": json.dumps([item.name for item in model.exits]),
        "method": repr(method),
        "horizon": horizon,
        "versions": json.dumps({name: metadata.version(name) for name in packages}),
        "claims": " ".join(model.claims),
    }

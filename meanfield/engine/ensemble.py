"""Many noisy runs of a drift model in every cell: how many collapse, when, and through which exit."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import NormalDist

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from meanfield import arguments, results
from meanfield.clocks import first_step
from meanfield.engine.compiled import CompiledModel, EulerMaruyama, compile_model
from meanfield.engine.diagram import attributes_of
from meanfield.engine.members import Members
from meanfield.engine.values import grid_members, grid_of
from meanfield.grids import Array
from meanfield.hybrid import FAILED
from theory.errors import InputError
from theory.models.model import DriftModel

CONFIDENCE = 0.9
QUANTILES = (0.1, 0.5, 0.9)


def ensemble_diagram(
    model: DriftModel,
    values: Mapping[str, float],
    *,
    axes: Mapping[str, ArrayLike],
    horizon: int,
    num_members: int,
    method: EulerMaruyama | None = None,
    quantiles: ArrayLike = QUANTILES,
) -> xr.Dataset:
    """Simulate many noisy runs for each cell of a grid.

    Parameters
    ----------
    model : DriftModel
        With noise.
    values, axes, horizon
        As `meanfield.engine.diagram.phase_diagram`.
    num_members : int
        Runs in each cell, at least 1; run i of the cell c has the number c*num_members + i for its noise.
    method : EulerMaruyama, optional
        Seed and steps for each optimizer step.
    quantiles : array, shape (m,)
        Between 0 and 1, strictly increasing.

    Returns
    -------
    Dataset
        As `meanfield.results.model_ensemble` says. A quantile of the collapse step is inf where a smaller share has
        collapsed by the horizon.

    Raises
    ------
    InputError
        If a value cannot be used.

    Source: claim C30 (theory/claims); noise enters once an optimizer step, so exits are looked at once a step too.
    """
    grid = grid_of(model, values, axes)
    count = arguments.count("num_members", num_members, way_out="Use 100 or more for a probability.")
    levels = np.asarray(quantiles, dtype=np.float64)
    if levels.ndim != 1 or not levels.size or not np.all((levels > 0.0) & (levels < 1.0)):
        raise InputError("quantiles", "be numbers between 0 and 1", quantiles, "Use (0.1, 0.5, 0.9).")
    chosen = method or EulerMaruyama()
    cells = grid_members(model, values, grid)
    clock, code = walked(compile_model(model), cells, count, horizon, chosen)
    steps = first_step(clock, cells.learning_rate[:, np.newaxis])
    shape = tuple(axis.size for axis in grid.values())
    return results.build(
        results.model_ensemble(tuple(grid)),
        coordinates={**grid, "quantile": levels, "exit": np.arange(len(model.exits))},
        variables={
            name: value.reshape(*shape, *value.shape[1:])
            for name, value in _reduced(steps, code, levels, len(model.exits)).items()
        },
        attributes={**attributes_of(model, values, grid, horizon, chosen), "num_members": count},
    )


def walked(
    compiled: CompiledModel, cells: Members, num_members: int, horizon: int, method: EulerMaruyama
) -> tuple[Array, NDArray[np.int8]]:
    """Walk num_members runs of every cell; returns clocks and codes, shape (cells, num_members)."""
    members = cells.taken(np.repeat(np.arange(len(cells)), num_members))
    exits = compiled.exits(members, horizon=horizon, method=method)
    shape = (len(cells), num_members)
    return exits.clock.reshape(shape), exits.code.reshape(shape)


def wilson(share: Array, num_members: int) -> tuple[Array, Array]:
    """Return the ends of the 90 % interval of a probability, from a share of so many runs (Wilson 1927)."""
    z = NormalDist().inv_cdf(0.5 + CONFIDENCE / 2.0)
    scale = 1.0 + z * z / num_members
    centre = (share + z * z / (2.0 * num_members)) / scale
    half = z / scale * np.sqrt(share * (1.0 - share) / num_members + z * z / (4.0 * num_members**2))
    return np.maximum(centre - half, 0.0), np.minimum(centre + half, 1.0)


def _reduced(steps: Array, code: NDArray[np.int8], levels: Array, num_exits: int) -> dict[str, Array]:
    """What a cell says of its runs; steps and code have shape (cells, members), steps inf without an exit."""
    collapsed = np.isfinite(steps)
    share = collapsed.mean(axis=1)
    low, high = wilson(share, steps.shape[1])
    total = np.where(collapsed, steps, 0.0).sum(axis=1)
    mean = np.full(share.shape, np.nan)
    np.divide(total, collapsed.sum(axis=1), out=mean, where=share > 0.0)
    rank = np.ceil(levels * steps.shape[1]).astype(int) - 1
    return {
        "collapse_probability": share,
        "collapse_probability_low": low,
        "collapse_probability_high": high,
        "collapse_step_mean": mean,
        "collapse_step_quantile": np.sort(steps, axis=1)[:, rank],
        "exit_share": np.stack([(code == index).mean(axis=1) for index in range(num_exits)], axis=1),
        "failed_share": (code == FAILED).mean(axis=1),
    }

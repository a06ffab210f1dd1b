"""Simulate the memory map: one run, a grid of runs, or the exit budget as a function of S*eta.

In cycle k the displacement grows by eta*u_k per optimizer step; the run collapses at the first step at which
it has reached the exit radius. Everything depends on S and eta through S*eta and eta*t only.
"""

from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from meanfield import arguments, kernels, results
from meanfield.clocks import first_step
from meanfield.outcomes import Outcome
from meanfield.parameters import MapParameters
from theory.errors import InputError

MAX_CYCLES = 1_000_000
"""Sync cycles with a memory that still changes after which `exit_budget` says that a run never exits."""

_CLAIMS = ("C5", "C6")


def simulate(parameters: MapParameters, *, sync_interval: float, learning_rate: float, horizon: int) -> xr.Dataset:
    """Simulate one run of the memory map.

    Parameters
    ----------
    parameters : MapParameters
    sync_interval : float [optimizer step]
        Whole and at least 1, or inf for a behaviour policy that is never refreshed.
    learning_rate : float [1]
        Positive and finite.
    horizon : int [optimizer step]
        At least 1.

    Returns
    -------
    Dataset
        As `meanfield.results.TRAJECTORY` says: memory by cycle, displacement and eta*t by step, and the exit.
        The path is NaN after the exit, because the model says nothing there.

    Raises
    ------
    InputError
        If an argument is out of range.

    Source: claims C5 and C6 (theory/claims). No error beyond rounding: the map is exact.

    >>> parameters = MapParameters(critical_product=0.02, exit_radius=0.8, initial_memory=1.0)
    >>> float(simulate(parameters, sync_interval=100, learning_rate=0.01, horizon=200).collapse_step)
    80.0
    """
    S, eta = arguments.sync_interval(sync_interval), arguments.learning_rate(learning_rate)
    T = arguments.horizon(horizon)
    steps = np.arange(1, T + 1)
    exits = _exits(parameters, np.asarray(S), np.asarray(eta), T)
    last = float(np.fmin(exits["collapse_step"], T))
    memory = np.empty(int(_num_cycles(np.asarray(S), T)))
    gain = S * eta / parameters.critical_product
    kernels.memory_path(gain, parameters.honest_signal, parameters.initial_memory, memory)
    displacement = _displacement(memory, steps, S, eta)
    cycles = np.arange(memory.size)
    return results.build(
        results.TRAJECTORY,
        coordinates={"cycle": cycles, "step": steps},
        variables={
            "memory": np.where(cycles < _num_cycles(np.asarray(S), last), memory, np.nan),
            "displacement": np.where(steps <= last, displacement, np.nan),
            "cumulative_learning_rate": eta * steps,
            "sync_interval": S,
            "learning_rate": eta,
            **exits,
        },
        attributes=results.provenance(parameters, horizon=T, claims=_CLAIMS),
    )


def phase_diagram(
    parameters: MapParameters, *, sync_intervals: ArrayLike, learning_rates: ArrayLike, horizon: int
) -> xr.Dataset:
    """Simulate one run for each cell of a grid and keep how it ends.

    Parameters
    ----------
    parameters : MapParameters
    sync_intervals : array, shape (n,) [optimizer step]
        Strictly increasing; each whole and at least 1, or inf.
    learning_rates : array, shape (m,) [1]
        Strictly increasing, positive and finite.
    horizon : int [optimizer step]
        At least 1.

    Returns
    -------
    Dataset
        As `meanfield.results.PHASE_DIAGRAM` says, dims ("sync_interval", "learning_rate").

    Raises
    ------
    InputError
        If an argument is out of range.

    Source: claims C5 and C6 (theory/claims). No error beyond rounding: the map is exact.

    >>> parameters = MapParameters(critical_product=0.02, exit_radius=0.8)
    >>> grid = phase_diagram(parameters, sync_intervals=[4, 16], learning_rates=[1e-3, 3e-3], horizon=1000)
    >>> grid.outcome.values.tolist()
    [[0, 0], [0, 2]]
    """
    S = arguments.sync_intervals(sync_intervals)
    eta = arguments.learning_rates(learning_rates)
    T = arguments.horizon(horizon)
    return results.build(
        results.PHASE_DIAGRAM,
        coordinates={"sync_interval": S, "learning_rate": eta},
        variables=_exits(parameters, S[:, np.newaxis], eta, T),
        attributes=results.provenance(parameters, horizon=T, claims=_CLAIMS),
    )


def exit_budget(parameters: MapParameters, product: ArrayLike) -> NDArray[np.float64]:
    """Cumulative learning rate at exit as a function of the product S*eta.

    Parameters
    ----------
    parameters : MapParameters
    product : array of any shape [1]
        S*eta, positive; inf stands for a behaviour policy that is never refreshed.

    Returns
    -------
    array of the shape of `product` [1]
        eta*t at exit, located inside its cycle; inf where the memory dies or, close to the boundary, no exit
        comes within `MAX_CYCLES` sync cycles.

    Raises
    ------
    InputError
        If a product is not positive.

    Source: claim C6 (theory/claims). No error beyond rounding: the map is exact.

    >>> parameters = MapParameters(critical_product=1.0, exit_radius=50.0)
    >>> [round(float(budget), 2) for budget in exit_budget(parameters, [0.9, 1.5, 3.0])]
    [inf, 81.28, 68.47]
    """
    products = np.asarray(product, dtype=np.float64)
    if not np.all(products > 0.0):
        raise InputError("product", "be positive", product, "Give S*eta, for example 8 * 1e-3.")
    return _clocks(parameters, products, np.full(products.shape, MAX_CYCLES))


def _exits(
    parameters: MapParameters, S: NDArray[np.float64], eta: NDArray[np.float64], horizon: int
) -> dict[str, NDArray[Any]]:
    """Outcome code, collapse step and eta*t at exit of every pair; NaN where the horizon comes first."""
    S, eta = np.broadcast_arrays(S, eta)
    clocks = _clocks(parameters, S * eta, _num_cycles(S, horizon))
    steps = first_step(clocks, eta)
    collapsed = steps <= horizon
    return {
        "outcome": np.where(collapsed, Outcome.COLLAPSED.code, Outcome.STABLE.code),
        "collapse_step": np.where(collapsed, steps, np.nan),
        "cumulative_learning_rate_at_exit": np.where(collapsed, clocks, np.nan),
    }


def _clocks(
    parameters: MapParameters, products: NDArray[np.float64], num_cycles: NDArray[np.int64]
) -> NDArray[np.float64]:
    clocks = np.empty(products.size)
    kernels.exit_clocks(
        products.ravel(),
        num_cycles.ravel(),
        parameters.critical_product,
        parameters.exit_radius,
        parameters.honest_signal,
        parameters.initial_memory,
        clocks,
    )
    return clocks.reshape(products.shape)


def _num_cycles(S: NDArray[np.float64], steps: float) -> NDArray[np.int64]:
    """Cycles begun within so many steps; one if S is inf."""
    return np.maximum(1, np.ceil(steps / S)).astype(np.int64)


def _displacement(memory: NDArray[np.float64], steps: NDArray[np.int64], S: float, eta: float) -> NDArray[np.float64]:
    """Displacement after each step: whole cycles before, and a straight line within the cycle."""
    before = np.concatenate([[0.0], np.cumsum(S * eta * memory[:-1])])
    cycle = ((steps - 1) // S).astype(np.int64)
    return before[cycle] + eta * memory[cycle] * ((steps - 1) % S + 1)

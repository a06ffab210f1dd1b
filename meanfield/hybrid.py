"""Any drift model in numbers, slowly and plainly: flow by Runge-Kutta inside a cycle, map at a sync, exits located.

This is the reference for whatever is faster. All cells of a grid walk at once, and each stops at its exit.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import metadata
from typing import Any

import numpy as np
import sympy as sp
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from meanfield import arguments, results
from meanfield.clocks import STEP_TOLERANCE, first_step
from meanfield.grids import Array
from meanfield.outcomes import Outcome
from theory.errors import InputError
from theory.models.model import CycleEndExit, DriftModel, WithinExit
from theory.symbols import P

STEPS_PER_CYCLE = 16
"""Runge-Kutta steps from sync to sync; the error falls with their fourth power."""
HALVINGS = 50
"""Bisections of the step in which an exit fires; the last is below rounding."""

STAYED, FAILED = -1, -2
"""Codes of a run that stays inside, and of one whose states stop being numbers before an exit fires."""


@dataclass(frozen=True, eq=False)
class ModelRun:
    """One run of a drift model.

    Parameters
    ----------
    cumulative_learning_rate : array, shape (n,) [1]
        eta*t; at a sync the same number comes twice, before and after it.
    states : dict from the name of a state to an array, shape (n,)
    collapse_step : float [optimizer step]
        First step at which an exit has fired; inf if none does within the horizon.
    exit : str
        Name of that exit; empty if none fires.
    failed : bool
        Whether the states stopped being numbers: the run says nothing, not that it is stable.
    """

    cumulative_learning_rate: Array
    states: dict[str, Array]
    collapse_step: float
    exit: str
    failed: bool


def simulate_model(
    model: DriftModel,
    values: Mapping[str, float],
    *,
    sync_interval: float,
    learning_rate: float,
    horizon: int,
    steps_per_cycle: int = STEPS_PER_CYCLE,
) -> ModelRun:
    """Simulate one run of a drift model.

    Parameters
    ----------
    model : DriftModel
    values : mapping from the name of a parameter to its value
    sync_interval : float [optimizer step]
        Whole and at least 1, or inf for a behaviour policy that is never refreshed.
    learning_rate : float [1]
        Positive and finite.
    horizon : int [optimizer step]
        At least 1.
    steps_per_cycle : int
        Runge-Kutta steps from sync to sync, at least 1; an open cycle has no more of them.

    Returns
    -------
    ModelRun

    Raises
    ------
    InputError
        If an argument is out of range.

    Source: claims C30 and C31 (theory/claims). Error: of order steps_per_cycle**-4 in the states.
    """
    S, eta = arguments.sync_interval(sync_interval), arguments.learning_rate(learning_rate)
    walk = _Walk.of(model, values, np.array([S]), np.array([eta]), horizon, steps_per_cycle)
    path: list[tuple[float, Array]] = [(0.0, walk.begin()[:, 0])]
    clocks, codes = walk.exits(path)
    steps = float(walk.collapse_steps(clocks, codes)[0])
    last = min(float(clocks[0]), walk.horizon * eta) * (1.0 + STEP_TOLERANCE)
    kept = [(clock, states) for clock, states in path if clock <= last]
    table = np.array([states for _, states in kept])
    return ModelRun(
        np.array([clock for clock, _ in kept]),
        {str(state): table[:, row] for row, state in enumerate(model.states)},
        steps,
        model.exits[codes[0]].name if steps < math.inf else "",
        bool(codes[0] == FAILED),
    )


def model_phase_diagram(
    model: DriftModel,
    values: Mapping[str, float],
    *,
    sync_intervals: ArrayLike,
    learning_rates: ArrayLike,
    horizon: int,
    steps_per_cycle: int = STEPS_PER_CYCLE,
) -> xr.Dataset:
    """Simulate one run for each cell of a grid and keep how it ends.

    Parameters
    ----------
    model : DriftModel
    values : mapping from the name of a parameter to its value
    sync_intervals : array, shape (n,) [optimizer step]
        Strictly increasing; each whole and at least 1, or inf.
    learning_rates : array, shape (m,) [1]
        Strictly increasing, positive and finite.
    horizon : int [optimizer step]
        At least 1.
    steps_per_cycle : int
        As `simulate_model`.

    Returns
    -------
    Dataset
        As `meanfield.results.PHASE_DIAGRAM` says. A run whose states stop being numbers is `failed`.

    Raises
    ------
    InputError
        If an argument is out of range.

    Source: claims C30 and C31 (theory/claims). Error: of order steps_per_cycle**-4 in the states.
    """
    S, eta = arguments.sync_intervals(sync_intervals), arguments.learning_rates(learning_rates)
    shape = (S.size, eta.size)
    walk = _Walk.of(model, values, np.repeat(S, eta.size), np.tile(eta, S.size), horizon, steps_per_cycle)
    clocks, codes = walk.exits(None)
    steps = walk.collapse_steps(clocks, codes).reshape(shape)
    failed = (codes == FAILED).reshape(shape)
    collapsed = np.isfinite(steps)
    packages = ("driftlaw", "numpy", "sympy", "xarray")
    parameters = dict(zip(model.parameter_names, walk.numbers, strict=True))
    return results.build(
        results.PHASE_DIAGRAM,
        coordinates={"sync_interval": S, "learning_rate": eta},
        variables={
            "outcome": np.where(
                collapsed, Outcome.COLLAPSED.code, np.where(failed, Outcome.FAILED.code, Outcome.STABLE.code)
            ),
            "collapse_step": np.where(collapsed, steps, np.nan),
            "cumulative_learning_rate_at_exit": np.where(collapsed, clocks.reshape(shape), np.nan),
        },
        attributes={
            "parameters": json.dumps({"model": model.name, **parameters}),
            "horizon": walk.horizon,
            "versions": json.dumps({name: metadata.version(name) for name in packages}),
            "claims": " ".join(model.claims),
        },
    )


@dataclass(frozen=True, eq=False)
class _Walk:
    """A model with numbers for its parameters, and the cells that walk; arrays have shape (states or exits, cells)."""

    model: DriftModel
    numbers: tuple[float, ...]
    S: Array
    eta: Array
    horizon: int
    num_steps: int
    flow: Callable[[Array, Array], Array]
    sync: Callable[[Array, Array], Array]
    excess: Callable[[Array, Array], Array]

    @classmethod
    def of(
        cls,
        model: DriftModel,
        values: Mapping[str, float],
        S: Array,
        eta: Array,
        horizon: int,
        steps_per_cycle: int,
    ) -> _Walk:
        numbers = model.numbers(values)
        T = arguments.horizon(horizon)
        num_steps = arguments.count("steps_per_cycle", steps_per_cycle, way_out="Give a whole number such as 16.")
        if np.any(np.isinf(S)) and any(item.has(P) for item in (*model.flow, *model.sync)):
            raise InputError("sync_intervals", "be finite, for the model holds P = S*eta", S, "Leave inf out.")

        def compiled(expressions: tuple[sp.Expr, ...]) -> Callable[[Array, Array], Array]:
            function: Callable[..., Any] = sp.lambdify(
                (*model.states, *model.parameters, P), expressions, modules=["scipy", "numpy"], cse=True
            )

            def evaluate(states: Array, products: Array) -> Array:
                rows = function(*states, *numbers, products)
                return np.array([np.broadcast_to(row, products.shape) for row in rows], dtype=np.float64)

            return evaluate

        excess = compiled(tuple(sp.sympify(item.expression) - item.limit for item in model.exits))
        flow, sync = compiled(model.flow), compiled(model.sync)
        return cls(model, numbers, S, eta, T, num_steps, flow, sync, excess)

    def begin(self) -> Array:
        """States at the start."""
        function: Callable[..., Any] = sp.lambdify(self.model.parameters, self.model.start, modules="numpy")
        return np.array([np.full(self.S.shape, float(row)) for row in function(*self.numbers)])

    def step(self, states: Array, products: Array, length: Array) -> Array:
        """One classical Runge-Kutta step."""
        one = self.flow(states, products)
        two = self.flow(states + length / 2.0 * one, products)
        three = self.flow(states + length / 2.0 * two, products)
        four = self.flow(states + length * three, products)
        return np.asarray(states + length / 6.0 * (one + 2.0 * two + 2.0 * three + four))

    def fired(self, states: Array, products: Array, kind: type) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        """Whether an exit of this kind has fired, and the one farthest beyond its limit."""
        rows = [row for row, item in enumerate(self.model.exits) if isinstance(item, kind)]
        if not rows:
            return np.zeros(products.shape, dtype=bool), np.zeros(products.shape, dtype=np.int64)
        beyond = self.excess(states, products)[rows]
        beyond = np.where(np.isnan(beyond), -np.inf, beyond)
        return np.any(beyond >= 0.0, axis=0), np.array(rows)[np.argmax(beyond, axis=0)]

    def located(self, states: Array, products: Array, length: Array) -> tuple[Array, NDArray[np.int64]]:
        """Share of a step after which an exit within fires, by bisection on the length of the step, and which one."""
        low, high = np.zeros(products.shape), np.ones(products.shape)
        for _ in range(HALVINGS):
            middle = (low + high) / 2.0
            out, _ = self.fired(self.step(states, products, middle * length), products, WithinExit)
            low, high = np.where(out, low, middle), np.where(out, middle, high)
        return high, self.fired(self.step(states, products, high * length), products, WithinExit)[1]

    def exits(self, path: list[tuple[float, Array]] | None) -> tuple[Array, NDArray[np.int64]]:
        """eta*t at exit (inf: none) and its number among the model's exits, or `STAYED` or `FAILED`; shape (cells,).

        With `path` the clock and the states of the first cell are added to it after every step and sync.
        """
        clocks, codes = np.full(self.S.shape, np.inf), np.full(self.S.shape, STAYED, dtype=np.int64)
        num_cycles = np.maximum(1.0, np.ceil(self.horizon / self.S))
        cells, states = np.arange(self.S.size), self.begin()
        with np.errstate(all="ignore"):
            for cycle in range(int(num_cycles.max())):
                going = (num_cycles[cells] > cycle) & (codes[cells] == STAYED)
                cells, states = cells[going], states[:, going]
                if not cells.size:
                    break
                states = self._cycle(cycle, cells, states, clocks, codes, path)
        return clocks, codes

    def _cycle(
        self,
        cycle: int,
        cells: NDArray[np.int64],
        states: Array,
        clocks: Array,
        codes: NDArray[np.int64],
        path: list[tuple[float, Array]] | None,
    ) -> Array:
        """Walk one cycle and its sync; fill in the exits that fire."""
        products = self.S[cells] * self.eta[cells]
        length = np.minimum(self.S[cells], self.horizon) * self.eta[cells] / self.num_steps
        elapsed = cycle * products if cycle else np.zeros(cells.shape)
        for step in range(self.num_steps):
            after = self.step(states, products, length)
            out, _ = self.fired(after, products, WithinExit)
            lost = ~out & ~np.all(np.isfinite(after), axis=0) & (codes[cells] == STAYED)
            codes[cells[lost]] = FAILED
            new = np.flatnonzero(out & (codes[cells] == STAYED))
            if new.size:
                share, code = self.located(states[:, new], products[new], length[new])
                clocks[cells[new]] = elapsed[new] + (step + share) * length[new]
                codes[cells[new]] = code
                if path is not None:
                    path.append((clocks[0], self.step(states, products, share * length)[:, 0]))
            if path is not None and codes[0] == STAYED:
                path.append((float(elapsed[0] + (step + 1) * length[0]), after[:, 0]))
            states = after
        out, code = self.fired(states, products, CycleEndExit)
        new = np.flatnonzero(out & (codes[cells] == STAYED) & (self.S[cells] <= self.horizon))
        clocks[cells[new]] = elapsed[new] + products[new]
        codes[cells[new]] = code[new]
        synced = self.sync(states, products)
        if path is not None and codes[0] == STAYED:
            path.append((float(elapsed[0] + products[0]), synced[:, 0]))
        return synced

    def collapse_steps(self, clocks: Array, codes: NDArray[np.int64]) -> Array:
        """First whole step at which an exit has fired; inf where none has within the horizon."""
        steps = first_step(clocks, self.eta)
        return np.where((codes >= 0) & (steps <= self.horizon), steps, np.inf)

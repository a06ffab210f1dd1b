"""A drift model as compiled code: parameter sets in, exits out, and the path of any one of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from meanfield import arguments
from meanfield.clocks import STEP_TOLERANCE, first_step
from meanfield.engine.cache import load, store
from meanfield.engine.checks import require_numbers, require_tolerance
from meanfield.engine.members import LANES, Blocks, Exits, Members
from meanfield.engine.source import generate, state_order
from meanfield.engine.threads import in_threads
from meanfield.grids import Array
from meanfield.hybrid import FAILED, STAYED, ModelRun
from theory.errors import InputError
from theory.models.model import DriftModel, WithinExit

TOLERANCE = 1e-6
"""Default of the relative error of a step in every state."""
FIRST_POINTS = 4096
"""Points of a path for which there is room at first; a longer one is walked twice."""

_BODY = ("rows", "step", "exits", "walk", "noise")
_MARK = "# ---- below this mark: the body ----\n"


@dataclass(frozen=True)
class Adaptive:
    """Walk without noise: embedded Runge-Kutta steps of order 5, or the model's closed solution.

    Parameters
    ----------
    tolerance : float
        Relative error of a step in every state, between 1e-13 and 1e-2.
    every_cycle : bool
        Walk also the cycles that only repeat the one before.
    """

    tolerance: float = TOLERANCE
    every_cycle: bool = False

    def __post_init__(self) -> None:
        require_tolerance(self.tolerance)


@dataclass(frozen=True)
class EulerMaruyama:
    """Walk with noise: every optimizer step is one step, or several equal ones.

    Parameters
    ----------
    seed : int
        From 0 to 2**64 - 1; with the number of a member it fixes all its noise.
    steps_per_update : int
        At least 1. One is the optimizer step itself; more approach the equation in continuous time, with an error of
        weak order 1, and of strong order 1/2, or 1 where the noise does not depend on the state.
    """

    seed: int = 0
    steps_per_update: int = 1

    def __post_init__(self) -> None:
        if not (isinstance(self.seed, int | np.integer) and 0 <= self.seed < 2**64):
            raise InputError("seed", "be an integer from 0 to 2**64 - 1", self.seed, "Use 0.")
        arguments.count("steps_per_update", self.steps_per_update, way_out="Use 1: the optimizer step itself.")


@dataclass(frozen=True, eq=False)
class _Walk:
    """Arrays that a walk reads, and those that it fills; columns or elements are the members of the blocks."""

    blocks: Blocks
    horizon: int
    clocks: Array
    codes: NDArray[np.int8]
    finals: Array


@dataclass(frozen=True, eq=False)
class CompiledModel:
    """A drift model and its compiled module.

    Attributes
    ----------
    model : DriftModel
    key : str
        Name of the module in the cache; `meanfield.engine.cache.load(key)` needs no sympy.
    """

    model: DriftModel
    key: str
    _module: ModuleType

    def exits(
        self,
        members: Members,
        *,
        horizon: int,
        method: Adaptive | EulerMaruyama | None = None,
        num_threads: int | None = None,
    ) -> Exits:
        """Walk members to their exits.

        Parameters
        ----------
        members : Members
            Walked in blocks, as `meanfield.engine.members.plan` orders them.
        horizon : int [optimizer step]
        method : Adaptive or EulerMaruyama, optional
            `Adaptive()` for a model without noise, `EulerMaruyama()` for one with noise.
        num_threads : int, optional
            All cores if not given. The result does not depend on it.

        Returns
        -------
        Exits

        Raises
        ------
        InputError
            If a value cannot be used.

        Source: claim C30 (theory/claims).
        """
        walk = self._walk(members, horizon)
        path = np.empty((0, 1 + len(self.model.states)))
        chosen = self._method(method)

        def run(first: int, last: int) -> None:
            self._run(walk, chosen, first, last, 0, path)

        in_threads(run, walk.blocks.num_blocks, num_threads)
        return self._sorted_out(walk, np.argsort(walk.blocks.order))

    def replay(
        self, members: Members, member: int, *, horizon: int, method: Adaptive | EulerMaruyama | None = None
    ) -> ModelRun:
        """Walk the block of one member again and keep its path: bit for bit what `exits` says of it.

        Parameters
        ----------
        members : Members
            All of them, for they fix the block.
        member : int
            Its place among them.
        horizon, method
            As `exits`.

        Returns
        -------
        ModelRun
            One point after each step and each sync, up to the exit or the last step before the horizon. Cycles that
            are passed over have none, unless the method walks every cycle.

        Raises
        ------
        InputError
            If a value cannot be used.
        """
        if not (isinstance(member, int | np.integer) and 0 <= member < len(members)):
            raise InputError("member", f"be a place among {len(members)} members", member, "Count from 0.")
        walk = self._walk(members, horizon)
        place = int(np.flatnonzero(walk.blocks.order == member)[0])
        block, lane = divmod(place, LANES)
        room, num_points = 0, FIRST_POINTS
        while num_points > room:
            room = num_points
            path = np.empty((room, 1 + len(self.model.states)))
            num_points = self._run(walk, self._method(method), block, block + 1, lane, path)
        return self._run_of(walk, place, path[:num_points])

    def _run_of(self, walk: _Walk, place: int, path: Array) -> ModelRun:
        exits = self._sorted_out(walk, np.array([place]))
        clock, code = float(exits.clock[0]), int(exits.code[0])
        steps = first_step(clock, walk.blocks.learning_rate[place])
        order = state_order(self.model)
        last = walk.horizon * walk.blocks.learning_rate[place] * (1.0 + STEP_TOLERANCE)
        kept = path[path[:, 0] <= last]
        states = {str(state): kept[:, 1 + order.index(state)] for state in self.model.states}
        name = self.model.exits[code].name if code >= 0 else ""
        return ModelRun(kept[:, 0], states, float(steps) if code >= 0 else np.inf, name, code == FAILED)

    def cycle(self, states: Array, parameters: Array, products: Array, *, tolerance: float = 1e-10) -> Array:
        """Walk one whole cycle with its sync, without a look at the exits and without noise.

        Parameters
        ----------
        states : array, shape (num_states, n)
            Just after a sync, in the order of the model.
        parameters : array, shape (num_parameters, n)
        products : array, shape (n,) [1]
            S*eta, positive and finite.
        tolerance : float

        Returns
        -------
        array, shape (num_states, n)
            NaN where the numerics fail.

        Raises
        ------
        InputError
            If the tolerance cannot be used.
        """
        require_tolerance(tolerance)
        padded = np.pad(np.arange(products.size), (0, -products.size % LANES), mode="edge")
        rows = [self.model.states.index(state) for state in state_order(self.model)]
        walked = np.ascontiguousarray(states[rows][:, padded], dtype=np.float64)
        inputs = np.ascontiguousarray(np.vstack([parameters[:, padded], products[padded]]))
        self._module.cycle(walked, inputs, inputs[-1].copy(), LANES, tolerance)
        return walked[np.argsort(rows)][:, : products.size]

    def _method(self, method: Adaptive | EulerMaruyama | None) -> Adaptive | EulerMaruyama:
        noisy = bool(self.model.noise)
        method = method or (EulerMaruyama() if noisy else Adaptive())
        if noisy is isinstance(method, Adaptive):
            way_out = (
                "With noise use ensemble_diagram, find_noisy_boundary and EulerMaruyama; "
                "without, phase_diagram, find_boundary and Adaptive."
            )
            raise InputError("method", f"fit {self.model.name}", type(method).__name__, way_out)
        return method

    def _walk(self, members: Members, horizon: int) -> _Walk:
        require_numbers(self.model, members)
        blocks = Blocks.of(members)
        size = blocks.sync_interval.size
        finals = np.empty((len(self.model.states), size))
        return _Walk(blocks, arguments.horizon(horizon), np.empty(size), np.empty(size, dtype=np.int8), finals)

    def _run(self, walk: _Walk, method: Adaptive | EulerMaruyama, first: int, last: int, lane: int, path: Array) -> int:
        """Walk some blocks; returns how many points of the path of `lane` were met."""
        blocks, S, eta = walk.blocks, walk.blocks.sync_interval, walk.blocks.learning_rate
        filled = (walk.clocks, walk.codes, walk.finals, lane, path)
        if isinstance(method, Adaptive):
            lengths, cycles = np.minimum(S, walk.horizon) * eta, np.maximum(1.0, np.ceil(walk.horizon / S))
            skip = 0.0 if method.every_cycle else method.tolerance
            num_points = self._module.exits(
                blocks.inputs, lengths, cycles, first, last, LANES, method.tolerance, skip, *filled
            )
        else:
            parts = method.steps_per_update
            num_steps, root, seed = walk.horizon * parts, np.sqrt(parts), np.uint64(method.seed)
            numbers = (num_steps, first, last, LANES, root, seed)
            num_points = self._module.noisy_exits(
                blocks.inputs, eta / parts, S * parts, blocks.number, *numbers, *filled
            )
        return int(num_points)

    def _sorted_out(self, walk: _Walk, places: NDArray[np.int64]) -> Exits:
        """Take members from their places, with the model's own numbers of exits; after the horizon nothing counts."""
        kinds = [isinstance(item, WithinExit) for item in self.model.exits]
        order = [index for kind in (True, False) for index, within in enumerate(kinds) if within is kind]
        numbers = np.array([*order, FAILED, STAYED], dtype=np.int8)
        clock, code = walk.clocks[places], numbers[walk.codes[places]]
        late = first_step(clock, walk.blocks.learning_rate[places]) > walk.horizon
        rows = [state_order(self.model).index(state) for state in self.model.states]
        ended = np.where(late, np.int8(STAYED), code)
        return Exits(np.where(ended >= 0, clock, np.inf), ended, walk.finals[rows][:, places])


@cache
def compile_model(model: DriftModel) -> CompiledModel:
    """Compile a drift model, or find it compiled.

    Parameters
    ----------
    model : DriftModel

    Raises
    ------
    InputError
        If an expression cannot be compiled, or the cache cannot be written.
    """
    key = store("\n\n\n".join([generate(model), *_body()]) + "\n")
    return CompiledModel(model, key, load(key))


def _body() -> list[str]:
    """Return the hand-written parts of every compiled model, without their imports."""
    folder = Path(__file__).with_name("body")
    return [(folder / f"{name}.py").read_text(encoding="utf-8").split(_MARK)[1].strip() for name in _BODY]

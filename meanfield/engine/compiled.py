"""A drift model as compiled code: arrays of parameter sets in, exits out."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from meanfield.engine.cache import load, store
from meanfield.engine.members import LANES, Exits, Members, plan
from meanfield.engine.source import generate, state_order
from meanfield.grids import Array
from meanfield.hybrid import FAILED, STAYED
from meanfield.simulate import STEP_TOLERANCE
from theory.errors import InputError
from theory.models.model import CycleEndExit, DriftModel, WithinExit
from theory.symbols import P

TOLERANCE = 1e-6
"""Default of the relative error of a step in every state."""
SKIP = 0.1
"""Cycles are passed over once what they carry is settled to this share of the tolerance."""
_MARK = "# ---- below this mark: the body ----\n"


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
        tolerance: float = TOLERANCE,
        every_cycle: bool = False,
        num_threads: int | None = None,
    ) -> Exits:
        """Walk members to their exits.

        Parameters
        ----------
        members : Members
            Walked in blocks, as `meanfield.engine.members.plan` orders them.
        horizon : int [optimizer step]
        tolerance : float
            Relative error of a step in every state, between 1e-13 and 1e-2.
        every_cycle : bool
            Walk also the cycles that only repeat the one before.
        num_threads : int, optional
            All cores if not given. The result does not depend on it.

        Returns
        -------
        Exits

        Raises
        ------
        InputError
            If a value cannot be used.
        """
        _require_tolerance(tolerance)
        _require_numbers(self.model, members)
        order = plan(members.sync_interval)
        padded = np.concatenate([order, np.repeat(order[-1:], -len(order) % LANES)])
        S, eta = members.sync_interval[padded], members.learning_rate[padded]
        inputs = np.vstack([members.parameters[:, padded], S * eta])
        lengths = np.minimum(S, horizon) * eta
        num_cycles = np.maximum(1.0, np.ceil(horizon / S))
        clocks, codes = np.empty(padded.size), np.empty(padded.size, dtype=np.int8)
        finals = np.empty((len(self.model.states), padded.size))
        path = np.empty((0, 1 + len(self.model.states)))
        skip = 0.0 if every_cycle else SKIP * tolerance

        def walk(first: int, last: int) -> None:
            self._module.exits(
                inputs, lengths, num_cycles, first, last, LANES, tolerance, skip, clocks, codes, finals, 0, path
            )

        _in_threads(walk, padded.size // LANES, num_threads)
        return self._sorted_out(order, clocks, codes, finals, members, horizon)

    def _sorted_out(
        self,
        order: NDArray[np.int64],
        clocks: Array,
        codes: NDArray[np.int8],
        finals: Array,
        members: Members,
        horizon: int,
    ) -> Exits:
        """Back in the members' own order, with the model's numbers of exits; an exit after the horizon is none."""
        back = np.argsort(order)
        numbers = np.array([*_exit_numbers(self.model), FAILED, STAYED], dtype=np.int8)
        clock, code = clocks[back], numbers[codes[back]]
        late = np.ceil(clock / members.learning_rate * (1.0 - STEP_TOLERANCE)) > horizon
        rows = [state_order(self.model).index(state) for state in self.model.states]
        return Exits(
            np.where(late, np.inf, clock), np.where(late & (code >= 0), np.int8(STAYED), code), finals[rows][:, back]
        )

    def cycle(self, states: Array, parameters: Array, products: Array, *, tolerance: float = 1e-10) -> Array:
        """Walk one whole cycle with its sync, without a look at the exits.

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
        _require_tolerance(tolerance)
        padded = np.pad(np.arange(products.size), (0, -products.size % LANES), mode="edge")
        rows = [self.model.states.index(state) for state in state_order(self.model)]
        walked = np.ascontiguousarray(states[rows][:, padded], dtype=np.float64)
        inputs = np.vstack([parameters[:, padded], products[padded]])
        self._module.cycle(walked, inputs, inputs[-1].copy(), LANES, tolerance)
        return walked[np.argsort(rows)][:, : products.size]


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
    body = Path(__file__).with_name("body.py").read_text(encoding="utf-8").split(_MARK)[1]
    key = store(f"{generate(model)}\n\n\n{body}")
    return CompiledModel(model, key, load(key))


def _exit_numbers(model: DriftModel) -> list[int]:
    """Index in the model of every exit in the order of the compiled code: those within a cycle first."""
    return [
        index
        for kind in (WithinExit, CycleEndExit)
        for index, item in enumerate(model.exits)
        if isinstance(item, kind)
    ]


def _require_tolerance(tolerance: float) -> None:
    if not 1e-13 <= tolerance <= 1e-2:
        raise InputError("tolerance", "be between 1e-13 and 1e-2", tolerance, "Use 1e-6, or 1e-10 where digits count.")


def _require_numbers(model: DriftModel, members: Members) -> None:
    """Refuse what no member may have, and say how many have it."""
    S, eta = members.sync_interval, members.learning_rate
    if members.parameters.shape != (len(model.parameters), len(members)) or eta.shape != S.shape or not len(members):
        shapes = (members.parameters.shape, S.shape, eta.shape)
        way_out = "Give shapes (num_parameters, n), (n,), (n,) with n >= 1."
        raise InputError("members", f"hold {len(model.parameters)} parameters for each run", shapes, way_out)
    whole = np.isinf(S) | (np.floor(S) == S)
    _require("sync_interval", "be an integer >= 1, or inf", S, (S >= 1.0) & whole, "For an on-policy run use 1.")
    allowed = (eta > 0.0) & np.isfinite(eta)
    _require("learning_rate", "be positive and finite", eta, allowed, "Leave the others out, for example eta = 0.")
    for symbol, values in zip(model.parameters, members.parameters, strict=True):
        rule, allowed = "be a finite number", np.isfinite(values)
        if symbol.is_nonnegative:  # zero is the limit of a positive one
            rule, allowed = "be finite and >= 0", np.isfinite(values) & (values >= 0.0)
        _require(f"{model.name}: {symbol}", rule, values, allowed, "The model declares its symbol so.")
    if any(item.has(P) for item in (*model.flow, *model.sync)):
        _require("sync_interval", "be finite, for the model holds P = S*eta", S, np.isfinite(S), "Leave inf out.")


def _require(argument: str, rule: str, values: Array, allowed: NDArray[np.bool_], way_out: str) -> None:
    if not np.all(allowed):
        wrong = np.flatnonzero(~allowed)
        value = f"{values[wrong[0]]:g} in {wrong.size} of {values.size} members, first in member {wrong[0]}"
        raise InputError(argument, rule, value, way_out)


def _in_threads(walk: Callable[[int, int], None], num_blocks: int, num_threads: int | None) -> None:
    """Share blocks out to threads; the kernels hold no lock."""
    threads = min(num_blocks, num_threads or len(os.sched_getaffinity(0)))
    if threads == 1:
        walk(0, num_blocks)
        return
    edges = np.linspace(0, num_blocks, 4 * threads + 1).astype(int)
    with ThreadPoolExecutor(threads) as pool:
        for done in [pool.submit(walk, int(a), int(b)) for a, b in zip(edges[:-1], edges[1:], strict=True)]:
            done.result()

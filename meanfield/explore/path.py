"""The path of the chosen run, with enough points inside a cycle to draw it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import sympy as sp

from meanfield.engine.compiled import Adaptive, compile_model
from meanfield.engine.values import members_of, numbers_of
from meanfield.explore.presets import model_of
from meanfield.explore.state import ExplorerState
from meanfield.grids import Array
from meanfield.hybrid import ModelRun
from theory.models.model import DriftModel
from theory.symbols import P, tau

POINTS = 2000
"""About so many points has a path through a closed solution, and at least two a cycle."""
MOST_IN_CYCLE = 50
SAME = 1e-6
"""Share of a cycle below which two points of a path are the two sides of a sync."""


def chosen_run(state: ExplorerState) -> ModelRun | None:
    """Simulate the chosen run with its path through every cycle; None where none is chosen.

    The steps of the integrator are the points; where the flow has a closed solution, which the engine takes in one
    step a cycle, it is evaluated at more. A path that no exit ends goes on to the horizon.

    Raises
    ------
    InputError
        If the engine refuses a value.
    """
    if state.selected is None:
        return None
    model, values = model_of(state.model), state.run_values(*state.selected)
    run = _replayed(model, values, state.horizon)
    if run.failed:
        return run
    return _filled(model, values, run, state.horizon) if model.solution else _ended(model, values, run, state.horizon)


def _replayed(model: DriftModel, values: Mapping[str, float], horizon: int) -> ModelRun:
    members, method = members_of(model, values), Adaptive(every_cycle=True)
    return compile_model(model).replay(members, 0, horizon=horizon, method=method)


def _ended(model: DriftModel, values: Mapping[str, float], run: ModelRun, horizon: int) -> ModelRun:
    """Give a path that no exit ends a point at the horizon, on the line to the first step after it."""
    end, last = horizon * values["learning_rate"], run.cumulative_learning_rate[-1]
    if run.exit or last >= end:
        return run
    whole = math.ceil(horizon / values["sync_interval"]) * int(values["sync_interval"])
    longer = _replayed(model, values, whole)
    place = int(np.searchsorted(longer.cumulative_learning_rate, last, side="right"))
    clocks = longer.cumulative_learning_rate[place - 1 : place + 1]
    ends = {name: np.interp(end, clocks, path[place - 1 : place + 1]) for name, path in longer.states.items()}
    states = {name: np.append(path, ends[name]) for name, path in run.states.items()}
    return replace(run, cumulative_learning_rate=np.append(run.cumulative_learning_rate, end), states=states)


def _filled(model: DriftModel, values: Mapping[str, float], run: ModelRun, horizon: int) -> ModelRun:
    """Evaluate the closed solution inside every cycle, up to the exit or the horizon."""
    clocks, product = run.cumulative_learning_rate, values["sync_interval"] * values["learning_rate"]
    end = float(clocks[-1]) if run.exit else horizon * values["learning_rate"]
    begun = np.concatenate([[True], np.diff(clocks) <= SAME * product])  # after the start and after each sync
    starts = clocks[begun]
    shares = np.linspace(0.0, 1.0, int(np.clip(POINTS // starts.size, 2, MOST_IN_CYCLE)))
    since = np.outer(np.clip(end - starts, 0.0, product), shares)
    states = [run.states[str(symbol)][begun][:, None] for symbol in model.states]
    found = _solution(model)(*states, *numbers_of(model, values), product, since)
    filled = {
        str(symbol): np.broadcast_to(item, since.shape).ravel()
        for symbol, item in zip(model.states, found, strict=True)
    }
    return replace(run, cumulative_learning_rate=(starts[:, None] + since).ravel(), states=filled)


@cache
def _solution(model: DriftModel) -> Callable[..., tuple[Array, ...]]:
    compiled: Callable[..., Any] = sp.lambdify(
        (*model.states, *model.parameters, P, tau), model.solution, modules="numpy"
    )
    return compiled

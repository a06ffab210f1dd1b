"""Small sweeps of a straight line, with and without noise, walked in this process."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import sympy as sp

from meanfield.engine import sweep, sweep_store
from meanfield.engine.compiled import EulerMaruyama, compile_model
from meanfield.engine.members import LANES
from meanfield.engine.sweep import SweepPlan
from meanfield.shards import Shard
from theory.models.model import DriftModel, WithinExit


def straight_line(noise: float = 0.0) -> DriftModel:
    """x' = v from zero, out at R: the clock at exit is R/v, whatever the sync interval."""
    x, v, R = sp.Symbol("x", real=True), sp.Symbol("v", real=True), sp.Symbol("R", positive=True)
    return DriftModel(
        name="straight line",
        states=(x,),
        parameters=(v, R),
        flow=(v,),
        sync=(x,),
        start=(sp.Integer(0),),
        exits=(WithinExit("region", x, R),),
        noise=(sp.Float(noise),) if noise else (),
    )


def straight_plan(**changes: Any) -> SweepPlan:
    axes = {"v": (-1.0, 0.5, 1.0, 2.0), "sync_interval": (4, 16, np.inf), "learning_rate": (1e-3, 2e-3, 5e-3, 1e-2)}
    return replace(SweepPlan(straight_line(), {"R": 0.7}, axes, horizon=100, shard_size=LANES), **changes)


def noisy_plan(**changes: Any) -> SweepPlan:
    axes = {"R": (0.05, 0.1), "sync_interval": (2, 8), "v": (0.0, 1.0, 2.0)}
    method = EulerMaruyama(seed=5)
    plan = SweepPlan(straight_line(0.5), {"learning_rate": 1e-2}, axes, 60, method, num_members=7, shard_size=LANES)
    return replace(plan, **changes)


def make(plan: SweepPlan, path: Path, order: Callable[[list[Shard]], list[Shard]] = list) -> Path:
    """The sweep in this process, its shards in any order."""
    grid = {name: np.array(axis) for name, axis in plan.axes.items()}
    assert plan.method is not None
    attributes = sweep.attributes_of(plan.model, plan.values, grid, plan.horizon, plan.method)
    sweep_store.create_store(path, plan.to_json(), compile_model(plan.model).key, attributes)
    for shard in order(list(plan.layout.shards)):
        sweep._run_shard(plan, path, shard)
    return path

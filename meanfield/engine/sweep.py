"""Sweeps of millions of runs of a drift model, in worker processes, that go on where they were killed.

The plan fixes the blocks in which members walk and a shard is whole blocks, so that shards give the same bits in any
order, by any number of workers, killed and resumed or not.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import sympy as sp
from numpy.typing import ArrayLike

from meanfield import arguments
from meanfield.engine.checks import require_numbers
from meanfield.engine.compiled import Adaptive, EulerMaruyama, compile_model
from meanfield.engine.diagram import attributes_of
from meanfield.engine.members import LANES, Exits, Members
from meanfield.engine.sweep_store import (
    SEED,
    Layout,
    check_store,
    create_store,
    done_flags,
    open_sweep,
    stored_plan,
    tidy,
    write_shard,
)
from meanfield.engine.values import grid_of, members_of
from meanfield.shards import Job, Shard, add_done, alone, finish, progress_bar, run_shards
from theory.errors import InputError
from theory.models.model import CycleEndExit, DriftModel, WithinExit

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

__all__ = ["SHARD_SIZE", "SweepPlan", "digest", "open_sweep", "plan_of", "run_sweep"]

SHARD_SIZE = 512 * LANES
"""Default members of a shard: enough to make its files cheap, few enough to lose little when killed."""


@dataclass(frozen=True)
class SweepPlan:
    """Which runs there are, and which of them are walked together.

    Parameters
    ----------
    model : DriftModel
    values : mapping from a name to a number
        Every parameter of the model, "sync_interval" and "learning_rate", but for the axes.
    axes : mapping from a name to an array, shape (n_i,)
        Strictly increasing; their product is the grid.
    horizon : int [optimizer step]
    method : Adaptive or EulerMaruyama, optional
        `Adaptive()` for a model without noise, `EulerMaruyama()` for one with noise.
    num_members : int
        Runs in each cell, more than one only with noise; run i of the cell c has the number c*num_members + i for it.
    shard_size : int
        Members that are written together, whole blocks of 32. Results do not depend on it.

    Raises
    ------
    InputError
        If a value cannot be used.
    """

    model: DriftModel
    values: Mapping[str, float]
    axes: Mapping[str, ArrayLike]
    horizon: int
    method: Adaptive | EulerMaruyama | None = None
    num_members: int = 1
    shard_size: int = SHARD_SIZE

    def __post_init__(self) -> None:
        grid = grid_of(self.model, self.values, self.axes)
        object.__setattr__(self, "values", {name: float(value) for name, value in self.values.items()})
        object.__setattr__(self, "axes", {name: tuple(axis.tolist()) for name, axis in grid.items()})
        object.__setattr__(self, "horizon", arguments.horizon(self.horizon))
        if self.method is None:
            object.__setattr__(self, "method", EulerMaruyama() if self.model.noise else Adaptive())
        first = {**self.values, **{name: axis[0] for name, axis in grid.items()}}
        for varied in ({}, *({name: axis} for name, axis in grid.items())):
            require_numbers(self.model, members_of(self.model, {**first, **varied}))
        self._require_counts()

    def _require_counts(self) -> None:
        count = arguments.count("num_members", self.num_members, way_out="Use 1, or more with noise.")
        if count > 1 and not self.model.noise:
            raise InputError("num_members", "be 1 for a model without noise", count, "Its runs would all be the same.")
        if count > 1 and SEED in self.axes:
            raise InputError("axes", "leave the name seed to the members of a cell", SEED, "Rename that parameter.")
        size = arguments.count("shard_size", self.shard_size, way_out=f"Use {SHARD_SIZE}.")
        if size % LANES:
            raise InputError("shard_size", f"be whole blocks of {LANES}", size, f"Use {SHARD_SIZE}.")

    @property
    def layout(self) -> Layout:
        """The grid and the order of its members in the store."""
        return Layout(dict(self.values), dict(self.axes), self.num_members, self.shard_size)  # type: ignore[arg-type]

    def members(self, start: int, stop: int) -> Members:
        """Return the members `start` to `stop` - 1 in the order of the store."""
        layout = self.layout
        names = (*self.values, *self.axes)
        found = members_of(self.model, {name: layout.quantity(name, start, stop) for name in names})
        return Members(found.parameters, found.sync_interval, found.learning_rate, layout.numbers(start, stop))

    def to_json(self) -> str:
        """Return the plan as JSON, with the digest of the model in its place."""
        assert self.method is not None
        rest = {name: getattr(self, name) for name in ("values", "axes", "horizon", "num_members", "shard_size")}
        return json.dumps({"model": digest(self.model), "method": asdict(self.method), **rest}, default=int)

    @classmethod
    def from_json(cls, text: str, model: DriftModel) -> SweepPlan:
        """Return the plan that `to_json` wrote.

        Raises
        ------
        InputError
            If it was of another model.
        """
        read = json.loads(text)
        if read.pop("model") != digest(model):
            raise InputError("model", "be the one of the plan", model.name, "Pass the model that made it, unchanged.")
        kind = Adaptive if "tolerance" in read["method"] else EulerMaruyama
        return cls(model, **{**read, "method": kind(**read["method"])})


def digest(model: DriftModel) -> str:
    """Return what identifies a model: sha256 over every part of it, the expressions as sympy's srepr writes them."""

    def written(part: object) -> str:
        if isinstance(part, str):
            return repr(part)
        if isinstance(part, tuple):
            return f"({', '.join(map(written, part))})"
        if isinstance(part, DriftModel | CycleEndExit | WithinExit):
            inner = tuple(getattr(part, field.name) for field in fields(part))
            return f"{type(part).__name__}{written(inner)}"
        return str(sp.srepr(sp.sympify(part)))

    return hashlib.sha256(written(model).encode()).hexdigest()


def plan_of(store: str | Path, model: DriftModel) -> SweepPlan:
    """Return the plan of a store, to resume it.

    Parameters
    ----------
    store : str or Path
    model : DriftModel
        The one that made it: a store holds no code, only the model's digest.

    Raises
    ------
    InputError
        If it is another model, or the store is broken.
    """
    return SweepPlan.from_json(stored_plan(Path(store)), model)


def run_sweep(plan: SweepPlan, store: str | Path, *, num_workers: int) -> None:
    """Walk every shard that is not done, in parallel processes, with progress on a terminal.

    Parameters
    ----------
    plan : SweepPlan
    store : str or Path
        Zarr store, made if it is not there; otherwise resumed.
    num_workers : int
        Worker processes, each with one thread; results do not depend on it. They import the main module again, so a
        script needs `if __name__ == "__main__":` around the call.

    Raises
    ------
    InputError
        If the store belongs to another plan or other versions, is broken, cannot be made, or is in use.
    BrokenProcessPool
        If a worker died; finished shards are kept.

    Source: claim C30 (theory/claims).
    """
    path = Path(store)
    count = arguments.count("num_workers", num_workers, way_out="Use the number of cores.")
    layout, compiled = plan.layout, compile_model(plan.model)
    _walk(plan, Shard(0, 0, min(LANES, layout.size)))  # workers find the machine code in the cache
    with alone(path, "store"):
        if path.exists():
            check_store(path, plan.to_json(), compiled.key)
        else:
            assert plan.method is not None
            grid = {name: np.array(axis) for name, axis in plan.axes.items()}
            attributes = attributes_of(plan.model, plan.values, grid, plan.horizon, plan.method)
            create_store(path, plan.to_json(), compiled.key, attributes)
        size = f"{layout.size} runs"
        job = Job(plan.model.name, size, path, layout.shards, done_flags(path), units_each=1)
        work, set_up = partial(_run_shard, plan, path), partial(compile_model, plan.model)
        finish(
            job,
            _progress,
            lambda todo, told: run_shards(todo, work, num_workers=count, set_up=set_up, on_progress=told),
        )
        tidy(path)


def _progress(console: Console) -> Progress:
    return progress_bar(console, "simulating")


def _walk(plan: SweepPlan, shard: Shard) -> Exits:
    members = plan.members(shard.start, shard.stop)
    return compile_model(plan.model).exits(members, horizon=plan.horizon, method=plan.method, num_threads=1)


def _run_shard(plan: SweepPlan, path: Path, shard: Shard) -> None:
    write_shard(path, shard, _walk(plan, shard))
    add_done(shard.stop - shard.start)

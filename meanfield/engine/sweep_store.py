"""The Zarr store of a sweep of drift models: clock and code of every member, one chunk a shard, done flag last.

Members lie in the order in which they are walked, and `open_sweep` lays them out by index, never by comparing floats.
What a finished shard lacks is an error, never NaN. Reading needs no model.
"""

from __future__ import annotations

import json
import platform
import reprlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
import zarr
from llvmlite import binding  # type: ignore[import-untyped]
from numpy.typing import NDArray
from zarr.codecs import ZstdCodec

from meanfield import results
from meanfield.engine.diagram import variables_of
from meanfield.engine.members import Exits
from meanfield.grids import Array
from meanfield.hybrid import FAILED, STAYED
from meanfield.outcomes import Outcome
from meanfield.shards import (
    Shard,
    create_flags,
    make_whole,
    open_store,
    read_array,
    read_flags,
    reading,
    require_versions,
)
from theory.errors import InputError

SCHEMA = "driftlaw.model_sweep/1"
SEED = "seed"
"""Name of the axis of the members of a cell."""
_NEVER = -128
"""Code that no member has: what stands where nothing was written."""


@dataclass(frozen=True)
class Layout:
    """A product grid, and how its members lie in a store: sync intervals outermost, the rest as in the grid.

    That is the order in which the engine walks them, so that every shard of whole blocks holds blocks of its plan.

    Attributes
    ----------
    values : dict from the names without an axis to numbers
    axes : dict from a name to a tuple of numbers
    num_members : int
        Runs in each cell; more than one make an axis of their own, the last.
    shard_size : int
    """

    values: dict[str, float]
    axes: dict[str, tuple[float, ...]]
    num_members: int
    shard_size: int

    @cached_property
    def coordinates(self) -> dict[str, NDArray[Any]]:
        """Every axis of the grid, in its order."""
        found = {name: np.array(axis) for name, axis in self.axes.items()}
        return {**found, SEED: np.arange(self.num_members)} if self.num_members > 1 else found

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the grid."""
        return tuple(axis.size for axis in self.coordinates.values())

    @property
    def size(self) -> int:
        """How many members there are."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def shards(self) -> tuple[Shard, ...]:
        """Shards of `shard_size` members, the last one of what is left."""
        edges = (*range(0, self.size, self.shard_size), self.size)
        return tuple(Shard(index, edges[index], edges[index + 1]) for index in range(len(edges) - 1))

    @property
    def _outer_first(self) -> list[int]:
        """Axes of the grid by their number, in the order in which members lie in the store."""
        return sorted(range(len(self.shape)), key=lambda axis: list(self.coordinates)[axis] != "sync_interval")

    def places(self, start: int, stop: int) -> dict[str, NDArray[np.int64]]:
        """Return where on each axis of the grid members `start` to `stop` - 1 of the store lie."""
        names, order = list(self.coordinates), self._outer_first
        found = np.unravel_index(np.arange(start, stop), [self.shape[axis] for axis in order]) if order else ()
        by_name = {names[axis]: np.asarray(place) for axis, place in zip(order, found, strict=True)}
        return {name: by_name[name] for name in names}

    def numbers(self, start: int, stop: int) -> NDArray[np.int64]:
        """Return the numbers in the grid, last axis fastest, of members `start` to `stop` - 1 of the store."""
        places = tuple(self.places(start, stop).values())
        return np.asarray(np.ravel_multi_index(places, self.shape) if places else np.arange(start, stop))

    def quantity(self, name: str, start: int, stop: int) -> Array:
        """Return the value of a name in members `start` to `stop` - 1 of the store."""
        if name in self.axes:
            return np.asarray(self.coordinates[name][self.places(start, stop)[name]])
        return np.full(stop - start, self.values[name])

    def laid_out(self, stored: NDArray[Any]) -> NDArray[Any]:
        """Return what lies in the order of the store, shape (size,), as a grid."""
        order = self._outer_first
        return stored.reshape([self.shape[axis] for axis in order]).transpose(np.argsort(order))


def versions(key: str) -> dict[str, str]:
    """Return what the bits of a sweep depend on, with the key of its compiled model."""
    packages = ("driftlaw", "numpy", "numba", "llvmlite")
    found = {"python": platform.python_version(), **{name: metadata.version(name) for name in packages}}
    return {**found, "processor": binding.get_host_cpu_name(), "compiled model": key}


def create_store(path: Path, plan: str, key: str, attributes: Mapping[str, Any]) -> None:
    """Write the empty store; it is there whole or not at all.

    Parameters
    ----------
    path : Path
        Must not exist.
    plan : str
        As `meanfield.engine.sweep.SweepPlan.to_json` gives it.
    key : str
        Of the compiled model.
    attributes : mapping
        What the Dataset of the sweep shall have.
    """

    def fill(beside: Path) -> None:
        group = zarr.open_group(beside, mode="w")
        group.attrs.update({"schema": SCHEMA, "plan": plan, "made_with": versions(key), "attributes": dict(attributes)})
        layout = layout_of(json.loads(plan))
        for name, dtype, fill_value in (("clock", "float64", np.nan), ("code", "int8", _NEVER)):
            group.create_array(
                name,
                shape=(layout.size,),
                chunks=(layout.shard_size,),
                dtype=dtype,
                fill_value=fill_value,
                compressors=ZstdCodec(level=1, checksum=True),
                dimension_names=("member",),
            )
        create_flags(group, len(layout.shards))

    make_whole(path, fill)


def check_store(path: Path, plan: str, key: str) -> None:
    """Refuse to resume a store that is broken, or that another plan or other versions made.

    Raises
    ------
    InputError
        Names what is broken, or the first part that differs, with both values.
    """
    group = _open(path)
    with reading(path, "attribute plan"):
        stored = _flat(json.loads(group.attrs["plan"]))
    given = _flat(json.loads(plan))
    for name in dict.fromkeys((*given, *stored)):
        if stored.get(name) != given.get(name):
            raise InputError(
                "store",
                f"hold the same plan: its {name} is {reprlib.repr(stored.get(name))}",
                reprlib.repr(given.get(name)),
                "Give another store, or the plan that made this one.",
            )
    with reading(path, "attribute made_with"):
        made_with = dict(group.attrs["made_with"])
    require_versions("store", made_with, versions(key))
    _read(group, path, layout_of(json.loads(plan)))


def tidy(path: Path) -> None:
    """Remove the files that killed processes left half written; hold the lock."""
    for left in path.rglob("*.partial"):
        left.unlink(missing_ok=True)


def stored_plan(path: Path) -> str:
    """Return the plan that a store was made from, as JSON. Raises `InputError` if the store is broken."""
    with reading(path, "attribute plan"):
        return str(_open(path).attrs["plan"])


def done_flags(path: Path) -> NDArray[np.bool_]:
    """Which shards are finished, shape (num_shards,), bool. Raises `InputError` if the store is broken."""
    group = _open(path)
    return read_flags(group, path, len(_stored_layout(group, path).shards))


def write_shard(path: Path, shard: Shard, exits: Exits) -> None:
    """Write clocks and codes of one shard, then its done flag."""
    group = zarr.open_group(path, mode="r+")
    group["clock"][shard.start : shard.stop] = exits.clock
    group["code"][shard.start : shard.stop] = exits.code
    group["done"][shard.index] = True


def open_sweep(store: str | Path) -> xr.Dataset:
    """Read a sweep as one labelled Dataset over its axes, and `seed` where a cell has several members.

    Parameters
    ----------
    store : str or Path

    Returns
    -------
    Dataset
        As `meanfield.results.model_diagram` says. In shards that are not done the outcome is `unknown`, `simulated` is
        0 and the rest is NaN.

    Raises
    ------
    InputError
        If `store` is no sweep store, or a broken one.
    """
    path = Path(store)
    group = _open(path)
    layout = _stored_layout(group, path)
    with reading(path, "an attribute"):
        attributes = {
            **group.attrs["attributes"],
            "plan": group.attrs["plan"],
            "axes": json.dumps([*layout.coordinates]),
        }
        horizon = int(attributes["horizon"])
    clock, code, done = _read(group, path, layout)
    rates = layout.quantity("learning_rate", 0, layout.size)
    variables = variables_of(Exits(clock, code, np.empty((0, layout.size))), rates, horizon)
    variables["outcome"] = np.where(done, variables["outcome"], Outcome.UNKNOWN.code)
    variables["simulated"] = done.astype(np.float64)
    return results.build(
        results.model_diagram(tuple(layout.coordinates)),
        coordinates=layout.coordinates,
        variables={name: layout.laid_out(value) for name, value in variables.items()},
        attributes={name: value for name, value in attributes.items() if name != "schema"},
    )


def layout_of(plan: Mapping[str, Any]) -> Layout:
    """Return the layout of a plan that was read from JSON."""
    axes = {name: tuple(map(float, axis)) for name, axis in plan["axes"].items()}
    values = {name: float(value) for name, value in plan["values"].items()}
    return Layout(values, axes, int(plan["num_members"]), int(plan["shard_size"]))


def _read(group: Any, path: Path, layout: Layout) -> tuple[Array, NDArray[np.int8], NDArray[np.bool_]]:
    """Clocks and codes in the order of the store, and which are there; the others stay, as it were, for ever."""
    clocks, codes = (read_array(group, path, name, (layout.size,)) for name in ("clock", "code"))
    flags = read_flags(group, path, len(layout.shards))
    with reading(path, "attribute attributes"):
        num_exits = len(json.loads(group.attrs["attributes"]["exits"]))
    clock = np.full(layout.size, np.inf)
    code = np.full(layout.size, STAYED, dtype=np.int8)
    done = np.zeros(layout.size, dtype=bool)
    for shard in _taken(layout.shards, flags):
        part = slice(shard.start, shard.stop)
        with reading(path, f"shard {shard.index}"):
            clock[part], code[part], done[part] = clocks[part], codes[part], True
            if not np.all((code[part] >= FAILED) & (code[part] < num_exits)):
                raise ValueError("it has no code, or one that no member can have")
            if not np.all(np.where(code[part] >= 0, np.isfinite(clock[part]), clock[part] == np.inf)):
                raise ValueError("its clocks do not fit its codes")
    return clock, code, done


def _taken(shards: Iterable[Shard], flags: NDArray[np.bool_]) -> list[Shard]:
    return [shard for shard in shards if flags[shard.index]]


def _stored_layout(group: Any, path: Path) -> Layout:
    with reading(path, "attribute plan"):
        return layout_of(json.loads(group.attrs["plan"]))


def _flat(plan: Mapping[str, Any]) -> dict[str, Any]:
    """The parts of a plan, those of a part that is a mapping each under a name of its own."""
    parts: dict[str, Any] = {}
    for name, part in plan.items():
        if isinstance(part, dict):
            parts |= {f"{name} {inner}": value for inner, value in part.items()}
        else:
            parts[name] = part
    return parts


def _open(path: Path) -> Any:
    return open_store(path, SCHEMA, make="meanfield.engine.sweep.run_sweep", maker="meanfield.engine.sweep.run_sweep")

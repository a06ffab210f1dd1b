"""One Zarr store per sweep: made whole from the plan before any work, filled shard by shard, done flag last.

Layout: one chunk per run along `run`, so that no two shards ever share a file; `done` has one flag per shard. The axes
are those of the stored experiment, and runs lie in the order of its plan, so that `open_sweep` lays them out by index,
never by comparing floats. What a finished shard lacks is an error, never NaN. Reading needs no torch.
"""

import json
import platform
from collections.abc import Mapping
from dataclasses import asdict
from importlib import metadata
from pathlib import Path

import numpy as np
import xarray as xr
import zarr

from meanfield.results import SWEEP, build
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
from validation.config import Experiment, experiment_from_mapping
from validation.plan import Plan

START_FILE = "start.safetensors"
_NOT_AT_STEP_ONE = ("learner_reward", "gradient_cosine", "pair_cosine", "cycle_cosine")


def current_versions() -> dict[str, str]:
    """Versions on which the bits of a run depend."""
    packages = ("driftlaw", "torch", "numpy")
    return {"python": platform.python_version(), **{name: metadata.version(name) for name in packages}}


def create_store(
    path: Path, experiment: Experiment, *, reward_floor: float, initial_reward: float, start: bytes
) -> None:
    """Write the empty store and the starting weights; it is there whole or not at all.

    Parameters
    ----------
    path : Path
        Must not exist.
    experiment : Experiment
    reward_floor, initial_reward : float [1]
        Expected reward of a uniformly random policy, and of the starting policy.
    start : bytes
        The starting weights as a safetensors file.
    """

    def fill(beside: Path) -> None:
        group = zarr.open_group(beside, mode="w")
        group.attrs.update(
            {
                "schema": SWEEP.name,
                "experiment": experiment.to_json(),
                "versions": json.dumps(current_versions(), sort_keys=True),
                "reward_floor": reward_floor,
                "initial_reward": initial_reward,
            }
        )
        _create_arrays(group, Plan(experiment))
        (beside / START_FILE).write_bytes(start)

    make_whole(path, fill)


def _create_arrays(group: zarr.Group, plan: Plan) -> None:
    for name in SWEEP.names:
        group.create_array(
            name,
            shape=_shape(plan),
            chunks=(1, plan.experiment.max_steps),
            dtype="float32",
            fill_value=np.nan,
            dimension_names=("run", "step"),
        )
    create_flags(group, len(plan.shards))


def check_store(path: Path, experiment: Experiment) -> None:
    """Refuse to resume a store that is broken, or that another experiment or other versions made.

    Needs safetensors.

    Raises
    ------
    InputError
        Names what is broken, or the first field that differs, with both values.
    """
    import safetensors

    stored = json.loads(stored_experiment(path).to_json())
    for key, value in json.loads(experiment.to_json()).items():
        if stored[key] != value:
            raise InputError(
                "--store",
                f"hold the same experiment: its {key} is {stored[key]}",
                value,
                "Give another --store, or the experiment file that made this one.",
            )
    versions = json.loads(open_sweep(path).attrs["versions"])
    require_versions("--store", versions, current_versions())
    if not done_flags(path).all():
        with reading(path, f"starting weights {START_FILE}"):
            safetensors.deserialize((path / START_FILE).read_bytes())


def done_flags(path: Path) -> np.ndarray:
    """Which shards are finished, shape (num_shards,), bool. Raises `InputError` if the store is broken."""
    group = _open_group(path)
    return read_flags(group, path, len(Plan(_experiment(group, path)).shards))


def write_shard(path: Path, shard: Shard, traces: Mapping[str, np.ndarray]) -> None:
    """Write the traces of one shard, each chunk a file even where all of it is NaN, then its done flag."""
    group = zarr.open_group(path, mode="r+")
    with zarr.config.set({"array.write_empty_chunks": True}):
        for name in SWEEP.names:
            group[name][shard.start : shard.stop] = traces[name]
    group["done"][shard.index] = True


def stored_experiment(path: Path) -> Experiment:
    """Return the experiment that a store was made from. Raises `InputError` if the store is broken."""
    return _experiment(_open_group(path), path)


def open_sweep(path: Path) -> xr.Dataset:
    """Read a sweep as one labelled Dataset over (sync_interval, learning_rate, seed, step).

    Runs of shards that are not done are NaN throughout. Schema: `meanfield.results.SWEEP`.

    Raises
    ------
    InputError
        If `path` is no sweep store, or a broken one: a part of it is missing or cannot be read, or a run of a finished
        shard lacks values that every run has.
    """
    group = _open_group(path)
    experiment = _experiment(group, path)
    plan = Plan(experiment)
    axes = asdict(experiment)
    shape = (len(axes["sync_interval"]), len(axes["seed"]), len(axes["learning_rate"]), experiment.max_steps)
    flags = read_flags(group, path, len(plan.shards))
    finished = [shard for shard in plan.shards if flags[shard.index]]
    variables = {}
    for name in SWEEP.names:
        values = _read_metric(group, path, plan, name, finished)
        variables[name] = values.reshape(shape).transpose(0, 2, 1, 3)
    coordinates = {name: axes[name] for name in ("sync_interval", "learning_rate", "seed")}
    coordinates["step"] = np.arange(1, experiment.max_steps + 1)
    with reading(path, "an attribute"):
        json.loads(group.attrs["versions"])
        attributes = {name: group.attrs[name] for name in SWEEP.attributes}
    return build(SWEEP, coordinates=coordinates, variables=variables, attributes=attributes)


def _read_metric(group: zarr.Group, path: Path, plan: Plan, name: str, finished: list[Shard]) -> np.ndarray:
    """One variable of the finished shards, NaN elsewhere, shape (num_runs, max_steps), float64.

    A run has a chunk of every variable, and a finite value at step 1, which is the starting policy's, but for those
    not defined there; `clip_fraction` is NaN throughout where nothing is clipped.
    """
    array = read_array(group, path, name, _shape(plan))
    values = np.full(_shape(plan), np.nan)
    never_there = name == "clip_fraction" and plan.experiment.grpo.epsilon is None
    for shard in finished:
        for run in range(shard.start, shard.stop):
            with reading(path, f"{name} of run {run}"):
                values[run] = array[run]  # one chunk at a time: a broken one leaves no read of another pending
                if not (never_there or (path / name / array.metadata.encode_chunk_key((run, 0))).is_file()):
                    raise FileNotFoundError("its chunk is missing")
                if not (never_there or name in _NOT_AT_STEP_ONE or np.isfinite(values[run, 0])):
                    raise ValueError("it has no finite value at step 1")
    return values


def _shape(plan: Plan) -> tuple[int, int]:
    return len(plan.runs), plan.experiment.max_steps


def _experiment(group: zarr.Group, path: Path) -> Experiment:
    with reading(path, "attribute experiment"):
        return experiment_from_mapping(json.loads(group.attrs["experiment"]))


def _open_group(path: Path) -> zarr.Group:
    return open_store(path, SWEEP.name, make="python -m validation.run EXPERIMENT.toml", maker="validation.run")

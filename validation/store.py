"""One Zarr store per sweep: made whole from the plan before any work, filled shard by shard, done flag last.

Layout: one chunk per run along `run`, so that no two shards ever share a file; `done` has one flag per shard. Axis
coordinates and grid indices are stored beside the runs, so that `open_sweep` lays them out by index, never by
comparing floats. Reading needs no torch.
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

from meanfield.errors import InputError
from meanfield.results import SWEEP, build
from validation.config import Experiment, experiment_from_mapping
from validation.plan import Plan, Shard

START_FILE = "start.safetensors"
_METRICS = tuple(variable.name for variable in SWEEP.variables)


def current_versions() -> dict[str, str]:
    """Versions on which the bits of a run depend."""
    packages = ("driftlaw", "torch", "numpy")
    return {"python": platform.python_version(), **{name: metadata.version(name) for name in packages}}


def create_store(
    path: Path, experiment: Experiment, *, reward_floor: float, initial_reward: float, start: bytes
) -> None:
    """Write the empty store and the starting weights beside `path`, then rename: it is there whole or not at all.

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
    plan = Plan(experiment)
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.new")
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
    shape = (len(plan.runs), experiment.max_steps)
    for name in _METRICS:
        group.create_array(
            name,
            shape=shape,
            chunks=(1, experiment.max_steps),
            dtype="float32",
            fill_value=np.nan,
            dimension_names=("run", "step"),
        )
    group.create_array(
        "done",
        shape=(len(plan.shards),),
        chunks=(1,),
        dtype="bool",
        fill_value=False,
        dimension_names=("shard",),
    )
    (beside / START_FILE).write_bytes(start)
    beside.rename(path)


def check_store(path: Path, experiment: Experiment) -> None:
    """Refuse to resume a store that another experiment or other versions made.

    Raises
    ------
    InputError
        Names the first field that differs, with both values.
    """
    group = _open_group(path)
    stored = json.loads(str(group.attrs["experiment"]))
    given = json.loads(experiment.to_json())
    for key, value in given.items():
        if stored.get(key) != value:
            raise InputError(
                "--store",
                f"hold the same experiment: its {key} is {stored.get(key)}",
                value,
                "Give another --store, or the experiment file that made this one.",
            )
    versions = json.loads(str(group.attrs["versions"]))
    for name, version in current_versions().items():
        if versions.get(name) != version:
            raise InputError(
                "--store",
                f"be resumed with the versions that made it: {name} {versions.get(name)}",
                version,
                "Install that version, or start a new store: mixed versions do not give equal bits.",
            )


def done_flags(path: Path) -> np.ndarray:
    """Which shards are finished, shape (num_shards,), bool."""
    return np.asarray(_open_group(path)["done"][:])


def write_shard(path: Path, shard: Shard, traces: Mapping[str, np.ndarray]) -> None:
    """Write the traces of one shard, then its done flag."""
    group = zarr.open_group(path, mode="r+")
    for name in _METRICS:
        group[name][shard.start : shard.stop] = traces[name]
    group["done"][shard.index] = True


def stored_experiment(path: Path) -> Experiment:
    """Return the experiment that a store was made from."""
    return experiment_from_mapping(json.loads(str(_open_group(path).attrs["experiment"])))


def open_sweep(path: Path) -> xr.Dataset:
    """Read a sweep as one labelled Dataset over (sync_interval, learning_rate, seed, step).

    Runs of shards that are not done are NaN throughout. Schema: `meanfield.results.SWEEP`.

    Raises
    ------
    InputError
        If `path` is no sweep store.
    """
    group = _open_group(path)
    experiment = stored_experiment(path)
    plan = Plan(experiment)
    axes = asdict(experiment)
    shape = (len(axes["sync_interval"]), len(axes["seed"]), len(axes["learning_rate"]), experiment.max_steps)
    flags = done_flags(path)
    finished = np.zeros(len(plan.runs), bool)
    for shard in plan.shards:
        finished[shard.start : shard.stop] = flags[shard.index]
    variables = {}
    for name in _METRICS:
        values = np.where(finished[:, None], np.asarray(group[name][:], np.float64), np.nan)
        variables[name] = values.reshape(shape).transpose(0, 2, 1, 3)
    coordinates = {name: axes[name] for name in ("sync_interval", "learning_rate", "seed")}
    coordinates["step"] = np.arange(1, experiment.max_steps + 1)
    attributes = {name: group.attrs[name] for name in SWEEP.attributes}
    return build(SWEEP, coordinates=coordinates, variables=variables, attributes=attributes)


def _open_group(path: Path) -> zarr.Group:
    try:
        group = zarr.open_group(path, mode="r")
    except (FileNotFoundError, NotADirectoryError, ValueError) as error:
        raise InputError(
            "STORE", "be a sweep store", str(path), "Make one with python -m validation.run EXPERIMENT.toml."
        ) from error
    if group.attrs.get("schema") != SWEEP.name:
        raise InputError(
            "STORE",
            f"have the schema {SWEEP.name}",
            group.attrs.get("schema"),
            "Give a store made by validation.run.",
        )
    return group

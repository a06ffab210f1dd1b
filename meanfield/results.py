"""The schema of every Dataset: variables, dimensions, units, meaning; build, check, save, load.

Predicted and measured data share dimension and variable names, so that they align exactly.
"""

import json
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from meanfield.files import write_whole
from meanfield.parameters import MapParameters
from theory.claims import claim
from theory.errors import InputError


@dataclass(frozen=True)
class Variable:
    """One variable or coordinate: its name, dimensions, dtype, unit and meaning."""

    name: str
    dims: tuple[str, ...]
    dtype: str
    unit: str
    meaning: str


@dataclass(frozen=True)
class Schema:
    """What a Dataset of one kind must hold."""

    name: str
    coordinates: tuple[Variable, ...]
    variables: tuple[Variable, ...]
    attributes: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the variables, in order; coordinates not among them."""
        return tuple(item.name for item in self.variables)

    @property
    def table(self) -> dict[str, Variable]:
        """Every coordinate and variable by its name."""
        return {item.name: item for item in self.coordinates + self.variables}


def _coordinate(name: str, dtype: str, unit: str, meaning: str) -> Variable:
    return Variable(name, (name,), dtype, unit, meaning)


_SYNC_INTERVAL = _coordinate(
    "sync_interval", "float64", "optimizer step", "steps between two refreshes of the behaviour policy"
)
_LEARNING_RATE = _coordinate("learning_rate", "float64", "1", "constant step size")
_STEP = _coordinate("step", "int64", "optimizer step", "number of the optimizer step, from 1")
_SEED = _coordinate("seed", "int64", "1", "seed of the run")
_CYCLE = _coordinate("cycle", "int64", "sync cycle", "number of the sync cycle, from 0")

_GRID = ("sync_interval", "learning_rate")
_CELL = (*_GRID, "seed")
_RUN = (*_CELL, "step")
_SIMULATED = ("parameters", "horizon", "versions", "claims")


def _exit_variables(dims: tuple[str, ...]) -> tuple[Variable, ...]:
    return (
        Variable("outcome", dims, "int8", "1", "code of meanfield.outcomes.Outcome"),
        Variable("collapse_step", dims, "float64", "optimizer step", "first step at the exit radius; NaN if none"),
        Variable(
            "cumulative_learning_rate_at_exit",
            dims,
            "float64",
            "1",
            "eta*t where the radius is met; NaN if it is not",
        ),
    )


SWEEP = Schema(
    "driftlaw.sweep/2",
    (_SYNC_INTERVAL, _LEARNING_RATE, _SEED, _STEP),
    (
        Variable(
            "learner_reward",
            _RUN,
            "float64",
            "1",
            "exact expected reward after the step; NaN if not evaluated",
        ),
        Variable("rollout_reward", _RUN, "float64", "1", "mean reward of the batch, of the behaviour policy"),
        Variable("entropy", _RUN, "float64", "nat per token", "entropy of the learner's policy on the batch"),
        Variable("drift", _RUN, "float64", "nat", "rms log-ratio per token of the batch, before the update"),
        Variable("behavior_k3", _RUN, "float64", "nat", "mean of r - 1 - log r per token, before the update"),
        Variable("clip_fraction", _RUN, "float64", "1", "share of tokens outside the clip range"),
        Variable("grad_norm", _RUN, "float64", "1", "norm of the raw gradient"),
        Variable(
            "effective_sample_size",
            _RUN,
            "float64",
            "1",
            "(sum w)^2 / (N sum w^2) of the completions' importance weights w, before the update",
        ),
        Variable("gradient_cosine", _RUN, "float64", "1", "cosine of the raw gradient with that of the step before"),
        Variable(
            "pair_cosine",
            _RUN,
            "float64",
            "1",
            "at the last step of a cycle, mean cosine over all pairs of its raw gradients; else NaN",
        ),
        Variable(
            "cycle_cosine",
            _RUN,
            "float64",
            "1",
            "at the last step of a cycle, cosine of its mean gradient with that of the cycle before; else NaN",
        ),
        Variable("displacement_since_sync", _RUN, "float64", "1", "distance of the weights from the last sync"),
        Variable("displacement_since_start", _RUN, "float64", "1", "distance of the weights from the start"),
    ),
    ("reward_floor", "initial_reward", "experiment", "versions"),
)
"""Measured runs. The value at step t belongs to the t-th optimizer step, whose lag is (t - 1) mod S."""

BY_LAG = ("drift", "behavior_k3", "effective_sample_size")
"""Variables of a sweep whose median at every lag is kept."""
WINDOW_MEANS = (
    "rollout_reward",
    "entropy",
    "clip_fraction",
    "grad_norm",
    "gradient_cosine",
    "pair_cosine",
    "cycle_cosine",
)
"""Variables of a sweep whose mean over early training is kept."""


def _reduced(name: str, dims: tuple[str, ...], how: str) -> Variable:
    of = SWEEP.table[name]
    return Variable(name, (*_CELL, *dims), "float32", of.unit, f"{of.meaning}: {how}")


MEASURES = Schema(
    "driftlaw.measures/1",
    (
        _SYNC_INTERVAL,
        _LEARNING_RATE,
        _SEED,
        _coordinate("lag", "int64", "optimizer step", "learner version minus behaviour version"),
        _coordinate("horizon", "int64", "optimizer step", "length at which the run is cut"),
    ),
    (
        *(_reduced(name, ("lag",), "median over the cycles of the window") for name in BY_LAG),
        *(_reduced(name, (), "mean over the window") for name in WINDOW_MEANS),
        _reduced("displacement_since_sync", (), "median over the cycle ends of the window"),
        _reduced("learner_reward", (), "last evaluation"),
        Variable("best_reward", _CELL, "float32", "1", "best evaluation"),
        Variable("cycle_cosine_at_onset", _CELL, "float32", "1", "mean of the last 5 before the onset, or the end"),
        Variable("displacement_at_onset", _CELL, "float32", "1", "distance from the start at the onset, or the end"),
        Variable("outcome", ("horizon", *_CELL), "int8", "1", "code of meanfield.outcomes.Outcome of the cut run"),
        Variable("collapse_step_low", ("horizon", *_CELL), "float32", "optimizer step", "onset after this step"),
        Variable("collapse_step_high", ("horizon", *_CELL), "float32", "optimizer step", "onset up to this step"),
    ),
    ("reward_floor", "initial_reward", "experiment", "versions", "window", "label_rule", "shard_digests"),
)
"""What a sweep comes to, one number a run (and lag, or horizon). The window is the first steps, before any decline."""

PHASE_DIAGRAM = Schema("driftlaw.phase_diagram/1", (_SYNC_INTERVAL, _LEARNING_RATE), _exit_variables(_GRID), _SIMULATED)
"""One simulated run for each cell of a grid."""

TRAJECTORY = Schema(
    "driftlaw.trajectory/1",
    (_CYCLE, _STEP),
    (
        Variable("memory", ("cycle",), "float64", "1", "mean normalized update of the cycle; NaN after the exit"),
        Variable("displacement", ("step",), "float64", "1", "displacement after the step; NaN after the exit"),
        Variable("cumulative_learning_rate", ("step",), "float64", "1", "eta*t after the step"),
        *_exit_variables(()),
        Variable("sync_interval", (), "float64", "optimizer step", _SYNC_INTERVAL.meaning),
        Variable("learning_rate", (), "float64", "1", _LEARNING_RATE.meaning),
    ),
    _SIMULATED,
)
"""One simulated run."""


_MODEL = "driftlaw.model_diagram/1"
_ENSEMBLE = "driftlaw.model_ensemble/1"
_MODELLED = (*_SIMULATED, "axes", "exits", "method")


def _axes_of(names: tuple[str, ...]) -> tuple[Variable, ...]:
    known = {item.name: item for item in (_SYNC_INTERVAL, _LEARNING_RATE, _SEED)}
    return tuple(known.get(name, _coordinate(name, "float64", "1", f"parameter {name} of the model")) for name in names)


def model_diagram(axes: tuple[str, ...]) -> Schema:
    """Return the schema of one run of a drift model for each cell of a grid over any axes."""
    exit_index = Variable("exit", axes, "int8", "1", "index among the attribute exits; -1 if none fires")
    simulated = Variable("simulated", axes, "int8", "1", "0 where the outcome is that of all cells around it")
    return Schema(_MODEL, _axes_of(axes), (*_exit_variables(axes), exit_index, simulated), _MODELLED)


def model_ensemble(axes: tuple[str, ...]) -> Schema:
    """Return the schema of many noisy runs of a drift model for each cell of a grid over any axes."""
    quantile = _coordinate("quantile", "float64", "1", "share of the runs")
    exits = _coordinate("exit", "int64", "1", "index among the attribute exits")
    steps = "optimizer step"
    variables = (
        Variable(
            "collapse_probability", axes, "float64", "1", "share of the runs that meet an exit within the horizon"
        ),
        Variable("collapse_probability_low", axes, "float64", "1", "lower end of its 90 % interval (Wilson)"),
        Variable("collapse_probability_high", axes, "float64", "1", "upper end of its 90 % interval (Wilson)"),
        Variable("collapse_step_mean", axes, "float64", steps, "mean over the runs that collapse; NaN if none does"),
        Variable(
            "collapse_step_quantile", (*axes, "quantile"), "float64", steps, "step by which this share has collapsed"
        ),
        Variable("exit_share", (*axes, "exit"), "float64", "1", "share of the runs that leave through this exit"),
        Variable("failed_share", axes, "float64", "1", "share of the runs whose states stop being numbers"),
    )
    return Schema(_ENSEMBLE, (*_axes_of(axes), quantile, exits), variables, (*_MODELLED, "num_members"))


def build(
    schema: Schema,
    *,
    coordinates: Mapping[str, ArrayLike],
    variables: Mapping[str, ArrayLike],
    attributes: Mapping[str, Any],
) -> xr.Dataset:
    """Put arrays together as the schema says, cast and with units and meanings, and check the result.

    Parameters
    ----------
    schema : Schema
    coordinates, variables : mapping from name to array
        In the order of the schema's dimensions.
    attributes : mapping from name to str or number

    Returns
    -------
    Dataset

    Raises
    ------
    InputError
        As `check`.
    """

    def labelled(values: Mapping[str, ArrayLike]) -> dict[str, Any]:
        _require_names(schema, values, schema.table)
        return {name: _label(schema.table[name], value) for name, value in values.items()}

    dataset = xr.Dataset(labelled(variables), labelled(coordinates), {"schema": schema.name, **attributes})
    return check(dataset, schema)


def check(dataset: xr.Dataset, schema: Schema) -> xr.Dataset:
    """Return the Dataset unchanged if it is what the schema says.

    Raises
    ------
    InputError
        If a variable or attribute is missing or unknown, or has other dimensions or another dtype.
    """
    given = {str(name): dataset[name] for name in dataset.variables}
    _require_names(schema, given, schema.table)
    for name, item in schema.table.items():
        if name not in given:
            raise InputError(f"{schema.name}: {name}", "be given", "nothing", f"It is {item.meaning} [{item.unit}].")
        if given[name].dims != item.dims:
            way_out = f"Transpose it to {item.dims}."
            raise InputError(f"{schema.name}: {name}", f"have the dimensions {item.dims}", given[name].dims, way_out)
        if given[name].dtype != np.dtype(item.dtype):
            way_out = f"Cast it to {item.dtype}."
            raise InputError(f"{schema.name}: {name}", f"be of dtype {item.dtype}", given[name].dtype, way_out)
    for name in schema.attributes:
        if name not in dataset.attrs:
            raise InputError(f"{schema.name}: attribute {name}", "be given", "nothing", f"Set attrs[{name!r}].")
    return dataset


def schema_of(dataset: xr.Dataset) -> Schema:
    """Return the schema that a Dataset names in its attribute `schema`.

    Raises
    ------
    InputError
        If it names none of ours.
    """
    schemas = {schema.name: schema for schema in (SWEEP, MEASURES, PHASE_DIAGRAM, TRAJECTORY)}
    name = dataset.attrs.get("schema")
    for maker in (model_diagram, model_ensemble):
        made = maker(tuple(json.loads(dataset.attrs.get("axes", "[]"))))
        schemas[made.name] = made
    if name not in schemas:
        raise InputError("attribute schema", f"be one of {', '.join(schemas)}", name, "Build it with this package.")
    return schemas[name]


def save(dataset: xr.Dataset, path: str | Path) -> Path:
    """Write a checked Dataset to a NetCDF file: written beside it, synced, then renamed.

    Parameters
    ----------
    dataset : Dataset
    path : str or Path

    Returns
    -------
    Path

    Raises
    ------
    InputError
        If the Dataset does not fit the schema, an integer does not fit 32 bits (the file format has no more),
        or the folder does not exist.
    """
    if not isinstance(dataset, xr.Dataset):
        raise InputError("dataset", "be a Dataset", type(dataset).__name__, "Save a path by numpy.savez, for example.")
    path = Path(path)
    schema = schema_of(dataset)
    check(dataset, schema)
    for name, array in dataset.variables.items():
        if array.dtype == np.int64 and array.size and np.abs(array.values).max() > np.iinfo(np.int32).max:
            raise InputError(f"{schema.name}: {name}", "fit 32 bits", array.values.max(), "Use smaller integers.")
    if not path.parent.is_dir():
        raise InputError("path", "lie in an existing folder", path, f"Create {path.parent} first.")
    write_whole(path, lambda beside: dataset.to_netcdf(beside, engine="scipy"))
    return path


def load(path: str | Path) -> xr.Dataset:
    """Read a Dataset that `save` wrote, cast it to its schema's dtypes and check it.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    Dataset

    Raises
    ------
    InputError
        If the file cannot be read or does not fit the schema.
    """
    try:
        dataset = xr.load_dataset(path, engine="scipy")
    except (OSError, TypeError, ValueError, LookupError) as error:
        raise InputError("path", "be a NetCDF file", path, f"Reading said: {error}.") from error
    schema = schema_of(dataset)
    for name, item in schema.table.items():
        if name in dataset.variables:
            dataset[name] = dataset[name].astype(item.dtype, keep_attrs=True)
    return check(dataset, schema)


def provenance(parameters: MapParameters, *, horizon: int, claims: Iterable[str]) -> dict[str, str | int]:
    """Return the attributes from which a simulated Dataset can be made again.

    Parameters
    ----------
    parameters : MapParameters
    horizon : int [optimizer step]
    claims : iterable of str
        Ids of the claims that the simulation uses.

    Returns
    -------
    dict
        "parameters" and "versions" as JSON, "horizon", "claims". The map has no noise, so there is no seed.
    """
    packages = ("driftlaw", "numpy", "numba", "xarray")
    return {
        "parameters": json.dumps(asdict(parameters)),
        "horizon": horizon,
        "versions": json.dumps({name: metadata.version(name) for name in packages}),
        "claims": " ".join(claim(claim_id).id for claim_id in claims),
    }


def _label(item: Variable, value: ArrayLike) -> tuple[tuple[str, ...], np.ndarray[Any, Any], dict[str, str]]:
    return item.dims, np.asarray(value, dtype=item.dtype), {"units": item.unit, "long_name": item.meaning}


def _require_names(schema: Schema, given: Iterable[Hashable], known: Mapping[str, Variable]) -> None:
    for name in given:
        if str(name) not in known:
            raise InputError(f"{schema.name}: {name}", "be a known name", "it", f"Known: {', '.join(known)}.")

"""Names and values -> members: the parameters of a model, the sync interval and the learning rate, on a grid or not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from meanfield.engine.members import Members
from meanfield.grids import Array
from meanfield.results import model_diagram, model_ensemble
from theory.errors import InputError
from theory.models.model import DriftModel
from theory.symbols import S, eta

RUN = ("sync_interval", "learning_rate")
"""Names of the two quantities of a run that are no parameters of a model."""
_BOUND = {S: RUN[0], eta: RUN[1]}


def names_of(model: DriftModel) -> tuple[str, ...]:
    """Return the names that need a value: the model's own parameters, then the two of a run.

    A parameter that is S or eta of theory/symbols takes the run's own value and is not among them.
    """
    return (*(str(symbol) for symbol in model.parameters if symbol not in _BOUND), *RUN)


def grid_of(model: DriftModel, values: Mapping[str, float], axes: Mapping[str, ArrayLike]) -> dict[str, Array]:
    """Return every axis as an array of float64, after checking that axes and values name everything once.

    Raises
    ------
    InputError
        If a name is missing, unknown or given twice, or an axis is not a strictly increasing list of numbers.
    """
    known = ", ".join(names_of(model))
    for name in (*values, *axes):
        if name not in names_of(model):
            raise InputError(f"{model.name}: values", "name parameters of the model", repr(name), f"Known: {known}.")
        if name in values and name in axes:
            raise InputError("axes", "hold no name that has a value", repr(name), "Leave it out of values.")
    for name in names_of(model):
        if name not in values and name not in axes:
            way_out = f"Give a value or an axis for each of {known}."
            raise InputError(f"{model.name}: values", "give every parameter", f"none for {name}", way_out)
    taken = {item.name for schema in (model_diagram(()), model_ensemble(())) for item in schema.table.values()}
    for name in taken & set(axes):
        raise InputError("axes", "hold no name of a variable of the result", repr(name), "Rename that parameter.")
    return {name: _axis(name, axis) for name, axis in axes.items()}


def numbers_of(model: DriftModel, values: Mapping[str, Any]) -> list[Any]:
    """Return the value of every parameter of the model in its order; S and eta take the run's own."""
    return [values[_BOUND.get(symbol, str(symbol))] for symbol in model.parameters]


def members_of(model: DriftModel, values: Mapping[str, ArrayLike]) -> Members:
    """Return members from a number or an array for every name, broadcast and flattened.

    Parameters
    ----------
    model : DriftModel
    values : mapping from every name of `names_of` to a number or an array

    Returns
    -------
    Members
    """
    arrays = {name: np.asarray(value, dtype=np.float64) for name, value in values.items()}
    shape = np.broadcast_shapes(*(array.shape for array in arrays.values()))
    flat = {name: np.broadcast_to(array, shape).ravel() for name, array in arrays.items()}
    rows = numbers_of(model, flat)
    stacked = np.array(rows).reshape(len(rows), flat[RUN[0]].size)
    return Members(stacked, flat[RUN[0]].copy(), flat[RUN[1]].copy())


def grid_members(model: DriftModel, values: Mapping[str, float], axes: Mapping[str, Array]) -> Members:
    """Return the members of a product grid, the last axis fastest; arguments as `grid_of` has checked them."""
    meshes = np.meshgrid(*axes.values(), indexing="ij")
    return members_of(model, {**values, **dict(zip(axes, meshes, strict=True))})


def _axis(name: str, values: ArrayLike) -> NDArray[np.float64]:
    axis = np.asarray(values, dtype=np.float64)
    if axis.ndim != 1 or axis.size == 0 or not np.all(axis[1:] > axis[:-1]):
        raise InputError(f"axes: {name}", "be a strictly increasing list of numbers", values, "Sort it, drop NaN.")
    return axis

"""What a simulation may be asked for: sync intervals, learning rates, a horizon; checked before any work."""

import math
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from meanfield.grids import Array
from theory.errors import InputError


def sync_interval(value: object) -> float:
    """Return a whole number >= 1, or inf, as a float; raises InputError."""
    number = _number(value)
    if number >= 1.0 and (math.isinf(number) or number.is_integer()):
        return number
    way_out = "For a fully on-policy run use 1, for a run without sync inf."
    raise InputError("sync_interval", "be an integer >= 1 or inf", repr(value), way_out)


def learning_rate(value: object) -> float:
    """Return a positive finite number as a float; raises InputError."""
    number = _number(value)
    if 0.0 < number < math.inf:
        return number
    raise InputError("learning_rate", "be a positive finite number", repr(value), "Give a step size such as 1e-3.")


def count(name: str, value: object, *, way_out: str) -> int:
    """Return a whole number >= 1; raises InputError."""
    number = _number(value)
    if 1.0 <= number < math.inf and number.is_integer():
        return int(number)
    raise InputError(name, "be an integer >= 1", repr(value), way_out)


def horizon(value: object) -> int:
    """Return a whole number of optimizer steps >= 1; raises InputError."""
    return count("horizon", value, way_out="Give the optimizer steps of the run.")


def sync_intervals(values: ArrayLike) -> Array:
    """Return a strictly increasing axis of sync intervals; raises InputError."""
    return np.array([sync_interval(value) for value in _axis("sync_intervals", values)])


def learning_rates(values: ArrayLike) -> Array:
    """Return a strictly increasing axis of learning rates; raises InputError."""
    return np.array([learning_rate(value) for value in _axis("learning_rates", values)])


def _number(value: object) -> float:
    """Return the value as a float, or NaN if it is not a number (True is not a number here)."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return math.nan
    return float(value)


def _axis(name: str, values: ArrayLike) -> NDArray[Any]:
    axis = np.asarray(values)
    if axis.ndim != 1 or axis.size == 0 or np.any(axis[1:] <= axis[:-1]):
        raise InputError(name, "be a strictly increasing list", values, "Sort it and drop what is double.")
    return axis

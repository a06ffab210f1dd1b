"""Where runs turn from stable to collapsed along one axis, by bisection, with the bracket as the error bar."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from meanfield import arguments
from meanfield.engine.compiled import Adaptive, EulerMaruyama, compile_model
from meanfield.engine.ensemble import CONFIDENCE, walked
from meanfield.engine.members import Members
from meanfield.engine.values import RUN, grid_of, members_of
from meanfield.grids import Array
from meanfield.hybrid import FAILED
from theory.errors import InputError
from theory.models.model import DriftModel

BOUNDARY_TOLERANCE = 1e-9
"""Default tolerance of a run: near a boundary small errors decide."""


@dataclass(frozen=True, eq=False)
class Boundary:
    """Where runs turn, along one axis, for each value of another.

    Attributes
    ----------
    along, over : str
        Names of the axis that was searched and of the one that was stepped through.
    over_values : array, shape (n,)
    estimate, low, high : arrays, shape (n,)
        Geometric middle and ends of the bracket. Without noise the run at `low` is stable and that at `high` is not.
        With noise the three are the places where the share of collapsed runs passes the level, and the two ends of
        its 90 % interval at that level. NaN where the two ends of the search do not differ.
    """

    along: str
    over: str
    over_values: Array
    estimate: Array
    low: Array
    high: Array


def find_boundary(
    model: DriftModel,
    values: Mapping[str, float],
    *,
    along: str,
    bracket: tuple[float, float],
    over: tuple[str, ArrayLike],
    horizon: int,
    relative: float = 1e-6,
    tolerance: float = BOUNDARY_TOLERANCE,
) -> Boundary:
    """Find where runs of a model without noise turn from stable to collapsed.

    Parameters
    ----------
    model : DriftModel
    values : mapping from a name to a number
        Everything but `along` and the name in `over`.
    along : str
        "learning_rate" or a parameter; not "sync_interval", which is whole.
    bracket : (float, float)
        Positive; one boundary should lie between, else one of them is found.
    over : (str, array of shape (n,))
        The other axis.
    horizon : int [optimizer step]
    relative : float
        Width of the final bracket over its middle.
    tolerance : float
        Relative error of a step in every state.

    Returns
    -------
    Boundary
        A run whose states stop being numbers counts as not stable.

    Raises
    ------
    InputError
        If a value cannot be used.

    Source: claim C30 (theory/claims).
    """
    cells = _cells(model, values, along, bracket, over)
    compiled, method = compile_model(model), Adaptive(tolerance)

    def beyond(members: Members) -> NDArray[np.bool_]:
        code = compiled.exits(members, horizon=horizon, method=method).code
        return np.asarray((code >= 0) | (code == FAILED))

    low, high = _bisected(model, cells, along, bracket, relative, beyond)
    return Boundary(along, over[0], cells[over[0]], np.sqrt(low * high), low, high)


def find_noisy_boundary(
    model: DriftModel,
    values: Mapping[str, float],
    *,
    along: str,
    bracket: tuple[float, float],
    over: tuple[str, ArrayLike],
    horizon: int,
    num_members: int,
    level: float = 0.5,
    relative: float = 1e-3,
    method: EulerMaruyama | None = None,
) -> Boundary:
    """Find where the share of collapsed runs of a model with noise passes a level.

    Every place of the search uses the same noise, so the share changes along the axis only where runs do.

    Parameters
    ----------
    model, values, along, bracket, over, horizon, relative
        As `find_boundary`.
    num_members : int
        Runs at each place.
    level : float
        Between 0 and 1.
    method : EulerMaruyama, optional

    Returns
    -------
    Boundary

    Raises
    ------
    InputError
        If a value cannot be used.

    Source: claim C30 (theory/claims); the interval is that of a share of num_members independent runs.
    """
    cells = _cells(model, values, along, bracket, over)
    count = arguments.count("num_members", num_members, way_out="Use 100 or more for a probability.")
    if not 0.0 < level < 1.0:
        raise InputError("level", "be between 0 and 1", level, "Use 0.5.")
    compiled, chosen = compile_model(model), method or EulerMaruyama()

    def passing(share: float) -> Array:
        def beyond(members: Members) -> NDArray[np.bool_]:
            _, code = walked(compiled, members, count, horizon, chosen)
            return np.asarray(((code >= 0) | (code == FAILED)).mean(axis=1) >= share)

        low, high = _bisected(model, cells, along, bracket, relative, beyond)
        return np.sqrt(low * high)

    below, above = _interval(level, count)
    return Boundary(along, over[0], cells[over[0]], passing(level), passing(below), passing(above))


def _interval(level: float, num_members: int) -> tuple[float, float]:
    """Shares between which that of so many runs lies in 90 of 100 cases, if the probability is the level."""
    from scipy.stats import binom

    tail = (1.0 - CONFIDENCE) / 2.0
    below, above = (float(binom.ppf(share, num_members, level)) / num_members for share in (tail, 1.0 - tail))
    return max(below, 1.0 / num_members), above


def _cells(
    model: DriftModel,
    values: Mapping[str, float],
    along: str,
    bracket: tuple[float, float],
    over: tuple[str, ArrayLike],
) -> dict[str, Array]:
    """Check the arguments of a search; returns a value for every name but `along`, shape (n,) each."""
    if along == RUN[0]:
        raise InputError("along", "be a continuous quantity", along, "Search the learning rate, step through S.")
    if not 0.0 < bracket[0] < bracket[1] < np.inf:
        raise InputError("bracket", "be two increasing positive numbers", bracket, "Give (1e-6, 1.0).")
    grid = grid_of(model, values, {over[0]: over[1], along: bracket})
    size = grid[over[0]].size
    return {**{name: np.full(size, float(value)) for name, value in values.items()}, over[0]: grid[over[0]]}


def _bisected(
    model: DriftModel,
    cells: Mapping[str, Array],
    along: str,
    bracket: tuple[float, float],
    relative: float,
    beyond: Callable[[Members], NDArray[np.bool_]],
) -> tuple[Array, Array]:
    """Halve the logarithm of the bracket, for all cells at once; NaN where its two ends do not differ."""
    if not 1e-15 <= relative < 1.0:
        raise InputError("relative", "be between 1e-15 and 1", relative, "Use 1e-6.")
    size = next(iter(cells.values())).size
    low, high = np.full(size, float(bracket[0])), np.full(size, float(bracket[1]))
    straddled = ~beyond(members_of(model, {**cells, along: low})) & beyond(members_of(model, {**cells, along: high}))
    for _ in range(int(np.ceil(np.log2(np.log(bracket[1] / bracket[0]) / relative)))):
        middle = np.sqrt(low * high)
        out = beyond(members_of(model, {**cells, along: middle}))
        low, high = np.where(out, low, middle), np.where(out, middle, high)
    return np.where(straddled, low, np.nan), np.where(straddled, high, np.nan)

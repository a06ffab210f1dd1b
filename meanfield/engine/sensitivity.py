"""How thresholds and budgets move with every parameter, as elasticities with error bars.

An elasticity is the number of per cent by which a quantity moves if a parameter moves by one per cent. It is taken by
central differences of logarithms at two steps, whose disagreement is its error bar.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import scipy.optimize

from meanfield.engine.compiled import Adaptive, compile_model
from meanfield.engine.cycle_map import LOOSE, TOLERANCE, cycle_map
from meanfield.engine.fixed_points import fold_point
from meanfield.engine.frame import Box
from meanfield.engine.values import RUN, grid_of, members_of, names_of
from meanfield.grids import Array
from theory.errors import InputError
from theory.models.model import DriftModel

STEP = 2e-3
"""Relative step of the wider difference; the narrower is half of it, and what is left is of the fourth order."""
ROUNDING = 1e-15
"""Relative error that a quantity has at least: some roundings."""
SCAN = 1.02
"""Ratio of neighbours of the scan for a threshold: two of them closer than this are seen as none."""
APART = 1e-6
"""Share by which a bracket is widened, so that rounding cannot change the signs at its ends."""
REST = 1e-12
"""How far from zero a cycle may leave the states at rest."""

Values = Mapping[str, float]


@dataclass(frozen=True)
class Measured:
    """A number with its error bar.

    Parameters
    ----------
    value : float
    error : float
        An estimate of the error of the numerics; it knows nothing of the model's own.
    """

    value: float
    error: float


def elasticities(quantity: Callable[[Values], Measured], values: Values, names: Iterable[str]) -> dict[str, Measured]:
    """D log(quantity) / d log(parameter) for some parameters.

    Parameters
    ----------
    quantity : function of values
        Returns a number that keeps its sign, and its error.
    values : mapping from a name to a number
    names : of the parameters that are moved

    Returns
    -------
    dict from a name to Measured [1]
        Richardson's value of both differences. Its error bar is its distance from the narrower one, and what the
        error of the quantity leaves in the differences: a corner within the step widens it. NaN where the quantity
        is zero or no number; 0 for a parameter whose value is 0, which no share of it moves.

    Source: ours, by the definition of an elasticity.
    """
    here = quantity(values)
    return {name: _elasticity(quantity, values, name, here) for name in names}


def _elasticity(quantity: Callable[[Values], Measured], values: Values, name: str, here: Measured) -> Measured:
    if values[name] == 0.0:
        return Measured(0.0, 0.0)
    slopes = []
    for step in (STEP, STEP / 2.0):
        ends = [quantity({**values, name: values[name] * math.exp(way * step)}).value for way in (1.0, -1.0)]
        ratio = ends[0] / ends[1] if ends[1] else math.nan
        if not 0.0 < ratio < math.inf:
            return Measured(math.nan, math.nan)
        slopes.append(math.log(ratio) / (2.0 * step))
    value = (4.0 * slopes[1] - slopes[0]) / 3.0
    noise = 3.0 / STEP * (abs(here.error / here.value) + ROUNDING)
    return Measured(value, abs(value - slopes[1]) + noise)


def rest_threshold(model: DriftModel, values: Values, *, along: str, bracket: tuple[float, float]) -> Measured | None:
    """First value of a parameter, counted upwards, at which the rest turns from stable to unstable or back.

    Parameters
    ----------
    model : DriftModel
    values : mapping from a name to a number
        Every parameter but `along`, and sync_interval and learning_rate.
    along : str
        A parameter, sync_interval or learning_rate.
    bracket : (float, float)
        Positive; where it is looked for.

    Returns
    -------
    Measured or None
        None where it does not turn within the bracket, or the numerics fail before it does.

    Raises
    ------
    InputError
        If a value cannot be used, or the cycle does not leave the rest where it is.

    Source: claim C30 (theory/claims). Error: that of a looser integration over the slope of the multiplier.
    """
    low, high = bracket
    if not 0.0 < low < high < math.inf:
        raise InputError("bracket", "be two increasing positive numbers", bracket, "Give (1e-6, 1e3).")
    for edge in bracket:
        cycle_map(model).require({**values, along: edge})

    def excess(places: Array, tolerance: float = TOLERANCE) -> Array:
        return _log_radius(model, values, along, places, tolerance)

    scan = np.geomspace(low, high, 2 + math.ceil(math.log(high / low) / math.log(SCAN)))
    found = excess(scan)
    turns = np.flatnonzero(found[:-1] * found[1:] <= 0.0)
    if not turns.size or np.any(np.isnan(found[: turns[0] + 2])):
        return None
    begin, end = scan[turns[0]] * (1.0 - APART), scan[turns[0] + 1] * (1.0 + APART)  # the scan may meet it exactly
    place = float(scipy.optimize.brentq(lambda item: excess(np.array([item]))[0], begin, end, xtol=1e-15, rtol=1e-13))
    around = place * (1.0 + 1e-4 * np.array([-1.0, 1.0]))
    slope = abs(np.diff(excess(around))[0]) / (2e-4 * place)
    blur = abs(excess(np.array([place]), LOOSE)[0] - excess(np.array([place]))[0])
    return Measured(place, float(blur / slope + 1e-13 * place))


def _log_radius(model: DriftModel, values: Values, along: str, places: Array, tolerance: float) -> Array:
    """Logarithm of the spectral radius at rest, shape (n,), NaN where the numerics fail."""
    found = cycle_map(model)
    parameters, products = found.cells({**values, along: places})
    after, jacobians = found(np.zeros((len(found.states), places.size)), parameters, products, tolerance=tolerance)
    moved = np.nanmax(np.abs(after), initial=0.0)
    if moved > REST:
        way_out = "Put the signals that drive it to 0, or follow a fixed point."
        raise InputError(model.name, "leave the states at rest where they are", f"{moved:g}", way_out)
    good = np.all(np.isfinite(jacobians), axis=(1, 2))
    radii = np.abs(np.linalg.eigvals(np.where(good[:, None, None], jacobians, 0.0))).max(axis=1)
    return np.where(good, np.log(np.maximum(radii, 1e-300)), np.nan)


def threshold_elasticities(
    model: DriftModel, values: Values, *, along: str, bracket: tuple[float, float]
) -> dict[str, Measured]:
    """Elasticities of `rest_threshold` with respect to every other parameter of the model and of the run.

    Parameters
    ----------
    model, values, along, bracket
        As `rest_threshold`.

    Returns
    -------
    dict from a name to Measured [1]
        Without the signals, which are off.

    Raises
    ------
    InputError
        As `rest_threshold`, and if it does not turn within the bracket.

    Source: claim C30 (theory/claims).
    """
    first = rest_threshold(model, values, along=along, bracket=bracket)
    if first is None:
        raise InputError("bracket", "hold a place where the rest turns", bracket, "Widen it or change the values.")
    near = (first.value / 1.3, first.value * 1.3)

    def quantity(moved: Values) -> Measured:
        return rest_threshold(model, moved, along=along, bracket=near) or Measured(math.nan, math.nan)

    signals = {str(symbol) for symbol in model.signals}
    return elasticities(quantity, values, [name for name in names_of(model) if name != along and name not in signals])


def fold_elasticities(
    model: DriftModel, values: Values, *, along: str, box: Box, start: Mapping[str, float]
) -> dict[str, Measured]:
    """Elasticities of the place of a fold in a parameter with respect to every other one.

    Parameters
    ----------
    model, values, box, start
        As `meanfield.engine.fixed_points.fold_point`.
    along : str
        The parameter in which the branch folds.

    Returns
    -------
    dict from a name to Measured [1]

    Raises
    ------
    InputError
        As `fold_point`.

    Source: claim C30 (theory/claims).
    """
    first = fold_point(model, values, parameter=along, box=box, start=start)

    def quantity(moved: Values) -> Measured:
        found = fold_point(model, moved, parameter=along, box=box, start=first.location)
        return Measured(found.location[along], found.error[along])

    return elasticities(quantity, values, [name for name in names_of(model) if name != along])


def exit_clock(model: DriftModel, values: Values, *, horizon: int) -> Measured:
    """eta*t at which one run exits.

    Parameters
    ----------
    model : DriftModel
        Without noise.
    values : mapping from a name to a number
        Every parameter of the model, sync_interval and learning_rate.
    horizon : int [optimizer step]

    Returns
    -------
    Measured [1]
        NaN if no exit fires within the horizon.

    Raises
    ------
    InputError
        If a value cannot be used.

    Source: claim C30 (theory/claims). Error: that of a looser integration.
    """
    grid_of(model, values, {})
    clocks = []
    for tolerance in (TOLERANCE, LOOSE):
        exits = compile_model(model).exits(members_of(model, values), horizon=horizon, method=Adaptive(tolerance))
        clocks.append(float(exits.clock[0]) if exits.code[0] >= 0 else math.nan)
    return Measured(clocks[0], abs(clocks[0] - clocks[1]))


def budget_elasticities(model: DriftModel, values: Values, *, horizon: int) -> dict[str, Measured]:
    """Elasticities of eta*t at exit with respect to every parameter of the model and the learning rate.

    Parameters
    ----------
    model, values, horizon
        As `exit_clock`. The sync interval is whole and cannot be moved by a share.

    Returns
    -------
    dict from a name to Measured [1]
        NaN if no exit fires.

    Raises
    ------
    InputError
        If a value cannot be used.

    Source: claim C30 (theory/claims).
    """
    names = [name for name in names_of(model) if name != RUN[0]]
    return elasticities(lambda moved: exit_clock(model, moved, horizon=horizon), values, names)

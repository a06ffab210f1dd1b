"""Fixed points of a drift model's cycle: found, followed in a parameter, and their folds followed in two.

The unknowns are the states that a sync carries, just after it. S*eta is varied through `learning_rate` or
`sync_interval`, which need not be whole here: only their product is a length.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from meanfield.engine.branch_points import crossing_tangents
from meanfield.engine.branches import Branch, FixedPoint, Kind, Located, SpecialCurve, SpecialPoint
from meanfield.engine.continuation import ACROSS, Monitor, Steps, fold_monitor
from meanfield.engine.cycle_map import carried_states
from meanfield.engine.frame import Box, Frame, critical
from meanfield.grids import Array
from theory.errors import InputError
from theory.models.model import DriftModel

OBLIQUE = np.array([1.0, 0.6180339887])
"""Direction among two parameters in which a curve is watched for cusps."""


def fixed_point(model: DriftModel, values: Mapping[str, float], *, start: Mapping[str, float]) -> FixedPoint:
    """Find a fixed point of the cycle by Newton's method.

    Parameters
    ----------
    model : DriftModel
    values : mapping from the name of a parameter, and from sync_interval and learning_rate, to its value
    start : mapping from the name of each carried state to a number
        Near it.

    Returns
    -------
    FixedPoint

    Raises
    ------
    InputError
        If a name or value cannot be used, or no fixed point is found from the start.

    Source: claim C30 (theory/claims) for the map.
    """
    frame = Frame.of(model, values, (), {}, start)
    found = frame.solved(frame.fixed)
    if found is None:
        raise InputError("start", "lie near a fixed point", dict(start), "Start where a long run settles.")
    point, error, residual = found
    multipliers, errors = frame.multipliers(point[None, :])
    location, bars = (dict(zip(frame.names, row.tolist(), strict=True)) for row in (point, error))
    return FixedPoint(location, bars, residual, multipliers[0], float(errors[0]))


def follow(
    model: DriftModel,
    values: Mapping[str, float],
    *,
    parameter: str,
    box: Box,
    start: Mapping[str, float],
    steps: Steps | None = None,
) -> Branch:
    """Follow a fixed point of the cycle in a parameter, both ways from a start, round its folds.

    Parameters
    ----------
    model : DriftModel
    values : mapping from the name of a parameter, and from sync_interval and learning_rate, to its value
        That of the parameter which is varied is where the branch is entered.
    parameter : str
        What is varied: a parameter of the model, sync_interval or learning_rate.
    box : mapping from a name to (low, high)
        Range of the parameter, and of any state that is to be kept in one.
    start : mapping from the name of each carried state to a number
        Near a fixed point.
    steps : Steps, optional

    Returns
    -------
    Branch

    Raises
    ------
    InputError
        If a name or value cannot be used, or there is no fixed point near the start.

    Source: claim C30 (theory/claims) for the map. Error: of a fixed point that of the integration, 1e-12 of a step,
    over its distance from a fold; the branch and its special points carry their own.
    """
    return _followed(Frame.of(model, values, (parameter,), box, start), steps)


def follow_crossing(
    model: DriftModel,
    values: Mapping[str, float],
    *,
    parameter: str,
    box: Box,
    point: SpecialPoint,
    steps: Steps | None = None,
) -> tuple[Branch, Branch]:
    """Follow both curves that cross at a branch point.

    Parameters
    ----------
    model, values, parameter, box, steps
        As `follow`.
    point : SpecialPoint
        Of kind BRANCH, on a branch of the same parameter.

    Returns
    -------
    (Branch, Branch)
        The one along which the parameter changes more first.

    Raises
    ------
    InputError
        As `follow`, and if two curves do not cross there.

    Source: claim C30 (theory/claims) for the map. Error: as `follow`.
    """
    frame = Frame.near(model, values, (parameter,), box, point.location)
    tangents = crossing_tangents(frame.system, frame.start, frame.scale)
    if tangents is None:
        raise InputError("point", "be one at which two curves cross", point.kind.name, "Give one of kind BRANCH.")
    length = (steps or Steps()).first
    first, second = sorted(tangents, key=lambda tangent: -abs(float(tangent[-1])))
    starts = [frame.start + length * tangent * frame.scale for tangent in (first, second)]
    one, other = (_followed(replace(frame, start=start), steps) for start in starts)
    return one, other


def _followed(frame: Frame, steps: Steps | None) -> Branch:
    size = len(frame.map.states)
    monitors = [fold_monitor(size), Monitor(Kind.FLIP, lambda jacobian: critical(jacobian[:, :size], -1.0))]
    if size > 1:
        monitors.append(Monitor(Kind.NEIMARK_SACKER, _pairs, _is_turning))
    curve, endings = frame.both_ways(frame.system, tuple(monitors), steps)
    multipliers, errors = frame.multipliers(curve.points)
    special = tuple(frame.named(item) for item in curve.special)
    return Branch(frame.columns(curve.points), multipliers, errors, special, endings)


def fold_point(
    model: DriftModel, values: Mapping[str, float], *, parameter: str, box: Box, start: Mapping[str, float]
) -> SpecialPoint:
    """Locate a fold near a point by Newton's method, without following a branch.

    Parameters
    ----------
    model, values, parameter, box
        As `follow`.
    start : mapping from each carried state, and if wanted from the parameter, to a number
        Near a fold: one that `follow` found, of these values or of others close by.

    Returns
    -------
    SpecialPoint

    Raises
    ------
    InputError
        If a name or value cannot be used, or no fold lies near the start.

    Source: claim C30 (theory/claims) for the map. Error: that of the map, carried to the fold to first order.
    """
    frame = Frame.near(model, values, (parameter,), box, start)
    found = frame.solved(frame.with_multiplier(1.0))
    if found is None:
        raise InputError("start", "lie near a fold", dict(start), "Give the location of one that `follow` finds.")
    point, error, residual = found
    return frame.named(Located(Kind.FOLD, point, error, residual, 0))


def fold_curve(
    model: DriftModel,
    values: Mapping[str, float],
    *,
    parameters: tuple[str, str],
    box: Box,
    start: Mapping[str, float],
    steps: Steps | None = None,
) -> SpecialCurve:
    """Follow a fold of fixed points, a multiplier 1, in two parameters, both ways from a start and round cusps.

    Parameters
    ----------
    model, values, box, steps
        As `follow`.
    parameters : (str, str)
        What is varied.
    start : mapping from each carried state, and if wanted from a parameter, to a number
        Near a fold: the location of one that `follow` found.

    Returns
    -------
    SpecialCurve

    Raises
    ------
    InputError
        As `follow`. A rest that stays a fixed point has no fold but a branch point: `rest_threshold` has that.

    Source: claim C30 (theory/claims) for the map. Error: as `follow`.
    """
    if not any(start.get(name, 0.0) for name in map(str, carried_states(model))):
        way_out = "Use meanfield.engine.sensitivity.rest_threshold."
        raise InputError("start", "not be the rest, whose multiplier is 1 at a branch point", dict(start), way_out)
    return _special_curve(model, values, parameters, box, start, steps, 1.0)


def flip_curve(
    model: DriftModel,
    values: Mapping[str, float],
    *,
    parameters: tuple[str, str],
    box: Box,
    start: Mapping[str, float],
    steps: Steps | None = None,
) -> SpecialCurve:
    """Follow a flip of fixed points, a multiplier -1, in two parameters; all else as `fold_curve`.

    Source: claim C30 (theory/claims) for the map. Error: as `follow`.
    """
    return _special_curve(model, values, parameters, box, start, steps, -1.0)


def _special_curve(
    model: DriftModel,
    values: Mapping[str, float],
    parameters: tuple[str, str],
    box: Box,
    start: Mapping[str, float],
    steps: Steps | None,
    multiplier: float,
) -> SpecialCurve:
    frame = Frame.near(model, values, parameters, box, start)
    first = len(frame.map.states)

    def cusp(_jacobian: Array, tangent: Array) -> bool:
        return bool(np.max(np.abs(tangent[first:])) < ACROSS)

    def turn(jacobian: Array, tangent: Array) -> bool:
        return bool(abs(tangent[first]) < ACROSS) and not cusp(jacobian, tangent)

    def along(jacobian: Array) -> float:
        """Component of the tangent along no axis: a cusp may lie along one."""
        oblique = np.concatenate([np.zeros(first), OBLIQUE / frame.scale[first:]])
        return float(np.linalg.det(np.vstack([jacobian, oblique])))

    monitors = (Monitor(Kind.CUSP, along, cusp), replace(fold_monitor(first), holds=turn))
    curve, endings = frame.both_ways(frame.with_multiplier(multiplier), monitors, steps)
    return SpecialCurve(frame.columns(curve.points), tuple(frame.named(item) for item in curve.special), endings)


def _pair_products(jacobian: Array) -> list[tuple[complex, complex]]:
    """Each pair of multipliers, with its product less 1, which is zero for a pair on the unit circle."""
    size = len(jacobian)
    found = np.linalg.eigvals(jacobian[:, :size] + np.eye(size)).astype(complex)
    return [(first * second - 1.0, first) for first, second in itertools.combinations(found, 2)]


def _pairs(jacobian: Array) -> float:
    return float(np.prod([excess for excess, _ in _pair_products(jacobian)]).real)


def _is_turning(jacobian: Array, _tangent: Array) -> bool:
    """Whether the pair on the circle is complex; two real multipliers of product 1 change no stability."""
    _, nearest = min(_pair_products(jacobian), key=lambda pair: abs(pair[0]))
    return abs(nearest.imag) > ACROSS

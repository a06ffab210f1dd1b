"""Fixed points of a drift model's cycle: found, followed in a parameter, and their folds followed in two.

The unknowns are the states that a sync carries, just after it. S*eta is varied through `learning_rate` or
`sync_interval`, which need not be whole here: only their product is a length.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from meanfield.engine.branches import Branch, Curve, Ending, Kind, Located, SpecialCurve, SpecialPoint
from meanfield.engine.continuation import ACROSS, CORRECTIONS, Monitor, Steps, continue_curve, fold_monitor
from meanfield.engine.cycle_map import LOOSE, TOLERANCE, CycleMap, cycle_map
from meanfield.engine.values import RUN, names_of
from meanfield.grids import Array
from theory.errors import InputError
from theory.models.model import DriftModel

STENCIL = 1e-4
"""Scaled step of the differences by a parameter; four points, so their error is of order 1e-12 and rounding."""
NEWTON = 1e-10
"""A Newton step to a fold shorter than this, scaled, is the last."""
OBLIQUE = np.array([1.0, 0.6180339887])
"""Direction among two parameters in which a curve is watched for cusps."""
_AT = np.array([-2.0, -1.0, 1.0, 2.0])
_WEIGHTS = np.array([1.0, -8.0, 8.0, -1.0]) / 12.0

Box = Mapping[str, tuple[float, float]]
"""Range of each parameter that is varied, and of any state that is to be kept in one."""


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
    frame = _Frame.of(model, values, (parameter,), box, start)
    size = len(frame.map.states)
    monitors = [fold_monitor(size), Monitor(Kind.FLIP, lambda jacobian: _critical(jacobian[:, :size], -1.0))]
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
    frame = _Frame.near(model, values, (parameter,), box, start)
    system = frame.with_multiplier(1.0)
    point = frame.start
    for _ in range(CORRECTIONS * 2):
        residual, jacobian = system(point)
        if not np.all(np.isfinite(jacobian)):
            break
        inverse = np.linalg.pinv(jacobian * frame.scale)
        move = inverse @ residual
        point = point - move * frame.scale
        if np.max(np.abs(move)) < NEWTON:
            error = np.abs(inverse).sum(axis=1) * (frame.accuracy(system)(point) + np.max(np.abs(residual)))
            residual = np.max(np.abs(system(point)[0]))
            return frame.named(Located(Kind.FOLD, point, error * frame.scale, float(residual), 0))
    raise InputError("start", "lie near a fold", dict(start), "Give the location of one that `follow` finds.")


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
    frame = _Frame.near(model, values, parameters, box, start)
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


def _critical(jacobian: Array, multiplier: float) -> float:
    """Determinant of the map's Jacobian minus a multiplier, from the Jacobian of (map - identity)."""
    moved = jacobian + (1.0 - multiplier) * np.eye(len(jacobian))
    return float(np.linalg.det(moved)) if np.all(np.isfinite(moved)) else np.nan


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


@dataclass(frozen=True, eq=False)
class _Frame:
    """A cycle map with numbers for all but the unknowns: carried states, then the parameters that are varied.

    `scale` is the width of each range; of a state without one its size at the start, or 1 at rest.
    """

    map: CycleMap
    values: dict[str, float]
    varied: tuple[str, ...]
    lower: Array
    upper: Array
    start: Array
    scale: Array

    @classmethod
    def of(
        cls,
        model: DriftModel,
        values: Mapping[str, float],
        varied: tuple[str, ...],
        box: Box,
        start: Mapping[str, float],
    ) -> _Frame:
        found = cycle_map(model)
        found.require(values)
        known = names_of(model)
        for name in (*varied, *box):
            if name not in known and name not in found.states:
                raise InputError("box", "name parameters or carried states", repr(name), f"Known: {', '.join(known)}.")
        for name in varied:
            low, high = box.get(name, (np.nan, np.nan))
            if not (name in values and -np.inf < low <= values[name] <= high < np.inf and low < high):
                rule = "hold a finite range of what is varied, and its value"
                way_out = "Give (low, high) around the value where the branch is entered."
                raise InputError(f"box: {name}", rule, (low, high), way_out)
            for edge in (low, high):
                found.require({**values, name: edge})
        if set(start) != set(found.states):
            rule = f"give a number for each of {found.states}"
            raise InputError("start", rule, dict(start), "These are the states that a sync carries.")
        lower, upper = np.array([box.get(name, (-np.inf, np.inf)) for name in (*found.states, *varied)], float).T
        first = np.array(
            [*(start[name] for name in found.states), *(values[name] for name in varied)], dtype=np.float64
        )
        scale = np.where(np.isfinite(upper - lower), upper - lower, np.where(first == 0.0, 1.0, np.abs(first)))
        return cls(found, {name: float(item) for name, item in values.items()}, varied, lower, upper, first, scale)

    @classmethod
    def near(
        cls,
        model: DriftModel,
        values: Mapping[str, float],
        varied: tuple[str, ...],
        box: Box,
        start: Mapping[str, float],
    ) -> _Frame:
        """The same, with values of what is varied taken from the start where it has them."""
        moved = {**values, **{name: start[name] for name in varied if name in start}}
        return cls.of(model, moved, varied, box, {name: start[name] for name in start if name not in varied})

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.map.states, *self.varied)

    def walk(self, points: Array, tolerance: float = TOLERANCE) -> tuple[Array, Array]:
        """Map minus identity, shape (cells, n), and the map's Jacobian, shape (cells, n, n), at (cells, unknowns)."""
        size = len(self.map.states)
        moved = dict(zip(self.varied, points[:, size:].T, strict=True))
        unmoved = {name: np.full(len(points), value) for name, value in self.values.items()}
        parameters, products = self.map.cells({**unmoved, **moved})
        after, jacobian = self.map(points[:, :size].T, parameters, products, tolerance=tolerance)
        return (after - points[:, :size].T).T, jacobian

    def stencil(self, point: Array, columns: range, width: float) -> tuple[Array, Array]:
        """Points around one along some coordinates, shape (4 * columns, unknowns), and the step of each column.

        A step keeps within a quarter of S or eta, so that they stay positive.
        """
        of_run = np.array([name in RUN for name in self.names])
        steps = np.where(of_run, np.minimum(width * self.scale, np.abs(point) / 4.0), width * self.scale)[list(columns)]
        units = steps[:, None] * np.eye(point.size)[list(columns)]
        return point + np.concatenate([np.outer(_AT, unit) for unit in units]), steps

    def system(self, point: Array, width: float = STENCIL) -> tuple[Array, Array]:
        """Residuals and Jacobian of a fixed point."""
        size = len(self.map.states)
        around, steps = self.stencil(point, range(size, point.size), width)
        residual, jacobian = self.walk(np.vstack([point, around]))
        return residual[0], np.hstack([jacobian[0] - np.eye(size), _derivative(residual[1:], steps)])

    def with_multiplier(self, multiplier: float) -> Callable[..., tuple[Array, Array]]:
        """Residuals and Jacobian of a fixed point with this multiplier, as a function of point and width."""
        size = len(self.map.states)

        def system(point: Array, width: float = STENCIL) -> tuple[Array, Array]:
            around, steps = self.stencil(point, range(point.size), width)
            residual, jacobian = self.walk(np.vstack([point, around]))
            critical = [_critical(item - np.eye(size), multiplier) for item in jacobian]
            rows = np.column_stack([residual, critical])
            return rows[0], _derivative(rows[1:], steps)

        return system

    def accuracy(self, system: Callable[..., tuple[Array, Array]]) -> Callable[[Array], float]:
        """Size of the error of residuals and Jacobian: what a looser integration and a wider stencil change."""

        def size(point: Array) -> float:
            residual, jacobian = self.walk(point[None, :])
            loose, loosely = self.walk(point[None, :], LOOSE)
            coarse = np.abs(system(point)[1] - system(point, 2.0 * STENCIL)[1])
            return float(max(np.max(np.abs(residual - loose)), np.max(np.abs(jacobian - loosely)), np.max(coarse)))

        return size

    def both_ways(
        self, system: Callable[..., tuple[Array, Array]], monitors: tuple[Monitor, ...], steps: Steps | None
    ) -> tuple[Curve, tuple[Ending, Ending]]:
        """Follow a curve to both sides of its start and join the two."""
        unit = np.eye(self.start.size)[len(self.map.states)]
        ahead, back = (
            continue_curve(
                system,
                self.start,
                direction=way * unit,
                lower=self.lower,
                upper=self.upper,
                scale=self.scale,
                monitors=monitors,
                accuracy=self.accuracy(system),
                steps=steps,
            )
            for way in (1.0, -1.0)
        )
        if ahead.ending is Ending.CLOSED:
            return ahead, (Ending.CLOSED, Ending.CLOSED)
        points = np.vstack([back.points[::-1], ahead.points[1:]])
        tangents = np.vstack([-back.tangents[::-1], ahead.tangents[1:]])
        return Curve(points, tangents, ahead.ending, (*back.special[::-1], *ahead.special)), (back.ending, ahead.ending)

    def multipliers(self, points: Array) -> tuple[NDArray[np.complex128], Array]:
        """Eigenvalues at each point, the largest modulus first, and how far a looser integration moves them."""
        spectra = [_sorted(self.walk(points, tolerance)[1]) for tolerance in (TOLERANCE, LOOSE)]
        apart = np.abs(spectra[0][:, :, None] - spectra[1][:, None, :]).min(axis=2)
        return spectra[0], apart.max(axis=1)

    def columns(self, points: Array) -> dict[str, Array]:
        """The unknowns by name."""
        return {name: points[:, column] for column, name in enumerate(self.names)}

    def named(self, item: Located) -> SpecialPoint:
        """A special point with names."""
        location, error = (dict(zip(self.names, row.tolist(), strict=True)) for row in (item.point, item.error))
        return SpecialPoint(item.kind, location, error, item.residual, self.multipliers(item.point[None, :])[0][0])


def _derivative(rows: Array, steps: Array) -> Array:
    """Derivatives, shape (equations, columns), from the rows at the points of a stencil."""
    return np.asarray((np.tensordot(rows.reshape(steps.size, 4, -1), _WEIGHTS, axes=(1, 0)) / steps[:, None]).T)


def _sorted(jacobians: Array) -> NDArray[np.complex128]:
    found = np.linalg.eigvals(jacobians).astype(np.complex128)
    return np.take_along_axis(found, np.argsort(-np.abs(found), axis=1, kind="stable"), axis=1)

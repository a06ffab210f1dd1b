"""The unknowns of a fixed point: carried states and what is varied, their residuals, derivatives and errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from meanfield.engine.branches import Curve, Ending, Located, SpecialPoint
from meanfield.engine.continuation import Monitor, Steps, continue_curve
from meanfield.engine.cycle_map import LOOSE, TOLERANCE, CycleMap, cycle_map
from meanfield.engine.values import RUN, names_of
from meanfield.grids import Array
from theory.errors import InputError
from theory.models.model import DriftModel

ROUNDED = 4.0 * np.finfo(float).eps
"""Relative error that a root has at least: some roundings."""
STENCIL = 1e-4
"""Scaled step of the differences by a parameter; four points, so their error is of order 1e-12 and rounding."""
NEWTON = 1e-10
"""A Newton step shorter than this, scaled, is the last."""
NEWTON_STEPS = 25
"""Newton steps at most: a start may be far."""
_AT = np.array([-2.0, -1.0, 1.0, 2.0])
_WEIGHTS = np.array([1.0, -8.0, 8.0, -1.0]) / 12.0

Box = Mapping[str, tuple[float, float]]
"""Range of each parameter that is varied, and of any state that is to be kept in one."""


def critical(jacobian: Array, multiplier: float) -> float:
    """Determinant of the map's Jacobian minus a multiplier, from the Jacobian of (map - identity)."""
    moved = jacobian + (1.0 - multiplier) * np.eye(len(jacobian))
    return float(np.linalg.det(moved)) if np.all(np.isfinite(moved)) else np.nan


@dataclass(frozen=True, eq=False)
class Frame:
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
    ) -> Frame:
        """Check names, values, box and start; raises InputError."""
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
    ) -> Frame:
        """The same, with values of what is varied taken from the start where it has them."""
        moved = {**values, **{name: start[name] for name in varied if name in start}}
        return cls.of(model, moved, varied, box, {name: start[name] for name in start if name not in varied})

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the unknowns."""
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

    def fixed(self, point: Array, _width: float = STENCIL) -> tuple[Array, Array]:
        """Residuals and Jacobian of a fixed point where nothing is varied."""
        residual, jacobian = self.walk(point[None, :])
        return residual[0], jacobian[0] - np.eye(len(self.map.states))

    def with_multiplier(self, multiplier: float) -> Callable[..., tuple[Array, Array]]:
        """Residuals and Jacobian of a fixed point with this multiplier, as a function of point and width."""
        size = len(self.map.states)

        def system(point: Array, width: float = STENCIL) -> tuple[Array, Array]:
            around, steps = self.stencil(point, range(point.size), width)
            residual, jacobian = self.walk(np.vstack([point, around]))
            zeros = [critical(item - np.eye(size), multiplier) for item in jacobian]
            rows = np.column_stack([residual, zeros])
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
        ahead = self._one_way(system, unit, monitors, steps)
        if ahead.ending is Ending.CLOSED:
            return ahead, (Ending.CLOSED, Ending.CLOSED)
        back = self._one_way(system, -ahead.tangents[0] * self.scale, monitors, steps)
        points = np.vstack([back.points[::-1], ahead.points[1:]])
        tangents = np.vstack([-back.tangents[::-1], ahead.tangents[1:]])
        return Curve(points, tangents, ahead.ending, (*back.special[::-1], *ahead.special)), (back.ending, ahead.ending)

    def _one_way(
        self,
        system: Callable[..., tuple[Array, Array]],
        direction: Array,
        monitors: tuple[Monitor, ...],
        steps: Steps | None,
    ) -> Curve:
        return continue_curve(
            system,
            self.start,
            direction=direction,
            lower=self.lower,
            upper=self.upper,
            scale=self.scale,
            monitors=monitors,
            accuracy=self.accuracy(system),
            steps=steps,
        )

    def solved(self, system: Callable[..., tuple[Array, Array]]) -> tuple[Array, Array, float] | None:
        """Root of as many equations as unknowns, its error bar and residual, by Newton's method; None if it fails."""
        point = self.start
        for _ in range(NEWTON_STEPS):
            residual, jacobian = system(point)
            if not np.all(np.isfinite(jacobian)):
                return None
            inverse = np.linalg.pinv(jacobian * self.scale)
            move = inverse @ residual
            point = point - move * self.scale
            if np.max(np.abs(move)) < NEWTON:
                left = float(np.max(np.abs(system(point)[0])))
                error = np.abs(inverse).sum(axis=1) * (self.accuracy(system)(point) + left) * self.scale
                return point, error + ROUNDED * np.abs(point), left
        return None

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

"""Curves of n equations in n + 1 unknowns by pseudo-arclength: tangent, corrector, step control, special points.

A step goes along the null vector of the Jacobian and comes back to the curve in the plane across it, so a fold is a
point like any other. All lengths and angles are measured in the coordinates divided by their scales.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.optimize
from numpy.typing import ArrayLike

from meanfield.engine.branch_points import branch_point
from meanfield.engine.branches import Curve, Ending, Kind, Located
from meanfield.grids import Array
from theory.errors import InputError

TOLERANCE = 1e-10
"""A point is on the curve once a Newton step is shorter than this."""
CORRECTIONS = 8
"""Newton steps that a corrector may take."""
QUICK = 3
"""A corrector that needs no more Newton steps than this lets the next step of the curve be longer."""
ACROSS = 1e-4
"""Largest share of the tangent that a fold may have along its coordinate; a crossing has more, to rounding."""
DIFFERENCE = 1e-6
"""Scaled step of the central differences over a special point and of `differentiated`; their error is about 1e-10."""

System = Callable[[Array], tuple[Array, Array]]
"""Residuals, shape (n,), and Jacobian, shape (n, n + 1), at a point, shape (n + 1,)."""


@dataclass(frozen=True)
class Steps:
    """How a curve is walked; lengths are scaled.

    Parameters
    ----------
    first, smallest, largest : float
        Length of a step.
    largest_turn : float [radian]
        Angle between the tangents at both ends of a step.
    num_points : int
        Points at most.
    """

    first: float = 0.01
    smallest: float = 1e-7
    largest: float = 0.05
    largest_turn: float = 0.2
    num_points: int = 2000


@dataclass(frozen=True)
class Monitor:
    """What changes its sign at a special point.

    Parameters
    ----------
    kind : Kind
    measure : function of the Jacobian, shape (n, n + 1)
        Returns a number that is zero at the point.
    holds : function of the Jacobian and of the scaled tangent, shape (n + 1,)
        Whether a zero of the measure is of this kind.
    """

    kind: Kind
    measure: Callable[[Array], float]
    holds: Callable[[Array, Array], bool] = lambda _jacobian, _tangent: True


def fold_monitor(coordinate: int) -> Monitor:
    """A fold: the curve turns in this coordinate, and no other curve crosses there."""

    def measure(jacobian: Array) -> float:
        return float(np.linalg.det(np.delete(jacobian, coordinate, axis=1)))

    return Monitor(Kind.FOLD, measure, lambda _jacobian, tangent: bool(abs(tangent[coordinate]) < ACROSS))


def differentiated(residual: Callable[[Array], Array], scale: ArrayLike) -> System:
    """Return a system of residuals and central differences, with steps of `DIFFERENCE` times the scales."""
    steps = DIFFERENCE * np.asarray(scale, dtype=np.float64)

    def system(point: Array) -> tuple[Array, Array]:
        moves = np.diag(steps)
        columns = [(residual(point + move) - residual(point - move)) / (2.0 * move.sum()) for move in moves]
        return residual(point), np.array(columns).T

    return system


def continue_curve(
    system: System,
    start: ArrayLike,
    *,
    direction: ArrayLike,
    lower: ArrayLike,
    upper: ArrayLike,
    scale: ArrayLike,
    monitors: tuple[Monitor, ...] = (),
    accuracy: Callable[[Array], float] = lambda _point: 1e-14,
    steps: Steps | None = None,
) -> Curve:
    """Follow a curve from a point in one direction until it ends.

    Parameters
    ----------
    system : function of a point, shape (n + 1,)
        Returns the residuals, shape (n,), and their Jacobian, shape (n, n + 1).
    start : array, shape (n + 1,)
        Near the curve; it is moved onto it.
    direction : array, shape (n + 1,)
        The curve is followed to the side to which this points.
    lower, upper : array, shape (n + 1,)
        Box in which it is followed; inf where there is no edge.
    scale : array, shape (n + 1,)
        What counts as one along each coordinate, positive.
    monitors : tuple of Monitor
        What is looked for on the way; branch points are always.
    accuracy : function of a point
        Size of the error of residuals and Jacobian there, for the error bars of special points.
    steps : Steps, optional

    Returns
    -------
    Curve

    Raises
    ------
    InputError
        If the scale cannot be used, or the start lies outside of the box or near no curve.

    Source: ours; the method is Keller's pseudo-arclength continuation.
    """
    given = [np.asarray(item, dtype=np.float64) for item in (start, direction, lower, upper, scale)]
    tracer = _Tracer(system, given[2], given[3], given[4], monitors, accuracy, steps or Steps())
    if not np.all((given[4] > 0.0) & np.isfinite(given[4])):
        raise InputError("scale", "be positive and finite", scale, "Give the width of each coordinate's range.")
    first = tracer.begin(given[0], given[1])
    if first is None:
        raise InputError("start", "lie near the curve", start, "Give a point at which the residuals are nearly zero.")
    if tracer.overshoot(first.place) > TOLERANCE:
        raise InputError("start", "lie in the box", start, "Widen lower and upper, or start elsewhere.")
    return tracer.walk(first)


@dataclass(frozen=True, eq=False)
class _Point:
    """A point on the curve in scaled coordinates, its unit tangent, its Jacobian (not scaled), what it took."""

    place: Array
    tangent: Array
    jacobian: Array
    residual: float
    corrections: int


@dataclass(frozen=True, eq=False)
class _Tracer:
    """Everything that a walk needs; places are scaled."""

    system: System
    lower: Array
    upper: Array
    scale: Array
    monitors: tuple[Monitor, ...]
    accuracy: Callable[[Array], float]
    steps: Steps

    def begin(self, start: Array, direction: Array) -> _Point | None:
        """Move the start onto the curve by the shortest way and take the tangent that points to the direction."""
        found = self._corrected(start / self.scale, np.empty((0, start.size)))
        if found is None:
            return None
        place, jacobian, residual, corrections = found
        tangent = np.linalg.svd(jacobian * self.scale)[2][-1]
        facing = tangent if tangent @ (direction / self.scale) >= 0.0 else -tangent
        return _Point(place, facing, jacobian, residual, corrections)

    def _corrected(self, place: Array, border: Array) -> tuple[Array, Array, float, int] | None:
        """Newton's method in the plane through the place across the rows of the border; None where it fails."""
        rest = np.zeros(len(border))
        for count in range(1, CORRECTIONS + 1):
            residual, jacobian = self.system(place * self.scale)
            if not (np.all(np.isfinite(residual)) and np.all(np.isfinite(jacobian))):
                return None
            matrix, aim = np.vstack([jacobian * self.scale, border]), np.concatenate([residual, rest])
            move = np.linalg.lstsq(matrix, aim, rcond=None)[0]
            if np.max(np.abs(matrix @ move - aim)) > ACROSS * np.max(np.abs(aim)) + TOLERANCE:
                return None
            place = place - move
            if np.max(np.abs(move)) < TOLERANCE:
                return place, jacobian, float(np.max(np.abs(residual))), count
        return None

    def ahead(self, origin: _Point, length: float) -> _Point | None:
        """The point of the curve in the plane at this distance along the tangent; None where there is none."""
        found = self._corrected(origin.place + length * origin.tangent, origin.tangent[None, :])
        if found is None:
            return None
        place, jacobian, residual, corrections = found
        null = np.linalg.svd(jacobian * self.scale)[2][-1]
        tangent = null if null @ origin.tangent >= 0.0 else -null
        return _Point(place, tangent, jacobian, residual, corrections)

    def advance(self, origin: _Point, length: float) -> tuple[_Point, float, float] | None:
        """Take a step; return its end, its length and the length to try next; None where none is small enough."""
        while length >= self.steps.smallest:
            reached = self.ahead(origin, length)
            if reached is not None:
                turn = float(np.arccos(np.clip(reached.tangent @ origin.tangent, -1.0, 1.0)))
                if turn <= self.steps.largest_turn:
                    longer = reached.corrections <= QUICK and turn < self.steps.largest_turn / 2.0
                    return reached, length, min(length * (1.5 if longer else 1.0), self.steps.largest)
            length /= 2.0
        return None

    def overshoot(self, place: Array) -> float:
        """How far a place lies outside of the box, negative inside."""
        with np.errstate(invalid="ignore"):
            return float(np.max([place - self.upper / self.scale, self.lower / self.scale - place]))

    def walk(self, first: _Point) -> Curve:
        """Follow the curve until it ends."""
        points, special, length = [first], [], self.steps.first
        ending = Ending.POINTS
        while len(points) < self.steps.num_points:
            step = self.advance(points[-1], length)
            if step is None:
                ending = Ending.STEP
                break
            reached, taken, length = step
            stop = self._closing(first, points[-1], reached) if len(points) > 2 else None
            if stop is not None:
                reached, taken, ending = first, stop, Ending.CLOSED
            elif self.overshoot(reached.place) > 0.0:
                landed = self._landed(points[-1], reached, taken)
                ending = Ending.STEP if landed is None else Ending.EDGE
                reached, taken = landed or (points[-1], 0.0)
            special += self._between(points[-1], reached, taken, len(points) - 1)
            if taken > self.steps.smallest:
                points.append(reached)
            if ending is not Ending.POINTS:
                break
        return Curve(
            np.array([point.place * self.scale for point in points]),
            np.array([point.tangent for point in points]),
            ending,
            tuple(special),
        )

    def _closing(self, first: _Point, origin: _Point, reached: _Point) -> float | None:
        """Length of the step from the origin that ends at the first point; None if this step does not meet it."""
        if not (first.tangent @ (origin.place - first.place) < 0.0 <= first.tangent @ (reached.place - first.place)):
            return None
        length = float(origin.tangent @ (first.place - origin.place))
        met = self.ahead(origin, length) if 0.0 < length <= 2.0 * self.steps.largest else None
        return length if met is not None and np.max(np.abs(met.place - first.place)) < 1e3 * TOLERANCE else None

    def _landed(self, origin: _Point, reached: _Point, length: float) -> tuple[_Point, float] | None:
        """The point at which the curve meets the edge of the box, and the length of the step to it."""
        if self.overshoot(origin.place) >= -TOLERANCE:
            return origin, 0.0
        return self._root(origin, reached, length, lambda point: self.overshoot(point.place))

    def _root(
        self, origin: _Point, reached: _Point, length: float, of: Callable[[_Point], float]
    ) -> tuple[_Point, float] | None:
        """Where what changes its sign on a step is zero: the point, and its distance along the step.

        None where a point between the two cannot be found.
        """
        met = {0.0: origin, length: reached}

        def value(share: float) -> float:
            point = met.get(share) or self.ahead(origin, share)
            if point is None:
                raise ArithmeticError
            met[share] = point
            return of(point)

        try:
            share = float(scipy.optimize.brentq(value, 0.0, length, xtol=1e-14, rtol=1e-14))
        except ArithmeticError:
            return None
        return met[share], share

    def _between(self, origin: _Point, reached: _Point, length: float, after: int) -> list[Located]:
        """Special points between two points of the curve, in order."""
        found = []
        ends = [np.linalg.det(np.vstack([item.jacobian * self.scale, item.tangent])) for item in (origin, reached)]
        if ends[0] * ends[1] < 0.0:
            found.append(self._crossing(origin, reached, float(ends[0] / (ends[0] - ends[1])), length, after))
        for monitor in self.monitors:
            before, behind = (monitor.measure(point.jacobian) for point in (origin, reached))
            if before * behind < 0.0 or (behind == 0.0 and before != 0.0):
                met = self._root(origin, reached, length, lambda point, of=monitor.measure: of(point.jacobian))  # type: ignore[misc]
                if met is None:
                    middle = origin.place + (reached.place - origin.place) * before / (before - behind)
                    found.append(self._not_met(monitor.kind, middle, length, after))
                elif monitor.holds(met[0].jacobian, met[0].tangent):
                    found.append(self._located(monitor, met[0], after))
        return sorted(found, key=lambda item: float(origin.tangent @ (item.point / self.scale)))

    def _not_met(self, kind: Kind, place: Array, length: float, after: int) -> Located:
        """A special point that is known to lie on a step but could not be located: the step is its error bar."""
        return Located(kind, place * self.scale, length * self.scale, np.nan, after)

    def _crossing(self, origin: _Point, reached: _Point, share: float, length: float, after: int) -> Located:
        """The branch point on a step."""
        middle = origin.place + (reached.place - origin.place) * share
        found = branch_point(
            self.system, middle * self.scale, scale=self.scale, reach=length, accuracy=self.accuracy, after=after
        )
        return found or self._not_met(Kind.BRANCH, middle, length, after)

    def _located(self, monitor: Monitor, point: _Point, after: int) -> Located:
        """Carry the errors of the equations, and of what is zero here, to the location."""
        size = max(self.accuracy(point.place * self.scale), np.finfo(float).eps)
        residual, jacobian = self.system(point.place * self.scale)
        value, rest = abs(monitor.measure(jacobian)), float(np.max(np.abs(residual)))
        across = np.abs(np.linalg.pinv(jacobian * self.scale)).sum(axis=1) * (rest + size)
        slopes = self._slopes(monitor, point)
        blur = value + np.abs(slopes) @ across + _per_entry(monitor.measure, jacobian) * size
        along = blur / max(abs(float(slopes @ point.tangent)), np.finfo(float).tiny)
        error = (across + np.abs(point.tangent) * along + TOLERANCE**2) * self.scale
        return Located(monitor.kind, point.place * self.scale, error, max(rest, value), after)

    def _slopes(self, monitor: Monitor, point: _Point) -> Array:
        """Derivative of a measure by each scaled coordinate, by central differences."""
        moves = DIFFERENCE * np.eye(point.place.size)
        high, low = (
            np.array([monitor.measure(self.system((point.place + way * move) * self.scale)[1]) for move in moves])
            for way in (1.0, -1.0)
        )
        return np.asarray((high - low) / (2.0 * DIFFERENCE))


def _per_entry(measure: Callable[[Array], float], jacobian: Array) -> float:
    """By how much a measure changes, to first order, per unit by which every entry of the Jacobian is off."""
    total, here = 0.0, measure(jacobian)
    for entry in np.ndindex(*jacobian.shape):
        moved = jacobian.copy()
        moved[entry] += DIFFERENCE
        total += abs(measure(moved) - here) / DIFFERENCE
    return total

"""What a continuation hands back: why it stopped, the points of its curve, and the special points on it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from meanfield.grids import Array


class Ending(Enum):
    """Why a curve ends; each member explains itself.

    Attributes
    ----------
    sentence : str
        What is shown to the user.

    Source: ours.
    """

    EDGE = "The curve leaves the box; its last point lies on the edge."
    CLOSED = "The curve comes back to where it began; its last point is its first."
    POINTS = "The curve goes on, but it has as many points as were asked for."
    STEP = "The corrector finds no next point even at the smallest step; this says nothing about what lies beyond."

    @property
    def sentence(self) -> str:
        """What is shown to the user."""
        return self.value


class Kind(Enum):
    """What is special about a point of a curve; each member explains itself.

    Attributes
    ----------
    sentence : str
        What is shown to the user.

    Source: ours.
    """

    FOLD = "Fold: the curve turns in its parameter; of a fixed point, a multiplier is 1."
    BRANCH = "Branch point: another curve crosses here; of a fixed point, a multiplier is 1."
    FLIP = "Flip: a multiplier is -1, and deviations change their sign from sync to sync."
    NEIMARK_SACKER = "Neimark-Sacker: a pair of complex multipliers lies on the unit circle, and deviations turn."
    CUSP = "Cusp: two curves of folds meet and end."

    @property
    def sentence(self) -> str:
        """What is shown to the user."""
        return self.value


@dataclass(frozen=True, eq=False)
class Located:
    """A special point of a curve, located.

    Parameters
    ----------
    kind : Kind
    point : array, shape (n + 1,)
    error : array, shape (n + 1,)
        Error bar of each coordinate: the error of the equations and of what is zero here, carried to the location to
        first order.
    residual : float
        Largest residual of the equations and of what is zero here. NaN for a point that lies on a step of the curve
        but could not be located: its error bar is the whole step.
    after : int
        Number of the point of the curve behind which it lies.
    """

    kind: Kind
    point: Array
    error: Array
    residual: float
    after: int


@dataclass(frozen=True, eq=False)
class Curve:
    """A curve on which n equations in n + 1 unknowns hold.

    Parameters
    ----------
    points : array, shape (k, n + 1)
    tangents : array, shape (k, n + 1)
        Of length 1 in the scaled coordinates, in the direction of travel.
    ending : Ending
    special : tuple of Located
        In the order in which they are met.
    """

    points: Array
    tangents: Array
    ending: Ending
    special: tuple[Located, ...]


@dataclass(frozen=True, eq=False)
class SpecialPoint:
    """A special point of a branch, with names.

    Parameters
    ----------
    kind : Kind
    location : dict from the name of a state or parameter to a number
    error : dict from the same names to the error bar of that number
    residual : float
        Largest residual of the equations and of what is zero here.
    multipliers : complex array, shape (n,) [1]
    """

    kind: Kind
    location: dict[str, float]
    error: dict[str, float]
    residual: float
    multipliers: NDArray[np.complex128]


@dataclass(frozen=True, eq=False)
class FixedPoint:
    """A fixed point of a cycle.

    Parameters
    ----------
    location : dict from the name of a carried state, just after a sync, to a number
    error : dict from the same names to the error bar of that number
    residual : float
        Largest change of a state over a cycle.
    multipliers : complex array, shape (n,) [1]
        The largest modulus first.
    multiplier_error : float [1]
        Largest change of a multiplier at a hundred times the tolerance of the integration.
    """

    location: dict[str, float]
    error: dict[str, float]
    residual: float
    multipliers: NDArray[np.complex128]
    multiplier_error: float


@dataclass(frozen=True, eq=False)
class Branch:
    """Fixed points of a cycle along a curve, from one ending to the other.

    Parameters
    ----------
    values : dict from the name of a parameter, and of a state just after a sync, to an array, shape (k,)
    multipliers : complex array, shape (k, n) [1]
        Factors by which small deviations grow from sync to sync, the largest modulus first.
    multiplier_error : array, shape (k,) [1]
        Largest change of a multiplier at a hundred times the tolerance of the integration.
    special : tuple of SpecialPoint
    endings : (Ending, Ending)
        At the first point and at the last.
    """

    values: dict[str, Array]
    multipliers: NDArray[np.complex128]
    multiplier_error: Array
    special: tuple[SpecialPoint, ...]
    endings: tuple[Ending, Ending]

    @property
    def stable(self) -> NDArray[np.bool_]:
        """Whether small deviations die, shape (k,)."""
        return np.asarray(np.abs(self.multipliers[:, 0]) < 1.0)

    def of_kind(self, kind: Kind) -> tuple[SpecialPoint, ...]:
        """Special points of one kind, in the order of the branch."""
        return tuple(point for point in self.special if point.kind is kind)


@dataclass(frozen=True, eq=False)
class SpecialCurve:
    """Where a fixed point has a multiplier of 1 or -1, along a curve in two parameters.

    Parameters
    ----------
    values : dict from the name of a parameter, and of a state just after a sync, to an array, shape (k,)
    special : tuple of SpecialPoint
        Cusps, and folds: there the curve turns in the first parameter.
    endings : (Ending, Ending)
        At the first point and at the last.
    """

    values: dict[str, Array]
    special: tuple[SpecialPoint, ...]
    endings: tuple[Ending, Ending]

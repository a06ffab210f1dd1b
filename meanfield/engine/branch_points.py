"""Where two curves of the same equations cross, by Newton's method on equations that are regular there.

At a branch point the Jacobian loses its rank, so its left null vector psi is an unknown too: F + b*psi = 0,
psi*J = 0 and |psi| = 1 in the point, b and psi. The size of b says how far the equations are from crossing at all.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from meanfield.engine.branches import Kind, Located
from meanfield.grids import Array

STEP = 1e-6
"""Scaled step of the central differences of the Jacobian; they only steer Newton's method."""
BEND = 1e-4
"""Scaled step of the central differences that give the tangents; their error is about 1e-8."""
LOST = 1e-6
"""Least singular value of the scaled Jacobian at a branch point, at most."""
ITERATIONS = 20
"""Newton steps at most."""
CLOSE = 1e-10
"""A Newton step shorter than this ends the search."""


def branch_point(
    system: Callable[[Array], tuple[Array, Array]],
    near: Array,
    *,
    scale: Array,
    reach: float,
    accuracy: Callable[[Array], float],
    after: int,
) -> Located | None:
    """Locate a branch point.

    Parameters
    ----------
    system : function of a point, shape (n + 1,)
        Residuals, shape (n,), and Jacobian, shape (n, n + 1).
    near : array, shape (n + 1,)
    scale : array, shape (n + 1,)
    reach : float
        Scaled distance from `near` within which it must lie.
    accuracy : function of a point
        Size of the error of residuals and Jacobian.
    after : int
        Number of the point of the curve behind which it lies.

    Returns
    -------
    Located or None
        None where none is found within reach.

    Source: ours; the equations are Moore's (SIAM J. Numer. Anal. 17, 1980).
    """
    n = near.size - 1
    left = np.linalg.svd(system(near)[1] * scale)[0][:, -1]
    unknowns = np.concatenate([near / scale, [0.0], left])
    for _ in range(ITERATIONS):
        residual, matrix = _extended(system, unknowns, scale)
        far = np.max(np.abs(unknowns[: n + 1] - near / scale)) > reach
        if far or not np.all(np.isfinite(matrix)):
            return None
        move = np.linalg.lstsq(matrix, residual, rcond=None)[0]
        unknowns = unknowns - move
        if np.max(np.abs(move)) < CLOSE:
            return _with_error(unknowns, residual, matrix, scale, accuracy, after)
    return None


def _extended(system: Callable[[Array], tuple[Array, Array]], unknowns: Array, scale: Array) -> tuple[Array, Array]:
    """Residuals and Jacobian of the extended equations, shapes (2n + 2,) and (2n + 2, 2n + 2)."""
    n = scale.size - 1
    place, b, left = unknowns[: n + 1], unknowns[n + 1], unknowns[n + 2 :]

    def jacobian(at: Array) -> Array:
        return np.asarray(system(at * scale)[1] * scale)

    F, J = system(place * scale)[0], jacobian(place)
    moves = STEP * np.eye(n + 1)
    bends = np.array([(left @ jacobian(place + move) - left @ jacobian(place - move)) / (2.0 * STEP) for move in moves])
    matrix = np.zeros((2 * n + 2, 2 * n + 2))
    matrix[:n] = np.hstack([J, left[:, None], b * np.eye(n)])
    matrix[n : 2 * n + 1, : n + 1] = bends.T
    matrix[n : 2 * n + 1, n + 2 :] = J.T
    matrix[-1, n + 2 :] = 2.0 * left
    return np.concatenate([F + b * left, left @ J, [left @ left - 1.0]]), matrix


def _with_error(
    unknowns: Array,
    residual: Array,
    matrix: Array,
    scale: Array,
    accuracy: Callable[[Array], float],
    after: int,
) -> Located:
    """Carry the error of every equation to the unknowns, to first order."""
    n = scale.size - 1
    point, left = unknowns[: n + 1] * scale, unknowns[n + 2 :]
    size = max(accuracy(point), np.finfo(float).eps)
    errors = size * np.concatenate([np.ones(n), scale * np.abs(left).sum(), [0.0]]) + np.abs(residual)
    error = (np.abs(np.linalg.pinv(matrix)) @ errors)[: n + 1] * scale
    return Located(Kind.BRANCH, point, error, float(max(np.max(np.abs(residual)), abs(unknowns[n + 1]))), after)


def crossing_tangents(
    system: Callable[[Array], tuple[Array, Array]], point: Array, scale: Array
) -> tuple[Array, Array] | None:
    """Scaled unit tangents of the two curves that cross at a branch point.

    Parameters
    ----------
    system : function of a point, shape (n + 1,)
        Residuals, shape (n,), and Jacobian, shape (n, n + 1).
    point, scale : array, shape (n + 1,)

    Returns
    -------
    two arrays, shape (n + 1,), or None
        None where the Jacobian has its full rank, or no two curves cross.

    Source: ours; both solve the quadratic equation that the second derivatives leave in the plane of null vectors.
    """
    left, sizes, right = np.linalg.svd(system(point)[1] * scale)
    if sizes[-1] > LOST:
        return None
    psi, plane = left[:, -1], right[-2:]

    def bend(first: Array, second: Array) -> float:
        ends = [system(point + way * BEND * second * scale)[1] * scale for way in (1.0, -1.0)]
        return float(psi @ (ends[0] - ends[1]) @ first) / (2.0 * BEND)

    a, b, c = bend(plane[0], plane[0]), bend(plane[0], plane[1]), bend(plane[1], plane[1])
    root = b**2 - a * c
    if not root > 0.0:
        return None
    far = -b - np.copysign(np.sqrt(root), b)  # the root without cancellation; the other follows from the product
    first, second = far * plane[0] + a * plane[1], c * plane[0] + far * plane[1]
    return first / np.linalg.norm(first), second / np.linalg.norm(second)

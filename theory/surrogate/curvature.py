"""How the curvature of the surrogate falls into a fresh and a stale part, and bias constants from it.

H_theta = dg/dtheta is what a step changes at once, H_b = dg/db what it changes only at the next sync. Linearised,
the cycle is that of theory/delay with H_b as the stale curvature.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from theory.surrogate.exact import Surrogate
from theory.surrogate.policies import Array

_STEP = 1e-30
"""Step of a complex derivative: its error is of the order of the square, so it is exact to rounding."""


@dataclass(frozen=True, eq=False)
class Curvature:
    """Derivatives of g(theta; b) at b = theta, each shape (C*V, C*V): rows are g, columns what is moved."""

    fresh: Array
    stale: Array

    @property
    def stale_share(self) -> float:
        """Frobenius norm of the stale part over that of the whole [1]; above 1 where the parts cancel, NaN for 0/0."""
        whole = float(np.linalg.norm(self.fresh + self.stale))
        return float(np.linalg.norm(self.stale)) / whole if whole > 0.0 else math.nan


def curvature(surrogate: Surrogate, parameters: Array) -> Curvature:
    """Both parts of the curvature of the unclipped surrogate at b = theta, by complex derivatives.

    Parameters
    ----------
    surrogate : Surrogate
        Its clip is left out: at b = theta it does not act.
    parameters : float array, shape (C, V)

    Returns
    -------
    Curvature

    Source: claim C14 (theory/claims). No error beyond rounding.
    """
    free = surrogate.without_clip()
    return Curvature(
        fresh=_jacobian(lambda moved: free.learner_gradient(moved, parameters), parameters),
        stale=_jacobian(lambda moved: free.learner_gradient(parameters, moved), parameters),
    )


def reward_hessian(surrogate: Surrogate, parameters: Array) -> Array:
    """Hessian of the expected reward V(theta), shape (C*V, C*V), by complex derivatives."""
    return _jacobian(surrogate.reward_gradient, parameters)


def cross_token_curvature(surrogate: Surrogate, parameters: Array) -> Array:
    """E[R * sum over s != t of dlog(pi_t) dlog(pi_s)^T], shape (C*V, C*V), from the scores of all tokens.

    Source: claim C14 (theory/claims).
    """
    scores = surrogate.policy.scores(parameters)
    weights = surrogate.policy.probabilities(parameters) * surrogate.rewards
    whole = scores.sum(axis=1)
    same = np.einsum("n,ntp,ntq->pq", weights, scores, scores)
    return np.asarray(np.einsum("n,np,nq->pq", weights, whole, whole) - same)


def _jacobian(function: Callable[[Array], Array], at: Array) -> Array:
    columns = []
    for cell in np.ndindex(at.shape):
        moved = at.astype(np.complex128)
        moved[cell] += 1j * _STEP
        columns.append(function(moved).imag.ravel() / _STEP)
    return np.stack(columns, axis=1)

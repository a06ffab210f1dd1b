"""The staleness bias g(theta; b) - g(theta; theta), split exactly into its three sources.

The parts add up to the bias by construction: each step of the chain changes one thing.

    ratios          b's samples with r in place of the learner's own samples; advantages as under b
    normalisation   group statistics of b in place of those of theta
    clip            the clipped surrogate in place of the unclipped one
"""

from dataclasses import dataclass

import numpy as np

from theory.numeric import numpy_function
from theory.surrogate.exact import Surrogate
from theory.surrogate.formulas import WEIGHT_FIRST, WEIGHT_SECOND
from theory.surrogate.policies import Array


@dataclass(frozen=True, eq=False)
class BiasSplit:
    """The parts of the bias, each of the shape of the parameters, (C, V)."""

    ratios: Array
    normalisation: Array
    clip: Array

    @property
    def total(self) -> Array:
        """The bias."""
        return np.asarray(self.ratios + self.normalisation + self.clip)


def bias_split(surrogate: Surrogate, parameters: Array, behavior: Array) -> BiasSplit:
    """Split the bias of the learner's gradient at theta with behaviour policy b.

    Parameters
    ----------
    surrogate : Surrogate
    parameters, behavior : float array, shape (C, V)

    Returns
    -------
    BiasSplit

    Source: claims C11 to C13 (theory/claims). No error beyond rounding.
    """
    free = surrogate.without_clip()
    old, new = surrogate.parts(behavior), surrogate.parts(parameters)
    stale = free.gradient_given(old, parameters, behavior)
    fresh_old = free.gradient_given(old, parameters, parameters)
    return BiasSplit(
        ratios=ratio_part(surrogate, old, parameters, behavior),
        normalisation=fresh_old - free.gradient_given(new, parameters, parameters),
        clip=surrogate.gradient_given(old, parameters, behavior) - stale,
    )


def ratio_part(surrogate: Surrogate, parts: tuple[Array, Array], parameters: Array, behavior: Array) -> Array:
    """What stale samples with their ratios add to the unclipped gradient, advantages given; shape (C, V).

    Source: claim C11 (theory/claims).
    """
    free = surrogate.without_clip()
    stale = free.gradient_given(parts, parameters, behavior)
    return np.asarray(stale - free.gradient_given(parts, parameters, parameters))


def ratio_part_expansion(
    surrogate: Surrogate, parts: tuple[Array, Array], parameters: Array, direction: Array
) -> tuple[Array, Array]:
    """First and second coefficient of `ratio_part` in x, where b = theta - x*direction; each shape (C, V).

    The weight that a ratio leaves on a sample is exp(own - whole), own = log r_k and whole the log-ratio of the
    sequence; both are expanded in x.

    Source: claim C11 (theory/claims), WEIGHT_FIRST and WEIGHT_SECOND of theory/surrogate/formulas.py.
    """
    first, second = _log_ratio_series(surrogate, parameters, direction)
    matrix = surrogate.level(surrogate.policy.length)
    own, own_second = first @ matrix.T, second @ matrix.T
    whole, whole_second = first.sum(axis=1)[:, None], second.sum(axis=1)[:, None]
    plus, minus = parts
    chance = (surrogate.policy.probabilities(parameters) * (plus - minus))[:, None]
    weights = (
        numpy_function(WEIGHT_FIRST)(own, whole),
        numpy_function(WEIGHT_SECOND)(own, whole, own_second, whole_second),
    )
    one, two = (surrogate.policy.pull_back(chance * w / len(matrix) @ matrix, parameters) for w in weights)
    return one, two


def _log_ratio_series(surrogate: Surrogate, parameters: Array, direction: Array) -> tuple[Array, Array]:
    """Coefficients of x and x^2 in log pi_theta - log pi_(theta - x*direction) of every token, each shape (N, L)."""
    policy = surrogate.policy
    chance = np.exp(policy.log_softmax(parameters))
    mean = (chance * direction).sum(axis=1)
    variance = (chance * (direction - mean[:, None]) ** 2).sum(axis=1)
    first = direction[policy.contexts, policy.tokens] - mean[policy.contexts]
    return first, variance[policy.contexts] / 2.0

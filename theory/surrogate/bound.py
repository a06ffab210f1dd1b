"""The constants of the bias bound (theory/bias.py) for tabular policies, and bias against bound along a run."""

import math
from dataclasses import dataclass

import numpy as np

from theory.bias import BIAS_SLOPE
from theory.errors import InputError
from theory.numeric import numpy_function
from theory.surrogate import ratios
from theory.surrogate.exact import Surrogate
from theory.surrogate.groups import mean_and_std, mean_only
from theory.surrogate.policies import Array

LARGEST_RADIUS = 100.0
"""Beyond it the largest ratio, exp(sqrt(2)*radius), says nothing."""


@dataclass(frozen=True)
class BiasConstants:
    """The named constants of claim C3, valid while |theta - b| <= radius.

    Parameters
    ----------
    gradient_bound : float
        M: the gradient of the integrand of one sample has norm at most this.
    distribution_smoothness : float
        L_D: total variation between two behaviour policies per distance.
    integrand_smoothness : float
        L_phi: change of that gradient per distance of the behaviour policy, through ratios and group statistics.
    """

    gradient_bound: float
    distribution_smoothness: float
    integrand_smoothness: float

    @property
    def bias_slope(self) -> float:
        """L_b = 2*M*L_D + L_phi."""
        slope = numpy_function(BIAS_SLOPE)
        return float(slope(self.gradient_bound, self.distribution_smoothness, self.integrand_smoothness))


def bias_constants(surrogate: Surrogate, radius: float) -> BiasConstants:
    """Constants of the unclipped token-level surrogate of a softmax table, for |theta - b| <= radius.

    A score has norm at most sqrt(2) and moves log r by at most that per distance; a row of logits is visited at
    most `most_visits` times in a sequence; the Fisher matrix of a softmax row has no eigenvalue above 1/2. The
    advantage of a group of G is at most (G - 1)/sqrt(G) when divided by the sample standard deviation: it is bounded
    even where that goes to zero, so no floor is needed. Its mean over the rest of the group moves by at most its range
    times (G - 1) total variations. A centred advantage is (1 - 1/G)*(R - V(b)), so it is bounded by that share of the
    range of the rewards, and moves by as much a total variation.

    Parameters
    ----------
    surrogate : Surrogate
        Token level; `mean_only` or `mean_and_std`. With a clip the constants hold up to its onset.
    radius : float
        Not negative.

    Raises
    ------
    InputError
        If the radius is negative or too large for a float, or the surrogate is another one.

    Source: claim C3 (theory/claims).
    """
    if not 0.0 <= radius <= LARGEST_RADIUS:
        raise InputError("radius", f"be from 0 to {LARGEST_RADIUS}", radius, "Give the largest distance of a cycle.")
    if surrogate.level is not ratios.token or surrogate.groups.advantage not in (mean_only, mean_and_std):
        raise InputError(
            "surrogate", "be at token level with a group advantage", surrogate.level.__name__, "See `ratios.token`."
        )
    advantage, moved = _advantage_bounds(surrogate)
    visits, length = surrogate.policy.most_visits, surrogate.policy.length
    ratio = math.exp(math.sqrt(2.0) * radius)
    score = math.sqrt(2.0 * visits / length)  # of the mean over tokens
    smoothness = 0.5 * math.sqrt(visits / 2.0)
    through_ratios = 2.0 * visits / length * advantage * ratio
    through_groups = moved * smoothness * ratio * score
    return BiasConstants(advantage * ratio * score, smoothness, through_ratios + through_groups)


def _advantage_bounds(surrogate: Surrogate) -> tuple[float, float]:
    """Largest expected advantage, and how far it moves per total variation of the behaviour policy."""
    size = surrogate.groups.group_size
    if surrogate.groups.advantage is mean_and_std:
        largest = (size - 1) / math.sqrt(size)
        return largest, 2.0 * largest * (size - 1)
    centred = (1.0 - 1.0 / size) * float(np.ptp(surrogate.rewards))
    return centred, centred


def bias_norm(surrogate: Surrogate, parameters: Array, behavior: Array) -> float:
    """|g(theta; b) - g(theta; theta)|, the norm of the bias [gradient]."""
    bias = surrogate.learner_gradient(parameters, behavior) - surrogate.learner_gradient(parameters, parameters)
    return float(np.linalg.norm(bias))

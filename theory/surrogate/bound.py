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
    advantage of a group of G is at most (G - 1)/sqrt(G) when divided by the sample standard deviation, and the range
    of the rewards without: it is bounded even where the standard deviation goes to zero, so no floor is needed. Its
    mean over the rest of the group moves by at most twice that bound times (G - 1) total variations.

    Parameters
    ----------
    surrogate : Surrogate
        Token level; `mean_only` or `mean_and_std`. With a clip the constants hold up to its onset.
    radius : float
        Positive.

    Raises
    ------
    InputError
        If the radius is not positive, or the surrogate is another one.

    Source: claim C3 (theory/claims).
    """
    if not radius > 0.0:
        raise InputError("radius", "be positive", radius, "Give the largest distance of a cycle.")
    if surrogate.level is not ratios.token or surrogate.groups.advantage not in (mean_only, mean_and_std):
        raise InputError(
            "surrogate", "be at token level with a group advantage", surrogate.level.__name__, "See `ratios.token`."
        )
    size = surrogate.groups.group_size
    span = float(np.ptp(surrogate.rewards))
    advantage = (size - 1) / math.sqrt(size) if surrogate.groups.advantage is mean_and_std else span
    visits, length = surrogate.policy.most_visits, surrogate.policy.length
    ratio = math.exp(math.sqrt(2.0) * radius)
    score = math.sqrt(2.0 * visits / length)  # of the mean over tokens
    smoothness = 0.5 * math.sqrt(visits / 2.0)
    moved_ratio = 2.0 * visits / length * advantage * ratio
    moved_advantage = 2.0 * advantage * (size - 1) * smoothness * ratio * score
    return BiasConstants(advantage * ratio * score, smoothness, moved_ratio + moved_advantage)


def bias_norm(surrogate: Surrogate, parameters: Array, behavior: Array) -> float:
    """|g(theta; b) - g(theta; theta)|, the norm of the bias [gradient]."""
    bias = surrogate.learner_gradient(parameters, behavior) - surrogate.learner_gradient(parameters, parameters)
    return float(np.linalg.norm(bias))

"""The behaviour-dependent surrogate J(theta; b) and its two derivatives, exactly, on an enumerated policy.

    J(theta; b) = E_{o ~ b} mean_k [ A+ min(r_k, 1 + eps_high) - A- max(r_k, 1 - eps_low) ]

with A+ and A- the expected positive and negative part of the group advantage of o under b, and r_k the ratios of o:
one a token, or one a sequence. The learner follows d/d theta with b frozen; the total derivative adds d/d b.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from theory.errors import InputError
from theory.surrogate.groups import Groups
from theory.surrogate.policies import Array, TabularPolicy
from theory.surrogate.ratios import Level


@dataclass(frozen=True)
class Clip:
    """PPO's clip: ratios count within [1 - low, 1 + high] (arXiv:1707.06347, equation 7).

    Raises
    ------
    InputError
        If low is not in (0, 1) or high is not positive.
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        if not 0.0 < self.low < 1.0:
            raise InputError("low", "be between 0 and 1", self.low, "PPO's is 0.2.")
        if not self.high > 0.0:
            raise InputError("high", "be positive", self.high, "PPO's is 0.2.")


@dataclass(frozen=True, eq=False)
class Surrogate:
    """The surrogate of a policy, a reward and a convention; parameters theta and b have the policy's shape (C, V).

    Parameters
    ----------
    policy : TabularPolicy
    rewards : float array, shape (N,)
        Reward of every sequence.
    groups : Groups
    level : function
        One of theory.surrogate.ratios: `token`, `sequence`, `sequence_product`.
    clip : Clip or None

    Raises
    ------
    InputError
        If the rewards are not one finite number for each sequence.

    Source: claims C10 to C13 (theory/claims). No error beyond rounding.
    """

    policy: TabularPolicy
    rewards: Array
    groups: Groups
    level: Level
    clip: Clip | None = None

    def __post_init__(self) -> None:
        expected = (len(self.policy.tokens),)
        if np.shape(self.rewards) != expected or not np.all(np.isfinite(self.rewards)):
            raise InputError(
                "rewards", f"be finite, of shape {expected}", np.shape(self.rewards), "Give one for each sequence."
            )

    @cached_property
    def _levels(self) -> tuple[Array, Array]:
        values, index = np.unique(self.rewards, return_inverse=True)
        return values, index

    @cached_property
    def _ratios(self) -> Array:
        return self.level(self.policy.length)

    def without_clip(self) -> "Surrogate":
        """The same surrogate, unclipped."""
        return replace(self, clip=None)

    def expected_reward(self, parameters: Array) -> float:
        """V(theta), the expected reward."""
        return float(self.policy.probabilities(parameters) @ self.rewards)

    def reward_gradient(self, parameters: Array) -> Array:
        """D V / d theta, shape (C, V)."""
        weights = self.policy.probabilities(parameters) * self.rewards
        return self.policy.pull_back(np.repeat(weights[:, None], self.policy.length, axis=1), parameters)

    def level_probabilities(self, parameters: Array) -> Array:
        """Probability of every reward level, shape (K,)."""
        values, index = self._levels
        member = index[None, :] == np.arange(len(values))[:, None]
        return np.asarray(member @ self.policy.probabilities(parameters))

    def parts(self, behavior: Array) -> tuple[Array, Array]:
        """Expected positive and negative part of every sequence's advantage under b, each shape (N,)."""
        values, index = self._levels
        plus, minus = self.groups.parts(values, self.level_probabilities(behavior))
        return plus[index], minus[index]

    def log_ratios(self, parameters: Array, behavior: Array) -> Array:
        """Log r of every sequence, shape (N, L) or (N, 1) [nat]."""
        difference = self.policy.token_logp(parameters) - self.policy.token_logp(behavior)
        return np.asarray(difference @ self._ratios.T)

    def _pieces(self, parameters: Array, behavior: Array) -> tuple[Array, Array, Array, Array]:
        """Clipped ratio for A > 0 and for A < 0, and the slopes of both by log r, each shape (N, K)."""
        ratio = np.exp(self.log_ratios(parameters, behavior))
        if self.clip is None:
            return ratio, ratio, ratio, ratio
        top, bottom = 1.0 + self.clip.high, 1.0 - self.clip.low
        below, above = np.minimum(ratio, top), np.maximum(ratio, bottom)
        return below, above, np.where(ratio < top, ratio, 0.0), np.where(ratio > bottom, ratio, 0.0)

    def value(self, parameters: Array, behavior: Array) -> float:
        """J(theta; b) [advantage]."""
        plus, minus = self.parts(behavior)
        below, above, _, _ = self._pieces(parameters, behavior)
        terms = plus * below.mean(axis=1) - minus * above.mean(axis=1)
        return float(self.policy.probabilities(behavior) @ terms)

    def _ratio_slopes(self, parameters: Array, behavior: Array, parts: tuple[Array, Array]) -> Array:
        """Weight of d log(pi_t/b_t) in the derivative of J by the ratios, shape (N, L)."""
        plus, minus = parts
        _, _, rising, falling = self._pieces(parameters, behavior)
        slopes = plus[:, None] * rising - minus[:, None] * falling
        return np.asarray(self.policy.probabilities(behavior)[:, None] * slopes / slopes.shape[1] @ self._ratios)

    def learner_gradient(self, parameters: Array, behavior: Array) -> Array:
        """g(theta; b) = d J / d theta at frozen b, shape (C, V)."""
        return self.gradient_given(self.parts(behavior), parameters, behavior)

    def gradient_given(self, parts: tuple[Array, Array], parameters: Array, behavior: Array) -> Array:
        """g(theta; b) with the advantages given instead of taken from b, shape (C, V)."""
        return self.policy.pull_back(self._ratio_slopes(parameters, behavior, parts), parameters)

    def behavior_gradient(self, parameters: Array, behavior: Array) -> Array:
        """D J / d b at frozen theta, shape (C, V): through the samples, the ratios and the group statistics."""
        values, index = self._levels
        chance = self.policy.probabilities(behavior)
        plus, minus = self.parts(behavior)
        below, above, _, _ = self._pieces(parameters, behavior)
        below, above = below.mean(axis=1), above.mean(axis=1)
        plus_slope, minus_slope = self.groups.slopes(values, self.level_probabilities(behavior))
        by_level = (chance * below) @ plus_slope[index] - (chance * above) @ minus_slope[index]
        samples = chance * (plus * below - minus * above + by_level[index])
        ratios = self._ratio_slopes(parameters, behavior, (plus, minus))
        return self.policy.pull_back(samples[:, None] - ratios, behavior)

    def total_derivative(self, parameters: Array) -> Array:
        """D J(theta; theta) / d theta, shape (C, V): the sum of both derivatives at b = theta."""
        return self.learner_gradient(parameters, parameters) + self.behavior_gradient(parameters, parameters)

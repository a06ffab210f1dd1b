"""Group advantages in expectation, exactly: a multinomial sum over how the rest of the group fell.

A group has G rewards, each one of K levels with probabilities p. The surrogate needs, for a sample with a reward of
level k, the expected positive part and the expected negative part of its advantage: without a clip their difference,
with PPO's clip each on its own.
"""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from theory.errors import InputError
from theory.surrogate.policies import Array

Advantage = Callable[[Array, Array, Array], Array]
"""(own reward, group mean, group sample variance) -> advantage, elementwise."""

MOST_COUNTS = 200_000
"""Ways for a group to fall over the levels up to which the sum is done."""

EQUAL = 1e-12
"""Share of the rewards below which their spread is rounding: the mean of equal rewards need not be that reward."""

LARGEST_GROUP = 1000
"""Beyond it a multinomial coefficient may not fit a float."""


def reward_only(reward: Array, mean: Array, variance: Array) -> Array:  # noqa: ARG001
    """The reward itself, without a baseline."""
    return reward


def mean_only(reward: Array, mean: Array, variance: Array) -> Array:  # noqa: ARG001
    """Reward minus the mean of its group (Dr. GRPO, arXiv:2503.20783)."""
    return np.asarray(reward - mean)


def mean_and_std(reward: Array, mean: Array, variance: Array) -> Array:
    """The same over the sample standard deviation (GRPO, arXiv:2402.03300); zero in a group of equal rewards."""
    spread = np.sqrt(variance)
    differ = spread > EQUAL * np.maximum(np.abs(reward), np.abs(mean))
    return np.asarray(np.divide(reward - mean, spread, out=np.zeros_like(spread), where=differ))


@cache
def _counts(number: int, levels: int) -> Array:
    """Every way in which `number` samples fall over the levels, shape (ways, levels)."""
    if math.comb(number + levels - 1, levels - 1) > MOST_COUNTS:
        raise InputError(
            "group_size",
            f"leave at most {MOST_COUNTS} ways to fall over {levels} reward levels",
            number + 1,
            "Use at most 3 levels, or a group of 2.",
        )
    bars = itertools.combinations(range(number + levels - 1), levels - 1)
    return np.array([np.diff((-1, *bar, number + levels - 1)) - 1 for bar in bars])


def _weights(counts: Array, probabilities: Array) -> Array:
    """Multinomial probability of every row of counts, shape (ways,)."""
    number = int(counts[0].sum())
    ways = [math.factorial(number) / math.prod(math.factorial(int(c)) for c in row) for row in counts]
    return np.asarray(np.array(ways) * np.prod(probabilities**counts, axis=1))


@dataclass(frozen=True)
class Groups:
    """Groups of G rewards.

    Parameters
    ----------
    advantage : function
        `mean_only`, `mean_and_std`, `reward_only`, or another.
    group_size : int
        G >= 2.

    Raises
    ------
    InputError
        If the group is smaller than 2, or there are too many ways for it to fall over the levels.

    Source: claim C15 (theory/claims).

    >>> plus, minus = Groups(mean_only, 2).parts(np.array([0.0, 1.0]), np.array([0.5, 0.5]))
    >>> plus.tolist(), minus.tolist()
    ([0.0, 0.25], [0.25, 0.0])
    """

    advantage: Advantage
    group_size: int

    def __post_init__(self) -> None:
        if not isinstance(self.group_size, int) or not 2 <= self.group_size <= LARGEST_GROUP:
            rule = f"be a whole number from 2 to {LARGEST_GROUP}"
            raise InputError("group_size", rule, repr(self.group_size), "GRPO compares the samples of a group.")

    def _advantages(self, levels: Array, others: Array) -> Array:
        """Advantage of a sample of every level beside each row of counts of the others, shape (K, ways)."""
        counts = others[None] + np.eye(len(levels), dtype=np.int64)[:, None]
        mean = counts @ levels / self.group_size
        variance = (counts * (levels - mean[..., None]) ** 2).sum(axis=-1) / (self.group_size - 1)
        own = np.broadcast_to(np.asarray(levels, dtype=np.float64)[:, None], mean.shape)
        return self.advantage(own, mean, variance)

    def parts(self, levels: Array, probabilities: Array) -> tuple[Array, Array]:
        """Expected positive and negative part of the advantage of every level, each shape (K,).

        `probabilities`, shape (K,), sum to 1, which is not checked: for derivatives they may be off it, or complex.
        The expected advantage is the difference of the two.
        """
        others = _counts(self.group_size - 1, len(levels))
        weights = _weights(others, probabilities)
        advantages = self._advantages(levels, others)
        return np.maximum(advantages, 0.0) @ weights, np.maximum(-advantages, 0.0) @ weights

    def slopes(self, levels: Array, probabilities: Array) -> tuple[Array, Array]:
        """Derivatives of `parts` by the probability of every level, each shape (K own, K changed)."""
        others = _counts(self.group_size - 2, len(levels))
        weights = (self.group_size - 1) * _weights(others, probabilities)
        one_more = [self._advantages(levels, others + row) for row in np.eye(len(levels), dtype=np.int64)]
        plus = np.stack([np.maximum(one, 0.0) @ weights for one in one_more], axis=1)
        minus = np.stack([np.maximum(-one, 0.0) @ weights for one in one_more], axis=1)
        return plus, minus

"""Importance ratios of a completion: each level is a matrix that turns log-ratios of tokens into log r."""

from collections.abc import Callable

import numpy as np

from theory.surrogate.policies import Array

Level = Callable[[int], Array]
"""Length L -> matrix of shape (K, L), K ratios a completion."""


def token(length: int) -> Array:
    """One ratio a token (GRPO)."""
    return np.eye(length)


def sequence(length: int) -> Array:
    """The geometric mean of the ratios of the tokens (GSPO, arXiv:2507.18071, equation 7)."""
    return np.full((1, length), 1.0 / length)


def sequence_product(length: int) -> Array:
    """Their product, the exact importance weight of the completion."""
    return np.ones((1, length))

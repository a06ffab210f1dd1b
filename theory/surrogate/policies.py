"""Small tabular autoregressive policies whose sequences are all enumerated, so that every expectation is exact.

Arrays: N sequences (all V**L of them), L tokens, C contexts, V symbols.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from theory.errors import InputError

Array = NDArray[Any]

MOST_SEQUENCES = 4096
"""V**L up to which a policy is enumerated: a vocabulary of 4 and a length of 6."""


def _sequences(vocabulary: int, length: int) -> Array:
    """All sequences in lexicographic order, shape (N, L)."""
    for name, value, least in (("vocabulary", vocabulary, 2), ("length", length, 1)):
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise InputError(name, f"be a whole number >= {least}", repr(value), "Give a small one, for example 3.")
    if vocabulary**length > MOST_SEQUENCES:
        raise InputError(
            "vocabulary**length",
            f"be at most {MOST_SEQUENCES}",
            vocabulary**length,
            "Every sequence is enumerated: take a smaller vocabulary or a shorter length.",
        )
    powers = vocabulary ** np.arange(length - 1, -1, -1)
    return np.arange(vocabulary**length)[:, None] // powers % vocabulary


@dataclass(frozen=True, eq=False)
class TabularPolicy:
    """A policy with one row of logits for each context; `parameters` below has shape (C, V).

    Make one with `per_position`, `per_prefix` or `markov`.

    Parameters
    ----------
    tokens : int array, shape (N, L)
        All sequences.
    contexts : int array, shape (N, L)
        Which row of logits decides each token.
    """

    tokens: Array
    contexts: Array

    @classmethod
    def per_position(cls, vocabulary: int, length: int) -> TabularPolicy:
        """One row for each position: the tokens are independent."""
        tokens = _sequences(vocabulary, length)
        return cls(tokens, np.broadcast_to(np.arange(length), tokens.shape))

    @classmethod
    def per_prefix(cls, vocabulary: int, length: int) -> TabularPolicy:
        """One row for each prefix: every distribution over sequences can be expressed."""
        tokens = _sequences(vocabulary, length)
        number = np.zeros(len(tokens), dtype=np.int64)
        contexts = np.empty_like(tokens)
        for position in range(length):
            contexts[:, position] = number + (vocabulary**position - 1) // (vocabulary - 1)
            number = number * vocabulary + tokens[:, position]
        return cls(tokens, contexts)

    @classmethod
    def markov(cls, vocabulary: int, length: int) -> TabularPolicy:
        """One row for each previous token and one for the start, shared by all positions."""
        tokens = _sequences(vocabulary, length)
        start = np.full((len(tokens), 1), vocabulary)
        return cls(tokens, np.concatenate([start, tokens[:, :-1]], axis=1))

    @cached_property
    def shape(self) -> tuple[int, int]:
        """(C, V), the shape of the parameters."""
        return int(self.contexts.max()) + 1, int(self.tokens.max()) + 1

    @property
    def length(self) -> int:
        """L."""
        return int(self.tokens.shape[1])

    @cached_property
    def most_visits(self) -> int:
        """How often at most one sequence comes to the same context; 1 unless rows are shared by positions."""
        return max(int(np.bincount(row).max()) for row in self.contexts)

    @cached_property
    def _cells(self) -> Array:
        return self.contexts * self.shape[1] + self.tokens

    def log_softmax(self, parameters: Array) -> Array:
        """Log-probabilities of every row, shape (C, V) [nat]; parameters may be complex.

        Raises
        ------
        InputError
            If the parameters are not finite, or have another shape.
        """
        if np.shape(parameters) != self.shape or not np.all(np.isfinite(parameters)):
            rule = f"be finite logits of shape {self.shape}"
            raise InputError("parameters", rule, np.shape(parameters), "One row a context, one column a symbol.")
        shifted = parameters - parameters.real.max(axis=1, keepdims=True)
        return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True)))

    def token_logp(self, parameters: Array) -> Array:
        """Log-probability of every token of every sequence, shape (N, L) [nat]."""
        return np.asarray(self.log_softmax(parameters).ravel()[self._cells])

    def probabilities(self, parameters: Array) -> Array:
        """Probability of every sequence, shape (N,) [1]."""
        return np.asarray(np.exp(self.token_logp(parameters).sum(axis=1)))

    def pull_back(self, weights: Array, parameters: Array) -> Array:
        """Sum over sequences n and tokens t of weights[n, t] * d log pi_t(n) / d parameters, shape (C, V)."""
        size = int(np.prod(self.shape))
        cells = self._cells.ravel()
        total = np.bincount(cells, weights.real.ravel(), size).astype(weights.dtype)
        if np.iscomplexobj(weights):
            total = total + 1j * np.bincount(cells, weights.imag.ravel(), size)
        total = total.reshape(self.shape)
        return np.asarray(total - np.exp(self.log_softmax(parameters)) * total.sum(axis=1, keepdims=True))

    def scores(self, parameters: Array) -> Array:
        """D log pi_t(n) / d parameters of every token, shape (N, L, C*V); for small policies only."""
        jacobian = np.zeros((*self.tokens.shape, *self.shape))
        sequence, position = np.indices(self.tokens.shape)
        jacobian[sequence, position, self.contexts] = -np.exp(self.log_softmax(parameters))[self.contexts]
        jacobian[sequence, position, self.contexts, self.tokens] += 1.0
        return jacobian.reshape(*self.tokens.shape, -1)

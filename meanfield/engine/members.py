"""Parameter sets of a drift model as arrays, the blocks that they walk in, and how they end."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from meanfield.grids import Array

LANES = 32
"""Members of a block: they share their steps, so a result depends, within the tolerance, on the whole block."""


@dataclass(frozen=True, eq=False)
class Members:
    """Parameter sets of one model.

    Parameters
    ----------
    parameters : array, shape (num_parameters, n)
        In the order of the model.
    sync_interval : array, shape (n,) [optimizer step]
        Whole and at least 1, or inf.
    learning_rate : array, shape (n,) [1]
    number : array, shape (n,), int64
        What the noise of a member is drawn for, beside the seed; its place if not given.
    """

    parameters: Array
    sync_interval: Array
    learning_rate: Array
    number: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    def __post_init__(self) -> None:
        if not self.number.size:
            object.__setattr__(self, "number", np.arange(self.sync_interval.size))

    def __len__(self) -> int:
        return self.sync_interval.size

    def taken(self, index: NDArray[np.int64]) -> Members:
        """Return the members at these places, numbered anew."""
        return Members(self.parameters[:, index], self.sync_interval[index], self.learning_rate[index])


def plan(sync_interval: Array) -> NDArray[np.int64]:
    """Return the order in which members fill their blocks: by sync interval, then by index.

    Parameters
    ----------
    sync_interval : array, shape (n,)

    Returns
    -------
    array, shape (n,)
        Block b holds the members at LANES*b .. LANES*b + LANES - 1 of it.
    """
    return np.argsort(sync_interval, kind="stable")


@dataclass(frozen=True, eq=False)
class Blocks:
    """Members in the order in which they are walked, as the compiled code takes them; the last block is filled up.

    Attributes
    ----------
    order : array, shape (n,)
    inputs : array, shape (num_parameters + 1, m)
        Parameters and S*eta; m is n rounded up to whole blocks.
    sync_interval, learning_rate, number : arrays, shape (m,)
    """

    order: NDArray[np.int64]
    inputs: Array
    sync_interval: Array
    learning_rate: Array
    number: NDArray[np.int64]

    @classmethod
    def of(cls, members: Members) -> Blocks:
        """Put members into blocks as `plan` says."""
        order = plan(members.sync_interval)
        padded = np.concatenate([order, np.repeat(order[-1:], -len(order) % LANES)])
        S, eta = members.sync_interval[padded], members.learning_rate[padded]
        inputs = np.ascontiguousarray(np.vstack([members.parameters[:, padded], S * eta]))  # one layout, compiled once
        return cls(order, inputs, S, eta, members.number[padded])

    @property
    def num_blocks(self) -> int:
        """How many blocks there are."""
        return self.sync_interval.size // LANES


@dataclass(frozen=True, eq=False)
class Exits:
    """How members end, in their own order.

    Attributes
    ----------
    clock : array, shape (n,) [1]
        eta*t at exit; inf if none fires within the horizon.
    code : array, shape (n,), int8
        Index among the model's exits, `STAYED` or `FAILED`.
    states : array, shape (num_states, n)
        At exit, or after the last cycle that begins within the horizon.
    """

    clock: Array
    code: NDArray[np.int8]
    states: Array

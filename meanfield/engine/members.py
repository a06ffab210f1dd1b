"""Parameter sets of a drift model as arrays, the blocks that they walk in, and how they end."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from meanfield.grids import Array

LANES = 16
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
    """

    parameters: Array
    sync_interval: Array
    learning_rate: Array

    def __len__(self) -> int:
        return self.sync_interval.size

    def taken(self, index: NDArray[np.int64]) -> Members:
        """Return the members at these places, in this order."""
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

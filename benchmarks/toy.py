"""The toy that every engine runs, with time in optimizer steps.

x' = eta*tanh(m), m' = -m/10 + k*(x - x_b) + 1/50, and x_b := x at every sync. The sync intervals are whole
numbers, for the public calls of this project take no others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from theory.models.model import DriftModel

Array = NDArray[np.float64]

NUM_SETS = 1000
NUM_SYNCS = 200
SEED = 20261201
RTOL, ATOL = 1e-6, 1e-9
FADING, PUSH = 0.1, 0.02
RADIUS = 38.0
"""About half of the sets get so far within the 200 syncs."""
NOISY_STEPS = 3200
NEVER = 1e9
"""A radius that no set reaches."""


@dataclass(frozen=True, eq=False)
class Sets:
    """Parameter sets of the toy; arrays of shape (n,)."""

    sync_interval: Array
    learning_rate: Array
    gain: Array

    def __len__(self) -> int:
        return self.sync_interval.size

    def __getitem__(self, index: slice | Array) -> Sets:
        return Sets(self.sync_interval[index], self.learning_rate[index], self.gain[index])

    def rows(self) -> Iterator[tuple[float, float, float]]:
        """Sync interval, learning rate and gain of one set after the other."""
        return zip(self.sync_interval.tolist(), self.learning_rate.tolist(), self.gain.tolist(), strict=True)

    def by_sync_interval(self) -> tuple[Sets, NDArray[np.int64]]:
        """Return the sets sorted by S, and where each of these sets stands among the sorted ones."""
        order = np.argsort(self.sync_interval, kind="stable")
        return self[order], np.argsort(order)


def sets(number: int = NUM_SETS) -> Sets:
    """Return the first of the parameter sets, always the same."""
    rng = np.random.default_rng(SEED)
    learning_rate = np.exp(rng.uniform(np.log(1e-3), np.log(1e-1), NUM_SETS))
    sync_interval = rng.integers(4, 65, NUM_SETS).astype(np.float64)
    gain = np.exp(rng.uniform(np.log(0.2), np.log(4.0), NUM_SETS))
    return Sets(sync_interval, learning_rate, gain)[:number]


def model(noise: float = 0.0) -> DriftModel:
    """Return the toy as a drift model, d = x - x_b; `noise` on m, per optimizer step and unit of eta."""
    import sympy as sp

    from theory.models.model import DriftModel, WithinExit
    from theory.symbols import eta

    d, m, x = sp.symbols("d m x", real=True)
    k, R = sp.symbols("k R", positive=True)
    return DriftModel(
        name="toy",
        states=(d, m, x),
        parameters=(k, eta, R),
        flow=(sp.tanh(m), (-m / 10 + k * d + sp.Rational(1, 50)) / eta, sp.tanh(m)),
        sync=(sp.Integer(0), m, x),
        start=(sp.Integer(0),) * 3,
        exits=(WithinExit("region", sp.Abs(x), R),),
        noise=(sp.Integer(0), sp.Float(noise), sp.Integer(0)) if noise else (),
    )

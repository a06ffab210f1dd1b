"""A solver of numbalsoda called inside Numba, one set after the other; no exits.

Numba cannot cache a function that calls it, so every process compiles again. There is no wheel: pip builds it, which
needs gfortran and cmake.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numbalsoda import lsoda_sig

from benchmarks.toy import ATOL, FADING, NUM_SYNCS, PUSH, RTOL, Array, Sets


@numba.cfunc(lsoda_sig)
def flow(_, states, slopes, values):
    """Write d/dt of m and x; values: learning rate, gain, x_b."""
    slopes[0] = -FADING * states[0] + values[1] * (states[1] - values[2]) + PUSH
    slopes[1] = values[0] * math.tanh(states[0])


ADDRESS = flow.address


def walked_by(solver: Any) -> Callable[[Sets], Array]:
    """Return the function that walks sets by a solver: x after the last sync, shape (n,)."""

    @numba.njit
    def walk(address, sync_interval, learning_rate, gain, ends):
        values = np.empty(3)
        times = np.zeros(2)
        for item in range(ends.size):
            states = np.zeros(2)
            values[0], values[1] = learning_rate[item], gain[item]
            times[1] = sync_interval[item]
            for _ in range(NUM_SYNCS):
                values[2] = states[1]
                rows, success = solver(address, states, times, values, RTOL, ATOL)
                states = rows[-1] if success else np.full(2, np.nan)
            ends[item] = states[1]

    def run(sets: Sets) -> Array:
        ends = np.empty(len(sets))
        walk(ADDRESS, sets.sync_interval, sets.learning_rate, sets.gain, ends)
        return ends

    return run

"""x at the end and eta*t at the exit of every set of the toy, to some twelve digits, and a check by another method."""

from __future__ import annotations

import numpy as np
from scipy.integrate import DOP853, solve_ivp

from benchmarks.peers.scipy_loop import flow
from benchmarks.peers.scipy_stacked import walk
from benchmarks.toy import NEVER, NUM_SYNCS, Array, Sets

RTOL, ATOL = 1e-13, 1e-16
STACK = 50
"""Sets in one state, sorted by S: few, for their error is a mean square."""


def ends(sets: Sets) -> Array:
    """Return x after the last sync, shape (n,), by DOP853."""
    return _stacks(sets, NEVER)[0]


def clocks(sets: Sets, radius: float) -> Array:
    """Return eta*t where abs(x) = radius, inf where it is not reached, shape (n,), by DOP853."""
    return _stacks(sets, radius)[1]


def checked(sets: Sets) -> Array:
    """Return what `ends` does by Radau's implicit method, one set after the other: slow."""
    return np.array([_radau(*one) for one in sets.rows()])


def _stacks(sets: Sets, radius: float) -> tuple[Array, Array]:
    ordered, place = sets.by_sync_interval()
    parts = [walk(ordered[at : at + STACK], radius, DOP853, RTOL, ATOL) for at in range(0, len(sets), STACK)]
    found = np.concatenate([np.array(part) for part in parts], axis=1)
    return found[0, place], found[1, place]


def _radau(sync_interval: float, learning_rate: float, gain: float) -> float:
    states = np.zeros(2)
    for _ in range(NUM_SYNCS):
        arguments = (learning_rate, gain, states[1])
        states = solve_ivp(
            flow, (0.0, sync_interval), states, method="Radau", args=arguments, rtol=1e-11, atol=1e-13
        ).y[:, -1]
    return float(states[1])

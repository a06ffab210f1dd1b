"""SciPy `solve_ivp` with RK45, one set after the other, started again at each sync; exits are its events."""

from __future__ import annotations

import math

import numpy as np
from scipy.integrate import solve_ivp

from benchmarks.toy import ATOL, FADING, NUM_SYNCS, PUSH, RTOL, Array, Sets

NUM_SETS = 20
"""So many are timed; the rate stands for all."""


def run(sets: Sets) -> Array:
    """Return x after the last sync, shape (n,)."""
    return np.array([_walk(*one, None)[0] for one in sets.rows()])


def exits(sets: Sets, radius: float) -> Array:
    """Return eta*t where abs(x) = radius, inf where it is not reached; shape (n,)."""

    def region(_: float, states: Array, *__: float) -> float:
        return abs(states[1]) - radius

    region.terminal = True
    return np.array([_walk(*one, region)[1] for one in sets.rows()])


def flow(_: float, states: Array, learning_rate: float, gain: float, behaviour: float) -> tuple[float, float]:
    """Return d/dt of m and x."""
    m, x = states
    return -FADING * m + gain * (x - behaviour) + PUSH, learning_rate * math.tanh(m)


def _walk(sync_interval: float, learning_rate: float, gain: float, event) -> tuple[float, float]:
    states = np.zeros(2)
    for cycle in range(NUM_SYNCS):
        span, values = (0.0, sync_interval), (learning_rate, gain, states[1])
        solution = solve_ivp(flow, span, states, args=values, events=event, rtol=RTOL, atol=ATOL)
        states = solution.y[:, -1]
        if solution.status == 1:
            return states[1], (cycle * sync_interval + solution.t[-1]) * learning_rate
    return states[1], math.inf

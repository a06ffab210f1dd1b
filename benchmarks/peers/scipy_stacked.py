"""SciPy RK45 with all sets in one state, in the time s = t/S: the strongest form in plain SciPy that we know.

Steps are driven one by one: the first step of a cycle is that of the cycle before, sets that have left the region are
dropped at the next sync, and an exit is located in the dense output of the step it lies in.
"""

from __future__ import annotations

import numpy as np
from scipy.integrate import RK45, OdeSolver
from scipy.optimize import brentq

from benchmarks.toy import ATOL, FADING, NEVER, NUM_SYNCS, PUSH, RTOL, Array, Sets


def run(sets: Sets) -> Array:
    """Return x after the last sync, shape (n,)."""
    return walk(sets, NEVER, RK45, RTOL, ATOL)[0]


def exits(sets: Sets, radius: float) -> Array:
    """Return eta*t where abs(x) = radius, inf where it is not reached; shape (n,)."""
    return walk(sets, radius, RK45, RTOL, ATOL)[1]


def walk(sets: Sets, radius: float, method: type[OdeSolver], rtol: float, atol: float) -> tuple[Array, Array]:
    """Walk every set through its syncs or to its exit; returns x and eta*t there."""
    ends, clocks = np.zeros(len(sets)), np.full(len(sets), np.inf)
    going, states, first = np.arange(len(sets)), np.zeros(2 * len(sets)), None
    products = sets.sync_interval * sets.learning_rate
    for cycle in range(NUM_SYNCS):
        states, first, shares = _cycle(sets[going], states, first, radius, method, rtol, atol)
        out = np.isfinite(shares)
        ends[going] = np.where(out, np.copysign(radius, states[going.size :]), states[going.size :])
        clocks[going[out]] = (cycle + shares[out]) * products[going[out]]
        going, states = going[~out], states.reshape(2, -1)[:, ~out].ravel()
        if not going.size:
            break
    return ends, clocks


def _cycle(
    sets: Sets, states: Array, first: float | None, radius: float, method: type[OdeSolver], rtol: float, atol: float
) -> tuple[Array, float, Array]:
    """One cycle of all sets: states, the first step that was taken, and the share of the cycle at which each left."""
    size, shares = len(sets), np.full(len(sets), np.inf)
    solver = method(_flow(sets, states[size:]), 0.0, states, 1.0, rtol=rtol, atol=atol, first_step=first)
    taken = None
    while solver.status == "running":
        solver.step()
        taken = taken or solver.step_size
        new = np.flatnonzero((np.abs(solver.y[size:]) >= radius) & np.isinf(shares))
        if new.size:
            dense = solver.dense_output()
            for lane in new:
                shares[lane] = brentq(
                    lambda s, at: abs(dense(s)[at]) - radius,  # noqa: B023
                    solver.t_old,
                    solver.t,
                    args=(size + lane,),
                    xtol=1e-15,
                )
    return solver.y, min(taken, 1.0), shares


def _flow(sets: Sets, behaviour: Array):
    """d/ds of m and x, in as few passes over memory as NumPy allows."""
    size = len(sets)
    fading, gain = -FADING * sets.sync_interval, sets.sync_interval * sets.gain
    speed, push = sets.sync_interval * sets.learning_rate, PUSH * sets.sync_interval - gain * behaviour
    drive = np.empty(size)

    def flow(_: float, states: Array) -> Array:
        slopes = np.empty(2 * size)
        np.multiply(fading, states[:size], out=slopes[:size])
        np.multiply(gain, states[size:], out=drive)
        slopes[:size] += drive
        slopes[:size] += push
        np.tanh(states[:size], out=slopes[size:])
        slopes[size:] *= speed
        return slopes

    return flow

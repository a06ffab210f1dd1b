"""JiTCODE: the right side as C, with SciPy's dopri5, one set after the other; no exits. It needs a C compiler."""

from __future__ import annotations

import os
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import symengine
from jitcode import jitcode, y

from benchmarks.toy import ATOL, FADING, NUM_SYNCS, PUSH, RTOL, Array, Sets

NUM_SETS = 60
"""So many are timed; the rate stands for all."""


def run(sets: Sets) -> Array:
    """Return x after the last sync, shape (n,)."""
    return np.array([_walk(*one) for one in sets.rows()])


def _walk(sync_interval: float, learning_rate: float, gain: float) -> float:
    solver, states = _solver(), np.zeros(2)
    for _ in range(NUM_SYNCS):
        solver.set_parameters(learning_rate, gain, states[1])
        solver.set_initial_value(states, 0.0)
        states = solver.integrate(sync_interval)
    return float(states[1])


@cache
def _solver() -> jitcode:
    module = Path(os.environ.get("BENCHMARKS_CACHE", ".")) / "jitcode_toy.so"
    values = symengine.symbols("learning_rate gain behaviour")
    if module.is_file():
        solver = jitcode(module_location=str(module), n=2, control_pars=values, verbose=False)
    else:
        learning_rate, gain, behaviour = values
        flow = [-FADING * y(0) + gain * (y(1) - behaviour) + PUSH, learning_rate * symengine.tanh(y(0))]
        solver = jitcode(flow, control_pars=values, verbose=False)
        solver.save_compiled(str(module), overwrite=True)
    warnings.filterwarnings("ignore", category=UserWarning)
    solver.set_integrator("dopri5", rtol=RTOL, atol=ATOL)
    return solver

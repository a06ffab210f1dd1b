"""diffrax Dopri5 under `vmap` in float64: a scan over the syncs, batches of sets sorted by S; no exits."""

from __future__ import annotations

import os

import diffrax
import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.toy import ATOL, FADING, NUM_SYNCS, PUSH, RTOL, Array, Sets

BATCH = 200
"""Sets that step together and wait for the slowest; 200 is the quickest of 16 to 1,000."""

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_compilation_cache_dir", os.environ.get("BENCHMARKS_CACHE"))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)


def run(sets: Sets) -> Array:
    """Return x after the last sync, shape (n,)."""
    return in_batches(sets, BATCH)


def in_batches(sets: Sets, size: int) -> Array:
    """Return x after the last sync, shape (n,), walked in batches of this size."""
    ordered, place = sets.by_sync_interval()
    padded = np.pad(np.arange(len(sets)), (0, -len(sets) % size), mode="edge")
    rows = [ordered.sync_interval[padded], ordered.learning_rate[padded], ordered.gain[padded]]
    return np.asarray(_batches(*(jnp.asarray(row.reshape(-1, size)) for row in rows))).ravel()[place]


def _flow(_, states, arguments):
    learning_rate, gain, behaviour = arguments
    m, x = states
    return -FADING * m + gain * (x - behaviour) + PUSH, learning_rate * jnp.tanh(m)


def _walk(sync_interval, learning_rate, gain):
    term, solver = diffrax.ODETerm(_flow), diffrax.Dopri5()
    controller = diffrax.PIDController(rtol=RTOL, atol=ATOL)

    def cycle(states, _):
        solution = diffrax.diffeqsolve(
            term,
            solver,
            0.0,
            sync_interval,
            None,
            states,
            (learning_rate, gain, states[1]),
            stepsize_controller=controller,
            adjoint=diffrax.ForwardMode(),
            max_steps=None,
            throw=False,
        )
        return (solution.ys[0][-1], solution.ys[1][-1]), None

    return jax.lax.scan(cycle, (jnp.zeros(()), jnp.zeros(())), None, length=NUM_SYNCS)[0][1]


@jax.jit
def _batches(sync_interval, learning_rate, gain):
    return jax.lax.map(lambda batch: jax.vmap(_walk)(*batch), (sync_interval, learning_rate, gain))

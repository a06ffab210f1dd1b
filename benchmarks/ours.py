"""This project's engine, every cycle walked: a compiled model on arrays, thirty-two sets in lockstep."""

from __future__ import annotations

from functools import cache

import numpy as np

from benchmarks.toy import NEVER, NUM_SYNCS, RTOL, Array, Sets, model
from meanfield.engine.cache import load
from meanfield.engine.compiled import compile_model
from meanfield.engine.members import LANES, Blocks, Members


def run(sets: Sets) -> Array:
    """Return x after the last sync, shape (n,)."""
    return walk(sets, NEVER, 0.0)[0]


def exits(sets: Sets, radius: float) -> Array:
    """Return eta*t where abs(x) = radius, inf where it is not reached; shape (n,)."""
    return walk(sets, radius, 0.0)[1]


@cache
def key() -> str:
    """Name of the compiled toy in the cache of models."""
    return compile_model(model()).key


def steps_per_cycle(sets: Sets) -> tuple[float, float]:
    """Return the accepted steps from sync to sync of a set by itself, and in blocks; means over the sets."""
    ordered, _ = sets.by_sync_interval()
    alone = [_num_steps(ordered[at : at + 1]) for at in range(len(sets))]
    blocks = [_num_steps(ordered[at : at + LANES]) for at in range(0, len(sets), LANES)]
    return float(np.mean(alone)), float(np.mean(blocks))


def walk(sets: Sets, radius: float, skip: float) -> tuple[Array, Array]:
    """Walk every set through its syncs or to its exit; returns x and eta*t there.

    The horizon is a number of syncs, so this calls the compiled module; `CompiledModel.exits` takes optimizer steps.
    """
    finals, clocks, _ = _walk(sets, radius, skip, np.empty((0, 4)))
    return finals[-1], clocks


def _num_steps(block: Sets) -> float:
    num_points = _walk(block, NEVER, 0.0, np.empty((1, 4)))[2]
    return (num_points - NUM_SYNCS) / NUM_SYNCS  # the start and one point after each sync but the last


def _walk(sets: Sets, radius: float, skip: float, path: Array) -> tuple[Array, Array, int]:
    """States and eta*t at the end, and the number of points of the path of the first set in the last block."""
    parameters = np.array([sets.gain, sets.learning_rate, np.full(len(sets), radius)])
    blocks = Blocks.of(Members(parameters, sets.sync_interval, sets.learning_rate))
    size = blocks.sync_interval.size
    clocks, codes, finals = np.empty(size), np.empty(size, dtype=np.int8), np.empty((3, size))
    numbers = (0, blocks.num_blocks, LANES, RTOL, skip)
    lengths, syncs = blocks.sync_interval * blocks.learning_rate, np.full(size, float(NUM_SYNCS))
    num_points = load(key()).exits(blocks.inputs, lengths, syncs, *numbers, clocks, codes, finals, 0, path)
    place = np.argsort(blocks.order)
    return finals[:, place], clocks[place], int(num_points)

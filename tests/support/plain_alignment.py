"""Slow twins of `validation.alignment` for one run: everything is kept, every pair is taken one by one."""

import math
from itertools import combinations

import numpy as np


def cosine(one, other):
    """Cosine of two vectors, NaN where one of them is zero."""
    if not (one.any() and other.any()):
        return math.nan
    return one @ other / math.sqrt((one @ one) * (other @ other))


def plain_alignment(gradients, sync_interval):
    """Cosines of all raw gradients of a run, shape (num_steps, num_parameters); a cycle that did not end has none."""
    gradients = np.asarray(gradients, np.float64)
    num_steps = len(gradients)
    out = {name: np.full(num_steps, math.nan) for name in ("gradient_cosine", "pair_cosine", "cycle_cosine")}
    for step in range(1, num_steps):
        out["gradient_cosine"][step] = cosine(gradients[step - 1], gradients[step])
    for stop in range(sync_interval, num_steps + 1, sync_interval):
        cycle = gradients[stop - sync_interval : stop]
        pairs = [cosine(*pair) for pair in combinations([gradient for gradient in cycle if gradient.any()], 2)]
        if pairs:
            out["pair_cosine"][stop - 1] = sum(pairs) / len(pairs)
        if stop > sync_interval:
            before = gradients[stop - 2 * sync_interval : stop - sync_interval]
            out["cycle_cosine"][stop - 1] = cosine(before.mean(axis=0), cycle.mean(axis=0))
    return out


def plain_displacement(weights, sync_interval):
    """Distances after every step, from the start and all later weights of a run, shape (num_steps + 1, ...)."""
    weights = np.asarray(weights, np.float64)
    steps = range(1, len(weights))
    last_sync = {step: (step - 1) // sync_interval * sync_interval for step in steps}
    return {
        "displacement_since_sync": [np.linalg.norm(weights[step] - weights[last_sync[step]]) for step in steps],
        "displacement_since_start": [np.linalg.norm(weights[step] - weights[0]) for step in steps],
    }

"""Share blocks out to threads: the compiled code holds no lock, and no block depends on another."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np

SHARES = 4
"""Pieces of work for each thread, so that one slow piece does not keep all waiting."""


def in_threads(walk: Callable[[int, int], None], num_blocks: int, num_threads: int | None) -> None:
    """Call walk(first, last) over pieces of range(num_blocks), in as many threads as there are cores if none is given.

    Parameters
    ----------
    walk : callable
    num_blocks : int
    num_threads : int, optional
    """
    threads = min(num_blocks, num_threads or len(os.sched_getaffinity(0)))
    if threads == 1:
        walk(0, num_blocks)
        return
    edges = np.linspace(0, num_blocks, SHARES * threads + 1).astype(int)
    with ThreadPoolExecutor(threads) as pool:
        for done in [pool.submit(walk, int(first), int(last)) for first, last in pairwise(edges)]:
            done.result()

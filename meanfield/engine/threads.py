"""Share blocks out to threads: the compiled code holds no lock, and no block depends on another."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np

from meanfield import arguments

PIECES = 64
"""Pieces of the work: no slow one keeps all waiting, and Ctrl-C comes through between two of them."""


def in_threads(walk: Callable[[int, int], None], num_blocks: int, num_threads: int | None) -> None:
    """Call walk(first, last) over pieces of range(num_blocks), in as many threads as there are cores if none is given.

    Parameters
    ----------
    walk : callable
    num_blocks : int
    num_threads : int, optional
    """
    if num_threads is not None:
        arguments.count("num_threads", num_threads, way_out="Leave it out for all cores.")
    threads = min(num_blocks, num_threads or len(os.sched_getaffinity(0)))
    pieces = list(pairwise(np.unique(np.linspace(0, num_blocks, PIECES + 1).astype(int)).tolist()))
    if threads == 1:
        for first, last in pieces:
            walk(first, last)
        return
    with ThreadPoolExecutor(threads) as pool:
        try:
            for done in [pool.submit(walk, first, last) for first, last in pieces]:
                done.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise

"""One worker process of a sweep: trains a shard at a time with one torch thread, and ends with its parent."""

import os
import signal
import threading
from multiprocessing import connection, parent_process
from pathlib import Path
from typing import Any

import safetensors.torch
import torch

from validation.learner import train
from validation.plan import Plan, Shard
from validation.store import START_FILE, stored_experiment, write_shard

_counter: Any = None
"""Run-steps done by all workers, in shared memory; set once in each worker process."""


def start_worker(counter: Any) -> None:
    """Set up the process: one torch thread, Ctrl-C left to the parent, an end together with the parent."""
    global _counter
    _counter = counter
    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    if parent is not None:
        threading.Thread(target=_exit_with, args=(parent.sentinel,), daemon=True).start()


def _exit_with(sentinel: int) -> None:
    connection.wait([sentinel])
    os._exit(1)


def run_shard(store: Path, shard: Shard) -> int:
    """Train the runs of one shard and write them; returns the shard's index."""
    experiment = stored_experiment(store)
    start = safetensors.torch.load_file(store / START_FILE)
    runs = Plan(experiment).runs_of(shard)

    def on_step() -> None:
        if _counter is not None:
            with _counter.get_lock():
                _counter.value += len(runs)

    write_shard(store, shard, train(experiment, start, runs, on_step=on_step))
    return shard.index

"""What a worker process of a sweep does: it trains a shard at a time with one torch thread."""

from pathlib import Path

import safetensors.torch
import torch

from meanfield.shards import Shard, add_done
from validation.learner import train
from validation.plan import Plan
from validation.store import START_FILE, stored_experiment, write_shard


def set_up() -> None:
    """Set up the process: one torch thread."""
    torch.set_num_threads(1)


def run_shard(store: Path, shard: Shard) -> int:
    """Train the runs of one shard and write them; returns the shard's index."""
    experiment = stored_experiment(store)
    start = safetensors.torch.load_file(store / START_FILE)
    runs = Plan(experiment).runs_of(shard)
    write_shard(store, shard, train(experiment, start, runs, on_step=lambda: add_done(len(runs))))
    return shard.index

"""Run a sweep: `python -m validation.run EXPERIMENT.toml --store SWEEP.zarr`. Resumes where it stopped."""

import os
import sys
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from meanfield.shards import Job, Shard, alone, finish, progress_bar, run_shards
from theory.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rich.console import Console
    from rich.progress import Progress

    from validation.config import Experiment

_GOES_ON = "Finished shards are kept; the same command goes on from there."


def prepare(experiment: "Experiment", store: Path) -> None:
    """Make the store and the starting policy, or check that the existing store belongs to this experiment."""
    from validation.store import check_store, create_store

    if store.exists():
        check_store(store, experiment)
        return
    import safetensors.torch
    import torch

    from validation.policy import expected_reward
    from validation.pretrain import pretrain
    from validation.setup import evaluation_prompts, policy_of, task_of

    torch.set_num_threads(1)
    task = task_of(experiment)
    start = pretrain(experiment)
    reward = expected_reward(policy_of(experiment), task, start, evaluation_prompts(experiment))
    create_store(
        store,
        experiment,
        reward_floor=task.reward_floor,
        initial_reward=float(reward),
        start=safetensors.torch.save(start),
    )


def run_sweep(experiment: "Experiment", store: Path, *, num_workers: int) -> None:
    """Train every shard that is not done, in parallel processes, with progress on a terminal.

    Parameters
    ----------
    experiment : Experiment
    store : Path
        Made if it is not there; otherwise resumed.
    num_workers : int
        Worker processes, each with one torch thread; results do not depend on it.

    Raises
    ------
    InputError
        If the store belongs to another experiment or other versions, is broken, cannot be made, or is in use.
    BrokenProcessPool
        If a worker died; finished shards are kept.
    """
    with alone(store, "--store"):
        prepare(experiment, store)
        _finish(experiment, store, num_workers)


def _finish(experiment: "Experiment", store: Path, num_workers: int) -> None:
    from validation.plan import Plan
    from validation.store import done_flags

    plan = Plan(experiment)
    size = f"{len(plan.runs)} runs"
    job = Job(experiment.name, size, store, plan.shards, done_flags(store), units_each=experiment.max_steps)
    finish(job, _progress, lambda todo, on_progress: _train(store, todo, num_workers, on_progress=on_progress))


def _progress(console: "Console") -> "Progress":
    return progress_bar(console, "training")


def _train(store: Path, shards: "Sequence[Shard]", num_workers: int, *, on_progress: "Callable[[int], None]") -> None:
    from validation.worker import run_shard, set_up

    run_shards(shards, partial(run_shard, store), num_workers=num_workers, set_up=set_up, on_progress=on_progress)


def main(
    experiment: Annotated[Path, typer.Argument(metavar="EXPERIMENT.toml", help="Experiment file.")],
    store: Annotated[Path, typer.Option(help="Zarr store to make or to resume.")],
    workers: Annotated[int, typer.Option(help="Worker processes.")] = os.cpu_count() or 1,
) -> None:
    """Train the sweep of an experiment file; a killed sweep goes on when the same command is given again."""
    from validation.config import load_experiment

    if workers < 1:
        raise InputError("--workers", "be an integer >= 1", workers, "Use the number of cores.")
    try:
        run_sweep(load_experiment(experiment), store, num_workers=workers)
    except KeyboardInterrupt:
        typer.echo(f"stopped. {_GOES_ON}", err=True)
        raise
    except BrokenProcessPool:
        typer.echo(f"a worker process died (killed, or out of memory). {_GOES_ON}", err=True)
        raise typer.Exit(1) from None


if __name__ == "__main__":
    from meanfield.command import run_command

    sys.exit(run_command(main))

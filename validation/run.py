"""Run a sweep: `python -m validation.run EXPERIMENT.toml --store SWEEP.zarr`. Resumes where it stopped."""

import os
import sys
import threading
import time
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from multiprocessing import connection, get_context, parent_process
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from meanfield.errors import InputError

if TYPE_CHECKING:
    from validation.config import Experiment
    from validation.plan import Shard

_POLL_SECONDS = 0.5
_counter: Any = None  # steps done by all workers, shared memory; set once in each worker process


def prepare(experiment: "Experiment", store: Path) -> None:
    """Make the store and the starting policy, or check that the existing store belongs to this experiment."""
    from validation.store import check_store, create_store

    if store.exists():
        check_store(store, experiment)
        return
    import safetensors.torch
    import torch

    from validation.policy import expected_reward, make_policy
    from validation.pretrain import evaluation_prompts, pretrain
    from validation.tasks import SortingTask

    torch.set_num_threads(1)
    task = SortingTask(experiment.task.num_symbols, experiment.task.length)
    start = pretrain(experiment)
    reward = expected_reward(make_policy(experiment.policy, task), task, start, evaluation_prompts(experiment))
    create_store(
        store,
        experiment,
        reward_floor=task.reward_floor,
        initial_reward=float(reward),
        start=safetensors.torch.save(start),
    )


def start_worker(counter: Any) -> None:
    """Set up one worker process: one torch thread, and an end together with its parent."""
    import torch

    global _counter
    _counter = counter
    torch.set_num_threads(1)
    parent = parent_process()
    if parent is not None:
        threading.Thread(target=_exit_with, args=(parent.sentinel,), daemon=True).start()


def _exit_with(sentinel: int) -> None:
    connection.wait([sentinel])
    os._exit(1)


def run_shard(store: Path, shard: "Shard") -> int:
    """Train the runs of one shard and write them; returns the shard's index. Runs in a worker process."""
    import safetensors.torch

    from validation.learner import train
    from validation.plan import Plan
    from validation.store import START_FILE, stored_experiment, write_shard

    experiment = stored_experiment(store)
    start = safetensors.torch.load_file(store / START_FILE)
    runs = Plan(experiment).runs_of(shard)

    def on_step() -> None:
        if _counter is not None:
            with _counter.get_lock():
                _counter.value += len(runs)

    write_shard(store, shard, train(experiment, start, runs, on_step=on_step))
    return shard.index


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
        If the store belongs to another experiment or other versions.
    BrokenProcessPool
        If a worker died; finished shards are kept.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    from validation.plan import Plan
    from validation.store import done_flags

    prepare(experiment, store)
    plan = Plan(experiment)
    flags = done_flags(store)
    todo = [shard for shard in plan.shards if not flags[shard.index]]
    console = Console(stderr=True)
    num_done = len(plan.shards) - len(todo)
    console.print(f"{experiment.name}: {len(plan.runs)} runs in {len(plan.shards)} shards, {num_done} done before")
    if not todo:
        return
    context = get_context("spawn")
    counter = context.Value("q", 0)
    columns = (
        TextColumn("training"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
    )
    began = time.monotonic()
    with (
        ProcessPoolExecutor(num_workers, mp_context=context, initializer=start_worker, initargs=(counter,)) as pool,
        Progress(
            *columns,
            TextColumn("left"),
            TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal,
        ) as bar,
    ):
        total = sum(shard.stop - shard.start for shard in todo) * experiment.max_steps
        task = bar.add_task("training", total=total)
        pending: set[Future[int]] = {pool.submit(run_shard, store, shard) for shard in todo}
        while pending:
            finished, pending = wait(pending, timeout=_POLL_SECONDS, return_when=FIRST_COMPLETED)
            bar.update(task, completed=counter.value)
            for future in finished:
                future.result()
    console.print(f"{experiment.name}: done in {time.monotonic() - began:.0f} s, stored in {store}")


def main(
    experiment: Annotated[Path, typer.Argument(metavar="EXPERIMENT.toml", help="Experiment file.")],
    store: Annotated[Path, typer.Option(help="Zarr store to make or to resume.")],
    workers: Annotated[int, typer.Option(help="Worker processes.")] = os.cpu_count() or 1,
) -> None:
    """Train the sweep of an experiment file; a killed sweep goes on when the same command is given again."""
    from validation.config import load_experiment

    if workers < 1:
        raise InputError("--workers", "be an integer >= 1", workers, "Use the number of cores.")
    run_sweep(load_experiment(experiment), store, num_workers=workers)


if __name__ == "__main__":
    from meanfield.command import run_command

    sys.exit(run_command(main))

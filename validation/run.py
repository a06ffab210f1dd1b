"""Run a sweep: `python -m validation.run EXPERIMENT.toml --store SWEEP.zarr`. Resumes where it stopped."""

import os
import signal
import sys
import time
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import active_children, get_context
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from theory.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rich.console import Console
    from rich.progress import Progress

    from validation.config import Experiment
    from validation.plan import Shard

_POLL_SECONDS = 0.5
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
    with _alone(store):
        prepare(experiment, store)
        _finish(experiment, store, num_workers)


@contextmanager
def _alone(store: Path) -> "Iterator[None]":
    """Hold a lock beside the store; the system releases it when the process ends, however it ends."""
    from filelock import FileLock, Timeout

    whole = store.resolve()
    lock = FileLock(whole.parent / f".{whole.name}.lock")
    try:
        whole.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=0)
    except Timeout:
        raise InputError(
            "--store", "be used by one process at a time", store, "Wait for the other one, or give another --store."
        ) from None
    except OSError as error:
        way_out = f"{type(error).__name__}: give a path in a folder that is there or can be made."
        raise InputError("--store", "be a path that can be written", store, way_out) from error
    try:
        yield
    finally:
        lock.release()


def _finish(experiment: "Experiment", store: Path, num_workers: int) -> None:
    from rich.console import Console

    from validation.plan import Plan
    from validation.store import done_flags

    plan = Plan(experiment)
    flags = done_flags(store)
    todo = [shard for shard in plan.shards if not flags[shard.index]]
    console = Console(stderr=True, highlight=False)
    before = f"{flags.sum()} of {len(plan.shards)} shards done before"
    console.print(f"{experiment.name}: {len(plan.runs)} runs, {before}", markup=False, soft_wrap=True)
    if not todo:
        return
    began = time.monotonic()
    total = len(plan.runs) * experiment.max_steps
    done_before = total - sum(shard.stop - shard.start for shard in todo) * experiment.max_steps
    with _progress(console) as bar:
        task = bar.add_task("training", total=total, completed=done_before)
        _train(store, todo, num_workers, on_progress=lambda done: bar.update(task, completed=done_before + done))
    spent = f"done in {time.monotonic() - began:.0f} s"
    console.print(f"{experiment.name}: {spent}, stored in {store}", markup=False, soft_wrap=True)


def _progress(console: "Console") -> "Progress":
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    percent = TextColumn("{task.percentage:>3.0f} %")
    columns = (TextColumn("training"), BarColumn(), percent, TimeElapsedColumn(), TextColumn("left"))
    return Progress(*columns, TimeRemainingColumn(), console=console, disable=not console.is_terminal)


def _train(store: Path, shards: "Sequence[Shard]", num_workers: int, *, on_progress: "Callable[[int], None]") -> None:
    """Run the shards in worker processes; on Ctrl-C or an error the workers are stopped at once."""
    from validation.worker import run_shard, start_worker

    context = get_context("spawn")
    counter = context.Value("q", 0)
    with ProcessPoolExecutor(num_workers, mp_context=context, initializer=start_worker, initargs=(counter,)) as pool:
        try:
            with _ctrl_c_held():  # a submit starts a process
                pending: set[Future[int]] = {pool.submit(run_shard, store, shard) for shard in shards}
            while pending:
                finished, pending = wait(pending, timeout=_POLL_SECONDS, return_when=FIRST_COMPLETED)
                on_progress(counter.value)
                for future in finished:
                    future.result()
        except BaseException:
            for child in active_children():
                child.terminate()
            raise


@contextmanager
def _ctrl_c_held() -> "Iterator[None]":
    """Hold Ctrl-C back until the end of the block: processes started inside inherit it blocked.

    It would break an interpreter that is still starting, before `start_worker` can ignore it.
    """
    came: list[int] = []
    handler = signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        signal.signal(signal.SIGINT, handler)
    if came:
        signal.raise_signal(signal.SIGINT)


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

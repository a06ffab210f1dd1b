"""Work cut into shards that goes on where it was killed: lock, folder made whole, done flags, worker processes.

A store is a Zarr group with one array of done flags; the flag of a shard is written last. What the shards hold is the
business of whoever uses this.
"""

from __future__ import annotations

import os
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import active_children, connection, get_context, parent_process
from pathlib import Path
from typing import TYPE_CHECKING, Any

from theory.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from rich.console import Console
    from rich.progress import Progress

_POLL_SECONDS = 0.5

_counter: Any = None
"""Units of work done by all workers, in shared memory; set once in each worker process."""


@dataclass(frozen=True)
class Shard:
    """A contiguous piece of a plan: members `start` to `stop` - 1."""

    index: int
    start: int
    stop: int


@dataclass(frozen=True, eq=False)
class Job:
    """What is to be done, and what is done already.

    Attributes
    ----------
    name : str
    size : str
        All of it in words, such as "24 runs".
    store : Path
    shards : sequence of Shard
    done : array, shape (num_shards,), bool
    units_each : int
        What one member of a shard counts for in the progress.
    """

    name: str
    size: str
    store: Path
    shards: Sequence[Shard]
    done: NDArray[np.bool_]
    units_each: int


@contextmanager
def alone(store: Path, argument: str) -> Iterator[None]:
    """Hold a lock beside the store; the system releases it when the process ends, however it ends.

    Parameters
    ----------
    store : Path
        Its folder is made if it is not there.
    argument : str
        What the user calls the store, for the errors.

    Raises
    ------
    InputError
        If another process holds the lock, or the folder cannot be written.
    """
    from filelock import FileLock, Timeout

    whole = store.resolve()
    lock = FileLock(whole.parent / f".{whole.name}.lock")
    try:
        whole.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=0)
    except Timeout:
        raise InputError(
            argument, "be used by one process at a time", store, f"Wait for the other one, or give another {argument}."
        ) from None
    except OSError as error:
        way_out = f"{type(error).__name__}: give a path in a folder that is there or can be made."
        raise InputError(argument, "be a path that can be written", store, way_out) from error
    try:
        yield
    finally:
        lock.release()


def make_whole(path: Path, fill: Callable[[Path], object]) -> None:
    """Let `fill` make a folder beside `path`, then rename it: it is there whole or not at all.

    The name of the folder beside is this process's own; what a dead process left under its own name does no harm.

    Parameters
    ----------
    path : Path
        Must not exist.
    fill : callable
        Makes the folder that it is given, or empties what is there.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        fill(beside)
        beside.rename(path)
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        raise


def require_versions(argument: str, made_with: Mapping[str, str], now: Mapping[str, str]) -> None:
    """Refuse to resume what other versions made.

    Raises
    ------
    InputError
        Names the first that differs, with both values.
    """
    for name, version in now.items():
        if made_with.get(name) != version:
            raise InputError(
                argument,
                f"be resumed with the versions that made it: {name} {made_with.get(name)}",
                version,
                "Install that version, or start a new store: mixed versions do not give equal bits.",
            )


def create_flags(group: Any, num_shards: int) -> None:
    """Create the done flags of a new store, none of them set."""
    group.create_array(
        "done", shape=(num_shards,), chunks=(1,), dtype="bool", fill_value=False, dimension_names=("shard",)
    )


def read_flags(group: Any, path: Path, num_shards: int) -> NDArray[np.bool_]:
    """Return which shards are done, shape (num_shards,), bool. Raises `InputError` if the store is broken."""
    import numpy as np

    array = read_array(group, path, "done", (num_shards,))
    with reading(path, "array done"):
        return np.array([array[index] for index in range(num_shards)], bool)


def open_store(path: Path, schema: str, *, make: str, maker: str) -> Any:
    """Open a store to read it.

    Parameters
    ----------
    path : Path
    schema : str
        What its attribute `schema` has to be.
    make, maker : str
        How to make such a store, and what makes it, for the errors.

    Returns
    -------
    zarr.Group

    Raises
    ------
    InputError
        If `path` is no such store.
    """
    import zarr

    try:
        group = zarr.open_group(path, mode="r")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError("STORE", "be a sweep store", str(path), f"Make one with {make}.") from error
    found = group.attrs.get("schema")
    if found != schema:
        raise InputError("STORE", f"have the schema {schema}", found, f"Give a store made by {maker}.")
    return group


def read_array(group: Any, path: Path, name: str, shape: tuple[int, ...]) -> Any:
    """Return an array of a store, unread. Raises `InputError` if it is missing or has another shape."""
    with reading(path, f"array {name}"):
        if name not in group:
            raise FileNotFoundError("it is missing")
        array = group[name]
        if array.shape != shape:
            raise ValueError(f"its shape is {array.shape}, not {shape}")
    return array


@contextmanager
def reading(path: Path, part: str) -> Iterator[None]:
    """Whatever goes wrong inside, each codec and file system in its own way, becomes one `InputError`."""
    try:
        yield
    except Exception as error:
        raise InputError(
            "STORE",
            f"be whole, but its {part} cannot be read ({type(error).__name__}: {error})",
            str(path),
            "Restore that from a copy, or delete the store and run the sweep again.",
        ) from error


def finish(
    job: Job,
    progress: Callable[[Console], Progress],
    run: Callable[[Sequence[Shard], Callable[[int], None]], None],
) -> None:
    """Run the shards that are not done, and say so on standard error; the progress goes from all that was done before.

    Parameters
    ----------
    job : Job
    progress : callable
        Makes the progress bar, as `progress_bar` does.
    run : callable
        Takes the shards to do, and what to call with the units done so far.
    """
    from rich.console import Console

    todo = [shard for shard in job.shards if not job.done[shard.index]]
    console = Console(stderr=True, highlight=False)
    before = f"{job.done.sum()} of {len(job.shards)} shards done before"
    console.print(f"{job.name}: {job.size}, {before}", markup=False, soft_wrap=True)
    if not todo:
        return
    began = time.monotonic()
    total = job.shards[-1].stop * job.units_each
    done_before = total - sum(shard.stop - shard.start for shard in todo) * job.units_each
    with progress(console) as bar:
        task = bar.add_task("shards", total=total, completed=done_before)
        run(todo, lambda done: bar.update(task, completed=done_before + done))
    spent = f"done in {time.monotonic() - began:.0f} s"
    console.print(f"{job.name}: {spent}, stored in {job.store}", markup=False, soft_wrap=True)


def progress_bar(console: Console, word: str) -> Progress:
    """Return a progress bar with the time left; it shows nothing where the console is no terminal."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    percent = TextColumn("{task.percentage:>3.0f} %")
    columns = (TextColumn(word), BarColumn(), percent, TimeElapsedColumn(), TextColumn("left"))
    return Progress(*columns, TimeRemainingColumn(), console=console, disable=not console.is_terminal)


def run_shards(
    shards: Sequence[Shard],
    work: Callable[[Shard], object],
    *,
    num_workers: int,
    set_up: Callable[[], object],
    on_progress: Callable[[int], None],
) -> None:
    """Run the shards in worker processes; on Ctrl-C or an error the workers are stopped at once.

    Parameters
    ----------
    shards : sequence of Shard
    work, set_up : callables that can be pickled
        Called in a worker for each shard, and once before the first.
    num_workers : int
    on_progress : callable
        Called now and then with the units that the workers have told `add_done`.

    Raises
    ------
    BrokenProcessPool
        If a worker died.
    """
    context = get_context("spawn")
    counter = context.Value("q", 0)
    with ProcessPoolExecutor(
        num_workers, mp_context=context, initializer=_start_worker, initargs=(counter, set_up)
    ) as pool:
        try:
            with ctrl_c_held():  # a submit starts a process
                pending: set[Future[object]] = {pool.submit(work, shard) for shard in shards}
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
def ctrl_c_held() -> Iterator[None]:
    """Hold Ctrl-C back until the end of the block: processes started inside inherit it blocked.

    It would break an interpreter that is still starting, before `_start_worker` can ignore it.
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


def add_done(units: int) -> None:
    """Tell the parent of this worker process that so many more units of work are done."""
    if _counter is not None:
        with _counter.get_lock():
            _counter.value += units


def _start_worker(counter: Any, set_up: Callable[[], object]) -> None:
    """Set up the process: Ctrl-C left to the parent, an end together with the parent, and what the work needs."""
    global _counter
    _counter = counter
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    if parent is not None:
        threading.Thread(target=_exit_with, args=(parent.sentinel,), daemon=True).start()
    set_up()


def _exit_with(sentinel: int) -> None:
    connection.wait([sentinel])
    os._exit(1)

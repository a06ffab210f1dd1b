"""The sweep command as a user runs it: in its own process, killed, resumed, with one and two workers."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import zarr
from rich.console import Console
from rich.progress import Progress

from validation import run
from validation.config import Experiment, load_experiment
from validation.store import START_FILE, done_flags, open_sweep

EXPERIMENT = """
name = "killed"
sync_interval = [1, 4, 8]
learning_rate = [1e-3, 2e-3, 4e-3, 8e-3]
seed = [0, 1]
max_steps = 150
num_eval_prompts = 16
[task]
num_symbols = 5
[policy]
hidden_size = 16
pretrain_reward = 0.3
[grpo]
num_prompts = 8
num_generations = 4
"""


def command(experiment: Path, store: Path, workers: int = 2) -> list[str]:
    module = [sys.executable, "-m", "validation.run"]
    return [*module, str(experiment), "--store", str(store), "--workers", str(workers)]


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("experiment") / "killed.toml"
    path.write_text(EXPERIMENT)
    return path


@pytest.fixture(scope="module")
def finished(experiment: Path) -> Path:
    path = experiment.parent / "whole.zarr"
    result = subprocess.run(command(experiment, path, workers=1), capture_output=True, text=True, check=True)
    assert "killed: 24 runs, 0 of 3 shards done before\n" in result.stderr
    assert result.stdout == ""
    return path


def same_bits(first: Path, second: Path) -> None:
    one, two = open_sweep(first), open_sweep(second)
    assert one.attrs == two.attrs
    for name in one.data_vars:
        np.testing.assert_array_equal(one[name].values, two[name].values, err_msg=str(name))
    assert one["drift"].notnull().all()


def alive(parent: int) -> Iterator[int]:
    """Process ids of the living, not yet reaped children of a process that may be gone itself."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (entry / "environ").exists():
            try:
                if f"DRIFTLAW_TEST_PARENT={parent}".encode() in (entry / "environ").read_bytes():
                    yield int(entry.name)
            except OSError:
                continue


def test_a_killed_sweep_resumes_with_equal_bits(experiment: Path, finished: Path, tmp_path: Path) -> None:
    """Killed after a random wait once the store is there, which frees its lock; the moment is printed if it fails."""
    store = tmp_path / "killed.zarr"
    mark = {**os.environ, "DRIFTLAW_TEST_PARENT": str(os.getpid())}
    process = subprocess.Popen(command(experiment, store), env=mark, stderr=subprocess.DEVNULL)
    while not store.exists():
        assert process.poll() is None
        time.sleep(0.01)
    wait = random.uniform(0.0, 4.0)
    print(f"killed {wait:.3f} s after the store was made")  # noqa: T201
    time.sleep(wait)
    process.send_signal(signal.SIGKILL)
    process.wait()
    deadline = time.monotonic() + 10
    while list(alive(os.getpid())):
        assert time.monotonic() < deadline, "workers outlive their parent"
        time.sleep(0.05)
    before = int(done_flags(store).sum())
    result = subprocess.run(command(experiment, store), capture_output=True, text=True, check=True)
    assert f"{before} of 3 shards done before" in result.stderr
    same_bits(finished, store)


def start_training(experiment: Path, store: Path) -> subprocess.Popen[str]:
    """A sweep in a process group of its own, once its workers are up."""
    mark = {**os.environ, "DRIFTLAW_TEST_PARENT": str(os.getpid())}
    process = subprocess.Popen(
        command(experiment, store), env=mark, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    while len(workers_of(process)) < 2:
        assert process.poll() is None
        time.sleep(0.05)
    return process


def workers_of(process: subprocess.Popen[str]) -> list[int]:
    def spawned(pid: int) -> bool:
        try:
            return b"spawn_main" in (Path("/proc") / str(pid) / "cmdline").read_bytes()
        except OSError:
            return False

    return [pid for pid in alive(os.getpid()) if pid != process.pid and spawned(pid)]


def test_a_sweep_that_cannot_go_on_says_so_in_one_line_and_stops_its_workers(experiment: Path, tmp_path: Path) -> None:
    process = start_training(experiment, tmp_path / "a.zarr")
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=20)
    assert process.returncode == 130
    assert said.splitlines()[1:] == ["stopped. Finished shards are kept; the same command goes on from there."]
    process = start_training(experiment, tmp_path / "b.zarr")
    os.kill(workers_of(process)[0], signal.SIGKILL)
    _, said = process.communicate(timeout=20)
    assert process.returncode == 1
    assert said.splitlines()[1].startswith("a worker process died (killed, or out of memory). Finished shards")
    assert len(said.splitlines()) == 2
    assert list(alive(os.getpid())) == []


def test_a_new_store_is_made_by_one_of_two_processes(experiment: Path, finished: Path, tmp_path: Path) -> None:
    store = tmp_path / "two.zarr"
    both = [subprocess.Popen(command(experiment, store), stderr=subprocess.PIPE, text=True) for _ in range(2)]
    said = [process.communicate(timeout=60)[1] for process in both]
    assert sorted(process.returncode for process in both) == [0, 2]
    refused = next(text for process, text in zip(both, said, strict=True) if process.returncode == 2)
    way_out = "Wait for the other one, or give another --store."
    assert refused == f"--store must be used by one process at a time, got {store}. {way_out}\n"
    same_bits(finished, store)
    assert {path.name for path in tmp_path.iterdir()} == {"two.zarr", ".two.zarr.lock"}


def test_progress_counts_the_whole_sweep(
    experiment: Path, finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = copy_unfinished(finished, tmp_path)
    bar = Progress(console=Console(quiet=True))
    shares = []

    def train(store: Path, shards: list[object], num_workers: int, *, on_progress: Callable[[int], None]) -> None:
        for done in (0, 8 * 75, 8 * 150):
            on_progress(done)
            shares.append(bar.tasks[0].percentage)

    monkeypatch.setattr(run, "_progress", lambda _: bar)
    monkeypatch.setattr(run, "_train", train)
    run.run_sweep(load_experiment(experiment), store, num_workers=1)
    assert shares == pytest.approx([200 / 3, 250 / 3, 100])


def test_the_shortest_sweep_of_one_run_works(small: Experiment, tmp_path: Path) -> None:
    shortest = replace(small, sync_interval=(64,), learning_rate=(1e-3,), seed=(0,), max_steps=1)
    run.run_sweep(shortest, tmp_path / "short.zarr", num_workers=3)
    sweep = open_sweep(tmp_path / "short.zarr")
    assert sweep["drift"].values.ravel() == pytest.approx([0.0], abs=1e-6)
    assert sweep["learner_reward"].isnull().all()


def test_a_finished_sweep_has_nothing_to_do(experiment: Path, finished: Path) -> None:
    result = subprocess.run(command(experiment, finished), capture_output=True, text=True, check=True)
    assert result.stderr == "killed: 24 runs, 3 of 3 shards done before\n"


def copy_unfinished(finished: Path, folder: Path) -> Path:
    """Make a copy of the sweep whose last shard is not done."""
    store = Path(shutil.copytree(finished, folder / "copy.zarr"))
    zarr.open_group(store, mode="r+")["done"][-1] = False
    return store


def command_says(arguments: list[str]) -> str:
    """Return the one line of a command that is refused."""
    result = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert result.returncode == 2, arguments
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1, result.stderr
    return result.stderr


def compare(store: Path, out: Path) -> list[str]:
    return [sys.executable, "-m", "validation.compare", str(store), "--out", str(out)]


def test_a_broken_store_is_one_line_and_exit_code_two(experiment: Path, finished: Path, tmp_path: Path) -> None:
    store = copy_unfinished(finished, tmp_path)
    (store / START_FILE).unlink()
    assert "STORE must be whole, but its starting weights" in command_says(command(experiment, store))
    (store / "drift/c/3/0").write_bytes(b"cut")
    for arguments in (command(experiment, store), compare(store, tmp_path / "out")):
        assert "STORE must be whole, but its drift of run 3 cannot be read" in command_says(arguments)
    assert not (tmp_path / "out").exists()


def test_bad_input_is_one_line_and_exit_code_two(experiment: Path, finished: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.toml"
    other.write_text(EXPERIMENT.replace("max_steps = 150", "max_steps = 151"))
    cases = [
        (command(other, finished), "its max_steps is 150, got 151"),
        (command(tmp_path / "missing.toml", tmp_path / "a.zarr"), "EXPERIMENT must be a readable TOML file"),
        (command(experiment, tmp_path / "a.zarr", workers=0), "--workers must be an integer >= 1, got 0"),
        (command(experiment, tmp_path / "a.zarr")[:-3], "--store"),
        ([*command(experiment, tmp_path / "a.zarr"), "--epochs", "3"], "--epochs"),
        (command(experiment, Path("/proc/x/y.zarr")), "--store must be a path that can be written, got /proc/x/y.zarr"),
        (command(experiment, other / "y.zarr"), "--store must be a path that can be written, got"),
        (command(experiment, other), "STORE must be a sweep store"),
        (compare(tmp_path / "none.zarr", other / "x"), "--out must be a folder that can be written, got"),
        (compare(finished, Path("/proc/x")), "--out must be a folder that can be written, got /proc/x. FileNotFound"),
    ]
    for arguments, message in cases:
        assert message in command_says(arguments)
    assert not (tmp_path / "a.zarr").exists()

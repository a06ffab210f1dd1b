"""The mechanics of work that survives being killed, with files in the place of real work."""

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import zarr
from rich.console import Console
from rich.progress import Progress

from meanfield import shards
from meanfield.shards import Job, Shard
from theory.errors import InputError

SHARDS = [Shard(index, 10 * index, 10 * index + 10) for index in range(6)]


def touch(folder: Path, shard: Shard) -> None:
    (folder / str(shard.index)).write_text(str(os.getpid()))
    shards.add_done(shard.stop - shard.start)


def wait_or_fail(folder: Path, shard: Shard) -> None:
    if shard.index == 0:
        raise ValueError("shard 0 cannot be done")
    touch(folder, shard)
    time.sleep(60)


def wait(folder: Path, shard: Shard) -> None:
    touch(folder, shard)
    time.sleep(60)


def mark(folder: Path) -> None:
    (folder / f"set up {os.getpid()}").touch()


def nothing() -> None:
    """What some work needs to be set up."""


def gone(pid: int) -> bool:
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().split(") ")[1].startswith("Z")
    except OSError:
        return True


def soon(holds: object, seconds: float = 10.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds():  # type: ignore[operator]
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_every_shard_is_done_once_in_workers_that_were_set_up(tmp_path: Path) -> None:
    told: list[int] = []
    shards.run_shards(
        SHARDS, partial(touch, tmp_path), num_workers=2, set_up=partial(mark, tmp_path), on_progress=told.append
    )
    workers = {int((tmp_path / str(shard.index)).read_text()) for shard in SHARDS}
    assert os.getpid() not in workers
    assert {f"set up {pid}" for pid in workers} <= {path.name for path in tmp_path.iterdir()}
    assert told == sorted(told)
    assert told[-1] == 60


def test_an_error_in_a_worker_stops_the_others_at_once(tmp_path: Path) -> None:
    began = time.monotonic()
    with pytest.raises(ValueError, match="shard 0 cannot be done"):
        shards.run_shards(
            SHARDS, partial(wait_or_fail, tmp_path), num_workers=2, set_up=nothing, on_progress=lambda _: None
        )
    assert time.monotonic() - began < 30


def test_a_killed_worker_breaks_the_pool(tmp_path: Path) -> None:
    def kill() -> None:
        soon(lambda: len(list(tmp_path.iterdir())) == 2 and all(path.read_text() for path in tmp_path.iterdir()))
        os.kill(int(next(tmp_path.iterdir()).read_text()), signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    with pytest.raises(BrokenProcessPool):
        shards.run_shards(SHARDS, partial(wait, tmp_path), num_workers=2, set_up=nothing, on_progress=lambda _: None)
    killer.join()
    assert len(list(tmp_path.iterdir())) == 2


PARENT = """
from functools import partial
from pathlib import Path
from tests.test_meanfield import test_shards as these

if __name__ == "__main__":
    these.shards.run_shards(
        these.SHARDS, partial(these.wait, Path({folder!r})), num_workers=2, set_up=these.nothing, on_progress=print
    )
"""


@pytest.mark.parametrize(("number", "ends_with"), [(signal.SIGKILL, -signal.SIGKILL), (signal.SIGINT, 1)])
def test_workers_end_with_their_parent(tmp_path: Path, number: signal.Signals, ends_with: int) -> None:
    script, folder = tmp_path / "parent.py", tmp_path / "work"
    folder.mkdir()
    script.write_text(PARENT.format(folder=str(folder)))
    process = subprocess.Popen(
        [sys.executable, str(script)],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    soon(lambda: len(list(folder.iterdir())) == 2 and all(path.read_text() for path in folder.iterdir()))
    workers = [int(path.read_text()) for path in folder.iterdir()]
    (os.kill if number == signal.SIGKILL else os.killpg)(process.pid, number)
    _, said = process.communicate(timeout=20)
    assert process.returncode in (ends_with, -signal.SIGINT), said
    assert number == signal.SIGKILL or said.rstrip().endswith("KeyboardInterrupt")
    soon(lambda: all(map(gone, workers)))


def test_ctrl_c_waits_while_processes_start_and_comes_then() -> None:
    asks = "import signal; print(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, []))"
    reached = False

    def start_while_interrupted() -> None:
        nonlocal reached
        with shards.ctrl_c_held():
            os.kill(os.getpid(), signal.SIGINT)
            child = subprocess.run([sys.executable, "-c", asks], capture_output=True, text=True, check=True)
            reached = child.stdout == "True\n"

    with pytest.raises(KeyboardInterrupt):
        start_while_interrupted()
    assert reached
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


def job(done: list[bool]) -> Job:
    return Job("tried", "60 things", Path("here.zarr"), SHARDS, np.array(done), units_each=5)


def test_only_what_is_not_done_is_run_and_progress_counts_all(capsys: pytest.CaptureFixture[str]) -> None:
    bar = Progress(console=Console(quiet=True))
    todo, shares = [], []

    def run(given: list[Shard], told: object) -> None:
        todo.extend(given)
        for units in (0, 100, 200):
            told(units)  # type: ignore[operator]
            shares.append(bar.tasks[0].percentage)

    shards.finish(job([True, False, True, False, False, False]), lambda _: bar, run)  # type: ignore[arg-type]
    assert [shard.index for shard in todo] == [1, 3, 4, 5]
    assert shares == pytest.approx([100 / 3, 200 / 3, 100])
    said = capsys.readouterr()
    assert said.out == ""
    lines = ["tried: 60 things, 2 of 6 shards done before", "tried: done in 0 s, stored in here.zarr"]
    assert said.err.splitlines() == lines


def test_no_bar_in_a_pipe_and_nothing_at_all_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    shards.finish(job([False] * 6), partial(shards.progress_bar, word="trying"), lambda _, told: told(300))
    assert "trying" not in capsys.readouterr().err

    def run(*_: object) -> None:
        raise AssertionError

    shards.finish(job([True] * 6), partial(shards.progress_bar, word="trying"), run)
    assert capsys.readouterr().err == "tried: 60 things, 6 of 6 shards done before\n"


def test_a_bar_on_a_terminal_shows_the_time_left() -> None:
    console = Console(force_terminal=True, width=100, record=True, file=open(os.devnull, "w"))  # noqa: PTH123, SIM115
    with console.file, shards.progress_bar(console, "trying") as bar:
        bar.update(bar.add_task("shards", total=100), completed=40)
    said = console.export_text()
    assert "trying" in said
    assert "40 %" in said
    assert "left" in said


def test_a_store_is_used_by_one_process_at_a_time(tmp_path: Path) -> None:
    store = tmp_path / "deep" / "a.zarr"
    tries = (
        "import sys; from pathlib import Path; from meanfield.shards import alone\n"
        "with alone(Path(sys.argv[1]), 'store'): pass"
    )
    command = [sys.executable, "-c", tries, str(store)]
    with shards.alone(store, "store"):
        refused = subprocess.run(command, capture_output=True, text=True, check=False)
        said = f"store must be used by one process at a time, got {store}. Wait for the other one, or give another sto"
        assert said in refused.stderr
        with shards.alone(tmp_path / "b.zarr", "store"):
            pass
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0


def test_a_store_where_nothing_can_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(InputError, match=r"--store must be a path that can be written, got .*file/a\.zarr\. .*: give"),
        shards.alone(tmp_path / "file" / "a.zarr", "--store"),
    ):
        pass


def test_a_folder_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    path, there = tmp_path / "deep" / "store", []

    def fill(beside: Path) -> None:
        beside.mkdir()
        (beside / "part").touch()
        there.append(path.exists())

    def fail(beside: Path) -> None:
        fill(beside)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        shards.make_whole(path, fail)
    assert list(path.parent.iterdir()) == []
    shards.make_whole(path, fill)
    assert there == [False, False]
    assert [item.name for item in path.iterdir()] == ["part"]
    assert list(path.parent.iterdir()) == [path]


def test_other_versions_are_refused_by_name() -> None:
    shards.require_versions("store", {"a": "1", "old": "2"}, {"a": "1"})
    with pytest.raises(InputError, match=r"store must be resumed with the versions that made it: b None, got 3\."):
        shards.require_versions("store", {"a": "1"}, {"a": "1", "b": "3"})


def test_flags_and_arrays_of_a_store_are_read_or_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.zarr"
    with pytest.raises(InputError, match=r"STORE must be a sweep store, got .*a\.zarr\. Make one with this\."):
        shards.open_store(path, "ours/1", make="this", maker="that")
    group = zarr.open_group(path, mode="w")
    shards.create_flags(group, 3)
    group["done"][1] = True
    with pytest.raises(InputError, match=r"STORE must have the schema ours/1, got None\. Give a store made by that\."):
        shards.open_store(path, "ours/1", make="this", maker="that")
    group.attrs["schema"] = "ours/1"
    found = shards.open_store(path, "ours/1", make="this", maker="that")
    assert shards.read_flags(found, path, 3).tolist() == [False, True, False]
    with pytest.raises(InputError, match=r"array done cannot be read \(ValueError: its shape is \(3,\), not \(4,\)\)"):
        shards.read_flags(found, path, 4)
    with pytest.raises(InputError, match=r"its array clock cannot be read \(FileNotFoundError: it is missing\)"):
        shards.read_array(found, path, "clock", (3,))
    (path / "done/c/1").write_bytes(b"cut")
    with pytest.raises(InputError, match="STORE must be whole, but its array done cannot be read"):
        shards.read_flags(found, path, 3)


def test_bad_input_crosses_from_a_worker_to_its_parent() -> None:
    error = InputError("horizon", "be an integer >= 1", 0, "Use 100.")
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again)) == (InputError, str(error))

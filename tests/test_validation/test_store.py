from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import zarr

from meanfield.errors import InputError
from validation import store
from validation.config import Experiment
from validation.plan import Plan


@pytest.fixture
def empty(tmp_path: Path, small: Experiment) -> Path:
    path = tmp_path / "deep" / "sweep.zarr"
    store.create_store(path, small, reward_floor=0.008, initial_reward=0.3, start=b"weights")
    return path


def traces_of(experiment: Experiment, first: int, stop: int) -> dict[str, np.ndarray]:
    """Values that tell run and step: 1000 * run + step."""
    runs, steps = np.arange(first, stop)[:, None], np.arange(1, experiment.max_steps + 1)
    values = np.asarray(1000 * runs + steps, np.float32)
    return {variable.name: values for variable in store.SWEEP.variables}


def test_a_new_store_is_whole_and_empty(empty: Path, small: Experiment) -> None:
    assert store.stored_experiment(empty) == small
    assert (empty / store.START_FILE).read_bytes() == b"weights"
    assert not store.done_flags(empty).any()
    assert list(empty.parent.iterdir()) == [empty]
    sweep = store.open_sweep(empty)
    assert sweep["learner_reward"].isnull().all()
    assert sweep.attrs["reward_floor"] == 0.008


def test_every_run_lands_in_its_own_cell(empty: Path, small: Experiment) -> None:
    plan = Plan(small)
    for shard in plan.shards:
        store.write_shard(empty, shard, traces_of(small, shard.start, shard.stop))
    assert store.done_flags(empty).all()
    sweep = store.open_sweep(empty)
    for index, run in enumerate(plan.runs):
        cell = sweep.sel(sync_interval=run.sync_interval, learning_rate=run.learning_rate, seed=run.seed)
        assert cell["drift"].values.tolist() == [1000 * index + step for step in range(1, 13)]


def test_a_shard_without_its_flag_is_not_there(empty: Path, small: Experiment) -> None:
    shard = Plan(small).shards[0]
    store.write_shard(empty, shard, traces_of(small, shard.start, shard.stop))
    zarr.open_group(empty, mode="r+")["done"][0] = False
    assert store.open_sweep(empty)["drift"].isnull().all()


def test_a_store_of_another_experiment_is_not_resumed(empty: Path, vary: Callable[..., Experiment]) -> None:
    store.check_store(empty, vary())
    with pytest.raises(InputError, match=r"its max_steps is 12, got 13\. Give another --store"):
        store.check_store(empty, vary(max_steps=13))


def test_a_store_of_other_versions_is_not_resumed(
    empty: Path, small: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    versions = {**store.current_versions(), "torch": "0.0"}
    monkeypatch.setattr(store, "current_versions", lambda: versions)
    with pytest.raises(InputError, match=r"versions that made it: torch .*, got 0\.0\. Install that version"):
        store.check_store(empty, small)


def test_what_is_no_sweep_store_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"STORE must be a sweep store, got .*nothing\.zarr\. Make one with"):
        store.open_sweep(tmp_path / "nothing.zarr")
    (tmp_path / "file").write_text("no store")
    with pytest.raises(InputError, match="STORE must be a sweep store"):
        store.open_sweep(tmp_path / "file")
    zarr.open_group(tmp_path / "other.zarr", mode="w")
    with pytest.raises(InputError, match=r"STORE must have the schema driftlaw\.sweep/1, got None"):
        store.open_sweep(tmp_path / "other.zarr")

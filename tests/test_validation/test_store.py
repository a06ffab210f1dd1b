import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch
import zarr

from theory.errors import InputError
from validation import store
from validation.config import Experiment
from validation.plan import Plan

START = safetensors.torch.save({"weight": torch.zeros(2, 3)})
GIVEN: dict[str, Any] = {"reward_floor": 0.008, "initial_reward": 0.3, "start": START}


@pytest.fixture
def empty(tmp_path: Path, small: Experiment) -> Path:
    path = tmp_path / "deep" / "sweep.zarr"
    store.create_store(path, small, **GIVEN)
    return path


@pytest.fixture
def whole(empty: Path, small: Experiment) -> Path:
    for shard in Plan(small).shards:
        store.write_shard(empty, shard, traces_of(small, shard.start, shard.stop))
    return empty


def traces_of(experiment: Experiment, first: int, stop: int) -> dict[str, np.ndarray]:
    """Values that tell run and step: 1000 * run + step."""
    runs, steps = np.arange(first, stop)[:, None], np.arange(1, experiment.max_steps + 1)
    values = np.asarray(1000 * runs + steps, np.float32)
    return {variable.name: values for variable in store.SWEEP.variables}


def test_a_new_store_is_whole_and_empty(empty: Path, small: Experiment) -> None:
    assert store.stored_experiment(empty) == small
    assert (empty / store.START_FILE).read_bytes() == START
    assert not store.done_flags(empty).any()
    assert list(empty.parent.iterdir()) == [empty]
    sweep = store.open_sweep(empty)
    assert sweep["learner_reward"].isnull().all()
    assert sweep.attrs["reward_floor"] == 0.008


def test_every_run_lands_in_its_own_cell(whole: Path, small: Experiment) -> None:
    assert store.done_flags(whole).all()
    sweep = store.open_sweep(whole)
    for index, run in enumerate(Plan(small).runs):
        cell = sweep.sel(sync_interval=run.sync_interval, learning_rate=run.learning_rate, seed=run.seed)
        assert cell["drift"].values.tolist() == [1000 * index + step for step in range(1, 13)]


def test_a_shard_without_its_flag_is_not_there(empty: Path, small: Experiment) -> None:
    shard = Plan(small).shards[0]
    store.write_shard(empty, shard, traces_of(small, shard.start, shard.stop))
    zarr.open_group(empty, mode="r+")["done"][0] = False
    assert store.open_sweep(empty)["drift"].isnull().all()


def test_a_write_that_fails_half_way_leaves_the_flag_unset(empty: Path, small: Experiment) -> None:
    shard = Plan(small).shards[0]
    traces = traces_of(small, shard.start, shard.stop)
    traces.pop("grad_norm")
    with pytest.raises(KeyError, match="grad_norm"):
        store.write_shard(empty, shard, traces)
    assert not store.done_flags(empty).any()


def test_a_store_that_cannot_be_made_leaves_nothing(tmp_path: Path, small: Experiment) -> None:
    with pytest.raises(TypeError, match="bytes-like"):
        store.create_store(tmp_path / "sweep.zarr", small, **{**GIVEN, "start": None})
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_at_the_path_while_the_store_is_being_made(
    tmp_path: Path, small: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "sweep.zarr"
    there = []
    create = store._create_arrays

    def create_and_look(group: zarr.Group, plan: Plan) -> None:
        create(group, plan)
        there.append(path.exists())

    monkeypatch.setattr(store, "_create_arrays", create_and_look)
    store.create_store(path, small, **GIVEN)
    assert there == [False]
    assert path.exists()


def test_what_a_dead_process_left_beside_does_no_harm(tmp_path: Path, small: Experiment) -> None:
    path = tmp_path / "sweep.zarr"
    for pid in (os.getpid(), 1):
        left = tmp_path / f".sweep.zarr.{pid}.new"
        store.create_store(left, small, **GIVEN)
        shutil.rmtree(left / "drift")
    store.create_store(path, small, **GIVEN)
    assert store.open_sweep(path)["drift"].isnull().all()


def test_what_a_run_may_never_evaluate_or_define_is_no_damage(empty: Path, small: Experiment) -> None:
    names = ("learner_reward", "clip_fraction", "gradient_cosine", "pair_cosine", "cycle_cosine")
    shard = Plan(small).shards[0]
    traces = traces_of(small, shard.start, shard.stop)
    for name in names:
        traces[name] = np.full_like(traces[name], np.nan)
    store.write_shard(empty, shard, traces)
    sweep = store.open_sweep(empty)
    assert all(sweep[name].isnull().all() for name in names)


@pytest.mark.parametrize("name", ["grad_norm", "effective_sample_size", "displacement_since_sync"])
def test_what_every_run_has_at_step_one_is_missed(whole: Path, small: Experiment, name: str) -> None:
    zarr.open_group(whole, mode="r+")[name][2, 0] = np.nan
    with pytest.raises(InputError, match=rf"its {name} of run 2 cannot be read \(ValueError: it has no finite"):
        store.open_sweep(whole)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:5])


def change_attributes(path: Path, **changes: object) -> None:
    """Replace attributes of the store; None removes one."""
    text = json.loads((path / "zarr.json").read_text())
    attributes = {**text["attributes"], **changes}
    text["attributes"] = {name: value for name, value in attributes.items() if value is not None}
    (path / "zarr.json").write_text(json.dumps(text))


def change_experiment(path: Path, **changes: object) -> None:
    stored = json.loads(store.stored_experiment(path).to_json())
    change_attributes(path, experiment=json.dumps({**stored, **changes}))


DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "cut chunk": (lambda path: cut(path / "drift/c/3/0"), "drift of run 3 cannot be read (RuntimeError: Zstd"),
    "no chunk": (lambda path: (path / "drift/c/3/0").unlink(), "drift of run 3 cannot be read"),
    "no reward": (lambda path: (path / "learner_reward/c/3/0").unlink(), "its learner_reward of run 3 cannot be read"),
    "no number": (
        lambda path: zarr.open_group(path, mode="r+")["entropy"].set_basic_selection((2, 0), np.nan),
        "its entropy of run 2 cannot be read (ValueError: it has no finite value at step 1)",
    ),
    "cut done": (lambda path: cut(path / "done/c/0"), "its array done cannot be read (RuntimeError: Zstd"),
    "no done": (lambda path: shutil.rmtree(path / "done"), "its array done cannot be read (FileNotFoundError: it is"),
    "no array": (lambda path: (path / "drift/zarr.json").unlink(), "its array drift cannot be read"),
    "cut array": (lambda path: cut(path / "drift/zarr.json"), "its array drift cannot be read"),
    "other shape": (
        lambda path: zarr.open_group(path, mode="r+")["drift"].resize((8, 11)),
        "its array drift cannot be read (ValueError: its shape is (8, 11), not (8, 12))",
    ),
    "unknown key": (
        lambda path: change_experiment(path, epochs=3),
        "its attribute experiment cannot be read (InputError: experiment key must be known, got 'epochs'",
    ),
    "no experiment": (lambda path: change_attributes(path, experiment=None), "its attribute experiment cannot be"),
    "no JSON": (lambda path: change_attributes(path, experiment="{"), "its attribute experiment cannot be read"),
    "no versions": (lambda path: change_attributes(path, versions=None), "cannot be read (KeyError: 'versions')"),
    "no floor": (lambda path: change_attributes(path, reward_floor=None), "cannot be read (KeyError: 'reward_floor')"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_broken_store_is_refused_by_both_commands(whole: Path, small: Experiment, damage: str) -> None:
    breaks, said = DAMAGE[damage]
    breaks(whole)
    for read in (store.open_sweep, lambda path: store.check_store(path, small)):
        with pytest.raises(InputError) as error:
            read(whole)
        assert said in str(error.value)
        assert str(error.value).startswith("STORE must be whole, but its ")
        assert f", got {whole}. Restore that from a copy, or delete the store and run the sweep" in str(error.value)


def test_starting_weights_must_be_there_while_a_shard_is_left(empty: Path, small: Experiment) -> None:
    start = empty / store.START_FILE
    cut(start)
    with pytest.raises(InputError, match=r"STORE must be whole, but its starting weights start\.safetensors cannot be"):
        store.check_store(empty, small)
    start.unlink()
    with pytest.raises(InputError, match=r"start\.safetensors cannot be read \(FileNotFoundError"):
        store.check_store(empty, small)
    shard = Plan(small).shards[0]
    store.write_shard(empty, shard, traces_of(small, shard.start, shard.stop))
    store.check_store(empty, small)


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


def test_what_is_no_sweep_store_is_refused(tmp_path: Path, empty: Path) -> None:
    with pytest.raises(InputError, match=r"STORE must be a sweep store, got .*nothing\.zarr\. Make one with"):
        store.open_sweep(tmp_path / "nothing.zarr")
    (tmp_path / "file").write_text("no store")
    with pytest.raises(InputError, match="STORE must be a sweep store"):
        store.open_sweep(tmp_path / "file")
    zarr.open_group(tmp_path / "other.zarr", mode="w")
    with pytest.raises(InputError, match=r"STORE must have the schema driftlaw\.sweep/2, got None"):
        store.open_sweep(tmp_path / "other.zarr")
    change_attributes(empty, schema="driftlaw.sweep/1")
    with pytest.raises(InputError, match=r"STORE must have the schema driftlaw\.sweep/2, got driftlaw\.sweep/1\."):
        store.open_sweep(empty)
    cut(empty / "zarr.json")
    with pytest.raises(InputError, match="STORE must be a sweep store"):
        store.open_sweep(empty)

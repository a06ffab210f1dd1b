"""Sweeps: exact exits, the order of members, and equal bits however the shards are run, killed and resumed."""

import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import sympy as sp
import xarray as xr

from meanfield import results
from meanfield.engine import sweep, sweep_store
from meanfield.engine.compiled import Adaptive, EulerMaruyama, compile_model
from meanfield.engine.diagram import phase_diagram
from meanfield.engine.members import LANES
from meanfield.engine.members import plan as block_plan
from meanfield.engine.sweep import SweepPlan, digest, open_sweep, plan_of
from meanfield.engine.values import grid_members
from meanfield.outcomes import Outcome
from meanfield.shards import Shard
from tests.support.big_sweep import big_plan, contents, fading_memory, start
from tests.support.engine_sweeps import make, noisy_plan, straight_line, straight_plan
from theory.errors import InputError
from theory.models.model import DriftModel

ROUNDING = 1e-12
"""An exit on a straight line: the bisection ends at rounding."""
NUM_RUNS, SHARD = 4000, 256
"""Runs and shard size of the small sweep of most tests; the last shard is not full."""


@pytest.fixture(scope="module")
def small() -> SweepPlan:
    return big_plan(NUM_RUNS, SHARD)


@pytest.fixture(scope="module")
def whole(small: SweepPlan, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(small, tmp_path_factory.mktemp("sweep") / "whole.zarr")


@pytest.fixture
def straight(tmp_path: Path) -> Path:
    return make(straight_plan(), tmp_path / "straight.zarr")


def assert_same_bits(one: xr.Dataset, two: xr.Dataset) -> None:
    assert list(one.data_vars) == list(two.data_vars)
    for name in one.data_vars:
        assert one[name].dims == two[name].dims
        assert one[name].values.tobytes() == two[name].values.tobytes(), name


def test_straight_lines_leave_at_their_distance_over_their_speed(straight: Path) -> None:
    found = open_sweep(straight)
    assert found["outcome"].dims == ("v", "sync_interval", "learning_rate")
    for v in found["v"].values:
        for rate in found["learning_rate"].values:
            cell = found.sel(v=v, learning_rate=rate)
            collapses = v > 0.0 and 0.7 / v <= 100 * rate
            code = Outcome.COLLAPSED.code if collapses else Outcome.STABLE.code
            assert cell["outcome"].values.tolist() == [code] * 3
            assert cell["exit"].values.tolist() == [0 if collapses else -1] * 3
            expected = 0.7 / v if collapses else np.nan
            np.testing.assert_allclose(cell["cumulative_learning_rate_at_exit"], expected, rtol=ROUNDING)
            steps = np.ceil(round(0.7 / v / rate, 6)) if collapses else np.nan
            np.testing.assert_array_equal(cell["collapse_step"], [steps] * 3)
    assert int((found["exit"] == 0).sum()) == 9


@pytest.mark.parametrize("names", [("sync_interval", "k_w", "rho"), ("k_w", "rho", "sync_interval"), ("k_w", "rho")])
def test_members_lie_in_the_order_of_the_blocks(small: SweepPlan, names: tuple[str, ...]) -> None:
    values = {**small.values, "learning_rate": 1e-3, "sync_interval": 4.0, "k_w": 8.0, "rho": 0.3}
    axes = {name: small.axes[name] for name in names}
    plan = SweepPlan(small.model, {name: values[name] for name in values if name not in axes}, axes, 100)
    everyone = grid_members(plan.model, plan.values, {name: np.array(axis) for name, axis in axes.items()})
    order = block_plan(everyone.sync_interval)
    size = plan.layout.size
    part = slice(size // 3, size - 1)
    members = plan.members(part.start, part.stop)
    np.testing.assert_array_equal(members.number, order[part])
    np.testing.assert_array_equal(members.parameters, everyone.parameters[:, order[part]])
    np.testing.assert_array_equal(members.sync_interval, everyone.sync_interval[order[part]])
    np.testing.assert_array_equal(members.learning_rate, everyone.learning_rate[order[part]])
    laid_out = plan.layout.laid_out(plan.layout.numbers(0, size))
    np.testing.assert_array_equal(laid_out, np.arange(size).reshape(plan.layout.shape))


def test_shards_cover_every_member_once_in_whole_blocks(small: SweepPlan) -> None:
    shards = small.layout.shards
    assert [shard.index for shard in shards] == list(range(16))
    assert [shard.start for shard in shards] == [0, *(shard.stop for shard in shards[:-1])]
    assert shards[-1].stop == small.layout.size == NUM_RUNS
    assert all(shard.start % LANES == 0 for shard in shards)
    assert len(straight_plan(shard_size=1024).layout.shards) == 1


def test_a_sweep_has_the_bits_of_the_phase_diagram(small: SweepPlan, whole: Path) -> None:
    diagram = phase_diagram(small.model, small.values, axes=small.axes, horizon=small.horizon)
    found = open_sweep(whole)
    assert_same_bits(found, diagram)
    assert {name: found.attrs[name] for name in diagram.attrs} == diagram.attrs
    assert 0.2 < float((found["exit"] == 0).mean()) < 0.8


@pytest.mark.parametrize("size", [LANES, 3 * LANES, 8192])
def test_neither_order_nor_size_of_the_shards_changes_a_bit(tmp_path: Path, size: int) -> None:
    def shuffled(shards: list[Shard]) -> list[Shard]:
        return random.Random(size).sample(shards, len(shards))

    plan = big_plan(1000, 512)
    expected = open_sweep(make(plan, tmp_path / "expected.zarr"))
    assert_same_bits(open_sweep(make(replace(plan, shard_size=size), tmp_path / "other.zarr", shuffled)), expected)


def test_a_member_depends_on_its_block_so_blocks_must_not_move(small: SweepPlan) -> None:
    """Without this the tests of equal bits could not fail."""
    compiled = compile_model(small.model)
    last = small.layout.size
    kept = compiled.exits(small.members(last - 320, last), horizon=small.horizon).clock[8:]
    moved = compiled.exits(small.members(last - 312, last), horizon=small.horizon).clock
    fired = np.isfinite(kept) & np.isfinite(moved)
    assert fired.sum() > 100
    assert (kept[fired] != moved[fired]).mean() > 0.25
    np.testing.assert_allclose(kept[fired], moved[fired], rtol=1e-3)


def test_noise_belongs_to_the_member_not_to_the_shard(tmp_path: Path) -> None:
    plan = noisy_plan()
    found = open_sweep(make(plan, tmp_path / "a.zarr", lambda shards: shards[::-1]))
    assert found["exit"].sizes == {"R": 2, "sync_interval": 2, "v": 3, "seed": 7}
    cells = grid_members(plan.model, plan.values, {name: np.array(axis) for name, axis in plan.axes.items()})
    members = sweep.Members(
        *(np.repeat(part, 7, axis=-1) for part in (cells.parameters, cells.sync_interval, cells.learning_rate))
    )
    clock = compile_model(plan.model).exits(members, horizon=60, method=plan.method).clock.reshape(2, 2, 3, 7)
    expected = np.where(np.isfinite(clock), clock, np.nan)
    np.testing.assert_array_equal(found["cumulative_learning_rate_at_exit"], expected)
    assert np.unique(expected[0, 0, 1]).size > 1
    other = open_sweep(make(noisy_plan(method=EulerMaruyama(seed=6)), tmp_path / "b.zarr"))
    assert not np.array_equal(found["collapse_step"], other["collapse_step"], equal_nan=True)


def test_a_sweep_can_be_saved_and_loaded(tmp_path: Path) -> None:
    for name, plan in (("straight", straight_plan()), ("noisy", noisy_plan())):
        found = open_sweep(make(plan, tmp_path / f"{name}.zarr"))
        assert results.load(results.save(found, tmp_path / f"{name}.nc")).identical(found)


def test_a_sweep_of_one_run_works(tmp_path: Path) -> None:
    values = {"R": 0.7, "v": 1.0, "sync_interval": 4.0, "learning_rate": 1e-2}
    found = open_sweep(make(SweepPlan(straight_line(), values, {}, 100), tmp_path / "one.zarr"))
    assert found["collapse_step"].dims == ()
    assert found["collapse_step"].item() == 70.0


def test_what_is_not_done_is_unknown(tmp_path: Path) -> None:
    plan = straight_plan()
    path = make(plan, tmp_path / "a.zarr", lambda shards: shards[1:])
    found = open_sweep(path)
    assert sweep_store.done_flags(path).tolist() == [False, True]
    unknown = found["outcome"] == Outcome.UNKNOWN.code
    assert int(unknown.sum()) == LANES
    assert bool(unknown.sel(sync_interval=[4.0, 16.0]).stack(cell=[...]).sum() == LANES)
    for name, value in {"exit": -1, "simulated": 0}.items():
        assert (found[name].values[unknown] == value).all()
    for name in ("collapse_step", "cumulative_learning_rate_at_exit"):
        assert np.isnan(found[name].values[unknown]).all()
    assert (found["simulated"].values[~unknown.values] == 1).all()


def test_a_write_that_fails_half_way_leaves_the_flag_unset(tmp_path: Path) -> None:
    plan = straight_plan()
    path = make(plan, tmp_path / "a.zarr", lambda shards: shards[:0])
    exits = sweep._walk(plan, plan.layout.shards[0])
    with pytest.raises(ValueError, match="shape"):
        sweep_store.write_shard(path, plan.layout.shards[0], replace(exits, code=exits.code[:3]))
    assert not sweep_store.done_flags(path).any()


def test_a_plan_survives_json_and_needs_its_model(straight: Path) -> None:
    for plan in (straight_plan(), noisy_plan(), big_plan(1000), straight_plan(method=Adaptive(1e-9, every_cycle=True))):
        assert SweepPlan.from_json(plan.to_json(), plan.model) == plan
    assert plan_of(straight, straight_line()) == straight_plan()
    other = replace(straight_line(), flow=(2 * sp.Symbol("v", real=True),))
    with pytest.raises(InputError, match=r"model must be the one of the plan, got straight line\. Pass the model that"):
        plan_of(straight, other)


def altered(model: DriftModel) -> dict[str, DriftModel]:
    x, extra = model.states[0], sp.Symbol("extra", real=True)
    return {
        "name": replace(model, name="other"),
        "states": replace(model, states=(extra,), exits=(), sync=(extra,)),
        "parameters": replace(model, parameters=(*model.parameters, extra)),
        "order": replace(model, parameters=model.parameters[::-1]),
        "flow": replace(model, flow=(model.flow[0] * (1 + sp.Float(1e-15)),)),
        "sync": replace(model, sync=(x / 2,)),
        "start": replace(model, start=(sp.Rational(1, 10**9),)),
        "limit": replace(model, exits=(replace(model.exits[0], limit=sp.Integer(1)),)),
        "no exit": replace(model, exits=()),
        "noise": replace(model, noise=(sp.Integer(1),)),
        "solution": replace(model, solution=(x,)),
        "claims": replace(model, claims=("C30",)),
        "signals": replace(model, signals=(model.parameters[0],)),
    }


def test_a_digest_changes_with_every_part_of_a_model_and_with_nothing_else() -> None:
    found = {name: digest(model) for name, model in altered(straight_line()).items()}
    assert len({*found.values(), digest(straight_line())}) == len(found) + 1
    code = "from tests.support.big_sweep import *; from meanfield.engine.sweep import digest; "
    code += "print(digest(fading_memory()))"
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert said.stdout.strip() == digest(fading_memory())


def test_a_sweep_killed_at_any_moment_ends_with_the_same_files(whole: Path, tmp_path: Path) -> None:
    """Killed after a random wait once the store is there; the moment is printed if it fails."""
    store = tmp_path / "killed.zarr"
    process = start(store, NUM_RUNS, SHARD, 2)
    while not store.exists():
        assert process.poll() is None
        time.sleep(0.01)
    wait = random.uniform(0.0, 2.5)
    print(f"killed {wait:.3f} s after the store was made")  # noqa: T201
    time.sleep(wait)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    done = int(sweep_store.done_flags(store).sum())
    unknown = open_sweep(store)["outcome"] == Outcome.UNKNOWN.code
    assert int((~unknown).sum()) == min(done * SHARD, NUM_RUNS) or sweep_store.done_flags(store)[-1]
    (store / "clock" / "left.partial").touch()
    _, said = start(store, NUM_RUNS, SHARD, 2).communicate()
    assert said.splitlines()[0] == f"fading memory: {NUM_RUNS} runs, {done} of 16 shards done before"
    assert contents(store) == contents(whole)


def test_a_killed_worker_ends_the_sweep_and_finished_shards_are_kept(
    small: SweepPlan, whole: Path, tmp_path: Path
) -> None:
    store = make(small, tmp_path / "worker.zarr", lambda shards: shards[5:8])
    process = start(store, NUM_RUNS, SHARD, 1)
    workers: list[int] = []
    while not workers:
        assert process.poll() is None
        time.sleep(0.01)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        workers = [int(pid) for pid in children if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    os.kill(workers[0], signal.SIGKILL)
    _, said = process.communicate(timeout=20)
    assert process.returncode == 1
    assert "BrokenProcessPool" in said
    assert sweep_store.done_flags(store)[5:8].all()
    process = start(store, NUM_RUNS, SHARD, 1)
    process.communicate()
    assert process.returncode == 0
    assert contents(store) == contents(whole)


def test_a_store_is_swept_by_one_of_two_processes(whole: Path, tmp_path: Path) -> None:
    store = tmp_path / "two.zarr"
    both = [start(store, NUM_RUNS, SHARD, 2) for _ in range(2)]
    said = [process.communicate()[1] for process in both]
    assert sorted(process.returncode for process in both) == [0, 1]
    swept, refused = (said[[process.returncode for process in both].index(code)] for code in (0, 1))
    assert f"store must be used by one process at a time, got {store}. Wait for the other one, or give" in refused
    first, last = swept.splitlines()
    assert first == f"fading memory: {NUM_RUNS} runs, 0 of 16 shards done before"
    assert last.startswith("fading memory: done in ")
    assert contents(store) == contents(whole)

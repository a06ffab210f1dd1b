"""Sweeps that are refused: bad plans, stores of other plans or versions, broken stores."""

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sympy as sp
import zarr

from meanfield.engine import sweep_store
from meanfield.engine.compiled import Adaptive, EulerMaruyama
from meanfield.engine.sweep import open_sweep, run_sweep
from meanfield.engine.values import RUN
from tests.support.big_sweep import contents
from tests.support.engine_sweeps import make, noisy_plan, straight_line, straight_plan
from theory.errors import InputError


@pytest.fixture
def straight(tmp_path: Path) -> Path:
    return make(straight_plan(), tmp_path / "straight.zarr")


BAD: dict[str, tuple[Mapping[str, Any], str]] = {
    "unknown name": ({"values": {"R": 1.0, "k": 1.0}}, "values must name parameters of the model, got 'k'"),
    "no value": ({"values": {}}, "values must give every parameter, got none for R"),
    "twice": ({"values": {"R": 1.0, "v": 1.0}}, "axes must hold no name that has a value, got 'v'"),
    "unsorted": ({"axes": {**straight_plan().axes, "v": (2.0, 1.0)}}, "axes: v must be a strictly increasing list"),
    "no number": ({"values": {"R": np.nan}}, "straight line: R must be finite and >= 0, got nan"),
    "below zero": ({"values": {"R": -1.0}}, "straight line: R must be finite and >= 0, got -1"),
    "not finite": ({"axes": {**straight_plan().axes, "v": (1.0, np.inf)}}, "straight line: v must be a finite number"),
    "part of a step": (
        {"axes": {**straight_plan().axes, "sync_interval": (1, 2.5, 4)}},
        "sync_interval must be an integer >= 1, or inf, got 2.5 in 1 of 3 members",
    ),
    "no rate": ({"axes": {**straight_plan().axes, "learning_rate": (0.0, 1.0)}}, "learning_rate must be positive"),
    "horizon": ({"horizon": 0}, "horizon must be an integer >= 1, got 0"),
    "members": ({"num_members": 2}, "num_members must be 1 for a model without noise, got 2"),
    "no members": ({"num_members": 0}, "num_members must be an integer >= 1, got 0"),
    "shard": ({"shard_size": 40}, "shard_size must be whole blocks of 32, got 40. Use 16384."),
}


@pytest.mark.parametrize("bad", BAD)
def test_a_bad_plan_is_refused_when_it_is_made(bad: str) -> None:
    changes, said = BAD[bad]
    with pytest.raises(InputError) as error:
        straight_plan(**changes)
    assert said in str(error.value)


def test_bad_arguments_are_refused_before_anything_is_made(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"num_workers must be an integer >= 1, got 0\."):
        run_sweep(straight_plan(), tmp_path / "a.zarr", num_workers=0)
    with pytest.raises(InputError, match="method must fit straight line, got EulerMaruyama"):
        run_sweep(straight_plan(method=EulerMaruyama()), tmp_path / "a.zarr", num_workers=1)
    assert list(tmp_path.iterdir()) == []
    model = replace(straight_line(1.0), parameters=(*straight_line().parameters, sp.Symbol("seed", real=True)))
    with pytest.raises(InputError, match="axes must leave the name seed to the members of a cell"):
        noisy_plan(model=model, axes={**noisy_plan().axes, "seed": (1.0, 2.0)})


OTHER_PLANS: dict[str, tuple[Mapping[str, Any], str]] = {
    "model": ({"model": replace(straight_line(), name="other")}, "its model is "),
    "horizon": ({"horizon": 101}, "its horizon is 100, got 101. Give another store, or the plan that made this one."),
    "values": ({"values": {"R": 0.8}}, "its values R is 0.7, got 0.8"),
    "axis": (
        {"axes": {**straight_plan().axes, "v": (0.5, 1.0)}},
        "its axes v is [-1.0, 0.5, 1.0, 2.0], got [0.5, 1.0]",
    ),
    "method": ({"method": Adaptive(1e-7)}, "its method tolerance is 1e-06, got 1e-07"),
    "shards": ({"shard_size": 64}, "its shard_size is 32, got 64"),
    "no axis": (
        {"values": {"R": 0.7, "v": 1.0}, "axes": {name: straight_plan().axes[name] for name in RUN}},
        "its values v is None, got 1.0",
    ),
}


@pytest.mark.parametrize("other", OTHER_PLANS)
def test_a_store_of_another_plan_is_not_resumed(straight: Path, other: str) -> None:
    changes, said = OTHER_PLANS[other]
    before = contents(straight)
    with pytest.raises(InputError) as error:
        run_sweep(straight_plan(**changes), straight, num_workers=1)
    assert str(error.value).startswith("store must hold the same plan: ")
    assert said in str(error.value)
    assert contents(straight) == before


@pytest.mark.parametrize("name", ["numba", "processor", "compiled model"])
def test_a_store_of_other_versions_is_not_resumed(straight: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    now = sweep_store.versions
    monkeypatch.setattr(sweep_store, "versions", lambda key: {**now(key), name: "0.0"})
    with pytest.raises(InputError, match=rf"versions that made it: {name} .*, got 0\.0\. Install that version"):
        run_sweep(straight_plan(), straight, num_workers=1)


def flip(path: Path) -> None:
    """Alter one bit in the middle of a file."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def write(path: Path, name: str, value: float) -> None:
    zarr.open_group(path, mode="r+")[name][20] = value


def change_attribute(path: Path, name: str, value: object) -> None:
    text = json.loads((path / "zarr.json").read_text())
    text["attributes"][name] = value
    (path / "zarr.json").write_text(json.dumps(text))


DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "cut chunk": (lambda path: (path / "clock/c/1").write_bytes(b"cut"), "its shard 1 cannot be read (RuntimeError:"),
    "one bit": (lambda path: flip(path / "clock/c/1"), "its shard 1 cannot be read ("),
    "no chunk": (lambda path: (path / "code/c/1").unlink(), "its shard 1 cannot be read (ValueError: it has no code"),
    "no clock": (lambda path: (path / "clock/c/1").unlink(), "(ValueError: its clocks do not fit its codes)"),
    "no such exit": (lambda path: write(path, "code", 1), "(ValueError: it has no code, or one that no member"),
    "a wrong clock": (lambda path: write(path, "clock", np.nan), "its shard 0 cannot be read (ValueError: its clocks"),
    "cut done": (lambda path: (path / "done/c/0").write_bytes(b"cut"), "its array done cannot be read"),
    "no done": (lambda path: shutil.rmtree(path / "done"), "its array done cannot be read (FileNotFoundError"),
    "no array": (
        lambda path: shutil.rmtree(path / "clock"),
        "its array clock cannot be read (FileNotFoundError: it is",
    ),
    "no plan": (lambda path: change_attribute(path, "plan", "{"), "its attribute plan cannot be read (JSONDecodeError"),
    "no attributes": (lambda path: change_attribute(path, "attributes", {}), "cannot be read (KeyError"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_broken_store_is_refused_by_all_who_read_it(straight: Path, damage: str) -> None:
    breaks, said = DAMAGE[damage]
    breaks(straight)
    for read in (open_sweep, lambda path: run_sweep(straight_plan(), path, num_workers=1)):
        with pytest.raises(InputError) as error:
            read(straight)
        assert said in str(error.value)
        assert str(error.value).startswith("STORE must be whole, but its ")


def test_what_is_no_sweep_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"STORE must be a sweep store, got .*none\.zarr\. Make one with meanfield"):
        open_sweep(tmp_path / "none.zarr")
    zarr.open_group(tmp_path / "other.zarr", mode="w").attrs["schema"] = "driftlaw.sweep/2"
    with pytest.raises(InputError, match=r"have the schema driftlaw\.model_sweep/1, got driftlaw\.sweep/2"):
        open_sweep(tmp_path / "other.zarr")

"""Blocks of members, and members that blow up, exit at once, never sync, or cannot be."""

import dataclasses
import math

import numpy as np
import pytest

from meanfield import kernels
from meanfield.engine.compiled import Adaptive, CompiledModel, EulerMaruyama, compile_model
from meanfield.engine.members import LANES, Members, plan
from meanfield.hybrid import FAILED, STAYED
from tests.support.models import (
    LIMITS,
    VALUES,
    burst,
    members,
    ornstein,
)
from theory.errors import InputError
from theory.models.builders import persistent_drift, two_constraint
from theory.symbols import P

EVERY = Adaptive(1e-12, every_cycle=True)


def test_blocks_are_sorted_by_sync_interval_then_index():
    assert plan(np.array([8.0, 2.0, 8.0, 1.0, 2.0])).tolist() == [3, 1, 4, 0, 2]


def test_whole_blocks_alone_give_the_same_bits():
    model = dataclasses.replace(persistent_drift(), solution=())
    rng = np.random.default_rng(0)
    intervals = rng.integers(1, 64, 5 * LANES).astype(float)
    runs = members(model, intervals, rng.uniform(1e-3, 3e-2, 5 * LANES), **VALUES, **LIMITS)
    order, compiled = plan(runs.sync_interval), compile_model(model)
    together = compiled.exits(runs, horizon=300)
    for first in (0, 2 * LANES):
        part = order[first : first + 2 * LANES]
        some = Members(runs.parameters[:, part], runs.sync_interval[part], runs.learning_rate[part])
        alone = compiled.exits(some, horizon=300)
        assert np.array_equal(alone.clock, together.clock[part])
        assert np.array_equal(alone.states, together.states[:, part])
    for threads in (1, 2, 3):
        again = compiled.exits(runs, horizon=300, num_threads=threads)
        assert np.array_equal(again.states, together.states)


def test_a_cycle_is_the_exact_map_for_any_number_of_cells():
    model = dataclasses.replace(persistent_drift(), solution=())
    compiled: CompiledModel = compile_model(model)
    for n in (1, 16, 37):
        rng = np.random.default_rng(n)
        states = np.vstack([np.zeros(n), rng.uniform(0.01, 1.0, n), rng.uniform(0.0, 1.0, n)])
        runs = members(model, np.ones(n), np.ones(n), **VALUES, **LIMITS)
        products = rng.uniform(0.01, 0.3, n)
        found = compiled.cycle(states, runs.parameters, products, tolerance=1e-11)
        drive = np.arcsinh(np.sinh(0.02 + states[1]) * np.exp(8.0 * products))
        drift = (drive - 0.02 - states[1]) / 8.0
        wanted = np.vstack([np.zeros(n), 0.3 * states[1] + 20.0 * drift, states[2] + drift])
        assert np.allclose(found, wanted, rtol=1e-10)


# ---- odd members ----


def test_a_model_that_blows_up_fails_unless_an_exit_comes_first():
    """x = a/(1 - a*tau) is infinite at tau = 1/a."""
    near = members(burst(), 1000.0, 1e-3, a=2.0, R=1e6)
    found = compile_model(burst()).exits(near, horizon=2000, method=Adaptive(1e-10))
    assert found.code.tolist() == [0]
    assert found.clock[0] == pytest.approx(0.5 - 1e-6, rel=1e-9)
    beside = members(burst(), 1000.0, 1e-3, a=np.array([2.0, 0.1]), R=1e301)
    both = compile_model(burst()).exits(beside, horizon=2000)
    assert both.code.tolist() == [FAILED, STAYED]  # the other lane of the block goes on
    assert both.states[0, 1] == pytest.approx(0.1 / (1.0 - 0.2), rel=1e-5)


def test_what_blows_up_after_the_horizon_has_stayed():
    """x = a/(1 - a*tau) with a = 1/170: the last cycle goes on to 200, the run ends at 150."""
    found = compile_model(burst()).exits(members(burst(), 100.0, 1.0, a=1.0 / 170.0, R=1e301), horizon=150)
    assert found.code.tolist() == [STAYED]


def test_the_closed_solution_holds_at_the_ends_of_its_parameters():
    """Without feedback inside the cycle, and with so much that sinh overflows: as the closed map of the kernels."""
    for changes in ({"k_w": 0.0}, {"sigma": 1e-8}, {"k_w": 1e6}):
        of = {**VALUES, **LIMITS, **changes}
        found = compile_model(persistent_drift()).exits(members(persistent_drift(), 16.0, 3e-3, **of), horizon=2000)
        row = [of[name] / of["sigma"] for name in ("k_w", "k_s")] + [of["rho"]]
        row += [of[name] / of["sigma"] for name in ("h", "m0")] + [of["R_crit"], of["R_batch"]]
        clocks, codes = np.empty((1, 1)), np.empty((1, 1), dtype=np.int8)
        kernels.persistent_exits(np.array([0.048]), np.array([125]), np.array([row]), clocks, codes)
        assert found.clock[0] == pytest.approx(clocks[0, 0], rel=1e-9)
        assert found.code[0] == codes[0, 0] - 1


def test_an_exit_satisfied_at_the_start_fires_at_once():
    found = compile_model(burst()).exits(members(burst(), 8.0, 1e-3, a=2.0, R=2.0), horizon=100)
    assert (found.clock.tolist(), found.code.tolist()) == ([0.0], [0])
    path = compile_model(burst()).replay(members(burst(), 8.0, 1e-3, a=2.0, R=2.0), 0, horizon=100)
    assert (path.collapse_step, path.exit) == (1.0, "region")


def test_a_sync_interval_above_the_horizon_is_one_open_cycle():
    values = {"G_upd": 1.0, "R_batch": 0.05, "R_crit": 1.5}
    runs = members(two_constraint(), np.array([100.0, 101.0, 5000.0, math.inf]), 1e-3, **values)
    found = compile_model(two_constraint()).exits(runs, horizon=100)
    assert found.code.tolist() == [0, STAYED, STAYED, STAYED]  # the batch is looked at only where a cycle ends
    longer = compile_model(two_constraint()).exits(runs, horizon=3000)
    assert longer.code.tolist() == [0, 0, 1, 1]
    assert longer.clock[2:] == pytest.approx([1.5, 1.5], rel=1e-12)


BASE = {"a": 1.0, "R": 5.0}


@pytest.mark.parametrize(
    ("S", "eta", "values", "words"),
    [
        (8.0, 0.0, BASE, "learning_rate must be positive and finite, got 0 in 1 of 1 members.*eta = 0"),
        (8.0, math.nan, BASE, "learning_rate must be positive"),
        (8.5, 0.1, BASE, "sync_interval must be an integer >= 1, or inf, got 8.5"),
        (0.0, 0.1, BASE, "sync_interval must be an integer"),
        (
            8.0,
            0.1,
            {"a": np.array([1.0, math.nan, 2.0]), "R": 5.0},
            "burst: a must be finite and >= 0, got nan in 1 of 3",
        ),
        (8.0, 0.1, {"a": -1.0, "R": 5.0}, "burst: a must be finite and >= 0, got -1"),
        (8.0, 0.1, {"a": 1.0, "R": math.inf}, "burst: R must be finite"),
    ],
)
def test_members_that_cannot_be_are_refused_and_counted(S, eta, values, words):
    with pytest.raises(InputError, match=words):
        compile_model(burst()).exits(members(burst(), S, eta, **values), horizon=100)


def test_other_arguments_are_refused_before_any_work():
    compiled, runs = compile_model(burst()), members(burst(), 8.0, 0.1, **BASE)
    with pytest.raises(InputError, match="horizon must be an integer >= 1, got 0"):
        compiled.exits(runs, horizon=0)
    with pytest.raises(InputError, match="tolerance must be between 1e-13 and 1e-2, got 0"):
        Adaptive(0.0)
    with pytest.raises(InputError, match="member must be a place among 1 members, got 1"):
        compiled.replay(runs, 1, horizon=10)
    with pytest.raises(InputError, match="method must fit burst, got EulerMaruyama"):
        compiled.exits(runs, horizon=10, method=EulerMaruyama())
    with pytest.raises(InputError, match="method must fit Ornstein-Uhlenbeck, got Adaptive"):
        compile_model(ornstein()).exits(members(ornstein(), 8.0, 0.1, a=1.0, g=1.0, R=5.0), horizon=10, method=EVERY)
    with pytest.raises(InputError, match="members must hold 2 parameters for each run"):
        compiled.exits(Members(np.ones((1, 3)), np.ones(3), np.ones(3)), horizon=10)


def test_a_product_in_a_flow_needs_a_finite_sync_interval():
    model = dataclasses.replace(burst(), name="with P", flow=(P * burst().states[0],))
    with pytest.raises(InputError, match="sync_interval must be finite, for the model holds P"):
        compile_model(model).exits(members(model, math.inf, 0.1, **BASE), horizon=10)

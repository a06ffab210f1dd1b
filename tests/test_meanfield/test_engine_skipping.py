"""Cycles that repeat are passed over: no exit changes, and what has not settled is waited for."""

import math

import numpy as np
import pytest
import scipy.optimize

from meanfield.engine.compiled import Adaptive, compile_model
from meanfield.engine.members import LANES
from meanfield.hybrid import FAILED, STAYED
from tests.support.models import (
    GLOBAL,
    NONE,
    creeping,
    fast_and_slow,
    members,
    memory_map,
    products,
)
from tests.support.references import exit_clock, memory_path

EVERY = Adaptive(1e-12, every_cycle=True)


def random_maps(n=512):
    rng = np.random.default_rng(5)
    return {
        "h": rng.uniform(0.0, 0.3, n) * rng.choice([0.0, 1.0], n),
        "b": rng.uniform(1.0, 60.0, n),
        "u0": rng.uniform(0.05, 0.9, n),
        "R": rng.uniform(0.5, 300.0, n),
    }


def test_passing_over_cycles_changes_no_exit():
    model, values = memory_map(), random_maps()
    compiled, runs = compile_model(model), members(model, 20.0, 2e-3, **values)
    whole = compiled.exits(runs, horizon=200_000, method=EVERY)
    for tolerance in (1e-6, 1e-9):
        quick = compiled.exits(runs, horizon=200_000, method=Adaptive(tolerance))
        assert np.array_equal(quick.code, whole.code)
        left = whole.code >= 0
        assert 50 < left.sum() < left.size - 50
        assert np.max(np.abs(quick.clock[left] / whole.clock[left] - 1.0)) < GLOBAL * tolerance
        assert np.allclose(quick.states[2], whole.states[2], rtol=GLOBAL * tolerance)


def test_memory_map_against_its_plain_loop():
    model, values = memory_map(), random_maps(64)
    runs = members(model, 20.0, 2e-3, **values)
    found = compile_model(model).exits(runs, horizon=2000)
    for row in range(64):
        h, b, u0, R = runs.parameters[:, row]
        wanted = exit_clock(0.04, C=1.0 / b, R=R, h=h, u0=u0, num_cycles=100)
        assert found.clock[row] == pytest.approx(wanted if wanted <= 4.0 else math.inf, rel=1e-6)


def test_a_bottleneck_is_not_taken_for_a_fixed_point():
    """Just past a fold the memory all but stands still, at -0.7, for hundreds of cycles, and then moves on."""
    kappa = 2.0
    u = -math.sqrt(1.0 - 1.0 / kappa)
    fold = math.atanh(u) - kappa * u  # h at which the lower pair of fixed points meets
    model = memory_map()
    runs = members(model, 1.0, 1.0, h=fold + np.geomspace(1e-8, 1e-3, LANES), b=kappa, u0=-0.9, R=5000.0)
    compiled = compile_model(model)
    for tolerance in (1e-3, 1e-6):
        quick = compiled.exits(runs, horizon=40_000, method=Adaptive(tolerance))
        whole = compiled.exits(runs, horizon=40_000, method=EVERY)
        assert np.array_equal(quick.code, whole.code)
        left = whole.code >= 0
        assert left.any()
        assert np.allclose(quick.clock[left], whole.clock[left], rtol=GLOBAL * tolerance)


@pytest.mark.parametrize("rate", [1e-2, 1e-4, 1e-6])
def test_a_slow_change_behind_a_fast_one_is_waited_for(rate):
    """u halves its distance to s while s itself creeps: the series of u is not yet the whole story."""
    compiled = compile_model(fast_and_slow())
    start = np.geomspace(1e-9, 1.0, LANES)  # how far u begins from s
    runs = members(compiled.model, 1.0, 1.0, a=np.array([[0.3], [1e-3], [1e-6]]), b=rate, g=start, R=12_000.0)
    whole = compiled.exits(runs, horizon=20_000, method=EVERY)
    assert np.all(whole.code >= 0)
    for tolerance in (1e-4, 1e-6, 1e-8):
        quick = compiled.exits(runs, horizon=20_000, method=Adaptive(tolerance))
        assert np.max(np.abs(quick.clock / whole.clock - 1.0)) < tolerance


def test_what_leaves_an_unstable_fixed_point_is_not_taken_for_settled():
    """A part in 1e10 beside it the memory moves by next to nothing, but by more from cycle to cycle."""
    h, b = -0.1, 2.0
    unstable = scipy.optimize.brentq(lambda u: math.tanh(h + b * u) - u, 0.01, 0.3, xtol=1e-15)
    assert b * (1.0 - unstable**2) > 1.5
    runs = members(memory_map(), 1.0, 1.0, h=h, b=b, u0=unstable * (1.0 + 1e-10), R=500.0)
    quick = compile_model(memory_map()).exits(runs, horizon=1000)
    whole = compile_model(memory_map()).exits(runs, horizon=1000, method=EVERY)
    assert whole.clock[0] < 700.0
    assert quick.clock == pytest.approx(whole.clock, rel=1e-5)


@pytest.mark.parametrize(
    ("limits", "code", "clock"),
    [
        ({"R": 4.5, "Q": NONE, "g": NONE}, 0, 4.0 + (math.sqrt(16.0 + 18.0) - 4.0) / 2.0),
        ({"R": NONE, "Q": 500.0, "g": NONE}, 1, 250.0 + (math.sqrt(251.0**2 + 4.0 * 250.0) - 251.0) / 2.0),
        ({"R": NONE, "Q": NONE, "g": 70.5}, 2, 70.5),
    ],
    ids=["product", "factor", "corner"],
)
def test_counters_that_meet_what_a_sync_resets_are_not_passed_on(limits, code, clock):
    found = compile_model(products()).exits(members(products(), 1.0, 1.0, a=1.0, **limits), horizon=1000)
    assert found.code.tolist() == [code]
    assert found.clock[0] == pytest.approx(clock, rel=1e-9)


def test_a_gain_that_still_changes_is_not_passed_on():
    """m is within a part in a million of 1, but x grows by the difference, which goes by the share a a cycle."""
    runs = members(creeping(), 1.0, 1.0, a=1e-5, b=1e-6, g=1.0, R=np.array([0.08, 0.05]))
    found = compile_model(creeping()).exits(runs, horizon=100_000)
    assert found.code.tolist() == [STAYED, 0]
    assert found.clock[1] == pytest.approx(math.log1p(-0.5) / math.log1p(-1e-5), rel=1e-5)


def test_no_number_inside_a_maximum_is_no_number():
    runs = members(creeping(), 1.0, 1.0, a=1e-5, b=1e-6, g=1.5, R=1.0)
    assert compile_model(creeping()).exits(runs, horizon=100).code.tolist() == [FAILED]


def test_a_memory_that_alternates_is_walked_to_the_end():
    """For b < 0 the map u -> tanh(b*u) has a cycle of two; nothing repeats from one sync to the next."""
    kappa, model = -1.5, memory_map()
    runs = members(model, 1.0, 1.0, h=0.0, b=kappa, u0=0.4, R=1e9)
    found = compile_model(model).exits(runs, horizon=501)
    memory = memory_path(kappa, 0.0, 0.4, 501)
    assert found.states[2, 0] == pytest.approx(sum(memory), rel=1e-5)


def test_a_state_beyond_all_cycles_costs_no_time():
    """A million cycles of a settled memory: found at once, exact to the tolerance."""
    model = memory_map()
    runs = members(model, 1.0, 1.0, h=0.1, b=3.0, u0=0.9, R=9.5e5)
    found = compile_model(model).exits(runs, horizon=1_000_000, method=Adaptive(1e-9))
    u = 0.9
    for _ in range(200):
        u = math.tanh(0.1 + 3.0 * u)
    assert found.clock[0] == pytest.approx(9.5e5 / u, rel=1e-6)

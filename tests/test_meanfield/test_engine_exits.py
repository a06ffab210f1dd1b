"""Walks without noise: exact exits, orders of convergence, exits hidden in a step, cycles passed over, odd outcomes."""

import dataclasses
import math

import numba
import numpy as np
import pytest
import scipy.optimize

from meanfield import kernels
from meanfield.engine.compiled import Adaptive, CompiledModel, EulerMaruyama, compile_model
from meanfield.engine.members import LANES, Members, plan
from meanfield.hybrid import FAILED, STAYED, model_phase_diagram
from tests.support.models import (
    burst,
    creeping,
    dip,
    fast_and_slow,
    humps,
    members,
    memory_map,
    ornstein,
    products,
    swing,
)
from tests.support.references import exit_clock, memory_path
from theory.errors import InputError
from theory.models.builders import lagged_oscillator, persistent_drift, stale_quadratic, two_constraint
from theory.models.saturation import ALGEBRAIC
from theory.symbols import P

EVERY = Adaptive(1e-12, every_cycle=True)
GLOBAL = 10.0
"""House rule for an integrator against an exact solution: ten times its tolerance."""
ORDER = 0.1
"""House rule for a measured order."""
TWIN = 1e-6
"""256 steps of the twin in an open cycle in which the drive grows by up to exp(12): (12/256)^4/120 is 4e-8."""
VALUES = {"h": 0.02, "k_w": 8.0, "k_s": 20.0, "rho": 0.3, "v": 1.0, "sigma": 1.0, "m0": 0.05}
LIMITS = {"R_batch": 0.25, "R_crit": 1.2}
S, ETA = (
    grid.ravel() for grid in np.meshgrid([1, 2, 4, 7, 16, 33, 64, 300, 700, np.inf], np.geomspace(1e-3, 3e-2, 24))
)


def exact_persistent(horizon):
    """eta*t at exit and code of persistent drift, from the closed map of `meanfield.kernels`."""
    row = np.array(
        [[*(VALUES[name] for name in ("k_w", "k_s", "rho", "h", "m0")), LIMITS["R_crit"], LIMITS["R_batch"]]]
    )
    clocks, codes = np.empty((1, S.size)), np.empty((1, S.size), dtype=np.int8)
    cycles = np.maximum(1, np.ceil(horizon / S)).astype(np.int64)
    kernels.persistent_exits(S * ETA, cycles, row, clocks, codes)
    late = np.ceil(clocks / ETA * (1.0 - 1e-10)) > horizon
    return np.where(late, np.inf, clocks)[0], np.where(late, 0, codes)[0]


@pytest.mark.parametrize("tolerance", [1e-6, 1e-8, 1e-10])
@pytest.mark.parametrize("closed", [True, False], ids=["closed solution", "Runge-Kutta"])
def test_exits_of_persistent_drift_are_exact_to_the_tolerance(closed, tolerance):
    model = persistent_drift() if closed else dataclasses.replace(persistent_drift(), solution=())
    found = compile_model(model).exits(
        members(model, S, ETA, **VALUES, **LIMITS), horizon=600, method=Adaptive(tolerance)
    )
    clocks, codes = exact_persistent(600)
    assert np.array_equal(np.isfinite(found.clock), np.isfinite(clocks))
    assert np.array_equal(
        found.code, np.array([STAYED, 0, 1])[codes]
    )  # batch is the model's first exit, region its second
    left = np.isfinite(clocks)
    assert left.sum() > 100
    error = np.max(np.abs(found.clock[left] / clocks[left] - 1.0))
    assert error < min(1e-6, GLOBAL * tolerance)


def test_the_error_is_proportional_to_the_tolerance():
    model = dataclasses.replace(persistent_drift(), solution=())
    compiled, runs = compile_model(model), members(model, S, ETA, **VALUES, **LIMITS)
    clocks, _ = exact_persistent(600)
    left = np.isfinite(clocks)
    tolerances = np.array([1e-4, 1e-6, 1e-8, 1e-10])
    errors = [
        np.max(
            np.abs(
                compiled.exits(runs, horizon=600, method=Adaptive(t, every_cycle=True)).clock[left] / clocks[left] - 1.0
            )
        )
        for t in tolerances
    ]
    slope = np.polyfit(np.log(tolerances), np.log(errors), 1)[0]
    assert slope == pytest.approx(1.0, abs=0.25)  # between 4/5 and 6/5, as steps are cut to whole cycles


def test_orders_of_the_step_and_of_its_error_estimate():
    """One step of x' = -(x + b)/2 from x = b = 1: error of order six, estimate of order five, by halving the step."""
    module = compile_model(stale_quadratic())._module
    alone, judge, derive, flow = module._alone, module._judge, module.derive, module.flow
    inputs, length, live, state, new = (
        getattr(module, name) * LANES for name in ("INPUTS", "LENGTH", "LIVE", "STATE", "NEW")
    )
    now, slope, error = module._now, module.K1, module.ERROR * LANES

    @numba.njit(error_model="numpy")
    def one(w, h):
        w[inputs], w[inputs + LANES] = 1.0, 0.5  # K and f
        w[length], w[live], w[state], w[state + LANES] = 1.0, 1.0, 1.0, 1.0
        derive(w, 0)
        flow(w, now, 0.0, slope, 0)
        alone(w, h, 0)
        judge(w, h, 1.0, 0)
        return w[new], w[error]

    steps = np.array([0.8, 0.4, 0.2, 0.1, 0.05])
    found = np.array([one(np.zeros(module.NUM_ROWS * LANES), h) for h in steps])
    errors = np.abs(found[:, 0] - (2.0 * np.exp(-0.5 * steps) - 1.0))[1:4]
    estimates = np.sqrt(found[2:, 1])  # its own next order is large
    assert np.log2(errors[:-1] / errors[1:]) == pytest.approx([6.0, 6.0], abs=ORDER)
    assert np.log2(estimates[:-1] / estimates[1:]) == pytest.approx([5.0, 5.0], abs=2 * ORDER)


@pytest.mark.parametrize(
    ("model", "values"),
    [
        (persistent_drift(ALGEBRAIC), {**VALUES, **LIMITS}),
        (two_constraint(), {"G_upd": 1.0, "R_batch": 0.2, "R_crit": 1.5}),
        (stale_quadratic(), {"K": 100.0, "f": 1.0, "x0": 0.1, "R_crit": 1.2}),
    ],
    ids=lambda item: getattr(item, "name", ""),
)
def test_same_ends_as_the_plain_numpy_twin(model, values):
    intervals, rates = np.array([4.0, 33.0, 700.0]), np.geomspace(1e-3, 3e-2, 6)
    grid = model_phase_diagram(
        model, values, sync_intervals=intervals, learning_rates=rates, horizon=100, steps_per_cycle=256
    )
    runs = members(model, *np.meshgrid(intervals, rates, indexing="ij"), **values)
    found = compile_model(model).exits(runs, horizon=100, method=Adaptive(1e-9))
    clocks = grid.cumulative_learning_rate_at_exit.values.ravel()
    left = np.isfinite(clocks)
    assert np.array_equal(found.code >= 0, left)
    assert 3 <= left.sum() < left.size
    assert np.allclose(found.clock[left], clocks[left], rtol=TWIN)


def test_an_oscillator_with_its_own_learning_rate():
    """The pull of `lagged_oscillator` holds eta itself: the engine takes it from the run."""
    from meanfield.engine.values import members_of, names_of

    model = lagged_oscillator()
    assert names_of(model) == ("K", "mu", "x0", "R_crit", "sync_interval", "learning_rate")
    boundary = (1.0 - 0.9) / 5.0  # S*eta = (1 - mu)/K
    rates = boundary / 4 * np.array([0.9, 1.1])
    runs = members_of(
        model, {"K": 5.0, "mu": 0.9, "x0": 1.0, "R_crit": 3.0, "sync_interval": 4, "learning_rate": rates}
    )
    assert np.array_equal(runs.parameters[2], rates)
    found = compile_model(model).exits(runs, horizon=4000, method=Adaptive(1e-9))
    assert found.code.tolist() == [STAYED, 0]


# ---- exits inside a step ----


def test_an_exit_that_a_step_passes_over_is_found():
    """x = b*sin(a*tau) is above R = 0.999*b for a fiftieth of a turn; both ends of the step are below."""
    b = 1.0
    for share in (0.9, 0.999, 0.999999):
        runs = members(swing(), 100.0, np.full(LANES, 0.01), a=np.linspace(1.0, 6.0, LANES), b=b, R=share * b, Q=9.0)
        found = compile_model(swing()).exits(runs, horizon=1000, method=Adaptive(1e-9))
        phase = np.arcsin(share)
        exact = phase / runs.parameters[0]
        assert np.array_equal(found.code, np.zeros(LANES))
        assert found.clock == pytest.approx(exact, rel=GLOBAL * 1e-9 / (phase * np.cos(phase)))  # flat near the peak


NONE = 1e9
"""A limit that is never met."""


RISEN = 6.0 + (1.0 - math.sqrt(1.0 - 4.0 * 1.4 / 6.0)) / 2.0
"""Where 6*(t - t**2) first is 1.4, in the seventh cycle."""
FLAT = 7.0 + scipy.optimize.brentq(lambda t: 7 * t**2 * (1 - t) - 1, 0.1, 2 / 3)


@pytest.mark.parametrize(
    ("limits", "code", "clock"),
    [
        ({"R": 1.4, "Q": NONE, "g": NONE}, 0, RISEN),
        ({"R": 1.4, "Q": 6.99, "g": NONE}, 0, RISEN),
        ({"R": 1.4, "Q": 6.2, "g": NONE}, 1, 6.2),
        (
            {"R": NONE, "Q": NONE, "g": 1.0},
            2,
            7.0 + scipy.optimize.brentq(lambda t: 7 * t**2 * (1 - t) - 1, 0.1, 2 / 3),
        ),
    ],
    ids=["comes and goes", "before another", "after another", "flat at the start"],
)
def test_the_first_of_exits_that_rise_and_fall_in_one_step(limits, code, clock):
    found = compile_model(humps()).exits(members(humps(), 1.0, 1.0, **limits), horizon=40)
    assert found.code.tolist() == [code]
    assert found.clock[0] == pytest.approx(clock, rel=1e-9)  # the flow is a polynomial of the second degree


@pytest.mark.parametrize("share", [10.0, 20.0, 40.0])
def test_a_state_that_dips_and_comes_back_keeps_its_digits(share):
    exact = 1.0 + math.sqrt(1.0 + 2.0 * math.log(2.0) / share)
    for interval in (1.0, 3.0):
        found = compile_model(dip()).exits(
            members(dip(), interval, 1.0, b=share, R=2.0), horizon=3, method=Adaptive(1e-8)
        )
        assert found.clock[0] == pytest.approx(exact, rel=1e-7)


def test_a_peak_below_the_limit_is_no_exit():
    runs = members(swing(), 100.0, 0.01, a=np.linspace(1.0, 6.0, LANES), b=1.0, R=1.0 + 1e-4, Q=9.0)
    found = compile_model(swing()).exits(runs, horizon=1000, method=Adaptive(1e-8))
    assert np.all(found.code == STAYED)


def test_an_exit_at_the_end_of_a_cycle_counts_only_there():
    """-x peaks inside the cycle; at its end a*tau = 2*pi*(1 - 1/12), where -x is sin(pi/6)."""
    a = 2.0 * math.pi * (1.0 - 1.0 / 12.0)
    for limit, code in ((0.499, 1), (0.501, STAYED)):
        runs = members(swing(), 100.0, 0.01, a=a, b=1.0, R=2.0, Q=limit)
        found = compile_model(swing()).exits(runs, horizon=100, method=Adaptive(1e-9))
        assert found.code.tolist() == [code]
        assert found.clock[0] == (1.0 if code == 1 else math.inf)


def test_the_path_of_a_member_is_exact_and_ends_at_its_exit():
    runs = members(swing(), 10.0, 0.01, a=np.linspace(1.0, 6.0, 20), b=1.0, R=0.9, Q=9.0)
    compiled, method = compile_model(swing()), Adaptive(1e-8)
    found = compiled.exits(runs, horizon=1000, method=method)
    path = compiled.replay(runs, 17, horizon=1000, method=method)
    clock = path.cumulative_learning_rate
    assert np.allclose(path.states["x"], np.sin(runs.parameters[0, 17] * clock), atol=1e-7)
    assert np.all(np.diff(clock) >= 0.0)
    assert np.sum(np.diff(clock) == 0.0) == np.floor(clock[-1] / 0.1)  # the same clock before and after each sync
    assert clock[-1] == found.clock[17]  # the same bits
    assert path.states["x"][-1] == found.states[0, 17]
    assert (path.exit, path.collapse_step) == ("above", math.ceil(found.clock[17] / 0.01 * (1 - 1e-10)))


def test_a_long_path_is_kept_whole(monkeypatch):
    from meanfield.engine import compiled as module

    runs = members(swing(), 1.0, 0.01, a=3.0, b=1.0, R=2.0, Q=9.0)
    whole = compile_model(swing()).replay(runs, 0, horizon=500)
    monkeypatch.setattr(module, "FIRST_POINTS", 10)
    again = compile_model(swing()).replay(runs, 0, horizon=500)
    assert np.array_equal(whole.cumulative_learning_rate, again.cumulative_learning_rate)
    assert whole.cumulative_learning_rate.size > 1000


# ---- cycles passed over ----


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


# ---- blocks ----


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

"""Walks without noise: exact exits, orders of convergence, exits hidden in a step, paths."""

import dataclasses
import math

import numba
import numpy as np
import pytest
import scipy.optimize

from meanfield import kernels
from meanfield.engine.compiled import Adaptive, compile_model
from meanfield.engine.members import LANES
from meanfield.hybrid import STAYED, model_phase_diagram
from tests.support.models import (
    GLOBAL,
    LIMITS,
    NONE,
    VALUES,
    dip,
    humps,
    members,
    swing,
)
from theory.models.builders import lagged_oscillator, persistent_drift, stale_quadratic, two_constraint
from theory.models.saturation import ALGEBRAIC

EVERY = Adaptive(1e-12, every_cycle=True)
ORDER = 0.1
"""House rule for a measured order."""
TWIN = 1e-6
"""256 steps of the twin in an open cycle in which the drive grows by up to exp(12): (12/256)^4/120 is 4e-8."""
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

import json
import math
import time

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

from meanfield.outcomes import Outcome
from meanfield.parameters import MapParameters
from meanfield.simulate import exit_budget, phase_diagram, simulate
from tests.support import references
from tests.support.tolerances import CLOSED_FORM, LIMIT
from theory import drift
from theory.errors import InputError
from theory.numeric import numpy_function

UNIT = MapParameters(critical_product=1.0, exit_radius=50.0)
MODEL = MapParameters(critical_product=0.02, exit_radius=0.8)


def fixed_point(gain, honest_signal):
    return brentq(lambda value: np.tanh(honest_signal + gain * value) - value, 1e-12, 1.0, xtol=1e-15, rtol=1e-14)


def whole_cycles(clock, product):
    """eta*t at the end of the cycle in which the exit falls."""
    return math.ceil(clock / product - 1e-9) * product


# --- exact solutions


@pytest.mark.parametrize(
    ("kappa", "at_exit", "at_end_of_cycle"),
    [
        (1.05, 247.749495308, 247.8),
        (1.2, 114.574555862, 115.2),
        (1.5, 81.279347790, 82.5),
        (2.0, 70.847939459, 72.0),
        (3.0, 68.465726992, 69.0),
        (4.0, 69.657999707, 72.0),
        (5.0, 71.505683460, 75.0),
    ],
)
def test_exit_budget_of_the_reference_case(kappa, at_exit, at_end_of_cycle):
    """R = 50, C = 1, u0 = 1e-3, h = 0; counted in whole cycles it is 248, 115, 82, 72, 69, 72, 75."""
    found = float(exit_budget(UNIT, kappa))
    assert found == pytest.approx(at_exit, rel=1e-11)
    assert whole_cycles(found, kappa) == pytest.approx(at_end_of_cycle, rel=CLOSED_FORM)


@pytest.mark.parametrize(
    ("kappa", "honest_signal"),
    [(0.5, 1e-3), (0.5, 0.05), (0.9, 0.05), (1.0, 0.05), (1.1, 0.0), (1.5, 0.0), (1.5, 0.05), (4.0, 0.0)],
)
def test_from_the_fixed_point_the_budget_is_radius_over_memory(kappa, honest_signal):
    memory = fixed_point(kappa, honest_signal)
    parameters = MapParameters(
        critical_product=1.0, exit_radius=50.0, honest_signal=honest_signal, initial_memory=memory
    )
    expected = numpy_function(drift.EXIT_BUDGET)(50.0, memory)
    assert float(exit_budget(parameters, kappa)) == pytest.approx(float(expected), rel=LIMIT)


@pytest.mark.parametrize("kappa", [0.1, 0.5, 0.8])
def test_small_signal_gives_the_linear_budget(kappa):
    signal = 1e-5
    parameters = MapParameters(
        critical_product=1.0,
        exit_radius=50.0,
        honest_signal=signal,
        initial_memory=float(numpy_function(drift.LINEAR_MEMORY)(kappa, signal)),
    )
    expected = numpy_function(drift.LINEAR_EXIT_BUDGET)(50.0, kappa, signal)
    # second order in the memory, signal/(1 - kappa), and the saturation starts at third order in it
    assert float(exit_budget(parameters, kappa)) == pytest.approx(float(expected), rel=20 * LIMIT)


def test_saturated_drift_collapses_at_the_radius():
    parameters = MapParameters(critical_product=1e-4, exit_radius=0.8, initial_memory=1.0)
    for interval in (1, 8, math.inf):
        run = simulate(parameters, sync_interval=interval, learning_rate=0.01, horizon=100)
        assert float(run.collapse_step) == 80.0
        assert float(run.cumulative_learning_rate_at_exit) == pytest.approx(0.8, rel=1e-8)


def test_without_sync_the_start_decides():
    run = simulate(MODEL, sync_interval=math.inf, learning_rate=1.0, horizon=1000)
    assert float(run.collapse_step) == 800.0  # R/(eta*u0) = 0.8/1e-3
    assert run.sizes == {"cycle": 1, "step": 1000}
    assert float(run.displacement[399]) == pytest.approx(0.4, rel=CLOSED_FORM)


def test_boundary_of_the_exit_is_at_gain_one():
    """From a memory of 1e-12 nothing but the sign of S*eta - C decides whether a run ever exits."""
    parameters = MapParameters(critical_product=0.02, exit_radius=0.8, initial_memory=1e-12)
    below, above = exit_budget(parameters, 0.02 * np.array([1 - 1e-6, 1 + 1e-4]))
    assert np.isinf(below)
    assert np.isfinite(above)


@pytest.mark.parametrize("kappa", [0.5, 1.0, 1.5])
def test_a_small_memory_grows_by_the_gain(kappa):
    parameters = MapParameters(critical_product=0.02, exit_radius=0.8, initial_memory=1e-6)
    memory = simulate(parameters, sync_interval=4, learning_rate=kappa * 0.02 / 4, horizon=8).memory
    assert float(memory[1] / memory[0]) == pytest.approx(kappa, rel=LIMIT)


# --- the laws of the model


@pytest.mark.parametrize("kappa", [1.05, 1.5, 4.0])
def test_only_the_product_and_the_clock_count(kappa):
    """The same cumulative learning rate at exit, to the bit where the product is the same to the bit."""
    intervals = np.array([4.0, 8.0, 16.0, 32.0, 64.0])
    clocks = [
        float(simulate(UNIT, sync_interval=S, learning_rate=kappa / S, horizon=20_000).cumulative_learning_rate_at_exit)
        for S in intervals
    ]
    assert np.unique(clocks).size == 1
    assert np.isfinite(clocks[0])
    odd = simulate(UNIT, sync_interval=6, learning_rate=kappa / 6, horizon=20_000)
    assert float(odd.cumulative_learning_rate_at_exit) == pytest.approx(clocks[0], rel=CLOSED_FORM)


def test_among_collapsing_runs_the_time_falls_as_one_over_eta():
    rates = np.array([1.5, 2.0, 3.0, 5.0]) / 16
    runs = phase_diagram(UNIT, sync_intervals=[16], learning_rates=rates, horizon=10_000)
    slope = np.polyfit(np.log(rates), np.log(runs.collapse_step.values[0]), 1)[0]
    assert slope == pytest.approx(-1.0, abs=0.15)  # the budget varies by 20 % over this range
    budgets = runs.cumulative_learning_rate_at_exit.values
    assert budgets.max() / budgets.min() == pytest.approx(1.187, abs=1e-3)


def test_accuracy_of_the_budget_formula():
    """Growth, then steady drift: 1 to 3 % low. Without the displacement of the growth up to 15 % high."""
    kappa = np.array([1.05, 1.2, 1.5, 2.0, 3.0, 5.0])
    memory = np.array([fixed_point(value, 0.0) for value in kappa])
    simulated = exit_budget(UNIT, kappa)
    formula = numpy_function(drift.EXIT_BUDGET_FROM_START)(50.0, 1.0, kappa, 1e-3, memory)
    error = formula / simulated - 1.0
    assert np.all((error > -0.03) & (error < -0.01))
    rough = 50.0 / memory + kappa * numpy_function(drift.GROWTH_CYCLES)(kappa, 1e-3, 1.0)
    ends = np.array([whole_cycles(*pair) for pair in zip(simulated, kappa, strict=True)])
    np.testing.assert_allclose(rough / ends - 1.0, [0.144, 0.054, 0.016, 0.002, 0.002, -0.047], atol=1e-3)
    np.testing.assert_allclose(rough / simulated - 1.0, [0.144, 0.059, 0.031, 0.018, 0.010, -0.001], atol=1e-3)


def test_the_start_moves_the_budget():
    budgets = [
        float(exit_budget(MapParameters(critical_product=1.0, exit_radius=50.0, initial_memory=start), 1.5))
        for start in (1e-1, 1e-3, 1e-6)
    ]
    np.testing.assert_allclose(budgets, [64.568, 81.279, 106.831], atol=1e-3)


# --- one run, step by step


@settings(deadline=None, derandomize=True, max_examples=100)
@given(
    S=st.integers(1, 40),
    eta=st.floats(1e-3, 0.5),
    h=st.sampled_from([0.0, 0.05]),
    u0=st.sampled_from([0.0, 1e-3, 0.5]),
)
def test_collapse_step_matches_the_walk_over_steps(S, eta, h, u0):
    parameters = MapParameters(critical_product=1.0, exit_radius=5.0, honest_signal=h, initial_memory=u0)
    expected = references.collapse_step(S, eta, C=1.0, R=5.0, h=h, u0=u0, horizon=600)
    run = simulate(parameters, sync_interval=S, learning_rate=eta, horizon=600)
    if expected is None:
        assert int(run.outcome) == Outcome.STABLE.code
        assert np.isnan(run.collapse_step)
    else:
        assert int(run.outcome) == Outcome.COLLAPSED.code
        assert int(run.collapse_step) == expected


def test_path_of_a_run():
    run = simulate(MODEL, sync_interval=4, learning_rate=0.0075, horizon=300)
    step = int(run.collapse_step)
    twin = references.memory_path(1.5, 0.0, 1e-3, run.sizes["cycle"])
    begun = math.ceil(step / 4)
    np.testing.assert_allclose(run.memory[:begun], twin[:begun], rtol=CLOSED_FORM)
    assert np.isnan(run.memory[begun:]).all()
    walked = np.cumsum(0.0075 * np.repeat(twin, 4))
    np.testing.assert_allclose(run.displacement[:step], walked[:step], rtol=CLOSED_FORM)
    assert np.isnan(run.displacement[step:]).all()
    assert run.displacement[step - 2] < 0.8 <= run.displacement[step - 1]
    clock = float(run.cumulative_learning_rate_at_exit)
    assert run.cumulative_learning_rate[step - 2] < clock <= run.cumulative_learning_rate[step - 1]


def test_the_horizon_decides_to_the_step():
    long = simulate(MODEL, sync_interval=4, learning_rate=0.0075, horizon=300)
    step = int(long.collapse_step)
    just = simulate(MODEL, sync_interval=4, learning_rate=0.0075, horizon=step)
    short = simulate(MODEL, sync_interval=4, learning_rate=0.0075, horizon=step - 1)
    assert int(just.outcome) == Outcome.COLLAPSED.code
    assert int(short.outcome) == Outcome.STABLE.code
    assert np.isnan(short.cumulative_learning_rate_at_exit)
    assert not np.isnan(short.displacement).any()
    assert not np.isnan(short.memory).any()


def test_a_step_that_meets_the_radius_exactly_is_the_collapse():
    """In binary 0.07/0.01 is above 7; the collapse is at the step where it is on paper."""
    assert 0.07 / 0.01 > 7.0
    for radius, step in ((0.07, 7), (0.56, 56), (0.03, 3)):
        parameters = MapParameters(critical_product=1.0, exit_radius=radius, initial_memory=1.0)
        run = simulate(parameters, sync_interval=math.inf, learning_rate=0.01, horizon=100)
        assert int(run.collapse_step) == step


# --- grids


def test_phase_diagram_is_the_runs_side_by_side():
    intervals, rates = [1, 4, 16, math.inf], [1e-3, 2e-3, 8e-3, 0.3]
    grid = phase_diagram(MODEL, sync_intervals=intervals, learning_rates=rates, horizon=900)
    runs = [[simulate(MODEL, sync_interval=S, learning_rate=eta, horizon=900) for eta in rates] for S in intervals]
    assert grid.outcome.dims == ("sync_interval", "learning_rate")
    assert grid.outcome.dtype == np.int8
    for name in ("outcome", "collapse_step", "cumulative_learning_rate_at_exit"):
        np.testing.assert_array_equal(grid[name], [[run[name].item() for run in row] for row in runs])
    assert set(np.unique(grid.outcome)) == {Outcome.STABLE.code, Outcome.COLLAPSED.code}


def test_phase_diagram_shows_the_max_form():
    """Long horizon: the boundary is C/S. Short horizon: it is the rate at which eta*T is the exit budget."""
    rates = np.geomspace(2e-4, 0.2, 400)
    grid = phase_diagram(MODEL, sync_intervals=[4, 16, 64], learning_rates=rates, horizon=1_000_000)
    largest = np.array([rates[row == Outcome.STABLE.code].max() for row in grid.outcome.values])
    np.testing.assert_allclose(largest * [4, 16, 64], 0.02, rtol=0.02)  # one grid step is 1.7 %
    grid = phase_diagram(MODEL, sync_intervals=[4, 16], learning_rates=rates, horizon=60)
    largest = np.array([rates[row == Outcome.STABLE.code].max() for row in grid.outcome.values])
    assert np.all(largest * [4, 16] > 3 * 0.02)  # far above the boundary, and alive
    next_larger = largest * rates[1] / rates[0]
    assert np.all(largest * 60 < exit_budget(MODEL, largest * [4, 16]))
    assert np.all(next_larger * 60 > exit_budget(MODEL, next_larger * [4, 16]))


def test_exit_budget_keeps_the_shape_and_knows_no_sync():
    found = exit_budget(UNIT, [[0.9, 1.5], [3.0, np.inf]])
    assert found.shape == (2, 2)
    assert np.isinf(found[0, 0])
    assert found[1, 1] == 50.0 / 1e-3


def test_a_large_diagram_takes_no_second():
    intervals, rates = np.arange(1, 101), np.geomspace(1e-4, 1e-1, 100)
    phase_diagram(MODEL, sync_intervals=[1], learning_rates=[1e-3], horizon=1)
    start = time.perf_counter()
    phase_diagram(MODEL, sync_intervals=intervals, learning_rates=rates, horizon=2000)
    assert time.perf_counter() - start < 1.0


# --- what travels with the result, and bad input


def test_the_attributes_make_the_result_again():
    first = phase_diagram(MODEL, sync_intervals=[4, 16], learning_rates=[1e-3, 8e-3], horizon=900)
    again = phase_diagram(
        MapParameters(**json.loads(first.attrs["parameters"])),
        sync_intervals=first.sync_interval,
        learning_rates=first.learning_rate,
        horizon=first.attrs["horizon"],
    )
    xr.testing.assert_identical(first, again)
    assert first.attrs["claims"] == "C5 C6"
    assert set(json.loads(first.attrs["versions"])) == {"driftlaw", "numpy", "numba", "xarray"}


@pytest.mark.parametrize("value", [0, -1, 1.5, math.nan, "8", True])
def test_sync_interval_is_refused(value):
    message = r"sync_interval must be an integer >= 1 or inf, got .*For a fully on-policy run use 1"
    with pytest.raises(InputError, match=message):
        simulate(MODEL, sync_interval=value, learning_rate=1e-3, horizon=10)
    with pytest.raises(InputError, match=message):
        phase_diagram(MODEL, sync_intervals=[value], learning_rates=[1e-3], horizon=10)


@pytest.mark.parametrize("value", [0.0, -1e-3, math.nan, math.inf, "1e-3", None])
def test_learning_rate_is_refused(value):
    with pytest.raises(InputError, match=r"learning_rate must be a positive finite number, got .*step size"):
        simulate(MODEL, sync_interval=4, learning_rate=value, horizon=10)
    with pytest.raises(InputError, match=r"learning_rate must be a positive finite number, got .*step size"):
        phase_diagram(MODEL, sync_intervals=[4], learning_rates=[value], horizon=10)


@pytest.mark.parametrize("value", [0, -5, 2.5, math.inf, math.nan, "10", True])
def test_horizon_is_refused(value):
    with pytest.raises(InputError, match=r"horizon must be an integer >= 1, got .*optimizer steps"):
        simulate(MODEL, sync_interval=4, learning_rate=1e-3, horizon=value)
    with pytest.raises(InputError, match=r"horizon must be an integer >= 1, got .*optimizer steps"):
        phase_diagram(MODEL, sync_intervals=[4], learning_rates=[1e-3], horizon=value)


@pytest.mark.parametrize("values", [[], [4, 4], [8, 4], [[4, 8]], 4])
def test_axes_are_refused(values):
    with pytest.raises(InputError, match=r"sync_intervals must be a strictly increasing list, got .*Sort it"):
        phase_diagram(MODEL, sync_intervals=values, learning_rates=[1e-3], horizon=10)
    with pytest.raises(InputError, match=r"learning_rates must be a strictly increasing list, got .*Sort it"):
        phase_diagram(MODEL, sync_intervals=[4], learning_rates=values, horizon=10)


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, [1.0, -1.0]])
def test_products_are_refused(value):
    with pytest.raises(InputError, match=r"product must be positive, got .*Give S\*eta"):
        exit_budget(MODEL, value)

import math
from dataclasses import astuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meanfield.parameters import MapParameters
from meanfield.persistent import Exit, PersistentParameters, exit_clocks, persistent_exits
from meanfield.simulate import exit_budget, phase_diagram
from tests.support import references
from tests.support.tolerances import CLOSED_FORM
from theory import persistent
from theory.errors import InputError
from theory.numeric import numpy_function

MAP = MapParameters(critical_product=1.0, exit_radius=50.0)
ODE = 1e-11
"""Relative tolerance of the twin's solver; the closed form may differ from it by ten times as much a cycle."""


def model(**changes):
    values = {
        "gain_within": 8.0,
        "gain_across": 20.0,
        "retention": 0.3,
        "honest_drive": 0.0,
        "initial_drive": 0.05,
        "exit_radius": 0.8,
        "batch_radius": math.inf,
    }
    return PersistentParameters(**{**values, **changes})


def memory_map(gain_within=0.0, *, of=MAP):
    """The memory map as a persistent drift: its first update is tanh(h + m0)."""
    return model(
        gain_within=gain_within,
        gain_across=1.0 / of.critical_product,
        retention=0.0,
        honest_drive=of.honest_signal,
        initial_drive=math.atanh(of.initial_memory) - of.honest_signal,
        exit_radius=of.exit_radius,
    )


def clocks_of(parameters, products, *, num_cycles=100_000):
    products = np.asarray(products, dtype=np.float64)
    return exit_clocks(
        np.array([astuple(parameters)]), products=products, num_cycles=np.full(products.size, num_cycles)
    )


# --- limits


KAPPA = np.array([1.05, 1.2, 1.5, 2.0, 3.0, 5.0, np.inf])


def test_without_feedback_inside_a_cycle_it_is_the_memory_map():
    clocks, codes = clocks_of(memory_map(), KAPPA)
    np.testing.assert_allclose(clocks[0], exit_budget(MAP, KAPPA), rtol=CLOSED_FORM)
    assert set(codes[0]) == {Exit.REGION.code}
    assert np.isinf(clocks_of(memory_map(), [0.5, 0.999])[0]).all()


@pytest.mark.parametrize("signal", [1e-3, 0.05])
def test_the_memory_map_with_an_honest_signal(signal):
    of = MapParameters(critical_product=1.0, exit_radius=50.0, honest_signal=signal, initial_memory=0.1)
    kappa = np.array([0.1, 0.5, 0.9, 1.0, 1.5, 4.0])
    np.testing.assert_allclose(clocks_of(memory_map(of=of), kappa)[0][0], exit_budget(of, kappa), rtol=CLOSED_FORM)


def test_the_memory_map_is_reached_at_first_order():
    errors = [
        np.abs(clocks_of(memory_map(gain), KAPPA[:-1])[0][0] / exit_budget(MAP, KAPPA[:-1]) - 1.0)
        for gain in (1e-5, 1e-7, 1e-9)
    ]
    order = np.log10(errors[0] / errors[1]) / 2.0
    np.testing.assert_allclose(order, 1.0, atol=0.1)
    np.testing.assert_allclose(np.log10(errors[1] / errors[2]) / 2.0, 1.0, atol=0.1)
    assert errors[2].max() < 1e-8


def test_same_steps_as_the_phase_diagram_of_the_map():
    of = MapParameters(critical_product=0.02, exit_radius=0.8)
    S, eta = np.array([1.0, 4.0, 16.0, np.inf]), np.array([1e-3, 2e-3, 8e-3, 0.3])
    grid = phase_diagram(of, sync_intervals=S, learning_rates=eta, horizon=900)
    found = persistent_exits(memory_map(of=of), sync_intervals=S[:, None], learning_rates=eta, horizon=900)
    np.testing.assert_array_equal(found.collapse_step, grid.collapse_step.fillna(np.inf))


@pytest.mark.parametrize("gain_within", [0.0, 1e-6, 8.0, 500.0])
@pytest.mark.parametrize("S", [1, 8, math.inf])
def test_saturated_drift_collapses_at_the_radius(gain_within, S):
    found = persistent_exits(
        model(gain_within=gain_within, initial_drive=30.0, retention=1.0),
        sync_intervals=S,
        learning_rates=0.01,
        horizon=100,
    )
    assert found.collapse_step == 80.0
    assert found.cumulative_learning_rate == pytest.approx(0.8, rel=CLOSED_FORM)


@pytest.mark.parametrize("gain_within", [0.0, 1e-9, 0.5, 8.0, 300.0])
@pytest.mark.parametrize("retention", [0.0, 0.3, 0.9])
def test_the_boundary_is_that_of_the_theory(gain_within, retention):
    """From a tiny memory only the sign of S*eta - C decides whether a run ever leaves."""
    parameters = model(gain_within=gain_within, retention=retention, initial_drive=1e-9, exit_radius=5.0)
    C = parameters.critical_product
    clocks, _ = clocks_of(parameters, C * np.array([1 - 1e-2, 1 + 1e-2]))
    assert clocks[0, 0] > 1e100  # a memory that dies may end as the smallest float
    assert clocks[0, 1] < 1e4
    if gain_within > 1e-6:  # below, log(1 + x) of the formula as printed has lost its digits
        expected = numpy_function(persistent.BOUNDARY_PRODUCT)(20.0, gain_within, retention, 1.0, 1.0)
        assert pytest.approx(float(expected), rel=CLOSED_FORM) == C


def test_boundaries_at_the_edges():
    assert model(gain_within=0.0).critical_product == 0.7 / 20.0
    assert model(gain_across=0.0).critical_product == math.inf
    assert model(retention=1.0).critical_product == 0.0
    one_slope = model(gain_within=10.0, retention=0.4, gain_across=4.0)
    expected = numpy_function(persistent.ONE_SLOPE_PRODUCT)(10.0, 0.4, 1.0, 1.0)
    assert one_slope.critical_product == pytest.approx(float(expected), rel=CLOSED_FORM)


# --- the slow twin


@settings(deadline=None, derandomize=True, max_examples=60)
@given(
    product=st.floats(0.01, 1.0),
    gain_within=st.sampled_from([0.0, 1e-3, 1.0, 8.0, 40.0]),
    gain_across=st.floats(0.0, 60.0),
    retention=st.sampled_from([0.0, 0.3, 0.9, 1.0]),
    honest_drive=st.sampled_from([0.0, 1e-3, 0.2]),
    initial_drive=st.sampled_from([1e-4, 0.05, 2.0]),
    batch_radius=st.sampled_from([0.02, 0.2, math.inf]),
)
def test_the_kernel_matches_its_twin(product, batch_radius, **changes):
    parameters = model(batch_radius=batch_radius, **changes)
    a, s, rho, h, m0, R, R_batch = astuple(parameters)
    expected, code = references.persistent_exit(
        product, a=a, s=s, rho=rho, h=h, m0=m0, R=R, R_batch=R_batch, num_cycles=12, rtol=ODE
    )
    clocks, codes = clocks_of(parameters, [product], num_cycles=12)
    if code == Exit.NONE.code:  # the kernel may have followed a settled memory beyond the last cycle
        assert clocks[0, 0] >= 12 * product * (1.0 - CLOSED_FORM)
    else:
        assert codes[0, 0] == code
        assert clocks[0, 0] == pytest.approx(expected, rel=1e-8)  # errors grow by up to exp(a*product) a cycle


def test_a_dead_memory_is_given_up_and_a_settled_one_followed():
    falling = model(retention=0.0, gain_within=0.0, gain_across=1.0, initial_drive=0.5)
    clocks, codes = clocks_of(falling, [0.5], num_cycles=10**9)  # walked to the end this would take minutes
    assert np.isinf(clocks[0, 0])
    assert codes[0, 0] == Exit.NONE.code
    stuck = model(retention=0.9, gain_across=0.0, initial_drive=0.05)  # 0.9 of the smallest float is itself
    assert np.isinf(clocks_of(stuck, [0.01])[0]).all()
    steady = model(retention=1.0, gain_across=0.0, initial_drive=0.5, exit_radius=1e6)
    clocks, _ = clocks_of(steady, [0.1], num_cycles=3)
    one_cycle = float(numpy_function(persistent.DRIFT)(0.1, 0.5, 8.0, 1.0, 1.0))
    assert clocks[0, 0] == pytest.approx(1e6 / one_cycle * 0.1, rel=1e-6)


def test_extreme_values_stay_finite_and_right():
    """A flow beyond the range of exp: the drift is the clock less the time it takes to saturate."""
    parameters = model(gain_within=1000.0, initial_drive=0.1, exit_radius=5.0)
    clocks, _ = clocks_of(parameters, [2.0, np.inf])
    delay = -math.log(2.0 * math.tanh(0.1) / (1.0 + math.tanh(0.1))) / 1000.0
    assert clocks[0, 1] == pytest.approx(5.0 + delay, rel=CLOSED_FORM)
    assert clocks[0, 0] == pytest.approx(5.0 + delay, rel=CLOSED_FORM)  # later cycles start saturated


# --- which exit, and when


def test_the_batch_exit_fires_at_the_end_of_a_cycle_only():
    parameters = model(initial_drive=30.0, exit_radius=0.8, batch_radius=0.05)
    S = np.array([2.0, 5.0, 8.0, 100.0, np.inf])  # drift of a whole cycle: 0.02, 0.05, 0.08, 1.0
    found = persistent_exits(parameters, sync_intervals=S, learning_rates=0.01, horizon=1000)
    assert found.collapse_step[1:].tolist() == [5.0, 8.0, 80.0, 80.0]
    assert found.exit[1:].tolist() == [1, 1, 2, 2]
    assert found.cumulative_learning_rate[1] == pytest.approx(0.05, rel=CLOSED_FORM)


def test_only_the_product_and_the_clock_count():
    S = np.array([4.0, 8.0, 16.0, 32.0])
    found = persistent_exits(model(), sync_intervals=S, learning_rates=0.1 / S, horizon=5000)
    assert np.unique(found.cumulative_learning_rate).size == 1
    assert np.isfinite(found.cumulative_learning_rate).all()


def test_the_horizon_decides_to_the_step():
    long = persistent_exits(model(), sync_intervals=16, learning_rates=0.005, horizon=5000)
    step = float(long.collapse_step)
    just = persistent_exits(model(), sync_intervals=16, learning_rates=0.005, horizon=step)
    short = persistent_exits(model(), sync_intervals=16, learning_rates=0.005, horizon=step - 1)
    assert just.collapse_step == step
    assert np.isinf(short.collapse_step)
    assert np.isinf(short.cumulative_learning_rate)
    assert short.exit == Exit.NONE.code


# --- bad input


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"gain_within": -1.0}, r"gain_within must be a finite number >= 0, got -1\.0\. For a model without it use 0"),
        ({"retention": 1.5}, r"retention must be a number from 0 to 1, got 1\.5"),
        ({"exit_radius": math.inf}, r"exit_radius must be a positive finite number, got inf"),
        ({"batch_radius": 0.0}, r"batch_radius must be a positive finite number, got 0\.0.* use inf"),
        ({"initial_drive": "x"}, r"initial_drive must be a finite number >= 0, got 'x'"),
    ],
)
def test_parameters_are_checked(changes, message):
    with pytest.raises(InputError, match=message):
        model(**changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sync_intervals": [4, 0.5]}, r"sync_intervals must be >= 1, got .* use 1"),
        ({"learning_rates": [1e-3, np.nan]}, r"learning_rates must be positive and finite, got "),
        ({"horizon": math.inf}, r"horizon must be a number >= 1, got inf"),
    ],
)
def test_runs_are_checked(changes, message):
    arguments = {"sync_intervals": [4, 8], "learning_rates": [1e-3, 1e-2], "horizon": 10, **changes}
    with pytest.raises(InputError, match=message):
        persistent_exits(model(), **arguments)

"""The toy of the benchmarks has the solution that they say, and every engine here finds it; nothing is timed."""

import importlib

import numpy as np
import pytest
from scipy.integrate import odeint

from benchmarks import engine, floor, reference, report, toy
from benchmarks.peers.scipy_loop import flow

SOLVER = 10 * toy.RTOL
"""Ten times the rtol of the engines."""
INDEPENDENT = 1e-8
"""Between DOP853 at 1e-13 and a multistep method at 1e-11, whose errors add up over 200 syncs."""
NUM_SETS = 5


def importable(module):
    try:
        return importlib.import_module(module)
    except ImportError:
        return None


HERE = {name: module for name, path in engine.ENGINES.items() if (module := importable(path))}
LOCATING = {name: module for name, module in HERE.items() if hasattr(module, "exits")}


@pytest.fixture(scope="module")
def sets():
    return toy.sets(NUM_SETS)


@pytest.fixture(scope="module")
def ends(sets):
    return reference.ends(sets)


@pytest.fixture(scope="module")
def clocks(sets):
    return reference.clocks(sets, toy.RADIUS)


def by_multistep(sync_interval, learning_rate, gain):
    """x at the end and after every sync, by LSODA in optimizer steps."""
    states, path = np.zeros(2), []
    for _ in range(toy.NUM_SYNCS):
        values = (learning_rate, gain, states[1])
        states = odeint(flow, states, [0.0, sync_interval], args=values, tfirst=True, rtol=1e-11, atol=1e-13)[-1]
        path.append(states[1])
    return np.array(path)


def test_the_reference_is_what_an_independent_method_finds(sets, ends, clocks):
    paths = [by_multistep(*row) for row in sets.rows()]
    np.testing.assert_allclose(ends, [path[-1] for path in paths], rtol=INDEPENDENT)
    cycles = np.array([np.searchsorted(path, toy.RADIUS) for path in paths])
    left = cycles < toy.NUM_SYNCS
    assert 0 < left.sum() < NUM_SETS
    products = sets.sync_interval * sets.learning_rate
    np.testing.assert_array_equal(np.isfinite(clocks), left)
    np.testing.assert_array_equal(np.floor(clocks[left] / products[left]), cycles[left])


def test_without_feedback_x_follows_the_closed_solution():
    """For k = 0 the drive is m = (1 - exp(-t/10))/5 whatever the syncs, and dx = eta*tanh(m) dt."""
    alone = toy.Sets(np.array([7.0]), np.array([0.02]), np.array([0.0]))
    t = np.linspace(0.0, 7.0 * toy.NUM_SYNCS, 400_001)
    speed = 0.02 * np.tanh((toy.PUSH / toy.FADING) * -np.expm1(-toy.FADING * t))
    middle = (t[1] - t[0]) / 3.0 * (speed[0] + 4.0 * speed[1:-1:2].sum() + 2.0 * speed[2:-1:2].sum() + speed[-1])
    np.testing.assert_allclose(reference.ends(alone), middle, rtol=1e-11)


def test_engines_are_here():
    assert {"ours", "ours, with the map", "SciPy RK45, all sets in one state"} <= set(HERE)


@pytest.mark.parametrize("name", HERE)
def test_an_engine_finds_the_end(name, sets, ends):
    np.testing.assert_allclose(HERE[name].run(sets), ends, rtol=SOLVER)


@pytest.mark.parametrize("name", LOCATING)
def test_an_engine_finds_the_exit(name, sets, clocks):
    np.testing.assert_allclose(LOCATING[name].exits(sets, toy.RADIUS), clocks, rtol=SOLVER)


def test_the_sets_are_always_the_same_and_sort_back():
    many = toy.sets()
    np.testing.assert_array_equal(many.gain[:NUM_SETS], toy.sets(NUM_SETS).gain)
    ordered, place = many.by_sync_interval()
    assert np.all(np.diff(ordered.sync_interval) >= 0)
    np.testing.assert_array_equal(ordered.gain[place], many.gain)


def test_a_wrong_end_and_a_wrong_exit_are_counted():
    answer = {"ends": [1.0, 2.0, float("nan")], "clocks": [1.0, float("inf"), 3.3]}
    engine.judge({"it": answer}, np.array([1.0, 2.1, 3.0]), np.array([1.0, 2.0, 3.0]))
    assert (answer["num_sets"], answer["wrong"], answer["error"]) == (3, 2, np.inf)
    assert answer["exits_apart"] == 1
    assert answer["exits_error"] == pytest.approx(0.1)


def test_a_step_has_351_flops():
    """Six right sides of 37, the sums of six stages and of the error for two states, and the norm."""
    assert floor.FLOPS_PER_STEP == 6 * (31 + 6) + 2 * (2 * (1 + 2 + 3 + 4 + 5 + 5) + (2 * 6 - 1)) + 27 == 351


@pytest.mark.parametrize(
    ("value", "text"), [(25312.0, "25,300"), (9.4449, "9.44"), (0.0123456, "0.0123"), (2e-7, "2.0e-07"), (0.0, "0")]
)
def test_numbers_are_written_with_three_digits(value, text):
    assert report.three(value) == text

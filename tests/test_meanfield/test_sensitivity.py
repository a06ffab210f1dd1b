"""Elasticities of thresholds, folds and budgets, against closed forms; every error bar has to hold its error."""

import math

import pytest
import scipy.optimize

from meanfield.engine.cycle_map import cycle_map
from meanfield.engine.sensitivity import (
    Measured,
    budget_elasticities,
    elasticities,
    exit_clock,
    fold_elasticities,
    rest_threshold,
    threshold_elasticities,
)
from meanfield.persistent import PersistentParameters, persistent_exits
from tests.support.cycles import MEMORY, PERSISTENT, RUN, SLOPES
from theory import persistent
from theory.errors import InputError
from theory.models import cycle
from theory.models.builders import lagged_oscillator, persistent_drift, stale_quadratic, two_constraint
from theory.numeric import numpy_function

THRESHOLD = 1e-11
"""A multiplier integrated to 1e-12, over its slope."""
NARROW = 1e-6
"""Width of an error bar over 1 + |elasticity|**3: the square of the narrower step, 1e-6, over 6, times a derivative."""
DRIFT = {"h": 0.0, **SLOPES, "v": 0.7, "sigma": 1.3, "m0": 0.05, "R_batch": 1e9, "R_crit": 0.8}


def assert_holds(found, exact):
    """Every error bar holds the error, and none is wide."""
    assert set(found) == set(exact)
    for name, number in exact.items():
        assert abs(found[name].value - number) <= found[name].error, name
        assert found[name].error < NARROW * (1.0 + abs(number) ** 3), name


def test_a_power_has_its_exponent():
    found = elasticities(
        lambda values: Measured(-2.0 * values["a"] ** 3 / values["b"], 0.0), {"a": -0.3, "b": 7.0, "c": 0.0}, "abc"
    )
    assert_holds(found, {"a": 3.0, "b": -1.0, "c": 0.0})


def test_the_error_bar_holds_the_error_and_falls_with_it():
    """q = exp(x): the elasticity is x, and the differences see the third derivative."""
    for x in (0.1, 1.0, 4.0):
        found = elasticities(lambda values: Measured(math.exp(values["x"]), 0.0), {"x": x}, ["x"])["x"]
        assert 0.0 < abs(found.value - x) <= found.error
    noisy = elasticities(lambda values: Measured(values["x"], 1e-6 * values["x"]), {"x": 2.0}, ["x"])["x"]
    assert 1e-3 < noisy.error < 1e-2  # three times 1e-6 over a step of 2e-3


def test_what_is_no_number_is_said():
    found = elasticities(lambda _values: Measured(math.nan, math.nan), {"x": 1.0}, ["x"])["x"]
    assert math.isnan(found.value)
    assert math.isnan(found.error)
    crossing = elasticities(lambda values: Measured(values["x"] - 1.0, 0.0), {"x": 1.0}, ["x"])["x"]
    assert math.isnan(crossing.value)  # the quantity is zero here


# --- thresholds of the rest


def test_the_threshold_is_the_boundary_of_the_theory():
    values = {"h": 0.0, **SLOPES}
    exact = cycle.boundary_product(PERSISTENT, values) / 4.0
    found = rest_threshold(PERSISTENT, {**values, "sync_interval": 4.0}, along="learning_rate", bracket=(1e-5, 1.0))
    assert abs(found.value - exact) <= found.error < THRESHOLD
    across = rest_threshold(
        PERSISTENT, {**values, "sync_interval": 4.0, "learning_rate": exact}, along="k_s", bracket=(1.0, 100.0)
    )
    assert across.value == pytest.approx(20.0, rel=1e-9)


def test_elasticities_of_the_threshold_are_the_closed_ones():
    values = {"h": 0.0, **SLOPES, "sync_interval": 4.0}
    found = threshold_elasticities(PERSISTENT, values, along="learning_rate", bracket=(1e-5, 1.0))
    exact = cycle.closed_elasticities(persistent_drift())
    numbers = {**DRIFT, "v": 1.0, "sigma": 1.0}
    expected = {
        name: float(exact[name].subs({symbol: numbers[str(symbol)] for symbol in exact[name].free_symbols}))
        for name in ("k_w", "k_s", "rho")
    }
    assert_holds(found, {**expected, "sync_interval": -1.0})


def test_a_flip_and_a_turn_are_thresholds_too():
    quadratic = {"K": 1.7, "f": 0.8, "x0": 0.5, "R_crit": 1.0}
    found = threshold_elasticities(
        stale_quadratic(), {**quadratic, "sync_interval": 1.0}, along="learning_rate", bracket=(0.01, 10.0)
    )
    exact = cycle.elasticities(stale_quadratic(), quadratic)
    assert {name: found[name].value for name in exact} == pytest.approx(exact, abs=1e-7)
    oscillator = {"K": 2.0, "mu": 0.9, "x0": 1.0, "R_crit": 2.0, "learning_rate": 0.01}
    turn = threshold_elasticities(lagged_oscillator(), oscillator, along="sync_interval", bracket=(0.5, 50.0))
    assert_holds(turn, {"K": -1.0, "mu": -9.0, "x0": 0.0, "R_crit": 0.0, "learning_rate": -1.0})


def test_no_threshold_is_none():
    values = {"K": 1.0, "f": 0.4, "x0": 1.0, "R_crit": 2.0, "sync_interval": 1.0}
    assert rest_threshold(stale_quadratic(), values, along="learning_rate", bracket=(0.01, 10.0)) is None
    with pytest.raises(InputError, match="bracket must hold a place where the rest turns"):
        threshold_elasticities(stale_quadratic(), values, along="learning_rate", bracket=(0.01, 10.0))


def test_a_rest_that_is_driven_is_refused():
    values = {"h": -0.1, **SLOPES, "sync_interval": 4.0}
    with pytest.raises(InputError, match=r"must leave the states at rest where they are, got .* Put the signals"):
        rest_threshold(PERSISTENT, values, along="learning_rate", bracket=(1e-5, 1.0))
    with pytest.raises(InputError, match="bracket must be two increasing positive numbers"):
        rest_threshold(PERSISTENT, values, along="learning_rate", bracket=(1.0, 1e-5))


# --- folds


def test_elasticities_of_a_fold_are_those_of_its_closed_form():
    """kappa = 1/(1 - u^2) with h = atanh(u) - kappa*u: d kappa/d h = -1/u, for the map depends on kappa*u + h."""
    h = -0.3
    u = scipy.optimize.brentq(lambda u: math.atanh(u) - u / (1.0 - u**2) - h, 1e-9, 1.0 - 1e-12, xtol=1e-15)
    gain = 1.0 / (1.0 - u**2)
    values = {"h": h, "C": 0.5, **RUN, "sync_interval": 4.0}
    found = fold_elasticities(
        MEMORY,
        values,
        along="learning_rate",
        box={"learning_rate": (0.01, 2.0)},
        start={"u": 0.6, "learning_rate": 0.2},
    )
    assert_holds(found, {"h": -h / (u * gain), "C": 1.0, "sync_interval": -1.0})
    assert len(cycle_map(MEMORY).states) == 1


# --- budgets


def test_the_budget_of_two_constraints_is_a_quotient():
    values = {"G_upd": 1.3, "R_batch": 1e9, "R_crit": 0.77, "sync_interval": 5, "learning_rate": 3e-3}
    found = exit_clock(two_constraint(), values, horizon=1000)
    assert abs(found.value - 0.77 / 1.3) <= found.error + 1e-12
    shares = budget_elasticities(two_constraint(), values, horizon=1000)
    assert_holds(shares, {"G_upd": -1.0, "R_batch": 0.0, "R_crit": 1.0, "learning_rate": 0.0})


def test_a_run_that_stays_has_no_budget():
    values = {"G_upd": 1.3, "R_batch": 1e9, "R_crit": 0.77, "sync_interval": 5, "learning_rate": 3e-3}
    assert math.isnan(exit_clock(two_constraint(), values, horizon=10).value)
    shares = budget_elasticities(two_constraint(), values, horizon=10)
    assert all(math.isnan(item.value) for item in shares.values())


def test_the_budget_of_persistent_drift_moves_as_its_exact_exits_do():
    run = {"sync_interval": 16, "learning_rate": 5e-3}
    values = {**DRIFT, "m0": 0.3}

    def exact(of):
        parameters = PersistentParameters(
            gain_within=of["k_w"] * of["v"] / of["sigma"],
            gain_across=of["k_s"] * of["v"] / of["sigma"],
            retention=of["rho"],
            honest_drive=0.0,
            initial_drive=of["m0"] / of["sigma"],
            exit_radius=of["R_crit"] / of["v"],
            batch_radius=of["R_batch"] / of["v"],
        )
        exits = persistent_exits(parameters, sync_intervals=16, learning_rates=of["learning_rate"], horizon=2000)
        return Measured(float(exits.cumulative_learning_rate), 0.0)

    found = budget_elasticities(persistent_drift(), {**values, **run}, horizon=2000)
    expected = elasticities(exact, {**values, **run}, found)
    assert exact({**values, **run}).value == pytest.approx(
        exit_clock(persistent_drift(), {**values, **run}, horizon=2000).value, rel=1e-10
    )
    for name, item in found.items():
        narrow = [exact({**values, **run, name: {**values, **run}[name] * (1.0 + way)}).value for way in (1e-5, -1e-5)]
        assert item.value == pytest.approx(math.log(narrow[0] / narrow[1]) / 2e-5, abs=1e-6), name
        assert abs(item.value - expected[name].value) <= item.error + expected[name].error, name
        assert item.error < 1e-4
    assert found["k_s"].value < -0.9  # the feedback counts here


def test_a_saturated_budget_is_the_radius_over_the_speed():
    values = {**DRIFT, "m0": 60.0, "rho": 1.0, "sync_interval": 16, "learning_rate": 5e-3}
    found = exit_clock(persistent_drift(), values, horizon=2000)
    assert found.value == pytest.approx(float(numpy_function(persistent.SATURATED_BUDGET)(0.8, 0.7)), rel=1e-11)
    shares = budget_elasticities(persistent_drift(), values, horizon=2000)
    exact = dict.fromkeys(shares, 0.0)
    assert_holds(shares, {**exact, "R_crit": 1.0, "v": -1.0})

"""The slow reference for any drift model, against the exact exits and the exact flow."""

import math

import numpy as np
import pytest
import sympy as sp

from meanfield import results
from meanfield.hybrid import model_phase_diagram, simulate_model
from meanfield.outcomes import Outcome
from meanfield.persistent import Exit, PersistentParameters, persistent_exits
from theory.errors import InputError
from theory.models import formulas
from theory.models.builders import lagged_oscillator, persistent_drift, stale_quadratic, two_constraint
from theory.models.cycle import boundary_product
from theory.models.model import DriftModel, WithinExit
from theory.models.saturation import ALGEBRAIC
from theory.numeric import numpy_function

RUNGE_KUTTA = 5e-6
"""64 steps a cycle in which the drive grows by up to exp(8): (8/64)^4/120 is 2e-6, and a cycle or two of that."""
ORDER = 0.1
"""Slack of a convergence order measured between two step sizes: the next order is still seen."""

VALUES = {
    "h": 0.0,
    "k_w": 8.0,
    "k_s": 20.0,
    "rho": 0.3,
    "v": 1.0,
    "sigma": 1.0,
    "m0": 0.05,
    "R_batch": 0.3,
    "R_crit": 0.8,
}
S = np.array([2.0, 4.0, 16.0, 40.0])
RATES = np.array([1e-3, 3e-3, 1e-2, 2.5e-2])


def reduced(**changes):
    """The same parameters as the exact model takes them, v = sigma = 1."""
    of = {**VALUES, **changes}
    return PersistentParameters(
        gain_within=of["k_w"],
        gain_across=of["k_s"],
        retention=of["rho"],
        honest_drive=of["h"],
        initial_drive=of["m0"],
        exit_radius=of["R_crit"],
        batch_radius=of["R_batch"],
    )


@pytest.mark.parametrize("changes", [{}, {"R_batch": 0.02}, {"h": 0.1, "rho": 0.9}, {"m0": 3.0, "R_batch": 1e9}])
def test_same_exits_as_the_exact_persistent_drift(changes):
    values = {**VALUES, **changes}
    grid = model_phase_diagram(
        persistent_drift(), values, sync_intervals=S, learning_rates=RATES, horizon=400, steps_per_cycle=64
    )
    exact = persistent_exits(reduced(**changes), sync_intervals=S[:, None], learning_rates=RATES, horizon=400)
    np.testing.assert_array_equal(grid.collapse_step.fillna(np.inf), exact.collapse_step)
    np.testing.assert_allclose(
        grid.cumulative_learning_rate_at_exit.fillna(np.inf), exact.cumulative_learning_rate, rtol=RUNGE_KUTTA
    )
    assert len(np.unique(exact.exit)) > 1
    results.check(grid, results.PHASE_DIAGRAM)


@pytest.mark.parametrize(("S", "radius", "code"), [(16, 0.02, Exit.BATCH), (16, 1e9, Exit.REGION), (1, 0.3, Exit.NONE)])
def test_the_run_names_its_exit(S, radius, code):
    values = {**VALUES, "R_batch": radius}
    run = simulate_model(persistent_drift(), values, sync_interval=S, learning_rate=5e-3, horizon=400)
    exact = persistent_exits(reduced(R_batch=radius), sync_intervals=S, learning_rates=5e-3, horizon=400)
    assert run.collapse_step == exact.collapse_step
    assert run.exit == {Exit.BATCH: "batch", Exit.REGION: "region", Exit.NONE: ""}[code]
    assert exact.exit == code.code
    if code is Exit.REGION:
        assert run.states["x"][-1] == pytest.approx(0.8, rel=1e-12)
        assert run.cumulative_learning_rate[-1] == pytest.approx(float(exact.cumulative_learning_rate), rel=1e-4)
    if code is Exit.NONE:
        assert run.cumulative_learning_rate[-1] == pytest.approx(2.0, rel=1e-9)


def drive_error(num_steps):
    """Error of the drive after one open cycle of length 1, against the exact clock."""
    values = {**VALUES, "sigma": 1.3, "v": 0.7, "m0": 0.26, "R_crit": 1e9, "k_w": 6.0}
    run = simulate_model(
        persistent_drift(ALGEBRAIC),
        values,
        sync_interval=math.inf,
        learning_rate=0.01,
        horizon=100,
        steps_per_cycle=num_steps,
    )
    z = (0.26 + 6.0 * run.states["d"][num_steps]) / 1.3
    return float(numpy_function(formulas.ALGEBRAIC_CLOCK)(z, 0.2, 6.0, 0.7, 1.3)) - 1.0


def test_the_flow_converges_to_the_exact_one_with_the_fourth_order():
    errors = np.abs([drive_error(num_steps) for num_steps in (8, 16, 32, 64)])
    orders = np.log2(errors[:-1] / errors[1:])
    np.testing.assert_allclose(orders[-1], 4.0, atol=ORDER)
    assert errors[-1] < 1e-7


@pytest.mark.parametrize("build", [persistent_drift, lambda: persistent_drift(ALGEBRAIC), stale_quadratic])
def test_runs_leave_on_one_side_of_the_boundary_only(build):
    model = build()
    values = {**VALUES, "m0": 1e-6, "R_batch": 1e9}
    if model.name == "stale quadratic":
        values = {"K": 1.7, "f": 0.8, "x0": 0.5, "R_crit": 1.0}
    rate = boundary_product(model, values) / 8
    grid = model_phase_diagram(
        model, values, sync_intervals=[8], learning_rates=rate * np.array([0.97, 1.03]), horizon=8000
    )
    assert grid.outcome.values.tolist() == [[Outcome.STABLE.code, Outcome.COLLAPSED.code]]


def test_the_oscillator_loses_its_damping_on_its_boundary():
    values = {"K": 2.0, "mu": 0.9, "eta": 0.01, "x0": 0.5, "R_crit": 0.6}
    rate = boundary_product(lagged_oscillator(), values) / 5
    assert rate == pytest.approx(0.01)  # eta of the parameters is that of the run
    for factor, outcome in ((0.9, Outcome.STABLE), (1.1, Outcome.COLLAPSED)):
        values["eta"] = rate * factor
        grid = model_phase_diagram(
            lagged_oscillator(), values, sync_intervals=[5], learning_rates=[rate * factor], horizon=2000
        )
        assert grid.outcome.item() == outcome.code


def test_two_constraints_collapse_where_either_radius_is_met():
    values = {"G_upd": 1.0, "R_batch": 0.05, "R_crit": 1.0}
    grid = model_phase_diagram(
        two_constraint(), values, sync_intervals=[2, 5, 20], learning_rates=[1e-3, 4e-3, 2e-2], horizon=400
    )
    assert np.isfinite(grid.collapse_step.values).tolist() == [
        [False, True, True],
        [False, True, True],
        [False, True, True],
    ]
    assert grid.collapse_step.values[:, 1:].tolist() == [[250.0, 50.0], [250.0, 5.0], [20.0, 20.0]]


def test_states_that_stop_being_numbers_are_a_failure_not_a_collapse():
    x = sp.Symbol("x", real=True)
    model = DriftModel("blow-up", (x,), (), (x**3,), (x,), (sp.Integer(2),), (WithinExit("low", -x, sp.Integer(1)),))
    grid = model_phase_diagram(model, {}, sync_intervals=[10], learning_rates=[1.0], horizon=100)
    assert grid.outcome.item() == Outcome.FAILED.code


def test_bad_input_is_refused_before_any_work():
    def call(**changes):
        arguments = {"sync_intervals": [1, 4], "learning_rates": [1e-3], "horizon": 10, **changes}
        model_phase_diagram(persistent_drift(), VALUES, **arguments)

    with pytest.raises(InputError, match="sync_interval must be an integer >= 1 or inf"):
        call(sync_intervals=[0.5])
    with pytest.raises(InputError, match="learning_rates must be a strictly increasing list"):
        call(learning_rates=[2e-3, 1e-3])
    with pytest.raises(InputError, match="learning_rate must be a positive finite number"):
        call(learning_rates=[0.0])
    with pytest.raises(InputError, match="horizon must be an integer >= 1"):
        call(horizon=0)
    with pytest.raises(InputError, match="give every parameter, got none for h"):
        model_phase_diagram(persistent_drift(), {}, sync_intervals=[1], learning_rates=[1e-3], horizon=1)
    oscillator = {"K": 1.0, "mu": 0.9, "eta": 0.01, "x0": 1.0, "R_crit": 2.0}
    with pytest.raises(InputError, match=r"be finite, for the model holds P = S\*eta"):
        simulate_model(lagged_oscillator(), oscillator, sync_interval=math.inf, learning_rate=0.01, horizon=1)


def test_a_run_whose_states_stop_being_numbers_has_failed_and_is_not_called_stable():
    x, a = sp.Symbol("x", real=True), sp.Symbol("a", real=True)
    broken = DriftModel("broken", (x,), (a,), (sp.sqrt(x - a),), (x,), (sp.Integer(0),), (WithinExit("far", x, a),))
    with np.errstate(invalid="ignore"):
        run = simulate_model(broken, {"a": 1.0}, sync_interval=4, learning_rate=0.1, horizon=20)
    assert run.failed
    assert run.exit == ""


def test_a_diagram_says_which_model_and_claims_it_rests_on():
    """Numbers of NumPy are written like any other, once the work is done."""
    values = {**VALUES, "k_w": np.float32(8.0)}
    grid = model_phase_diagram(persistent_drift(), values, sync_intervals=[4], learning_rates=[1e-3], horizon=4)
    assert grid.attrs["claims"] == "C5 C6 C30"
    assert '"model": "persistent drift, tanh"' in grid.attrs["parameters"]
    assert '"k_w": 8.0' in grid.attrs["parameters"]

"""Fixed points of a cycle and what is special about them, against closed forms and a cycle integrated by SciPy."""

import math

import numpy as np
import pytest
import scipy.optimize
import sympy as sp
from scipy.integrate import solve_ivp

from meanfield.engine.branches import Ending, Kind
from meanfield.engine.continuation import Steps
from meanfield.engine.cycle_map import carried_states, cycle_map, variational_model
from meanfield.engine.fixed_points import fixed_point, flip_curve, fold_curve, fold_point, follow, follow_crossing
from tests.support.cycles import MEMORY, PERSISTENT, RUN, SLOPES, C, d, m
from theory.errors import InputError
from theory.models import formulas
from theory.models.builders import lagged_oscillator, stale_quadratic, two_constraint
from theory.models.cycle import boundary_product, numeric_multiplier
from theory.models.model import DriftModel
from theory.numeric import numpy_function

INTEGRATED = 1e-10
"""What is left of 1e-12 a step of the integration in a fixed point away from its folds."""
LOCATED = 1e-8
"""A special point: what is zero there is known to about 1e-10, over its slope."""
BY_DIFFERENCES = 1e-7
"""Central differences of a map integrated to 1e-12 with a step of 1e-4."""

OSCILLATOR = {"K": 2.0, "mu": 0.9, "x0": 1.0, "R_crit": 2.0}
QUADRATIC = {"K": 1.7, "f": 0.8, "x0": 0.5, "R_crit": 1.0}


def kept_product(memory, h):
    """S*eta that leaves this memory as it was: the closed form for v = sigma = 1."""
    return numpy_function(formulas.ALGEBRAIC_FIXED_POINT)(memory, h, 20.0, 8.0, 0.3, 1.0, 1.0)


def memory_fold(h):
    """(u, kappa) of the fold of u = tanh(h + kappa*u) for h < 0, where kappa*(1 - u^2) = 1."""
    u = scipy.optimize.brentq(lambda u: math.atanh(u) - u / (1.0 - u**2) - h, 1e-9, 1.0 - 1e-12, xtol=1e-15)
    return u, 1.0 / (1.0 - u**2)


def memory_branch(h, **changes):
    values = {"h": h, "C": 1.0, **RUN, "learning_rate": 4.0, **changes}
    return follow(MEMORY, values, parameter="learning_rate", box={"learning_rate": (0.1, 8.0)}, start={"u": 0.99})


# --- the map and its derivative


def slow_cycle(model, values, product, states):
    """One cycle with its sync, by SciPy; states by name."""
    numbers = {symbol: values[str(symbol)] for symbol in model.parameters}
    flow = sp.lambdify(model.states, [item.subs(numbers) for item in model.flow])
    sync = sp.lambdify(model.states, [item.subs(numbers) for item in model.sync])
    solved = solve_ivp(lambda _, y: flow(*y), (0.0, product), states, method="DOP853", rtol=1e-13, atol=1e-14)
    return np.array(sync(*solved.y[:, -1]), dtype=float)


def test_the_map_and_its_derivative_are_those_of_a_cycle_integrated_by_scipy():
    values = {"h": -0.2, **SLOPES}
    found = cycle_map(PERSISTENT)
    parameters, products = found.cells({**values, "sync_interval": np.full(5, 5.0), "learning_rate": 0.02})
    memories = np.array([-1.3, -0.2, 0.0, 0.4, 2.0])
    after, slopes = found(memories[None, :], parameters, products)
    step = 1e-4
    for memory, next_memory, slope in zip(memories, after[0], slopes[:, 0, 0], strict=True):
        near = [memory - step, memory, memory + step]
        low, here, high = (slow_cycle(PERSISTENT, values, products[0], [0.0, item])[1] for item in near)
        assert next_memory == pytest.approx(here, abs=INTEGRATED)
        assert slope == pytest.approx((high - low) / (2.0 * step), rel=BY_DIFFERENCES)


def test_what_a_map_carries():
    assert carried_states(PERSISTENT) == (m,)  # a sync sets d to zero
    assert [str(state) for state in carried_states(stale_quadratic())] == ["x", "b"]
    assert cycle_map(MEMORY).states == ("u",)  # and nothing reads x
    assert [str(state) for state in variational_model(PERSISTENT).states] == ["d", "m", "d_per_m", "m_per_m"]


def test_a_corner_has_the_slope_of_one_side():
    kink = DriftModel("kink", (d, m), (C,), (m, sp.Integer(0)), (sp.Integer(0), sp.Max(d, 0) + sp.Abs(m)), (0, 1), ())
    sync = variational_model(kink).sync
    assert not any(item.has(sp.Heaviside, sp.DiracDelta) for item in sync)
    slope = sp.lambdify((d, m, *variational_model(kink).states[2:]), sync[3], modules="numpy")
    assert [slope(2.0, -3.0, 0.5, 1.0), slope(-2.0, 3.0, 0.5, 1.0)] == [-0.5, 1.0]


# --- the memory map: everything is known


@pytest.mark.parametrize("h", [-0.02, -0.3, -0.6])
def test_the_fold_of_the_memory_map_is_the_closed_one(h):
    branch = memory_branch(h)
    (fold,) = branch.special
    memory, gain = memory_fold(h)
    assert fold.kind is Kind.FOLD
    assert abs(fold.location["u"] - memory) <= fold.error["u"] < LOCATED
    assert abs(fold.location["learning_rate"] - gain) <= fold.error["learning_rate"] < 1e-10
    assert fold.residual < 1e-9
    assert fold.multipliers[0] == pytest.approx(1.0, abs=LOCATED)


def test_every_point_of_the_branch_is_a_fixed_point_with_its_multiplier():
    branch = memory_branch(-0.3)
    memory, gain = branch.values["u"], branch.values["learning_rate"]
    np.testing.assert_allclose(np.tanh(-0.3 + gain * memory), memory, atol=INTEGRATED)
    error = np.abs(branch.multipliers[:, 0] - gain * (1.0 - memory**2))
    assert np.all(error <= branch.multiplier_error + 1e-12)
    np.testing.assert_array_equal(branch.stable, gain * (1.0 - memory**2) < 1.0)
    assert {True, False} == set(branch.stable.tolist())
    assert branch.endings == (Ending.EDGE, Ending.EDGE)
    assert gain[0] == pytest.approx(8.0, abs=1e-9)
    assert gain[-1] == pytest.approx(8.0, abs=1e-9)


def test_only_the_product_of_interval_and_rate_counts():
    plain = memory_branch(-0.3)
    values = {"h": -0.3, "C": 0.5, "sync_interval": 20.0, "learning_rate": 0.1}
    box = {"sync_interval": (0.5, 40.0)}
    branch = follow(MEMORY, values, parameter="sync_interval", box=box, start={"u": 0.99})
    gain = branch.special[0].location["sync_interval"] * 0.1 / 0.5
    assert gain == pytest.approx(plain.special[0].location["learning_rate"], rel=1e-10)


def test_a_branch_in_a_parameter_of_the_model_turns_at_both_folds():
    values = {"h": 0.0, "C": 0.5, **RUN}
    branch = follow(MEMORY, values, parameter="h", box={"h": (-1.0, 1.0)}, start={"u": 0.95})
    folds = branch.of_kind(Kind.FOLD)
    memory = math.sqrt(1.0 - 1.0 / 2.0)
    expected = math.atanh(memory) - 2.0 * memory
    np.testing.assert_allclose(sorted(fold.location["h"] for fold in folds), [expected, -expected], rtol=LOCATED)
    np.testing.assert_allclose(branch.values["h"][[0, -1]], [-1.0, 1.0], atol=1e-9)


def test_the_rest_is_left_by_a_pitchfork():
    box = {"learning_rate": (0.1, 3.0)}
    values = {"h": 0.0, "C": 1.0, **RUN, "learning_rate": 0.5}
    rest = follow(MEMORY, values, parameter="learning_rate", box=box, start={"u": 0.0})
    alive = follow(MEMORY, {**values, "learning_rate": 2.0}, parameter="learning_rate", box=box, start={"u": 0.95})
    for branch in (rest, alive):
        (point,) = branch.special
        assert point.kind is Kind.BRANCH
        assert point.location == pytest.approx({"u": 0.0, "learning_rate": 1.0}, abs=LOCATED)
        assert abs(point.location["learning_rate"] - 1.0) <= point.error["learning_rate"] < LOCATED
    np.testing.assert_array_equal(rest.stable, rest.values["learning_rate"] < 1.0)
    assert np.min(alive.values["u"]) < -0.9  # both signs of the memory are one branch


def test_both_curves_that_cross_at_the_pitchfork_are_followed():
    box = {"learning_rate": (0.1, 3.0)}
    values = {"h": 0.0, "C": 1.0, **RUN, "learning_rate": 0.5}
    point = follow(MEMORY, values, parameter="learning_rate", box=box, start={"u": 0.0}).special[0]
    rest, alive = follow_crossing(MEMORY, values, parameter="learning_rate", box=box, point=point)
    assert np.max(np.abs(rest.values["u"])) < INTEGRATED
    np.testing.assert_allclose(rest.values["learning_rate"][[0, -1]], [0.1, 3.0], rtol=1e-9)
    assert alive.values["learning_rate"][[0, -1]] == pytest.approx([3.0, 3.0], rel=1e-9)
    memory = alive.values["u"]
    assert memory.min() < -0.9
    assert memory.max() > 0.9
    np.testing.assert_allclose(np.tanh(alive.values["learning_rate"] * memory), memory, atol=INTEGRATED)
    fold = memory_branch(-0.3).special[0]
    with pytest.raises(InputError, match="point must be one at which two curves cross, got FOLD"):
        follow_crossing(
            MEMORY, {**values, "h": -0.3}, parameter="learning_rate", box={"learning_rate": (0.1, 8.0)}, point=fold
        )


def test_a_fixed_point_with_its_multiplier():
    values = {"h": 0.2, "C": 1.0, **RUN, "learning_rate": 1.5}
    found = fixed_point(MEMORY, values, start={"u": 0.5})
    exact = scipy.optimize.brentq(lambda u: math.tanh(0.2 + 1.5 * u) - u, 0.5, 1.0, xtol=1e-15)
    assert abs(found.location["u"] - exact) <= found.error["u"] < INTEGRATED
    assert abs(found.multipliers[0] - 1.5 * (1.0 - exact**2)) <= found.multiplier_error + 1e-12
    assert found.residual < 1e-12
    oscillator = {**OSCILLATOR, "sync_interval": 5.0, "learning_rate": 0.008}
    pair = fixed_point(lagged_oscillator(), oscillator, start={"x": 0.3, "w": -0.2})
    assert pair.location == pytest.approx({"x": 0.0, "w": 0.0}, abs=1e-9)
    exponents = np.roots([1.0, (1.0 - 0.9 - 2.0 * 0.04) / (0.9 * 0.008), 2.0 / (0.9 * 0.008)])
    np.testing.assert_allclose(np.sort_complex(pair.multipliers), np.sort_complex(np.exp(0.04 * exponents)), rtol=1e-9)
    with pytest.raises(InputError, match="start must lie near a fixed point"):
        fixed_point(MEMORY, values, start={"u": math.nan})


def test_the_curve_of_folds_runs_through_the_cusp():
    fold = memory_branch(-0.3).special[0]
    box = {"learning_rate": (0.1, 8.0), "h": (-5.0, 5.0)}
    values = {"h": -0.3, "C": 1.0, **RUN}
    curve = fold_curve(MEMORY, values, parameters=("learning_rate", "h"), box=box, start=fold.location)
    memory, gain, h = (curve.values[name] for name in ("u", "learning_rate", "h"))
    np.testing.assert_allclose(gain * (1.0 - memory**2), 1.0, atol=INTEGRATED)
    np.testing.assert_allclose(h, np.arctanh(memory) - gain * memory, atol=INTEGRATED)
    (cusp,) = curve.special
    assert cusp.kind is Kind.CUSP
    for name, exact in (("u", 0.0), ("learning_rate", 1.0), ("h", 0.0)):
        assert abs(cusp.location[name] - exact) <= cusp.error[name] < LOCATED
    assert curve.endings == (Ending.EDGE, Ending.EDGE)
    assert h.min() < -2.0
    assert h.max() > 2.0


def test_a_fold_is_found_again_without_a_branch():
    values = {"h": -0.3, "C": 1.0, **RUN}
    box = {"learning_rate": (0.1, 8.0)}
    start = memory_branch(-0.3).special[0].location
    for h in (-0.25, -0.35):
        fold = fold_point(MEMORY, {**values, "h": h}, parameter="learning_rate", box=box, start=start)
        memory, gain = memory_fold(h)
        assert abs(fold.location["u"] - memory) <= fold.error["u"] < LOCATED
        assert abs(fold.location["learning_rate"] - gain) <= fold.error["learning_rate"] < LOCATED
    with pytest.raises(InputError, match="start must lie near a fold"):
        fold_point(MEMORY, {**values, "h": 3.0}, parameter="learning_rate", box=box, start=start)


# --- persistent drift: a flow inside the cycle, and its closed fixed points


def test_fixed_points_of_persistent_drift_are_the_closed_ones():
    h = 0.05
    values = {"h": h, **SLOPES, **RUN, "learning_rate": float(kept_product(1.5, h))}
    box = {"learning_rate": (1e-3, 0.1), "m": (0.0, 3.0)}
    branch = follow(PERSISTENT, values, parameter="learning_rate", box=box, start={"m": 1.5})
    np.testing.assert_allclose(
        branch.values["learning_rate"], kept_product(branch.values["m"], h), rtol=INTEGRATED * 10
    )
    assert branch.special == ()
    assert len(branch.stable) > 20


def test_the_fold_of_persistent_drift_is_the_least_closed_product():
    h = -0.1
    values = {"h": h, **SLOPES, **RUN, "learning_rate": float(kept_product(1.5, h))}
    box = {"learning_rate": (1e-3, 0.1), "m": (-1.0, 3.0)}
    branch = follow(PERSISTENT, values, parameter="learning_rate", box=box, start={"m": 1.5})
    (fold,) = branch.of_kind(Kind.FOLD)
    least = scipy.optimize.minimize_scalar(lambda memory: kept_product(memory, h), bounds=(0.11, 2.0), method="bounded")
    assert fold.location["learning_rate"] == pytest.approx(least.fun, rel=1e-9)
    assert fold.location["m"] == pytest.approx(least.x, rel=1e-4)  # a minimum is flat
    assert 0.0 < fold.error["learning_rate"] < 1e-9


def test_the_folds_of_persistent_drift_meet_on_the_boundary_of_the_theory():
    h = -0.1
    values = {"h": h, **SLOPES, **RUN, "learning_rate": float(kept_product(1.5, h))}
    box = {"learning_rate": (1e-3, 0.1), "m": (-1.0, 3.0), "h": (-1.0, 1.0)}
    fold = follow(PERSISTENT, values, parameter="learning_rate", box=box, start={"m": 1.5}).special[0]
    curve = fold_curve(PERSISTENT, values, parameters=("learning_rate", "h"), box=box, start=fold.location)
    (cusp,) = curve.special
    assert cusp.kind is Kind.CUSP
    product = boundary_product(PERSISTENT, {"h": 0.0, **SLOPES})
    for name, exact in (("learning_rate", product), ("h", 0.0), ("m", 0.0)):
        assert abs(cusp.location[name] - exact) <= cusp.error[name] < LOCATED
    below = curve.values["h"] < -0.01
    for memory, signal, place in zip(
        *(curve.values[name][below][::8] for name in ("m", "h", "learning_rate")), strict=True
    ):
        ends = memory * np.array([0.99, 1.01])
        assert place == pytest.approx(float(kept_product(memory, signal)), rel=1e-9)
        assert np.all(kept_product(ends, signal) > place)


def test_the_rest_of_persistent_drift_branches_on_the_boundary_of_the_theory():
    values = {"h": 0.0, **SLOPES}
    product = boundary_product(PERSISTENT, values)
    box = {"learning_rate": (1e-4, 3.0 * product / 16.0)}
    run = {**values, "sync_interval": 16.0, "learning_rate": product / 32.0}
    branch = follow(PERSISTENT, run, parameter="learning_rate", box=box, start={"m": 0.0})
    (point,) = branch.special
    assert point.kind is Kind.BRANCH
    assert abs(point.location["learning_rate"] - product / 16.0) <= point.error["learning_rate"] < 1e-10
    exact = [numeric_multiplier(PERSISTENT, values, 16.0 * rate) for rate in branch.values["learning_rate"]]
    np.testing.assert_allclose(branch.multipliers[:, 0].real, exact, rtol=INTEGRATED)


# --- other ways to lose stability


def test_the_stale_quadratic_flips_on_its_boundary():
    values = {**QUADRATIC, **RUN, "learning_rate": 0.4}
    box = {"learning_rate": (0.01, 4.0)}
    branch = follow(stale_quadratic(), values, parameter="learning_rate", box=box, start={"x": 0.0, "b": 0.0})
    (flip,) = branch.special
    assert flip.kind is Kind.FLIP
    exact = float(numpy_function(formulas.STALE_BOUNDARY)(1.7, 0.8))
    assert abs(flip.location["learning_rate"] - exact) <= flip.error["learning_rate"] < LOCATED
    assert flip.multipliers[0] == pytest.approx(-1.0, abs=LOCATED)
    expected = numpy_function(formulas.STALE_MULTIPLIER)(branch.values["learning_rate"], 1.7, 0.8)
    np.testing.assert_allclose(branch.multipliers[:, 0], expected, atol=INTEGRATED)
    np.testing.assert_allclose(branch.multipliers[:, 1], 0.0, atol=INTEGRATED)


def test_the_curve_of_flips_is_the_boundary_in_two_parameters():
    values = {**QUADRATIC, **RUN}
    box = {"f": (0.55, 0.95), "learning_rate": (0.01, 10.0)}
    start = {"x": 0.0, "b": 0.0, "learning_rate": float(numpy_function(formulas.STALE_BOUNDARY)(1.7, 0.8))}
    curve = flip_curve(stale_quadratic(), values, parameters=("f", "learning_rate"), box=box, start=start)
    exact = numpy_function(formulas.STALE_BOUNDARY)(1.7, curve.values["f"])
    np.testing.assert_allclose(curve.values["learning_rate"], exact, rtol=LOCATED)
    np.testing.assert_allclose(sorted(curve.values["f"][[0, -1]]), [0.55, 0.95], rtol=1e-9)


def test_the_oscillator_turns_where_its_damping_ends():
    values = {**OSCILLATOR, "sync_interval": 5.0, "learning_rate": 0.008}
    box = {"learning_rate": (0.006, 0.015)}
    branch = follow(lagged_oscillator(), values, parameter="learning_rate", box=box, start={"x": 0.0, "w": 0.0})
    (point,) = branch.special
    assert point.kind is Kind.NEIMARK_SACKER
    assert abs(point.location["learning_rate"] - 0.01) <= point.error["learning_rate"] < LOCATED  # (1 - mu)/(K*S)
    assert np.abs(point.multipliers) == pytest.approx([1.0, 1.0], abs=LOCATED)
    assert abs(point.multipliers[0].imag) > 0.1
    np.testing.assert_array_equal(branch.stable, branch.values["learning_rate"] < 0.01)


def test_few_points_end_a_branch_early():
    values = {"h": -0.3, "C": 1.0, **RUN, "learning_rate": 4.0}
    box = {"learning_rate": (0.1, 8.0)}
    branch = follow(
        MEMORY, values, parameter="learning_rate", box=box, start={"u": 0.99}, steps=Steps(num_points=5)
    )  # fmt: skip
    assert branch.endings == (Ending.POINTS, Ending.POINTS)
    assert len(branch.stable) == 9


def test_what_cannot_be_used_is_refused_before_any_work():
    values = {"h": -0.3, "C": 1.0, **RUN}
    box = {"learning_rate": (0.1, 8.0)}
    start = {"u": 0.9}
    with pytest.raises(InputError, match="two-constraint must carry a state that feeds back across a sync"):
        follow(two_constraint(), {}, parameter="learning_rate", box=box, start=start)
    with pytest.raises(InputError, match=r"values must give every parameter, got none for learning_rate"):
        follow(MEMORY, {"h": 0.0, "C": 1.0, "sync_interval": 1}, parameter="learning_rate", box=box, start=start)
    with pytest.raises(InputError, match=r"values: learning_rate must be positive and finite, got 0\.0"):
        follow(MEMORY, {**values, "learning_rate": 0.0}, parameter="learning_rate", box=box, start=start)
    with pytest.raises(InputError, match="box must name parameters or carried states, got 'speed'"):
        follow(MEMORY, values, parameter="speed", box=box, start=start)
    with pytest.raises(InputError, match="box: C must hold a finite range of what is varied, and its value"):
        follow(MEMORY, values, parameter="C", box=box, start=start)
    with pytest.raises(InputError, match=": C must be >= 0"):
        follow(MEMORY, values, parameter="C", box={"C": (-1.0, 2.0)}, start=start)
    with pytest.raises(InputError, match=r"start must give a number for each of \('u',\), got {'m': 0.0}"):
        follow(MEMORY, values, parameter="learning_rate", box=box, start={"m": 0.0})
    given = {**OSCILLATOR, "eta": 0.01, "sync_interval": 5.0, "learning_rate": 0.008}
    with pytest.raises(InputError, match=r"lagged oscillator: values must name parameters of the model, got 'eta'"):
        cycle_map(lagged_oscillator()).require(given)


def test_the_rest_is_no_start_for_a_curve_of_folds():
    values, box = {"h": 0.0, "C": 1.0, **RUN}, {"learning_rate": (0.1, 8.0), "h": (-5.0, 5.0)}
    with pytest.raises(InputError, match=r"start must not be the rest.*rest_threshold"):
        fold_curve(MEMORY, values, parameters=("learning_rate", "h"), box=box, start={"u": 0.0, "learning_rate": 1.0})

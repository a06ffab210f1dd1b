"""What sympy derives for any model: states, fixed point, multiplier, boundary, elasticities, exits."""

import math

import numpy as np
import pytest
import sympy as sp

from tests.support.tolerances import CLOSED_FORM
from theory import drift, persistent, thresholds
from theory.errors import InputError
from theory.models import formulas, lag
from theory.models.builders import (
    displacement,
    lagged_oscillator,
    persistent_drift,
    stale_quadratic,
    two_constraint,
)
from theory.models.cycle import (
    boundary,
    boundary_product,
    closed_boundaries,
    closed_elasticities,
    counting_states,
    elasticities,
    feeding_states,
    multiplier,
    numeric_multiplier,
)
from theory.models.exits import crossover_lag, exit_clock, saturated_flow
from theory.models.flows import clock_of_drive, fixed_point_product
from theory.models.model import DriftModel
from theory.models.saturation import ALGEBRAIC, ERF, TANH, Saturation
from theory.numeric import numpy_function
from theory.symbols import (
    G_upd,
    K,
    P,
    R_batch,
    R_crit,
    S,
    T,
    c,
    d,
    eta,
    f,
    h,
    k_s,
    k_w,
    m,
    mu,
    rho,
    sigma,
    v,
    z,
    z0,
)

DIFFERENCES = 1e-8
"""A central difference with a relative step of 1e-5, against the derivative."""
HUNDREDTH = 0.005
"""A number that was written down with two digits."""
SATURATIONS = [TANH, ALGEBRAIC, ERF]
VALUES = {
    "h": 0.0,
    "k_w": 8.0,
    "k_s": 20.0,
    "rho": 0.3,
    "v": 0.7,
    "sigma": 1.3,
    "m0": 0.05,
    "R_batch": 0.3,
    "R_crit": 0.8,
}


def decaying():
    """Persistent drift whose memory also decays inside a cycle: no closed boundary."""
    return DriftModel(
        name="decaying memory",
        states=(d, m),
        parameters=(k_w, k_s, rho, v, sigma, c),
        flow=(v * sp.tanh((m + k_w * d) / sigma), -c * m),
        sync=(sp.Integer(0), rho * m + k_s * d),
        start=(sp.Integer(0), sp.Integer(1)),
        exits=(),
    )


DECAYING = {"k_w": 8.0, "k_s": 20.0, "rho": 0.3, "v": 1.0, "sigma": 1.0, "c": 2.0}


# --- states that feed back


def test_states_that_feed_back_and_those_that_only_count():
    assert feeding_states(persistent_drift()) == (d, m)
    assert counting_states(persistent_drift()) == (displacement,)
    assert feeding_states(two_constraint()) == ()
    assert counting_states(stale_quadratic()) == ()


def test_a_state_that_only_a_counter_sees_is_a_counter():
    far = sp.Symbol("far", real=True)
    chain = DriftModel("chain", (d, far), (), (sp.Integer(1), d), (d, far), (sp.Integer(0),) * 2, ())
    assert counting_states(chain) == (d, far)


def test_a_state_that_only_its_own_sync_reads_feeds_back_unless_that_adds_or_resets():
    far, gain = sp.Symbol("far", real=True), sp.Symbol("gain", positive=True)
    for sync, feeds in ((sp.tanh(gain * far), True), (far / 2, True), (far + gain, False), (gain, False)):
        model = DriftModel("alone", (far,), (gain,), (sp.Integer(0),), (sync,), (gain,), ())
        assert feeding_states(model) == ((far,) if feeds else ())
    assert numeric_multiplier(
        DriftModel("map", (far,), (gain,), (sp.Integer(0),), (sp.tanh(gain * far),), (gain,), ()), {"gain": 0.7}, 1.0
    ) == pytest.approx(0.7, rel=CLOSED_FORM)


def test_what_has_no_threshold_says_so():
    with pytest.raises(InputError, match="two-constraint must have a state that feeds back"):
        boundary(two_constraint())


def test_an_origin_that_moves_is_refused():
    model = persistent_drift()
    silent = DriftModel(model.name, model.states, model.parameters, model.flow, model.sync, model.start, model.exits)
    with pytest.raises(InputError, match=r"flow must leave the origin where it is, got .* Name the parameters that"):
        boundary(silent)


# --- persistent drift


@pytest.mark.parametrize("saturation", SATURATIONS, ids=lambda item: item.name)
def test_the_boundary_is_that_of_the_theory_whatever_the_saturation(saturation):
    model = persistent_drift(saturation)
    expected = persistent.BOUNDARY_PRODUCT.expression
    assert sp.simplify(sp.expand_log(boundary(model) - expected, force=True)) == 0
    growth = persistent.GROWTH.expression.subs(eta, P / S)
    assert sp.simplify(multiplier(model) - growth) == 0


def test_its_limits():
    product = boundary(persistent_drift())
    across = sp.limit(product.subs(rho, 0), k_w, 0)
    assert sp.simplify(across - persistent.ACROSS_ONLY_PRODUCT.expression) == 0
    assert across == sigma / (k_s * v)  # noise over feedback slope J = k_s*v, the C of the memory map
    assert sp.simplify(drift.CRITICAL_PRODUCT.expression.subs(drift.J, k_s * v) - across) == 0
    one_slope = product.subs(k_s, rho * k_w)
    assert sp.simplify(one_slope - persistent.ONE_SLOPE_PRODUCT.expression) == 0
    whole = sp.expand_log(sp.simplify(one_slope), force=True)
    assert sp.simplify(whole + sigma * sp.log(rho) / (k_w * v)) == 0
    assert exit_clock(persistent_drift(), "region") == persistent.SATURATED_BUDGET.expression


def test_the_elasticities_of_what_sets_the_scale_are_whole():
    shares = closed_elasticities(persistent_drift())
    assert (shares["v"], shares["sigma"]) == (-1, 1)
    assert sp.simplify(shares["k_w"] + shares["k_s"]) == -1
    assert all(shares[name] == 0 for name in ("m0", "R_batch", "R_crit"))
    assert "h" not in shares


def test_the_implicit_elasticities_are_the_closed_ones():
    found = elasticities(persistent_drift(), VALUES)
    for name, closed in closed_elasticities(persistent_drift()).items():
        number = closed.subs({symbol: VALUES[str(symbol)] for symbol in closed.free_symbols})
        assert found[name] == pytest.approx(float(number), abs=DIFFERENCES)


def test_the_edges_of_the_boundary():
    assert boundary_product(persistent_drift(), {**VALUES, "rho": 1.0}) == 0.0
    assert boundary_product(persistent_drift(), {**VALUES, "rho": 1.5}) == 0.0
    small = boundary_product(persistent_drift(), {**VALUES, "k_w": 1e-6})
    assert small == pytest.approx(0.7 * 1.3 / (20.0 * 0.7), rel=1e-6)  # first order in k_w
    none = boundary_product(persistent_drift(), {**VALUES, "k_w": 0.0})  # 0/0 in the closed form
    assert none == pytest.approx(0.7 * 1.3 / (20.0 * 0.7), rel=CLOSED_FORM)


# --- a boundary without a closed form


def test_an_implicit_boundary_is_where_a_small_memory_is_kept():
    model = decaying()
    assert closed_boundaries(model) is None
    with pytest.raises(InputError, match="decaying memory must have one closed boundary, got none"):
        boundary(model)
    product = boundary_product(model, DECAYING)
    rise, fall = np.exp(8.0 * product), np.exp(-2.0 * product)
    assert 0.3 * fall + 20.0 * (rise - fall) / (8.0 + 2.0) == pytest.approx(1.0, rel=1e-11)
    assert boundary_product(model, DECAYING, bracket=(1e-6, product / 2)) == math.inf
    with pytest.raises(InputError, match="bracket must be two increasing positive numbers"):
        boundary_product(model, DECAYING, bracket=(1.0, 0.5))


def test_implicit_elasticities_are_those_of_the_boundary_solved_again():
    model, step = decaying(), 1e-4
    near = (0.02, 0.05)
    for name, found in elasticities(model, DECAYING, bracket=near).items():
        changed = [{**DECAYING, name: DECAYING[name] * (1 + way)} for way in (step, -step)]
        ends = [boundary_product(model, values, bracket=near) for values in changed]
        assert found == pytest.approx(math.log(ends[0] / ends[1]) / (2 * step), abs=1e-6)


def test_without_decay_it_is_persistent_drift():
    slow = boundary_product(decaying(), {**DECAYING, "c": 1e-9})
    same = numpy_function(persistent.BOUNDARY_PRODUCT)(20.0, 8.0, 0.3, 1.0, 1.0)
    assert slow == pytest.approx(float(same), rel=1e-8)


# --- exact flow and fixed points


def test_the_algebraic_flow_is_the_one_written_down():
    grows = sp.sqrt(1 + z**2) - sp.asinh(1 / z)
    expected = sigma / (k_w * v) * (grows - grows.subs(z, z0))
    assert sp.simplify(formulas.ALGEBRAIC_CLOCK.expression - expected) == 0
    rate = k_w * v / sigma * ALGEBRAIC(z)
    assert sp.simplify(sp.diff(formulas.ALGEBRAIC_CLOCK.expression, z) * rate) == 1


def test_the_tanh_flow_is_that_of_the_theory():
    clock = numpy_function(persistent.CLOCK_OF_DRIFT)(0.4, 0.2, 8.0, 0.7, 1.3)
    ours = clock_of_drive(TANH).subs({z: 0.2 + 8.0 * 0.4 / 1.3, z0: 0.2, k_w: 8.0, v: 0.7, sigma: 1.3})
    assert float(ours) == pytest.approx(float(clock), rel=CLOSED_FORM)


def test_a_saturation_that_sympy_cannot_integrate_says_so():
    with pytest.raises(InputError, match="saturation erf must have an integral of 1/phi"):
        clock_of_drive(ERF)


@pytest.mark.parametrize("saturation", [TANH, ALGEBRAIC], ids=lambda item: item.name)
def test_the_fixed_point_leaves_the_boundary_at_zero_memory(saturation):
    product = fixed_point_product(saturation).subs(h, 0)
    order = (m, k_s, k_w, rho, v, sigma)
    numbers = sp.lambdify(order, product, modules="mpmath")
    found = float(numbers(sp.Float("1e-8", 40), 20.0, 8.0, 0.3, 0.7, 1.3))
    expected = float(numpy_function(persistent.BOUNDARY_PRODUCT)(20.0, 8.0, 0.3, 0.7, 1.3))
    assert found == pytest.approx(expected, rel=1e-7)


# --- stale quadratic


@pytest.mark.parametrize(
    ("share", "constant"),
    [(0.6, 4.02), (0.75, 2.77), (0.9, 2.23), (0.99, 2.02), (1.0, 2.0), (1.2, 1.68), (1.5, 1.39)],
)
def test_the_constants_of_the_stale_quadratic(share, constant):
    found = boundary_product(stale_quadratic(), {"K": 1.0, "f": share, "x0": 1.0, "R_crit": 2.0})
    assert found == pytest.approx(constant, abs=HUNDREDTH)


def test_the_closed_form_of_the_stale_quadratic():
    assert sp.simplify(formulas.STALE_BOUNDARY.expression + sp.log(2 * f - 1) / ((1 - f) * K)) == 0
    assert formulas.WHOLLY_STALE_BOUNDARY.expression == 2 / K
    growth = formulas.STALE_MULTIPLIER.expression
    assert sp.simplify(growth - (sp.exp(-(1 - f) * K * P) - f) / (1 - f)) == 0
    assert sp.limit(growth, f, 1) == 1 - K * P


@pytest.mark.parametrize("share", [0.2, 0.4, 0.5])
def test_a_stale_share_of_up_to_one_half_has_no_boundary(share):
    values = {"K": 1.0, "f": share, "x0": 1.0, "R_crit": 2.0}
    assert boundary_product(stale_quadratic(), values) == math.inf
    assert max(numeric_multiplier(stale_quadratic(), values, product) for product in (0.1, 1.0, 30.0, 1e3)) <= 1.0


@pytest.mark.parametrize("share", [0.6, 0.9, 1.2])
def test_the_flow_is_the_limit_of_many_steps_with_an_error_of_first_order(share):
    """S steps of x -> x - a*((1 - f)*x + f*b) are stable up to a*K = (1 - (2f - 1)^(1/S))/(1 - f)."""
    flow = float(numpy_function(formulas.STALE_BOUNDARY)(1.0, share))
    steps = np.array([1e2, 1e3])
    stepped = steps * (1.0 - (2.0 * share - 1.0) ** (1.0 / steps)) / (1.0 - share)
    errors = np.abs(stepped / flow - 1.0)
    assert np.log10(errors[0] / errors[1]) == pytest.approx(1.0, abs=0.02)


# --- lagged oscillator


def test_the_boundary_of_the_oscillator_is_where_its_damping_ends():
    assert boundary(lagged_oscillator()) == (1 - mu) / K
    values = {"K": 2.0, "mu": 0.9, "eta": 0.01, "x0": 1.0, "R_crit": 2.0}
    found = boundary_product(lagged_oscillator(), values)
    assert found == pytest.approx(0.05, rel=CLOSED_FORM)
    assert numeric_multiplier(lagged_oscillator(), values, 0.99 * found) < 1.0
    assert numeric_multiplier(lagged_oscillator(), values, 1.01 * found) > 1.0


def test_at_a_lag_of_one_step_the_rule_is_exact():
    """z^2 - (1 + mu)*z + mu + eta*K: a pair on the unit circle has the product 1."""
    cosine = (1 + mu) / 2
    turn = cosine + sp.I * sp.sqrt(1 - cosine**2)
    assert sp.expand(turn**2 - (1 + mu) * turn + mu + (1 - mu)) == 0
    omega = math.acos(0.95)
    assert float(numpy_function(lag.LAG_OF_FREQUENCY)(omega, 0.9)) == pytest.approx(1.0, rel=1e-9)
    assert float(numpy_function(lag.LAG_GAIN)(omega, 0.9)) == pytest.approx(0.1, rel=1e-9)


def exact_over_rule(num_lags, momentum):
    from scipy.optimize import brentq

    lags, gains = numpy_function(lag.LAG_OF_FREQUENCY), numpy_function(lag.LAG_GAIN)
    omega = brentq(lambda at: float(lags(at, momentum)) - num_lags, 1e-6, 3.0, xtol=1e-15)
    return float(gains(omega, momentum)) * num_lags / (1.0 - momentum)


@pytest.mark.parametrize(("num_lags", "factor"), [(1, 1.00), (4, 1.06), (8, 1.12), (16, 1.20), (32, 1.30), (128, 1.47)])
def test_how_far_the_rule_is_too_low_at_a_momentum_of_nine_tenths(num_lags, factor):
    assert exact_over_rule(num_lags, 0.9) == pytest.approx(factor, abs=2 * HUNDREDTH)


def test_the_error_at_long_lags_goes_from_none_to_half_pi():
    factor = lag.LONG_LAG_FACTOR.expression
    assert sp.limit(factor, lag.theta, 0) == 1
    assert factor.subs(lag.theta, sp.pi / 2) == sp.pi / 2
    momentum, angle = 1.0 - 1e-4, 1.0
    num_lags = float(numpy_function(lag.LONG_LAG)(angle, momentum))
    assert exact_over_rule(num_lags, momentum) == pytest.approx(angle / math.sin(angle), rel=2e-4)  # order 1/D


# --- exits of saturated drift


@pytest.mark.parametrize("saturation", SATURATIONS, ids=lambda item: item.name)
def test_saturated_drift_has_the_speed_v_whatever_the_saturation(saturation):
    model = persistent_drift(saturation)
    assert saturated_flow(model) == (v, 0, v)
    assert exit_clock(model, "region") == R_crit / v
    assert crossover_lag(model, cycle_end="batch", within="region") == T * R_batch / R_crit


def test_the_two_constraints_are_those_of_the_theory():
    rate = exit_clock(two_constraint(), "batch") / S
    assert sp.simplify(rate - thresholds.STALENESS_RATE.expression) == 0
    assert sp.simplify(exit_clock(two_constraint(), "region") / T - thresholds.HORIZON_RATE.expression) == 0
    crossover = crossover_lag(two_constraint(), cycle_end="batch", within="region")
    assert sp.simplify(crossover - thresholds.CROSSOVER.expression) == 0
    assert exit_clock(two_constraint(), "batch") == R_batch / G_upd


def test_what_does_not_saturate_and_unknown_exits_are_refused():
    with pytest.raises(InputError, match="stale quadratic: flow of x must saturate"):
        saturated_flow(stale_quadratic())
    with pytest.raises(InputError, match=r"exit must be one of the model's, got 'far'\. Known: batch, region"):
        exit_clock(two_constraint(), "far")
    with pytest.raises(InputError, match="exit region must be a CycleEndExit"):
        crossover_lag(two_constraint(), cycle_end="region", within="batch")


def test_a_saturation_of_ones_own_has_the_same_boundary():
    mine = Saturation("arctan", lambda y: 2 / sp.pi * sp.atan(sp.pi / 2 * y))
    assert sp.simplify(boundary(persistent_drift(mine)) - boundary(persistent_drift())) == 0

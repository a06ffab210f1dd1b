"""What a drift model and a saturation accept, and what they refuse in a sentence."""

import math

import numpy as np
import pytest
import sympy as sp

from tests.support.tolerances import CLOSED_FORM
from theory.checks.models import CHECKS
from theory.errors import InputError
from theory.models.builders import persistent_drift
from theory.models.cycle import boundary_product
from theory.models.model import CycleEndExit, DriftModel, WithinExit
from theory.models.saturation import ALGEBRAIC, ERF, TANH, Saturation
from theory.symbols import P

x, w = sp.symbols("x w", real=True)
a = sp.Symbol("a", positive=True)
ZERO, ONE = sp.Integer(0), sp.Integer(1)


def model(**changes):
    parts = {"states": (x,), "parameters": (a,), "flow": (-a * x,), "sync": (x,), "start": (ONE,), "exits": ()}
    return DriftModel(name="mine", **{**parts, **changes})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"flow": (-x, x)}, "mine: flow must hold one expression for each of the 1 states, got 2"),
        ({"sync": ()}, "mine: sync must hold one expression for each"),
        ({"start": (ONE, ONE)}, "mine: start must hold one expression for each"),
        ({"parameters": (a, sp.Symbol("x"))}, r"have names of their own, P and tau kept free, got \['x'\]"),
        ({"parameters": (a, sp.Symbol("P"))}, r"have names of their own, P and tau kept free, got \['P'\]"),
        ({"flow": (w,)}, r"mine: flow must use declared symbols only \(P, a, x\), got \[w\]"),
        ({"flow": (sp.Symbol("a") * x,)}, "two symbols of one name but other assumptions are two symbols"),
        ({"start": (x,)}, r"mine: start must use declared symbols only \(a\), got \[x\]"),
        ({"exits": (WithinExit("far", w, ONE),)}, "mine: exit far: expression must use declared symbols"),
        ({"exits": (CycleEndExit("far", x, x),)}, "mine: exit far: limit must use declared symbols"),
        ({"signals": (w,)}, "mine: signals must use declared symbols"),
    ],
)
def test_a_model_that_does_not_fit_together_is_refused(changes, message):
    with pytest.raises(InputError, match=message):
        model(**changes)


def test_the_product_may_appear_in_the_flow_and_the_sync():
    assert model(flow=(-P * x,), sync=(P * x,)).flow == (-P * x,)


def test_values_come_in_the_order_of_the_parameters():
    assert persistent_drift().parameter_names == ("h", "k_w", "k_s", "rho", "v", "sigma", "m0", "R_batch", "R_crit")
    assert model().numbers({"a": 2}) == (2.0,)
    with pytest.raises(InputError, match=r"mine: values must name parameters of the model, got 'c'\. Known: a\."):
        model().numbers({"a": 1.0, "c": 1.0})
    with pytest.raises(InputError, match="mine: values must give every parameter, got none for a"):
        model().numbers({})
    with pytest.raises(InputError, match="mine: a must be a number, got nan"):
        model().numbers({"a": float("nan")})


@pytest.mark.parametrize(
    ("phi", "message"),
    [
        (lambda y: y, "saturation mine must have the limit 1 at infinity, got oo"),
        (sp.sin, "saturation mine must have the limit 1 at infinity"),
        (lambda y: sp.tanh(2 * y), "saturation mine must have slope 1 at zero, got 2"),
        (lambda y: 2 * sp.tanh(y / 2), "saturation mine must have the limit 1 at infinity, got 2"),
        (lambda y: 1 - sp.exp(-y), "saturation mine must be odd, got"),
    ],
)
def test_what_does_not_saturate_at_one_is_refused_with_its_rule_and_value(phi, message):
    with pytest.raises(InputError, match=message):
        Saturation("mine", phi)


def test_a_saturation_of_ones_own_is_taken():
    mine = Saturation("arctan", lambda y: 2 / sp.pi * sp.atan(sp.pi / 2 * y))
    assert mine(ONE) == 2 / sp.pi * sp.atan(sp.pi / 2)
    softsign = Saturation("softsign", lambda y: y / (1 + sp.Abs(y)))
    assert softsign(-ONE) == -sp.Rational(1, 2)


def test_the_error_function_is_the_mean_sign_of_a_noisy_drive():
    """Mean sign of z + s*noise with s = sqrt(2/pi), the noise for which the slope is one."""
    nodes, weights = np.polynomial.legendre.leggauss(400)
    z = 0.7
    scale = np.sqrt(2.0 / np.pi)
    positive = (nodes + 1.0) / 2.0 * 12.0  # z + s*noise > 0, up to twelve deviations
    density = np.exp(-(((positive - z) / scale) ** 2) / 2.0) / (scale * np.sqrt(2.0 * np.pi))
    share = float(np.sum(weights * density) * 6.0)
    assert float(ERF(sp.Float(z))) == pytest.approx(2.0 * share - 1.0, rel=CLOSED_FORM)


def test_how_fast_they_saturate():
    y = sp.Symbol("y", positive=True)
    assert sp.limit((1 - ALGEBRAIC(y)) * 2 * y**2, y, sp.oo) == 1
    assert sp.limit((1 - TANH(y)) * y**2, y, sp.oo) == 0
    assert sp.limit((1 - ERF(y)) * sp.exp(2 * y), y, sp.oo) == 0


@pytest.mark.parametrize("claim_id", CHECKS)
def test_the_check_of_a_claim_holds(claim_id):
    failed = [comparison for comparison in CHECKS[claim_id]() if not comparison.holds]
    assert failed == []


def test_without_feedback_across_a_sync_nothing_stays_alive_and_a_divisor_of_zero_is_refused():
    values = {"h": 0, "k_w": 1, "k_s": 0, "rho": 0.5, "v": 1, "sigma": 1, "m0": 0, "R_batch": 2, "R_crit": 10}
    assert boundary_product(persistent_drift(), values) == math.inf
    assert boundary_product(persistent_drift(), {**values, "k_s": 0.5, "k_w": 1e-12}) == pytest.approx(1.0, rel=1e-9)
    with pytest.raises(InputError, match="values must leave flow and sync finite"):
        boundary_product(persistent_drift(), {**values, "sigma": 0})


@pytest.mark.parametrize(
    ("value", "rule"), [(-1.0, "be >= 0, got -1.0"), ("2", "be a number, got '2'"), (True, "be a")]
)
def test_a_value_must_be_one_that_its_symbol_allows(value, rule):
    """A negative curvature is none: the boundary of the model would not be that of its formulas."""
    with pytest.raises(InputError, match=f"mine: a must {rule}"):
        model().numbers({"a": value})

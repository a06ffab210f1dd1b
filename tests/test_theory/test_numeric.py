import re

import numpy as np
import pytest

from tests.support.tolerances import CLOSED_FORM
from theory import bias, drift, persistent, thresholds
from theory.formula import Formula
from theory.numeric import numpy_function
from theory.symbols import kappa

FORMULAS = [
    value
    for module in (bias, drift, persistent, thresholds)
    for name, value in sorted(vars(module).items())
    if isinstance(value, Formula)
]


@pytest.mark.parametrize("formula", FORMULAS, ids=lambda formula: formula.name)
def test_numbers_match_sympy(formula):
    rng = np.random.default_rng(len(formula.name))
    above_one = np.array([symbol == kappa for symbol in formula.arguments])  # where the gain's root is real
    for values in rng.uniform(0.1, 0.9, size=(5, len(formula.arguments))) + above_one:
        exact = formula.expression.evalf(30, subs=dict(zip(formula.arguments, values, strict=True)))
        found = numpy_function(formula)(*values)
        assert float(found) == pytest.approx(float(exact), rel=CLOSED_FORM)


def test_arguments_broadcast():
    rates = numpy_function(thresholds.MIN_FORM)(np.array([[1.0], [8.0]]), [10.0, 100.0, 1000.0], 0.02, 0.8)
    assert rates.shape == (2, 3)
    assert rates[1, 0] == 0.02 / 8.0
    assert rates[0, 2] == 0.8 / 1000.0


def test_the_callable_is_cached():
    assert numpy_function(drift.BOUNDARY) is numpy_function(drift.BOUNDARY)


def test_a_wrong_number_of_values_is_refused():
    with pytest.raises(
        ValueError, match=re.escape("values of stability boundary must be one for each of (S, C), got 1.")
    ):
        numpy_function(drift.BOUNDARY)(8.0)

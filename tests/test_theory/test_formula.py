import re

import pytest
import sympy as sp

from theory.formula import Formula
from theory.symbols import C, S, T, eta


def test_equation_and_latex_come_from_the_expression():
    formula = Formula("boundary", eta, C / S, (S, C), "C5")
    assert formula.equation == sp.Eq(eta, C / S, evaluate=False)
    assert formula.latex == r"\eta = \frac{C}{S}"


@pytest.mark.parametrize("arguments", [(S,), (S, C, T), (S, S, C)])
def test_arguments_must_be_the_free_symbols(arguments):
    message = f"arguments of boundary must be the free symbols [C, S], each once, got {list(arguments)}."
    with pytest.raises(ValueError, match=re.escape(message)):
        Formula("boundary", eta, C / S, arguments, "C5")


def test_the_claim_must_exist():
    with pytest.raises(ValueError, match="claim id must be a known id, got 'C0'"):
        Formula("boundary", eta, C / S, (S, C), "C0")

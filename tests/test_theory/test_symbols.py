import re

import pytest
import sympy as sp

from theory import symbols


def test_every_symbol_is_declared_once_and_complete():
    letters = [row.letter for row in symbols.TABLE]
    words = [row.word for row in symbols.TABLE]
    assert len(set(letters)) == len(letters)
    assert len(set(words)) == len(words)
    assert all(row.unit and row.meaning and row.latex for row in symbols.TABLE)


def test_module_names_hold_the_symbols_of_the_table():
    named = {value for value in vars(symbols).values() if isinstance(value, sp.Symbol)}
    assert named == {row.symbol for row in symbols.TABLE}


def test_assumptions_reach_sympy():
    assert symbols.S.is_positive
    assert symbols.h.is_nonnegative
    assert symbols.h.is_positive is None
    assert symbols.j.is_integer
    assert sp.sqrt(symbols.S**2) == symbols.S


def test_unknown_word_lists_the_known_ones():
    with pytest.raises(
        ValueError, match=re.escape("word must be in the symbol table, got 'lagg'. Known words: sync_int")
    ):
        symbols.entry("lagg")


def test_latex_uses_the_letters_of_the_table():
    assert symbols.latex(symbols.R_batch / symbols.eta) == r"\frac{R_{\mathrm{batch}}}{\eta}"

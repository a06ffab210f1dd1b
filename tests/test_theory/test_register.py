"""The register: no claim without a check, no formula that its check would not miss, pages that are the register."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import sympy as sp

from theory import __main__ as command
from theory import derivations, register
from theory.checking import Comparison, close, never_above
from theory.checks import CHECKS
from theory.claims import CLAIMS
from theory.derivations import pages
from theory.numeric import numpy_function
from theory.symbols import TABLE

DOCS = Path(__file__).parents[2] / "docs" / "derivations"


def test_every_claim_has_a_check_and_every_check_says_what_it_does():
    assert list(CHECKS) == [record.id for record in CLAIMS]
    assert [claim_id for claim_id, check in CHECKS.items() if not check.__doc__] == []


@pytest.mark.parametrize("claim_id", register.ids())
def test_the_check_of_every_claim_holds(claim_id):
    comparisons = register.check(claim_id)
    assert comparisons
    assert [one for one in comparisons if not one.holds] == []


@pytest.fixture
def derived():
    """Every formula derived from the true ones, and no compiled form of an altered one left behind."""
    for formula in register.formulas():
        assert formula.expression is not None
    numpy_function.cache_clear()
    yield
    numpy_function.cache_clear()


@pytest.mark.parametrize("formula", register.formulas(), ids=lambda formula: f"{formula.claim_id}-{formula.name}")
def test_an_altered_formula_turns_its_check_red(formula, derived, monkeypatch):
    monkeypatch.setitem(formula.__dict__, "expression", formula.expression * 1.01)
    assert not register.holds(formula.claim_id)


def test_no_formula_holds_a_float():
    """An exact number that became one would be wrong in the 17th digit, and in every simplification."""
    assert [formula.name for formula in register.formulas() if formula.expression.atoms(sp.Float)] == []


def test_a_letter_has_the_same_assumptions_everywhere():
    table = {row.letter: row.symbol for row in TABLE}
    used = {symbol for formula in register.formulas() for symbol in formula.arguments}
    assert {symbol.name for symbol in used if table.get(symbol.name, symbol) != symbol} == set()
    names = [symbol.name for symbol in used]
    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize("seed", ["1", "2"])
def test_the_pages_do_not_depend_on_the_order_of_sets(seed, tmp_path):
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    command_line = [sys.executable, "-m", "theory.derivations", str(tmp_path)]
    assert subprocess.run(command_line, env=environment, check=False).returncode == 0
    assert {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()} == pages()


def test_every_derivation_is_said_in_a_sentence():
    derived = [formula for formula in register.formulas() if callable(formula.right)]
    assert [formula.name for formula in derived if not formula.derivation.endswith(".")] == []


def test_every_formula_of_the_package_is_in_the_register():
    """A module with a Formula at its top that ROOMS forgets would be held by nothing."""
    theory = Path(register.__file__).parent
    holders = {
        str(path.relative_to(theory))
        for path in theory.rglob("*.py")
        if re.search(r"^[A-Z_0-9]+ = Formula\(", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    }
    assert {str(Path(room.__file__).relative_to(theory)) for room in register.ROOMS} == holders


def test_the_pages_are_the_register():
    on_disk = {path.name: path.read_text(encoding="utf-8") for path in DOCS.glob("*.md")}
    assert on_disk == pages()  # else: python -m theory.derivations docs/derivations


def test_the_list_ends_each_line_in_holds(capsys):
    assert command._list() == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(register.ids())
    assert all(line.endswith(" holds") for line in lines)


def test_a_failing_check_gives_exit_code_one_and_says_so(monkeypatch, capsys):
    def broken():
        """Nothing."""
        return (Comparison("one with two", 1.0, 0.5),)

    monkeypatch.setitem(CHECKS, "C4", broken)
    assert command._show("C4") == 1
    assert "one with two: error 1, allowed 0.5: fails" in capsys.readouterr().out
    assert command._list() == 1
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines() if line.endswith("fails")] == ["C4"]


def test_one_claim_in_full():
    shown = subprocess.run([sys.executable, "-m", "theory", "C7"], capture_output=True, text=True, check=False)
    assert shown.returncode == 0, shown.stderr
    for part in (r"\frac{C R}{C T h + R S}", "Assumptions: ", "Source: ours. Status: ours-derived.", ": holds"):
        assert part in shown.stdout


def test_an_unknown_claim_is_refused():
    shown = subprocess.run([sys.executable, "-m", "theory", "C99"], capture_output=True, text=True, check=False)
    assert shown.returncode == 2
    assert shown.stderr.startswith("claim must be a known id, got 'C99'. Known ids: C1, C2")


def test_the_pages_are_written_and_a_file_in_their_place_is_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["derivations", str(tmp_path / "new" / "folder")])
    assert derivations.main() == 0
    assert {path.name for path in (tmp_path / "new" / "folder").iterdir()} == set(pages())
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(sys, "argv", ["derivations", str(tmp_path / "file")])
    assert derivations.main() == 2
    assert capsys.readouterr().err.startswith("folder must be one that can be written, got ")


def test_comparisons_can_fail():
    assert not close("a", 1.01, 1.0, rtol=1e-3).holds
    assert close("a", 0.0, 0.0, rtol=0.0).holds
    assert not close("a", float("nan"), 1.0, rtol=1.0).holds
    assert not never_above("a", [1.0, 3.0], [2.0, 2.0]).holds

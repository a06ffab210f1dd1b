import subprocess
import sys

import pytest

from theory import register
from theory.claims import CLAIMS, claim


def test_ids_are_stable_and_in_order():
    assert [record.id for record in CLAIMS] == [f"C{number}" for number in range(1, len(CLAIMS) + 1)]
    assert claim("C1").title == "law one: the boundary"
    assert claim("C2").title == "law two: the budget"


def test_every_claim_has_a_source_and_assumptions():
    for record in CLAIMS:
        assert record.source.startswith(("arXiv:", "ours")), record.id
        assert record.assumptions, record.id


def test_the_laws_carry_their_verdict_rules():
    assert "contains -1 and excludes -1/2" in claim("C1").verdict_rule
    assert "narrower than 0.5" in claim("C2").verdict_rule
    assert "within a factor 1.5" in claim("C2").verdict_rule
    assert {record.id for record in CLAIMS if record.verdict_rule} == {"C1", "C2", "C9"}


def test_unknown_id_lists_the_known_ones():
    with pytest.raises(ValueError, match=r"claim id must be a known id, got 'C99'\. Known ids: C1, C2, C3"):
        claim("C99")


def test_every_claim_but_the_laws_and_two_sums_has_a_formula():
    """C14 and C15 are held as code: a complex derivative, and a multinomial sum."""
    cited = {formula.claim_id for formula in register.formulas()}
    assert cited == {record.id for record in CLAIMS} - {"C1", "C2", "C14", "C15"}


def test_reading_a_claim_does_not_load_sympy():
    code = "import sys; from theory.claims import claim; claim('C1'); sys.exit('sympy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

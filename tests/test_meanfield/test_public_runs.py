"""Runs that others published: too few for both laws, so the answer must say what is missing."""

from pathlib import Path

import pytest

from meanfield.answer import Question, answer
from meanfield.calibrate import calibrate
from meanfield.runs import read_runs
from meanfield.verdicts import law_one, law_two

FOLDER = Path(__file__).parents[2] / "examples" / "public_runs"
FILES = sorted(path.name for path in FOLDER.glob("*.csv"))


@pytest.mark.parametrize("name", FILES)
def test_no_public_table_gives_more_than_it_has(name):
    runs = read_runs(FOLDER / name)
    assert runs["source"].str.startswith("https://").all()
    found = calibrate(runs)
    assert found.boundary_exponent.estimate is None
    assert found.budget_exponent.estimate is None
    assert (law_one(found).word, law_two(found).word) == ("inconclusive", "inconclusive")
    asked = answer(found, Question(horizon=500, sync_interval=24, learning_rate=1e-6))
    assert asked.query.risk is None
    assert asked.recommendation is None
    assert any("boundary_exponent" in sentence for sentence in asked.missing)
    assert asked.next_runs
    assert f"`{name}`" in (FOLDER / "README.md").read_text(encoding="utf-8")


def test_the_probe_brackets_the_critical_product():
    """S*eta of 1.28e-4 lived and 1.92e-4 died, three seeds each: the estimate lies between."""
    found = calibrate(read_runs(FOLDER / "probe_the_harness.csv"))
    assert 1.28e-4 < found.critical_product.estimate < 1.92e-4
    assert found.critical_product.low < 1.28e-4
    assert found.critical_product.high > 1.92e-4
    assert found.budget.estimate is None
    assert any("has a collapse step" in sentence for sentence in found.missing)


def test_an_on_policy_table_gives_a_ceiling_only():
    found = calibrate(read_runs(FOLDER / "rlvr_dr_grpo.csv"))
    assert 1.5e-5 < found.learning_rate_ceiling.estimate < 2e-5
    assert found.critical_product.estimate is None
    assert any("add a stale arm" in sentence for sentence in found.missing)


def test_unbounded_staleness_is_left_out_with_a_word():
    found = calibrate(read_runs(FOLDER / "areal_naive.csv"))
    assert any("S = inf" in warning for warning in found.warnings)
    assert any("degraded runs (4) count as unstable" in warning for warning in found.warnings)
    assert found.brackets[-1].largest_stable is None

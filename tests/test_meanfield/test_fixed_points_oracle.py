"""Fixed points of smooth models against jaxcont and AUTO: tests/support/continuation_oracle.json."""

import json
from pathlib import Path

import numpy as np
import pytest
import sympy as sp

from meanfield.engine.branches import Kind
from meanfield.engine.continuation import Steps
from meanfield.engine.cycle_map import cycle_map
from meanfield.engine.fixed_points import fold_curve, follow
from tests.support.cycles import MEMORY, RUN
from theory.models.model import DriftModel

LOCATED = 1e-8
"""A special point: what is zero there is known to about 1e-10, over its slope."""
ORACLE = json.loads((Path(__file__).parents[1] / "support" / "continuation_oracle.json").read_text())
AUTO_HOPF = 1e-8
"""AUTO locates a Hopf point to its epss of 1e-10 in a step of 0.01; jaxcont is closer."""
SAG = 1e-4
"""Distance of a curve from its chord: a step of 0.004 of a range of 3, squared, over 8, at a curvature up to 5."""
AUTO_EIGENVALUE = 1e-6
"""AUTO's points are met to 1e-7, and a multiplier above 1 is given to as many digits."""
FINE = Steps(first=0.004, largest=0.004, num_points=5000)

p, a, b = sp.symbols("p a b", real=True)
g, c = sp.symbols("g c", positive=True)
PAIR = DriftModel(
    name="two states that a sync leaves alone",
    states=(a, b),
    parameters=(p, g, c),
    flow=(sp.tanh(p + g * a - b) - a, c * (a - b)),
    sync=(a, b),
    start=(sp.Integer(0), sp.Integer(0)),
    exits=(),
)
PAIR_RUN = {"p": 1.0, **ORACLE["pair"]["values"], **RUN}
PAIR_BOX = {"p": (-1.0, 1.5), "a": (-1.5, 1.5), "b": (-1.5, 1.5)}


def distance(points, line):
    """Largest distance of points, shape (n, 2), from a line through points, shape (k, 2)."""
    begin, along = line[:-1], np.diff(line, axis=0)
    share = np.einsum("nkd,kd->nk", points[:, None] - begin, along) / np.sum(along**2, axis=1)
    near = begin + np.clip(share, 0.0, 1.0)[:, :, None] * along
    return np.linalg.norm(points[:, None] - near, axis=2).min(axis=1).max()


@pytest.mark.parametrize("oracle", ["jaxcont", "auto"])
def test_the_memory_map_folds_where_equilibria_of_others_do(oracle):
    theirs = ORACLE["memory"][oracle]
    values = {"h": -0.3, "C": 1.0, **RUN, "learning_rate": 7.0}
    box = {"learning_rate": (0.1, 7.5), "u": (-1.0, 1.5)}
    branch = follow(MEMORY, values, parameter="learning_rate", box=box, start={"u": 1.0}, steps=FINE)
    (fold,) = theirs["special"]
    assert branch.special[0].location["learning_rate"] == pytest.approx(fold["parameter"], rel=1e-11)
    assert branch.special[0].location["u"] == pytest.approx(fold["states"][0], rel=1e-8)
    rows = np.array([row[:2] for row in theirs["branch"] if row[0] < 7.4])
    assert len(rows) > 20
    ours = np.column_stack([branch.values["learning_rate"], branch.values["u"]])
    assert distance(rows, ours) < SAG


@pytest.mark.parametrize("oracle", ["jaxcont", "auto"])
def test_folds_and_turns_of_a_smooth_model_are_those_of_others(oracle):
    theirs = ORACLE["pair"][oracle]
    branch = follow(PAIR, PAIR_RUN, parameter="p", box=PAIR_BOX, start={"a": 0.98, "b": 0.98}, steps=FINE)
    for kind, name in ((Kind.FOLD, "fold"), (Kind.NEIMARK_SACKER, "hopf")):
        found = sorted((item.location["p"], item.error["p"], item.location["a"]) for item in branch.of_kind(kind))
        expected = sorted((item["parameter"], item["states"][0]) for item in theirs["special"] if item["kind"] == name)
        assert len(found) == len(expected) == 2
        for (place, bar, state), (their_place, their_state) in zip(found, expected, strict=True):
            assert abs(place - their_place) <= bar + AUTO_HOPF
            assert state == pytest.approx(their_state, abs=AUTO_HOPF)
            assert 0.0 < bar < 1e-8
    rows = np.array([row[:2] for row in theirs["branch"] if row[0] > -1.0])
    assert len(rows) > 30
    assert distance(rows, np.column_stack([branch.values["p"], branch.values["a"]])) < SAG


def test_two_real_multipliers_of_product_one_are_no_turn():
    """With c = 1 the trace is zero at tanh' = 0.8, between the folds at 2/3, where the determinant is negative."""
    values = {**PAIR_RUN, "c": 1.0}
    branch = follow(PAIR, values, parameter="p", box=PAIR_BOX, start={"a": 0.98, "b": 0.98})
    products = np.prod(branch.multipliers, axis=1).real
    assert products.min() < 1.0 < products.max()
    assert [item.kind for item in branch.special] == [Kind.FOLD, Kind.FOLD]


def test_multipliers_of_a_smooth_model_are_the_exponentials_of_its_eigenvalues():
    rows = np.array(ORACLE["pair"]["auto"]["branch"])
    found = cycle_map(PAIR)
    parameters, products = found.cells({**PAIR_RUN, "p": rows[:, 0]})
    after, jacobians = found(rows[:, 1:3].T, parameters, products)
    np.testing.assert_allclose(after.T, rows[:, 1:3], atol=AUTO_EIGENVALUE)
    moduli = np.sort(np.abs(np.linalg.eigvals(jacobians)), axis=1)
    np.testing.assert_allclose(moduli, rows[:, 3:], rtol=AUTO_EIGENVALUE)


def test_the_curve_of_folds_is_that_of_auto():
    rows = np.array([row for row in ORACLE["pair"]["auto"]["folds"] if row[0] < 1.4])
    fold = follow(PAIR, PAIR_RUN, parameter="p", box=PAIR_BOX, start={"a": 0.98, "b": 0.98}).of_kind(Kind.FOLD)[0]
    box = {**PAIR_BOX, "g": (1.0, 5.0)}
    curve = fold_curve(PAIR, PAIR_RUN, parameters=("p", "g"), box=box, start=fold.location, steps=FINE)
    assert [item.kind for item in curve.special] == [Kind.CUSP]
    assert curve.special[0].location == pytest.approx({"p": 0.0, "g": 2.0, "a": 0.0, "b": 0.0}, abs=LOCATED)
    assert len(rows) > 10
    assert distance(rows, np.column_stack([curve.values["p"], curve.values["g"]])) < SAG


# --- what cannot be used, and what ends early

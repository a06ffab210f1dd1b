"""Drift metrics: the Gaussian dictionary, sequences, samples, and what one metric says about another."""

import numpy as np
import pytest
import sympy as sp

from tests.support.tolerances import CLOSED_FORM, ROUNDED
from theory import metrics as formulas
from theory.checks.metrics import CHECKS, exact_metrics
from theory.conversions import INEQUALITIES, METRICS, convert, gaussian_width
from theory.errors import InputError
from theory.metrics import metrics
from theory.numeric import numpy_function
from theory.symbols import s

HUNDREDTH = ROUNDED / 100
"""A number that was written down with two digits."""
ROOT = 1e-9
"""A root found to 1e-14 in the width, and the loss where a metric is nearly flat in it."""
SLACK = 1e-9
"""Rounding of metrics that were computed from probabilities of 1e-9."""
SAMPLED = 0.02
"""200 000 samples of a width of 0.2: the standard error of each metric is below 0.5 %."""


@pytest.mark.parametrize("claim_id", CHECKS)
def test_every_check_holds(claim_id):
    assert [comparison for comparison in CHECKS[claim_id]() if not comparison.holds] == []


def test_the_dictionary_by_heart():
    assert sp.expand(formulas.GAUSSIAN_M2.expression - s**2 - s**4 / 4) == 0
    assert formulas.GAUSSIAN_KL.expression == formulas.GAUSSIAN_LEARNER_KL.expression == s**2 / 2
    assert sp.simplify(formulas.GAUSSIAN_ESS.expression * (1 + formulas.GAUSSIAN_CHI_SQUARE.expression)) == 1
    assert sp.limit(formulas.GAUSSIAN_TV.expression / s, s, 0) == 1 / sp.sqrt(2 * sp.pi)
    clipped = numpy_function(formulas.GAUSSIAN_CLIP)([0.1, 0.2, 0.5], 0.2, 0.2)
    np.testing.assert_allclose(clipped, [0.045, 0.31, 0.69], atol=HUNDREDTH)


def test_the_budget_of_the_second_moment():
    found = convert("second_moment", 0.04)
    assert gaussian_width("second_moment", 0.04) == pytest.approx(0.2, abs=HUNDREDTH)
    assert found["kl"].estimate == pytest.approx(0.02, abs=ROUNDED / 1000)
    assert found["ess"].estimate == pytest.approx(0.96, abs=HUNDREDTH)
    assert found["kl"].high == pytest.approx(0.2, rel=CLOSED_FORM)
    assert found["chi_square"].high == np.inf  # a rare large ratio hides from M2


def gaussian_values(width, clip=(0.2, 0.2)):
    names = ("KL", "LEARNER_KL", "M2", "CHI_SQUARE", "ESS", "TV", "CLIP")
    found = [getattr(formulas, f"GAUSSIAN_{name}") for name in names]
    values = [float(numpy_function(each)(width, *(clip if len(each.arguments) == 3 else ()))) for each in found]
    return dict(zip(METRICS, values, strict=True))


@pytest.mark.parametrize("width", [0.05, 0.2, 1.0, 3.0])
@pytest.mark.parametrize("metric", METRICS)
def test_a_gaussian_pair_comes_back_and_keeps_every_bound(metric, width):
    values = gaussian_values(width)
    assert gaussian_width(metric, values[metric]) == pytest.approx(width, rel=1e-6)
    for name, found in convert(metric, values[metric]).items():
        assert found.estimate == pytest.approx(values[name], rel=1e-5), name
        assert found.low * (1 - ROOT) <= values[name] <= found.high * (1 + ROOT), name


def test_a_clip_fraction_belongs_to_one_width_unless_the_clip_is_lopsided():
    widths = np.geomspace(0.02, 20.0, 2000)
    even, lopsided = (numpy_function(formulas.GAUSSIAN_CLIP)(widths, *clip) for clip in ((0.2, 0.28), (0.9, 0.1)))
    assert np.all(np.diff(even) >= -1e-15)  # one rounding near 1
    assert np.any(np.diff(lopsided) < -1e-5)
    first = gaussian_width("clip_fraction", 0.31, epsilon=0.9, epsilon_high=0.1)
    assert first <= widths[lopsided > 0.31][0]


@pytest.mark.parametrize("seed", range(40))
def test_no_pair_of_policies_is_out_of_the_bounds(seed):
    generator = np.random.default_rng(seed)
    behaviour, other = generator.dirichlet(np.full(2 + seed % 6, 10.0 ** generator.uniform(-0.7, 1)), size=2) + 1e-9
    behaviour, other = behaviour / behaviour.sum(), other / other.sum()
    mix = 10.0 ** generator.uniform(-3, 0)
    learner = (1 - mix) * behaviour + mix * other
    low, high = sorted(generator.uniform(0.05, 0.5, size=2))
    true = exact_metrics(learner, behaviour, low)
    ratio = learner / behaviour
    true["clip_fraction"] = float(behaviour @ ((ratio < 1 - high) | (ratio > 1 + low)))
    for metric in METRICS:
        for name, found in convert(metric, true[metric], epsilon=high, epsilon_high=low).items():
            assert found.low * (1 - SLACK) - SLACK <= true[name] <= found.high * (1 + SLACK) + SLACK, (metric, name)


@pytest.mark.parametrize("value", [1e-18, 1e-12, 1e-6])
def test_bounds_survive_rounding_where_policies_nearly_agree(value):
    assert convert("kl", value)["total_variation"].high == pytest.approx(np.sqrt(value / 2), rel=1e-5)
    assert convert("chi_square", value)["kl_learner"].high == pytest.approx(value, rel=1e-5)


def test_the_divergence_under_the_behaviour_has_no_bound_from_chi_square():
    """An outcome that the learner gives up: chi^2 stays, KL(b||theta) does not."""
    behaviour = np.array([0.5, 0.5])
    ends = [exact_metrics(np.array([tiny, 1 - tiny]), behaviour, 0.2) for tiny in (1e-3, 1e-9)]
    assert ends[1]["kl"] > 9.0 > 1.0 >= ends[1]["chi_square"]
    assert ends[1]["kl"] > np.log1p(ends[1]["chi_square"]) > ends[1]["kl_learner"] * (1 - SLACK)
    assert convert("chi_square", 1.0)["kl"].high == np.inf


def test_every_inequality_grows_and_starts_at_zero():
    for rule in INEQUALITIES:
        clip = (0.2,) if len(rule.formula.arguments) == 2 else ()
        values = numpy_function(rule.formula)(np.linspace(0.0, 0.9, 10), *clip)
        assert values[0] == 0.0
        assert np.all(np.diff(values) > 0.0)


def test_a_gaussian_sample_shows_the_dictionary_by_token_and_by_sequence():
    width, length = 0.2, 4
    delta = np.random.default_rng(3).normal(-(width**2) / 2, width, size=(200_000, length))
    found = metrics(delta)
    for level, size in ((found.token, width), (found.sequence, width * np.sqrt(length))):
        values = gaussian_values(size)
        sampled = (level.kl_k3, level.kl_learner, level.second_moment, level.chi_square, level.ess)
        np.testing.assert_allclose(sampled, [values[name] for name in METRICS[:5]], rtol=SAMPLED)
        assert level.kl_k1 == pytest.approx(values["kl"], rel=SAMPLED)
        assert level.total_variation == pytest.approx(values["total_variation"], rel=SAMPLED)
        assert level.clip_fraction == pytest.approx(values["clip_fraction"], rel=SAMPLED)
    assert (found.token.count, found.sequence.count) == (800_000, 200_000)
    assert found.sequence.kl_k1 == pytest.approx(length * found.token.kl_k1, rel=CLOSED_FORM)


def test_tokens_under_the_behaviour_cannot_be_coherent_at_first_order():
    """Given the prefix the mean ratio is 1, so a small shift has uncorrelated tokens: M2 adds, it is not squared."""
    generator, small, length = np.random.default_rng(4), 1e-3, 5
    behaviour, delta, squares = np.ones(1), np.zeros(1), 0.0
    for _ in range(length):
        given = generator.dirichlet(np.ones(3), size=behaviour.size)
        shifted = given * (1 + small * np.array([1.0, 0.0, -1.0]))
        step = np.log(shifted / shifted.sum(axis=1, keepdims=True) / given)
        squares += float((behaviour[:, None] * given * step**2).sum())
        behaviour, delta = (behaviour[:, None] * given).ravel(), (delta[:, None] + step).ravel()
    assert float(behaviour @ delta**2) == pytest.approx(squares, rel=10 * small)


def test_a_mask_leaves_out_what_is_under_it():
    delta = np.array([[0.3, -0.1, np.nan], [0.2, np.inf, -np.inf]])
    mask = np.array([[True, True, False], [True, False, False]])
    found = metrics(delta, mask=mask)
    assert found.token == metrics([[0.3], [-0.1], [0.2]]).token
    assert found.sequence.kl_k1 == pytest.approx(-0.2, rel=CLOSED_FORM)
    assert found.sequence.count == 2


def test_equal_policies_and_far_ones():
    same = metrics(np.zeros((3, 2))).token
    assert (same.ess, same.chi_square, same.clip_fraction, same.kl_k3) == (1.0, 0.0, 0.0, 0.0)
    far = metrics([[500.0, 500.0], [0.0, 0.0]]).sequence
    assert far.chi_square == np.inf
    assert far.ess == pytest.approx(0.5)


def test_the_clip_may_have_two_widths():
    delta = np.log([[1.25, 1.35, 0.75, 0.85]])
    assert metrics(delta, epsilon=0.2).token.clip_fraction == 0.75
    assert metrics(delta, epsilon=0.2, epsilon_high=0.28).token.clip_fraction == 0.5


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: convert("k2", 0.1),
            r"metric must be one of kl, kl_learner, second_moment, .* got 'k2'",
        ),
        (lambda: convert("kl", -0.1), r"kl must be finite and >= 0, got -0.1\. A mean of k1"),
        (lambda: convert("kl", float("nan")), r"kl must be finite and >= 0, got nan"),
        (lambda: convert("ess", 0.0), r"ess must be in \(0, 1\], got 0.0\. Divide"),
        (lambda: convert("ess", 64.0), r"ess must be in \(0, 1\], got 64.0"),
        (lambda: convert("total_variation", 1.1), r"total_variation must be in \[0, 1\], got 1.1"),
        (lambda: convert("clip_fraction", 30.0), r"clip_fraction must be in \[0, 1\], got 30.0"),
        (lambda: convert("kl", 0.1, epsilon=1.0), r"epsilon must be in \(0, 1\), got 1.0"),
        (lambda: metrics([[0.1]], epsilon_high=0.0), r"epsilon_high must be positive and finite, got 0.0"),
        (lambda: metrics([0.1]), r"log_ratio must have the shape \(n, L\), got \(1,\)"),
        (lambda: metrics([[0.1, np.nan]]), r"log_ratio\[0, 1\] must be finite, got nan\. Mask padding"),
        (lambda: metrics([[0.1, 0.2]], mask=[[1, 0]]), r"mask must be boolean with the shape of log_ratio, got int64"),
        (lambda: metrics([[0.1], [0.2]], mask=[[True], [False]]), r"mask must keep a token of every .* none in row 1"),
    ],
)
def test_bad_input_says_what_must_hold(call, message):
    with pytest.raises(InputError, match=message):
        call()

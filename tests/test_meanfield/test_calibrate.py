import numpy as np
import pandas as pd
import pytest

from meanfield.boundary import SCALE_RANGE
from meanfield.budget import SCATTER_RANGE
from meanfield.calibrate import calibrate
from meanfield.combination import Combination, decide, two_horizons
from meanfield.estimate import Estimate
from meanfield.observations import observe
from meanfield.verdicts import law_one, law_two
from tests.support.sweeps import INTERVALS, draw_sweep
from theory.errors import InputError

UNIT_SCALING = 1e-3
"""Scaling the rates moves every number by the same factor up to ties in the drawing of atoms: below a 1/1000."""
NUM_SWEEPS = 64
FEWEST_HITS = 48
"""Fewest of 64 intervals of 90 % that may contain the truth: P(Binomial(64, 0.9) < 48) = 2e-4, and 8e-4 for
the four numbers together (Bonferroni)."""


def test_a_sweep_of_known_laws_is_recovered_with_ceiling():
    """Intervals of 99.9 %: a false alarm in one of these five numbers has a chance below 1/200."""
    runs = draw_sweep(40, ceiling=0.012, intervals=(1.0, *INTERVALS), num_seeds=4)
    found = calibrate(runs, confidence=0.999)
    for estimate, truth, width in (
        (found.critical_product, 0.05, 0.8),
        (found.budget, 0.7, 0.3),
        (found.learning_rate_ceiling, 0.012, 1.2),
    ):
        assert estimate.identified
        assert estimate.low < truth < estimate.high
        assert np.log(estimate.high / estimate.low) < width
    assert found.boundary_exponent.contains(-1.0)
    assert found.boundary_exponent.high - found.boundary_exponent.low < 0.9
    assert found.budget_exponent.contains(-1.0)
    assert found.reference_sync_interval == pytest.approx(np.sqrt(128.0))
    # at S = 2 the law lies at twice the ceiling, so no collapse there is owed to staleness
    assert [S for S, _ in found.interval_budgets] == [S for S in INTERVALS if S > 2]
    assert law_one(found).word == "supported"
    assert law_two(found).word == "supported"


def test_intervals_cover_what_the_sweeps_were_drawn_from():
    """Parameters drawn from the priors, so that 90 % intervals cover in 90 % of the sweeps if all is right."""
    hits = np.zeros(4)
    for seed in range(NUM_SWEEPS):
        rng = np.random.default_rng(10_000 + seed)
        exponent = rng.uniform(0.3, 1.7)
        product = 0.05 * np.exp(rng.uniform(-0.5, 0.5))
        scale = np.exp(rng.uniform(*np.log(SCALE_RANGE)))
        scatter = np.exp(rng.uniform(*np.log(SCATTER_RANGE)))
        runs = draw_sweep(
            seed,
            critical_product=product,
            exponent=exponent,
            scale=scale,
            scatter=scatter,
            num_seeds=1,
            steps=(200_000,),
        )
        found = calibrate(runs)
        rate = Estimate.from_atoms(np.exp(found.boundary.log_rate), confidence=0.9)
        hits += [
            rate.contains(product / np.sqrt(128.0)),
            found.boundary_exponent.contains(-exponent),
            found.budget.contains(0.7),
            found.budget_exponent.contains(-1.0),
        ]
    assert np.all(hits >= FEWEST_HITS), hits


def test_exponent_one_half_is_not_supported():
    found = calibrate(draw_sweep(2, exponent=0.5, num_seeds=4))
    verdict = law_one(found)
    assert verdict.word == "not supported"
    assert "excludes -1." in verdict.sentence
    assert verdict.numbers["exponent_high"] > -0.7
    assert not found.critical_product.identified
    assert any("the boundary exponent excludes -1" in warning for warning in found.warnings)
    assert law_two(found).word == "supported"


def test_a_wide_exponent_is_inconclusive_and_a_missing_one_too():
    wide = calibrate(draw_sweep(5, scale=0.5, num_seeds=1, intervals=(8.0, 16.0, 32.0)))
    assert law_one(wide).word == "inconclusive"
    assert "contains both -1 and -1/2" in law_one(wide).sentence
    missing = calibrate(draw_sweep(3, intervals=(8.0,)))
    assert law_one(missing).sentence == "The boundary exponent is not identified by these runs."


def with_times(seed, slope, *, factor=1.0):
    """A sweep whose collapse times follow eta^-slope, those at S >= 16 times `factor`."""
    runs = draw_sweep(seed, scatter=0.1, num_seeds=4)
    times = 700.0 * (runs["learning_rate"] / 1e-3) ** -slope * np.where(runs["sync_interval"] >= 16, factor, 1.0)
    rng = np.random.default_rng(seed)
    times = np.ceil(times * np.exp(0.1 * rng.normal(size=len(runs))))
    return runs.assign(collapse_step=times.where(runs["outcome"] == "collapsed"))


def test_collapses_above_the_ceiling_do_not_move_the_budget():
    """They come at once, where S = 1 is unstable too; with them the slope would be far from -1."""
    runs = draw_sweep(40, ceiling=0.012, intervals=(1.0, *INTERVALS), num_seeds=4)
    at_once = (runs["learning_rate"] > 0.02) & (runs["outcome"] == "collapsed")
    assert at_once.sum() > 20
    moved = runs.copy()
    moved.loc[at_once, "collapse_step"] = 2.0
    before, after = calibrate(runs), calibrate(moved)
    assert after.budget == before.budget
    assert after.budget_exponent == before.budget_exponent
    assert after.budget_exponent.contains(-1.0)
    assert any("collapses above the learning-rate ceiling" in warning for warning in after.warnings)
    without_arm = calibrate(moved[moved["sync_interval"] > 1])
    assert not without_arm.budget_exponent.contains(-1.0)


def test_law_two_has_every_verdict():
    steep = law_two(calibrate(with_times(4, 0.6)))
    assert (steep.word, "excludes -1" in steep.sentence) == ("not supported", True)
    uneven = law_two(calibrate(with_times(5, 1.0, factor=1.7)))
    assert uneven.word in {"inconclusive", "not supported"}
    assert uneven.numbers["budget_ratio"] > 1.5
    few = law_two(calibrate(draw_sweep(6, num_seeds=1, scatter=1.0, intervals=(8.0, 64.0))))
    assert (few.word, "too wide to tell" in few.sentence) == ("inconclusive", True)
    alone = law_two(calibrate(draw_sweep(7, intervals=(32.0,), num_seeds=4, scatter=0.1)))
    assert (alone.word, "fewer than two S" in alone.sentence) == ("inconclusive", True)
    none = law_two(calibrate(draw_sweep(8, rates=(1e-7, 2e-7))))
    assert none.sentence == "The budget exponent is not identified by these runs."


def test_budgets_that_differ_by_interval_are_said():
    """An S-dependent budget with the slope at -1: drawn with the same rates at every S, so that they separate."""
    runs = draw_sweep(9, scatter=0.05, num_seeds=6, critical_product=1e-4, rates=(3e-3, 1e-2, 3e-2))
    factor = np.where(runs["sync_interval"] >= 16, 2.0, 1.0)
    runs = runs.assign(collapse_step=np.ceil(runs["collapse_step"] * factor))
    verdict = law_two(calibrate(runs))
    assert verdict.word == "inconclusive"
    assert "but the budgets at each S lie within a factor" in verdict.sentence


def summary(found):
    estimates = (
        found.critical_product,
        found.budget,
        found.learning_rate_ceiling,
        found.boundary_exponent,
        found.budget_exponent,
    )
    return np.array([[one.estimate, one.low, one.high] for one in estimates])


def test_the_order_of_the_rows_changes_nothing():
    runs = draw_sweep(21, ceiling=0.012, intervals=(1.0, *INTERVALS))
    shuffled = runs.sample(frac=1.0, random_state=5).reset_index(drop=True)
    assert np.array_equal(summary(calibrate(runs)), summary(calibrate(shuffled)))


def test_the_unit_of_the_learning_rate_moves_products_and_no_exponent():
    runs = draw_sweep(22, ceiling=0.012, intervals=(1.0, *INTERVALS))
    here = summary(calibrate(runs))
    there = summary(calibrate(runs.assign(learning_rate=runs["learning_rate"] * 1e-3)))
    assert there[:3] == pytest.approx(here[:3] * 1e-3, rel=UNIT_SCALING)
    assert there[3:] == pytest.approx(here[3:], rel=UNIT_SCALING)


def test_more_confidence_is_a_wider_interval():
    runs = draw_sweep(23)
    half, most = calibrate(runs, confidence=0.5), calibrate(runs, confidence=0.99)
    assert half.boundary_exponent.estimate == most.boundary_exponent.estimate
    assert half.boundary_exponent.low > most.boundary_exponent.low
    with pytest.raises(InputError, match=r"confidence must lie in \(0, 1\), got 1"):
        calibrate(runs, confidence=1)


def test_degraded_runs_are_read_both_ways():
    runs = draw_sweep(24, num_seeds=4)
    just_above = (runs["outcome"] == "collapsed") & (runs["sync_interval"] == 64) & (runs["learning_rate"] < 3e-3)
    assert just_above.sum() >= 4
    runs.loc[just_above, "outcome"] = "degraded"
    found = calibrate(runs)
    assert found.boundary_exponent_collapsed_only.estimate > found.boundary_exponent.estimate + 0.05
    assert any("count as unstable for the boundary" in warning for warning in found.warnings)
    by_interval = {bracket.sync_interval: bracket for bracket in found.brackets_collapsed_only}
    assert by_interval[64.0].largest_stable > found.brackets[-1].largest_stable


def test_failed_and_unknown_runs_are_counted_and_left_out():
    runs = draw_sweep(25)
    extra = runs.iloc[:3].assign(run=["x", "y", "z"], outcome=["failed", "failed", "unknown"], collapse_step=np.nan)
    found = calibrate(pd.concat([runs, extra], ignore_index=True))
    assert np.array_equal(summary(found)[[0, 1, 3, 4]], summary(calibrate(runs))[[0, 1, 3, 4]])
    assert "runs left out because failed: 2" in found.warnings
    assert "runs left out because unknown: 1" in found.warnings


def test_runs_that_are_never_refreshed_do_not_enter_the_law():
    runs = draw_sweep(26)
    never = runs[runs["sync_interval"] == 2].assign(sync_interval=np.inf)
    never["run"] = "inf-" + never["run"]
    found = calibrate(pd.concat([runs, never], ignore_index=True))
    assert np.array_equal(summary(found)[[0, 1, 3, 4]], summary(calibrate(runs))[[0, 1, 3, 4]])
    assert any("S = inf are left out" in warning for warning in found.warnings)


TWO_HORIZONS = {"steps": (60, 20_000), "rates": np.geomspace(3e-4, 3e-2, 7), "num_seeds": 3}


def test_the_max_form_is_found_and_short_runs_then_say_little():
    """Short runs above the boundary are stable for want of time; the fit allows for it once it knows."""
    found = calibrate(draw_sweep(31, **TWO_HORIZONS))
    assert found.combination is Combination.MAX
    assert found.critical_product.contains(0.05)
    assert found.boundary_exponent.contains(-1.0)


def test_the_min_form_is_found():
    sweep = {"steps": (100, 1600), "rates": np.geomspace(3e-5, 3e-2, 9), "critical_product": 0.05}
    found = calibrate(draw_sweep(32, spends_everywhere=True, num_seeds=2, **sweep))
    assert found.combination is Combination.MIN


def test_one_horizon_decides_nothing():
    runs = draw_sweep(33)
    observations = observe(runs.assign(collapse_step_low=np.nan, collapse_step_high=np.nan))
    assert not two_horizons(observations)
    assert decide(observations, observations.collapsed, log_ceiling=100.0) is Combination.UNDECIDED
    found = calibrate(runs)
    assert found.combination is Combination.UNDECIDED
    assert any("two that differ by a factor 2 are needed" in sentence for sentence in found.missing)


def test_two_horizons_without_contrast_stay_undecided():
    """Runs so long that the budget was spent everywhere: a free budget fits either form."""
    found = calibrate(draw_sweep(41, steps=(100_000, 300_000), rates=(1e-5, 2e-5), num_seeds=1, critical_product=1e-4))
    assert found.combination is Combination.UNDECIDED
    assert any("the outcomes favour neither form by 20 to 1" in sentence for sentence in found.missing)


def test_declines_allow_for_time_as_collapses_do():
    """A sweep in which nothing collapses and runs degrade at the same steps has the same boundary, time allowed for."""
    runs = draw_sweep(3, steps=(800,), rates=np.geomspace(7e-4, 2e-2, 8), num_seeds=3)
    degraded = runs.assign(outcome=runs["outcome"].replace("collapsed", "degraded"))
    degraded = degraded.assign(collapse_step_low=runs["collapse_step"] - 1, collapse_step_high=runs["collapse_step"])
    of_collapses, of_declines = calibrate(runs), calibrate(degraded)
    assert of_declines.boundary_exponent == of_collapses.boundary_exponent
    assert of_declines.boundary_exponent_given_time == of_collapses.boundary_exponent_given_time
    assert of_declines.boundary_exponent_given_time.low < of_declines.boundary_exponent.low


def test_a_true_law_is_not_rejected_because_stable_runs_lacked_the_time():
    """With 800 steps and B = 2.5 rates below 3e-3 cannot collapse, which flattens the boundary seen at large S."""
    rates = np.geomspace(7e-4, 1.9e-2, 8)
    words = []
    for seed in range(8):
        runs = draw_sweep(seed, budget=2.5, steps=(800,), rates=rates, num_seeds=3, intervals=INTERVALS)
        found = calibrate(runs)
        assert found.boundary_exponent.excludes(-1.0), "the plain fit is flattened"
        words.append(law_one(found).word)
        assert "lacked the time to collapse" in law_one(found).sentence
    assert words == ["inconclusive"] * 8


def test_with_time_to_spare_the_two_fits_agree():
    found = calibrate(draw_sweep(50, num_seeds=3))
    plain, given_time = found.boundary_exponent, found.boundary_exponent_given_time
    assert given_time.estimate == pytest.approx(plain.estimate, abs=0.02)
    assert law_one(found).word == "supported"


def test_a_budget_at_one_is_not_taken_for_a_ceiling_that_proves_the_max_form():
    """Pure min-form, with an S = 1 arm, whose boundary is then the budget of each horizon."""
    for seed in range(4):
        runs = draw_sweep(
            seed,
            spends_everywhere=True,
            steps=(1000, 4000),
            intervals=(1.0, *INTERVALS),
            rates=np.geomspace(3e-5, 3e-2, 9),
        )
        assert calibrate(runs).combination is not Combination.MAX


def test_without_any_effect_of_staleness_the_product_is_not_identified():
    rates = np.geomspace(1e-4, 3e-2, 9)
    runs = draw_sweep(51, critical_product=1e3, ceiling=0.012, intervals=(1.0, *INTERVALS), rates=rates, num_seeds=3)
    assert not calibrate(runs).critical_product.identified


def test_law_two_is_not_rejected_on_the_word_of_degraded_runs():
    """Every slow collapse turned into a late decline: censored there, they steepen the slope."""
    runs = draw_sweep(52, num_seeds=4)
    assert law_two(calibrate(runs)).word == "supported"
    slow = (runs["outcome"] == "collapsed") & (runs["learning_rate"] < 6e-3)
    runs.loc[slow, "collapse_step"] *= 4
    runs.loc[slow, "outcome"] = "degraded"
    found = calibrate(runs)
    assert found.budget_exponent.excludes(-1.0)
    assert found.budget_exponent_without_degraded.contains(-1.0)
    verdict = law_two(found)
    assert verdict.word == "inconclusive"
    assert "but without the degraded runs the slope of log T on log eta is" in verdict.sentence

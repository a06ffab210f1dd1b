import numpy as np
import pandas as pd
import pytest

from meanfield.boundary import fit_boundary, rate_brackets
from meanfield.budget import fit_budget
from meanfield.observations import observe
from tests.support.plain_fits import plain_boundary, plain_budget
from tests.support.sweeps import draw_sweep

SHARE_OF_INTERVAL = 0.05
"""Quantiles of the refined grid against a dense one, as a share of the 90 % interval: one cell of either grid."""
EXPONENTS = np.linspace(-1.0, 3.0, 29)


def fit(observations, **keywords):
    unstable = observations.collapsed | observations.degraded
    share = np.ones(len(observations))
    return fit_boundary(observations, unstable, **{"time_share": share, "exponent_axis": EXPONENTS} | keywords)


@pytest.mark.parametrize("scale", [0.03, 0.3])
def test_the_boundary_agrees_with_a_dense_grid(scale):
    runs = draw_sweep(11, scale=scale, intervals=(2.0, 16.0, 64.0), num_seeds=1, rates=np.geomspace(1e-4, 3e-2, 9))
    posterior = fit(observe(runs))
    rate, exponent = plain_boundary(runs, num_points=241)
    for atoms, expected in ((posterior.log_rate, rate), (posterior.exponent, exponent)):
        error = np.abs(np.quantile(atoms, [0.05, 0.5, 0.95]) - expected)
        assert np.all(error < SHARE_OF_INTERVAL * (expected[2] - expected[0]))


def test_the_budget_agrees_with_a_dense_grid():
    runs = draw_sweep(12, intervals=(4.0, 32.0), num_seeds=1, steps=(300,), scatter=0.3)
    observations = observe(runs)
    probability = np.full(len(runs), 0.6)
    assert {"collapsed", "stable"} == set(runs["outcome"])
    law = fit_budget(observations, unstable_probability=probability, slope_axis=EXPONENTS)
    time, slope = plain_budget(runs, probability, num_points=161)
    for atoms, expected in ((law.log_time, time), (law.slope, slope)):
        error = np.abs(np.quantile(atoms, [0.05, 0.5, 0.95]) - expected)
        assert np.all(error < SHARE_OF_INTERVAL * (expected[2] - expected[0]))


def test_a_censored_run_that_should_have_collapsed_lengthens_the_time_only_if_it_could_collapse():
    runs = draw_sweep(13, intervals=(64.0,), rates=(1e-2, 2e-2), num_seeds=3)
    survivor = runs.iloc[[0]].assign(run="survivor", outcome="stable", collapse_step=np.nan, steps=120)
    observations = observe(pd.concat([runs, survivor], ignore_index=True))
    medians = [
        np.median(fit_budget(observations, unstable_probability=np.full(7, p), slope_axis=np.ones(1)).log_time)
        for p in (0.0, 0.1, 1.0)
    ]
    assert medians[0] == pytest.approx(medians[1], abs=0.02)
    assert medians[2] > medians[0] + 0.05


def test_perfect_separation_fills_the_gap_between_the_last_stable_and_the_first_unstable_rate():
    """A coarse grid without overlap: the boundary is anywhere in the gap, and the interval says so."""
    runs = draw_sweep(14, scale=1e-6, intervals=(8.0,), rates=(1e-3, 3e-3, 9e-3, 27e-3), num_seeds=4)
    observations = observe(runs)
    (bracket,) = rate_brackets(observations, observations.collapsed)
    assert (bracket.largest_stable, bracket.smallest_unstable) == (3e-3, 9e-3)
    low, high = np.exp(np.quantile(fit(observations).log_max_rate(8.0), [0.05, 0.95]))
    assert 2.4e-3 < low < 3.6e-3
    assert 7.5e-3 < high < 11.2e-3


def test_the_ceiling_caps_the_law_and_the_law_does_not_move_the_ceiling():
    runs = draw_sweep(15, ceiling=0.006, intervals=(1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0), num_seeds=3)
    posterior = fit(observe(runs))
    assert np.median(np.exp(posterior.log_ceiling)) == pytest.approx(0.006, rel=0.25)
    assert np.all(posterior.log_max_rate(2.0) <= posterior.log_ceiling)
    assert np.array_equal(posterior.log_max_rate(1.0), posterior.log_ceiling)
    assert np.median(np.exp(posterior.log_max_rate(64.0))) == pytest.approx(0.05 / 64, rel=0.25)
    without = fit(observe(runs[runs["sync_interval"] > 1]))
    assert without.log_ceiling is None
    assert np.median(without.exponent) < np.median(posterior.exponent) - 0.1
    assert np.median(posterior.exponent) == pytest.approx(1.0, abs=0.25)


def test_the_on_policy_arm_alone_gives_a_ceiling_and_no_law():
    runs = draw_sweep(16, ceiling=0.006, intervals=(1.0,), num_seeds=3)
    posterior = fit(observe(runs))
    assert posterior.log_rate is None
    assert np.median(np.exp(posterior.log_ceiling)) == pytest.approx(0.006, rel=0.4)
    assert np.all(np.isnan(posterior.log_max_rate(8.0)))


def test_without_a_ceiling_nothing_is_said_at_one():
    posterior = fit(observe(draw_sweep(17)))
    assert np.isnan(posterior.unstable_probability(1.0, np.array([1e-3]))[0])


def test_one_outcome_only_is_no_boundary():
    runs = draw_sweep(18, rates=(1e-7,))
    assert set(runs["outcome"]) == {"stable"}
    assert fit(observe(runs)) is None


def test_a_run_too_short_to_collapse_says_nothing():
    """With a time share of 0 for the stable runs at one S, the boundary is that of the table without them."""
    observations = observe(draw_sweep(19, intervals=(4.0, 16.0, 64.0), scale=0.3))
    idle = ~observations.collapsed & (observations.sync_interval == 64)
    assert idle.sum() > 3
    assert np.median(fit(observations).exponent) < np.median(fit(observations.where(~idle)).exponent) - 0.1
    short = fit(observations, time_share=np.where(idle, 0.0, 1.0))
    left_out = fit(observations.where(~idle))
    assert np.median(short.log_rate) == pytest.approx(np.median(left_out.log_rate), abs=0.02)
    assert np.median(short.exponent) == pytest.approx(np.median(left_out.exponent), abs=0.02)


def test_brackets_see_what_is_not_monotone():
    runs = draw_sweep(20, scale=1e-6, intervals=(8.0,), rates=(1e-3, 3e-3, 9e-3), num_seeds=1)
    assert runs["outcome"].tolist() == ["stable", "stable", "collapsed"]
    runs["outcome"] = ["collapsed", "stable", "stable"]
    runs["collapse_step"] = [5.0, np.nan, np.nan]
    observations = observe(runs)
    (bracket,) = rate_brackets(observations, observations.collapsed)
    assert not bracket.monotone
    assert bracket.closed

"""Cosines on either side of the boundary, and the distance at which runs collapse, made up by hand."""

import numpy as np
import pytest

from meanfield.calibrate import calibrate
from meanfield.estimate import Estimate
from meanfield.growth import MIN_RUNS
from meanfield.outcomes import Outcome
from meanfield.persistence import COSINES, persistence
from tests.support.made_up import HORIZON, RATES, made_up_measures
from tests.support.sweeps import draw_sweep

INTERVALS = (1.0, 4.0, 16.0, 32.0)
SINGLE = 1e-6
"""Measures are kept in float32."""
COLLAPSED, STABLE = Outcome.COLLAPSED.code, Outcome.STABLE.code


@pytest.fixture(scope="module")
def calibration():
    """A sharp boundary at S*eta = 0.06; at S = 1 nothing collapses."""
    runs = draw_sweep(
        1,
        critical_product=0.06,
        scale=1e-3,
        budget=0.02,
        intervals=INTERVALS,
        rates=RATES,
        steps=(HORIZON,),
        num_seeds=3,
        ceiling=1.0,
    )
    np.testing.assert_array_equal(runs["outcome"] == "collapsed", ABOVE.ravel())
    return calibrate(runs)


S, ETA, _ = np.meshgrid(INTERVALS, RATES, range(3), indexing="ij")
ABOVE = (S * ETA > 0.06) & (S > 1)
BELOW = (S * ETA <= 0.06) & (S > 1)


def measured(variables, **keywords):
    made = {"pair_cosine": 0.1, "outcome": np.where(ABOVE, COLLAPSED, STABLE)[None], **variables}
    return made_up_measures(made, intervals=INTERVALS, **keywords)


def contrast(found, name):
    (one,) = (one for one in found.contrasts if one.name == name)
    return one


def test_each_side_is_the_mean_over_its_runs(calibration):
    """0.5 above the boundary and -0.2 below it, at S = 1 what belongs to neither."""
    values = np.where(S == 1, 9.0, np.where(ABOVE, 0.5, -0.2))
    found = persistence(measured(dict.fromkeys(COSINES, values)), calibration=calibration)
    assert [one.name for one in found.contrasts] == list(COSINES)
    for one in found.contrasts:
        for side, expected in ((one.below, -0.2), (one.above, 0.5)):
            assert (side.estimate, side.low, side.high) == pytest.approx((expected,) * 3, abs=SINGLE)


def test_the_interval_of_a_mean_is_that_of_its_runs(calibration):
    """Normal scatter 0.1 over n runs: a 90 % interval of about 2 * 1.645 * 0.1 / sqrt(n)."""
    rng = np.random.default_rng(0)
    cosine = 0.3 + 0.1 * rng.normal(size=S.shape)
    one = contrast(persistence(measured({"cycle_cosine": cosine}), calibration=calibration), "cycle_cosine")
    for side, mask in ((one.below, BELOW), (one.above, ABOVE)):
        expected = cosine[mask]
        assert side.estimate == pytest.approx(expected.mean(), abs=0.01)
        assert side.high - side.low == pytest.approx(3.29 * expected.std() / np.sqrt(expected.size), rel=0.15)


def test_runs_without_the_cosine_are_left_out_and_too_few_say_nothing(calibration):
    places = np.flatnonzero(ABOVE)
    for count in (MIN_RUNS, MIN_RUNS - 1):
        cosine = np.full(S.shape, np.nan)
        cosine.reshape(-1)[places[:count]] = 0.7
        one = contrast(persistence(measured({"cycle_cosine": cosine}), calibration=calibration), "cycle_cosine")
        assert one.below == Estimate.unknown()
        assert (one.above == Estimate.unknown()) == (count < MIN_RUNS)


def test_an_interval_without_a_boundary_has_no_sides(calibration):
    """Of the runs that the boundary of S = 32 is read from none is stable: its cosines belong to neither side."""
    seen = calibration.observations
    left = calibrate_without(seen, 32.0)
    cosine = np.where(S == 32, 9.0, np.where(ABOVE, 0.5, -0.2))
    one = contrast(persistence(measured({"cycle_cosine": cosine}), calibration=left), "cycle_cosine")
    assert (one.below.high, one.above.high) == pytest.approx((-0.2, 0.5), abs=SINGLE)


def calibrate_without(seen, interval):
    """The calibration with every stable run at one S left out."""
    import pandas as pd

    kept = seen.where((seen.sync_interval != interval) | seen.collapsed)
    names = ("sync_interval", "learning_rate", "steps")
    outcome = np.where(kept.collapsed, "collapsed", "stable")
    table = {name: getattr(kept, name) for name in names} | {"outcome": outcome, "collapse_step": kept.high}
    return calibrate(pd.DataFrame(table | {"run": [f"run{i}" for i in range(len(kept))]}))


def test_the_exit_distance_is_the_median_over_collapsed_runs(calibration):
    """Twice as far at S = 32 as at S = 16; what the stable runs and those at S = 1 have walked does not count."""
    distance = np.where(ABOVE, np.where(S == 32, 4.0, np.where(S == 16, 2.0, 3.0)), 77.0)
    outcome = np.where(ABOVE | (S == 1), COLLAPSED, STABLE)[None]
    found = persistence(measured({"displacement_at_onset": distance, "outcome": outcome}), calibration=calibration)
    collapsed = distance[ABOVE]
    assert found.exit_distance.estimate == np.median(collapsed)
    assert found.exit_spread.estimate == pytest.approx(2.0)


def test_one_radius_has_a_spread_of_one(calibration):
    found = persistence(measured({"displacement_at_onset": 2.5}), calibration=calibration)
    assert found.exit_distance == Estimate(2.5, 2.5, 2.5)
    assert found.exit_spread == Estimate(1.0, 1.0, 1.0)


def test_medians_at_two_intervals_are_uncertain_each_by_itself(calibration):
    """The same dozen distances at S = 16 and at S = 32: what two other dozens would give is not the ratio 1."""
    distance = np.full(S.shape, np.nan)
    distance[2:, 2:] = np.exp(np.random.default_rng(3).normal(size=(4, 3)))
    found = persistence(measured({"displacement_at_onset": distance}), calibration=calibration)
    once = persistence(
        measured({"displacement_at_onset": np.where(S == 32, distance, np.nan)}), calibration=calibration
    )
    assert once.exit_spread == Estimate.unknown()
    width = np.log(once.exit_distance.high / once.exit_distance.low)
    assert np.log(found.exit_spread.high) > 0.5 * width


def test_without_collapses_there_is_no_distance(calibration):
    found = persistence(measured({"outcome": STABLE, "displacement_at_onset": 1.0}), calibration=calibration)
    assert (found.exit_distance, found.exit_spread) == (Estimate.unknown(), Estimate.unknown())


def test_only_the_whole_run_says_what_became_of_it(calibration):
    """Collapsed in the cut run and not in the whole one is no collapse."""
    outcome = np.stack([np.full(ABOVE.shape, COLLAPSED), np.full(ABOVE.shape, STABLE)])
    values = {"outcome": outcome, "displacement_at_onset": 1.0}
    found = persistence(measured(values, horizons=(400, 800)), calibration=calibration)
    assert found.exit_distance == Estimate.unknown()

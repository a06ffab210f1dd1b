import numpy as np
import pandas as pd
import pytest

from meanfield.calibrate import calibrate
from meanfield.fit_map import INITIAL_MEMORY, fit_map
from meanfield.parameters import MapParameters
from meanfield.simulate import exit_budget
from tests.support.sweeps import draw_sweep

TRUE = MapParameters(critical_product=0.05, exit_radius=0.7, initial_memory=INITIAL_MEMORY)


def model_runs():
    """Runs that follow the map itself: collapsed where it exits within the horizon, to the step."""
    rows = []
    for S in (4.0, 8.0, 16.0, 32.0):
        for eta in np.geomspace(5e-4, 2e-2, 9):
            step = np.ceil(float(exit_budget(TRUE, S * eta)) / eta)
            collapsed = step <= 20_000
            onset = step if collapsed else np.nan
            rows.append((f"{S}-{eta}", S, eta, 20_000, "collapsed" if collapsed else "stable", onset))
    return pd.DataFrame(rows, columns=["run", "sync_interval", "learning_rate", "steps", "outcome", "collapse_step"])


def test_the_map_that_made_the_runs_is_found():
    fit = fit_map(calibrate(model_runs()))
    assert fit.parameters is not None
    # C is known to within the grid of rates (a factor 1.59 in eta), R follows from C
    assert fit.parameters.critical_product == pytest.approx(TRUE.critical_product, rel=0.35)
    assert fit.parameters.exit_radius == pytest.approx(TRUE.exit_radius, rel=0.35)
    assert fit.parameters.honest_signal == 0.0
    assert fit.parameters.initial_memory == INITIAL_MEMORY


@pytest.mark.parametrize("runs", [model_runs(), draw_sweep(1, scale=0.6)], ids=["of the map", "some below C"])
def test_the_radius_makes_model_and_runs_agree_in_the_median(runs):
    calibration = calibrate(runs)
    fit = fit_map(calibration)
    seen = calibration.observations
    product = seen.sync_interval * seen.learning_rate
    used = seen.collapsed & (product > fit.parameters.critical_product)
    measured = seen.learning_rate[used] * (seen.high[used] - 0.5)
    ratio = exit_budget(fit.parameters, product[used]) / measured
    assert used.sum() == fit.num_collapsed
    assert np.median(np.log(ratio)) == pytest.approx(0.0, abs=1e-5)


def test_collapses_above_the_ceiling_do_not_count():
    runs = model_runs()
    arm = runs[runs["sync_interval"] == 4].assign(sync_interval=1.0, outcome="stable", collapse_step=np.nan)
    arm["run"] = "on-policy " + arm["run"]
    above = arm["learning_rate"] > 5e-3
    arm.loc[above, ["outcome", "collapse_step"]] = ["collapsed", 1.0]
    runs.loc[runs["learning_rate"] > 5e-3, ["outcome", "collapse_step"]] = ["collapsed", 1.0]
    fit = fit_map(calibrate(pd.concat([runs, arm])))
    below = fit_map(calibrate(runs[runs["learning_rate"] <= 5e-3]))
    assert fit.num_collapsed == below.num_collapsed
    assert fit.parameters.exit_radius == pytest.approx(below.parameters.exit_radius, rel=0.3)


def test_without_a_threshold_there_is_no_map():
    stable = model_runs().query("outcome == 'stable'")
    fit = fit_map(calibrate(stable))
    assert fit.parameters is None
    assert "threshold S*eta is not known" in fit.sentence


def test_without_collapses_there_is_no_map():
    runs = model_runs()
    collapsed = runs["outcome"] == "collapsed"
    runs.loc[collapsed, ["outcome", "collapse_step"]] = ["degraded", np.nan]
    fit = fit_map(calibrate(runs))
    assert fit.parameters is None
    assert "a radius needs 2 collapsed runs above the threshold and below the ceiling, there are 0" in fit.sentence


def test_collapses_earlier_than_any_map_can_make_them_give_none():
    """At an initial memory of 1e-6 the memory needs cycles to grow, whatever the radius."""
    runs = model_runs()
    runs.loc[runs["outcome"] == "collapsed", "collapse_step"] = 1.0
    fit = fit_map(calibrate(runs), initial_memory=1e-6)
    assert fit.parameters is None
    assert "no exit radius gives the measured collapse times" in fit.sentence


def test_a_rejected_law_is_said():
    # rates from 1e-4 to 3e-2; exponent -0.4 is far from -1
    fit = fit_map(calibrate(draw_sweep(3, exponent=0.4)))
    assert fit.parameters is not None
    assert "the fitted exponents are not the -1" in fit.sentence

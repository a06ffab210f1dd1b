import math
from functools import cache

import numpy as np
import pandas as pd
import pytest

from meanfield.calibrate import calibrate
from meanfield.fit_persistent import (
    OUTLIER_SHARE,
    WALK_REACH,
    Likelihood,
    _parameters,
    fit_persistent,
    search_bounds,
)
from meanfield.persistent import PersistentParameters
from tests.support.plain_fits import plain_persistent
from tests.support.sweeps import INTERVALS, PERSISTENT_RATES, draw_persistent
from theory import persistent
from theory.errors import InputError
from theory.numeric import numpy_function

QUICK = 50
"""Generations of a search that need not find the last tenth of a nat."""
TRUE = PersistentParameters(
    gain_within=10.0,
    gain_across=15.0,
    retention=0.3,
    honest_drive=1e-4,
    initial_drive=0.03,
    exit_radius=0.6,
    batch_radius=math.inf,
)
BATCH = PersistentParameters(
    gain_within=0.0,
    gain_across=20.0,
    retention=0.5,
    honest_drive=1e-3,
    initial_drive=0.01,
    exit_radius=50.0,
    batch_radius=0.06,
)


@cache
def fit_of(parameters, generations=QUICK):
    return fit_persistent(calibrate(draw_persistent(1, parameters)), generations=generations)


def grid():
    S, eta = (axis.ravel() for axis in np.meshgrid(INTERVALS, np.geomspace(5e-4, 3e-2, 25)))
    return S, eta, np.full(S.size, 800.0)


def truth(parameters, scatter=0.2):
    """A fit that holds the true parameters, for its predictions."""
    from meanfield.fit_persistent import PersistentFit

    return PersistentFit(parameters, scatter, 0.0, 0, 0, (), "")


# --- the likelihood


def test_the_likelihood_matches_its_twin():
    runs = draw_persistent(3, TRUE, num_seeds=2)
    declined = runs.index[runs["outcome"] == "collapsed"][::3]
    runs.loc[declined, "outcome"] = "degraded"
    observations = calibrate(runs).observations
    likelihood, bounds = Likelihood.of(observations), search_bounds(observations)
    points = bounds[:, :1] + (bounds[:, 1:] - bounds[:, :1]) * np.random.default_rng(0).random((8, 12))
    # walked so far that both look at the same cycles
    found = likelihood(points)
    for point, value in zip(points.T, found, strict=True):
        expected = plain_persistent(
            runs, _parameters(point), math.exp(point[-1]), outlier_share=OUTLIER_SHARE, horizon=WALK_REACH * 800
        )
        later = plain_persistent(
            runs, _parameters(point), math.exp(point[-1]), outlier_share=OUTLIER_SHARE, horizon=1e7
        )
        # the fit follows a settled memory to its exit however late, so it lies between the two readings
        assert min(expected, later) - 1e-6 <= value <= max(expected, later) + 1e-6


@pytest.mark.parametrize("growth", [0.0, 1e-9, 2.0])
def test_the_search_space_is_spanned_by_the_boundary(growth):
    """Its first coordinate is the log of C, whatever the growth inside a cycle and the retention."""
    parameters = _parameters(np.array([math.log(0.04), growth, 0.6, -3.0, -4.0, 0.1, -1.0, -1.0]))
    assert parameters.critical_product == pytest.approx(0.04, rel=1e-9)
    assert parameters.gain_within * 0.04 == pytest.approx(growth, rel=1e-12)
    if growth > 1.0:
        product = numpy_function(persistent.BOUNDARY_PRODUCT)(
            parameters.gain_across, parameters.gain_within, 0.6, 1.0, 1.0
        )
        assert float(product) == pytest.approx(0.04, rel=1e-9)


# --- recovery


@pytest.mark.parametrize(("parameters", "generations"), [(TRUE, QUICK), (BATCH, 120)], ids=["region", "batch"])
def test_the_predictions_of_the_model_that_made_the_runs_are_found(parameters, generations):
    """Not the parameters: several sets of them say the same of every run."""
    runs = draw_persistent(1, parameters)
    fit = fit_of(parameters, generations)
    assert fit.num_runs == len(runs) == 144
    assert fit.num_collapsed == (runs["outcome"] == "collapsed").sum() > 30
    S, eta, steps = grid()
    known = truth(parameters)
    wanted = known.collapsed_by(steps, sync_interval=S, learning_rate=eta, steps=steps)
    found = fit.collapsed_by(steps, sync_interval=S, learning_rate=eta, steps=steps)
    assert np.mean(np.abs(found - wanted)) < 0.05
    wanted, found = (one.collapse_step(S, eta, steps=steps) for one in (known, fit))
    both = (wanted < 800) & (found < 800)
    assert both.sum() > 40
    assert np.median(np.abs(np.log(found[both] / wanted[both]))) < 0.15
    assert fit.scatter == pytest.approx(0.2, rel=0.35)  # outliers take some of the tails


def test_the_maximum_is_at_least_the_truth():
    observations = calibrate(draw_persistent(1, TRUE)).observations
    point = np.array([math.log(TRUE.critical_product), 10.0 * TRUE.critical_product, 0.3, *np.log([1e-4, 0.03, 0.6])])
    point = np.append(point, [search_bounds(observations)[6, 1], math.log(0.2)])
    at_truth = float(Likelihood.of(observations)(point[:, None])[0])
    assert fit_of(TRUE).log_likelihood > at_truth


def test_the_fit_does_not_depend_on_the_order_of_the_runs():
    runs = draw_persistent(2, TRUE, num_seeds=1)
    first = fit_persistent(calibrate(runs), generations=5)
    again = fit_persistent(calibrate(runs.sample(frac=1.0, random_state=0)), generations=5)
    assert first == again


def test_one_collapse_where_the_model_has_none_is_finite_and_changes_little():
    runs, fit = draw_persistent(1, TRUE), fit_of(TRUE)
    stray = runs.index[(runs["sync_interval"] == 2) & (runs["outcome"] == "stable")][0]
    runs.loc[stray, ["outcome", "collapse_step"]] = ["collapsed", 30.0]
    other = fit_persistent(calibrate(runs), generations=QUICK)
    S, eta, steps = grid()
    before, after = (one.collapsed_by(steps, sync_interval=S, learning_rate=eta, steps=steps) for one in (fit, other))
    assert np.mean(np.abs(after - before)) < 0.03
    # it costs about log of the outlier share times the chance of that very step
    assert -12.0 < other.log_likelihood - fit.log_likelihood < -3.0


def test_a_part_that_the_runs_need_cannot_be_left_out():
    """The batch exit made these collapses; the honest signal of 1e-3 hardly matters."""
    calibration, fit = calibrate(draw_persistent(1, BATCH)), fit_of(BATCH, 120)
    without = fit_persistent(calibration, without=("batch_radius", "growth"), generations=QUICK)
    assert without.log_likelihood < fit.log_likelihood - 20.0
    assert not {"batch_radius", "growth"} & set(without.on_bound)
    assert without.parameters.gain_within == 0.0
    assert without.parameters.batch_radius == pytest.approx(2.0 * 64 * 3e-2)
    with pytest.raises(InputError, match=r"without must name parts of growth, .*, got 'scatter'\. Leave out one"):
        fit_persistent(calibration, without=("scatter",))


# --- which runs count


def test_on_policy_and_never_refreshed_runs_do_not_count():
    runs = draw_persistent(2, TRUE, num_seeds=1)
    rates = np.array(PERSISTENT_RATES)
    own = {"learning_rate": rates, "steps": 800, "outcome": "collapsed", "collapse_step": 3.0}
    fit = fit_persistent(calibrate(runs), generations=5)
    arms = [
        pd.DataFrame({**own, "run": [f"{S}-{rate}" for rate in rates], "sync_interval": S}) for S in (1.0, math.inf)
    ]
    assert fit_persistent(calibrate(pd.concat([runs, *arms])), generations=5) == fit


def test_rates_above_the_ceiling_do_not_count():
    runs = draw_persistent(2, TRUE, num_seeds=1)
    arm = runs[runs["sync_interval"] == 2].assign(sync_interval=1.0, outcome="stable", collapse_step=np.nan)
    above = arm["learning_rate"] > 5e-3
    arm.loc[above, ["outcome", "collapse_step"]] = ["collapsed", 2.0]
    arm["run"] = "on-policy " + arm["run"]
    calibration = calibrate(pd.concat([runs, arm]))
    ceiling = calibration.learning_rate_ceiling.estimate
    assert 2e-3 < ceiling < 1e-2
    assert fit_persistent(calibration, generations=5).num_runs == (runs["learning_rate"] < ceiling).sum() < len(runs)


def test_without_collapses_there_is_no_fit():
    runs = draw_persistent(2, TRUE, num_seeds=1)
    fallen = runs.index[runs["outcome"] == "collapsed"]
    runs.loc[fallen[1:], ["outcome", "collapse_step"]] = ["stable", np.nan]
    fit = fit_persistent(calibrate(runs))
    assert fit.parameters is None
    assert fit.scatter is None
    assert (
        "the fit needs 2 collapses with a known step at finite S >= 2 and below the ceiling, there are 1"
        in fit.sentence
    )
    two = np.array([4.0, 8.0])
    assert np.isnan(fit.collapse_step(two, two, steps=two)).all()
    assert np.isnan(fit.collapsed_by(two, sync_interval=two, learning_rate=two, steps=two)).all()

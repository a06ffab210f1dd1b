"""Collapse times drawn from T = a * eta^-b * S^-c * lognormal, read through evaluations, a horizon and a boundary."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from meanfield.boundary import fit_boundary
from meanfield.calibrate import calibrate
from meanfield.estimate import Estimate
from meanfield.observations import observe
from meanfield.time_surface import MIN_EVENTS, fit_time_surface

INTERVALS = (4.0, 8.0, 16.0, 32.0, 64.0)
RATES = tuple(np.geomspace(1e-3, 3e-2, 8))
HORIZON, SCATTER, TIME, EDGE = 800, 0.3, 300.0, 0.004
"""TIME is the median collapse step at eta = 0.005 and S = 16, EDGE the boundary at S = 16."""
RUNS = 40
"""Data sets of a coverage; of 90 % intervals fewer than 31 hits have a chance below 1 %."""


def draw_times(seed, *, b, c, scatter=SCATTER, num_seeds=3, intervals=INTERVALS, rates=RATES):
    """Runs below the boundary never collapse; onsets are known to the evaluation, every max(1, S // 8) steps."""
    rng = np.random.default_rng(seed)
    rows = []
    for S in intervals:
        every = max(1, int(S) // 8)
        for eta in rates:
            for replica in range(num_seeds):
                unstable = np.log(eta / (EDGE * (S / 16) ** -0.8)) + 0.1 * rng.logistic() > 0
                step = TIME * (eta / 5e-3) ** -b * (S / 16) ** -c * np.exp(scatter * rng.normal())
                high = every * max(1.0, np.ceil(step / every))
                rows.append((S, eta, replica, unstable, step, high, unstable and high <= HORIZON, every))
    frame = pd.DataFrame(
        rows, columns=["sync_interval", "learning_rate", "seed", "unstable", "true", "high", "collapsed", "every"]
    )
    onset = frame["high"].where(frame["collapsed"])
    return frame.assign(
        run=[f"run{row}" for row in range(len(frame))],
        steps=HORIZON,
        outcome=np.where(frame["collapsed"], "collapsed", "stable"),
        collapse_step=onset,
        collapse_step_low=onset - frame["every"],
        collapse_step_high=onset,
    ).drop(columns=["high", "collapsed", "every"])


@pytest.fixture(scope="module")
def template():
    return calibrate(draw_times(0, b=1.0, c=0.0))


def surface(runs, template, *, degraded_counts=False):
    """The fit with the boundary of these runs; what else a calibration holds is not asked for."""
    seen = observe(runs)
    unstable = seen.collapsed | seen.degraded
    boundary = fit_boundary(seen, unstable, time_share=np.ones(len(seen)), exponent_axis=np.linspace(-1.0, 3.0, 29))
    calibration = replace(template, observations=seen, boundary=boundary)
    return fit_time_surface(calibration, degraded_counts=degraded_counts)


@pytest.mark.parametrize(("b", "c"), [(1.0, 0.0), (1.0, 1.0), (0.7, 0.5)])
def test_intervals_cover_the_exponents_as_often_as_they_say(template, b, c):
    truths = {"with_rate": -b, "with_interval": -c, "boundary_exponent": -c / b, "horizon_exponent": -1 / b}
    truths["rate_less_interval"] = b - c
    hits = dict.fromkeys(truths, 0)
    censored, widths, estimates = 0, [], []
    for seed in range(RUNS):
        runs = draw_times(seed, b=b, c=c)
        censored += int((runs["unstable"] & (runs["outcome"] == "stable")).sum())
        found = surface(runs, template)
        for name, truth in truths.items():
            hits[name] += getattr(found, name).contains(truth)
        widths.append(found.with_interval.high - found.with_interval.low)
        estimates.append(found.with_interval.estimate)
    assert censored > 0
    assert min(hits.values()) >= 31, hits
    # of 40 normal numbers the standard deviation is known to a tenth: 35 % off has a chance below 1 %
    assert np.mean(widths) == pytest.approx(2 * 1.645 * np.std(estimates), rel=0.35)


def test_times_that_fall_with_the_interval_are_never_said_not_to(template):
    for seed in range(8):
        assert surface(draw_times(seed, b=1.0, c=1.0), template).with_interval.excludes(0.0)


def test_the_scatter_is_that_between_seeds_and_events_are_the_collapses(template):
    for scatter in (0.1, 0.3):
        runs = draw_times(3, b=1.0, c=0.3, scatter=scatter, num_seeds=5)
        found = surface(runs, template)
        assert found.scatter.contains(scatter)
        assert found.num_events == (runs["outcome"] == "collapsed").sum()


def test_coarse_evaluations_do_not_move_the_exponents(template):
    """Onsets known to a factor: the interval is what counts, so the middle of it is no bias."""
    runs = draw_times(5, b=1.0, c=0.5)
    collapsed = runs["outcome"] == "collapsed"
    high = (2.0 ** np.ceil(np.log2(runs["true"]))).clip(upper=HORIZON).where(collapsed)
    coarse = runs.assign(collapse_step=high, collapse_step_high=high, collapse_step_low=(high / 2).round())
    found = surface(coarse, template)
    assert found.with_rate.contains(-1.0)
    assert found.with_interval.contains(-0.5)


def test_runs_that_would_never_collapse_say_nothing_of_times(template):
    """Three times as many runs far below the boundary: the fit is that without them."""
    runs = draw_times(6, b=1.0, c=0.5)
    below = draw_times(7, b=1.0, c=0.5, rates=(1e-4, 2e-4, 4e-4), num_seeds=12)
    assert set(below["outcome"]) == {"stable"}
    both = pd.concat([runs, below.assign(run=[f"below{i}" for i in range(len(below))])], ignore_index=True)
    for name in ("with_rate", "with_interval"):
        alone, beside = (getattr(surface(table, template), name) for table in (runs, both))
        assert beside.estimate == pytest.approx(alone.estimate, abs=0.1 * (alone.high - alone.low))


def test_degraded_runs_count_at_their_onset_or_end_there(template):
    runs = draw_times(8, b=1.0, c=0.5)
    half = (runs["outcome"] == "collapsed") & (runs["seed"] == 0)
    mixed = runs.assign(outcome=runs["outcome"].mask(half, "degraded"))
    counted, censored = (surface(mixed, template, degraded_counts=counts) for counts in (True, False))
    whole = surface(runs, template)
    assert counted.num_events == whole.num_events == censored.num_events + half.sum()
    assert counted.with_interval.estimate == pytest.approx(whole.with_interval.estimate, abs=1e-3)
    assert censored.with_rate != whole.with_rate


def test_runs_at_one_are_another_regime(template):
    runs = draw_times(8, b=1.0, c=0.5)
    on_policy = draw_times(9, b=1.0, c=0.0, intervals=(1.0,)).assign(outcome="stable")
    on_policy[["collapse_step", "collapse_step_low", "collapse_step_high"]] = np.nan
    on_policy["run"] = "on policy " + on_policy["run"]
    assert surface(pd.concat([runs, on_policy], ignore_index=True), template) == surface(runs, template)


def test_too_few_collapses_and_one_interval_or_one_rate_give_no_exponents(template):
    runs = draw_times(10, b=1.0, c=0.5)
    collapsed = runs["outcome"] == "collapsed"
    few = runs[~collapsed | (collapsed.cumsum() < MIN_EVENTS)]
    one_rate = runs[~collapsed | (runs["learning_rate"] == RATES[-1])]
    one_interval = runs[~collapsed | (runs["sync_interval"] == 16)]
    for table, num_events in ((few, MIN_EVENTS - 1), (one_rate, 15), (one_interval, None)):
        found = surface(table, template)
        assert found.num_events == (num_events or (table["outcome"] == "collapsed").sum()) > 0
        for name, value in vars(found).items():
            assert name == "num_events" or value == Estimate.unknown(), name


@pytest.mark.parametrize("b", [0.0, -1.0])
def test_times_that_do_not_fall_with_the_rate_foretell_no_boundary(template, b):
    """No ratio of two exponents is known where the lower one may be zero, and none is where it has the other sign."""
    found = surface(draw_times(11, b=b, c=0.5, scatter=0.1), template)
    assert found.with_rate.contains(-b)
    assert found.boundary_exponent == found.horizon_exponent == Estimate.unknown()


def test_a_fit_has_equal_numbers_whatever_the_order_of_the_runs(template):
    runs = draw_times(12, b=1.0, c=0.5)
    assert surface(runs, template) == surface(runs.iloc[::-1], template)

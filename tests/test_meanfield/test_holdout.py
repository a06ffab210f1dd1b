import json
import math

import numpy as np
import pytest

from meanfield.calibrate import calibrate
from meanfield.holdout import CALIBRATION, CONSTANT, MODEL, holdout
from meanfield.persistent import PersistentParameters
from meanfield.scores import Outcomes, Prediction, score
from tests.support.sweeps import PERSISTENT_RATES, draw_persistent, draw_sweep
from theory.errors import InputError

QUICK = 35
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


@pytest.fixture(scope="module")
def own():
    """Runs that follow the model, held out."""
    return holdout(draw_persistent(1, TRUE, num_seeds=2), generations=QUICK)


@pytest.fixture(scope="module")
def small():
    """Few runs, hardly searched."""
    return holdout(draw_persistent(1, TRUE, num_seeds=1), generations=2)


@pytest.fixture(scope="module")
def foreign():
    """Runs whose boundary has the exponent -1/2, which the model cannot have."""
    runs = draw_sweep(
        4, exponent=0.5, critical_product=0.06, budget=0.1, rates=PERSISTENT_RATES, steps=(800,), num_seeds=3
    )
    return holdout(runs, generations=QUICK)


def by_name(held):
    return {one.model: one for one in held.scores}


# --- the scores


def outcomes():
    return Outcomes(
        np.array([0, 0, 1, 2]), np.array([True, False, False, True]), np.array([100.0, np.nan, np.nan, 400.0])
    )


def test_scores_by_hand():
    prediction = Prediction(np.array([0.8, 0.8, 0.1, 0.5]), np.array([150.0, 150.0, np.inf, 100.0]))
    half = Prediction(np.full(4, 0.5), np.full(4, np.nan))
    found = score("mine", outcomes(), prediction, reference=half, confidence=0.9)
    assert found.log_score.estimate == pytest.approx(np.log([0.8, 0.2, 0.9, 0.5]).mean())
    assert found.brier.estimate == pytest.approx(np.mean([0.04, 0.64, 0.01, 0.25]))
    assert found.log_score_lead.estimate == pytest.approx(np.log(0.5) - found.log_score.estimate)
    assert found.log_time_ratio.estimate == pytest.approx(np.log(100 / 150))  # the lower of the two
    assert found.within_factor_two.estimate == 0.5
    assert (found.num_runs, found.num_collapsed, found.num_timed, found.num_never) == (4, 2, 2, 0)
    # cells (0, 0), (1,), (2,): the lowest mean is that of cell 2 or 0 drawn three times
    assert found.log_score.low >= min(np.log([0.8, 0.2]).mean(), np.log(0.5))
    assert found.log_score.high <= np.log(0.9)


def test_a_collapse_where_the_predictor_has_none_is_a_miss():
    never = Prediction(np.full(4, 0.5), np.array([np.inf, 1.0, 1.0, np.inf]))
    found = score("never", outcomes(), never, reference=never, confidence=0.9)
    assert found.num_never == found.num_timed == 2
    assert found.log_time_ratio.estimate == -np.inf
    assert found.within_factor_two.estimate == 0.0
    assert found.to_json()["log_time_ratio"]["estimate"] is None


def test_a_predictor_that_is_silent_has_no_score():
    silent = Prediction(np.full(4, np.nan), np.full(4, np.nan))
    found = score("silent", outcomes(), silent, reference=silent, confidence=0.9)
    assert found.num_runs == found.num_timed == 0
    assert found.log_score.estimate is None
    assert found.log_time_ratio.estimate is None


def test_the_interval_covers_the_truth_as_often_as_it_says():
    """60 cells of 2 equal runs, 100 repetitions at 90 %: 80 to 97 is four standard deviations and the small sample."""
    rng = np.random.default_rng(0)
    cell = np.repeat(np.arange(60), 2)
    covered = 0
    for _ in range(100):
        collapsed = np.repeat(rng.random(60) < 0.3, 2)
        prediction = Prediction(np.full(120, 0.3), np.full(120, np.nan))
        found = score(
            "", Outcomes(cell, collapsed, np.full(120, np.nan)), prediction, reference=prediction, confidence=0.9
        )
        covered += found.brier.contains(0.3 * 0.49 + 0.7 * 0.09)
    assert 80 <= covered <= 97


# --- the split


def test_every_run_is_held_out_once(own):
    first, second = own.directions
    assert first.fitted == second.held_out == (2.0, 8.0, 32.0)
    assert first.held_out == second.fitted == (4.0, 16.0, 64.0)
    for score_of_both, *parts in zip(own.scores, first.scores, second.scores, strict=True):
        assert score_of_both.num_runs == sum(part.num_runs for part in parts)
    assert by_name(own)[MODEL].num_runs == 6 * 8 * 2
    assert (first.fit.num_runs, second.fit.num_runs) == (48, 48)


def test_the_held_out_half_is_not_looked_at(small):
    """Other outcomes at the held-out S change the scores, not the fit."""
    runs = draw_persistent(1, TRUE, num_seeds=1)
    other = runs["sync_interval"].isin([4.0, 16.0, 64.0])
    runs.loc[other & (runs["outcome"] == "collapsed"), "collapse_step"] = 1.0
    again = holdout(runs, generations=2)
    assert again.directions[0].fit == small.directions[0].fit
    assert again.directions[1].fit != small.directions[1].fit


def test_degraded_runs_count_until_their_onset():
    runs = draw_persistent(1, TRUE, num_seeds=1)
    fallen = runs.index[runs["outcome"] == "collapsed"]
    runs.loc[fallen[::4], "outcome"] = "degraded"
    runs.loc[fallen[0], "collapse_step"] = 1.0  # never watched
    held = holdout(runs, generations=3)
    assert by_name(held)[CONSTANT].num_runs == len(runs) - 1
    assert by_name(held)[CONSTANT].num_collapsed == len(fallen) - len(fallen[::4])
    logs = []
    for direction in held.directions:
        here = runs[runs["sync_interval"].isin(direction.held_out) & (runs.index != fallen[0])]
        onset = here["collapse_step"].to_numpy() - 1.0
        watched = np.where(here["outcome"] == "degraded", onset, here["steps"])
        S, eta, steps = (here[name].to_numpy(float) for name in ("sync_interval", "learning_rate", "steps"))
        p = direction.fit.collapsed_by(watched, sync_interval=S, learning_rate=eta, steps=steps)
        logs.append(np.log(np.where(here["outcome"] == "collapsed", p, 1.0 - p)))
    assert by_name(held)[MODEL].log_score.estimate == pytest.approx(np.concatenate(logs).mean())


# --- what it says


def test_on_its_own_runs_the_model_predicts(own):
    scores = by_name(own)
    assert scores[CONSTANT].log_score_lead.low > 0.1
    assert scores[MODEL].log_score.estimate > -0.2
    assert scores[MODEL].within_factor_two.estimate > 0.85
    assert abs(scores[MODEL].log_time_ratio.estimate) < 0.2
    assert scores[MODEL].log_score_lead.estimate == 0.0


def test_the_predicted_rate_lies_near_the_measured_bracket(own):
    """One step of the grid of rates is a factor 1.8."""
    rates = [rate for direction in own.directions for rate in direction.rates]
    assert sorted(rate.sync_interval for rate in rates) == [2, 4, 8, 16, 32, 64]
    closed = [rate for rate in rates if rate.largest_stable and rate.smallest_unstable and rate.persistent_drift]
    assert len(closed) >= 4
    for rate in closed:
        assert rate.largest_stable / 1.8 < rate.persistent_drift < rate.smallest_unstable * 1.8
        assert (rate.largest_not_collapsed, rate.smallest_collapsed) == (rate.largest_stable, rate.smallest_unstable)


def test_it_loses_where_the_boundary_has_another_exponent(foreign):
    """Without noise the model has the exponent -1, and its cells at either end of S lie on the wrong side."""
    lead = by_name(foreign)[CALIBRATION].log_score_lead
    assert lead.high < 0.0
    assert by_name(foreign)[CALIBRATION].brier.estimate < by_name(foreign)[MODEL].brier.estimate


def test_collapse_times_are_those_of_the_scores(own):
    times = own.collapse_times
    assert len(times) == by_name(own)[MODEL].num_timed
    ratio = np.sort(np.log(times["measured"] / times["predicted"]))
    assert ratio[(len(ratio) - 1) // 2] == pytest.approx(by_name(own)[MODEL].log_time_ratio.estimate)


def test_the_answer_is_plain_and_the_same_twice(small):
    text = json.dumps(small.to_json(), allow_nan=False)
    again = holdout(draw_persistent(1, TRUE, num_seeds=1).iloc[::-1], generations=2)
    assert json.dumps(again.to_json(), allow_nan=False) == text
    assert {one["model"] for one in json.loads(text)["scores"]} == {MODEL, CALIBRATION, CONSTANT}


def test_a_sweep_without_collapses_is_answered_without_scores_of_the_model():
    runs = draw_persistent(1, TRUE, num_seeds=1).assign(outcome="stable", collapse_step=np.nan)
    held = holdout(runs)
    scores = by_name(held)
    assert scores[MODEL].num_runs == 0
    assert scores[CONSTANT].num_runs == len(runs)
    assert scores[MODEL].log_score.estimate is None
    assert "No persistent drift is fitted" in held.directions[0].fit.sentence
    json.dumps(held.to_json(), allow_nan=False)


def test_too_few_intervals_are_refused():
    runs = draw_persistent(1, TRUE, num_seeds=1)
    with pytest.raises(InputError, match=r"runs must hold at least 4 finite sync intervals >= 2, got 3\. Measure"):
        holdout(runs[runs["sync_interval"] < 16])


def test_the_calibration_is_the_one_of_the_tool(own):
    """The rate of the baseline is the boundary that `calibrate` gives for the fitted half."""
    runs = draw_persistent(1, TRUE, num_seeds=2)
    half = calibrate(runs[runs["sync_interval"].isin(own.directions[0].fitted)])
    (rate,) = (rate for rate in own.directions[0].rates if rate.sync_interval == 16)
    assert rate.calibration == pytest.approx(float(np.exp(np.median(half.boundary.log_max_rate(16.0)))))

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from meanfield.answer import Question, answer
from meanfield.calibrate import calibrate
from meanfield.combination import Combination
from meanfield.recommend import choose_interval, collapse_risk, max_rate, query, recommend_rate
from tests.support.sweeps import INTERVALS, draw_sweep
from theory.errors import InputError

LONG = 20_000.0
MONTE_CARLO = 0.1
"""Risk against the share of 400 new seeds that collapse: three standard errors at 1/2, and the fit's own error."""


@pytest.fixture(scope="module")
def plain():
    return calibrate(draw_sweep(41, num_seeds=4))


@pytest.fixture(scope="module")
def with_ceiling():
    return calibrate(draw_sweep(41, ceiling=0.012, intervals=(1.0, *INTERVALS), num_seeds=4))


def test_the_risk_is_the_share_of_new_seeds_that_collapse():
    well_known = calibrate(draw_sweep(41, num_seeds=30, intervals=(4.0, 32.0)))
    for horizon, rate in ((LONG, 4e-3), (150.0, 6e-3), (60.0, 1e-2)):
        new = draw_sweep(99, intervals=(11.3137085,), rates=(rate,), steps=(int(horizon),), num_seeds=400)
        share = float((new["outcome"] == "collapsed").mean())
        risk = collapse_risk(well_known, 11.3137085, learning_rate=np.array([rate]), horizon=horizon)
        assert risk[0] == pytest.approx(share, abs=MONTE_CARLO)


def test_the_risk_grows_with_rate_interval_and_horizon(plain):
    rates = np.geomspace(1e-4, 3e-2, 30)
    for interval in (2.0, 16.0, 64.0):
        risk = collapse_risk(plain, interval, learning_rate=rates, horizon=500.0)
        assert np.all(np.diff(risk) >= -1e-12)
        assert np.all(risk <= collapse_risk(plain, 2 * interval, learning_rate=rates, horizon=500.0) + 1e-12)
        assert np.all(risk <= collapse_risk(plain, interval, learning_rate=rates, horizon=5000.0) + 1e-12)


def test_the_recommended_rate_is_the_largest_at_which_few_enough_seeds_are_unstable(plain):
    def unstable(rate):
        return plain.boundary.unstable_probability(16.0, np.array([rate]))[0]

    rate = recommend_rate(plain, 16.0, horizon=LONG, risk=0.05)
    assert 0.03 < unstable(rate) <= 0.05 < unstable(1.05 * rate)
    assert recommend_rate(plain, 16.0, horizon=LONG, risk=0.2) > rate
    # within 5 steps almost nothing collapses, but a run above the boundary degrades all the same
    assert recommend_rate(plain, 16.0, horizon=5.0, risk=0.05) == rate


def test_where_the_max_form_is_decided_a_short_run_may_go_faster(plain):
    decided = replace(plain, combination=Combination.MAX)
    rate = recommend_rate(decided, 16.0, horizon=LONG, risk=0.05)
    assert recommend_rate(decided, 16.0, horizon=50.0, risk=0.05) > 1.5 * rate


def test_beyond_the_longest_run_the_rate_falls_as_fast_as_the_horizon_grows(plain):
    rate = recommend_rate(plain, 16.0, horizon=LONG, risk=0.05)
    assert recommend_rate(plain, 16.0, horizon=5 * LONG, risk=0.05) == pytest.approx(rate / 5, rel=1e-12)
    at, beyond = (max_rate(plain, 16.0, horizon=horizon) for horizon in (LONG, 5 * LONG))
    assert (at.binding, beyond.binding) == ("staleness", "horizon")
    assert beyond.max_learning_rate.estimate == pytest.approx(at.max_learning_rate.estimate / 5, rel=1e-12)
    decided = replace(plain, combination=Combination.MAX)
    assert recommend_rate(decided, 16.0, horizon=5 * LONG, risk=0.05) == pytest.approx(rate, rel=0.05)


@pytest.mark.parametrize("truth", ["min-form", "max-form"])
@pytest.mark.parametrize("interval", [1.0, 8.0, 64.0])
def test_what_is_recommended_beyond_the_data_survives_under_either_truth(truth, interval):
    """B = 3 spent by rates of 1.5e-3 within the 2000 steps seen; asked for 20000 steps, where B allows 1.5e-4."""
    budget, steps, horizon = 3.0, 2000, 20_000
    runs = draw_sweep(
        60,
        budget=budget,
        steps=(steps,),
        intervals=(1.0, *INTERVALS),
        spends_everywhere=truth == "min-form",
        num_seeds=3,
    )
    rate = recommend_rate(calibrate(runs), interval, horizon=horizon, risk=0.05)
    if truth == "max-form" and interval == 1.0:
        assert rate is None, "nothing was unstable at S = 1"
        return
    below_boundary = rate < 0.05 / max(interval, 2.0)
    below_budget = rate * horizon < budget * np.exp(-1.645 * 0.2)
    assert below_budget if truth == "min-form" else below_boundary or below_budget


def test_an_interval_for_a_rate_stays_below_the_boundary_however_short_the_run(plain):
    at_rate = answer(plain, Question(horizon=5.0, learning_rate=2e-3, risk=0.5)).recommendation
    assert collapse_risk(plain, 64.0, learning_rate=np.array([2e-3]), horizon=5.0)[0] < 0.05
    assert at_rate.sync_interval == 16.0  # the boundary is at 25


def test_the_risk_at_the_boundary_is_even(plain):
    rate = max_rate(plain, 16.0, horizon=LONG).max_learning_rate.estimate
    assert collapse_risk(plain, 16.0, learning_rate=np.array([rate]), horizon=LONG)[0] == pytest.approx(0.5, abs=0.05)


def test_the_table_follows_the_boundary_then_the_horizon_then_the_ceiling(with_ceiling):
    long = {S: max_rate(with_ceiling, S, horizon=LONG) for S in (1.0, 2.0, 16.0, 64.0)}
    assert [row.binding for row in long.values()] == ["ceiling", "ceiling", "staleness", "staleness"]
    assert long[16.0].max_learning_rate.contains(0.05 / 16)
    assert long[1.0].max_learning_rate.contains(0.012)
    assert max_rate(with_ceiling, 64.0, horizon=100.0).binding == "staleness", "undecided: nothing said of a horizon"
    decided = replace(with_ceiling, combination=Combination.MAX)
    short = max_rate(decided, 64.0, horizon=100.0)
    assert short.binding == "horizon"
    assert short.max_learning_rate.estimate == pytest.approx(0.7 / 100, rel=0.1)


def test_the_min_form_binds_from_above():
    runs = draw_sweep(32, spends_everywhere=True, steps=(100, 1600), rates=np.geomspace(3e-5, 3e-2, 9), num_seeds=2)
    found = calibrate(runs)
    assert found.combination is Combination.MIN
    row = max_rate(found, 8.0, horizon=LONG)
    assert row.binding == "horizon"
    assert row.max_learning_rate.estimate < 0.05 / 8 / 10
    risk = collapse_risk(found, 8.0, learning_rate=np.array([1e-3]), horizon=LONG)
    assert risk[0] > 0.95


def test_a_query_is_answered_with_a_predictive_interval(plain):
    asked = query(plain, 8.0, learning_rate=0.02, horizon=2000.0)
    assert asked.risk > 0.95
    assert asked.binding == "staleness"
    assert asked.collapse_step.estimate == pytest.approx(0.7 / 0.02, rel=0.1)
    drawn = 0.7 / 0.02 * np.exp(0.2 * np.array([-1.645, 1.645]))
    assert asked.collapse_step.low == pytest.approx(drawn[0], rel=0.15)
    assert asked.collapse_step.high == pytest.approx(drawn[1], rel=0.15)


def test_a_collapse_step_is_a_step_or_unknown(plain):
    assert query(plain, 8.0, learning_rate=1e6, horizon=10.0).collapse_step.low == 1.0
    assert query(plain, 8.0, learning_rate=1e-25, horizon=10.0).collapse_step.estimate is None


def test_without_collapse_times_every_unstable_run_counts():
    runs = draw_sweep(42, num_seeds=2)
    runs["collapse_step"] = np.nan
    found = calibrate(runs)
    assert found.time_law is None
    soon = collapse_risk(found, 16.0, learning_rate=np.array([1e-2]), horizon=2.0)
    assert soon[0] > 0.9
    assert query(found, 16.0, learning_rate=1e-2, horizon=2.0).collapse_step.estimate is None


def test_the_choice_of_an_interval():
    assert choose_interval({4.0: 1.0}, {4.0: "staleness"})[0] == 4.0
    rates = {2.0: 1.0, 4.0: 1.0, 8.0: 0.5}
    assert choose_interval(rates, {2.0: "ceiling", 4.0: "ceiling", 8.0: "staleness"})[0] == 4.0
    assert choose_interval(rates, {2.0: "staleness", 4.0: "staleness", 8.0: "staleness"})[0] == 2.0
    assert choose_interval(rates, dict.fromkeys(rates, "horizon"))[0] == 8.0


def test_what_is_recommended_depends_on_what_is_fixed(with_ceiling):
    free = answer(with_ceiling, Question(horizon=LONG)).recommendation
    assert free.sync_interval in (2.0, 4.0)
    assert "the ceiling limits the rate here, not S" in free.why
    at_eight = answer(with_ceiling, Question(horizon=LONG, sync_interval=8)).recommendation
    assert at_eight.sync_interval == 8
    assert at_eight.learning_rate < free.learning_rate
    at_rate = answer(with_ceiling, Question(horizon=LONG, learning_rate=8e-4)).recommendation
    assert (at_rate.sync_interval, at_rate.learning_rate) == (32.0, 8e-4)
    assert answer(with_ceiling, Question(horizon=LONG, learning_rate=0.5)).recommendation is None


def test_reaching_beyond_the_data_is_said(plain):
    def warned(**question):
        return " ".join(answer(plain, Question(**question)).warnings)

    assert "extrapolated" not in warned(horizon=LONG, sync_interval=8, learning_rate=1e-3)
    assert "S = 256 lies outside the measured range 2 to 64" in warned(horizon=LONG, sync_interval=256)
    assert "eta = 1e-05 lies outside the tested range" in warned(horizon=LONG, learning_rate=1e-5)
    assert "the horizon is longer than any run (20000 steps)" in warned(horizon=1e6)
    slow = calibrate(draw_sweep(41, rates=np.geomspace(1e-4, 6e-3, 6), num_seeds=4))
    asked = answer(slow, Question(horizon=LONG, sync_interval=2.0))
    assert any("is the largest tested one" in warning for warning in asked.warnings)


def test_a_risk_nobody_can_keep_is_said(plain):
    found = answer(plain, Question(horizon=LONG, risk=1e-30))
    assert found.recommendation is None
    assert any("no measured S keeps a risk of 1e-30" in sentence for sentence in found.missing)
    at_eight = answer(plain, Question(horizon=LONG, risk=1e-30, sync_interval=8))
    assert any("no rate near the tested ones keeps the risk" in sentence for sentence in at_eight.missing)


def test_questions_are_checked():
    for field, value, text in (
        ("horizon", 0, "horizon must be a whole number of 1 to 1e12, got 0"),
        ("horizon", np.nan, "horizon must be a whole number of 1 to 1e12, got nan"),
        ("horizon", 1.5, "horizon must be a whole number"),
        ("horizon", 1e13, "horizon must be a whole number"),
        ("learning_rate", 1e-300, "learning_rate must lie in 1e-30 to 1e30"),
        ("sync_interval", 0.5, "sync_interval must lie in 1 to 1e12, got 0.5"),
        ("sync_interval", np.inf, "sync_interval must lie in 1 to 1e12, got inf"),
        ("learning_rate", -1.0, "learning_rate must lie in 1e-30 to 1e30, got -1"),
        ("risk", 1.0, r"risk must lie in \(0, 1\), got 1"),
    ):
        with pytest.raises(InputError, match=text):
            Question(**{"horizon": 100, field: value})


def degenerate(**changes):
    return calibrate(draw_sweep(43, **changes))


DEGENERATE = {
    "nothing unstable": ({"rates": (1e-6, 2e-6)}, "no run at S >= 2 became unstable", (64.0, 4e-6)),
    "nothing stable": ({"rates": (0.1, 0.2)}, "no run at S >= 2 stayed stable", (2.0, 0.05)),
    "one S": ({"intervals": (8.0,)}, "S = 8 is the only one; add a second S", (32.0, None)),
    "one rate": ({"rates": (4e-3,)}, "eta = 0.004 is the only one; add a second rate", (3.0, None)),
    "no stale arm": ({"intervals": (1.0,), "ceiling": 0.01}, "no run has a finite S >= 2", (16.0, None)),
    "no S = 1": ({}, "no run has S = 1; an on-policy arm would give it", (1.0, 0.03)),
    "one horizon": ({}, "two that differ by a factor 2 are needed", (11.0, None)),
    "wide": ({"intervals": (8.0, 11.0), "scale": 1.0, "num_seeds": 1}, "as wide as the prior", (8.0, None)),
}


@pytest.mark.parametrize("case", DEGENERATE)
def test_what_a_poor_table_lacks_and_the_run_that_helps(case):
    changes, sentence, (interval, rate) = DEGENERATE[case]
    found = degenerate(**changes)
    assert any(sentence in missing for missing in found.missing), found.missing
    proposed = [run for run in found.next_runs if run.sync_interval == interval]
    assert proposed, found.next_runs
    if rate is not None:
        assert rate in [run.learning_rate for run in proposed]
    for run in found.next_runs:
        assert run.steps >= 20_000
        assert run.seeds == 3
        assert run.learning_rate > 0


@pytest.mark.parametrize("case", ["nothing unstable", "nothing stable", "no stale arm"])
def test_a_table_without_a_boundary_has_no_number(case):
    found = answer(degenerate(**DEGENERATE[case][0]), Question(horizon=LONG, sync_interval=8, learning_rate=1e-3))
    assert found.critical_product.estimate is None
    assert found.boundary_exponent.estimate is None
    assert found.query.risk is None
    assert found.recommendation is None
    assert any("query.risk: the boundary at S = 8 is not known" in sentence for sentence in found.missing)
    assert all(row.max_learning_rate.estimate is None for row in found.table if row.sync_interval != 1)


def test_all_collapsed_still_gives_a_budget():
    found = degenerate(rates=(0.01, 0.03), intervals=(32.0, 64.0), num_seeds=3, critical_product=0.02)
    assert found.critical_product.estimate is None
    assert found.budget.contains(0.7)
    assert found.budget_exponent.identified


def test_one_interval_answers_at_that_interval_only():
    found = degenerate(intervals=(8.0,), num_seeds=3)
    assert found.boundary_exponent.estimate is None
    assert max_rate(found, 8.0, horizon=LONG).max_learning_rate.estimate == pytest.approx(0.05 / 8, rel=0.4)
    assert max_rate(found, 16.0, horizon=LONG).max_learning_rate.estimate is None
    assert answer(found, Question(horizon=LONG)).recommendation.sync_interval == 8.0


@pytest.mark.parametrize(
    ("rate", "outcome", "sentence"),
    [(1e-4, "stable", "no run at S = 1 became unstable"), (0.1, "collapsed", "no run at S = 1 stayed stable")],
)
def test_an_on_policy_arm_of_one_kind_asks_for_the_other(rate, outcome, sentence):
    arm = draw_sweep(44, intervals=(1.0,), rates=(rate,), ceiling=0.012)
    assert set(arm["outcome"]) == {outcome}
    found = calibrate(pd.concat([draw_sweep(45), arm], ignore_index=True))
    assert any(sentence in missing for missing in found.missing)
    assert found.learning_rate_ceiling.estimate is None
    assert [run.sync_interval for run in found.next_runs].count(1.0) == 1
    assert any("what looks like staleness" in w for w in found.warnings) == (outcome == "collapsed")


def test_budgets_lack_times_or_rates():
    none = degenerate(steps=(10,), rates=(1e-3, 3e-2))
    assert none.budget.estimate is None
    few = degenerate(rates=(1e-4, 1e-2), intervals=(16.0, 64.0))
    assert few.budget.estimate is not None
    assert few.budget_exponent.estimate is None
    assert any("budget_exponent: the collapsed runs share one rate" in sentence for sentence in few.missing)


def messy_runs(seed):
    """A small table of anything that passes the checks: odd S, every outcome, onsets given or not."""
    rng = np.random.default_rng(seed)
    size = rng.integers(1, 14)
    outcomes = rng.choice(["stable", "degraded", "collapsed", "failed", "unknown"], size, p=(0.3, 0.2, 0.3, 0.1, 0.1))
    steps = rng.choice([1, 2, 50, 1000, 100_000], size)
    dated = np.isin(outcomes, ["degraded", "collapsed"]) & (rng.random(size) < 0.7)
    high = np.where(dated, rng.integers(1, steps + 1), np.nan)
    low = np.where(rng.random(size) < 0.5, np.floor(high * rng.random(size) * 0.99), high - 1)
    return pd.DataFrame(
        {
            "run": range(size),
            "sync_interval": rng.choice([1, 1.5, 2, 3, 8, 64, np.inf], size),
            "learning_rate": rng.choice([1e-7, 1e-6, 3e-6, 1e-5, 1e-3], size),
            "steps": steps,
            "outcome": outcomes,
            "collapse_step_low": low,
            "collapse_step_high": high,
        }
    )


QUESTIONS = (
    Question(horizon=2000),
    Question(horizon=10, sync_interval=8, learning_rate=1e-6),
    Question(horizon=1e5, sync_interval=1, risk=0.5),
    Question(horizon=1e5, learning_rate=1e-6, risk=0.2),
)


@pytest.mark.parametrize("seed", range(16))
def test_any_table_is_answered_with_numbers_that_make_sense(seed):
    calibration = calibrate(messy_runs(seed))
    for question in QUESTIONS:
        found = json.loads(json.dumps(answer(calibration, question).to_json(), allow_nan=False))
        for row in found["table"]:
            assert row["max_learning_rate"] is not None or row["binding"] is None
            if row["low"] is not None:
                assert 0 < row["low"] <= row["max_learning_rate"] <= row["high"]
        if found["query"] is not None and found["query"]["risk"] is not None:
            assert 0 <= found["query"]["risk"] <= 1
        if found["recommendation"] is not None:
            assert found["recommendation"]["risk"] <= question.risk
        else:
            assert any("recommendation:" in sentence for sentence in found["missing"])


def test_runs_without_any_known_outcome():
    runs = draw_sweep(46).assign(outcome="unknown", collapse_step=np.nan)
    found = answer(calibrate(runs), Question(horizon=100, sync_interval=8, learning_rate=1e-3))
    assert [row.max_learning_rate.estimate for row in found.table] == [None]
    assert found.query.risk is None
    assert found.missing[0].startswith("everything")
    assert found.recommendation is None


def test_runs_stopped_before_they_could_collapse_are_said():
    found = calibrate(draw_sweep(47, steps=(600,)))
    assert any("ended before eta*steps reached the budget" in warning for warning in found.warnings)


def test_rates_out_of_order_are_said():
    runs = draw_sweep(48, scale=1.0, num_seeds=3)
    assert any("not monotone" in warning for warning in calibrate(runs).warnings)

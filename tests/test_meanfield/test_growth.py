"""The drift of early training, made up with known exponents, and the verdict on the drift argument."""

from dataclasses import fields, replace

import numpy as np
import pytest

from meanfield import growth
from meanfield.boundary import log_rate_at
from meanfield.calibrate import calibrate
from meanfield.estimate import Estimate
from meanfield.growth import DRIFT_FACTOR, EXPONENT_WIDTH, MIN_RUNS, DriftGrowth, drift_growth, drift_verdict
from meanfield.observations import observe
from tests.support.made_up import RATES, made_up_measures, power_law_drift
from tests.support.sweeps import INTERVALS, draw_sweep
from theory.claims import claim

ALPHA, BETA, CONSTANT, NOISE = 0.8, 0.6, 30.0, 0.1
LAW = {"constant": CONSTANT, "with_rate": ALPHA, "with_interval": BETA, "noise": NOISE}
SINGLE = 1e-6
"""Measures are kept in float32."""
QUICK = 400
"""Resamples of a bootstrap whose interval is only counted."""


def sweep(seed, *, exponent):
    """A sweep whose boundary falls as S^-exponent and whose unstable runs all collapse at once."""
    return draw_sweep(
        seed, critical_product=0.06, exponent=exponent, budget=0.02, rates=RATES, steps=(800,), num_seeds=3
    )


def measures_of(seed=0, *, law=LAW, **variables):
    drift = power_law_drift(seed, **law)
    return made_up_measures({"drift": drift, "behavior_k3": drift**2 / 2, "effective_sample_size": 0.5, **variables})


@pytest.fixture(scope="module")
def agreeing():
    """A boundary at the exponent that the drift predicts."""
    return calibrate(sweep(1, exponent=BETA / ALPHA))


@pytest.fixture(scope="module")
def found(agreeing):
    return drift_growth(measures_of(1, pair_cosine=0.04), calibration=agreeing)


# --- what is fitted


def test_without_noise_the_exponents_are_exact(agreeing):
    exact = drift_growth(measures_of(law={**LAW, "noise": 0.0}), calibration=agreeing)
    for one, truth in (
        (exact.with_rate, ALPHA),
        (exact.with_interval, BETA),
        (exact.predicted_exponent, -BETA / ALPHA),
    ):
        assert (one.low, one.high) == pytest.approx((truth, truth), abs=SINGLE)


def test_exponents_and_what_they_predict_contain_the_truth(found):
    assert found.with_rate.contains(ALPHA)
    assert found.with_interval.contains(BETA)
    assert found.predicted_exponent.contains(-BETA / ALPHA)
    assert found.predicted_exponent.high - found.predicted_exponent.low < EXPONENT_WIDTH


def test_the_lag_exponent_is_that_of_the_lag_itself(agreeing):
    """Drift as lag^0.7 at the largest S; over long lags as lag^1.2."""
    lag = np.array(measures_of()["lag"].values, float)
    curve = np.where(lag < growth.LONG_LAG, lag**0.7, growth.LONG_LAG**-0.5 * lag**1.2)
    drift = np.broadcast_to(1e-3 * curve, (len(INTERVALS), len(RATES), 3, len(lag)))
    whole = drift_growth(made_up_measures({"drift": drift}), calibration=agreeing)
    assert whole.with_long_lag.estimate == pytest.approx(1.2, abs=SINGLE)
    assert 0.7 < whole.with_lag.estimate < 1.2


def test_the_drift_on_the_boundary_is_the_same_at_every_interval_where_the_argument_holds(found):
    """On eta_max ~ S^(-beta/alpha) it is constant: a few hundredths of noise, and the boundary of each S by itself."""
    assert [point.sync_interval for point in found.on_boundary] == list(INTERVALS)
    level = CONSTANT * (0.06 / np.sqrt(128)) ** ALPHA * np.sqrt(128) ** BETA
    inside = [point.drift.contains(level) for point in found.on_boundary]
    assert sum(inside) >= 5
    assert 1.0 <= found.spread.low < found.spread.estimate < DRIFT_FACTOR
    for point in found.on_boundary:
        assert point.behavior_k3.estimate == pytest.approx(point.drift.estimate**2 / 2, rel=0.05)
        assert point.effective_sample_size.estimate == pytest.approx(0.5)


def two_intervals(constants, *, scale, noise):
    """A sweep at S = 4 and 32 on whose boundary the drift is one of the constants each."""
    intervals, rates = (4.0, 32.0), tuple(np.geomspace(1e-3, 3e-2, 20))
    shape = {"intervals": intervals, "rates": rates, "num_seeds": 3}
    runs = draw_sweep(2, critical_product=0.06, exponent=BETA / ALPHA, scale=scale, budget=0.02, steps=(800,), **shape)
    drift = power_law_drift(0, **{**LAW, "noise": noise}, **shape) * np.array(constants)[:, None, None, None]
    values = {"drift": drift, "behavior_k3": drift, "effective_sample_size": drift}
    return drift_growth(made_up_measures(values, **shape), calibration=calibrate(runs))


@pytest.mark.parametrize(("constants", "spread"), [((1.0, 1.0), 1.0), ((1.0, 4.0), 4.0), ((2.0, 1.0), 2.0)])
def test_the_spread_is_the_ratio_of_the_drifts_on_the_boundary(constants, spread):
    """A sharp boundary between two tested rates that lie a fifth apart: each end is known to a tenth."""
    found = two_intervals(constants, scale=1e-3, noise=0.0).spread
    assert found.low / 1.2 < spread < found.high * 1.2
    assert found.estimate == pytest.approx(spread, rel=0.2)


@pytest.mark.parametrize(("scale", "noise"), [(1e-3, 1.0), (0.3, 0.0)], ids=["the drift", "the boundary"])
def test_drifts_at_two_intervals_are_uncertain_each_by_itself(scale, noise):
    """The runs at two S are other runs: in log units the widths add up as squares, and none of it cancels."""
    found = two_intervals((1.0, 20.0), scale=scale, noise=noise)
    widths = [np.log(one.high / one.low) for one in (*(point.drift for point in found.on_boundary), found.spread)]
    assert len(widths) == 3
    assert widths[2] == pytest.approx(np.hypot(*widths[:2]), rel=0.1)


def test_runs_above_the_boundary_do_not_count_for_the_growth(agreeing):
    edges = {one.sync_interval: one.smallest_unstable for one in agreeing.brackets}
    above = np.array([[eta > edges[S] for eta in RATES] for S in INTERVALS])[..., None, None]
    drift = power_law_drift(0, **LAW)
    values = {"behavior_k3": 1.0, "effective_sample_size": 1.0}
    plain = drift_growth(made_up_measures({"drift": drift, **values}), calibration=agreeing)
    wild = drift_growth(made_up_measures({"drift": np.where(above, 1e3, drift), **values}), calibration=agreeing)
    assert above.any()
    assert wild.predicted_exponent == plain.predicted_exponent
    assert wild.with_lag == plain.with_lag


def test_coherence_predicts_an_exponent_of_its_own(found):
    """q = 0.04 in the geometric middle of the S, by the formula written out."""
    middle = np.sqrt(INTERVALS[0] * INTERVALS[-1])
    expected = -0.5 * (1 + 2 * 0.04 * middle - 0.04) / (1 + 0.04 * middle - 0.04)
    assert found.pair_cosine.estimate == pytest.approx(0.04)
    assert found.predicted_by_cosine.estimate == pytest.approx(expected, rel=SINGLE)


def test_gradients_that_point_apart_predict_a_walk(agreeing):
    apart = drift_growth(measures_of(pair_cosine=-0.01), calibration=agreeing)
    assert apart.predicted_by_cosine.estimate == -0.5


def test_intervals_cover_the_truth_as_often_as_they_say(agreeing, monkeypatch):
    """100 data sets, 90 % intervals: fewer than 82 or more than 97 hits have a chance below 1 % together."""
    monkeypatch.setattr(growth, "NUM_RESAMPLES", QUICK)
    stable = calibrate(sweep(1, exponent=0.75).assign(outcome="stable", collapse_step=np.nan))
    hits = np.zeros(3, int)
    for seed in range(100):
        noisy = drift_growth(measures_of(seed, law={**LAW, "noise": 0.4}), calibration=stable)
        truths = ((noisy.with_rate, ALPHA), (noisy.with_interval, BETA), (noisy.predicted_exponent, -BETA / ALPHA))
        hits += [one.contains(truth) for one, truth in truths]
    assert np.all((hits >= 82) & (hits <= 97)), hits


def test_the_same_measures_give_the_same_numbers(agreeing, found):
    assert drift_growth(measures_of(1, pair_cosine=0.04), calibration=agreeing) == found


# --- what cannot be said


def unknown_names(one):
    return {name for name, value in vars(one).items() if isinstance(value, Estimate) and value.estimate is None}


ALL = {item.name for item in fields(DriftGrowth)} - {"on_boundary"}


def test_without_any_measure_nothing_is_known(agreeing):
    empty = drift_growth(made_up_measures({}), calibration=agreeing)
    assert unknown_names(empty) == ALL
    assert empty.on_boundary == ()


def test_with_too_few_runs_nothing_is_known(agreeing):
    kept = np.zeros((len(INTERVALS), len(RATES), 3, 1), bool)
    for place in range(MIN_RUNS - 1):
        kept[place % 3, place % 4, place // 3] = True
    values = {
        "drift": np.where(kept, power_law_drift(0, **LAW), np.nan),
        "pair_cosine": np.where(kept, 0.1, np.nan)[..., 0],
    }
    few = drift_growth(made_up_measures(values), calibration=agreeing)
    assert unknown_names(few) == ALL


@pytest.mark.parametrize("intervals", [(1.0,), (1.0, 4.0), (1.0, 2.0, 8.0)])
def test_short_cycles_have_no_long_lags(intervals):
    """The largest S leaves one lag, or none, beyond which nothing is known; at S = 1 there is no stale run at all."""
    runs = draw_sweep(3, intervals=intervals, ceiling=0.01, rates=RATES, steps=(800,), num_seeds=3)
    drift = power_law_drift(0, **LAW, intervals=intervals)
    short = drift_growth(made_up_measures({"drift": drift}, intervals=intervals), calibration=calibrate(runs))
    assert {"with_long_lag", "predicted_by_cosine", "pair_cosine", "spread"} <= unknown_names(short)
    assert (short.with_interval.estimate is None) == (len(intervals) < 3)


def test_one_rate_or_one_interval_gives_no_exponents(agreeing):
    drift = power_law_drift(0, **LAW)
    for place in ((slice(3, 4), slice(None)), (slice(None), slice(0, 1))):
        kept = np.zeros(drift.shape, bool)
        kept[place] = True
        one = drift_growth(made_up_measures({"drift": np.where(kept, drift, np.nan)}), calibration=agreeing)
        assert {"with_rate", "with_interval", "predicted_exponent"} <= unknown_names(one)


def test_a_drift_that_may_not_depend_on_the_rate_predicts_nothing(agreeing):
    """Six runs at two rates: some resamples hold one rate alone, whose slope is zero and whose exponent is none."""
    kept = np.zeros((len(INTERVALS), len(RATES), 3, 1), bool)
    kept[:3, 0, 0], kept[:3, 1, 0] = True, True
    values = {"drift": np.where(kept, power_law_drift(0, **LAW), np.nan)}
    assert drift_growth(made_up_measures(values), calibration=agreeing).predicted_exponent == Estimate.unknown()


# --- the boundary of one S by itself


def test_the_rate_at_one_interval_lies_between_what_was_stable_and_what_was_not():
    observations = observe(draw_sweep(4, scale=1e-6, rates=RATES, steps=(800,), budget=0.02))
    for S in (8.0, 16.0, 32.0):
        rate = np.exp(np.median(log_rate_at(observations, observations.collapsed, S)))
        here = observations.sync_interval == S
        assert observations.learning_rate[here & ~observations.collapsed].max() < rate
        assert rate < observations.learning_rate[here & observations.collapsed].min()


def test_the_rate_at_one_interval_uses_no_other_and_needs_both_outcomes():
    observations = observe(draw_sweep(5, rates=RATES, steps=(800,), budget=0.02))
    alone = observations.where(observations.sync_interval == 16)
    np.testing.assert_array_equal(
        log_rate_at(observations, observations.collapsed, 16.0), log_rate_at(alone, alone.collapsed, 16.0)
    )
    assert log_rate_at(observations, np.zeros(len(observations), bool), 16.0) is None
    assert log_rate_at(observations, observations.collapsed, 5.0) is None


# --- the verdict


def verdict(agreeing, *, predicted=(-0.8, -0.9, -0.7), measured=(-0.8, -0.9, -0.7), spread=(1.3, 1.1, 1.8)):
    given = {"predicted_exponent": Estimate(*predicted), "spread": Estimate(*spread)}
    made = {name: given.get(name, Estimate.unknown()) for name in ALL}
    calibration = replace(agreeing, boundary_exponent=Estimate(*measured))
    return drift_verdict(DriftGrowth(**made, on_boundary=()), calibration)


UNKNOWN = (None, None, None, False)
"""Arguments of an estimate that is not known."""


@pytest.mark.parametrize(
    ("word", "because", "changes"),
    [
        ("supported", "over S.", {}),
        ("supported", "over S.", {"measured": (-0.6, -0.7, -0.5)}),  # the ends touch
        ("supported", "over S.", {"spread": (2.0, 1.5, 2.6)}),
        ("not supported", "do not overlap", {"measured": (-0.4, -0.6, -0.2)}),
        ("not supported", "do not overlap", {"measured": (-1.2, -1.4, -1.0)}),
        ("not supported", "do not overlap", {"measured": (-1.2, -1.4, -1.0), "spread": (3.0, 2.1, 4.0)}),
        ("not supported", "no constant", {"spread": (3.0, 2.1, 4.0)}),
        ("inconclusive", "too wide", {"spread": (2.1, 1.2, 4.0)}),
        ("inconclusive", "too wide", {"spread": (2.1, 2.0, 4.0)}),
        ("inconclusive", "too wide", {"predicted": (-0.8, -1.1, -0.6)}),
        ("inconclusive", "too wide", {"measured": (-0.8, -1.1, -0.6)}),
        ("inconclusive", "not identified", {"predicted": UNKNOWN}),
        ("inconclusive", "not identified", {"measured": UNKNOWN}),
        ("inconclusive", "not identified", {"spread": UNKNOWN}),
        ("inconclusive", "not identified", {"measured": (-0.8, -0.9, -0.7, False)}),
    ],
)
def test_the_verdict_follows_the_rule_of_the_claim(agreeing, word, because, changes):
    said = verdict(agreeing, **changes)
    assert (said.claim_id, said.word) == ("C9", word)
    assert because in said.sentence


def test_the_verdict_carries_the_numbers_of_its_rule(agreeing):
    said = verdict(agreeing)
    assert (said.numbers["predicted"], said.numbers["predicted_low"]) == (-0.8, -0.9)
    assert (said.numbers["measured_high"], said.numbers["spread_high"]) == (-0.7, 1.8)
    assert "-0.80 [-0.90, -0.70]" in said.sentence
    rule = claim("C9").verdict_rule
    assert f"narrower than {EXPONENT_WIDTH:g}" in rule
    assert f"within a factor {DRIFT_FACTOR:g}" in rule


def test_a_drift_that_foretells_the_boundary_is_supported(agreeing, found):
    assert drift_verdict(found, agreeing).word == "supported"


def test_a_drift_that_foretells_another_boundary_is_not_supported():
    """A boundary that falls as S^-0.2, where the drift says S^-0.75."""
    calibration = calibrate(sweep(6, exponent=0.2))
    said = drift_verdict(drift_growth(measures_of(), calibration=calibration), calibration)
    assert said.word == "not supported"
    assert "do not overlap" in said.sentence

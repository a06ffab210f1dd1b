import numpy as np
import pytest
import xarray as xr

from meanfield.labels import DEFAULT_RULE, LabelRule, label_rollout_run, label_run, label_sweep
from meanfield.outcomes import Outcome
from meanfield.runs import check_runs
from theory.errors import InputError

STEP = 10.0 * np.arange(1, 21)
FLOOR = 0.1


def healthy():
    """Rises from 0.6 to 0.9, the gain over the floor is 0.8: below 0.3 is collapse, 0.5 a fall, 0.74 degraded."""
    return np.linspace(0.6, 0.9, 20)


def label(reward, **keywords):
    return label_run(STEP, reward, floor=FLOOR, **keywords)


def test_a_rising_curve_is_stable_and_has_no_onset():
    found = label(healthy())
    assert (found.outcome, found.collapse_step_low, found.collapse_step_high) == (Outcome.STABLE, None, None)


def test_a_curve_that_falls_for_good_is_collapsed_between_two_evaluations():
    reward = healthy()
    reward[12:] = 0.12
    found = label(reward)
    assert found.outcome is Outcome.COLLAPSED
    assert (found.collapse_step_low, found.collapse_step_high) == (120.0, 130.0)


def test_the_collapse_threshold_is_a_quarter_of_the_gain():
    """The peak is the mean of the three evaluations before the fall; the threshold is compared on either side."""
    reward = np.full(20, 0.9)
    reward[10:] = FLOOR + 0.25 * 0.8 - 1e-9
    assert label(reward).outcome is Outcome.COLLAPSED
    reward[10:] = FLOOR + 0.25 * 0.8 + 1e-9
    assert label(reward).outcome is Outcome.DEGRADED


def test_a_fall_to_a_middling_plateau_is_degraded_from_its_start():
    reward = healthy()
    reward[9:] = 0.55
    found = label(reward)
    assert found.outcome is Outcome.DEGRADED
    assert (found.collapse_step_low, found.collapse_step_high) == (90.0, 100.0)


def test_collapse_then_recovery_is_degraded():
    reward = healthy()
    reward[8:13] = 0.1
    found = label(reward)
    assert found.outcome is Outcome.DEGRADED
    assert (found.collapse_step_low, found.collapse_step_high) == (80.0, 90.0)


@pytest.mark.parametrize(("length", "outcome"), [(2, Outcome.DEGRADED), (3, Outcome.COLLAPSED)])
def test_a_dip_at_the_very_end_needs_three_evaluations_to_be_a_collapse(length, outcome):
    reward = healthy()
    reward[-length:] = 0.1
    assert label(reward).outcome is outcome


def test_a_short_dip_in_the_middle_is_stable():
    reward = healthy()
    reward[8:10] = 0.1
    assert label(reward).outcome is Outcome.STABLE


def test_noise_before_anything_was_learned_is_no_fall():
    reward = np.concatenate([[0.12, 0.14, 0.1, 0.1, 0.1, 0.1], np.linspace(0.2, 0.9, 14)])
    assert label(reward).outcome is Outcome.STABLE


def test_one_lucky_evaluation_is_no_peak():
    reward = np.full(20, 0.6)
    reward[5] = 0.9
    assert label(reward).outcome is Outcome.STABLE
    alone = LabelRule(smoothing_window=1)
    assert label(reward, rule=alone).outcome is Outcome.DEGRADED


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_reward_that_is_not_finite_is_failed_never_collapsed(bad):
    reward = healthy()
    reward[12:] = bad
    assert label(reward).outcome is Outcome.FAILED


def test_nothing_evaluated_and_nothing_learned_are_unknown():
    assert label_run(np.empty(0), np.empty(0), floor=FLOOR).outcome is Outcome.UNKNOWN
    assert label(np.full(20, FLOOR)).outcome is Outcome.UNKNOWN


def test_with_fewer_evaluations_than_the_rule_needs_no_outcome_can_be_told():
    assert label_run(STEP[:2], np.array([0.9, 0.1]), floor=FLOOR).outcome is Outcome.UNKNOWN
    assert label_run(STEP[:3], np.array([0.9, 0.9, 0.9]), floor=FLOOR).outcome is Outcome.STABLE
    one = LabelRule(min_evaluations=1)
    assert label_run(STEP[:2], np.array([0.9, 0.1]), floor=FLOOR, rule=one).outcome is Outcome.COLLAPSED
    assert label_run(np.empty(0), np.empty(0), floor=FLOOR, rule=one).outcome is Outcome.UNKNOWN
    assert label_run(STEP[:2], np.array([0.9, np.nan]), floor=FLOOR).outcome is Outcome.FAILED


def test_scaling_the_reward_changes_nothing():
    reward = healthy()
    reward[9:] = 0.12
    scaled = label_run(STEP, 7.0 * reward - 3.0, floor=7.0 * FLOOR - 3.0)
    assert scaled == label(reward)


def test_rollout_reward_widens_the_onset_by_one_cycle():
    reward = healthy()
    reward[12:] = 0.12
    found = label_rollout_run(STEP, reward, floor=FLOOR, sync_interval=32)
    assert (found.collapse_step_low, found.collapse_step_high) == (88.0, 130.0)
    never = label_rollout_run(STEP, reward, floor=FLOOR, sync_interval=np.inf)
    assert (never.collapse_step_low, never.collapse_step_high) == (0.0, 130.0)
    assert label_rollout_run(STEP, healthy(), floor=FLOOR, sync_interval=32).outcome is Outcome.STABLE


def test_bad_curves_are_refused():
    with pytest.raises(InputError, match="reward must have the shape of step"):
        label_run(STEP, healthy()[:-1], floor=FLOOR)
    with pytest.raises(InputError, match="step must rise"):
        label_run(STEP[::-1], healthy(), floor=FLOOR)
    with pytest.raises(InputError, match="floor must be finite, got nan"):
        label_run(STEP, healthy(), floor=np.nan)
    with pytest.raises(InputError, match="sync_interval must be >= 1, got 0"):
        label_rollout_run(STEP, healthy(), floor=FLOOR, sync_interval=0)


def test_bad_rules_are_refused_and_the_default_is_stored():
    with pytest.raises(InputError, match="label fractions must rise inside"):
        LabelRule(fall_fraction=0.2)
    with pytest.raises(InputError, match="established_fraction must lie in"):
        LabelRule(established_fraction=0.0)
    with pytest.raises(InputError, match="min_evaluations must be an integer >= 1, got 0"):
        LabelRule(min_evaluations=0)
    assert DEFAULT_RULE.to_json() == {
        "collapse_fraction": 0.25,
        "fall_fraction": 0.5,
        "degraded_fraction": 0.8,
        "established_fraction": 0.5,
        "min_evaluations": 3,
        "smoothing_window": 3,
    }


def sweep():
    """Two S, one of them evaluated every fourth step only; four curves."""
    step = np.arange(1, 41)
    reward = np.full((2, 1, 2, 40), np.nan)
    reward[0, 0, 0] = 0.9
    reward[0, 0, 1] = np.where(step < 15, 0.9, 0.1)
    reward[1, 0, 0, 3::4] = np.where(step[3::4] < 15, 0.9, 0.1)
    return xr.Dataset(
        {"learner_reward": (("sync_interval", "learning_rate", "seed", "step"), reward)},
        coords={"sync_interval": [1.0, 32.0], "learning_rate": [1e-3], "seed": [0, 1], "step": step},
        attrs={"reward_floor": 0.1},
    )


def test_a_sweep_becomes_a_valid_runs_table():
    runs = check_runs(label_sweep(sweep()))
    assert runs["outcome"].tolist() == ["stable", "collapsed", "collapsed", "unknown"]
    assert runs["collapse_step_low"].tolist()[1:3] == [14.0, 12.0]
    assert runs["collapse_step_high"].tolist()[1:3] == [15.0, 16.0]
    assert runs["steps"].tolist() == [40.0] * 4
    assert runs["seed"].tolist() == [0, 1, 0, 1]


def test_a_sweep_does_not_depend_on_the_order_of_its_dims():
    dataset = sweep()
    assert label_sweep(dataset.transpose()).equals(label_sweep(dataset))


def test_a_missing_evaluation_is_a_failure():
    dataset = sweep()
    dataset["learner_reward"][0, 0, 0, 20:] = np.nan
    assert label_sweep(dataset)["outcome"][0] == "failed"


def test_the_untrained_policy_is_a_peak_when_its_reward_is_known():
    dataset = sweep()
    dataset["learner_reward"][0, 0, 0] = 0.11
    assert label_sweep(dataset)["outcome"][0] == "stable"
    dataset.attrs["initial_reward"] = 0.9
    assert label_sweep(dataset)["outcome"][0] == "collapsed"
    assert label_sweep(dataset)["collapse_step_low"][0] == 0.0


def test_a_dataset_of_another_kind_is_refused():
    with pytest.raises(InputError, match="dataset must hold learner_reward"):
        label_sweep(xr.Dataset())
    with pytest.raises(InputError, match="dataset must have the attribute reward_floor"):
        label_sweep(sweep().drop_attrs())


def trained_sweep():
    """As `sweep`, with a rollout reward at the first step of every run but the first."""
    rollout = np.full((2, 1, 2, 40), np.nan)
    rollout[..., 0] = 0.9
    rollout[0, 0, 0] = np.nan
    return sweep().assign(rollout_reward=(("sync_interval", "learning_rate", "seed", "step"), rollout))


def test_a_trained_run_without_any_finite_reward_of_the_learner_is_a_failure():
    dataset = trained_sweep()
    assert label_sweep(dataset)["outcome"].tolist() == ["stable", "collapsed", "collapsed", "failed"]
    dataset["learner_reward"][:] = np.nan
    assert label_sweep(dataset)["outcome"].tolist() == ["unknown", "failed", "failed", "failed"]
    assert label_sweep(dataset.transpose()).equals(label_sweep(dataset))


def test_a_trained_run_too_short_for_an_evaluation_is_unknown():
    dataset = trained_sweep().isel(step=slice(0, 3))
    assert label_sweep(dataset)["outcome"].tolist()[2:] == ["unknown", "unknown"]


def test_the_untrained_policy_counts_as_an_evaluation():
    dataset = sweep().isel(step=slice(0, 2), sync_interval=[0])
    assert label_sweep(dataset)["outcome"].tolist() == ["unknown", "unknown"]
    dataset.attrs["initial_reward"] = 0.9
    assert label_sweep(dataset)["outcome"].tolist() == ["stable", "stable"]

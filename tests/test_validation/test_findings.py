"""What one sweep says: every run is used or has a reason, whatever it is read from."""

import json

import numpy as np
import pandas as pd
import pytest

from meanfield import results
from meanfield.boundary import log_rate_at
from meanfield.calibrate import calibrate
from meanfield.combination import LIKELIHOOD_RATIO, Combination
from meanfield.growth import drift_growth, drift_verdict
from meanfield.labels import DEFAULT_RULE, label_sweep
from meanfield.runs import read_runs, write_runs
from meanfield.time_surface import fit_time_surface
from tests.support.measured import (
    BUDGET,
    CEILING,
    FLOOR,
    LATENESS,
    PRODUCT,
    collapse_step,
    law_experiment,
    trace,
    write_store,
)
from validation import report_findings
from validation.config import RunSpec
from validation.findings import ABOVE_CEILING, FAILED, FEW_SEEDS, FROM_ALL, LEFT_OUT, ON_POLICY, UNKNOWN, find
from validation.html_parts import bullets, code, section, table, text
from validation.measures import cut_runs, measure
from validation.store import open_sweep

ALONE = {"sync_interval": 16, "learning_rate": 0.01, "seed": 1}
"""A run whose cell has no seed to spare."""


def findings_of(sweep):
    return find(label_sweep(sweep), measure(sweep, rule=DEFAULT_RULE))


@pytest.fixture(scope="module")
def sweep(tmp_path_factory):
    return open_sweep(write_store(tmp_path_factory.mktemp("laws") / "s.zarr", law_experiment()))


@pytest.fixture(scope="module")
def findings(sweep):
    return findings_of(sweep)


@pytest.fixture(scope="module")
def failing(sweep):
    """The sweep in which one run has no reward after step 100."""
    broken = sweep.copy(deep=True)
    broken["learner_reward"].loc[{**ALONE, "step": slice(100, None)}] = np.nan
    return broken


@pytest.fixture(scope="module")
def failed(failing):
    return findings_of(failing)


@pytest.fixture(scope="module")
def unfinished(tmp_path_factory):
    store = write_store(tmp_path_factory.mktemp("laws") / "s.zarr", law_experiment(), num_done=5)
    return findings_of(open_sweep(store))


def rows_of(observations):
    return sorted(zip(observations.sync_interval, observations.learning_rate, observations.outcome, strict=True))


def entered(found):
    """Runs of the table that no reason keeps out of the calibration, as its observations would be."""
    kept = found.runs[~found.runs[LEFT_OUT].str.startswith(FROM_ALL)]
    return rows_of(calibrate(kept).observations)


# --- which runs count


def test_every_run_is_used_or_has_a_reason(findings, failed, unfinished):
    for found in (findings, failed, unfinished):
        reasons, calibration = found.runs[LEFT_OUT], found.calibration
        assert entered(found) == rows_of(calibration.observations)
        assert (~reasons.str.startswith(FROM_ALL)).sum() == len(calibration.observations)
        assert (reasons == "").sum() == calibration.budget_arm.sum()
        free = found.runs[reasons == ""]
        assert rows_of(calibrate(free).observations) == rows_of(calibration.observations.where(calibration.budget_arm))
        stale = found.runs["sync_interval"] >= 2
        assert (stale & ~reasons.str.startswith(FROM_ALL)).sum() == calibration.observations.law_arm.sum()


def test_at_one_and_above_the_ceiling_runs_say_nothing_of_law_two(findings):
    runs = findings.runs
    assert set(runs[LEFT_OUT]) == {"", ON_POLICY, ABOVE_CEILING}
    assert ((runs[LEFT_OUT] == ON_POLICY) == (runs["sync_interval"] == 1)).all()
    above = (runs["sync_interval"] > 1) & (runs["learning_rate"] > CEILING)
    assert ((runs[LEFT_OUT] == ABOVE_CEILING) == above).all()


def test_a_failed_run_takes_its_cell_with_it(failed):
    runs = failed.runs
    cell = (runs["sync_interval"] == 16) & (runs["learning_rate"] == 0.01)
    assert runs.loc[cell, LEFT_OUT].tolist() == [FEW_SEEDS, FAILED, FEW_SEEDS]
    assert not runs.loc[~cell, LEFT_OUT].str.startswith(FROM_ALL).any()
    assert runs["outcome"].value_counts()["failed"] == 1


def test_a_spare_seed_keeps_a_cell(tmp_path):
    """Four seeds, one failed: the failed run alone is left out."""

    def late(run, max_steps):
        metrics = trace(RunSpec(run.sync_interval, run.learning_rate, run.seed % 3), max_steps)
        if run == RunSpec(16, 0.01, 3):
            metrics["learner_reward"][100:] = np.nan
        return metrics

    store = write_store(tmp_path / "s.zarr", law_experiment(sync_interval=(1, 16), seed=(0, 1, 2, 3)), trace=late)
    runs = findings_of(open_sweep(store)).runs
    assert runs.loc[runs[LEFT_OUT].str.startswith(FROM_ALL), "run"].tolist() == ["S16-lr0.01-seed3"]


def test_what_is_not_there_yet_is_unknown_and_its_cells_wait_for_it(unfinished):
    runs = unfinished.runs
    there = runs["outcome"] != "unknown"
    assert (runs.loc[~there, LEFT_OUT] == UNKNOWN).all()
    seeds = there.groupby([runs["sync_interval"], runs["learning_rate"]]).transform("sum")
    assert ((runs[LEFT_OUT] == FEW_SEEDS) == (there & (seeds < 3))).all()
    assert {FEW_SEEDS, UNKNOWN} < set(runs[LEFT_OUT])


def test_a_run_that_is_left_out_of_every_fit_moves_no_number(failing, failed):
    """Whatever the failed run and the seeds beside it measured: verdicts, growth, cuts, forms, cosines, distances."""
    changed = failing.copy(deep=True)
    for name in ("drift", "pair_cosine", "cycle_cosine", "gradient_cosine", "displacement_since_start"):
        changed[name].loc[{"sync_interval": 16, "learning_rate": 0.01}] = 1e4
    beside = {"sync_interval": 16, "learning_rate": 0.01, "seed": [0, 2]}
    changed["learner_reward"].loc[beside] = changed["learner_reward"].loc[beside].clip(min=0.9)
    found = findings_of(changed)
    assert found.runs["outcome"].tolist() != failed.runs["outcome"].tolist()
    assert not found.measures.equals(failed.measures)
    assert found.to_json() == failed.to_json()
    assert found.judgements == failed.judgements


def test_two_seeds_give_numbers_and_no_verdict(tmp_path):
    found = findings_of(open_sweep(write_store(tmp_path / "s.zarr", law_experiment(seed=(0, 1)))))
    assert set(found.runs[LEFT_OUT]) == {FEW_SEEDS}
    assert found.calibration.boundary_exponent.contains(-1.0)
    for judgement in found.judgements:
        assert judgement.verdict.word == "inconclusive"
        assert judgement.verdict.sentence.startswith("No cell has 3 seeds, so nothing is judged. ")


def test_a_sweep_with_one_shard_done_knows_nothing(tmp_path):
    found = findings_of(open_sweep(write_store(tmp_path / "s.zarr", law_experiment(), num_done=1)))
    assert len(found.calibration.observations) > 0
    assert not found.calibration.boundary_exponent.identified
    assert {one.verdict.word for one in found.judgements} == {"inconclusive"}
    assert found.log_ratio_of_forms is None
    assert found.combination is Combination.UNDECIDED
    json.dumps(found.to_json(), allow_nan=False)


# --- what they say


def test_the_parts_are_those_of_the_fits(findings):
    calibration = findings.calibration
    assert findings.growth == drift_growth(findings.measures, calibration=calibration)
    assert findings.judgements[4].verdict == drift_verdict(findings.growth, calibration)
    assert findings.times == fit_time_surface(calibration, degraded_counts=False)
    assert findings.times_of_declines == fit_time_surface(calibration, degraded_counts=True)
    assert findings.persistence.exit_distance.estimate is not None


def test_the_drift_of_the_made_up_runs_is_found(findings):
    """Drift 10 * eta * lag: alpha = 1, and in the lag the power 1; on S*eta = 0.1 it is about 1 nat everywhere."""
    growth = findings.growth
    assert (growth.with_rate.low, growth.with_rate.high) == pytest.approx((1.0, 1.0), abs=0.01)  # lag is S - 1
    assert growth.with_lag.estimate == pytest.approx(1.0, abs=1e-5)
    assert growth.pair_cosine.estimate == pytest.approx(0.2)
    assert [point.sync_interval for point in growth.on_boundary] == [8, 16, 32]
    for point in growth.on_boundary:
        assert point.drift.contains(10 * PRODUCT * (1 - 1 / point.sync_interval))


def test_the_times_of_the_made_up_runs_are_found(findings):
    """T = 0.4 / eta, later by up to a half between seeds, whatever S."""
    times = findings.times
    assert times.with_rate.contains(-1.0)
    assert times.with_interval.contains(0.0)
    assert times.scatter.estimate == pytest.approx(np.log(LATENESS).std(), abs=0.1)
    assert times.num_events == findings.calibration.observations.collapsed[findings.calibration.budget_arm].sum()


def test_cuts_count_what_had_collapsed_by_then(findings):
    by_horizon = {cut.horizon: cut for cut in findings.cuts}
    assert list(by_horizon) == [64, 128, 256]
    stale = [run for run in law_experiment().runs if run.sync_interval >= 2]
    for horizon, cut in by_horizon.items():
        steps = [collapse_step(run) for run in stale]
        # a decline must be seen three times, at evaluations every S // 8 <= 4 steps
        certain = sum(step is not None and step <= horizon - 12 for step in steps)
        possible = sum(step is not None and step <= horizon for step in steps)
        assert certain <= cut.num_unstable <= possible
    assert by_horizon[64].num_unstable < by_horizon[256].num_unstable


def test_the_last_cut_is_the_sweep_itself(findings):
    last = findings.cuts[-1]
    assert last.exponent == findings.calibration.boundary_exponent
    seen = findings.calibration.observations
    for S, rate in last.max_rates:
        atoms = np.exp(log_rate_at(seen, seen.collapsed | seen.degraded, S))
        assert rate.estimate == pytest.approx(np.median(atoms))
        assert rate.contains(PRODUCT / S)
    assert [S for S, _ in last.max_rates] == [8, 16, 32]


def test_where_the_horizon_binds_the_boundary_moves_with_it(tmp_path):
    """Whatever S, a run collapses at 0.4 / eta: cut at T, those above 0.4 / T have, and law two is all there is."""

    def falls(run, max_steps):
        metrics = trace(run, max_steps)
        fallen = np.arange(1, max_steps + 1) >= BUDGET / run.learning_rate * LATENESS[run.seed]
        reward = metrics["learner_reward"]
        metrics["learner_reward"] = np.where(np.isnan(reward), np.nan, np.where(fallen, FLOOR, 0.9))
        return metrics

    rates = tuple(float(f"{eta:.3g}") for eta in np.geomspace(5e-4, 3e-2, 8))
    binding = law_experiment(sync_interval=(4, 8, 16), learning_rate=rates, max_steps=400)
    found = findings_of(open_sweep(write_store(tmp_path / "s.zarr", binding, trace=falls)))
    for cut in found.cuts:
        for _, rate in cut.max_rates:
            assert 0.8 < rate.estimate * cut.horizon / BUDGET < 2.0
    assert len(found.cuts[0].max_rates) == len(found.cuts[-1].max_rates) == 3
    ratios = found.log_ratio_of_forms
    assert max(ratios) < 0.0
    assert (found.combination is Combination.MIN) == (max(ratios) < -np.log(LIKELIHOOD_RATIO))


def test_runs_cut_at_two_horizons_are_there_once(findings):
    mixed = findings._mixed_horizons()
    assert sorted(mixed["run"]) == sorted(findings.runs["run"])
    assert (mixed["steps"] == np.where(mixed["seed"] == 1, 64, 256)).all()
    for horizon in (64, 256):
        cut = cut_runs(findings.measures, horizon).set_index("run")
        here = mixed[mixed["steps"] == horizon].set_index("run")
        pd.testing.assert_frame_equal(here, cut.loc[here.index])


def test_kept_data_say_what_the_store_said(failed, tmp_path):
    """The runs table and the measures written and read again: equal numbers, to the last digit."""
    write_runs(failed.runs, tmp_path / "runs.csv")
    results.save(failed.measures, tmp_path / "measures.nc")
    again = find(read_runs(tmp_path / "runs.csv"), results.load(tmp_path / "measures.nc"))
    assert again.to_json() == failed.to_json()
    assert again.judgements == failed.judgements
    assert again.runs[LEFT_OUT].tolist() == failed.runs[LEFT_OUT].tolist()


def test_everything_is_plain_json(findings):
    said = json.loads(json.dumps(findings.to_json(), allow_nan=False))
    assert set(said) == {"times", "times_of_declines", "growth", "cuts", "forms", "persistence"}
    assert said["growth"]["with_rate"] == findings.growth.with_rate.to_json()
    assert said["growth"]["on_boundary"][0]["drift"] == findings.growth.on_boundary[0].drift.to_json()
    assert [cut["horizon"] for cut in said["cuts"]] == [64, 128, 256]
    assert said["cuts"][2]["max_rates"][0]["sync_interval"] == 8
    assert said["forms"]["log_ratio_max_over_min"] == list(findings.log_ratio_of_forms)
    assert said["times"]["num_events"] == findings.times.num_events


# --- the sections of the report


def test_the_sections_carry_the_numbers(findings):
    drift, times, horizons = (
        getattr(report_findings, name)(findings) for name in ("drift_body", "times_body", "horizon_body")
    )
    for estimate in (findings.growth.with_rate, findings.growth.predicted_exponent, findings.growth.spread):
        assert text(estimate.said()) in drift
    for point in findings.growth.on_boundary:
        assert f"<td>{point.sync_interval:g}</td><td>{text(point.learning_rate.said())}</td>" in drift
    assert text(findings.times.with_interval.said()) in times
    for cut in findings.cuts:
        assert f"<td>{cut.horizon}</td><td>{text(cut.exponent.said())}</td>" in horizons
    assert f"Here: {findings.combination.value}." in horizons
    assert text(f"{findings.log_ratio_of_forms[0]:.1f}") in horizons


def test_the_sections_of_a_sweep_that_says_nothing_say_so(tmp_path):
    found = findings_of(open_sweep(write_store(tmp_path / "s.zarr", law_experiment(), num_done=1)))
    assert report_findings.drift_body(found).count("not known") == 8
    assert "cannot be asked of these runs" in report_findings.horizon_body(found)
    assert "<td>64</td><td>not known</td></tr>" in report_findings.horizon_body(found)


def test_the_pieces_of_a_page():
    assert text("a < b & -1.5 to x-1, 1e-05") == "a &lt; b &amp; −1.5 to x-1, 1e-05"
    assert text("-1 [-1.2, -0.8] x") == "−1\u00a0[−1.2,\u00a0−0.8] x"
    assert code("-1 < x") == "<pre>-1 &lt; x</pre>"
    assert bullets(["a & b", "-2"]) == "<ul><li>a &amp; b</li><li>−2</li></ul>"
    assert section("<t>", "<p>b</p>") == "<section>\n<h2>&lt;t&gt;</h2>\n<p>b</p>\n</section>"
    assert "<th>a</th><th>&lt;b&gt;</th>" in table(["a", "<b>"], [["1", "<i>2</i>"]])
    assert "<tr><td>1</td><td><i>2</i></td></tr>" in table(["a", "<b>"], [["1", "<i>2</i>"]])

"""A sweep of made-up traces reduced to its measures, against plain loops over the steps of every run."""

import json
import statistics

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from meanfield import results
from meanfield.labels import DEFAULT_RULE, LabelRule, label_sweep
from meanfield.outcomes import Outcome
from meanfield.results import BY_LAG, MEASURES, SWEEP, WINDOW_MEANS
from tests.support.measured import law_experiment, trace, write_store
from validation.measures import CUTS, LAST_CYCLES, WINDOW_CYCLES, cut_runs, digest, measure
from validation.plan import Plan
from validation.store import open_sweep

AXES = ("sync_interval", "learning_rate", "seed")
ROUNDING = 1e-6
"""Measures are kept in float32."""
NEVER_AT_ONE = ("gradient_cosine", "pair_cosine", "cycle_cosine")


def noisy(run, max_steps):
    """The reward of the law, and every other metric at random, defined where the learner defines it."""
    metrics = trace(run, max_steps)
    rng = np.random.default_rng([run.sync_interval, round(1e6 * run.learning_rate), run.seed])
    for name, values in metrics.items():
        if name != "learner_reward":
            metrics[name] = np.where(np.isnan(values), np.nan, 0.1 + rng.random(max_steps))
    return {name: values.astype(np.float32) for name, values in metrics.items()}


def experiment(max_steps):
    return law_experiment(sync_interval=(1, 4, 16), learning_rate=(0.002, 0.01, 0.05), max_steps=max_steps)


@pytest.fixture(scope="module", params=[90, 54], ids=["long", "ends inside a cycle and the window"])
def sweep(request, tmp_path_factory):
    return open_sweep(write_store(tmp_path_factory.mktemp("a") / "s.zarr", experiment(request.param), trace=noisy))


@pytest.fixture(scope="module")
def measures(sweep):
    return measure(sweep, rule=DEFAULT_RULE)


def onset_of(sweep, cell):
    """Last step before the decline of a run, by its label; its last step if there is none."""
    table = label_sweep(sweep)
    here = np.logical_and.reduce([table[name] == value for name, value in cell.items()])
    low = table.loc[here, "collapse_step_low"].item()
    return int(sweep["step"].values[-1]) if np.isnan(low) else int(low)


def cells(sweep):
    for S in sweep["sync_interval"].values:
        for eta in sweep["learning_rate"].values:
            for seed in sweep["seed"].values:
                yield {"sync_interval": S, "learning_rate": eta, "seed": seed}


def reduced(function, values):
    finite = [float(value) for value in values if np.isfinite(value)]
    return function(finite) if finite else float("nan")


def plain(sweep, cell, lags):
    """Every measure of one run that is no label, step by step."""
    run, S, last = sweep.sel(cell), int(cell["sync_interval"]), onset_of(sweep, cell)
    window = min(WINDOW_CYCLES * 16, int(sweep["step"].values[-1]))

    def at(name, keep):
        return [value for step, value in enumerate(run[name].values, start=1) if keep(step)]

    def early(step):
        return step <= window and step <= last

    found = {
        name: [reduced(statistics.median, at(name, lambda t, k=k: early(t) and (t - 1) % S == k)) for k in lags]
        for name in BY_LAG
    }
    found |= {name: reduced(statistics.mean, at(name, early)) for name in WINDOW_MEANS}
    since_sync = at("displacement_since_sync", lambda t: early(t) and t % S == 0)
    before = [value for value in at("cycle_cosine", lambda t: t <= last) if np.isfinite(value)]
    walked = at("displacement_since_start", lambda t: t <= last)
    rewards = [value for value in at("learner_reward", lambda _: True) if np.isfinite(value)]
    return found | {
        "displacement_since_sync": reduced(statistics.median, since_sync),
        "cycle_cosine_at_onset": reduced(statistics.mean, before[-LAST_CYCLES:]),
        "displacement_at_onset": walked[-1] if walked else float("nan"),
        "learner_reward": rewards[-1],
        "best_reward": max(rewards),
    }


def test_every_measure_is_what_plain_loops_give(sweep, measures):
    lags = measures["lag"].values.tolist()
    assert lags == [1, 2, 3, 4, 8, 15]
    labels = {"outcome", "collapse_step_low", "collapse_step_high"}
    for cell in cells(sweep):
        expected = plain(sweep, cell, lags)
        assert set(expected) | labels == set(MEASURES.names)
        for name, value in expected.items():
            found = measures[name].sel(cell).values
            np.testing.assert_allclose(found, value, rtol=ROUNDING, err_msg=f"{name} at {cell}")


def test_the_made_up_sweep_has_what_the_loops_must_see(sweep, measures):
    """Collapses inside the window, so that it ends at the onset; lags that a cycle does not have; medians known."""
    onsets = [onset_of(sweep, cell) for cell in cells(sweep)]
    assert min(onsets) < 10 < 50 < max(onsets)
    drift = measures["drift"]
    assert drift.sel(sync_interval=4, lag=[4, 8, 15]).isnull().all()
    assert drift.sel(sync_interval=16, learning_rate=0.002).notnull().all()
    assert drift.sel(sync_interval=1).isnull().all()
    assert measures["pair_cosine"].sel(sync_interval=1).isnull().all()


def test_cuts_are_the_labels_of_the_cut_sweep(sweep, measures):
    steps = int(sweep["step"].values[-1])
    assert measures["horizon"].values.tolist() == [steps // share for share in CUTS]
    for horizon in measures["horizon"].values.tolist():
        expected = label_sweep(sweep.isel(step=slice(horizon)))
        pd.testing.assert_frame_equal(cut_runs(measures, horizon), expected, check_dtype=False)
    pd.testing.assert_frame_equal(cut_runs(measures, steps), label_sweep(sweep), check_dtype=False)


def test_a_run_that_collapses_late_is_stable_when_it_is_cut_before(measures):
    """S = 16, eta = 0.01, seed 0: the reward falls at step 40, which is evaluated."""
    run = {"sync_interval": 16, "learning_rate": 0.01, "seed": 0}
    outcome, high = (measures[name].sel(run).values for name in ("outcome", "collapse_step_high"))
    assert outcome[0] == Outcome.STABLE.code
    assert outcome[-1] == Outcome.COLLAPSED.code
    assert np.isnan(high[0])
    assert high[-1] == 40


def test_another_rule_gives_other_labels_and_is_kept(sweep):
    strict = LabelRule(min_evaluations=40)
    found = measure(sweep, rule=strict)
    assert json.loads(found.attrs["label_rule"]) == strict.to_json()
    steps = int(sweep["step"].values[-1])
    pd.testing.assert_frame_equal(cut_runs(found, steps), label_sweep(sweep, rule=strict), check_dtype=False)
    assert set(cut_runs(found, steps)["outcome"]) != set(label_sweep(sweep)["outcome"])


def test_measures_come_back_from_a_file_as_they_were(measures, tmp_path):
    again = results.load(results.save(measures, tmp_path / "measures.nc"))
    xr.testing.assert_identical(again.drop_attrs(), measures.drop_attrs())
    assert again.attrs == measures.attrs
    for name in measures.variables:
        assert again[name].dtype == measures[name].dtype
        assert again[name].attrs == measures[name].attrs
    assert results.schema_of(again) is MEASURES


def test_an_unfinished_sweep_knows_nothing_of_the_runs_that_are_not_there(tmp_path):
    whole = experiment(54)
    found = measure(open_sweep(write_store(tmp_path / "s.zarr", whole, num_done=2, trace=noisy)), rule=DEFAULT_RULE)
    done = {
        (run.sync_interval, run.learning_rate, run.seed)
        for shard in Plan(whole).shards[:2]
        for run in Plan(whole).runs_of(shard)
    }
    assert 0 < len(done) < len(whole.runs)
    for cell in cells(found):
        there = tuple(cell.values()) in done
        assert bool(np.isfinite(found["best_reward"].sel(cell))) == there
        assert (found["outcome"].sel(cell).values == Outcome.UNKNOWN.code).all() == (not there)


@pytest.mark.parametrize(("max_steps", "horizons"), [(1, [1]), (2, [1, 2]), (3, [1, 3]), (4, [1, 2, 4])])
def test_the_shortest_sweeps_are_cut_where_they_can_be(tmp_path, max_steps, horizons):
    short = law_experiment(sync_interval=(1,), learning_rate=(0.01,), max_steps=max_steps)
    found = measure(open_sweep(write_store(tmp_path / "s.zarr", short)), rule=DEFAULT_RULE)
    assert found["horizon"].values.tolist() == horizons
    assert found["lag"].values.tolist() == [0]
    assert len(cut_runs(found, horizons[0])) == 3


# --- digests of the shards


def traces_of(whole, shard):
    """The traces of one shard as the learner hands them over, in the order of the schema."""
    runs = [noisy(run, whole.max_steps) for run in Plan(whole).runs_of(shard)]
    return [np.stack([run[name] for run in runs]) for name in SWEEP.names]


def test_digests_are_those_of_the_written_traces_in_the_order_of_the_plan(sweep, measures):
    whole = experiment(int(sweep["step"].values[-1]))
    digests = json.loads(measures.attrs["shard_digests"])
    shards = Plan(whole).shards
    assert len(digests) == len(set(digests)) == len(shards) == 4
    assert digests == [digest(traces_of(whole, shard)) for shard in shards]


def test_equal_traces_have_equal_digests_and_one_bit_changes_it():
    whole = experiment(54)
    traces = traces_of(whole, Plan(whole).shards[1])
    assert digest(traces) == digest([values.copy(order="F") for values in traces])
    assert digest(traces) == digest([values.astype(np.float64) for values in traces])
    for place in range(len(traces)):
        flipped = [values.copy() for values in traces]
        flipped[place].view(np.uint32)[-1, -1] ^= 1
        assert digest(flipped) != digest(traces)
    assert digest(traces[::-1]) != digest(traces)
    assert digest([values[::-1] for values in traces]) != digest(traces)

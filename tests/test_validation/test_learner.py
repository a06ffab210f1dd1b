from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from meanfield.results import SWEEP
from tests.support.experiments import small_experiment
from tests.support.plain_learner import train_alone
from validation.config import Experiment, PolicyConfig, RunSpec, TaskConfig
from validation.learner import METRICS, evaluation_interval, run_generator, train
from validation.policy import Parameters
from validation.pretrain import pretrain
from validation.setup import policy_of

RUNS = (RunSpec(1, 4e-3, 0), RunSpec(2, 1e-3, 1), RunSpec(4, 4e-3, 1), RunSpec(16, 2e-2, 2))


@pytest.fixture(scope="module")
def start() -> Parameters:
    torch.set_num_threads(1)
    return pretrain(small_experiment())


def test_every_variable_of_the_schema_is_measured_where_it_is_defined(small: Experiment, start: Parameters) -> None:
    runs = [RunSpec(1, 1e-3, 0), RunSpec(4, 1e-3, 0), RunSpec(5, 1e-3, 0)]
    traces = train(small, start, runs)
    assert set(traces) == {variable.name for variable in SWEEP.variables}
    assert (traces["grad_norm"] > 0).all()
    steps = np.arange(1, 13)
    for index, run in enumerate(runs):
        ends = steps % run.sync_interval == 0
        defined = {
            "clip_fraction": steps < 0,
            "gradient_cosine": steps > 1,
            "pair_cosine": ends & (run.sync_interval > 1),
            "cycle_cosine": ends & (steps > run.sync_interval),
        }
        for name in METRICS:
            expected = defined.get(name, steps > 0)
            np.testing.assert_array_equal(np.isfinite(traces[name][index]), expected, err_msg=f"{name} of {run}")


FAST_SGD = (RunSpec(1, 0.3, 0), RunSpec(4, 0.3, 1))
ALGORITHMS: dict[str, tuple[dict[str, Any], tuple[RunSpec, ...]]] = {
    "vanilla": ({"epsilon": None}, RUNS),
    "clipped": ({"epsilon": 0.1, "scale_rewards": False, "adam_beta1": 0.5, "adam_beta2": 0.9}, RUNS),
    "sequence": ({"importance_sampling_level": "sequence", "epsilon": 0.05}, RUNS),
    "sequence_product": ({"importance_sampling_level": "sequence_product"}, RUNS),
    "sgd": ({"sgd_momentum": 0.9}, FAST_SGD),
    "sgd_product": ({"sgd_momentum": 0.0, "importance_sampling_level": "sequence_product", "epsilon": 0.2}, FAST_SGD),
}


@pytest.mark.parametrize("name", ALGORITHMS)
def test_the_batched_learner_follows_the_plain_one(
    vary: Callable[..., Experiment], start: Parameters, name: str
) -> None:
    """float32 in another order, and Adam magnifies rounding of tiny gradients: 1e-3; a wrong term gives 1e-1."""
    grpo, runs = ALGORITHMS[name]
    experiment = vary(grpo=grpo, max_steps=10)
    traces = train(experiment, start, runs)
    stale = next(index for index, run in enumerate(runs) if run.sync_interval == 4)
    for index in (0, stale):
        plain = train_alone(experiment, start, runs[index])
        assert set(plain) == set(METRICS)
        for metric, values in plain.items():
            np.testing.assert_allclose(traces[metric][index], values, rtol=1e-3, atol=1e-5, err_msg=metric)
        assert max(plain["learner_reward"]) - min(plain["learner_reward"]) > 0.01
    if experiment.grpo.epsilon is not None:
        assert traces["clip_fraction"][stale].max() > 0


@pytest.mark.parametrize("sizes", [(16, 2, 16), (48, 6, 48), (112, 12, 80)])
def test_other_sizes_keep_the_bits_too(vary: Callable[..., Experiment], sizes: tuple[int, int, int]) -> None:
    hidden, num_prompts, num_eval_prompts = sizes
    grpo = {"num_prompts": num_prompts, "num_generations": 8}
    policy = PolicyConfig(hidden_size=hidden)
    experiment = vary(grpo=grpo, max_steps=4, num_eval_prompts=num_eval_prompts, task=TaskConfig(), policy=policy)
    assert_same_bits_alone(experiment, [RunSpec(1 + index % 3, 1e-3 * (index + 1), index) for index in range(7)])


@pytest.mark.parametrize("num_prompts", [16, 64])
@pytest.mark.parametrize("num_runs", [3, 8, 16])
def test_a_batch_of_runs_has_the_bits_of_each_run_alone(
    vary: Callable[..., Experiment], num_runs: int, num_prompts: int
) -> None:
    """At the sizes of the demo. If a machine breaks it, the message says by how much."""
    sizes = {"task": TaskConfig(), "policy": PolicyConfig()}
    experiment = vary(grpo={"num_prompts": num_prompts, "num_generations": 8}, max_steps=6, **sizes)
    assert_same_bits_alone(experiment, [RunSpec(2**index % 31, 1e-3 * (index + 1), index) for index in range(num_runs)])


VARIANTS: dict[str, dict[str, Any]] = {
    "sgd": {"grpo": {"sgd_momentum": 0.9}},
    "sequence": {"grpo": {"importance_sampling_level": "sequence", "epsilon": 0.05}},
    "sequence_product": {"grpo": {"importance_sampling_level": "sequence_product", "epsilon": 0.2}},
    "reverse": {"task": TaskConfig("reverse", num_symbols=10, length=6, graded=True)},
    "prefix_sum": {"task": TaskConfig("prefix_sum", num_symbols=7, length=5, graded=True)},
    "transformer": {"policy": PolicyConfig("transformer", hidden_size=32)},
    "deep": {"policy": PolicyConfig("transformer", hidden_size=48, num_layers=2, num_heads=3)},
}


@pytest.mark.parametrize("name", VARIANTS)
def test_every_variant_keeps_the_bits_too(vary: Callable[..., Experiment], name: str) -> None:
    sizes = {"task": TaskConfig(), "policy": PolicyConfig(), "max_steps": 6}
    variant = {**sizes, **VARIANTS[name]}
    variant["grpo"] = {"num_prompts": 16, "num_generations": 8, **variant.get("grpo", {})}
    rate = 0.05 if name == "sgd" else 1e-3
    runs = [RunSpec(1 + index % 3, rate * (index + 1), index) for index in range(7)]
    assert_same_bits_alone(vary(**variant), runs)


def assert_same_bits_alone(experiment: Experiment, runs: list[RunSpec]) -> None:
    start = policy_of(experiment).initial_parameters(torch.Generator().manual_seed(0))
    together = train(experiment, start, runs)
    for index in (0, len(runs) // 2, len(runs) - 1):
        alone = train(experiment, start, [runs[index]])
        for name in METRICS:
            worst = np.nanmax(np.abs(together[name][index] - alone[name][0]), initial=0.0)
            np.testing.assert_array_equal(together[name][index], alone[name][0], err_msg=f"{name} is off by {worst}")


def test_the_lag_is_zero_after_a_sync_alone(vary: Callable[..., Experiment], start: Parameters) -> None:
    traces = train(vary(max_steps=16), start, RUNS)
    for run, drift in zip(RUNS, traces["drift"], strict=True):
        lag = np.arange(16) % run.sync_interval
        assert np.all(drift[lag == 0] < 1e-5), "on-policy tokens have a ratio of 1"
        assert np.all(drift[lag > 0] > 1e-4)


def test_evaluations_come_every_eighth_of_the_interval(vary: Callable[..., Experiment], start: Parameters) -> None:
    runs = (RunSpec(1, 1e-3, 0), RunSpec(15, 1e-3, 0), RunSpec(16, 1e-3, 0), RunSpec(64, 1e-3, 0))
    assert [evaluation_interval(run.sync_interval) for run in runs] == [1, 1, 2, 8]
    evaluated = ~np.isnan(train(vary(max_steps=16), start, runs)["learner_reward"])
    for run, flags in zip(runs, evaluated, strict=True):
        steps = np.flatnonzero(flags) + 1
        every = evaluation_interval(run.sync_interval)
        assert steps.tolist() == list(range(every, 17, every))


def test_a_runs_stream_depends_on_all_its_values() -> None:
    variants = [
        RunSpec(4, 1e-3, 0),
        RunSpec(4, 1e-3, 1),
        RunSpec(8, 1e-3, 0),
        RunSpec(4, float(np.nextafter(1e-3, 1)), 0),
    ]
    draws = [torch.rand(4, generator=run_generator(run)) for run in variants]
    assert torch.equal(draws[0], torch.rand(4, generator=run_generator(RunSpec(4, 1e-3, 0))))
    assert all(not torch.equal(draws[0], other) for other in draws[1:])


def test_clip_fraction_needs_a_clip(vary: Callable[..., Experiment], start: Parameters) -> None:
    assert np.isnan(train(vary(), start, RUNS[:1])["clip_fraction"]).all()
    clipped = train(vary(grpo={"epsilon": 0.05}, max_steps=16), start, RUNS[3:])["clip_fraction"][0]
    assert clipped[0] == 0
    assert clipped[-1] > 0.1


def test_the_start_is_not_changed(small: Experiment, start: Parameters) -> None:
    before = {name: value.clone() for name, value in start.items()}
    steps = []
    train(small, start, RUNS, on_step=lambda: steps.append(1))
    assert len(steps) == small.max_steps
    assert all(torch.equal(before[name], value) for name, value in start.items())

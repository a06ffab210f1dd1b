import json
from dataclasses import replace
from pathlib import Path

import pytest

from theory.errors import InputError
from validation.config import Experiment, GrpoConfig, PolicyConfig, TaskConfig, experiment_from_mapping, load_experiment

FOLDER = Path(__file__).parents[2] / "validation" / "experiments"
EXPERIMENTS = sorted(FOLDER.rglob("*.toml"))
AXES = {"sync_interval": [1, 4], "learning_rate": [1e-3, 2e-3], "seed": [0], "max_steps": 10}


@pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda path: path.stem)
def test_every_shipped_experiment_loads_under_its_own_name(path: Path) -> None:
    experiment = load_experiment(path)
    assert experiment.name == path.stem
    assert experiment_from_mapping(json.loads(experiment.to_json())) == experiment


def test_the_demo_is_as_large_as_promised() -> None:
    demo = load_experiment(FOLDER / "demo.toml")
    assert len(demo.sync_interval) >= 5
    assert demo.sync_interval[-1] >= 16 * demo.sync_interval[0]
    assert len(demo.learning_rate) >= 7
    assert len(demo.seed) >= 2


def test_runs_are_sorted_by_interval_then_seed_then_rate(small: Experiment) -> None:
    runs = [(run.sync_interval, run.seed, run.learning_rate) for run in small.runs]
    assert runs == sorted(runs)
    assert len(set(runs)) == len(runs) == 8


BAD_FIELDS = [
    ({"name": ""}, "name must be a non-empty string, got ''"),
    ({"sync_interval": ()}, "sync_interval must be a non-empty list of integers >= 1"),
    ({"sync_interval": (0, 4)}, "sync_interval must hold integers >= 1 only, got 0. For an on-policy arm use 1."),
    ({"sync_interval": (4, 1)}, "sync_interval must be strictly ascending"),
    ({"learning_rate": (1e-3, 1e-3)}, "learning_rate must be strictly ascending"),
    ({"learning_rate": (float("nan"),)}, "learning_rate must hold positive finite numbers only, got nan"),
    ({"learning_rate": (-1e-3,)}, "got -0.001"),
    ({"learning_rate": (10**400,)}, "learning_rate must hold positive finite numbers only, got 1000"),
    ({"learning_rate": (True,)}, "learning_rate must hold positive finite numbers only, got True. Use values such as"),
    ({"sync_interval": (True,)}, "sync_interval must hold integers >= 1 only, got True. For an on-policy arm use 1."),
    ({"max_steps": True}, "max_steps must be an integer >= 1, got True. Use 800."),
    ({"num_eval_prompts": True}, "num_eval_prompts must be an integer >= 1, got True. Use 128."),
    ({"seed": (True,)}, "seed must hold integers from 0 to 2**63 - 1 only, got True. Use [0, 1]."),
    ({"seed": (0, 2**63)}, "seed must hold integers from 0 to 2**63 - 1 only, got 9223372036854775808"),
    ({"max_steps": 0}, "max_steps must be an integer >= 1, got 0. Use 800."),
    ({"num_eval_prompts": 0}, "num_eval_prompts must be an integer >= 1"),
]


UNALIGNED = [
    ({"num_eval_prompts": 17}, "num_eval_prompts must be a multiple of 16, got 17. Use 16: only then has every run"),
    ({"policy": PolicyConfig(hidden_size=33)}, "policy.hidden_size must be a multiple of 16, got 33. Use 32:"),
    ({"grpo": GrpoConfig(num_prompts=3)}, "grpo.num_prompts * grpo.num_generations must be a multiple of 16, got 24."),
    ({"num_eval_prompts": 1}, "Use 16:"),
]


@pytest.mark.parametrize(("fields", "message"), BAD_FIELDS + UNALIGNED)
def test_bad_fields_are_refused(small: Experiment, fields: dict[str, object], message: str) -> None:
    with pytest.raises(InputError) as error:
        replace(small, **fields)
    assert message in str(error.value)


BAD_SECTIONS = [
    (TaskConfig, {"num_symbols": 1}, "task.num_symbols must be an integer >= 2, got 1"),
    (TaskConfig, {"length": 1.5}, "task.length must be an integer >= 2, got 1.5"),
    (
        TaskConfig,
        {"name": "sorting"},
        "task.name must be one of sort, reverse, prefix_sum, got 'sorting'. Use 'sort'.",
    ),
    (TaskConfig, {"name": ["sort"]}, "task.name must be one of sort, reverse, prefix_sum, got ['sort']."),
    (TaskConfig, {"graded": 1}, "task.graded must be true or false, got 1. Use false."),
    (PolicyConfig, {"architecture": "MLP"}, "policy.architecture must be one of mlp, transformer, got 'MLP'. Use"),
    (PolicyConfig, {"num_layers": 0}, "policy.num_layers must be an integer >= 1, got 0. Use 1."),
    (PolicyConfig, {"num_layers": True}, "policy.num_layers must be an integer >= 1, got True. Use 1."),
    (PolicyConfig, {"num_heads": 2.0}, "policy.num_heads must be an integer >= 1, got 2.0. Use 2."),
    (
        PolicyConfig,
        {"architecture": "transformer", "num_heads": 3},
        "policy.num_heads must divide policy.hidden_size, which is 64, got 3. Use 2.",
    ),
    (PolicyConfig, {"hidden_size": 0}, "policy.hidden_size must be an integer >= 1"),
    (PolicyConfig, {"pretrain_batch_size": 0}, "policy.pretrain_batch_size must be"),
    (PolicyConfig, {"pretrain_reward": 1.0}, "policy.pretrain_reward must lie strictly between 0 and 1, got 1.0"),
    (PolicyConfig, {"pretrain_learning_rate": 0.0}, "policy.pretrain_learning_rate must be positive and finite"),
    (PolicyConfig, {"pretrain_seed": -1}, "policy.pretrain_seed must be an integer from 0 to 2**63 - 1"),
    (PolicyConfig, {"pretrain_seed": 2**63}, "2**63 - 1, got 9223372036854775808. Use 0."),
    (PolicyConfig, {"pretrain_seed": False}, "2**63 - 1, got False. Use 0."),
    (GrpoConfig, {"num_prompts": 0}, "grpo.num_prompts must be an integer >= 1"),
    (GrpoConfig, {"num_generations": 1}, "A group of one has no advantage"),
    (GrpoConfig, {"scale_rewards": "group"}, "grpo.scale_rewards must be true or false, got group"),
    (
        GrpoConfig,
        {"importance_sampling_level": "group"},
        "grpo.importance_sampling_level must be one of token, sequence, sequence_product, got 'group'. Use 'token'.",
    ),
    (GrpoConfig, {"importance_sampling_level": None}, "be one of token, sequence, sequence_product, got None."),
    (GrpoConfig, {"sgd_momentum": 1.0}, "grpo.sgd_momentum must lie in [0, 1), got 1.0. Use 0.9, or leave it out for"),
    (GrpoConfig, {"sgd_momentum": -0.1}, "grpo.sgd_momentum must lie in [0, 1), got -0.1."),
    (GrpoConfig, {"sgd_momentum": False}, "grpo.sgd_momentum must lie in [0, 1), got False."),
    (GrpoConfig, {"sgd_momentum": float("nan")}, "grpo.sgd_momentum must lie in [0, 1), got nan."),
    (GrpoConfig, {"epsilon": 0.0}, "grpo.epsilon must lie strictly between 0 and 1, got 0.0"),
    (GrpoConfig, {"adam_beta2": 1.0}, "grpo.adam_beta2 must lie in [0, 1), got 1.0"),
    (GrpoConfig, {"adam_beta1": True}, "grpo.adam_beta1 must lie in [0, 1), got True. Use 0.9 and 0.999."),
    (GrpoConfig, {"adam_beta1": False}, "grpo.adam_beta1 must lie in [0, 1), got False. Use 0.9 and 0.999."),
    (GrpoConfig, {"epsilon": False}, "grpo.epsilon must lie strictly between 0 and 1, got False. Use 0.2"),
    (GrpoConfig, {"adam_epsilon": 0.0}, "grpo.adam_epsilon must be positive and finite"),
]


@pytest.mark.parametrize(("section", "fields", "message"), BAD_SECTIONS)
def test_bad_sections_are_refused(section: type, fields: dict[str, object], message: str) -> None:
    with pytest.raises(InputError) as error:
        section(**fields)
    assert message in str(error.value)


def test_tasks_policies_and_algorithms_are_read_from_a_file() -> None:
    sections = {
        "task": {"name": "reverse", "graded": True},
        "policy": {"architecture": "transformer", "hidden_size": 32, "num_layers": 2, "num_heads": 4},
        "grpo": {"importance_sampling_level": "sequence", "sgd_momentum": 0},
    }
    experiment = experiment_from_mapping({**AXES, "name": "a", **sections})
    assert experiment.task == TaskConfig("reverse", graded=True)
    assert experiment.policy == PolicyConfig("transformer", hidden_size=32, num_layers=2, num_heads=4)
    assert experiment.grpo == GrpoConfig(importance_sampling_level="sequence", sgd_momentum=0)
    assert PolicyConfig("mlp", num_heads=3).num_heads == 3, "the network has no heads"


BAD_MAPPINGS = [
    ({**AXES, "name": "a", "sync_intervals": [1]}, "got 'sync_intervals'. The nearest known key is sync_interval."),
    (
        {**AXES, "name": "a", "grpo": {"epsilom": 0.2}},
        "experiment key must be known, got 'grpo.epsilom'. The nearest known key is grpo.epsilon.",
    ),
    ({**AXES, "name": "a", "": 1}, "experiment key must be known, got ''. The nearest known key is"),
    ({**AXES, "name": "a", "grpo": 3}, "grpo must be a table, got 3. Write it as [grpo]."),
    (AXES, "name must be given, got nothing"),
]


@pytest.mark.parametrize(("mapping", "message"), BAD_MAPPINGS)
def test_bad_mappings_are_refused(mapping: dict[str, object], message: str) -> None:
    with pytest.raises(InputError) as error:
        experiment_from_mapping(mapping)
    assert message in str(error.value)


def test_files_that_are_not_toml_are_refused(tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text("name = ")
    with pytest.raises(InputError, match="EXPERIMENT must be valid TOML"):
        load_experiment(tmp_path / "bad.toml")
    with pytest.raises(InputError, match="EXPERIMENT must be a readable TOML file"):
        load_experiment(tmp_path / "missing.toml")

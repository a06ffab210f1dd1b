from dataclasses import replace

import torch

from validation.config import Experiment, PolicyConfig, TaskConfig
from validation.policy import Mlp
from validation.pretrain import pretrain
from validation.setup import evaluation_prompts, policy_of, task_of
from validation.tasks import make_task
from validation.transformer import Transformer


def test_an_experiment_names_its_task_and_policy(small: Experiment) -> None:
    task = TaskConfig("reverse", num_symbols=7, length=4, graded=True)
    wide = PolicyConfig("transformer", hidden_size=48, num_layers=2, num_heads=3)
    assert task_of(replace(small, task=task)) == make_task(task)
    assert policy_of(replace(small, task=task)) == Mlp(num_symbols=7, length=4, hidden_size=16)
    expected = Transformer(num_symbols=7, length=4, hidden_size=48, num_layers=2, num_heads=3)
    assert policy_of(replace(small, task=task, policy=wide)) == expected


def test_the_prompts_of_evaluations_follow_the_pretraining_seed_alone(small: Experiment) -> None:
    prompts = evaluation_prompts(small)
    assert prompts.shape == (16, 3)
    same = replace(small, seed=(5,), policy=replace(small.policy, architecture="transformer"))
    assert torch.equal(evaluation_prompts(same), prompts)
    other = replace(small, policy=replace(small.policy, pretrain_seed=1))
    assert not torch.equal(evaluation_prompts(other), prompts)


def test_a_transformer_is_pretrained_as_its_experiment_says(small: Experiment) -> None:
    experiment = replace(small, policy=PolicyConfig("transformer", hidden_size=16, pretrain_reward=0.1))
    start = pretrain(experiment)
    assert {name: value.shape for name, value in start.items()} == {
        name: value.shape for name, value in policy_of(experiment).initial_parameters(torch.Generator()).items()
    }

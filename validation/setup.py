"""What an experiment file stands for: its task, its policy and the prompts of every evaluation."""

import torch
from torch import Tensor

from validation.config import Experiment
from validation.policy import Mlp, Policy
from validation.tasks import Task, make_task
from validation.transformer import Transformer


def _mlp(experiment: Experiment) -> Policy:
    task, policy = experiment.task, experiment.policy
    return Mlp(task.num_symbols, task.length, policy.hidden_size)


def _transformer(experiment: Experiment) -> Policy:
    task, policy = experiment.task, experiment.policy
    return Transformer(task.num_symbols, task.length, policy.hidden_size, policy.num_layers, policy.num_heads)


_POLICIES = {"mlp": _mlp, "transformer": _transformer}


def task_of(experiment: Experiment) -> Task:
    """The task that the runs train on."""
    return make_task(experiment.task)


def policy_of(experiment: Experiment) -> Policy:
    """The policy, in the sizes that its task needs."""
    return _POLICIES[experiment.policy.architecture](experiment)


def evaluation_prompts(experiment: Experiment) -> Tensor:
    """Prompts of every evaluation, shape (num_eval_prompts, length); the same in every run."""
    generator = torch.Generator().manual_seed(experiment.policy.pretrain_seed + 1)
    return task_of(experiment).draw_prompts(experiment.num_eval_prompts, generator)

"""Supervised pretraining of the starting policy, to a stated expected reward."""

import torch

from theory.errors import InputError
from validation.config import Experiment
from validation.policy import Parameters, chosen, expected_reward
from validation.setup import evaluation_prompts, policy_of, task_of

_MAX_STEPS = 5000
_CHECK_EVERY = 5


def pretrain(experiment: Experiment) -> Parameters:
    """Weights of the policy that every run of a sweep starts from (run axis of length 1).

    Cross-entropy on right completions with Adam, from `policy.pretrain_seed`, stopped at the first check (every 5
    steps, on the evaluation prompts) at which the expected reward reaches `policy.pretrain_reward`.

    Raises
    ------
    InputError
        If `policy.pretrain_reward` is not reached within 5000 steps.
    """
    config = experiment.policy
    task, policy = task_of(experiment), policy_of(experiment)
    generator = torch.Generator().manual_seed(config.pretrain_seed)
    parameters = {name: value.requires_grad_() for name, value in policy.initial_parameters(generator).items()}
    optimizer = torch.optim.Adam(parameters.values(), lr=config.pretrain_learning_rate)
    eval_prompts_NL = evaluation_prompts(experiment)
    best = 0.0
    for step in range(1, _MAX_STEPS + 1):
        prompts_1NL = task.draw_prompts(config.pretrain_batch_size, generator).unsqueeze(0)
        answers_1NL = task.answers(prompts_1NL)
        loss = -chosen(policy.log_probabilities(parameters, prompts_1NL, answers_1NL), answers_1NL).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % _CHECK_EVERY == 0:
            with torch.no_grad():
                reward = expected_reward(policy, task, parameters, eval_prompts_NL).item()
            best = max(best, reward)
            if reward >= config.pretrain_reward:
                return {name: value.detach() for name, value in parameters.items()}
    raise InputError(
        "policy.pretrain_reward",
        f"be reached within {_MAX_STEPS} steps, which came to {best:.3f}",
        config.pretrain_reward,
        "Lower it, or change policy.hidden_size or policy.pretrain_learning_rate.",
    )

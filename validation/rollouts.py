"""Groups of samples from the behaviour policy, with recorded log-probabilities, rewards and group advantages."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from validation.policy import Parameters, Policy, chosen
from validation.tasks import Task

# R runs, B prompts, G generations per prompt, N = B*G samples, L tokens, V symbols.
_STD_FLOOR = 1e-4


@dataclass(frozen=True)
class Rollouts:
    """One batch per run. `behavior_logp_RNL` [nat] is what the behaviour policy said when it sampled."""

    prompts_RNL: Tensor
    completions_RNL: Tensor
    behavior_logp_RNL: Tensor
    rewards_RBG: Tensor


@torch.no_grad()
def generate(
    policy: Policy,
    task: Task,
    behavior: Parameters,
    generators: Sequence[torch.Generator],
    *,
    num_prompts: int,
    num_generations: int,
) -> Rollouts:
    """Sample one batch for every run, each from its own generator (prompts first, then one uniform per token)."""
    N = num_prompts * num_generations
    prompts_RBL = torch.stack([task.draw_prompts(num_prompts, g) for g in generators])
    uniforms_RNL = torch.stack([torch.rand((N, task.length), generator=g) for g in generators])
    prompts_RNL = prompts_RBL.repeat_interleave(num_generations, dim=1)
    R = len(generators)
    completions_RNL = torch.empty((R, N, task.length), dtype=torch.int64)
    logps = []
    for position in range(task.length):
        logits_RNV = policy.next_logits(behavior, prompts_RNL, completions_RNL[..., :position])
        logp_RNV = logits_RNV.log_softmax(dim=-1)
        token_RN = inverse_cdf(logp_RNV.exp(), uniforms_RNL[..., position])
        completions_RNL[..., position] = token_RN
        logps.append(chosen(logp_RNV, token_RN))
    rewards_RBG = task.reward(prompts_RNL, completions_RNL).reshape(R, num_prompts, num_generations)
    return Rollouts(prompts_RNL, completions_RNL, torch.stack(logps, dim=-1), rewards_RBG)


def inverse_cdf(probabilities_RNV: Tensor, uniforms_RN: Tensor) -> Tensor:
    """Sample a symbol per row: the first whose cumulative probability exceeds the uniform in [0, 1).

    The uniform is scaled by the row's own sum, so that rounding cannot push a draw past the last symbol, and a symbol
    of probability zero is never drawn.
    """
    cumulative_RNV = probabilities_RNV.cumsum(dim=-1)
    thresholds_RN1 = uniforms_RN.unsqueeze(-1) * cumulative_RNV[..., -1:]
    return (cumulative_RNV <= thresholds_RN1).sum(dim=-1)


def group_advantages(rewards_RBG: Tensor, *, scale_rewards: bool) -> Tensor:
    """Group-relative advantages, shape (R, B, G) [1].

    Reward minus the mean of its group; with `scale_rewards` divided by the group's *sample* standard deviation
    (G - 1 in the denominator) plus 1e-4, which is TRL's convention. A group of equal rewards gets exact zeros.
    """
    centred_RBG = rewards_RBG - rewards_RBG.mean(dim=-1, keepdim=True)
    if not scale_rewards:
        return centred_RBG
    return centred_RBG / (rewards_RBG.std(dim=-1, keepdim=True) + _STD_FLOOR)

"""A tiny autoregressive policy, evaluated for many runs at once.

Parameters are a dict of tensors with a leading run axis, so that runs with their own weights go through one batched
matrix product. Left out on purpose: attention, dropout, weight sharing; none changes the laws under test.
"""

import itertools
import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from validation.config import PolicyConfig
from validation.tasks import SortingTask

# R runs, N samples, L tokens, V symbols, F input features, H hidden units.
Parameters = dict[str, Tensor]


@dataclass(frozen=True)
class Policy:
    """Sizes of the network: logits = W2 relu(W1 relu(W0 x + b0) + b1) + b2 on one-hot inputs x."""

    num_symbols: int
    length: int
    hidden_size: int

    @property
    def num_features(self) -> int:
        """Prompt symbols, previous token (or the start token), and position, each one-hot."""
        return self.length * self.num_symbols + (self.num_symbols + 1) + self.length

    def features(self, prompts_RNL: Tensor, previous_RN: Tensor, position_RN: Tensor) -> Tensor:
        """Inputs of the network, shape (R, N, F), float32."""
        parts = (
            one_hot(prompts_RNL, self.num_symbols).flatten(-2),
            one_hot(previous_RN, self.num_symbols + 1),
            one_hot(position_RN, self.length),
        )
        return torch.cat(parts, dim=-1).to(torch.float32)

    def logits(self, parameters: Parameters, features_RNF: Tensor) -> Tensor:
        """Logits, shape (R, N, V)."""
        hidden_RNH = torch.relu(torch.bmm(features_RNF, parameters["w0"]) + parameters["b0"])
        hidden_RNH = torch.relu(torch.bmm(hidden_RNH, parameters["w1"]) + parameters["b1"])
        return torch.bmm(hidden_RNH, parameters["w2"]) + parameters["b2"]

    def teacher_features(self, prompts_RNL: Tensor, completions_RNL: Tensor) -> Tensor:
        """Inputs for every token of given completions, shape (R, N*L, F)."""
        R, N, L = completions_RNL.shape
        start_RN1 = torch.full((R, N, 1), self.num_symbols)
        previous_RNL = torch.cat((start_RN1, completions_RNL[..., :-1]), dim=-1)
        position_RNL = torch.arange(L).expand(R, N, L)
        prompts_RNLL = prompts_RNL.unsqueeze(2).expand(R, N, L, L)
        return self.features(
            prompts_RNLL.reshape(R, N * L, L), previous_RNL.reshape(R, N * L), position_RNL.reshape(R, N * L)
        )

    def log_probabilities(self, parameters: Parameters, prompts_RNL: Tensor, completions_RNL: Tensor) -> Tensor:
        """Log-probabilities [nat] of all symbols at every token of given completions, shape (R, N, L, V)."""
        R, N, L = completions_RNL.shape
        features = self.teacher_features(prompts_RNL, completions_RNL)
        return self.logits(parameters, features).log_softmax(dim=-1).reshape(R, N, L, self.num_symbols)


def make_policy(config: PolicyConfig, task: SortingTask) -> Policy:
    """Return the policy that fits a task."""
    return Policy(num_symbols=task.num_symbols, length=task.length, hidden_size=config.hidden_size)


def initial_parameters(policy: Policy, generator: torch.Generator) -> Parameters:
    """Random weights for one run (R = 1): normal with variance 1 / number of active inputs, zero biases."""
    active_inputs = policy.length + 2
    sizes = (policy.num_features, policy.hidden_size, policy.hidden_size, policy.num_symbols)
    parameters: Parameters = {}
    for layer, (fan_in, fan_out) in enumerate(itertools.pairwise(sizes)):
        scale = 1 / math.sqrt(active_inputs if layer == 0 else fan_in)
        parameters[f"w{layer}"] = scale * torch.randn(1, fan_in, fan_out, generator=generator)
        parameters[f"b{layer}"] = torch.zeros(1, 1, fan_out)
    return parameters


def chosen(log_probabilities: Tensor, tokens: Tensor) -> Tensor:
    """Log-probability of the chosen token; drops the last dimension of the first argument."""
    return log_probabilities.gather(-1, tokens.unsqueeze(-1)).squeeze(-1)


def mean_per_run(values: Tensor) -> Tensor:
    """Mean over all but the first dimension, shape (R,), each run summed as if it were alone.

    A reduction over several dimensions at once may add in another order when there are more runs.
    """
    return torch.stack([value.mean() for value in values])


def expected_reward(policy: Policy, task: SortingTask, parameters: Parameters, prompts_NL: Tensor) -> Tensor:
    """Exact expected reward on given prompts, shape (R,) [1]: the probability of the one right completion.

    No sampling is involved, so evaluations carry no noise beyond the choice of prompts.
    """
    num_runs = parameters["w0"].shape[0]
    prompts_RNL = prompts_NL.expand(num_runs, *prompts_NL.shape)
    answers_RNL = task.answers(prompts_RNL)
    logp_RNL = chosen(policy.log_probabilities(parameters, prompts_RNL, answers_RNL), answers_RNL)
    return mean_per_run(logp_RNL.sum(dim=-1).exp())

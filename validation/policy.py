"""Tiny autoregressive policies, evaluated for many runs at once: what every policy offers, and the network.

Parameters are a dict of tensors with a leading run axis, so that runs with their own weights go through one batched
matrix product. Left out on purpose: dropout and weight sharing; neither changes the laws under test.
"""

import itertools
import math
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from validation.tasks import Task

# R runs, N samples, L tokens (l of them completed), V symbols, F input features, H hidden units.
Parameters = dict[str, Tensor]
"""Every tensor has three dimensions, the run axis first."""


class Policy(Protocol):
    """What a policy offers. It shows `length` prompt symbols and emits as many tokens."""

    def initial_parameters(self, generator: torch.Generator) -> Parameters:
        """Random weights for one run (R = 1)."""

    def next_logits(self, parameters: Parameters, prompts_RNL: Tensor, completed_RNl: Tensor) -> Tensor:
        """Logits of the token after the completed ones (there may be none), shape (R, N, V)."""

    def log_probabilities(self, parameters: Parameters, prompts_RNL: Tensor, completions_RNL: Tensor) -> Tensor:
        """Log-probabilities [nat] of all symbols at every token of given completions, shape (R, N, L, V)."""


@dataclass(frozen=True)
class Mlp:
    """Logits = W2 relu(W1 relu(W0 x + b0) + b1) + b2 on one-hot x: prompt, previous token, position; no attention."""

    num_symbols: int
    length: int
    hidden_size: int

    @property
    def num_features(self) -> int:
        """Prompt symbols, previous token (or the start token), and position, each one-hot."""
        return self.length * self.num_symbols + (self.num_symbols + 1) + self.length

    def initial_parameters(self, generator: torch.Generator) -> Parameters:
        """Random weights for one run (R = 1): normal with variance 1 / number of active inputs, zero biases."""
        active_inputs = self.length + 2
        sizes = (self.num_features, self.hidden_size, self.hidden_size, self.num_symbols)
        parameters: Parameters = {}
        for layer, (fan_in, fan_out) in enumerate(itertools.pairwise(sizes)):
            scale = 1 / math.sqrt(active_inputs if layer == 0 else fan_in)
            parameters[f"w{layer}"] = scale * torch.randn(1, fan_in, fan_out, generator=generator)
            parameters[f"b{layer}"] = torch.zeros(1, 1, fan_out)
        return parameters

    def next_logits(self, parameters: Parameters, prompts_RNL: Tensor, completed_RNl: Tensor) -> Tensor:
        """Logits of the token after the completed ones, shape (R, N, V)."""
        R, N, position = completed_RNl.shape
        previous_RN = completed_RNl[..., -1] if position else torch.full((R, N), self.num_symbols)
        return self._logits(parameters, self._features(prompts_RNL, previous_RN, torch.full((R, N), position)))

    def log_probabilities(self, parameters: Parameters, prompts_RNL: Tensor, completions_RNL: Tensor) -> Tensor:
        """Log-probabilities [nat] of all symbols at every token of given completions, shape (R, N, L, V)."""
        R, N, L = completions_RNL.shape
        features = self._teacher_features(prompts_RNL, completions_RNL)
        return self._logits(parameters, features).log_softmax(dim=-1).reshape(R, N, L, self.num_symbols)

    def _features(self, prompts_RNL: Tensor, previous_RN: Tensor, position_RN: Tensor) -> Tensor:
        """Inputs of the network, shape (R, N, F), float32."""
        parts = (
            one_hot(prompts_RNL, self.num_symbols).flatten(-2),
            one_hot(previous_RN, self.num_symbols + 1),
            one_hot(position_RN, self.length),
        )
        return torch.cat(parts, dim=-1).to(torch.float32)

    def _teacher_features(self, prompts_RNL: Tensor, completions_RNL: Tensor) -> Tensor:
        """Inputs for every token of given completions, shape (R, N*L, F)."""
        R, N, L = completions_RNL.shape
        start_RN1 = torch.full((R, N, 1), self.num_symbols)
        previous_RNL = torch.cat((start_RN1, completions_RNL[..., :-1]), dim=-1)
        position_RNL = torch.arange(L).expand(R, N, L)
        prompts_RNLL = prompts_RNL.unsqueeze(2).expand(R, N, L, L)
        return self._features(
            prompts_RNLL.reshape(R, N * L, L), previous_RNL.reshape(R, N * L), position_RNL.reshape(R, N * L)
        )

    def _logits(self, parameters: Parameters, features_RNF: Tensor) -> Tensor:
        hidden_RNH = torch.relu(torch.bmm(features_RNF, parameters["w0"]) + parameters["b0"])
        hidden_RNH = torch.relu(torch.bmm(hidden_RNH, parameters["w1"]) + parameters["b1"])
        return torch.bmm(hidden_RNH, parameters["w2"]) + parameters["b2"]


def chosen(log_probabilities: Tensor, tokens: Tensor) -> Tensor:
    """Log-probability of the chosen token; drops the last dimension of the first argument."""
    return log_probabilities.gather(-1, tokens.unsqueeze(-1)).squeeze(-1)


def mean_per_run(values: Tensor) -> Tensor:
    """Mean over all but the first dimension, shape (R,), each run summed as if it were alone.

    A reduction over several dimensions at once may add in another order when there are more runs.
    """
    return torch.stack([value.mean() for value in values])


def expected_reward(policy: Policy, task: Task, parameters: Parameters, prompts_NL: Tensor) -> Tensor:
    """Exact expected reward on given prompts, shape (R,) [1].

    No sampling is involved, so evaluations carry no noise beyond the choice of prompts.
    """
    num_runs = next(iter(parameters.values())).shape[0]
    prompts_RNL = prompts_NL.expand(num_runs, *prompts_NL.shape)
    answers_RNL = task.answers(prompts_RNL)
    logp_RNL = chosen(policy.log_probabilities(parameters, prompts_RNL, answers_RNL), answers_RNL)
    return mean_per_run(task.expected_reward(logp_RNL))

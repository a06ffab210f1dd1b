"""Optimizers that step many runs at once, each at its own constant learning rate; no weight decay, no warm-up."""

from collections.abc import Sequence
from typing import Protocol

import torch

from validation.config import GrpoConfig
from validation.policy import Parameters


class Optimizer(Protocol):
    """What the learner needs of an optimizer."""

    def step(self, parameters: Parameters, gradients: Parameters) -> None:
        """Update the parameters in place along the negative gradients."""


class BatchedAdam:
    """Adam with one constant learning rate per run."""

    def __init__(self, parameters: Parameters, learning_rates: Sequence[float], config: GrpoConfig) -> None:
        self.config = config
        self.step_sizes = _step_sizes(learning_rates)
        self.first = {name: torch.zeros_like(value) for name, value in parameters.items()}
        self.second = {name: torch.zeros_like(value) for name, value in parameters.items()}
        self.num_steps = 0

    @torch.no_grad()
    def step(self, parameters: Parameters, gradients: Parameters) -> None:
        """Update the parameters in place along the negative gradients."""
        self.num_steps += 1
        beta1, beta2 = self.config.adam_beta1, self.config.adam_beta2
        correction1 = 1 - beta1**self.num_steps
        correction2 = 1 - beta2**self.num_steps
        for name, gradient in gradients.items():
            first = self.first[name].mul_(beta1).add_(gradient, alpha=1 - beta1)
            second = self.second[name].mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
            denominator = second.div(correction2).sqrt_().add_(self.config.adam_epsilon)
            parameters[name].sub_(self.step_sizes * (first / correction1) / denominator)


class BatchedSgd:
    """SGD with heavy-ball momentum, one constant learning rate per run: v <- mu v + g, theta <- theta - eta v."""

    def __init__(self, parameters: Parameters, learning_rates: Sequence[float], momentum: float) -> None:
        self.momentum = momentum
        self.step_sizes = _step_sizes(learning_rates)
        self.velocity = {name: torch.zeros_like(value) for name, value in parameters.items()}

    @torch.no_grad()
    def step(self, parameters: Parameters, gradients: Parameters) -> None:
        """Update the parameters in place along the negative gradients."""
        for name, gradient in gradients.items():
            velocity = self.velocity[name].mul_(self.momentum).add_(gradient)
            parameters[name].sub_(self.step_sizes * velocity)


def make_optimizer(parameters: Parameters, learning_rates: Sequence[float], config: GrpoConfig) -> Optimizer:
    """Return the optimizer that a configuration asks for, its state for tensors like `parameters`."""
    if config.sgd_momentum is None:
        return BatchedAdam(parameters, learning_rates, config)
    return BatchedSgd(parameters, learning_rates, config.sgd_momentum)


def _step_sizes(learning_rates: Sequence[float]) -> torch.Tensor:
    return torch.tensor(learning_rates, dtype=torch.float32).reshape(-1, 1, 1)

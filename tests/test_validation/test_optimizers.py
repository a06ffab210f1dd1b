from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from validation.config import GrpoConfig
from validation.optimizers import BatchedAdam, BatchedSgd, make_optimizer

RATES = [1e-3, 3e-2]


def follow(config: GrpoConfig, alone: Callable[[list[Tensor], float], torch.optim.Optimizer], **tolerance: Any) -> None:
    """Compare with torch's optimizer, one per run, over 20 steps of random gradients."""
    generator = torch.Generator().manual_seed(0)
    stacked = {"w": torch.randn((2, 3, 4), generator=generator), "b": torch.randn((2, 1, 4), generator=generator)}
    singles = [{name: value[run].clone().requires_grad_() for name, value in stacked.items()} for run in range(2)]
    ours = make_optimizer(stacked, RATES, config)
    theirs = [alone(list(single.values()), rate) for single, rate in zip(singles, RATES, strict=True)]
    for _ in range(20):
        gradients = {name: torch.randn(value.shape, generator=generator) for name, value in stacked.items()}
        ours.step(stacked, gradients)
        for run in range(2):
            for name, single in singles[run].items():
                single.grad = gradients[name][run].clone()
            theirs[run].step()
    for run in range(2):
        for name, single in singles[run].items():
            torch.testing.assert_close(stacked[name][run], single.detach(), **tolerance)


def test_adam_is_torch_adam_at_each_runs_own_rate() -> None:
    follow(GrpoConfig(), lambda weights, rate: torch.optim.Adam(weights, lr=rate), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("momentum", [0.0, 0.5, 0.9])
def test_sgd_is_torch_sgd_at_each_runs_own_rate(momentum: float) -> None:
    """One rounding of a product a step, which torch may fuse with the sum: 20 of 1e-7."""

    def alone(weights: list[Tensor], rate: float) -> torch.optim.Optimizer:
        return torch.optim.SGD(weights, lr=rate, momentum=momentum)

    follow(GrpoConfig(sgd_momentum=momentum), alone, rtol=2e-6, atol=2e-6)


def test_sgd_under_a_constant_gradient_by_hand() -> None:
    """v is 1, 1 + mu, 1 + mu + mu^2; with powers of two nothing is rounded."""
    weights = {"w": torch.zeros(2, 1, 1)}
    optimizer = BatchedSgd(weights, [1.0, 0.5], momentum=0.5)
    for moved in (1.0, 2.5, 4.25):
        optimizer.step(weights, {"w": torch.ones(2, 1, 1)})
        assert weights["w"].flatten().tolist() == [-moved, -moved / 2]


def test_a_momentum_of_zero_is_sgd_and_none_is_adam() -> None:
    weights = {"w": torch.zeros(1, 1, 1)}
    assert isinstance(make_optimizer(weights, [1.0], GrpoConfig(sgd_momentum=0.0)), BatchedSgd)
    assert isinstance(make_optimizer(weights, [1.0], GrpoConfig()), BatchedAdam)

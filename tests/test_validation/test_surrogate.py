import math

import numpy as np
import pytest
import torch

from validation.surrogate import ratio_metrics, surrogate

EPSILON = 0.2


def one_token(ratio: float, advantage: float, epsilon: float | None) -> tuple[float, float]:
    """Value and derivative by log-probability of the surrogate of a single token."""
    logp = torch.tensor([[[math.log(ratio) - 1.0]]], dtype=torch.float64, requires_grad=True)
    value = surrogate(
        logp,
        torch.full((1, 1, 1), -1.0, dtype=torch.float64),
        torch.tensor([[advantage]], dtype=torch.float64),
        epsilon=epsilon,
    )
    (slope,) = torch.autograd.grad(value.sum(), logp)
    return value.item(), slope.item()


BY_HAND = [
    # ratio, advantage, value and gradient with the clip
    (1.1, 2.0, 2.2, 2.2),
    (1.5, 2.0, 2.4, 0.0),
    (1.5, -2.0, -3.0, -3.0),
    (0.5, 2.0, 1.0, 1.0),
    (0.5, -2.0, -1.6, 0.0),
    (0.9, -2.0, -1.8, -1.8),
    (3.0, 0.0, 0.0, 0.0),
]


@pytest.mark.parametrize(("ratio", "advantage", "value", "slope"), BY_HAND)
def test_every_branch_by_hand(ratio: float, advantage: float, value: float, slope: float) -> None:
    assert one_token(ratio, advantage, EPSILON) == pytest.approx((value, slope), rel=1e-12)
    assert one_token(ratio, advantage, None) == pytest.approx((ratio * advantage, ratio * advantage), rel=1e-12)


def draw(seed: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Log-probabilities with a lag noise that visits every branch, and advantages of both signs."""
    generator = torch.Generator().manual_seed(seed)
    behavior = torch.randn((2, 30, 3), generator=generator, dtype=torch.float64) - 2
    logp = behavior + 0.4 * torch.randn((2, 30, 3), generator=generator, dtype=torch.float64)
    return logp, behavior, torch.randn((2, 30), generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("epsilon", [None, EPSILON])
def test_the_gradient_is_that_of_finite_differences(epsilon: float | None) -> None:
    logp, behavior, advantages = draw(0)
    ratio = (logp - behavior).exp()
    for branch in (ratio < 1 - EPSILON, (ratio - 1).abs() <= EPSILON, ratio > 1 + EPSILON):
        for sign in (advantages > 0, advantages < 0):
            assert (branch & sign[..., None]).double().mean() >= 0.1
    assert torch.autograd.gradcheck(
        lambda x: surrogate(x, behavior, advantages, epsilon=epsilon), logp.requires_grad_(), eps=1e-7
    )


def test_metrics_against_numpy_loops() -> None:
    logp, behavior, advantages = draw(1)
    metrics = ratio_metrics(logp, behavior, advantages, epsilon=EPSILON)
    for run in range(2):
        delta = (logp - behavior)[run].numpy()
        clipped = 0
        for sample in range(30):
            for token in range(3):
                r, a = math.exp(delta[sample, token]), advantages[run, sample].item()
                clipped += (a > 0 and r > 1 + EPSILON) or (a < 0 and r < 1 - EPSILON)
        assert metrics["drift"][run].item() == pytest.approx(np.sqrt(np.mean(delta**2)), rel=1e-12)
        assert metrics["behavior_k3"][run].item() == pytest.approx(np.mean(np.exp(delta) - 1 - delta), rel=1e-12)
        assert metrics["clip_fraction"][run].item() == pytest.approx(clipped / 90, rel=1e-6)
    assert ratio_metrics(logp, behavior, advantages, epsilon=None)["clip_fraction"].isnan().all()

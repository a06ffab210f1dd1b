import math
from itertools import product

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.support.tolerances import CLOSED_FORM
from validation.config import RATIO_LEVELS, TaskConfig
from validation.policy import Mlp, chosen
from validation.surrogate import clip_fraction, drift_metrics, importance_ratio, surrogate
from validation.tasks import make_task

EPSILON = 0.2
NOISE = {"token": 0.4, "sequence": 0.4 * math.sqrt(3), "sequence_product": 0.4 / math.sqrt(3)}
"""Of the log-ratio of a token; that of a ratio is 0.4 at every level."""
EVERY_LEVEL = pytest.mark.parametrize("level", RATIO_LEVELS)


def one_token(ratio: float, advantage: float, epsilon: float | None) -> tuple[float, float]:
    """Value and derivative by log-probability of the surrogate of a single token."""
    logp = torch.tensor([[[math.log(ratio) - 1.0]]], dtype=torch.float64, requires_grad=True)
    value = surrogate(
        importance_ratio(logp, torch.full((1, 1, 1), -1.0, dtype=torch.float64), level="token"),
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
    assert one_token(ratio, advantage, EPSILON) == pytest.approx((value, slope), rel=CLOSED_FORM)
    assert one_token(ratio, advantage, None) == pytest.approx((ratio * advantage, ratio * advantage), rel=CLOSED_FORM)


LEVELS_BY_HAND = [
    # of a completion whose tokens have the ratios 2, 4 and 1/64: the ratios, and the surrogate at A = 3 with the clip
    ("token", [2.0, 4.0, 1 / 64], (1.2 + 1.2 + 1 / 64)),
    ("sequence", [0.5], 3 * 0.5),
    ("sequence_product", [0.125], 3 * 0.125),
]


@pytest.mark.parametrize(("level", "ratios", "value"), LEVELS_BY_HAND)
def test_the_ratio_of_every_level_by_hand(level: str, ratios: list[float], value: float) -> None:
    behavior = torch.tensor([[[-1.0, -2.0, -3.0]]], dtype=torch.float64)
    logp = behavior + torch.tensor([2.0, 4.0, 1 / 64], dtype=torch.float64).log()
    ratio = importance_ratio(logp, behavior, level=level)
    assert ratio.shape == (1, 1, len(ratios))
    assert ratio.flatten().tolist() == pytest.approx(ratios, rel=CLOSED_FORM)
    clipped = surrogate(ratio, torch.full((1, 1), 3.0, dtype=torch.float64), epsilon=EPSILON)
    assert clipped.item() == pytest.approx(value, rel=CLOSED_FORM)


def draw(seed: int, noise: float = 0.4) -> tuple[Tensor, Tensor, Tensor]:
    """Log-probabilities with a lag noise that visits every branch, and advantages of both signs."""
    generator = torch.Generator().manual_seed(seed)
    behavior = torch.randn((2, 60, 3), generator=generator, dtype=torch.float64) - 2
    logp = behavior + noise * torch.randn((2, 60, 3), generator=generator, dtype=torch.float64)
    return logp, behavior, torch.randn((2, 60), generator=generator, dtype=torch.float64)


@EVERY_LEVEL
@pytest.mark.parametrize("epsilon", [None, EPSILON])
def test_the_gradient_is_that_of_finite_differences(level: str, epsilon: float | None) -> None:
    logp, behavior, advantages = draw(0, NOISE[level])
    ratio = importance_ratio(logp, behavior, level=level)
    for branch in (ratio < 1 - EPSILON, (ratio - 1).abs() <= EPSILON, ratio > 1 + EPSILON):
        for sign in (advantages > 0, advantages < 0):
            assert (branch & sign[..., None]).double().mean() >= 0.1
    assert torch.autograd.gradcheck(
        lambda x: surrogate(importance_ratio(x, behavior, level=level), advantages, epsilon=epsilon),
        logp.requires_grad_(),
        eps=1e-7,
    )


def test_without_lag_token_and_sequence_agree_and_the_product_is_as_many_times_larger_as_tokens() -> None:
    _, behavior, advantages = draw(1)
    logp = behavior.clone().requires_grad_()
    slopes = {}
    for level in RATIO_LEVELS:
        value = surrogate(importance_ratio(logp, behavior, level=level), advantages, epsilon=EPSILON)
        torch.testing.assert_close(value, advantages.mean(dim=1), rtol=CLOSED_FORM, atol=CLOSED_FORM)
        (slopes[level],) = torch.autograd.grad(value.sum(), logp)
    torch.testing.assert_close(slopes["sequence"], slopes["token"], rtol=CLOSED_FORM, atol=0)
    torch.testing.assert_close(slopes["sequence_product"], 3 * slopes["token"], rtol=CLOSED_FORM, atol=0)


def expected_gradients(*, lag: float) -> tuple[dict[str, Tensor], Tensor]:
    """Expected gradient of the surrogate of every level, times the ratios a completion has, and the true one.

    All 27 completions of a prompt, weighted by the probability with which the behaviour policy emits them. The
    learner's weights are the behaviour policy's and `lag` times noise; A is the graded reward.
    """
    policy, task = Mlp(num_symbols=3, length=3, hidden_size=8), make_task(TaskConfig("reverse", 3, 3, graded=True))
    seeds = [torch.Generator().manual_seed(seed) for seed in (1, 2)]
    behavior, noise = (policy.initial_parameters(generator) for generator in seeds)
    learner = {name: (value + lag * noise[name]).requires_grad_() for name, value in behavior.items()}
    completions = torch.tensor(list(product(range(3), repeat=3))).unsqueeze(0)
    prompts = torch.tensor([2, 0, 1]).expand_as(completions)
    advantages = task.reward(prompts, completions) - task.reward_floor
    behavior_logp = chosen(policy.log_probabilities(behavior, prompts, completions), completions)
    chance = behavior_logp.sum(dim=-1).exp()
    logp = chosen(policy.log_probabilities(learner, prompts, completions), completions)

    def gradient(value: Tensor) -> Tensor:
        parts = torch.autograd.grad(value.sum(), list(learner.values()), retain_graph=True)
        return torch.cat([part.flatten() for part in parts])

    estimates = {}
    for level in RATIO_LEVELS:
        ratio = importance_ratio(logp, behavior_logp, level=level)
        mean = surrogate(ratio, 27 * chance * advantages, epsilon=None)  # a mean over 27, so that it is the expectation
        estimates[level] = gradient(mean) * (1 if level == "sequence_product" else 3)
    return estimates, gradient(logp.sum(dim=-1).exp() * advantages)


def test_the_product_is_unbiased_at_any_lag_and_the_other_levels_are_not() -> None:
    """float32 sums of 27 terms: 1e-6 of a gradient of norm 0.1 to 1; the bias of the others is 1e-3 and more."""
    estimates, exact = expected_gradients(lag=0.0)
    for level in RATIO_LEVELS:
        assert (estimates[level] - exact).norm() < 2e-6
    estimates, exact = expected_gradients(lag=0.3)
    assert exact.norm() > 0.05
    assert (estimates["sequence_product"] - exact).norm() < 2e-6
    for level in ("token", "sequence"):
        assert (estimates[level] - exact).norm() > 1e-2


@EVERY_LEVEL
def test_the_clip_fraction_against_loops(level: str) -> None:
    logp, behavior, advantages = draw(1)
    share = clip_fraction(importance_ratio(logp, behavior, level=level), advantages, epsilon=EPSILON)
    for run in range(2):
        clipped = []
        for delta, a in zip((logp - behavior)[run].numpy(), advantages[run].tolist(), strict=True):
            logs = {"token": list(delta), "sequence": [np.mean(delta)], "sequence_product": [np.sum(delta)]}[level]
            clipped += [(a > 0 and math.exp(x) > 1.2) or (a < 0 and math.exp(x) < 0.8) for x in logs]
        assert share[run].item() == pytest.approx(np.mean(clipped), rel=1e-6)
        assert 0.1 < share[run] < 0.9
    assert clip_fraction(logp, advantages, epsilon=None).isnan().all()


def test_drift_metrics_against_numpy() -> None:
    logp, behavior, _ = draw(1)
    metrics = drift_metrics(logp, behavior)
    for run in range(2):
        delta = (logp - behavior)[run].numpy()
        weights = np.exp(delta).prod(axis=1)
        size = weights.sum() ** 2 / (60 * (weights**2).sum())
        assert metrics["drift"][run].item() == pytest.approx(np.sqrt(np.mean(delta**2)), rel=CLOSED_FORM)
        assert metrics["behavior_k3"][run].item() == pytest.approx(np.mean(np.exp(delta) - 1 - delta), rel=CLOSED_FORM)
        assert metrics["effective_sample_size"][run].item() == pytest.approx(size, rel=CLOSED_FORM)
        assert 0.2 < size < 0.9


def test_the_effective_sample_size_at_its_ends() -> None:
    """One where all weights are equal, however large, and one sample of N where one outweighs the rest; no overflow."""
    behavior = torch.zeros(4, 8, 2)
    logp = torch.zeros(4, 8, 2)
    logp[1] = 200.0
    logp[2] = -200.0
    logp[3, :, 0] = torch.tensor([200.0, *[-200.0] * 7])
    size = drift_metrics(logp, behavior)["effective_sample_size"]
    assert size.tolist() == [1, 1, 1, 1 / 8]
    logp[3, :4, 0] = 200.0
    assert drift_metrics(logp, behavior)["effective_sample_size"][3] == 0.5

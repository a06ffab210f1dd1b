import numpy as np
import pytest
import torch
from scipy import stats

from validation.config import TaskConfig
from validation.policy import Mlp, chosen
from validation.rollouts import generate, group_advantages, inverse_cdf
from validation.tasks import make_task

POLICY = Mlp(num_symbols=4, length=3, hidden_size=8)
TASK = make_task(TaskConfig(num_symbols=4, length=3))


def test_advantages_by_hand() -> None:
    rewards = torch.tensor([[[1.0, 0.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0]]])
    centred = group_advantages(rewards, scale_rewards=False)
    assert centred.tolist() == [[[0.75, -0.25, -0.25, -0.25], [0.0, 0.0, 0.0, 0.0]]]
    scaled = group_advantages(rewards, scale_rewards=True)
    # sample standard deviation of (1, 0, 0, 0): sqrt(0.75 / 3) = 0.5
    assert scaled[0, 0].tolist() == pytest.approx([0.75 / 0.5001, *[-0.25 / 0.5001] * 3], rel=1e-6)
    assert torch.equal(scaled[0, 1], torch.zeros(4))


def test_sampling_follows_the_probabilities() -> None:
    """Chi-square at a false-alarm rate of 1e-4, with a fixed seed; a symbol of probability zero is never drawn."""
    probabilities = torch.tensor([0.0, 0.5, 0.2, 0.0, 0.3])
    draws = 20_000
    uniforms = torch.rand((1, draws), generator=torch.Generator().manual_seed(0))
    tokens = inverse_cdf(probabilities.expand(1, draws, 5), uniforms)
    counts = np.bincount(tokens.flatten().numpy(), minlength=5)
    assert counts[0] == counts[3] == 0
    expected = draws * probabilities.numpy()[[1, 2, 4]]
    assert stats.chisquare(counts[[1, 2, 4]], expected).pvalue > 1e-4


@pytest.mark.parametrize(("uniform", "token"), [(0.0, 1), (0.4999, 1), (0.5, 2), (1 - 2**-24, 2)])
def test_sampling_at_the_edges(uniform: float, token: int) -> None:
    probabilities = torch.tensor([[[0.0, 0.5, 0.5, 0.0]]])
    assert inverse_cdf(probabilities, torch.tensor([[uniform]])).item() == token


def test_a_batch_records_what_the_behaviour_policy_said() -> None:
    behavior = POLICY.initial_parameters(torch.Generator().manual_seed(5))
    generators = [torch.Generator().manual_seed(1)]
    batch = generate(POLICY, TASK, behavior, generators, num_prompts=6, num_generations=4)
    assert batch.prompts_RNL.shape == batch.completions_RNL.shape == (1, 24, 3)
    groups = batch.prompts_RNL.reshape(6, 4, 3)
    assert torch.equal(groups, groups[:, :1].expand(6, 4, 3))
    logp = chosen(POLICY.log_probabilities(behavior, batch.prompts_RNL, batch.completions_RNL), batch.completions_RNL)
    assert torch.allclose(logp, batch.behavior_logp_RNL, atol=1e-5)
    assert torch.equal(batch.rewards_RBG.flatten(1), TASK.reward(batch.prompts_RNL, batch.completions_RNL))


def test_runs_draw_from_their_own_generators() -> None:
    one = POLICY.initial_parameters(torch.Generator().manual_seed(5))
    three = {name: value.repeat(3, 1, 1) for name, value in one.items()}
    together = generate(
        POLICY, TASK, three, [torch.Generator().manual_seed(s) for s in (7, 8, 9)], num_prompts=4, num_generations=2
    )
    alone = generate(POLICY, TASK, one, [torch.Generator().manual_seed(8)], num_prompts=4, num_generations=2)
    assert torch.equal(together.completions_RNL[1], alone.completions_RNL[0])
    assert torch.equal(together.behavior_logp_RNL[1], alone.behavior_logp_RNL[0])
    assert not torch.equal(together.prompts_RNL[0], together.prompts_RNL[1])

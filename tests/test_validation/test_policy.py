from dataclasses import replace
from itertools import product

import pytest
import torch

from theory.errors import InputError
from validation.config import TASKS, Experiment, TaskConfig
from validation.policy import Mlp, Policy, chosen, expected_reward
from validation.pretrain import pretrain
from validation.setup import evaluation_prompts, policy_of, task_of
from validation.tasks import make_task
from validation.transformer import Transformer

POLICY = Mlp(num_symbols=3, length=3, hidden_size=8)
TRANSFORMER = Transformer(num_symbols=3, length=3, hidden_size=16, num_layers=1, num_heads=2)
TASK = make_task(TaskConfig(num_symbols=3, length=3))


def test_probabilities_of_all_completions_sum_to_one() -> None:
    parameters = POLICY.initial_parameters(torch.Generator().manual_seed(0))
    completions = torch.tensor(list(product(range(3), repeat=3))).unsqueeze(0)
    prompts = torch.tensor([2, 1, 2]).expand(1, 27, 3)
    logp = chosen(POLICY.log_probabilities(parameters, prompts, completions), completions).sum(-1)
    assert logp.exp().sum().item() == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("policy", [POLICY, TRANSFORMER], ids=["mlp", "transformer"])
@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("graded", [False, True], ids=["exact", "graded"])
def test_expected_reward_is_the_enumerated_one(policy: Policy, name: str, graded: bool) -> None:
    task = make_task(TaskConfig(name, num_symbols=3, length=3, graded=graded))
    parameters = policy.initial_parameters(torch.Generator().manual_seed(1))
    prompts = task.draw_prompts(5, torch.Generator().manual_seed(2))
    completions = torch.tensor(list(product(range(3), repeat=3)))
    total = 0.0
    for prompt in prompts:
        shown = prompt.expand(1, 27, 3)
        logp = chosen(policy.log_probabilities(parameters, shown, completions[None]), completions[None]).sum(-1)
        total += (logp.exp() * task.reward(shown, completions[None])).sum().item()
    assert expected_reward(policy, task, parameters, prompts).item() == pytest.approx(total / 5, rel=1e-5)
    assert abs(total / 5 - task.reward_floor) > 1e-3


def test_a_later_token_sees_the_earlier_ones_but_never_the_other_way() -> None:
    parameters = POLICY.initial_parameters(torch.Generator().manual_seed(0))
    prompts = torch.tensor([[[2, 1, 0]]])
    first, second = torch.tensor([[[0, 1, 2]]]), torch.tensor([[[0, 2, 2]]])
    a, b = (POLICY.log_probabilities(parameters, prompts, tokens) for tokens in (first, second))
    assert torch.equal(a[..., :2, :], b[..., :2, :])
    assert not torch.allclose(a[..., 2, :], b[..., 2, :])


def test_runs_of_a_batch_use_their_own_weights() -> None:
    one, two = (POLICY.initial_parameters(torch.Generator().manual_seed(seed)) for seed in (1, 2))
    both = {name: torch.cat((one[name], two[name])) for name in one}
    prompts = TASK.draw_prompts(4, torch.Generator().manual_seed(0))
    alone = [expected_reward(POLICY, TASK, parameters, prompts).item() for parameters in (one, two)]
    assert expected_reward(POLICY, TASK, both, prompts).tolist() == alone
    assert alone[0] != alone[1]


def test_pretraining_reaches_the_stated_reward_with_the_same_bits(small: Experiment) -> None:
    first, second = pretrain(small), pretrain(small)
    assert all(torch.equal(first[name], second[name]) for name in first)
    reward = expected_reward(policy_of(small), task_of(small), first, evaluation_prompts(small)).item()
    assert small.policy.pretrain_reward <= reward < small.policy.pretrain_reward + 0.1


def test_pretraining_that_cannot_reach_its_reward_says_so(small: Experiment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("validation.pretrain._MAX_STEPS", 5)
    demanding = replace(small, policy=replace(small.policy, pretrain_reward=0.99))
    said = r"policy\.pretrain_reward must be reached within 5 steps, which came to 0\.\d{3}, got 0\.99\. Lower it, or"
    with pytest.raises(InputError, match=said):
        pretrain(demanding)

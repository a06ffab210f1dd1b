from itertools import product

import torch

from validation.tasks import SortingTask


def test_reward_is_one_for_the_sorted_prompt_alone() -> None:
    task = SortingTask(num_symbols=3, length=3)
    prompt = torch.tensor([2, 0, 2])
    completions = torch.tensor(list(product(range(3), repeat=3)))
    rewards = task.reward(prompt.expand(27, 3), completions)
    assert rewards.sum() == 1
    assert completions[rewards.argmax()].tolist() == [0, 2, 2]
    assert rewards.mean().item() == torch.tensor(task.reward_floor).item()


def test_prompts_cover_all_symbols_and_follow_the_generator() -> None:
    task = SortingTask(num_symbols=10, length=3)
    prompts = task.draw_prompts(500, torch.Generator().manual_seed(3))
    assert prompts.shape == (500, 3)
    assert set(prompts.unique().tolist()) == set(range(10))
    assert torch.equal(prompts, task.draw_prompts(500, torch.Generator().manual_seed(3)))

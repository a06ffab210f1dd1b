from collections.abc import Callable
from itertools import accumulate, product

import pytest
import torch

from validation.config import TASKS, TaskConfig
from validation.tasks import make_task

ANSWERS: dict[str, Callable[[list[int], int], list[int]]] = {
    "sort": lambda prompt, _: sorted(prompt),
    "reverse": lambda prompt, _: prompt[::-1],
    "prefix_sum": lambda prompt, num_symbols: [total % num_symbols for total in accumulate(prompt)],
}
EVERY_TASK = pytest.mark.parametrize("name", TASKS)
GRADED = pytest.mark.parametrize("graded", [False, True], ids=["exact", "graded"])


def plain_reward(right: list[int], tokens: list[int], *, graded: bool) -> float:
    if not graded:
        return float(tokens == right)
    return next((i for i in range(len(right)) if tokens[i] != right[i]), len(right)) / len(right)


@EVERY_TASK
@GRADED
@pytest.mark.parametrize(("num_symbols", "length"), [(3, 3), (2, 4), (5, 2)])
def test_the_reward_of_every_completion_of_every_prompt(name: str, graded: bool, num_symbols: int, length: int) -> None:
    task = make_task(TaskConfig(name, num_symbols, length, graded))
    every = list(product(range(num_symbols), repeat=length))
    completions = torch.tensor(every)
    for prompt in every:
        right = ANSWERS[name](list(prompt), num_symbols)
        shown = torch.tensor(prompt).expand(len(every), length)
        assert task.answers(shown[0]).tolist() == right
        rewards = task.reward(shown, completions)
        assert rewards.dtype == torch.float32
        expected = [plain_reward(right, list(tokens), graded=graded) for tokens in every]
        assert rewards.tolist() == pytest.approx(expected, rel=1e-6)
        assert rewards.mean().item() == pytest.approx(task.reward_floor, rel=1e-6)
        assert rewards.max() == rewards[every.index(tuple(right))] == 1


@GRADED
def test_the_expected_reward_by_hand(graded: bool) -> None:
    """Right tokens of chance 1/2, 1/4 and 1/8: all right with 1/64, the first two with 1/8, the first with 1/2."""
    task = make_task(TaskConfig(graded=graded))
    value = task.expected_reward(torch.tensor([0.5, 0.25, 0.125]).log()).item()
    assert value == pytest.approx((1 / 2 + 1 / 8 + 1 / 64) / 3 if graded else 1 / 64, rel=1e-6)


def test_what_is_shown_and_rewarded() -> None:
    prompt, tokens = torch.tensor([7, 2, 9, 2]), torch.tensor([2, 2, 9, 7])
    right = {name: make_task(TaskConfig(name, 10, 4)).answers(prompt).tolist() for name in TASKS}
    assert right == {"sort": [2, 2, 7, 9], "reverse": [2, 9, 2, 7], "prefix_sum": [7, 9, 8, 0]}
    graded = {name: make_task(TaskConfig(name, 10, 4, graded=True)).reward(prompt, tokens).item() for name in TASKS}
    assert graded == {"sort": 0.5, "reverse": 0.25, "prefix_sum": 0.0}


def test_prompts_cover_all_symbols_and_follow_the_generator() -> None:
    task = make_task(TaskConfig(num_symbols=10, length=3))
    prompts = task.draw_prompts(500, torch.Generator().manual_seed(3))
    assert prompts.shape == (500, 3)
    assert set(prompts.unique().tolist()) == set(range(10))
    assert torch.equal(prompts, task.draw_prompts(500, torch.Generator().manual_seed(3)))

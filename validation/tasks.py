"""Small verifiable tasks: from the symbols of a prompt to one right completion of the same length, exact rewards."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from validation.config import TaskConfig

# Tensor names end in shape letters: R runs, N samples, L tokens of a completion (and symbols of a prompt).


def _sorted(prompts_NL: Tensor, _num_symbols: int) -> Tensor:
    return prompts_NL.sort(dim=-1).values


def _reversed(prompts_NL: Tensor, _num_symbols: int) -> Tensor:
    return prompts_NL.flip(-1)


def _prefix_sums(prompts_NL: Tensor, num_symbols: int) -> Tensor:
    return prompts_NL.cumsum(dim=-1) % num_symbols


_ANSWERS: dict[str, Callable[[Tensor, int], Tensor]] = {
    "sort": _sorted,
    "reverse": _reversed,
    "prefix_sum": _prefix_sums,
}


@dataclass(frozen=True)
class Task:
    """What to answer, and what an answer is worth.

    Parameters
    ----------
    answer : callable
        From prompts, int64 of any leading shape, and `num_symbols` to the one right completion of each.
    num_symbols : int
        Prompts are drawn with replacement from 0 .. num_symbols - 1.
    length : int
        Symbols of a prompt, and tokens of a completion.
    graded : bool
        False: reward 1 for the right completion, else 0. True: the share of tokens before the first wrong one.
    """

    answer: Callable[[Tensor, int], Tensor]
    num_symbols: int
    length: int
    graded: bool

    def draw_prompts(self, num_prompts: int, generator: torch.Generator) -> Tensor:
        """Prompts, shape (num_prompts, length), int64 symbols in [0, num_symbols)."""
        return torch.randint(0, self.num_symbols, (num_prompts, self.length), generator=generator)

    def answers(self, prompts_NL: Tensor) -> Tensor:
        """The right completion of each prompt; any leading shape."""
        return self.answer(prompts_NL, self.num_symbols)

    def reward(self, prompts_NL: Tensor, completions_NL: Tensor) -> Tensor:
        """Reward [1], float32 in [0, 1]; the last dimension is consumed."""
        right_NL = completions_NL == self.answers(prompts_NL)
        if not self.graded:
            return right_NL.all(dim=-1).to(torch.float32)
        return right_NL.cumprod(dim=-1).sum(dim=-1).to(torch.float32) / self.length

    def expected_reward(self, answer_logp_NL: Tensor) -> Tensor:
        """Exact expected reward [1] from the log-probability [nat] of every token of the right completion.

        The first l tokens are right with the product of their probabilities, each given that those before it are right.
        """
        if not self.graded:
            return answer_logp_NL.sum(dim=-1).exp()
        return answer_logp_NL.cumsum(dim=-1).exp().mean(dim=-1)

    @property
    def reward_floor(self) -> float:
        """Expected reward [1] of a uniformly random policy."""
        chances = [float(self.num_symbols) ** -count for count in range(1, self.length + 1)]
        return sum(chances) / self.length if self.graded else chances[-1]


def make_task(config: TaskConfig) -> Task:
    """Return the task that a configuration names."""
    return Task(_ANSWERS[config.name], config.num_symbols, config.length, config.graded)

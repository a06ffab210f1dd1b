"""A small verifiable task with an exact reward: emit the symbols of the prompt in ascending order."""

from dataclasses import dataclass

import torch
from torch import Tensor

# Tensor names end in shape letters: R runs, N samples, L tokens of a completion (and symbols of a prompt).


@dataclass(frozen=True)
class SortingTask:
    """Sort `length` symbols drawn with replacement from `num_symbols`; the reward is 1 for an exact match, else 0."""

    num_symbols: int
    length: int

    def draw_prompts(self, num_prompts: int, generator: torch.Generator) -> Tensor:
        """Prompts, shape (num_prompts, length), int64 symbols in [0, num_symbols)."""
        return torch.randint(0, self.num_symbols, (num_prompts, self.length), generator=generator)

    def answers(self, prompts_NL: Tensor) -> Tensor:
        """The one rewarded completion of each prompt; any leading shape."""
        return prompts_NL.sort(dim=-1).values

    def reward(self, prompts_NL: Tensor, completions_NL: Tensor) -> Tensor:
        """Exact match, float32 in {0, 1}; the last dimension is consumed."""
        return (completions_NL == self.answers(prompts_NL)).all(dim=-1).to(torch.float32)

    @property
    def reward_floor(self) -> float:
        """Expected reward [1] of a uniformly random policy: one completion of num_symbols**length is right."""
        return float(self.num_symbols) ** -self.length

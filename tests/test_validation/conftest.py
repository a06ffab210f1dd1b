"""A small experiment, and one torch thread for every test of the learner."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from tests.support.experiments import small_experiment
from validation.config import Experiment


@pytest.fixture(autouse=True)
def one_torch_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture
def small() -> Experiment:
    return small_experiment()


@pytest.fixture
def vary(small: Experiment) -> Callable[..., Experiment]:
    """The small experiment with some fields of its own or of its algorithm replaced."""

    def make(grpo: dict[str, Any] | None = None, **fields: Any) -> Experiment:
        return replace(small, grpo=replace(small.grpo, **(grpo or {})), **fields)

    return make

from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.support.plain_transformer import plain_log_probabilities
from theory.errors import InputError
from validation.policy import Parameters, chosen
from validation.transformer import Transformer

DEMO = Transformer(num_symbols=10, length=3, hidden_size=32, num_layers=1, num_heads=2)
SMALL = Transformer(num_symbols=3, length=3, hidden_size=16, num_layers=2, num_heads=1)
LONG = Transformer(num_symbols=7, length=5, hidden_size=48, num_layers=3, num_heads=3)
MODELS = pytest.mark.parametrize("model", [DEMO, SMALL, LONG], ids=["demo", "small", "long"])

# float32 sums of at most a few hundred terms of order one, added in another order
ROUNDING: dict[str, Any] = {"rtol": 1e-5, "atol": 1e-5}


def start(model: Transformer, num_runs: int = 1) -> Parameters:
    """Weights of runs that differ."""
    seeds = [torch.Generator().manual_seed(seed) for seed in range(num_runs)]
    singles = [model.initial_parameters(generator) for generator in seeds]
    return {name: torch.cat([single[name] for single in singles]).requires_grad_() for name in singles[0]}


def draw(model: Transformer, num_runs: int, num_samples: int) -> tuple[Tensor, Tensor]:
    """Prompts and completions."""
    generator = torch.Generator().manual_seed(7)
    shape = (2, num_runs, num_samples, model.length)
    prompts, completions = torch.randint(0, model.num_symbols, shape, generator=generator)
    return prompts, completions


@MODELS
def test_values_and_gradients_are_those_of_the_plain_twin(model: Transformer) -> None:
    parameters, (prompts, completions) = start(model, 2), draw(model, 2, 16)
    logp = model.log_probabilities(parameters, prompts, completions)
    names = list(parameters)
    gradients = torch.autograd.grad(chosen(logp, completions).mean((1, 2)).sum(), [parameters[n] for n in names])
    for run in range(2):
        weights = {name: value.detach()[run].clone().requires_grad_() for name, value in parameters.items()}
        plain = plain_log_probabilities(model, weights, prompts[run], completions[run])
        torch.testing.assert_close(logp[run], plain, **ROUNDING)
        expected = torch.autograd.grad(chosen(plain, completions[run]).mean(), list(weights.values()))
        for name, ours, theirs in zip(names, gradients, expected, strict=True):
            assert theirs.abs().max() > 100 * ROUNDING["atol"], name
            torch.testing.assert_close(ours[run], theirs, **ROUNDING, msg=lambda said, name=name: f"{name}: {said}")


@MODELS
def test_the_next_token_is_scored_as_in_a_given_completion(model: Transformer) -> None:
    parameters, (prompts, completions) = start(model, 2), draw(model, 2, 16)
    logp = model.log_probabilities(parameters, prompts, completions)
    for l in range(model.length):  # noqa: E741
        logits = model.next_logits(parameters, prompts, completions[..., :l])
        torch.testing.assert_close(logits.log_softmax(dim=-1), logp[..., l, :], **ROUNDING)


@MODELS
def test_a_later_token_never_changes_an_earlier_one(model: Transformer) -> None:
    parameters, (prompts, completions) = start(model), draw(model, 1, 16)
    before = model.log_probabilities(parameters, prompts, completions)
    for place in range(model.length):
        other = completions.clone()
        other[..., place] = (other[..., place] + 1) % model.num_symbols
        after = model.log_probabilities(parameters, prompts, other)
        assert torch.equal(before[..., : place + 1, :], after[..., : place + 1, :])
        seen = (before != after).any(dim=-1)[..., place + 1 :]
        assert seen.all(), "every later token sees it"


@MODELS
def test_the_prompt_and_its_order_are_seen(model: Transformer) -> None:
    parameters, (prompts, completions) = start(model), draw(model, 1, 16)
    before = model.log_probabilities(parameters, prompts, completions)
    for place in range(model.length):
        other = prompts.clone()
        other[..., place] = (other[..., place] + 1) % model.num_symbols
        assert (before != model.log_probabilities(parameters, other, completions)).any(dim=-1).all()
    reverse = prompts.flip(-1)
    is_other = (reverse != prompts).any(dim=-1)
    seen = (before != model.log_probabilities(parameters, reverse, completions)).any(dim=-1).all(dim=-1)
    assert seen[is_other].all()


def test_probabilities_of_all_completions_sum_to_one() -> None:
    completions = torch.tensor(list(product(range(3), repeat=3))).unsqueeze(0)
    prompts = torch.tensor([2, 1, 2]).expand(1, 27, 3)
    logp = chosen(SMALL.log_probabilities(start(SMALL), prompts, completions), completions).sum(-1)
    assert logp.exp().sum().item() == pytest.approx(1, abs=1e-6)


def everything(model: Transformer, parameters: Parameters, tokens: tuple[Tensor, Tensor], weights: Tensor):
    """All that the model computes: next logits, log-probabilities and, for given weights of these, all gradients."""
    prompts, completions = tokens
    with torch.no_grad():
        logits = [model.next_logits(parameters, prompts, completions[..., :l]) for l in range(model.length)]  # noqa: E741
    logp = model.log_probabilities(parameters, prompts, completions)
    gradients = torch.autograd.grad(logp, list(parameters.values()), weights)
    names = [*(f"next_logits{i}" for i in range(model.length)), "log_probabilities", *parameters]
    return dict(zip(names, [*logits, logp.detach(), *gradients], strict=True))


@pytest.mark.parametrize(
    ("model", "num_samples"),
    [(DEMO, 16), (DEMO, 128), (DEMO, 512), (DEMO, 80), (SMALL, 16), (SMALL, 48), (LONG, 16), (LONG, 112)],
    ids=lambda value: getattr(value, "hidden_size", value),
)
@pytest.mark.parametrize("num_runs", [3, 8])
def test_a_run_has_the_same_bits_alone(model: Transformer, num_samples: int, num_runs: int) -> None:
    """If a machine breaks it, the message says what, and by how much."""
    parameters, tokens = start(model, num_runs), draw(model, num_runs, num_samples)
    shape = (num_runs, num_samples, model.length, model.num_symbols)
    weights = torch.randn(shape, generator=torch.Generator().manual_seed(8))
    together = everything(model, parameters, tokens, weights)
    for run in {0, num_runs // 2, num_runs - 1}:
        one = slice(run, run + 1)
        own = {name: value.detach()[one].clone().requires_grad_() for name, value in parameters.items()}
        alone = everything(model, own, (tokens[0][one].clone(), tokens[1][one].clone()), weights[one].clone())
        for name, value in alone.items():
            worst = (value - together[name][one]).abs().max().item()
            assert torch.equal(value, together[name][one]), f"{name} of run {run} is off by {worst}"


def test_every_parameter_has_a_run_axis_and_two_more() -> None:
    for seed, model in enumerate((DEMO, SMALL, LONG)):
        first, second = (model.initial_parameters(torch.Generator().manual_seed(seed)) for _ in range(2))
        assert all(value.ndim == 3 and value.shape[0] == 1 and value.is_contiguous() for value in first.values())
        assert all(torch.equal(first[name], second[name]) for name in first)


def test_supervised_training_sorts_3_of_10_symbols() -> None:
    """An exact-match reward of 0.6 took 125 to 150 steps at ten seeds; the bound is twice that."""
    generator = torch.Generator().manual_seed(0)
    parameters = {name: value.requires_grad_() for name, value in DEMO.initial_parameters(generator).items()}
    optimizer = torch.optim.Adam(parameters.values(), lr=1e-3)
    every_prompt = torch.tensor(list(product(range(10), repeat=3))).unsqueeze(0)
    answers = every_prompt.sort(dim=-1).values
    before = expected_reward(parameters, every_prompt, answers)
    for _ in range(300):
        prompts = torch.randint(0, 10, (1, 128, 3), generator=generator)
        right = prompts.sort(dim=-1).values
        loss = -chosen(DEMO.log_probabilities(parameters, prompts, right), right).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert before < 0.01
    assert expected_reward(parameters, every_prompt, answers) > 0.6


@torch.no_grad()
def expected_reward(parameters: Parameters, prompts: Tensor, answers: Tensor) -> float:
    logp = chosen(DEMO.log_probabilities(parameters, prompts, answers), answers).sum(dim=-1)
    return logp.exp().mean().item()


@pytest.mark.parametrize("num_heads", [0, 3])
def test_heads_that_do_not_divide_the_width_are_refused(num_heads: int) -> None:
    said = f"num_heads must be a divisor of hidden_size, which is 32, got {num_heads}. For one head as wide as the netw"
    with pytest.raises(InputError, match=said):
        Transformer(num_symbols=10, length=3, hidden_size=32, num_layers=1, num_heads=num_heads)

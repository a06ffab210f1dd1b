"""The slow, obvious twin of the batched learner: one run, no run axis, torch's optimizers, a loop over tokens."""

import math
from collections import defaultdict
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from tests.support.plain_alignment import plain_alignment, plain_displacement
from validation.config import Experiment, GrpoConfig, RunSpec
from validation.learner import run_generator
from validation.setup import evaluation_prompts


@dataclass
class Sample:
    """One completion, with what the behaviour policy said of it."""

    prompt: list[int]
    tokens: list[int]
    logps: list[float]
    reward: float
    advantage: Tensor


def _next_logp(weights: dict[str, Tensor], prompt: list[int], previous: int, position: int, sizes: tuple[int, int]):
    num_symbols, length = sizes
    x = torch.zeros(length * num_symbols + num_symbols + 1 + length)
    for place, symbol in enumerate(prompt):
        x[place * num_symbols + symbol] = 1
    x[length * num_symbols + previous] = 1
    x[length * num_symbols + num_symbols + 1 + position] = 1
    for layer in range(2):
        x = torch.relu(x @ weights[f"w{layer}"][0] + weights[f"b{layer}"][0, 0])
    return torch.log_softmax(x @ weights["w2"][0] + weights["b2"][0, 0], dim=-1)


def _sequence_logp(weights: dict[str, Tensor], prompt: list[int], tokens: list[int], sizes: tuple[int, int]) -> Tensor:
    previous, out = sizes[0], []
    for position, token in enumerate(tokens):
        out.append(_next_logp(weights, prompt, previous, position, sizes)[token])
        previous = token
    return torch.stack(out)


def _entropies(weights: dict[str, Tensor], prompt: list[int], tokens: list[int], sizes: tuple[int, int]) -> list[float]:
    out = []
    for position, previous in enumerate([sizes[0], *tokens[:-1]]):
        logp = _next_logp(weights, prompt, previous, position, sizes)
        out.append(-(logp.exp() * logp).sum().item())
    return out


def _sample(weights: dict[str, Tensor], prompt: list[int], uniforms: list[float], sizes: tuple[int, int]):
    previous, tokens, logps = sizes[0], [], []
    for position, uniform in enumerate(uniforms):
        logp = _next_logp(weights, prompt, previous, position, sizes)
        cumulative = logp.exp().cumsum(0)
        previous = next(i for i, c in enumerate(cumulative.tolist()) if c > uniform * cumulative[-1].item())
        tokens.append(previous)
        logps.append(logp[previous].item())
    return tokens, logps


def _batch(behavior: dict[str, Tensor], experiment: Experiment, generator: torch.Generator) -> list[Sample]:
    grpo, sizes = experiment.grpo, (experiment.task.num_symbols, experiment.task.length)
    prompts = torch.randint(0, sizes[0], (grpo.num_prompts, sizes[1]), generator=generator).tolist()
    uniforms = torch.rand((grpo.num_prompts, grpo.num_generations, sizes[1]), generator=generator).tolist()
    batch = []
    for prompt, uniforms_of_group in zip(prompts, uniforms, strict=True):
        samples = [_sample(behavior, prompt, u, sizes) for u in uniforms_of_group]
        rewards = torch.tensor([float(tokens == sorted(prompt)) for tokens, _ in samples])
        advantages = rewards - rewards.mean()
        if grpo.scale_rewards:
            advantages = advantages / (rewards.std() + 1e-4)
        for (tokens, logps), reward, advantage in zip(samples, rewards.tolist(), advantages, strict=True):
            batch.append(Sample(prompt, tokens, logps, reward, advantage))
    return batch


def _ratios(log_ratios: Tensor, level: str) -> Tensor:
    """Those of the tokens, or the one of the completion."""
    if level == "token":
        return log_ratios.exp()
    whole = math.prod(log_ratio.exp() for log_ratio in log_ratios)
    return (whole ** (1 / len(log_ratios)) if level == "sequence" else whole).reshape(1)


def _loss(ratios: Tensor, advantage: Tensor, epsilon: float | None) -> Tensor:
    if epsilon is None:
        return -(ratios * advantage).mean()
    return -torch.minimum(ratios * advantage, ratios.clamp(1 - epsilon, 1 + epsilon) * advantage).mean()


def _clipped(ratios: Tensor, advantage: Tensor, epsilon: float | None) -> list[float]:
    """For every ratio 1 if the clip removes its gradient, else 0."""
    if epsilon is None:
        return [math.nan]
    a = advantage.item()
    return [float((a > 0 and r > 1 + epsilon) or (a < 0 and r < 1 - epsilon)) for r in ratios.tolist()]


def _optimizer(weights: dict[str, Tensor], rate: float, grpo: GrpoConfig) -> torch.optim.Optimizer:
    if grpo.sgd_momentum is not None:
        return torch.optim.SGD(weights.values(), lr=rate, momentum=grpo.sgd_momentum)
    return torch.optim.Adam(weights.values(), lr=rate, betas=(grpo.adam_beta1, grpo.adam_beta2))


def _flat(tensors: list[Tensor]) -> np.ndarray:
    return torch.cat([tensor.detach().flatten() for tensor in tensors]).numpy().astype(np.float64)


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def _drift(log_ratios: list[list[float]]) -> dict[str, float]:
    tokens = [x for of_sample in log_ratios for x in of_sample]
    weights = [math.exp(sum(of_sample)) for of_sample in log_ratios]
    return {
        "drift": _mean([x * x for x in tokens]) ** 0.5,
        "behavior_k3": _mean([math.exp(x) - 1 - x for x in tokens]),
        "effective_sample_size": sum(weights) ** 2 / (len(weights) * sum(w * w for w in weights)),
    }


def train_alone(experiment: Experiment, start: dict[str, Tensor], run: RunSpec) -> dict[str, list[float]]:
    """Traces of one run by the definition of the algorithm."""
    grpo, sizes = experiment.grpo, (experiment.task.num_symbols, experiment.task.length)
    learner = {name: value.clone().requires_grad_() for name, value in start.items()}
    optimizer = _optimizer(learner, run.learning_rate, grpo)
    generator = run_generator(run)
    traces: dict[str, list[float]] = defaultdict(list)
    gradients, weights = [], [_flat(list(learner.values()))]
    for step in range(experiment.max_steps):
        if step % run.sync_interval == 0:
            behavior = {name: value.detach().clone() for name, value in learner.items()}
        batch = _batch(behavior, experiment, generator)
        loss, log_ratios, clipped, entropies = torch.zeros(()), [], [], []
        for sample in batch:
            log_ratio = _sequence_logp(learner, sample.prompt, sample.tokens, sizes) - torch.tensor(sample.logps)
            ratios = _ratios(log_ratio, grpo.importance_sampling_level)
            loss = loss + _loss(ratios, sample.advantage, grpo.epsilon) / len(batch)
            log_ratios.append(log_ratio.tolist())
            clipped += _clipped(ratios, sample.advantage, grpo.epsilon)
            entropies += _entropies(learner, sample.prompt, sample.tokens, sizes)
        optimizer.zero_grad()
        loss.backward()
        gradients.append(_flat([weight.grad for weight in learner.values()]))
        optimizer.step()
        weights.append(_flat(list(learner.values())))
        right = [
            _sequence_logp(learner, prompt, sorted(prompt), sizes).sum().exp().item()
            for prompt in evaluation_prompts(experiment).tolist()
        ]
        metrics = {
            **_drift(log_ratios),
            "clip_fraction": _mean(clipped),
            "entropy": _mean(entropies),
            "grad_norm": np.linalg.norm(gradients[-1]),
            "rollout_reward": _mean([sample.reward for sample in batch]),
            "learner_reward": _mean(right),
        }
        for name, value in metrics.items():
            traces[name].append(value)
    aligned = plain_alignment(gradients, run.sync_interval)
    return {**traces, **aligned, **plain_displacement(weights, run.sync_interval)}

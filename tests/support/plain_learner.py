"""The slow, obvious twin of the batched learner: one run, no run axis, torch.optim.Adam, a loop over tokens."""

import torch
from torch import Tensor

from validation.config import Experiment, RunSpec
from validation.learner import run_generator
from validation.pretrain import evaluation_prompts


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


def train_alone(experiment: Experiment, start: dict[str, Tensor], run: RunSpec) -> dict[str, list[float]]:
    """Traces of one run by the definition of the algorithm."""
    grpo, sizes = experiment.grpo, (experiment.task.num_symbols, experiment.task.length)
    learner = {name: value.clone().requires_grad_() for name, value in start.items()}
    optimizer = torch.optim.Adam(learner.values(), lr=run.learning_rate, betas=(grpo.adam_beta1, grpo.adam_beta2))
    generator = run_generator(run)
    traces: dict[str, list[float]] = {
        name: [] for name in ("rollout_reward", "learner_reward", "drift", "entropy", "grad_norm")
    }
    for step in range(experiment.max_steps):
        if step % run.sync_interval == 0:
            behavior = {name: value.detach().clone() for name, value in learner.items()}
        shape = (grpo.num_prompts, experiment.task.length)
        prompts = torch.randint(0, experiment.task.num_symbols, shape, generator=generator).tolist()
        shape = (grpo.num_prompts * grpo.num_generations, experiment.task.length)
        uniforms = torch.rand(shape, generator=generator).tolist()
        loss, log_ratios, rewards_of_all, entropies = torch.zeros(()), [], [], []
        for index, prompt in enumerate(prompts):
            samples = [
                _sample(behavior, prompt, u, sizes)
                for u in uniforms[index * grpo.num_generations : (index + 1) * grpo.num_generations]
            ]
            rewards = torch.tensor([float(tokens == sorted(prompt)) for tokens, _ in samples])
            advantages = rewards - rewards.mean()
            if grpo.scale_rewards:
                advantages = advantages / (rewards.std() + 1e-4)
            rewards_of_all += rewards.tolist()
            for (tokens, logps), advantage in zip(samples, advantages, strict=True):
                log_ratio = _sequence_logp(learner, prompt, tokens, sizes) - torch.tensor(logps)
                terms = log_ratio.exp() * advantage
                if grpo.epsilon is not None:
                    clipped = log_ratio.exp().clamp(1 - grpo.epsilon, 1 + grpo.epsilon) * advantage
                    terms = torch.minimum(terms, clipped)
                loss = loss - terms.mean() / (grpo.num_prompts * grpo.num_generations)
                log_ratios += log_ratio.tolist()
                entropies += _entropies(learner, prompt, tokens, sizes)
        optimizer.zero_grad()
        loss.backward()
        traces["grad_norm"].append(sum(w.grad.square().sum().item() for w in learner.values()) ** 0.5)
        traces["entropy"].append(sum(entropies) / len(entropies))
        optimizer.step()
        traces["rollout_reward"].append(sum(rewards_of_all) / len(rewards_of_all))
        traces["drift"].append((sum(x * x for x in log_ratios) / len(log_ratios)) ** 0.5)
        right = [
            _sequence_logp(learner, p, sorted(p), sizes).sum().exp().item()
            for p in evaluation_prompts(experiment).tolist()
        ]
        traces["learner_reward"].append(sum(right) / len(right))
    return traces

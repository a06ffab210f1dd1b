"""Sampled GRPO on an enumerated policy, with the exact bias of every step beside its bound."""

import math
from dataclasses import dataclass

import numpy as np

from theory.bias import LAG_BOUND
from theory.errors import InputError
from theory.numeric import numpy_function
from theory.surrogate.bound import bias_constants, bias_norm
from theory.surrogate.exact import Surrogate
from theory.surrogate.policies import Array


@dataclass(frozen=True, eq=False)
class Trajectory:
    """A run of T steps, numbered as in claim C3: it syncs before steps 1, S + 1, ...

    Parameters
    ----------
    lag : int array, shape (T,) [optimizer step]
    bias : float array, shape (T,) [gradient]
        |g(theta_t; b) - g(theta_t; theta_t)|, exact.
    bound : float array, shape (steps with a lag above 0,) [gradient]
        L_b*j*eta*G_upd at those steps.
    update_norm : float
        G_upd, the largest norm of an update over the learning rate.
    """

    lag: Array
    bias: Array
    bound: Array
    update_norm: float


def run_grpo(
    surrogate: Surrogate,
    start: Array,
    *,
    sync_interval: int,
    learning_rate: float,
    num_steps: int,
    num_groups: int,
    generator: np.random.Generator,
) -> Trajectory:
    """Train with sampled groups and Adam (its default betas), and hold the exact bias against the bound.

    Parameters
    ----------
    surrogate : Surrogate
        Token level, unclipped.
    start : float array, shape (C, V)
    sync_interval : int [optimizer step]
        At least 1.
    learning_rate : float [1]
    num_steps, num_groups : int
        Optimizer steps, and groups a step.
    generator : numpy Generator

    Raises
    ------
    InputError
        If a count is below 1, the learning rate is not positive and finite, or the surrogate is clipped.

    Source: claim C3 (theory/claims).
    """
    counts = {"sync_interval": sync_interval, "num_steps": num_steps, "num_groups": num_groups}
    for name, count in counts.items():
        if not isinstance(count, int) or isinstance(count, bool) or count < 1:
            raise InputError(name, "be an integer >= 1", repr(count), "For a fully on-policy run use sync_interval 1.")
    if not 0.0 < learning_rate < math.inf:
        raise InputError("learning_rate", "be positive and finite", learning_rate, "Give a step size such as 1e-2.")
    if surrogate.clip is not None:
        raise InputError("surrogate", "be unclipped", surrogate.clip, "Use its without_clip().")
    theta, behavior = start, start
    adam = np.zeros((2, *start.shape))
    lags, biases, norms, radius = [], [], [], 0.0
    for step in range(1, num_steps + 1):
        lags.append((step - 1) % sync_interval)
        behavior = theta if lags[-1] == 0 else behavior
        biases.append(bias_norm(surrogate, theta, behavior))
        radius = max(radius, float(np.linalg.norm(theta - behavior)))
        gradient = sampled_gradient(surrogate, theta, behavior, num_groups, generator)
        adam = np.stack([0.9 * adam[0] + 0.1 * gradient, 0.999 * adam[1] + 0.001 * gradient**2])
        update = adam[0] / (1 - 0.9**step) / (np.sqrt(adam[1] / (1 - 0.999**step)) + 1e-8)
        norms.append(float(np.linalg.norm(update)))
        theta = theta + learning_rate * update
    lag, slope = np.array(lags), bias_constants(surrogate, radius).bias_slope
    bound = numpy_function(LAG_BOUND)(lag[lag > 0], learning_rate, slope, max(norms))
    return Trajectory(lag, np.array(biases), bound, max(norms))


def sampled_gradient(
    surrogate: Surrogate, parameters: Array, behavior: Array, num_groups: int, generator: np.random.Generator
) -> Array:
    """Learner's gradient from sampled groups, shape (C, V): what a trainer computes; its mean is the exact one."""
    policy, size = surrogate.policy, surrogate.groups.group_size
    chance = policy.probabilities(behavior)
    drawn = generator.choice(len(chance), size=(num_groups, size), p=chance / chance.sum())
    rewards = surrogate.rewards[drawn]
    mean = np.broadcast_to(rewards.mean(axis=1, keepdims=True), rewards.shape)
    variance = np.broadcast_to(rewards.var(axis=1, ddof=1, keepdims=True), rewards.shape)
    advantages = surrogate.groups.advantage(rewards, mean, variance)
    ratio = np.exp(policy.token_logp(parameters) - policy.token_logp(behavior))
    weights = np.zeros(ratio.shape)
    np.add.at(weights, drawn.ravel(), (advantages.ravel() / drawn.size / policy.length)[:, None])
    return policy.pull_back(weights * ratio, parameters)

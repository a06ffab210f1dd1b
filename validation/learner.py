"""The locked asynchronous learner: many GRPO runs side by side, each equal bit for bit to training it alone.

Schedule: at optimizer steps 1, S+1, 2S+1, ... the behaviour policy becomes a copy of the learner; every step consumes
one batch that the behaviour policy generates for it. So the lag of step t is (t - 1) mod S, and S = 1 is on-policy.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from meanfield.results import SWEEP
from validation.alignment import Displacement, GradientAlignment
from validation.config import Experiment, GrpoConfig, RunSpec
from validation.optimizers import make_optimizer
from validation.policy import Parameters, Policy, chosen, expected_reward, mean_per_run
from validation.rollouts import Rollouts, generate, group_advantages
from validation.setup import evaluation_prompts, policy_of, task_of
from validation.surrogate import clip_fraction, drift_metrics, importance_ratio, surrogate

METRICS = SWEEP.names


def evaluation_interval(sync_interval: int) -> int:
    """Optimizer steps between two evaluations of the learner's own reward: max(1, S // 8)."""
    return max(1, sync_interval // 8)


def run_generator(run: RunSpec) -> torch.Generator:
    """The run's own stream, from its values alone, so that it does not depend on the rest of the sweep."""
    rate_bits = int(np.float64(run.learning_rate).view(np.uint64))
    state = np.random.SeedSequence([run.seed, run.sync_interval, rate_bits]).generate_state(1, np.uint64)
    return torch.Generator().manual_seed(int(state[0]) >> 1)


def refresh(behavior: Parameters, learner: Parameters, due: Sequence[bool]) -> None:
    """Copy the learner's weights into the behaviour policy for the runs that synchronize now."""
    rows = torch.tensor([index for index, is_due in enumerate(due) if is_due], dtype=torch.int64)
    for name, value in behavior.items():
        value[rows] = learner[name].detach()[rows]


def update(
    policy: Policy, learner: Parameters, batch: Rollouts, config: GrpoConfig
) -> tuple[Parameters, dict[str, Tensor]]:
    """Gradients of the negative surrogate and the metrics of one optimizer step, for every run."""
    advantages_RN = group_advantages(batch.rewards_RBG, scale_rewards=config.scale_rewards).flatten(1)
    all_logp_RNLV = policy.log_probabilities(learner, batch.prompts_RNL, batch.completions_RNL)
    logp_RNL = chosen(all_logp_RNLV, batch.completions_RNL)
    ratio_RNK = importance_ratio(logp_RNL, batch.behavior_logp_RNL, level=config.importance_sampling_level)
    objective_R = surrogate(ratio_RNK, advantages_RN, epsilon=config.epsilon)
    names = list(learner)
    gradients = dict(zip(names, torch.autograd.grad(-objective_R.sum(), [learner[n] for n in names]), strict=True))
    with torch.no_grad():
        metrics = drift_metrics(logp_RNL, batch.behavior_logp_RNL)
        metrics["clip_fraction"] = clip_fraction(ratio_RNK, advantages_RN, epsilon=config.epsilon)
        metrics["entropy"] = mean_per_run(-(all_logp_RNLV.exp() * all_logp_RNLV).sum(dim=-1))
        metrics["rollout_reward"] = mean_per_run(batch.rewards_RBG)
        squares = [mean_per_run(gradient.square()) * gradient[0].numel() for gradient in gradients.values()]
        metrics["grad_norm"] = torch.stack([of_run.sum() for of_run in torch.stack(squares, dim=1)]).sqrt()
    return gradients, metrics


def train(
    experiment: Experiment,
    start: Parameters,
    runs: Sequence[RunSpec],
    *,
    on_step: Callable[[], None] = lambda: None,
) -> dict[str, np.ndarray]:
    """Train runs side by side and return their traces.

    Parameters
    ----------
    experiment : Experiment
        Task, policy, algorithm and `max_steps`; its axes are not used.
    start : dict of tensors
        Starting weights with a run axis of length 1; not changed.
    runs : sequence of RunSpec
        Each with its own sync interval, learning rate, seed, optimizer state and generator.
    on_step : callable
        Called after every optimizer step, for progress.

    Returns
    -------
    dict of float32 arrays, shape (len(runs), max_steps)
        One per name in `METRICS`; NaN where a metric was not evaluated or is not defined.

    Bits depend on the machine, the torch version and one torch thread; not on which runs share the batch, because
    every run's part of a tensor starts at a multiple of 64 bytes (sizes are multiples of 16, see `Experiment`).
    """
    task, policy = task_of(experiment), policy_of(experiment)
    eval_prompts_NL = evaluation_prompts(experiment)
    start = dict(sorted(start.items()))  # sums over all weights add in this order, whatever order they were stored in
    learner = {name: value.repeat(len(runs), 1, 1).requires_grad_() for name, value in start.items()}
    behavior = {name: value.repeat(len(runs), 1, 1) for name, value in start.items()}
    optimizer = make_optimizer(behavior, [run.learning_rate for run in runs], experiment.grpo)
    alignment, displacement = GradientAlignment(behavior), Displacement(behavior)
    generators = [run_generator(run) for run in runs]
    traces = {name: np.full((len(runs), experiment.max_steps), math.nan, np.float32) for name in METRICS}
    sizes = {"num_prompts": experiment.grpo.num_prompts, "num_generations": experiment.grpo.num_generations}
    for step in range(1, experiment.max_steps + 1):
        due = [(step - 1) % run.sync_interval == 0 for run in runs]
        if any(due):
            refresh(behavior, learner, due)
            displacement.synchronize(learner, due)
        batch = generate(policy, task, behavior, generators, **sizes)
        gradients, metrics = update(policy, learner, batch, experiment.grpo)
        optimizer.step(learner, gradients)
        metrics |= alignment.observe(gradients, ends=[step % run.sync_interval == 0 for run in runs])
        metrics |= displacement.measure(learner)
        evaluate = [step % evaluation_interval(run.sync_interval) == 0 for run in runs]
        if any(evaluate):
            with torch.no_grad():
                reward_R = expected_reward(policy, task, learner, eval_prompts_NL)
            metrics["learner_reward"] = torch.where(torch.tensor(evaluate), reward_R, torch.nan)
        for name, value_R in metrics.items():
            traces[name][:, step - 1] = value_R.numpy()
        on_step()
    return traces

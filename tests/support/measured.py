"""Sweeps with a known law, as the learner would have stored them, made without training."""

import numpy as np

from validation.config import Experiment
from validation.plan import Plan
from validation.store import create_store, write_shard

PRODUCT = 0.1
"""S*eta above which a run collapses at S >= 2."""
BUDGET = 0.4
"""eta*T at which it does."""
CEILING = 0.03
"""Rate above which a run collapses at S = 1."""
LATENESS = (1.0, 1.5, 1.25)
"""Factor on the collapse step of each seed."""
FLOOR, START = 0.01, 0.6


def law_experiment(**changes):
    """Both outcomes at every S, collapses at several rates, none above the ceiling but at S = 1."""
    fields = {
        "name": "laws <hold>",
        "sync_interval": (1, 8, 16, 32),
        "learning_rate": (0.002, 0.005, 0.01, 0.02, 0.05),
        "seed": (0, 1, 2),
        "max_steps": 256,
    }
    return Experiment(**{**fields, **changes})


def collapse_step(run):
    """Step at which a run collapses, or None; seed 1 comes half as late again, seed 2 a quarter."""
    if run.sync_interval == 1:
        unstable = run.learning_rate > CEILING
    else:
        unstable = run.sync_interval * run.learning_rate > PRODUCT
    return int(BUDGET / run.learning_rate * LATENESS[run.seed]) if unstable else None


def trace(run, max_steps):
    """Metrics of one run: reward 0.9 until the collapse, then the floor; drift 10*eta*lag, straight along one way."""
    step = np.arange(1, max_steps + 1)
    lag = (step - 1) % run.sync_interval
    fallen = step >= (collapse_step(run) or np.inf)
    evaluated = step % max(1, run.sync_interval // 8) == 0
    ends = step % run.sync_interval == 0
    reward = np.where(fallen, FLOOR, 0.9)
    drift = 10.0 * run.learning_rate * lag
    return {
        "learner_reward": np.where(evaluated, reward, np.nan),
        **dict.fromkeys(("rollout_reward", "entropy", "behavior_k3", "clip_fraction", "grad_norm"), reward),
        "drift": drift,
        "effective_sample_size": np.exp(-(drift**2)),
        "gradient_cosine": np.where(step > 1, 0.3, np.nan),
        "pair_cosine": np.where(ends & (run.sync_interval > 1), 0.2, np.nan),
        "cycle_cosine": np.where(ends & (step > run.sync_interval), 0.4, np.nan),
        "displacement_since_sync": run.learning_rate * (lag + 1),
        "displacement_since_start": run.learning_rate * step,
    }


def write_store(path, experiment, *, num_done=None, trace=trace):
    """Make the store of an experiment and write its first shards, all of them by default."""
    create_store(path, experiment, reward_floor=FLOOR, initial_reward=START, start=b"")
    plan = Plan(experiment)
    for shard in plan.shards[:num_done]:
        traces = [trace(run, experiment.max_steps) for run in plan.runs_of(shard)]
        write_shard(path, shard, {name: np.stack([one[name] for one in traces]) for name in traces[0]})
    return path

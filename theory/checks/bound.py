"""Check of C3: the bound and its sawtooth counted, and never violated along real GRPO runs on enumerated policies."""

import numpy as np

from theory import bias
from theory.checking import Comparison, close, never_above
from theory.numeric import numpy_function
from theory.surrogate import ratios
from theory.surrogate.exact import Surrogate
from theory.surrogate.groups import Advantage, Groups, mean_and_std, mean_only
from theory.surrogate.policies import TabularPolicy
from theory.surrogate.trajectories import Trajectory, run_grpo

ROUNDING = 1e-12
"""A dozen float64 operations."""


def sampled_run(policy: TabularPolicy, advantage: Advantage, *, learning_rate: float, seed: int = 0) -> Trajectory:
    """Run sampled GRPO with Adam, S = 8, 48 steps, on random rewards of three levels."""
    rng = np.random.default_rng(seed)
    rewards = rng.integers(0, 3, len(policy.tokens)).astype(np.float64)
    surrogate = Surrogate(policy, rewards, Groups(advantage, 4), ratios.token)
    start = rng.normal(size=policy.shape)
    return run_grpo(
        surrogate, start, sync_interval=8, learning_rate=learning_rate, num_steps=48, num_groups=8, generator=rng
    )


def bias_bound() -> tuple[Comparison, ...]:
    """The sawtooth counted step by step; exact bias over its bound along sampled GRPO runs with Adam, never above 1."""
    found = []
    for policy in (TabularPolicy.per_position(3, 3), TabularPolicy.markov(3, 3)):
        for advantage in (mean_only, mean_and_std):
            run = sampled_run(policy, advantage, learning_rate=0.01)
            found.append(never_above(f"bias over bound, {advantage.__name__}", run.bias[run.lag > 0], run.bound))
            found.append(Comparison("bias at a sync", float(run.bias[run.lag == 0].max()), ROUNDING))
    steps, per_lag = np.arange(1, 25), 0.5 * 3.0 * 2.0
    counted = per_lag * ((steps - 1) % 8)
    found += [
        close("slope", numpy_function(bias.BIAS_SLOPE)(2.0, 0.3, 0.7), 2 * 2.0 * 0.3 + 0.7, rtol=ROUNDING),
        close("sawtooth", numpy_function(bias.STEP_BOUND)(steps, 8, 0.5, 3.0, 2.0), counted, rtol=ROUNDING),
        close("at a lag", numpy_function(bias.LAG_BOUND)(np.arange(8), 0.5, 3.0, 2.0), counted[:8], rtol=ROUNDING),
        close("maximum", numpy_function(bias.CYCLE_MAXIMUM)(8, 0.5, 3.0, 2.0), counted.max(), rtol=ROUNDING),
        close("mean", numpy_function(bias.CYCLE_MEAN)(8, 0.5, 3.0, 2.0), counted.mean(), rtol=ROUNDING),
    ]
    return tuple(found)

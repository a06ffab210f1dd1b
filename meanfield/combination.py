"""How threshold and budget combine: a run must violate both to collapse, or one is enough.

max-form: a run collapses by step t with probability p * F        (it must be unstable and have had the time)
min-form: with probability 1 - (1 - p) * (1 - F)                  (either constraint alone is enough)

p is the probability of being above the boundary, F that of having spent the budget. Both forms get the same
free C, exponent, B and scatter, and are compared by their marginal likelihoods on the outcomes alone. With
one horizon a budget cannot be told from a ceiling, so nothing is decided.
Source: claims C7 and C8 (theory/claims): the two forms are limits of one model.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

import numpy as np
from scipy.special import expit, logsumexp, ndtr

from meanfield.grids import Array
from meanfield.observations import Mask, Observations

LIKELIHOOD_RATIO = 20.0
"""Ratio of the marginal likelihoods at which a form counts as decided."""
BUDGET_REACH = 3.0
"""How far beyond eta*steps of the runs, in log units, B may lie a priori."""
FLOOR = 1e-12
"""Probability of a label that neither constraint explains."""
HORIZON_FACTOR = 2.0
"""Two horizons differ at least by this factor."""


def two_horizons(observations: Observations) -> bool:
    """Whether the runs at finite S >= 2 were planned for lengths that differ by a factor of two.

    Only runs that were still healthy count: a collapsed run may have been stopped because it collapsed.
    """
    healthy = observations.law_arm & ~observations.collapsed
    steps = observations.steps[healthy]
    return bool(steps.size) and bool(steps.max() >= HORIZON_FACTOR * steps.min())


class Combination(Enum):
    """Which form the outcomes support."""

    MAX = "max"
    MIN = "min"
    UNDECIDED = "undecided"


def decide(observations: Observations, unstable: Mask, *, log_ceiling: float) -> Combination:
    """Compare the two forms; undecided below the stated ratio, or with one horizon, or if it hangs on the ceiling.

    Parameters
    ----------
    observations : Observations
    unstable : bool array, shape (n,)
        Which runs count as collapsed.
    log_ceiling : float [1]
        log eta0, or a number above every log rate.
    """
    if not two_horizons(observations):
        return Combination.UNDECIDED
    # S = 1 may show a ceiling, or in the min-form a budget in disguise: both readings of it must agree
    ratios = [log_likelihood_ratio(observations, unstable, log_ceiling=one) for one in {log_ceiling, np.inf}]
    if min(ratios) > np.log(LIKELIHOOD_RATIO):
        return Combination.MAX
    if max(ratios) < -np.log(LIKELIHOOD_RATIO):
        return Combination.MIN
    return Combination.UNDECIDED


def log_likelihood_ratio(observations: Observations, unstable: Mask, *, log_ceiling: float) -> float:
    """Log of the marginal likelihood of the max-form over that of the min-form [nat].

    Flat priors on log C and log B over the tested ranges and a factor beyond them, the exponent on 0.5..1.5
    and the scatter on 0.1, 0.2, 0.4, the same for both forms. Runs above the ceiling are left out. Arguments as
    in `decide`.
    """
    arm = observations.law_arm & (np.log(observations.learning_rate) < log_ceiling)
    if not arm.any():
        return 0.0
    runs, collapsed = observations.where(arm), unstable[arm]
    log_rate = np.log(runs.learning_rate)
    log_spent = log_rate + np.log(np.where(collapsed, runs.steps, np.maximum(runs.watched, 1.0)))
    offset = np.log(runs.sync_interval / np.sqrt(runs.sync_interval.min() * runs.sync_interval.max()))
    columns = np.column_stack([log_rate, log_spent, offset, collapsed])
    distinct, count = np.unique(columns, axis=0, return_counts=True)
    log_rate, log_spent, offset, fell = distinct.T
    threshold = np.linspace(log_rate.min() - 1.0, log_rate.max() + 1.0, 31)[:, None, None]
    exponent = np.linspace(0.5, 1.5, 5)[None, :, None]
    lines = (threshold - exponent * offset).reshape(-1, len(count))
    budgets = np.linspace(log_spent.min() - BUDGET_REACH, log_spent.max() + BUDGET_REACH, 41)[:, None]
    totals = []
    for scatter in (0.1, 0.2, 0.4):
        below = expit((lines - log_rate) / scatter)
        in_time = ndtr((budgets - log_spent) / scatter)
        totals.append(
            [_log_marginal(below, in_time, fell * count, (1.0 - fell) * count, form) for form in (_max_form, _min_form)]
        )
    of_max, of_min = logsumexp(np.array(totals), axis=0)
    return float(of_max - of_min)


def _max_form(below: Array, in_time: Array) -> Array:
    return 1.0 - (1.0 - below) * (1.0 - in_time)


def _min_form(below: Array, in_time: Array) -> Array:
    return below * in_time


def _log_marginal(
    below: Array, in_time: Array, num_fallen: Array, num_healthy: Array, healthy: Callable[[Array, Array], Array]
) -> float:
    """Log of the summed likelihood over (threshold and exponent) x budget.

    below, in_time: probability of staying under either constraint, shapes (a, n) and (b, n), n distinct runs;
    num_fallen, num_healthy: how many of each did and did not collapse, shape (n,).
    """
    total = np.zeros((len(below), len(in_time)))
    for run, (fallen, sound) in enumerate(zip(num_fallen, num_healthy, strict=True)):
        survival = healthy(below[:, run, None], in_time[None, :, run])
        total += fallen * np.log(np.maximum(1.0 - survival, FLOOR)) + sound * np.log(np.maximum(survival, FLOOR))
    return float(logsumexp(total))

"""When an unstable run collapses: a log-normal fit of the collapse step against the learning rate.

    log T = log_time - slope * (log eta - log_rate_mean) + scatter * normal,        Law 2 is slope = 1.

A collapse known to lie in (low, high] contributes log(Phi(z_high) - Phi(z_low)). A run seen until step t
without a collapse contributes log(1 - p * Phi(z_t)), where p is the boundary's probability that the run is
unstable at all (a cure model: below the boundary nothing collapses, however long one waits).
Priors (weak, and the whole of them): log_time flat over a factor 1000 beyond the steps seen on either side;
slope flat on -1..3; log scatter flat on 0.05..1.5.
Source: claim C2 (theory/claims).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from meanfield.estimate import Estimate
from meanfield.grids import Array, log_axis, posterior_atoms
from meanfield.observations import Observations

SLOPE_RANGE = (-1.0, 3.0)
"""Prior range of the slope in log T = ... - slope * log eta."""
SCATTER_RANGE = (0.05, 1.5)
"""Prior range of the scatter of log T, between seeds."""
TIME_REACH = float(np.log(1000.0))
"""How far beyond the steps seen, in log units, the collapse time may lie a priori."""
LOG_NEVER = float(np.log(1e12))
"""Log of a number of steps that nobody trains."""
FLOOR = 1e-300
"""Smallest probability whose logarithm is taken."""


@dataclass(frozen=True, eq=False)
class BudgetPosterior:
    """Equally weighted atoms of the collapse-time law.

    Parameters
    ----------
    mean_log_rate : float [1]
        Mean log learning rate of the collapsed runs, where time and slope are least correlated.
    log_time : array, shape (n,) [optimizer step]
        Log of the median collapse step at that rate.
    slope : array, shape (n,) [1]
        1 is Law 2.
    scatter : array, shape (n,) [1]
        Standard deviation of log T between seeds.
    """

    mean_log_rate: float
    log_time: Array
    slope: Array
    scatter: Array

    def _log_median(self, learning_rate: Array) -> Array:
        return self.log_time - self.slope * (np.log(learning_rate)[:, None] - self.mean_log_rate)

    def collapsed_by(self, step: float, learning_rate: Array) -> Array:
        """Probability that an unstable new run has collapsed by `step`, shape (m,), parameters averaged."""
        z = (np.log(step) - self._log_median(np.atleast_1d(learning_rate))) / self.scatter
        probability: Array = ndtr(z).mean(axis=1)
        return probability

    def collapse_step(self, learning_rate: float, *, confidence: float) -> Estimate:
        """Predictive median and interval of the collapse step of one new unstable run [optimizer step].

        At least 1; unknown where it may lie beyond 1e12 steps.
        """
        middle = self._log_median(np.array([learning_rate]))[0]
        grid = np.linspace(middle.min() - 6 * self.scatter.max(), middle.max() + 6 * self.scatter.max(), 401)
        cumulative = ndtr((grid[:, None] - middle) / self.scatter).mean(axis=1)
        tail = 0.5 * (1.0 - confidence)
        ends = np.interp([tail, 0.5, 1.0 - tail], cumulative, grid)
        if ends[-1] > LOG_NEVER:
            return Estimate.unknown()
        low, median, high = np.maximum(np.exp(ends), 1.0)
        return Estimate(float(median), float(low), float(high))


def fit_budget(observations: Observations, *, unstable_probability: Array, slope_axis: Array) -> BudgetPosterior:
    """Posterior of the collapse-time law; the caller makes sure that some run collapsed.

    Parameters
    ----------
    observations : Observations
        At least one collapsed run.
    unstable_probability : array, shape (n,) [1]
        p of each run, used for those that did not collapse.
    slope_axis : array, shape (k,) [1]
        Grid of the slope; one point fixes it.
    """
    collapsed = observations.collapsed
    log_rate = np.log(observations.learning_rate)
    mean_log_rate = float(log_rate[collapsed].mean())
    runs = (
        log_rate - mean_log_rate,
        _safe_log(np.where(collapsed, observations.low, 0.0)),
        _safe_log(np.where(collapsed, observations.high, observations.watched)),
        np.where(collapsed, 1.0, unstable_probability),
        collapsed.astype(np.float64),
    )
    distinct, count = np.unique(np.column_stack(runs), axis=0, return_counts=True)
    rate, low, high, probability, fell = distinct.T
    likelihood = _Likelihood(rate, low, high, probability, fell, count.astype(np.float64))
    seen = np.log(np.maximum(observations.high[collapsed], 1.0))
    time_axis = np.linspace(seen.min() - TIME_REACH, seen.max() + TIME_REACH, 41)
    scatter_axis = log_axis(SCATTER_RANGE, 13)
    atoms = posterior_atoms(likelihood, (time_axis, slope_axis, scatter_axis), fixed=2)
    return BudgetPosterior(mean_log_rate, atoms[0], atoms[1], np.exp(atoms[2]))


def _safe_log(step: Array) -> Array:
    return np.log(step, out=np.full_like(step, -np.inf), where=step > 0)


@dataclass(frozen=True, eq=False)
class _Likelihood:
    """Log likelihood on the product of the axes (log time, slope, log scatter); equal runs are one with a count."""

    log_rate: Array
    log_low: Array
    log_high: Array
    probability: Array
    collapsed: Array
    count: Array

    def __call__(self, log_time: Array, slope: Array, log_scatter: Array) -> Array:
        scatter = np.exp(log_scatter)
        total = np.zeros((len(log_time), len(slope), len(log_scatter)))
        columns = (self.log_rate, self.log_low, self.log_high, self.probability, self.collapsed, self.count)
        for log_rate, log_low, log_high, probability, collapsed, count in zip(*columns, strict=True):
            median = (log_time[:, None] - slope * log_rate)[:, :, None]
            z_high = (log_high - median) / scatter
            if collapsed:
                total += count * np.log(np.maximum(_between((log_low - median) / scatter, z_high), FLOOR))
            elif probability > 0.0:
                total += count * np.log(np.maximum(1.0 - probability * ndtr(z_high), FLOOR))
        return total


def _between(z_low: Array, z_high: Array) -> Array:
    """Phi(z_high) - Phi(z_low), from the tail in which neither is close to 1."""
    mirrored = z_low > 0
    probability: Array = ndtr(np.where(mirrored, -z_low, z_high)) - ndtr(np.where(mirrored, -z_high, z_low))
    return probability

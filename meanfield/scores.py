"""How well predictions of collapse hold on runs they were not fitted to, with bootstrap intervals over cells.

Runs at one (S, eta) differ by their seed only, so the bootstrap draws whole cells with replacement. Fixed seed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from meanfield.estimate import Estimate
from meanfield.grids import Array
from meanfield.observations import Mask

NUM_DRAWS, SEED = 2000, 0
"""Bootstrap draws, and the seed of the generator that makes them."""
FLOOR = 1e-12
"""Smallest probability whose logarithm is taken."""
FACTOR = 2.0
"""A predicted collapse step is near the measured one within this factor."""


@dataclass(frozen=True, eq=False)
class Outcomes:
    """What was measured on the held-out runs, each array of shape (n,).

    Parameters
    ----------
    cell : int array
        Number of the run's (S, eta).
    collapsed : bool array
        Whether the run collapsed while it was watched.
    step : array [optimizer step]
        Middle of the onset of a collapse whose onset is known; NaN for every other run.
    """

    cell: np.typing.NDArray[np.intp]
    collapsed: Mask
    step: Array


@dataclass(frozen=True, eq=False)
class Prediction:
    """What one predictor says of the held-out runs, each array of shape (n,); NaN where it says nothing.

    Parameters
    ----------
    probability : array [1]
        That the run collapses while it is watched.
    step : array [optimizer step]
        Median collapse step of an unstable run; inf where there is none.
    """

    probability: Array
    step: Array


@dataclass(frozen=True)
class Score:
    """How one predictor did; a None or an unknown Estimate stands for what there are no runs for.

    Parameters
    ----------
    model : str
        Name of the predictor.
    num_runs, num_collapsed, num_timed, num_never : int
        Runs it spoke of; collapses among them; collapses with a known onset and a predicted step; those of them where
        the predictor has no collapse.
    log_score : Estimate [nat per run]
        Mean log probability of what happened (collapsed or not); 0 is perfect.
    brier : Estimate [1]
        Mean squared error of the probability; 0 is perfect.
    log_score_lead : Estimate [nat per run]
        Mean log score of the reference predictor less this one, on the runs that both speak of.
    log_time_ratio : Estimate [1]
        Median of log(measured / predicted collapse step), -inf counted for a collapse where the predictor has none.
    within_factor_two : Estimate [1]
        Share of the collapses whose predicted step is within a factor 2.
    """

    model: str
    num_runs: int
    num_collapsed: int
    num_timed: int
    num_never: int
    log_score: Estimate
    brier: Estimate
    log_score_lead: Estimate
    log_time_ratio: Estimate
    within_factor_two: Estimate

    def to_json(self) -> dict[str, Any]:
        """Return plain values; an Estimate with an end that is not finite is given as unknown."""
        return {name: _plain(value) for name, value in vars(self).items()}


def score(model: str, outcomes: Outcomes, prediction: Prediction, *, reference: Prediction, confidence: float) -> Score:
    """Score one predictor on the runs it speaks of.

    Parameters
    ----------
    model : str
        Name of the predictor.
    outcomes : Outcomes
    prediction, reference : Prediction
        The predictor, and the one whose lead over it is given.
    confidence : float [1]
        Probability inside the bootstrap intervals.

    Source: ours (proper scoring rules; a percentile bootstrap over cells).
    """
    logs, others = _log_scores(outcomes, prediction), _log_scores(outcomes, reference)
    spoken = ~np.isnan(logs)
    timed = ~np.isnan(outcomes.step) & ~np.isnan(prediction.step)
    log_ratio = np.full(len(timed), np.nan)
    log_ratio[timed] = np.log(outcomes.step[timed]) - np.log(prediction.step[timed])
    near = np.where(timed, np.abs(log_ratio) <= np.log(FACTOR), np.nan)

    def mean(values: Array) -> Estimate:
        return _bootstrap(values, outcomes.cell, _weighted_mean, confidence)

    return Score(
        model,
        int(spoken.sum()),
        int((spoken & outcomes.collapsed).sum()),
        int(timed.sum()),
        int(np.isinf(prediction.step[timed]).sum()),
        log_score=mean(logs),
        brier=mean((prediction.probability - outcomes.collapsed) ** 2),
        log_score_lead=mean(others - logs),
        log_time_ratio=_bootstrap(log_ratio, outcomes.cell, _weighted_median, confidence),
        within_factor_two=mean(near),
    )


def _plain(value: object) -> object:
    if not isinstance(value, Estimate):
        return value
    ends = [value.estimate, value.low, value.high]
    finite = all(end is not None and math.isfinite(end) for end in ends)
    return value.to_json() if finite else Estimate.unknown().to_json()


def _log_scores(outcomes: Outcomes, prediction: Prediction) -> Array:
    p = prediction.probability
    return np.asarray(np.log(np.maximum(np.where(outcomes.collapsed, p, 1.0 - p), FLOOR)))


def _bootstrap(
    values: Array, cell: np.typing.NDArray[np.intp], statistic: Callable[[Array, Array], Array], confidence: float
) -> Estimate:
    """Statistic of the values that are there, and its percentile interval over draws of cells."""
    there = ~np.isnan(values)
    if not there.any():
        return Estimate.unknown()
    values = values[there]
    distinct, index = np.unique(cell[there], return_inverse=True)
    drawn = np.random.default_rng(SEED).integers(len(distinct), size=(NUM_DRAWS, len(distinct)))
    times = np.apply_along_axis(np.bincount, 1, drawn, minlength=len(distinct)).astype(np.float64)
    atoms = statistic(values, times[:, index.ravel()])
    tail = 0.5 * (1.0 - confidence)
    low, high = np.quantile(atoms, [tail, 1.0 - tail], method="inverted_cdf")  # an atom itself: some may be -inf
    point = statistic(values, np.ones((1, len(values))))[0]
    return Estimate(float(point), float(low), float(high))


def _weighted_mean(values: Array, weights: Array) -> Array:
    return np.asarray(weights @ values / weights.sum(axis=1))


def _weighted_median(values: Array, weights: Array) -> Array:
    """Lower weighted median for each row of weights, shape (draws,)."""
    order = np.argsort(values)
    cumulative = np.cumsum(weights[:, order], axis=1)
    return np.asarray(values[order][np.argmax(cumulative >= 0.5 * cumulative[:, -1:], axis=1)])

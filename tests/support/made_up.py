"""Measures of a sweep that was never run: every number as given, so that what a fit should find is known."""

import numpy as np

from meanfield.outcomes import Outcome
from meanfield.results import MEASURES, build
from tests.support.sweeps import INTERVALS

RATES = tuple(np.geomspace(1e-3, 3e-2, 6))
HORIZON = 800


def made_up_measures(variables, *, intervals=INTERVALS, rates=RATES, num_seeds=3, horizons=(HORIZON,)):
    """Measures whose variables are the given ones (anything that broadcasts), else NaN and stable."""
    coordinates = {
        "sync_interval": np.array(intervals, float),
        "learning_rate": np.array(rates, float),
        "seed": np.arange(num_seeds),
        "lag": lags_of(intervals),
        "horizon": np.array(horizons),
    }
    sizes = {name: len(values) for name, values in coordinates.items()}
    empty = {"outcome": Outcome.STABLE.code}
    values = {
        item.name: np.broadcast_to(
            variables.get(item.name, empty.get(item.name, np.nan)), [sizes[dim] for dim in item.dims]
        )
        for item in MEASURES.variables
    }
    attributes = dict.fromkeys(MEASURES.attributes, "{}")
    return build(MEASURES, coordinates=coordinates, variables=values, attributes=attributes)


def lags_of(intervals):
    """Powers of two below the largest S, and the last lag of every cycle."""
    largest = int(max(intervals))
    return sorted({2**k for k in range(12) if 2**k < largest} | {int(S) - 1 for S in intervals})


def power_law_drift(seed, *, constant, with_rate, with_interval, noise, intervals=INTERVALS, rates=RATES, num_seeds=3):
    """constant * eta^with_rate * (lag + 1)^with_interval, at the end of a cycle of S: S^with_interval.

    Shape (S, eta, seed, lag); the noise is log-normal and one number a run, NaN at lags that S does not reach.
    """
    rng = np.random.default_rng(seed)
    S, eta, lag = (np.array(values, float) for values in (intervals, rates, lags_of(intervals)))
    spread = np.exp(noise * rng.normal(size=(len(S), len(eta), num_seeds, 1)))
    drift = constant * eta[:, None, None] ** with_rate * (lag + 1.0) ** with_interval * spread
    return np.where(lag < S[:, None, None, None], drift, np.nan)

"""How collapse times depend on eta and S together: T ~ eta^(-b) * S^(-c), both exponents free.

    log T = a - b * log(eta / eta_ref) - c * log(S / S_ref) + scatter * normal

Law two says b = 1 and c = 0. If the same law reaches down to the boundary, runs of a horizon T turn unstable at
eta_max ~ S^(-c/b) * T^(-1/b), so the boundary exponent of a finite horizon is -c/b and not a law of its own.
A run that did not collapse counts as in `meanfield.budget`: it is unstable with the probability that the boundary gives
it, and then had not collapsed when it was last seen. Maximum likelihood; intervals from the curvature at the maximum
(normal, drawn with a fixed seed).
Source: claims C1, C2 and C6 (theory/claims).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import ndtr

from meanfield.calibrate import Calibration, unstable_probability
from meanfield.estimate import Estimate
from meanfield.grids import Array
from meanfield.observations import Mask

NUM_DRAWS = 4000
MIN_EVENTS = 8
"""Collapses needed before two exponents are fitted."""
_FLOOR = 1e-300
_STEP = 1e-3
_SEED = 0


@dataclass(frozen=True)
class TimeSurface:
    """The fitted exponents, unknown where there are too few collapses or one S or one rate among them.

    Parameters
    ----------
    with_rate, with_interval : Estimate [1]
        -b and -c: slopes of log T on log eta and on log S.
    boundary_exponent, horizon_exponent : Estimate [1]
        -c/b and -1/b: slopes of log eta_max on log S and on log T that follow; unknown unless T surely falls with eta.
    rate_less_interval : Estimate [1]
        b - c: 1 if eta*T at collapse depends on S*eta alone (claim C6), for then T ~ (S*eta)^(-c) / eta.
    scatter : Estimate [1]
        Standard deviation of log T between seeds.
    num_events : int
        Runs that collapsed (or declined, if degraded runs count).
    """

    with_rate: Estimate
    with_interval: Estimate
    boundary_exponent: Estimate
    horizon_exponent: Estimate
    rate_less_interval: Estimate
    scatter: Estimate
    num_events: int


def fit_time_surface(calibration: Calibration, *, degraded_counts: bool) -> TimeSurface:
    """Fit both exponents to the runs at finite S >= 2 below the learning-rate ceiling.

    Parameters
    ----------
    calibration : Calibration
        Its boundary says how surely a run that did not collapse is unstable.
    degraded_counts : bool
        True: a decline of any kind counts at its onset. False: degraded runs are censored at their onset.
    """
    arm = calibration.budget_arm & (calibration.observations.high != 0)
    runs = calibration.observations.where(arm)
    events = runs.collapsed | (runs.degraded & degraded_counts)
    distinct = [np.unique(values[events]).size for values in (runs.sync_interval, runs.learning_rate)]
    if events.sum() < MIN_EVENTS or min(distinct) < 2:
        return _unknown(int(events.sum()))
    log_rate, log_interval = np.log(runs.learning_rate), np.log(runs.sync_interval)
    x = np.column_stack([np.ones(len(runs)), *(v - v[events].mean() for v in (log_rate, log_interval))])
    low = np.where(events, np.maximum(runs.low, 0.0), 0.0)
    high = np.where(events, runs.high, runs.watched)
    probability = np.where(events, 1.0, unstable_probability(runs, calibration.boundary))
    loss = _Loss(x, _log(low), _log(np.maximum(high, 1.0)), probability, events)
    return _summary(loss, calibration.confidence)


@dataclass(frozen=True, eq=False)
class _Loss:
    """Negative log likelihood at (a, -b, -c, log scatter)."""

    x: Array
    log_low: Array
    log_high: Array
    probability: Array
    events: Mask

    def __call__(self, point: Array) -> float:
        middle, scatter = self.x @ point[:3], np.exp(point[3])
        by_high = ndtr((self.log_high - middle) / scatter)
        by_low = ndtr((self.log_low - middle) / scatter)
        chance = np.where(self.events, by_high - by_low, 1.0 - self.probability * by_high)
        return -float(np.log(np.maximum(chance, _FLOOR)).sum())


def _summary(loss: _Loss, confidence: float) -> TimeSurface:
    start = np.array([loss.log_high[loss.events].mean(), -1.0, 0.0, np.log(0.5)])
    best = minimize(loss, start, method="Nelder-Mead", options={"maxfev": 4000, "xatol": 1e-5, "fatol": 1e-7}).x
    curvature = _curvature(loss, best)
    if not np.all(np.linalg.eigvalsh(curvature) > 0):
        return _unknown(int(loss.events.sum()))
    draws = np.random.default_rng(_SEED).multivariate_normal(best, np.linalg.inv(curvature), NUM_DRAWS)
    rate, interval = draws[:, 1], draws[:, 2]
    atoms = {
        "with_rate": rate,
        "with_interval": interval,
        "rate_less_interval": interval - rate,
        "scatter": np.exp(draws[:, 3]),
    }
    falls = rate < 0
    if np.quantile(rate, 0.5 * (1.0 + confidence)) < 0:  # else the ratios have no bound
        atoms |= {"boundary_exponent": -interval[falls] / rate[falls], "horizon_exponent": 1.0 / rate[falls]}
    said = {"boundary_exponent": Estimate.unknown(), "horizon_exponent": Estimate.unknown()}
    said |= {name: Estimate.from_atoms(one, confidence=confidence) for name, one in atoms.items()}
    return TimeSurface(**said, num_events=int(loss.events.sum()))


def _unknown(num_events: int) -> TimeSurface:
    nothing = Estimate.unknown()
    return TimeSurface(nothing, nothing, nothing, nothing, nothing, nothing, num_events)


def _curvature(loss: _Loss, best: Array) -> Array:
    """Second derivatives of the loss by central differences, shape (4, 4)."""
    steps = np.eye(len(best)) * _STEP
    signs = ((1, 1), (1, -1), (-1, 1), (-1, -1))
    hessian = np.array(
        [[sum(a * b * loss(best + a * one + b * other) for a, b in signs) for other in steps] for one in steps]
    )
    curvature: Array = hessian / (4 * _STEP**2)
    return curvature


def _log(step: Array) -> Array:
    return np.log(step, out=np.full_like(step, -np.inf), where=step > 0)

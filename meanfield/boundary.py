"""Where the stability boundary lies: a logistic fit in log learning rate, with the exponent left free.

At given S and eta a run is unstable with probability F((log eta - log eta_max(S)) / scale), F logistic, and

    eta_max(S) = min(eta0, rate_ref * (S / S_ref)^(-exponent))   for S >= 2,       eta_max(1) = eta0.

S_ref is the geometric middle of the measured S, where rate and exponent are least correlated. The ceiling
eta0 is there only when the S = 1 arm holds both stable and unstable runs; without it the minimum is dropped.
Priors (weak, and the whole of them): log rate_ref flat over a factor 1000 beyond the tested rates on either
side; exponent flat on -1..3, so Law 1 (1) is not favoured; log eta0 as log rate_ref; log scale flat on
0.03..1.
Source: claim C1 (theory/claims); interval censoring needs no special case, for a sweep without
overlap gives a plateau between the last stable and the first unstable rate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from meanfield.grids import Array, log_axis, posterior_atoms
from meanfield.observations import Mask, Observations

EXPONENT_RANGE = (-1.0, 3.0)
"""Prior range of the exponent in eta_max ~ S^(-exponent)."""
SCALE_RANGE = (0.03, 1.0)
"""Prior range of the scatter of log eta at the boundary, between seeds."""
RATE_REACH = float(np.log(1000.0))
"""How far beyond the tested rates, in log units, the boundary may lie a priori."""


@dataclass(frozen=True, eq=False)
class BoundaryPosterior:
    """Equally weighted atoms of the boundary's parameters.

    Parameters
    ----------
    reference_sync_interval : float [optimizer step]
        S_ref; NaN where there is no power law.
    log_rate : array, shape (n,), or None [1]
        log eta_max(S_ref) of the power law; None where finite S >= 2 do not hold both outcomes.
    exponent : array, shape (n,) [1]
        1 is Law 1.
    scale : array, shape (n,) [1]
        Logistic scale in log eta.
    log_ceiling : array, shape (n,), or None [1]
        log eta0; None where the S = 1 arm does not identify it.
    """

    reference_sync_interval: float
    log_rate: Array | None
    exponent: Array
    scale: Array
    log_ceiling: Array | None

    def log_power_law(self, sync_interval: float) -> Array:
        """Log of the power law at S, shape (n,), the ceiling not applied; NaN without a law."""
        if self.log_rate is None:
            return np.full_like(self.scale, np.nan)
        offset = float(np.log(sync_interval / self.reference_sync_interval))
        return self.log_rate - self.exponent * offset

    def log_max_rate(self, sync_interval: float) -> Array:
        """Log eta_max(S), shape (n,); at S < 2 the ceiling alone, or NaN without one."""
        if self.log_ceiling is None:
            return self.log_power_law(sync_interval) if sync_interval >= 2 else np.full_like(self.scale, np.nan)
        if sync_interval < 2:
            return self.log_ceiling
        return np.minimum(self.log_ceiling, self.log_power_law(sync_interval))

    def unstable_probability(self, sync_interval: float, learning_rate: Array) -> Array:
        """Posterior mean of P(unstable) at each rate, shape (m,); NaN at S < 2 without a ceiling."""
        margin = np.log(np.atleast_1d(learning_rate))[:, None] - self.log_max_rate(sync_interval)
        probability: Array = expit(margin / self.scale).mean(axis=1)
        return probability


@dataclass(frozen=True)
class RateBracket:
    """What one S shows by itself, with no law assumed.

    Parameters
    ----------
    sync_interval : float [optimizer step]
    largest_stable, smallest_unstable : float or None [1]
        None where no such run exists. The boundary at this S lies between them when they are in order.
    """

    sync_interval: float
    largest_stable: float | None
    smallest_unstable: float | None

    @property
    def monotone(self) -> bool:
        """False when some rate was unstable below one that was stable (seeds may differ at one rate)."""
        if self.largest_stable is None or self.smallest_unstable is None:
            return True
        return self.largest_stable <= self.smallest_unstable

    @property
    def closed(self) -> bool:
        """Whether both a stable and an unstable run exist at this S."""
        return self.largest_stable is not None and self.smallest_unstable is not None


def rate_brackets(observations: Observations, unstable: Mask) -> tuple[RateBracket, ...]:
    """Interval-censored boundary at each measured S, rising in S.

    Parameters
    ----------
    observations : Observations
    unstable : bool array, shape (n,)
        The reading of the outcomes: which runs count as unstable.
    """
    brackets = []
    for sync_interval in np.unique(observations.sync_interval):
        here = observations.sync_interval == sync_interval
        stable_rates = observations.learning_rate[here & ~unstable]
        unstable_rates = observations.learning_rate[here & unstable]
        brackets.append(
            RateBracket(
                float(sync_interval),
                float(stable_rates.max()) if stable_rates.size else None,
                float(unstable_rates.min()) if unstable_rates.size else None,
            )
        )
    return tuple(brackets)


@dataclass(frozen=True, eq=False)
class _Cells:
    """Runs at one S, grouped by (learning rate, share of the horizon that mattered)."""

    log_rate: Array
    num_unstable: Array
    num_stable: Array
    log_missed: Array

    def log_likelihood(self, log_max_rate: Array, scale: Array) -> Array:
        """Sum over the cells; the inputs broadcast against each other, shape of the result."""
        total = np.zeros(np.broadcast_shapes(log_max_rate.shape, scale.shape))
        cells = zip(self.log_rate, self.num_unstable, self.num_stable, self.log_missed, strict=True)
        for log_rate, num_unstable, num_stable, log_missed in cells:
            z = (log_rate - log_max_rate) / scale
            softplus = np.logaddexp(0.0, z)
            total += num_unstable * (z - softplus) - num_stable * softplus
            if num_stable and np.isfinite(log_missed):
                total += num_stable * np.logaddexp(0.0, z + log_missed)
        return total


def _cells(observations: Observations, unstable: Mask, time_share: Array, here: Mask) -> _Cells:
    share = np.where(unstable, 1.0, time_share)
    keys = np.column_stack([observations.learning_rate, share])[here]
    values, index = np.unique(keys, axis=0, return_inverse=True)
    num_unstable = np.bincount(index.ravel(), weights=unstable[here], minlength=len(values)).astype(np.float64)
    num_runs = np.bincount(index.ravel(), minlength=len(values)).astype(np.float64)
    with np.errstate(divide="ignore"):
        log_missed = np.log1p(-values[:, 1])
    return _Cells(np.log(values[:, 0]), num_unstable, num_runs - num_unstable, log_missed)


def fit_boundary(
    observations: Observations, unstable: Mask, *, time_share: Array, exponent_axis: Array
) -> BoundaryPosterior | None:
    """Posterior of the boundary; None unless S = 1 or the finite S >= 2 hold a stable and an unstable run.

    Parameters
    ----------
    observations : Observations
    unstable : bool array, shape (n,)
        Which runs count as unstable.
    time_share : array, shape (n,) [1]
        For each stable run the probability that an unstable run would have shown it by the end; a stable run
        contributes log(1 - p * time_share). Ones give the plain logistic fit.
    exponent_axis : array, shape (k,) [1]
        Grid of the exponent; one point fixes it.

    Returns
    -------
    BoundaryPosterior or None
    """
    has_law, has_ceiling = _both(unstable[observations.law_arm]), _both(unstable[observations.on_policy])
    if not has_law and not has_ceiling:
        return None
    intervals = observations.law_intervals if has_law else np.empty(0)
    reference = float(np.sqrt(intervals[0] * intervals[-1])) if has_law else np.nan
    likelihood = _Likelihood(
        np.log(intervals / reference),
        [_cells(observations, unstable, time_share, observations.sync_interval == S) for S in intervals],
        _cells(observations, unstable, time_share, observations.on_policy) if has_ceiling else None,
    )
    rate_axis = _rate_axis(observations.learning_rate[observations.law_arm], 41) if has_law else np.zeros(1)
    exponent_axis = exponent_axis if has_law else np.ones(1)
    ceiling_axis = _rate_axis(observations.learning_rate, 25) if has_ceiling else _NO_CEILING
    axes = (rate_axis, exponent_axis, log_axis(SCALE_RANGE, 15), ceiling_axis)
    log_rate, exponent, log_scale, log_ceiling = posterior_atoms(likelihood, axes, fixed=2)
    return BoundaryPosterior(
        reference,
        log_rate if has_law else None,
        exponent,
        np.exp(log_scale),
        log_ceiling if has_ceiling else None,
    )


def log_rate_at(observations: Observations, unstable: Mask, sync_interval: float) -> Array | None:
    """Atoms of the log rate at which half of the runs at one S >= 2 are unstable, from the runs at that S alone.

    None unless S holds a stable and an unstable run. Arguments as in `fit_boundary`.
    """
    here = observations.sync_interval == sync_interval
    boundary = fit_boundary(
        observations.where(here), unstable[here], time_share=np.ones(int(here.sum())), exponent_axis=np.ones(1)
    )
    return None if boundary is None else boundary.log_rate


_NO_CEILING = np.array([100.0])
"""A log rate no run can reach: the minimum with it is the power law."""


@dataclass(frozen=True, eq=False)
class _Likelihood:
    """Log likelihood on the product of the axes (log rate, exponent, log scale, log ceiling)."""

    log_offsets: Array
    by_interval: list[_Cells]
    on_policy: _Cells | None

    def __call__(self, log_rate: Array, exponent: Array, log_scale: Array, log_ceiling: Array) -> Array:
        scale = np.exp(log_scale)
        total = np.zeros((len(log_rate), len(exponent), len(log_scale), len(log_ceiling)))
        if self.on_policy is not None:
            total += self.on_policy.log_likelihood(log_ceiling[None, :], scale[:, None])
        for cells, offset in zip(self.by_interval, self.log_offsets, strict=True):
            line = log_rate[:, None] - exponent[None, :] * offset
            on_line = cells.log_likelihood(line[:, :, None], scale)[..., None]
            on_ceiling = cells.log_likelihood(log_ceiling[None, :], scale[:, None])
            total += np.where(line[:, :, None, None] < log_ceiling, on_line, on_ceiling)
        return total


def _both(unstable: NDArray[np.bool_]) -> bool:
    return bool(unstable.any() and not unstable.all())


def _rate_axis(learning_rate: Array, num_points: int) -> Array:
    logs = np.log(learning_rate)
    return np.linspace(logs.min() - RATE_REACH, logs.max() + RATE_REACH, num_points)

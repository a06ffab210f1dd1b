"""Persistent drift fitted to a runs table by maximum likelihood.

    log T = log T_model(S, eta) + scatter * normal,        T_model from `meanfield.persistent`, none below its boundary.

A collapse known to lie in (low, high] contributes the probability of that interval; a run seen until step t
without a collapse that of none until t (a stable run until its end, a degraded one until its onset). One run in
twenty is an outlier: it collapses with even odds, at a step log-uniform over its length, so a collapse where the
model has none is improbable and not impossible. Only finite S >= 2 and rates below the learning-rate ceiling count.
Bounds: boundary and batch radius from the S*eta of the runs, exit radius from their eta*t, with the reach stated
below; an end of a bound is a model without that part. Nothing is random: the search has a fixed seed.
Source: claims C5 and C6 (theory/claims).
"""

from __future__ import annotations

from dataclasses import astuple, dataclass, fields
from typing import Any

import numpy as np
from scipy.optimize import Bounds, differential_evolution, minimize
from scipy.special import ndtr

from meanfield.budget import SCATTER_RANGE
from meanfield.calibrate import MIN_COLLAPSED, Calibration
from meanfield.grids import Array
from meanfield.observations import Observations
from meanfield.persistent import PersistentParameters, exit_clocks
from theory.errors import InputError

OUTLIER_SHARE = 0.05
"""Share of runs that do not follow the model [1]; fixed, not fitted."""
PRODUCT_REACH = 10.0
"""How far beyond the S*eta of the runs the boundary may lie, as a factor on either side."""
SMALLEST_SHARE = 1e-3
"""Smallest radius as a share of what the runs show: the smallest S*eta, the smallest eta*t at collapse."""
LARGEST_SHARE = 2.0
"""Largest radius likewise; drift is at most at full speed, so from 1 on no run of the table reaches it."""
DRIVE_RANGE = (1e-6, 3.0)
"""Honest and initial drive: nothing within any run, up to saturation."""
LARGEST_GROWTH = 5.0
"""Largest gain_within * C: the drive grows inside one cycle on the boundary by up to exp(5)."""
LARGEST_RETENTION = 0.99
"""Beyond it a memory outlives any run."""
WALK_REACH = 3.0
"""Walked cycles as a multiple of the run's length: a collapse later than that is none unless the memory has settled."""
MEMBERS_PER_PARAMETER, GENERATIONS, CLOSING_SHARE, CLIMB_STEPS, SEED = 8, 400, 0.75, 1000, 0
"""The search: differential evolution, wide for some generations, for the maxima are narrow and several; then towards
the best member for a share of as many; then Nelder and Mead. Other seeds end within some 0.3 nat of the best."""
NAMES = ("critical_product", "growth", "retention", "honest_drive", "initial_drive", "exit_radius", "batch_radius")
"""What is searched, in this order, and the scatter after it; growth is gain_within * critical_product."""
ABSENT = {"growth": 0, "retention": 0, "honest_drive": 0, "exit_radius": 1, "batch_radius": 1}
"""Parts a fit can do without, and the end of their range, lower or upper, at which they are absent."""
_ON_BOUND = 1e-3


@dataclass(frozen=True)
class PersistentFit:
    """The fitted model, or why there is none.

    Parameters
    ----------
    parameters : PersistentParameters or None
    scatter : float or None [1]
        Standard deviation of log T between seeds.
    log_likelihood : float or None [nat]
        At the maximum, all runs together.
    num_runs, num_collapsed : int
        Runs that were used, and those among them that collapsed.
    on_bound : tuple of str
        Which of `NAMES` or "scatter" lie at an end of their range: the data ask for less or more of it, or do not say.
        Not what was left out.
    sentence : str
        What the fit rests on, or what is missing.
    """

    parameters: PersistentParameters | None
    scatter: float | None
    log_likelihood: float | None
    num_runs: int
    num_collapsed: int
    on_bound: tuple[str, ...]
    sentence: str

    def collapse_step(self, sync_interval: Array, learning_rate: Array, *, steps: Array) -> Array:
        """Median collapse step of runs, not rounded to whole ones; inf where the model has none.

        Parameters
        ----------
        sync_interval, steps : array, shape (n,) [optimizer step]
            Length of each run: the collapse is looked for as far as `WALK_REACH` says.
        learning_rate : array, shape (n,) [1]

        Returns
        -------
        array, shape (n,) [optimizer step]
            All NaN without a fit.

        Source: claims C5 and C6 (theory/claims).
        """
        if self.parameters is None:
            return np.full(len(steps), np.nan)
        row = np.array([astuple(self.parameters)])
        return np.asarray(_clocks(row, sync_interval, learning_rate, steps)[0] / learning_rate)

    def collapsed_by(self, step: Array, *, sync_interval: Array, learning_rate: Array, steps: Array) -> Array:
        """Probability that a new run has collapsed by `step`, outliers included, shape (n,); arguments as above.

        The parameters are taken as known: what is not known of them is not in it.
        """
        if self.scatter is None:
            return np.full(len(steps), np.nan)
        median = self.collapse_step(sync_interval, learning_rate, steps=steps)
        z = (_safe_log(step) - np.log(median)) / self.scatter
        return np.asarray((1.0 - OUTLIER_SHARE) * ndtr(z) + OUTLIER_SHARE * _outlier_by(step, steps))


def fit_persistent(
    calibration: Calibration, *, without: tuple[str, ...] = (), generations: int = GENERATIONS
) -> PersistentFit:
    """Fit persistent drift to the runs of a calibration.

    Parameters
    ----------
    calibration : Calibration
        Its `budget_arm` says which runs count; nothing else of it is used.
    without : tuple of str
        Parts that are left out, of `ABSENT`: a nested model, for a likelihood ratio.
    generations : int
        Of the search; fewer are faster and may stop at a lesser maximum.

    Returns
    -------
    PersistentFit
        Without parameters if fewer than two runs with a known onset collapsed.

    Raises
    ------
    InputError
        If a part to leave out is not one of those.

    Source: claims C5 and C6 (theory/claims).
    """
    for name in without:
        if name not in ABSENT:
            raise InputError("without", f"name parts of {', '.join(ABSENT)}", repr(name), "Leave out one of these.")
    runs = calibration.observations.where(calibration.budget_arm)
    num_collapsed, num_timed = int(runs.collapsed.sum()), int(runs.timed.sum())
    if num_timed < MIN_COLLAPSED:
        rule = f"the fit needs {MIN_COLLAPSED} collapses with a known step at finite S >= 2 and below the ceiling"
        why = f"No persistent drift is fitted: {rule}, there are {num_timed}."
        return PersistentFit(None, None, None, len(runs), num_collapsed, (), why)
    bounds = search_bounds(runs)
    for name in without:
        bounds[NAMES.index(name)] = bounds[NAMES.index(name), ABSENT[name]]
    best, value = _maximise(Likelihood.of(runs), bounds, generations)
    parameters = _parameters(best)
    margin = _ON_BOUND * (bounds[:, 1] - bounds[:, 0])
    ends = (best < bounds[:, 0] + margin) | (best > bounds[:, 1] - margin)
    on_bound = tuple(name for name, end in zip((*NAMES, "scatter"), ends, strict=True) if end)
    said = f"Fitted to {len(runs)} runs, {num_collapsed} of them collapsed."
    return PersistentFit(parameters, float(np.exp(best[-1])), value, len(runs), num_collapsed, on_bound, said)


def search_bounds(runs: Observations) -> Array:
    """Ends of the searched ranges, shape (8, 2): growth and retention as they are, the others as logarithms."""
    products = runs.sync_interval * runs.learning_rate
    at_collapse = (runs.learning_rate * runs.high)[runs.collapsed].min()
    longest = (runs.learning_rate * runs.steps).max()
    drive = np.log(DRIVE_RANGE)
    return np.array(
        [
            np.log([products.min() / PRODUCT_REACH, products.max() * PRODUCT_REACH]),
            [0.0, LARGEST_GROWTH],
            [0.0, LARGEST_RETENTION],
            drive,
            drive,
            np.log([SMALLEST_SHARE * at_collapse, LARGEST_SHARE * longest]),
            np.log([SMALLEST_SHARE * products.min(), LARGEST_SHARE * products.max()]),
            np.log(SCATTER_RANGE),
        ]
    )


@dataclass(frozen=True, eq=False)
class Likelihood:
    """Log likelihood of many parameters at once; equal runs are one with a count.

    Parameters
    ----------
    sync_interval, learning_rate, steps : array, shape (cells,)
        Distinct pairs and the longest run at each.
    cell : int array, shape (n,)
        Cell of each distinct run.
    log_low, log_high : array, shape (n,)
        Onset of a collapsed run; -inf and the last step it was watched otherwise.
    outlier : array, shape (n,) [1]
        Probability of what was seen if the run is an outlier.
    collapsed : bool array, shape (n,)
    count : array, shape (n,)
    """

    sync_interval: Array
    learning_rate: Array
    steps: Array
    cell: np.typing.NDArray[np.intp]
    log_low: Array
    log_high: Array
    outlier: Array
    collapsed: np.typing.NDArray[np.bool_]
    count: Array

    @classmethod
    def of(cls, runs: Observations) -> Likelihood:
        """Group the runs."""
        pairs = np.column_stack([runs.sync_interval, runs.learning_rate])
        cells, cell = np.unique(pairs, axis=0, return_inverse=True)
        cell = cell.ravel()
        steps = np.zeros(len(cells))
        np.maximum.at(steps, cell, runs.steps)
        low = np.where(runs.collapsed, runs.low, 0.0)
        high = np.where(runs.collapsed, runs.high, runs.watched)
        by_low, by_high = _outlier_by(low, runs.steps), _outlier_by(high, runs.steps)
        outlier = np.where(runs.collapsed, by_high - by_low, 1.0 - by_high)
        columns = np.column_stack([cell, low, high, outlier, runs.collapsed])
        distinct, count = np.unique(columns, axis=0, return_counts=True)
        cell, low, high, outlier, collapsed = distinct.T
        return cls(
            cells[:, 0], cells[:, 1], steps, cell.astype(np.intp), _safe_log(low), _safe_log(high), outlier,
            collapsed.astype(np.bool_), count.astype(np.float64),
        )  # fmt: skip

    def __call__(self, points: Array) -> Array:
        """Log likelihood, shape (p,), at points of the search space, shape (8, p)."""
        clocks = _clocks(_rows(points), self.sync_interval, self.learning_rate, self.steps)
        log_median = np.log(clocks / self.learning_rate)[:, self.cell]
        scatter = np.exp(points[-1])[:, None]
        by_high = ndtr((self.log_high - log_median) / scatter)
        by_low = ndtr((self.log_low - log_median) / scatter)
        follows = np.where(self.collapsed, by_high - by_low, 1.0 - by_high)
        total: Array = np.log((1.0 - OUTLIER_SHARE) * follows + OUTLIER_SHARE * self.outlier) @ self.count
        return total


def _maximise(likelihood: Likelihood, bounds: Array, generations: int) -> tuple[Array, float]:
    """Point of the search space with the largest log likelihood, and that value; ranges of width 0 are kept."""
    free = bounds[:, 0] < bounds[:, 1]

    def whole(points: Array) -> Array:
        embedded = np.repeat(bounds[:, :1], points.shape[1], axis=1)
        embedded[free] = points
        return embedded

    def loss(points: Array, /) -> Any:  # the type stubs know nothing of a vectorized loss
        return -likelihood(whole(points))

    def loss_at(point: Array, /) -> float:
        return -float(likelihood(whole(point[:, None]))[0])

    ranges = Bounds(bounds[free, 0], bounds[free, 1])
    common: dict[str, Any] = {
        "vectorized": True,
        "updating": "deferred",
        "polish": False,
        "recombination": 0.9,
        "seed": SEED,
    }
    wide = differential_evolution(
        loss, ranges, popsize=MEMBERS_PER_PARAMETER, maxiter=generations, tol=1e-4,
        strategy="rand2bin", mutation=(0.3, 0.8), **common,
    )  # fmt: skip
    near = differential_evolution(
        loss, ranges, init=wide.population, maxiter=max(1, int(CLOSING_SHARE * generations)), tol=1e-8,
        strategy="randtobest1bin", mutation=(0.4, 0.9), **common,
    )  # fmt: skip
    climbed = minimize(
        loss_at,
        near.x,
        method="Nelder-Mead",
        bounds=ranges,
        options={"maxfev": CLIMB_STEPS, "xatol": 1e-4, "fatol": 1e-4, "adaptive": True},
    )
    best = climbed if climbed.fun <= near.fun else near
    return whole(np.asarray(best.x)[:, None])[:, 0], -float(best.fun)


def _rows(points: Array) -> Array:
    """Parameters at points of the search space (8, p), shape (p, 7), in the order of `PersistentParameters`."""
    C, growth, retention = np.exp(points[0]), points[1], points[2]
    within = growth / C
    per_growth = np.where(growth > 0.0, growth / np.expm1(np.where(growth > 0.0, growth, 1.0)), 1.0)
    across = (1.0 - retention) / C * per_growth  # the boundary of theory/persistent.py, solved for k_s
    return np.column_stack([within, across, retention, *np.exp(points[3:7])])


def _parameters(point: Array) -> PersistentParameters:
    names = [field.name for field in fields(PersistentParameters)]
    return PersistentParameters(**dict(zip(names, _rows(point[:, None])[0].tolist(), strict=True)))


def _clocks(rows: Array, sync_interval: Array, learning_rate: Array, steps: Array) -> Array:
    num_cycles = np.maximum(1, np.ceil(WALK_REACH * steps / sync_interval)).astype(np.int64)
    clocks, _ = exit_clocks(rows, products=sync_interval * learning_rate, num_cycles=num_cycles)
    return clocks


def _safe_log(step: Array) -> Array:
    return np.log(step, out=np.full_like(step, -np.inf), where=step > 0)


def _outlier_by(step: Array, steps: Array) -> Array:
    """Probability that an outlier has collapsed by `step`: half of them do within the run, log-uniformly."""
    return np.asarray(0.5 * np.log1p(step) / np.log1p(steps))

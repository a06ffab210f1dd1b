"""From a runs table to everything the laws can say about it: one call, one frozen answer.

The order: the boundary (every run that is not stable counts as unstable), the budget given the boundary, the
way the two combine, and the boundary again with the time allowed for that an unstable run needs to collapse: it
replaces the first where the data show that this time counts, and stands beside it where they cannot tell. A
collapse at S = 1 has nothing to do with staleness, and above the learning-rate ceiling runs at S = 1 are unstable
too, so neither counts for the budget. Both readings of "degraded" are fitted. Nothing is random.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from meanfield.boundary import EXPONENT_RANGE, BoundaryPosterior, RateBracket, fit_boundary, rate_brackets
from meanfield.budget import SLOPE_RANGE, BudgetPosterior, fit_budget
from meanfield.combination import Combination, decide
from meanfield.estimate import Estimate
from meanfield.grids import Array
from meanfield.observations import Mask, Observations, observe
from meanfield.outcomes import Outcome
from meanfield.runs import check_runs
from theory.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

    from meanfield.gaps import Gaps, NextRun

CONFIDENCE = 0.9
"""Probability inside every interval, unless told."""
PRIOR_SHARE = 0.5
"""A slope is identified once its posterior is narrower than this share of its prior."""
MIN_COLLAPSED = 2
"""Runs with a known collapse step needed before a budget is given."""
MIN_COLLAPSED_FOR_SLOPE = 3
"""Runs with a known collapse step needed before a budget exponent is given."""
WIDEST = 10.0
"""Ratio of the ends of an interval at which a product says nothing any more."""
_LAW_ONE, _LAW_TWO = np.ones(1), np.ones(1)
_NO_CEILING = 100.0


@dataclass(frozen=True, eq=False)
class Calibration:
    """What a runs table says; a None or an unknown Estimate stands for what it cannot say.

    Parameters
    ----------
    observations : Observations
        The runs that were used.
    num_failed, num_unknown : int
        Runs left out.
    confidence : float [1]
        Probability inside every interval.
    boundary, boundary_at_law_one, boundary_collapsed_only : BoundaryPosterior or None
        Exponent free; exponent fixed at Law 1; exponent free with degraded runs counted as stable.
    time_law, time_law_at_law_two : BudgetPosterior or None
        Slope free; slope fixed at Law 2.
    critical_product : Estimate [1]
        C at exponent -1; `identified` is False when the data reject -1.
    budget : Estimate [1]
        B at slope -1; `identified` is False when the data reject -1.
    learning_rate_ceiling : Estimate [1]
        eta0, from the S = 1 arm.
    boundary_exponent, boundary_exponent_collapsed_only, budget_exponent : Estimate [1]
        -1 is Law 1, Law 1 and Law 2.
    budget_exponent_without_degraded : Estimate [1]
        The budget exponent if degraded runs say nothing of when a run collapses. They are censored at their
        decline otherwise, which is right only if they would have collapsed no sooner than others.
    boundary_exponent_given_time, boundary_exponent_collapsed_only_given_time : Estimate [1]
        The boundary exponents if the max-form holds: a stable run then counts only as far as it had the time to
        collapse. The data may not tell (`combination`), so a law must stand under both.
    reference_sync_interval : float or None [optimizer step]
        Geometric middle of the measured finite S >= 2.
    brackets, brackets_collapsed_only : tuple of RateBracket
        Interval-censored boundary at each S under either reading, no law assumed.
    interval_budgets : tuple of (S, Estimate)
        B at slope -1 from each S with at least two runs whose collapse step is known.
    combination : Combination
    """

    observations: Observations
    num_failed: int
    num_unknown: int
    confidence: float
    boundary: BoundaryPosterior | None
    boundary_at_law_one: BoundaryPosterior | None
    boundary_collapsed_only: BoundaryPosterior | None
    time_law: BudgetPosterior | None
    time_law_at_law_two: BudgetPosterior | None
    critical_product: Estimate
    budget: Estimate
    learning_rate_ceiling: Estimate
    boundary_exponent: Estimate
    boundary_exponent_collapsed_only: Estimate
    boundary_exponent_given_time: Estimate
    boundary_exponent_collapsed_only_given_time: Estimate
    budget_exponent: Estimate
    budget_exponent_without_degraded: Estimate
    reference_sync_interval: float | None
    brackets: tuple[RateBracket, ...]
    brackets_collapsed_only: tuple[RateBracket, ...]
    interval_budgets: tuple[tuple[float, Estimate], ...]
    combination: Combination

    @cached_property
    def gaps(self) -> Gaps:
        """What cannot be said, and which runs to make next."""
        from meanfield.gaps import find_gaps

        return find_gaps(self)

    @property
    def missing(self) -> tuple[str, ...]:
        """Fields that are not known, each with what would make it known."""
        return self.gaps.missing

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to be careful about in the numbers that are known."""
        return self.gaps.warnings

    @property
    def next_runs(self) -> tuple[NextRun, ...]:
        """Runs that would close the gaps, the most useful first."""
        return self.gaps.next_runs

    @property
    def budget_arm(self) -> Mask:
        """Runs that the budget is fitted to, shape (number of observations,)."""
        return _budget_arm(self.observations, self.boundary)

    def answers_at(self, sync_interval: float) -> bool:
        """Whether the boundary at S is known: by the fitted law, or by runs of both kinds at S itself."""
        if self.boundary is None or not np.isfinite(sync_interval):
            return False
        if sync_interval < 2:
            return self.boundary.log_ceiling is not None
        if self.boundary.log_rate is None:
            return False
        own = any(bracket.closed for bracket in self.brackets if bracket.sync_interval == sync_interval)
        return own or self.boundary_exponent.identified


def calibrate(runs: pd.DataFrame, *, confidence: float = CONFIDENCE) -> Calibration:
    """Fit boundary, budget and their combination to a runs table.

    Parameters
    ----------
    runs : DataFrame
        As described in `meanfield.runs`; checked first.
    confidence : float [1]
        Probability inside every equal-tailed interval, in (0, 1).

    Returns
    -------
    Calibration

    Raises
    ------
    InputError
        If the table breaks a rule, or the confidence is not in (0, 1).

    Source: claims C1, C2, C7, C8 (theory/claims).
    """
    if not 0 < confidence < 1:
        raise InputError("confidence", "lie in (0, 1)", confidence, "The default is 0.9.")
    checked = check_runs(runs)
    observations = observe(checked)
    unstable = observations.collapsed | observations.degraded
    boundary = _boundary(observations, unstable, np.ones(len(observations)))
    time_law = _time_law(observations, boundary, _SLOPE_AXIS)
    combination = _combination(observations, unstable, boundary)
    decline_law = _time_law(_declines(observations), boundary, _SLOPE_AXIS)
    if_max, if_max_collapsed = (_time_share(observations, law) for law in (decline_law, time_law))
    no_allowance = np.ones(len(observations))
    allowance = (if_max, if_max_collapsed) if combination is Combination.MAX else (no_allowance, no_allowance)
    boundary = _boundary(observations, unstable, allowance[0])
    collapsed_only = _boundary(observations, observations.collapsed, allowance[1])
    exponent, exponent_collapsed_only = (_exponent(observations, one, confidence) for one in (boundary, collapsed_only))
    given_time, collapsed_only_given_time = exponent, exponent_collapsed_only
    if combination is Combination.UNDECIDED and decline_law is not None:
        given_time, collapsed_only_given_time = (
            _exponent(observations, _boundary(observations, reading, share), confidence)
            for reading, share in ((unstable, if_max), (observations.collapsed, if_max_collapsed))
        )
    at_law_one = fit_boundary(observations, unstable, time_share=allowance[0], exponent_axis=_LAW_ONE)
    at_law_two = _time_law(observations, boundary, _LAW_TWO)
    slope = _slope(observations.where(_budget_arm(observations, boundary)), time_law, confidence)
    sound = observations.where(~observations.degraded)
    law_without = _time_law(sound, boundary, _SLOPE_AXIS)
    slope_without = _slope(sound.where(_budget_arm(sound, boundary)), law_without, confidence)
    outcome = checked["outcome"]
    return Calibration(
        observations=observations,
        num_failed=int((outcome == "failed").sum()),
        num_unknown=int((outcome == "unknown").sum()),
        confidence=confidence,
        boundary=boundary,
        boundary_at_law_one=at_law_one,
        boundary_collapsed_only=collapsed_only,
        time_law=time_law,
        time_law_at_law_two=at_law_two,
        critical_product=_critical_product(at_law_one, exponent, confidence),
        budget=_budget(at_law_two, slope, confidence),
        learning_rate_ceiling=_ceiling(boundary, confidence),
        boundary_exponent=exponent,
        boundary_exponent_collapsed_only=exponent_collapsed_only,
        boundary_exponent_given_time=given_time,
        boundary_exponent_collapsed_only_given_time=collapsed_only_given_time,
        budget_exponent=slope,
        budget_exponent_without_degraded=slope_without if observations.degraded.any() else slope,
        reference_sync_interval=_reference(boundary),
        brackets=rate_brackets(observations, unstable),
        brackets_collapsed_only=rate_brackets(observations, observations.collapsed),
        interval_budgets=_interval_budgets(observations, boundary, confidence),
        combination=combination,
    )


_EXPONENT_AXIS = np.linspace(*EXPONENT_RANGE, 29)
_SLOPE_AXIS = np.linspace(*SLOPE_RANGE, 29)


def _boundary(observations: Observations, unstable: Mask, time_share: Array) -> BoundaryPosterior | None:
    return fit_boundary(observations, unstable, time_share=time_share, exponent_axis=_EXPONENT_AXIS)


def _has_law(boundary: BoundaryPosterior | None) -> bool:
    return boundary is not None and boundary.log_rate is not None


def _reference(boundary: BoundaryPosterior | None) -> float | None:
    return boundary.reference_sync_interval if boundary is not None and _has_law(boundary) else None


def unstable_probability(arm: Observations, boundary: BoundaryPosterior | None) -> Array:
    """P(unstable) of each run of the power-law arm; 1 where no stable run bounds it."""
    probability = np.ones(len(arm))
    if boundary is None or not _has_law(boundary):
        return probability
    for sync_interval in np.unique(arm.sync_interval):
        here = arm.sync_interval == sync_interval
        probability[here] = boundary.unstable_probability(float(sync_interval), arm.learning_rate[here])
    return probability


def _declines(observations: Observations) -> Observations:
    """Degraded runs as collapsed at their onset: when an unstable run shows it, if degraded runs count as unstable."""
    outcome = np.where(observations.degraded, Outcome.COLLAPSED.code, observations.outcome).astype(np.int8)
    return replace(observations, outcome=outcome)


def _budget_arm(observations: Observations, boundary: BoundaryPosterior | None) -> Mask:
    """Finite S >= 2, and rates below the ceiling where it is known: above it runs at S = 1 are unstable too."""
    arm = observations.law_arm
    if boundary is None or boundary.log_ceiling is None:
        return arm
    return arm & (np.log(observations.learning_rate) < np.median(boundary.log_ceiling))


def _time_law(
    observations: Observations, boundary: BoundaryPosterior | None, slope_axis: Array
) -> BudgetPosterior | None:
    arm = observations.where(_budget_arm(observations, boundary))
    if arm.timed.sum() < MIN_COLLAPSED:
        return None
    return fit_budget(arm, unstable_probability=unstable_probability(arm, boundary), slope_axis=slope_axis)


def _combination(observations: Observations, unstable: Mask, boundary: BoundaryPosterior | None) -> Combination:
    if boundary is None or not _has_law(boundary):
        return Combination.UNDECIDED
    ceiling = boundary.log_ceiling
    log_ceiling = _NO_CEILING if ceiling is None else float(np.median(ceiling))
    return decide(observations, unstable, log_ceiling=log_ceiling)


def _time_share(observations: Observations, time_law: BudgetPosterior | None) -> Array:
    """How surely each run, were it unstable, would have collapsed while it was watched (max-form)."""
    share = np.ones(len(observations))
    if time_law is not None:
        for run in np.flatnonzero(observations.law_arm & ~observations.collapsed):
            step = max(float(observations.watched[run]), 1.0)
            share[run] = time_law.collapsed_by(step, observations.learning_rate[run : run + 1])[0]
    return share


def _identified(atoms: Array, prior: tuple[float, float]) -> bool:
    return bool(np.std(atoms) < PRIOR_SHARE * (prior[1] - prior[0]) / np.sqrt(12.0))


def _exponent(observations: Observations, boundary: BoundaryPosterior | None, confidence: float) -> Estimate:
    """Boundary exponent; unknown with a single S or a single learning rate in the power-law arm."""
    arm = observations.law_arm
    if boundary is None or not _has_law(boundary):
        return Estimate.unknown()
    if len(observations.law_intervals) < 2 or len(np.unique(observations.learning_rate[arm])) < 2:
        return Estimate.unknown()
    identified = _identified(boundary.exponent, EXPONENT_RANGE)
    return Estimate.from_atoms(-boundary.exponent, confidence=confidence, identified=identified)


def _slope(arm: Observations, time_law: BudgetPosterior | None, confidence: float) -> Estimate:
    """Budget exponent; unknown with fewer than three timed collapses or a single rate among them."""
    rates = np.unique(arm.learning_rate[arm.timed])
    if time_law is None or arm.timed.sum() < MIN_COLLAPSED_FOR_SLOPE or len(rates) < 2:
        return Estimate.unknown()
    identified = _identified(time_law.slope, SLOPE_RANGE)
    return Estimate.from_atoms(-time_law.slope, confidence=confidence, identified=identified)


def _critical_product(at_law_one: BoundaryPosterior | None, exponent: Estimate, confidence: float) -> Estimate:
    if at_law_one is None or at_law_one.log_rate is None:
        return Estimate.unknown()
    atoms = np.exp(at_law_one.log_rate) * at_law_one.reference_sync_interval
    estimate = Estimate.from_atoms(atoms, confidence=confidence)
    narrow = estimate.low is not None and estimate.high is not None and estimate.high < WIDEST * estimate.low
    return replace(estimate, identified=narrow and not exponent.excludes(-1.0))


def _budget(at_law_two: BudgetPosterior | None, slope: Estimate, confidence: float) -> Estimate:
    if at_law_two is None:
        return Estimate.unknown()
    atoms = np.exp(at_law_two.log_time + at_law_two.mean_log_rate)
    return Estimate.from_atoms(atoms, confidence=confidence, identified=not slope.excludes(-1.0))


def _ceiling(boundary: BoundaryPosterior | None, confidence: float) -> Estimate:
    if boundary is None or boundary.log_ceiling is None:
        return Estimate.unknown()
    return Estimate.from_atoms(np.exp(boundary.log_ceiling), confidence=confidence)


def _interval_budgets(
    observations: Observations, boundary: BoundaryPosterior | None, confidence: float
) -> tuple[tuple[float, Estimate], ...]:
    budgets = []
    for sync_interval in observations.law_intervals:
        here = observations.where(observations.sync_interval == sync_interval)
        law = _time_law(here, boundary, _LAW_TWO)
        if law is not None:
            budgets.append((float(sync_interval), _budget(law, Estimate.unknown(), confidence)))
    return tuple(budgets)

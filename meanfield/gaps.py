"""What a calibration cannot say, what would say it, and which run to make next."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from meanfield.boundary import RateBracket
from meanfield.calibrate import MIN_COLLAPSED, Calibration
from meanfield.combination import HORIZON_FACTOR, LIKELIHOOD_RATIO, Combination, two_horizons

NUM_SEEDS = 3
"""Seeds of a run to make: one seed is not a boundary."""
STEP_OUT = 2.0
"""How far beyond the tested rates a missing outcome is looked for."""
NEW_INTERVAL_FACTOR = 4.0
"""Distance in S at which exponents -1 and -1/2 differ by a factor of two in the rate."""
BETWEEN_LAWS = 0.75
"""A run at this exponent lies midway between what -1/2 and -1 predict."""
BELOW_BOUNDARY = 0.5
"""Share of the boundary's rate at which a long run tests for a budget without staleness."""
CEILING_SHARE = 0.9
"""How near to the learning-rate ceiling a run may come that is to show staleness."""
MAX_NEXT_RUNS = 6
"""More than this is a sweep, not a next run."""


@dataclass(frozen=True)
class NextRun:
    """One run to make.

    Parameters
    ----------
    sync_interval : float [optimizer step]
    learning_rate : float [1]
    steps : int [optimizer step]
    seeds : int
    why : str
        What its outcome would settle.
    """

    sync_interval: float
    learning_rate: float
    steps: int
    seeds: int
    why: str


@dataclass(frozen=True)
class Gaps:
    """What is missing, what to be careful about, and what to run.

    Parameters
    ----------
    missing, warnings : tuple of str
    next_runs : tuple of NextRun
    """

    missing: tuple[str, ...]
    warnings: tuple[str, ...]
    next_runs: tuple[NextRun, ...]


def find_gaps(calibration: Calibration) -> Gaps:
    """Go through the fields of a calibration that are not known."""
    if len(calibration.observations) == 0:
        nothing = "everything: no run has a known outcome (stable, degraded or collapsed)"
        return Gaps((nothing,), _left_out(calibration), ())
    parts = (_law_gaps(calibration), _ceiling_gap(calibration), _budget_gaps(calibration))
    found = [gap for part in (*parts, _combination_gap(calibration)) for gap in part]
    missing = tuple(sentence for sentence, _ in found)
    runs: dict[tuple[float, float], NextRun] = {}
    for _, new in found:
        for run in new:
            runs.setdefault((run.sync_interval, run.learning_rate), run)
    warnings = (*_left_out(calibration), *_warnings(calibration))
    return Gaps(missing, warnings, tuple(runs.values())[:MAX_NEXT_RUNS])


_Gap = tuple[str, tuple[NextRun, ...]]


def _run(
    calibration: Calibration, sync_interval: float, learning_rate: float, why: str, *, factor: float = 1.0
) -> NextRun:
    """Make a run as long as the longest one, times `factor`, with the numbers rounded to be typed."""
    longest = float(calibration.observations.steps.max())
    interval = float(max(1, round(sync_interval)))
    return NextRun(interval, float(f"{learning_rate:.2g}"), round(longest * factor), NUM_SEEDS, why)


def _law_gaps(calibration: Calibration) -> list[_Gap]:
    """Gaps of the power law: no runs, one outcome only, one S only, one rate only, too wide."""
    seen = calibration.observations
    arm = seen.where(seen.law_arm)
    if len(arm) == 0:
        return [_no_law_arm(calibration)]
    rates, intervals = arm.learning_rate, seen.law_intervals
    unstable = arm.collapsed | arm.degraded
    if not unstable.any():
        rate = STEP_OUT * float(rates.max())
        run = _run(calibration, float(intervals[-1]), rate, "the boundary: nothing has become unstable yet")
        return [("critical_product, boundary_exponent: no run at S >= 2 became unstable; raise S or eta", (run,))]
    if unstable.all():
        rate = float(rates.min()) / STEP_OUT
        run = _run(calibration, float(intervals[0]), rate, "the boundary: nothing has stayed stable yet")
        return [("critical_product, boundary_exponent: no run at S >= 2 stayed stable; lower S or eta", (run,))]
    if calibration.boundary_exponent.identified:
        return []
    if len(intervals) == 1:
        return [_one_interval(calibration, float(intervals[0]))]
    if len(np.unique(rates)) == 1:
        return [_one_rate(calibration, float(rates[0]))]
    sentence = "boundary_exponent: the runs leave it as wide as the prior; close the bracket at another S"
    return [(sentence, _widest(calibration))]


def _no_law_arm(calibration: Calibration) -> _Gap:
    seen = calibration.observations
    stable = seen.learning_rate[~(seen.collapsed | seen.degraded)]
    rate = float(stable.max() if stable.size else seen.learning_rate.min() / STEP_OUT)
    why = "the boundary: staleness has not been varied yet"
    run = _run(calibration, NEW_INTERVAL_FACTOR**2, rate, why)
    return "critical_product, boundary_exponent: no run has a finite S >= 2; add a stale arm", (run,)


def _one_interval(calibration: Calibration, sync_interval: float) -> _Gap:
    boundary = calibration.boundary
    assert boundary is not None
    rate = float(np.exp(np.median(boundary.log_power_law(sync_interval))))
    rate *= NEW_INTERVAL_FACTOR**-BETWEEN_LAWS
    why = "the exponent: midway between what -1/2 and -1 predict"
    run = _run(calibration, NEW_INTERVAL_FACTOR * sync_interval, rate, why)
    return f"boundary_exponent: S = {sync_interval:g} is the only one; add a second S", (run,)


def _one_rate(calibration: Calibration, rate: float) -> _Gap:
    middle = calibration.reference_sync_interval
    assert middle is not None
    smaller = max(2.0, round(middle / NEW_INTERVAL_FACTOR))
    why = "the exponent: midway between what -1/2 and -1 predict"
    run = _run(calibration, smaller, rate * (middle / smaller) ** BETWEEN_LAWS, why)
    return f"boundary_exponent: eta = {rate:g} is the only one; add a second rate", (run,)


def _widest(calibration: Calibration) -> tuple[NextRun, ...]:
    """Run in the middle of what is open at the S farthest from the middle of the measured range."""
    open_ends = [bracket for bracket in calibration.brackets if bracket.sync_interval >= 2 and not bracket.closed]
    finite = [bracket for bracket in open_ends if np.isfinite(bracket.sync_interval)]
    middle = calibration.reference_sync_interval or 1.0
    if not finite:
        finite = [bracket for bracket in calibration.brackets if 2 <= bracket.sync_interval < np.inf]
    far = max(finite, key=lambda bracket: abs(np.log(bracket.sync_interval / middle)))
    why = "the exponent: the boundary at this S is open"
    return (_run(calibration, far.sync_interval, _beyond(far), why),)


def _beyond(bracket: RateBracket) -> float:
    if bracket.largest_stable is not None and bracket.smallest_unstable is not None:
        return float(np.sqrt(bracket.largest_stable * bracket.smallest_unstable))
    if bracket.largest_stable is not None:
        return bracket.largest_stable * STEP_OUT
    assert bracket.smallest_unstable is not None
    return bracket.smallest_unstable / STEP_OUT


def _ceiling_gap(calibration: Calibration) -> list[_Gap]:
    if calibration.learning_rate_ceiling.estimate is not None:
        return []
    seen = calibration.observations
    arm = seen.where(seen.on_policy)
    unstable = arm.collapsed | arm.degraded
    why = "the ceiling: the largest rate that is stable without staleness"
    if len(arm) == 0:
        run = _run(calibration, 1.0, float(seen.learning_rate.max()), why)
        return [("learning_rate_ceiling: no run has S = 1; an on-policy arm would give it", (run,))]
    if unstable.all():
        run = _run(calibration, 1.0, float(arm.learning_rate.min()) / STEP_OUT, why)
        return [("learning_rate_ceiling: no run at S = 1 stayed stable; lower eta there", (run,))]
    run = _run(calibration, 1.0, float(arm.learning_rate.max()) * STEP_OUT, why)
    return [("learning_rate_ceiling: no run at S = 1 became unstable; raise eta there", (run,))]


def _budget_gaps(calibration: Calibration) -> list[_Gap]:
    seen = calibration.observations
    arm = seen.where(calibration.budget_arm)
    collapsed = arm.where(arm.timed)
    if len(collapsed) < MIN_COLLAPSED:
        count = "no run" if len(collapsed) == 0 else "one run"
        sentence = (
            f"budget, budget_exponent: {count} at finite S >= 2, below the ceiling, has a collapse step; two are needed"
        )
        return [(sentence, _above_boundary(calibration))]
    if calibration.budget_exponent.identified:
        return []
    fastest = float(collapsed.learning_rate.max())
    at = float(collapsed.sync_interval[np.argmax(collapsed.learning_rate)])
    faster = _below_ceiling(calibration, STEP_OUT * fastest)
    rate = faster if faster > fastest else fastest / STEP_OUT
    run = _run(calibration, at, rate, "the budget exponent: a collapse at another rate")
    return [("budget_exponent: the collapsed runs share one rate or are too few; add a second rate", (run,))]


def _above_boundary(calibration: Calibration) -> tuple[NextRun, ...]:
    """Run well above the boundary, and above what was tested, at the largest S; none without a boundary."""
    boundary, seen = calibration.boundary_at_law_one, calibration.observations
    if boundary is None or boundary.log_rate is None:
        return ()
    sync_interval = float(seen.law_intervals[-1])
    here = seen.where(seen.sync_interval == sync_interval)
    at_boundary = float(np.exp(np.median(boundary.log_power_law(sync_interval))))
    rate = _below_ceiling(calibration, STEP_OUT * max(at_boundary, float(here.learning_rate.max())))
    return (_run(calibration, sync_interval, rate, "the budget: a collapse, with its step logged"),)


def _below_ceiling(calibration: Calibration, rate: float) -> float:
    """Return the rate, or one just below the ceiling: above it a collapse says nothing of the budget."""
    ceiling = calibration.learning_rate_ceiling.estimate
    return rate if ceiling is None else min(rate, CEILING_SHARE * ceiling)


def _combination_gap(calibration: Calibration) -> list[_Gap]:
    if calibration.combination is not Combination.UNDECIDED or calibration.reference_sync_interval is None:
        return []
    boundary, middle = calibration.boundary, calibration.reference_sync_interval
    assert boundary is not None
    rate = BELOW_BOUNDARY * float(np.exp(np.median(boundary.log_max_rate(max(2.0, middle)))))
    why = "max or min: a long run below the boundary shows whether the budget binds there too"
    run = _run(calibration, middle, rate, why, factor=2 * HORIZON_FACTOR)
    if two_horizons(calibration.observations):
        sentence = f"combination: the outcomes favour neither form by {LIKELIHOOD_RATIO:g} to 1"
    else:
        sentence = "combination: all healthy runs have about one length; two that differ by a factor 2 are needed"
        if calibration.learning_rate_ceiling.estimate is not None:
            sentence += " (until then the ceiling at S = 1 may be a budget over this length)"
    return [(sentence, (run,))]


def _left_out(calibration: Calibration) -> tuple[str, ...]:
    counts = ((calibration.num_failed, "failed"), (calibration.num_unknown, "unknown"))
    return tuple(f"runs left out because {word}: {count}" for count, word in counts if count)


def _warnings(calibration: Calibration) -> list[str]:
    seen = calibration.observations
    warnings = []
    if np.isinf(seen.sync_interval).any():
        warnings.append("runs with S = inf are left out: they have no place in a power law")
    if (seen.on_policy & seen.collapsed).any():
        warnings.append("collapses at S = 1 set the ceiling and are left out of the budget")
    above = seen.law_arm & ~calibration.budget_arm & seen.collapsed
    if above.any():
        warnings.append(
            f"collapses above the learning-rate ceiling ({int(above.sum())}) are left out of the budget: there runs at "
            "S = 1 are unstable too"
        )
    if seen.on_policy.any() and (seen.collapsed | seen.degraded)[seen.on_policy].all():
        warnings.append("every run at S = 1 is unstable, so what looks like staleness may be the rate alone")
    if seen.degraded.any():
        warnings.append(_other_reading(calibration))
    for bracket in calibration.brackets:
        if not bracket.monotone:
            warnings.append(
                f"S = {bracket.sync_interval:g}: not monotone, unstable at {bracket.smallest_unstable:.3g} but "
                f"stable at {bracket.largest_stable:.3g}; seeds differ, or another cause is at work"
            )
    if calibration.boundary_exponent.excludes(-1.0):
        lacking = not calibration.boundary_exponent_given_time.excludes(-1.0)
        unless = ", unless stable runs lacked the time to collapse" if lacking else ""
        warnings.append(f"the boundary exponent excludes -1{unless}: critical_product is no constant by this fit")
    if calibration.budget_exponent.excludes(-1.0):
        leaning = not calibration.budget_exponent_without_degraded.excludes(-1.0)
        unless = ", but not without the degraded runs" if leaning else ""
        warnings.append(f"the budget exponent excludes -1{unless}: budget is no constant by this fit")
    return warnings + _unspent(calibration)


def _other_reading(calibration: Calibration) -> str:
    other = calibration.boundary_exponent_collapsed_only
    said = "not known" if other.low is None else f"{other.estimate:.2f} [{other.low:.2f}, {other.high:.2f}]"
    number = int(calibration.observations.degraded.sum())
    return (
        f"degraded runs ({number}) count as unstable for the boundary (as stable its exponent is {said}), and for the "
        "budget until their decline only; if those would have collapsed soonest, the budget is too long"
    )


def _unspent(calibration: Calibration) -> list[str]:
    """Stable runs that were too short to collapse, unless the fit has allowed for it."""
    budget = calibration.budget.estimate
    seen = calibration.observations
    if budget is None or calibration.combination is Combination.MAX:
        return []
    stable = seen.law_arm & ~seen.collapsed & ~seen.degraded
    short = stable & (seen.learning_rate * seen.steps < budget)
    if not short.any():
        return []
    return [
        f"stable runs ({int(short.sum())}) ended before eta*steps reached the budget: they had no time to "
        "collapse, and the boundary may lie lower than fitted"
    ]

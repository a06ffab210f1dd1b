"""From a calibration to rates: the table over S, the risk of a run, and what to use for a horizon.

A new seed at (S, eta) collapses within T steps with probability p * F, averaged over the posterior: p that it
is unstable, F that an unstable run has collapsed by T. This needs both constraints violated. Where the data
decide for the min-form, either is enough and the probability is 1 - (1 - p) * (1 - F). Without collapse times
every unstable run counts as collapsed within the horizon (F = 1), and so does one at S = 1, where the time law
is not measured.

Where the data decide for neither form and T is longer than any run, nobody has seen whether healthy runs collapse
later. A run at eta * (longest run / T) spends no more eta*T than the longest run at eta did and drifts less in
a cycle, so under both forms it is at least as safe: its risk is bounded by that of the measured run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from meanfield.calibrate import Calibration
from meanfield.combination import Combination
from meanfield.estimate import Estimate
from meanfield.grids import NUM_ATOMS, Array

STALENESS, HORIZON, CEILING = "staleness", "horizon", "ceiling"
NUM_RATES = 241
"""Candidate rates between a third of the smallest and the largest tested one: steps of 2 to 4 %."""
RATE_FLOOR = 1.0 / 3.0
"""A recommendation rests on no rate below this share of the smallest tested one."""
_COMBINED: Mapping[Combination, Callable[[Array, Array], Array] | None] = {
    Combination.MAX: np.maximum,
    Combination.MIN: np.minimum,
    Combination.UNDECIDED: None,
}
"""How the boundary and budget / horizon give the largest rate; undecided data allow the boundary alone."""
_SHUFFLE = (np.arange(NUM_ATOMS) * 2531) % NUM_ATOMS
"""Pairs the atoms of two independent posteriors (2531 is odd, so this is a permutation of 2**12 places)."""


@dataclass(frozen=True)
class MaxRate:
    """Largest learning rate at one S that survives the horizon.

    Parameters
    ----------
    sync_interval : float [optimizer step]
    max_learning_rate : Estimate [1]
        Posterior of the rate at which half of the seeds stay stable.
    binding : str or None
        Which constraint sets it: staleness, horizon or ceiling.
    safe_learning_rate : float or None [1]
        Largest rate at which no more seeds than accepted degrade or collapse; None if not known or not asked for.
    """

    sync_interval: float
    max_learning_rate: Estimate
    binding: str | None
    safe_learning_rate: float | None = None


@dataclass(frozen=True)
class Query:
    """What is to be expected of one run; see `query`."""

    sync_interval: float
    learning_rate: float
    horizon: float
    risk: float | None
    collapse_step: Estimate
    binding: str | None


@dataclass(frozen=True)
class Recommendation:
    """An S and a rate whose predictive risk stays within the one asked for, and why these."""

    sync_interval: float
    learning_rate: float
    risk: float
    why: str


def collapse_risk(
    calibration: Calibration, sync_interval: float, *, learning_rate: Array, horizon: float
) -> Array | None:
    """Probability that a new seed collapses within the horizon, shape (m,), or None where S is not known.

    Parameters
    ----------
    calibration : Calibration
    sync_interval : float [optimizer step]
    learning_rate : array, shape (m,) [1]
    horizon : float [optimizer step]
    """
    if calibration.boundary is None or not calibration.answers_at(sync_interval):
        return None
    stretch = unseen_stretch(calibration, horizon)
    unstable = calibration.boundary.unstable_probability(sync_interval, stretch * learning_rate)
    if calibration.time_law is None or sync_interval < 2 or stretch > 1:
        return unstable
    in_time = calibration.time_law.collapsed_by(horizon, learning_rate)
    if calibration.combination is Combination.MIN:
        return 1.0 - (1.0 - unstable) * (1.0 - in_time)
    return unstable * in_time


def unstable_risk(
    calibration: Calibration, sync_interval: float, *, learning_rate: Array, horizon: float
) -> Array | None:
    """Probability that a new seed degrades or collapses within the horizon; arguments as `collapse_risk`.

    When a run degrades is not fitted, so unless the data have decided for one form an unstable run counts
    whatever the horizon: a low risk of collapse is no use where runs degrade instead.
    """
    if calibration.combination is not Combination.UNDECIDED:
        return collapse_risk(calibration, sync_interval, learning_rate=learning_rate, horizon=horizon)
    if calibration.boundary is None or not calibration.answers_at(sync_interval):
        return None
    stretch = unseen_stretch(calibration, horizon)
    return calibration.boundary.unstable_probability(sync_interval, stretch * learning_rate)


def unseen_stretch(calibration: Calibration, horizon: float) -> float:
    """How many times longer than the longest run the horizon is, at least 1; 1 where the data decide for a form."""
    if calibration.combination is not Combination.UNDECIDED or not len(calibration.observations):
        return 1.0
    return max(1.0, horizon / float(calibration.observations.steps.max()))


def max_rate(calibration: Calibration, sync_interval: float, *, horizon: float) -> MaxRate:
    """Largest rate that survives the horizon at S, with its interval and what sets it."""
    boundary = calibration.boundary
    if boundary is None or not calibration.answers_at(sync_interval):
        return MaxRate(sync_interval, Estimate.unknown(), None)
    log_rate = boundary.log_max_rate(sync_interval)
    law = boundary.log_power_law(sync_interval) if sync_interval >= 2 else np.full_like(log_rate, np.inf)
    capped = boundary.log_ceiling is not None and float(np.mean(log_rate < law)) > 0.5
    falls = bool(np.median(boundary.exponent) > 0)
    binding = CEILING if capped else (STALENESS if falls else None)
    stretch = unseen_stretch(calibration, horizon)
    if stretch > 1:
        log_rate, binding = log_rate - np.log(stretch), HORIZON
    time_law, combine = calibration.time_law_at_law_two, _COMBINED[calibration.combination]
    if time_law is not None and combine is not None and sync_interval >= 2:
        log_spent = (time_law.log_time + time_law.mean_log_rate)[_SHUFFLE] - np.log(horizon)
        combined = combine(log_rate, log_spent)
        binding = HORIZON if float(np.mean(combined != log_rate)) > 0.5 else binding
        log_rate = combined
    estimate = Estimate.from_atoms(np.exp(log_rate), confidence=calibration.confidence)
    return MaxRate(sync_interval, estimate, binding)


def measured_intervals(calibration: Calibration) -> list[float]:
    """Finite S of the runs, rising."""
    intervals = np.unique(calibration.observations.sync_interval)
    return [float(sync_interval) for sync_interval in intervals if np.isfinite(sync_interval)]


def query(calibration: Calibration, sync_interval: float, *, learning_rate: float, horizon: float) -> Query:
    """Risk, collapse step and binding constraint of one run.

    The collapse step is that of a new run if it is unstable: median and interval of the prediction.
    """
    risk = collapse_risk(calibration, sync_interval, learning_rate=np.array([learning_rate]), horizon=horizon)
    law = calibration.time_law
    step = Estimate.unknown()
    if law is not None and sync_interval >= 2:
        step = law.collapse_step(learning_rate, confidence=calibration.confidence)
    binding = max_rate(calibration, sync_interval, horizon=horizon).binding
    return Query(sync_interval, learning_rate, horizon, None if risk is None else float(risk[0]), step, binding)


def recommend_rate(calibration: Calibration, sync_interval: float, *, horizon: float, risk: float) -> float | None:
    """Largest rate at S below which at most the accepted share of seeds is unstable; None if there is none.

    It rests on no rate above the largest tested one, nor below a third of the smallest, nor below the smallest
    where larger rates were stable although smaller ones were not.
    """
    rates = calibration.observations.learning_rate
    if not len(rates):
        return None
    monotone = all(one.monotone for one in calibration.brackets if one.sync_interval == sync_interval)
    smallest = rates.min() * (RATE_FLOOR if monotone else 1.0)
    candidates = np.geomspace(smallest, rates.max(), NUM_RATES) / unseen_stretch(calibration, horizon)
    risks = unstable_risk(calibration, sync_interval, learning_rate=candidates, horizon=horizon)
    if risks is None or risks[0] > risk:
        return None
    too_risky = np.flatnonzero(risks > risk)
    return float(candidates[int(too_risky[0]) - 1 if len(too_risky) else -1])


def _recommendation(
    calibration: Calibration, sync_interval: float, learning_rate: float, *, horizon: float, why: str
) -> Recommendation:
    collapse = collapse_risk(calibration, sync_interval, learning_rate=np.array([learning_rate]), horizon=horizon)
    assert collapse is not None, "a rate is recommended only where the boundary is known"
    return Recommendation(sync_interval, learning_rate, float(collapse[0]), why)


def _few(risk: float) -> str:
    return f"at most {100 * risk:.3g}% of new seeds degrade or collapse"


def recommend_at(
    calibration: Calibration, sync_interval: float, *, horizon: float, risk: float
) -> Recommendation | None:
    """Largest safe rate at the S that the user has fixed."""
    rate = recommend_rate(calibration, sync_interval, horizon=horizon, risk=risk)
    if rate is None:
        return None
    binding = max_rate(calibration, sync_interval, horizon=horizon).binding
    why = f"the largest rate at this S at which {_few(risk)}; {binding} limits it"
    return _recommendation(calibration, sync_interval, rate, horizon=horizon, why=why)


def recommend_interval(
    calibration: Calibration, *, learning_rate: float, horizon: float, risk: float
) -> Recommendation | None:
    """Largest measured S at which the rate that the user has fixed is safe."""
    for sync_interval in reversed(measured_intervals(calibration)):
        safe = recommend_rate(calibration, sync_interval, horizon=horizon, risk=risk)
        if safe is not None and learning_rate <= safe:
            why = f"the largest measured S at which {_few(risk)} at this rate"
            return _recommendation(calibration, sync_interval, learning_rate, horizon=horizon, why=why)
    return None


def recommend(calibration: Calibration, *, horizon: float, risk: float) -> Recommendation | None:
    """S and rate for a horizon when the user has fixed neither: see `choose_interval`."""
    rates = {
        sync_interval: rate
        for sync_interval in measured_intervals(calibration)
        if (rate := recommend_rate(calibration, sync_interval, horizon=horizon, risk=risk)) is not None
    }
    if not rates:
        return None
    bindings = {S: max_rate(calibration, S, horizon=horizon).binding for S in rates}
    chosen, why = choose_interval(rates, bindings)
    return _recommendation(calibration, chosen, rates[chosen], horizon=horizon, why=why)


def choose_interval(rates: Mapping[float, float], bindings: Mapping[float, str | None]) -> tuple[float, str]:
    """S with the largest safe rate, or a larger one that costs no rate; and why.

    If the ceiling or the horizon limits that rate, S does not, so the largest S with the same limit is taken.
    What a synchronization costs is not in a table of runs, so a rate is never traded for a rarer one.

    Parameters
    ----------
    rates : mapping of S [optimizer step] to the largest safe rate there [1]
    bindings : mapping of S to the constraint that sets it
    """
    if len(rates) == 1:
        return next(iter(rates)), "the only measured S at which a safe rate is known"
    fastest = max(rates, key=lambda sync_interval: rates[sync_interval])
    binding = bindings[fastest]
    if binding == STALENESS:
        chosen, limit = fastest, "staleness limits the rate at every S"
    else:
        chosen, limit = max(S for S in rates if bindings[S] == binding), f"the {binding} limits the rate here, not S"
    if chosen == max(rates):
        return chosen, f"the largest safe rate; {limit}"
    larger = "a larger S costs rate (see the table), but what a synchronization costs you is not known here"
    return chosen, f"the largest safe rate; {limit}; {larger}: give --sync-interval to fix S"

"""Verdicts on the two laws, by rules that were fixed before any run (claims C1 and C2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from meanfield.calibrate import Calibration
from meanfield.estimate import Estimate

SUPPORTED, NOT_SUPPORTED, INCONCLUSIVE = "supported", "not supported", "inconclusive"
SLOPE_WIDTH = 0.5
"""Widest interval of the budget exponent that can support Law 2."""
BUDGET_FACTOR = 1.5
"""Largest ratio of the budgets at two S that can support Law 2."""


@dataclass(frozen=True)
class Verdict:
    """What the data say about one claim.

    Parameters
    ----------
    claim_id : str
        As in theory/claims.py.
    word : str
        supported, not supported or inconclusive.
    sentence : str
        The reason, with the numbers.
    numbers : mapping of str to float or None
        The numbers the rule used.
    """

    claim_id: str
    word: str
    sentence: str
    numbers: Mapping[str, float | None]


def law_one(calibration: Calibration) -> Verdict:
    """Law 1: the boundary exponent's interval contains -1 and excludes -1/2; degraded runs count as unstable.

    Numbers: exponent, exponent_low, exponent_high.
    """
    return _judge_boundary(calibration.boundary_exponent)


def law_one_collapsed_only(calibration: Calibration) -> Verdict:
    """Law 1 under the other reading: degraded runs count as stable. Numbers as `law_one`."""
    return _judge_boundary(calibration.boundary_exponent_collapsed_only)


def _judge_boundary(exponent: Estimate) -> Verdict:
    numbers = _numbers("exponent", exponent)
    if not exponent.identified:
        return Verdict("C1", INCONCLUSIVE, "The boundary exponent is not identified by these runs.", numbers)
    said = f"The boundary exponent is {_said(exponent)}, which"
    if exponent.excludes(-1.0):
        return Verdict("C1", NOT_SUPPORTED, f"{said} excludes -1.", numbers)
    if exponent.excludes(-0.5):
        return Verdict("C1", SUPPORTED, f"{said} contains -1 and excludes -1/2.", numbers)
    return Verdict("C1", INCONCLUSIVE, f"{said} contains both -1 and -1/2.", numbers)


def law_two(calibration: Calibration) -> Verdict:
    """Law 2: the budget exponent's narrow interval contains -1, and the budgets at each S agree.

    Numbers: slope, slope_low, slope_high, slope_width, budget_ratio (largest over smallest budget of one S;
    None with fewer than two S that have two timed collapses).
    """
    slope = calibration.budget_exponent
    width = None if slope.low is None or slope.high is None else slope.high - slope.low
    ratio = _budget_ratio(calibration)
    numbers = {**_numbers("slope", slope), "slope_width": width, "budget_ratio": ratio}
    if not slope.identified or width is None:
        return Verdict("C2", INCONCLUSIVE, "The budget exponent is not identified by these runs.", numbers)
    said = f"The slope of log T on log eta is {_said(slope)}"
    if slope.excludes(-1.0):
        return Verdict("C2", NOT_SUPPORTED, f"{said}, which excludes -1.", numbers)
    if width >= SLOPE_WIDTH:
        return Verdict("C2", INCONCLUSIVE, f"{said}, too wide to tell.", numbers)
    if ratio is None:
        return Verdict("C2", INCONCLUSIVE, f"{said}, but fewer than two S have two timed collapses.", numbers)
    spread = f"the budgets at each S lie within a factor {ratio:.2f}"
    if ratio > BUDGET_FACTOR:
        return Verdict("C2", INCONCLUSIVE, f"{said}, but {spread}.", numbers)
    return Verdict("C2", SUPPORTED, f"{said}, and {spread}.", numbers)


def _numbers(name: str, estimate: Estimate) -> dict[str, float | None]:
    return {name: estimate.estimate, f"{name}_low": estimate.low, f"{name}_high": estimate.high}


def _said(estimate: Estimate) -> str:
    return f"{estimate.estimate:.2f} [{estimate.low:.2f}, {estimate.high:.2f}]"


def _budget_ratio(calibration: Calibration) -> float | None:
    budgets = [one.estimate for _, one in calibration.interval_budgets if one.estimate is not None]
    return max(budgets) / min(budgets) if len(budgets) > 1 else None

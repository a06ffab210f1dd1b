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
        As in theory/claims.
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

    Where the data cannot tell whether stable runs merely lacked the time to collapse, the rule must say the same
    with that time allowed for; otherwise the verdict is inconclusive.
    Numbers: exponent, exponent_low, exponent_high, and the same with given_time.
    """
    return _judge_boundary(calibration.boundary_exponent, calibration.boundary_exponent_given_time)


def law_one_collapsed_only(calibration: Calibration) -> Verdict:
    """Law 1 under the other reading: degraded runs count as stable. Numbers as `law_one`."""
    given_time = calibration.boundary_exponent_collapsed_only_given_time
    return _judge_boundary(calibration.boundary_exponent_collapsed_only, given_time)


def _judge_boundary(exponent: Estimate, given_time: Estimate) -> Verdict:
    numbers = {**_numbers("exponent", exponent), **_numbers("exponent_given_time", given_time)}
    word, said = _boundary_word(exponent)
    other, said_given_time = _boundary_word(given_time)
    if word == other and _above_law(exponent) == _above_law(given_time):
        return Verdict("C1", word, f"{said}.", numbers)
    doubt = "stable runs may have lacked the time to collapse, and with that allowed for"
    return Verdict("C1", INCONCLUSIVE, f"{said}; but {doubt} {_continued(said_given_time)}.", numbers)


def _above_law(exponent: Estimate) -> bool:
    """Whether the whole interval lies above -1: two intervals on either side of -1 do not agree."""
    return exponent.low is not None and exponent.low > -1.0


def _boundary_word(exponent: Estimate) -> tuple[str, str]:
    if not exponent.identified:
        interval = "" if exponent.low is None else f" ({_said(exponent)})"
        return INCONCLUSIVE, f"The boundary exponent is not identified by these runs{interval}"
    said = f"The boundary exponent is {_said(exponent)}, which"
    if exponent.excludes(-1.0):
        return NOT_SUPPORTED, f"{said} excludes -1"
    if exponent.excludes(-0.5):
        return SUPPORTED, f"{said} contains -1 and excludes -1/2"
    return INCONCLUSIVE, f"{said} contains both -1 and -1/2"


def law_two(calibration: Calibration) -> Verdict:
    """Law 2: the budget exponent's narrow interval contains -1, and the budgets at each S agree.

    Where degraded runs are left out the rule must say the same; otherwise the verdict is inconclusive.
    Numbers: slope, slope_low, slope_high, slope_width, the slope without_degraded, and budget_ratio (largest over
    smallest budget of one S; None with fewer than two S that have two timed collapses).
    """
    slope, without = calibration.budget_exponent, calibration.budget_exponent_without_degraded
    ratio = _budget_ratio(calibration)
    numbers = {
        **_numbers("slope", slope),
        "slope_width": _width(slope),
        **_numbers("slope_without_degraded", without),
        "budget_ratio": ratio,
    }
    word, said = _budget_word(slope, ratio)
    other, said_without = _budget_word(without, ratio)
    if word == other and _above_law(slope) == _above_law(without):
        return Verdict("C2", word, f"{said}.", numbers)
    return Verdict("C2", INCONCLUSIVE, f"{said}; but without the degraded runs {_continued(said_without)}.", numbers)


def _budget_word(slope: Estimate, ratio: float | None) -> tuple[str, str]:
    width = _width(slope)
    if not slope.identified or width is None:
        interval = "" if slope.low is None else f" ({_said(slope)})"
        return INCONCLUSIVE, f"The budget exponent is not identified by these runs{interval}"
    said = f"The slope of log T on log eta is {_said(slope)}"
    if slope.excludes(-1.0):
        return NOT_SUPPORTED, f"{said}, which excludes -1"
    if width >= SLOPE_WIDTH:
        return INCONCLUSIVE, f"{said}, too wide to tell"
    if ratio is None:
        return INCONCLUSIVE, f"{said}, but fewer than two S have two timed collapses"
    spread = f"the budgets at each S lie within a factor {ratio:.2f}"
    if ratio > BUDGET_FACTOR:
        return INCONCLUSIVE, f"{said}, but {spread}"
    return SUPPORTED, f"{said}, and {spread}"


def _width(estimate: Estimate) -> float | None:
    return None if estimate.low is None or estimate.high is None else estimate.high - estimate.low


def _continued(sentence: str) -> str:
    return sentence[0].lower() + sentence[1:]


def _numbers(name: str, estimate: Estimate) -> dict[str, float | None]:
    return {name: estimate.estimate, f"{name}_low": estimate.low, f"{name}_high": estimate.high}


def _said(estimate: Estimate) -> str:
    return f"{estimate.estimate:.2f} [{estimate.low:.2f}, {estimate.high:.2f}]"


def _budget_ratio(calibration: Calibration) -> float | None:
    budgets = [one.estimate for _, one in calibration.interval_budgets if one.estimate is not None]
    return max(budgets) / min(budgets) if len(budgets) > 1 else None

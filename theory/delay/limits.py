"""S*a on the boundary for long cycles, for the schedules that are a family in S.

Momentum is short against a long cycle, so it does not enter; heavy ball only scales the step.
"""

import numpy as np
from scipy.optimize import brentq

from theory.delay.crossings import affine_intervals
from theory.delay.cycles import Past, lagged
from theory.delay.formulas import FIXED_LIMIT, MIXED_PRODUCT
from theory.delay.schedules import Fixed, Late, Mixed, Periodic, Schedule
from theory.numeric import numpy_function

_LOWEST_SINC = 4.493409457909064
"""First angle above 0 at which tan(w) = w: sin(w)/w is lowest there."""


def limit(schedule: Schedule, stale_share: float, weight_decay: float) -> float | None:
    """Limit of S*a at the upper end, S to infinity; None where S*a grows without bound or there is no family.

    S is the sync interval, the number of mixed lags, or one more than a fixed lag.
    """
    fresh = 1.0 - stale_share + weight_decay
    if isinstance(schedule, Periodic):
        return _synced_limit(0, stale_share, weight_decay)
    if isinstance(schedule, Late):
        return _synced_limit(schedule.cycles_late, stale_share, weight_decay)
    if isinstance(schedule, Fixed):
        return float(numpy_function(FIXED_LIMIT)(stale_share, weight_decay)) if fresh < stale_share else None
    return _mixed_limit(fresh / stale_share, stale_share) if isinstance(schedule, Mixed) else None


def upper_end(weights: np.ndarray[tuple[int], np.dtype[np.float64]], past: Past) -> float:
    """Upper end of the first stable interval for lags mixed in these parts."""
    return affine_intervals(*lagged(weights, past))[0][1]


def _synced_limit(cycles_late: int, stale_share: float, weight_decay: float) -> float | None:
    """Sync points follow a fixed lag of d cycles at the rate (1 - e^(-fresh*S*a))/fresh, solved for S*a."""
    weights = np.zeros(cycles_late + 1)
    weights[-1] = 1.0
    rate = upper_end(weights, Past(0.0, stale_share, weight_decay))
    fresh = 1.0 - stale_share + weight_decay
    if fresh * rate >= 1.0 - 1e-12:
        return None
    return rate if abs(fresh) < 1e-15 else float(-np.log1p(-fresh * rate) / fresh)


def _mixed_limit(ratio: float, stale_share: float) -> float | None:
    """At the crossing angle w, sin(w)/w = -ratio, on the way down of sin(w)/w."""
    if -ratio <= np.sinc(_LOWEST_SINC / np.pi):
        return None
    angle = brentq(lambda w: np.sinc(w / np.pi) + ratio, 1e-9, _LOWEST_SINC, xtol=1e-14)
    return float(numpy_function(MIXED_PRODUCT)(angle, stale_share))

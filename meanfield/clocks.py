"""The clock eta*t at an exit -> the optimizer step at which it shows; one rule for every simulation."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

STEP_TOLERANCE = 1e-10
"""Relative rounding of eta*t at exit that does not count as one more step."""


def first_step(clock: ArrayLike, learning_rate: ArrayLike) -> NDArray[np.float64]:
    """First whole optimizer step at which eta*t has reached a clock, at least 1; inf if the clock is.

    Parameters
    ----------
    clock, learning_rate : arrays that broadcast [1]

    Returns
    -------
    array [optimizer step]

    >>> first_step([0.8, 0.8000001, 0.0], 0.1).tolist()
    [8.0, 9.0, 1.0]
    """
    steps: NDArray[np.float64] = np.asarray(clock) / np.asarray(learning_rate)
    return np.maximum(1.0, np.ceil(steps * (1.0 - STEP_TOLERANCE)))

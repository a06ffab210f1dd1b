"""A number with its interval: the one shape in which every fitted quantity is reported."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Estimate:
    """A point estimate with an equal-tailed interval; all None when the data cannot say.

    Parameters
    ----------
    estimate : float or None
        Posterior median, in the unit of the quantity.
    low, high : float or None
        Ends of the equal-tailed interval at the confidence stated beside the estimate.
    identified : bool
        False when the number exists but must not be relied on (the data reject the model behind it,
        or mostly repeat the prior).
    """

    estimate: float | None
    low: float | None
    high: float | None
    identified: bool = True

    @classmethod
    def unknown(cls) -> Estimate:
        """Nothing can be said: every number is None."""
        return cls(None, None, None, identified=False)

    @classmethod
    def from_atoms(cls, atoms: NDArray[np.float64], *, confidence: float, identified: bool = True) -> Estimate:
        """Median and equal-tailed interval of equally weighted posterior atoms.

        Parameters
        ----------
        atoms : array, shape (n,)
            Equally weighted values.
        confidence : float [1]
            Probability inside the interval, in (0, 1).
        identified : bool
            Passed on.

        >>> round(Estimate.from_atoms(np.linspace(0.0, 1.0, 101), confidence=0.9).low, 12)
        0.05
        """
        tail = 0.5 * (1.0 - confidence)
        low, middle, high = np.quantile(atoms, [tail, 0.5, 1.0 - tail])
        return cls(float(middle), float(low), float(high), identified)

    def map_ends(self, function: Callable[[float], float]) -> Estimate:
        """Apply a monotone function to the three numbers (increasing: the order is kept)."""
        if self.estimate is None or self.low is None or self.high is None:
            return self
        return Estimate(function(self.estimate), function(self.low), function(self.high), self.identified)

    def contains(self, value: float) -> bool:
        """Whether the interval exists and contains `value`."""
        return self.low is not None and self.high is not None and self.low <= value <= self.high

    def excludes(self, value: float) -> bool:
        """Whether the interval exists, is identified, and does not contain `value`."""
        return self.identified and self.low is not None and not self.contains(value)

    def said(self) -> str:
        """Return the number with its interval, three digits each, for a table or a sentence.

        >>> Estimate(-1.0, -1.234, -0.5).said()
        '-1 [-1.23, -0.5]'
        """
        if self.estimate is None:
            return "not known"
        return f"{self.estimate:.3g} [{self.low:.3g}, {self.high:.3g}]"

    def to_json(self) -> dict[str, float | bool | None]:
        """Return a dictionary with the keys estimate, low, high, identified."""
        return {
            "estimate": self.estimate,
            "low": self.low,
            "high": self.high,
            "identified": self.identified,
        }

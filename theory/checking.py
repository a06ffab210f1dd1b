"""What a numeric check says: a list of comparisons, each with its error and what is allowed."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike


@dataclass(frozen=True)
class Comparison:
    """One number held against another way to get it.

    Parameters
    ----------
    what : str
        What is compared with what.
    error : float
        Largest disagreement found.
    allowed : float
        Largest disagreement that counts as none; NaN never passes.
    """

    what: str
    error: float
    allowed: float

    @property
    def holds(self) -> bool:
        """Whether the error is within what is allowed."""
        return bool(self.error <= self.allowed)


Check = Callable[[], tuple[Comparison, ...]]
"""A check takes nothing and returns its comparisons; its docstring says in a sentence what it does."""


def close(what: str, found: ArrayLike, expected: ArrayLike, *, rtol: float) -> Comparison:
    """Compare by the largest |found - expected|, as a share of the largest |expected|.

    >>> close("half", 0.5, 0.5, rtol=0.0).holds
    True
    """
    found, expected = np.asarray(found, dtype=np.float64), np.asarray(expected, dtype=np.float64)
    scale = float(np.max(np.abs(expected)))
    return Comparison(what, float(np.max(np.abs(found - expected))) / (scale if scale > 0.0 else 1.0), rtol)


def never_above(what: str, values: ArrayLike, bounds: ArrayLike) -> Comparison:
    """Compare by the largest value/bound, which must not exceed one by more than rounding.

    >>> never_above("two below four", 2.0, 4.0).error
    0.5
    """
    values, bounds = np.asarray(values, dtype=np.float64), np.asarray(bounds, dtype=np.float64)
    return Comparison(what, float(np.max(values / bounds)), 1.0 + 1e-12)

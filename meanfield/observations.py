"""What a fit needs from a runs table, as plain arrays in an order that does not depend on the table's."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from meanfield.outcomes import Outcome

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Observations:
    """Runs whose outcome is known, sorted by (S, eta, steps, outcome, onset).

    Parameters
    ----------
    sync_interval : array, shape (n,) [optimizer step]
        May hold inf (never refreshed).
    learning_rate : array, shape (n,) [1]
    steps : array, shape (n,) [optimizer step]
        Length of the run.
    outcome : int8 array, shape (n,)
        Codes of `Outcome`: stable, degraded or collapsed only.
    low, high : array, shape (n,) [optimizer step]
        Onset interval (low, high] of a collapsed or degraded run; NaN for a stable one.
    """

    sync_interval: Array
    learning_rate: Array
    steps: Array
    outcome: NDArray[np.int8]
    low: Array
    high: Array

    def __len__(self) -> int:
        return len(self.steps)

    @property
    def collapsed(self) -> Mask:
        """Which runs collapsed."""
        mask: Mask = self.outcome == Outcome.COLLAPSED.code
        return mask

    @property
    def degraded(self) -> Mask:
        """Which runs degraded."""
        mask: Mask = self.outcome == Outcome.DEGRADED.code
        return mask

    @property
    def timed(self) -> Mask:
        """Which collapsed runs have a known onset: (0, steps] says nothing of a time, (0, 1] does."""
        mask: Mask = self.collapsed & ((self.low > 0) | (self.high < self.steps))
        return mask

    @property
    def law_arm(self) -> Mask:
        """Runs that enter the power law: finite S >= 2 (at S = 1 nothing is stale, so it is another regime)."""
        return (self.sync_interval >= 2) & np.isfinite(self.sync_interval)

    @property
    def on_policy(self) -> Mask:
        """Runs below two steps of staleness (S = 1), which identify the learning-rate ceiling."""
        return self.sync_interval < 2

    @property
    def law_intervals(self) -> Array:
        """Distinct S of the power-law arm, rising."""
        return np.unique(self.sync_interval[self.law_arm])

    @property
    def watched(self) -> Array:
        """Step until which a run was seen not to have collapsed: its end, or the onset of its decline."""
        return np.where(self.degraded, self.low, self.steps)

    def where(self, mask: Mask) -> Observations:
        """Return the runs selected by `mask`."""
        return Observations(*(getattr(self, field.name)[mask] for field in fields(self)))


def observe(runs: pd.DataFrame) -> Observations:
    """Arrays of a validated runs table; failed and unknown runs are left out.

    A collapsed run without any onset has the interval (0, steps]; one with a step alone has (step - 1, step].
    A degraded run without any onset is censored at once (onset 0): when its decline began is not known.
    """
    known = {Outcome.STABLE.word, Outcome.DEGRADED.word, Outcome.COLLAPSED.word}
    kept = runs[runs["outcome"].isin(known)]
    steps = kept["steps"].to_numpy(dtype=np.float64)
    outcome = np.array([Outcome.from_word(word).code for word in kept["outcome"]], dtype=np.int8)
    point = _column(kept, "collapse_step")
    low = np.where(np.isnan(_column(kept, "collapse_step_low")), point - 1.0, _column(kept, "collapse_step_low"))
    high = np.where(np.isnan(_column(kept, "collapse_step_high")), point, _column(kept, "collapse_step_high"))
    declined = outcome != Outcome.STABLE.code
    low = np.where(declined, np.where(np.isnan(low), 0.0, low), np.nan)
    high = np.where(declined, np.where(np.isnan(high), steps, high), np.nan)
    sync_interval = kept["sync_interval"].to_numpy(dtype=np.float64)
    learning_rate = kept["learning_rate"].to_numpy(dtype=np.float64)
    order = np.lexsort((high, low, outcome, steps, learning_rate, sync_interval))
    return Observations(
        sync_interval[order], learning_rate[order], steps[order], outcome[order], low[order], high[order]
    )


def _column(frame: pd.DataFrame, name: Hashable) -> Array:
    if name not in frame.columns:
        return np.full(len(frame), np.nan)
    values: Array = frame[name].to_numpy(dtype=np.float64)
    return values

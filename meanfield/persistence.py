"""Do directions persist across the boundary? Cosines of raw gradients below and above it, and how far runs get.

The memory map (claim C5) says that successive cycles point the same way only where S*eta is above the threshold, and
that a run leaves at one distance from where it started (claim C6).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from meanfield.boundary import log_rate_at
from meanfield.calibrate import Calibration
from meanfield.estimate import Estimate
from meanfield.grids import Array
from meanfield.growth import MIN_RUNS, resamples
from meanfield.outcomes import Outcome

if TYPE_CHECKING:
    import xarray as xr

COSINES = ("gradient_cosine", "pair_cosine", "cycle_cosine", "cycle_cosine_at_onset")
"""Variables of the measures that are compared."""


@dataclass(frozen=True)
class Contrast:
    """Mean of a cosine [1] over the runs below and above the boundary of their S."""

    name: str
    below: Estimate
    above: Estimate


@dataclass(frozen=True)
class Persistence:
    """What the directions and distances of the runs at S >= 2 say.

    Parameters
    ----------
    contrasts : tuple of Contrast
        One per name in `COSINES`. A cycle of length S averages S gradients, so its cosine rises with S by itself; both
        sides hold the same S.
    exit_distance : Estimate
        Median distance of the weights from the start at the onset of a collapse, in units of the weights.
    exit_spread : Estimate [1]
        Largest over smallest of these medians taken at each S with enough collapses: 1 if there is one radius.
    """

    contrasts: tuple[Contrast, ...]
    exit_distance: Estimate
    exit_spread: Estimate


def persistence(measures: xr.Dataset, *, calibration: Calibration) -> Persistence:
    """Compare the cosines on both sides of the boundary, and the distances at which runs collapse.

    Parameters
    ----------
    measures : Dataset
        As `meanfield.results.MEASURES` says.
    calibration : Calibration
        Of the same runs.

    Source: claims C5 and C6 (theory/claims).
    """
    below, above = _sides(measures, calibration)
    confidence = calibration.confidence
    contrasts = tuple(
        Contrast(name, *(_mean(measures[name].values[side], confidence) for side in (below, above))) for name in COSINES
    )
    outcome = measures["outcome"].isel(horizon=-1).values
    collapsed = (outcome == Outcome.COLLAPSED.code) & (below | above)
    distance = measures["displacement_at_onset"].values
    by_interval = [_medians(distance[i][collapsed[i]], stream=i + 1) for i in range(len(distance))]
    known = np.array([atoms for atoms in by_interval if atoms is not None])
    spread = Estimate.unknown()
    if len(known) > 1:
        spread = Estimate.from_atoms(known.max(axis=0) / known.min(axis=0), confidence=confidence)
    everywhere = _medians(distance[collapsed])
    middle = Estimate.unknown() if everywhere is None else Estimate.from_atoms(everywhere, confidence=confidence)
    return Persistence(contrasts, middle, spread)


def _sides(measures: xr.Dataset, calibration: Calibration) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Runs below and above the boundary of their own S, at each S >= 2 that has one; shape (S, eta, seed)."""
    seen = calibration.observations
    rates = measures["learning_rate"].values
    below = np.zeros(measures["pair_cosine"].shape, bool)
    above = np.zeros_like(below)
    for i, S in enumerate(measures["sync_interval"].values):
        log_rate = log_rate_at(seen, seen.collapsed | seen.degraded, S) if S >= 2 else None
        if log_rate is not None:
            edge = np.exp(np.median(log_rate))
            below[i], above[i] = (rates <= edge)[:, None], (rates > edge)[:, None]
    return below, above


def _mean(values: Array, confidence: float) -> Estimate:
    finite = values[np.isfinite(values)].astype(np.float64)
    if len(finite) < MIN_RUNS:
        return Estimate.unknown()
    return Estimate.from_atoms(finite[resamples(len(finite))].mean(axis=1), confidence=confidence)


def _medians(values: Array, *, stream: int = 0) -> Array | None:
    finite = values[np.isfinite(values)].astype(np.float64)
    if len(finite) < MIN_RUNS:
        return None
    medians: Array = np.median(finite[resamples(len(finite), stream=stream)], axis=1)
    return medians

"""Persistent drift in numbers: when a run collapses, and through which exit, for arrays of (S, eta).

Reduced form of theory/persistent.py: displacements are in units of cumulative learning rate at full drift speed
(divided by v) and drives in units of the noise (divided by sigma). Nothing is divided by the feedback inside a
cycle, so its limit 0, the memory map, needs no care.
"""

from __future__ import annotations

import math
from dataclasses import astuple, dataclass
from enum import Enum

import numpy as np
from numpy.typing import ArrayLike, NDArray

from meanfield import kernels
from meanfield.clocks import first_step
from meanfield.grids import Array
from meanfield.parameters import store_positive, store_within
from theory.errors import InputError


class Exit(Enum):
    """Through which exit a run left, if it did; source: claim C6 (theory/claims)."""

    NONE = (0, "The run stayed inside to the end.")
    BATCH = (1, "The drift at the end of a cycle reached the radius at which a batch stops being usable.")
    REGION = (2, "The displacement in all left the region where the surrogate is valid.")

    code: int
    sentence: str

    def __init__(self, code: int, sentence: str) -> None:
        self.code = code
        self.sentence = sentence


@dataclass(frozen=True, kw_only=True)
class PersistentParameters:
    """Parameters of persistent drift in reduced form.

    Parameters
    ----------
    gain_within : float [1]
        k_w*v/sigma: rise of the drive inside a cycle per unit of eta*t at full speed; in [0, inf).
    gain_across : float [1]
        k_s*v/sigma: what a sync turns the drift of a cycle into, per unit of it; in [0, inf).
    retention : float [1]
        rho: share of the memory drive that a sync keeps; in [0, 1].
    honest_drive, initial_drive : float [1]
        h/sigma and m0/sigma; in [0, inf). With both 0 nothing moves.
    exit_radius : float [1]
        R/v, the displacement in all at exit, in eta*t at full speed; positive and finite.
    batch_radius : float [1]
        R_batch/v, the displacement at the end of a cycle at exit; positive, inf for a run without this exit.

    Raises
    ------
    InputError
        If a value is outside its range.

    Source: claims C5 and C6 (theory/claims); theory/persistent.py.

    >>> model = PersistentParameters(gain_within=0, gain_across=50, retention=0, honest_drive=0,
    ...                              initial_drive=0.1, exit_radius=0.8, batch_radius=math.inf)
    >>> model.critical_product
    0.02
    """

    gain_within: float
    gain_across: float
    retention: float
    honest_drive: float
    initial_drive: float
    exit_radius: float
    batch_radius: float

    def __post_init__(self) -> None:
        for name in ("gain_within", "gain_across", "honest_drive", "initial_drive"):
            store_within(self, name, math.inf, "For a model without it use 0.")
        store_within(self, "retention", 1.0, "For a memory that holds one cycle only use 0.")
        store_positive(self, "exit_radius", "Give eta*T at collapse for saturated drift, for example 0.8.")
        if self.batch_radius != math.inf:
            store_positive(self, "batch_radius", "For a run without this exit use inf.")

    @property
    def critical_product(self) -> float:
        """S*eta on the boundary at h = 0 [1]; inf where memory dies at any S*eta, 0 where none is lost."""
        lost = 1.0 - self.retention
        if lost == 0.0 or self.gain_across == 0.0:
            return 0.0 if lost == 0.0 else math.inf
        if self.gain_within == 0.0:
            return lost / self.gain_across
        return math.log1p(lost * self.gain_within / self.gain_across) / self.gain_within


@dataclass(frozen=True, eq=False)
class Exits:
    """How runs end; every array has the broadcast shape of S and eta.

    Parameters
    ----------
    collapse_step : float array [optimizer step]
        First step at which an exit has fired; inf where none does within the horizon.
    cumulative_learning_rate : float array [1]
        eta*t at exit, located inside its cycle; inf likewise.
    exit : int8 array
        Codes of `Exit`.
    """

    collapse_step: Array
    cumulative_learning_rate: Array
    exit: NDArray[np.int8]


def persistent_exits(
    parameters: PersistentParameters, *, sync_intervals: ArrayLike, learning_rates: ArrayLike, horizon: float
) -> Exits:
    """When and how runs of persistent drift end.

    Parameters
    ----------
    parameters : PersistentParameters
    sync_intervals : array [optimizer step]
        At least 1; inf for a behaviour policy that is never refreshed, which has no end of a cycle.
    learning_rates : array [1]
        Positive and finite; broadcast against `sync_intervals`.
    horizon : float [optimizer step]
        At least 1 and finite.

    Returns
    -------
    Exits

    Raises
    ------
    InputError
        If a value is outside its range.

    Source: claims C5 and C6 (theory/claims). No error beyond rounding: the flow is explicit.
    """
    S, eta = np.broadcast_arrays(
        np.asarray(sync_intervals, dtype=np.float64), np.asarray(learning_rates, dtype=np.float64)
    )
    if not np.all(S >= 1.0):
        raise InputError("sync_intervals", "be >= 1", sync_intervals, "For a fully on-policy run use 1.")
    if not np.all((eta > 0.0) & np.isfinite(eta)):
        raise InputError("learning_rates", "be positive and finite", learning_rates, "Give step sizes such as 1e-3.")
    if not 1.0 <= horizon < math.inf:
        raise InputError("horizon", "be a number >= 1", horizon, "Give the optimizer steps of the run.")
    num_cycles = np.maximum(1, np.ceil(horizon / S)).astype(np.int64)
    rows = np.array([astuple(parameters)])
    clocks, codes = exit_clocks(rows, products=(S * eta).ravel(), num_cycles=num_cycles.ravel())
    clocks, codes = clocks.reshape(S.shape), codes.reshape(S.shape)
    steps = first_step(clocks, eta)
    ends = steps <= horizon
    return Exits(
        np.where(ends, steps, np.inf),
        np.where(ends, clocks, np.inf),
        np.where(ends, codes, np.int8(Exit.NONE.code)),
    )


def exit_clocks(rows: Array, *, products: Array, num_cycles: NDArray[np.int64]) -> tuple[Array, NDArray[np.int8]]:
    """eta*t at exit [1] and code of the exit for many parameters at once, unchecked.

    Parameters
    ----------
    rows : array, shape (p, 7)
        The fields of `PersistentParameters`, in their order.
    products : array, shape (n,) [1]
        S*eta.
    num_cycles : int array, shape (n,)
        How many cycles of a memory that still changes are walked.

    Returns
    -------
    (float array, int8 array), each shape (p, n)

    Source: claims C5 and C6 (theory/claims).
    """
    clocks = np.empty((len(rows), len(products)))
    codes = np.empty(clocks.shape, dtype=np.int8)
    kernels.persistent_exits(products, num_cycles, rows, clocks, codes)
    return clocks, codes

"""How drift grows with eta, S and lag, what it is on the boundary, and what that predicts for the boundary exponent.

Everything here is read off early training (the window of `meanfield.results.MEASURES`), before any decline, so it is
what a short probe would see. Intervals are bootstraps over runs with a fixed seed; where the boundary enters, its
posterior enters with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from meanfield.boundary import log_rate_at
from meanfield.calibrate import Calibration
from meanfield.estimate import Estimate
from meanfield.grids import Array
from meanfield.verdicts import INCONCLUSIVE, NOT_SUPPORTED, SUPPORTED, Verdict
from theory.coherence import BOUNDARY_EXPONENT, LOCAL_EXPONENT
from theory.numeric import numpy_function

if TYPE_CHECKING:
    import xarray as xr

NUM_RESAMPLES = 2000
MIN_RUNS = 6
"""Runs needed before anything is said of their drift."""
DRIFT_FACTOR = 2.0
"""Largest ratio of the drifts on the boundary at two S that supports the drift argument."""
EXPONENT_WIDTH = 0.5
"""Widest interval of an exponent that can support the drift argument."""
LONG_LAG = 8
"""Lags from here on are beyond the memory of Adam's first moment, which makes the first ones coherent."""
_SEED = 0


@dataclass(frozen=True)
class BoundaryDrift:
    """Drift at the end of a cycle [nat] at the rate [1] at which half of the seeds turn unstable at this S alone."""

    sync_interval: float
    learning_rate: Estimate
    drift: Estimate
    behavior_k3: Estimate
    effective_sample_size: Estimate


@dataclass(frozen=True)
class DriftGrowth:
    """What the drift of early training says.

    Parameters
    ----------
    with_rate, with_interval : Estimate [1]
        alpha and beta of the drift at the end of a cycle, which grows as eta^alpha * S^beta up to the boundary.
    with_lag, with_long_lag : Estimate [1]
        Exponent of the drift in the lag inside the cycles of the largest S: over all lags, and from `LONG_LAG` on.
    pair_cosine : Estimate [1]
        Mean cosine of two raw gradients of a cycle, runs of all S >= 2 up to the boundary.
    predicted_exponent : Estimate [1]
        -beta/alpha.
    predicted_by_cosine : Estimate [1]
        Boundary exponent in the middle of the measured S if steps were as coherent as raw gradients.
    spread : Estimate [1]
        Largest over smallest drift on the boundary.
    on_boundary : tuple of BoundaryDrift
        Each S >= 2 that has stable and unstable runs.
    """

    with_rate: Estimate
    with_interval: Estimate
    with_lag: Estimate
    with_long_lag: Estimate
    pair_cosine: Estimate
    predicted_exponent: Estimate
    predicted_by_cosine: Estimate
    spread: Estimate
    on_boundary: tuple[BoundaryDrift, ...]


def drift_growth(measures: xr.Dataset, *, calibration: Calibration) -> DriftGrowth:
    """Fit the growth of the drift of early training and read it on the boundary.

    Parameters
    ----------
    measures : Dataset
        As `meanfield.results.MEASURES` says.
    calibration : Calibration
        Of the same runs; its brackets say which rates are up to the boundary, its confidence is that of the intervals.

    Source: claim C9 (theory/claims).
    """
    table = _CycleEnds.of(measures, calibration)
    rate, interval = table.growth()
    with np.errstate(divide="ignore", invalid="ignore"):  # a resample at one rate alone has the slope 0: not known
        predicted = numpy_function(BOUNDARY_EXPONENT)(rate, interval)
    on_boundary, spread = _on_boundary(table, calibration)
    q, middle = table.mean_of("pair_cosine"), float(np.sqrt(table.S.min() * table.S.max())) if len(table.S) else 2.0
    by_cosine = numpy_function(LOCAL_EXPONENT)(middle, np.maximum(q, 0.0))
    atoms = {
        "with_rate": rate,
        "with_interval": interval,
        "with_lag": _lag_slope(measures, calibration, 1),
        "with_long_lag": _lag_slope(measures, calibration, LONG_LAG),
        "pair_cosine": q,
        "predicted_exponent": predicted,
        "predicted_by_cosine": by_cosine,
    }
    said = {name: _estimate(one, calibration) for name, one in atoms.items()}
    return DriftGrowth(**said, spread=spread, on_boundary=on_boundary)


def drift_verdict(growth: DriftGrowth, calibration: Calibration) -> Verdict:
    """Judge the drift argument by the rule of claim C9: numbers predicted, measured and spread with their intervals."""
    measured, predicted, spread = calibration.boundary_exponent, growth.predicted_exponent, growth.spread
    named = {"predicted": predicted, "measured": measured, "spread": spread}
    numbers = {
        f"{name}{end}": getattr(one, field)
        for name, one in named.items()
        for end, field in (("", "estimate"), ("_low", "low"), ("_high", "high"))
    }
    if not (measured.identified and predicted.identified and spread.identified):
        return Verdict("C9", INCONCLUSIVE, "The exponents or the drift on the boundary are not identified.", numbers)
    said = f"Drift predicts {_said(predicted)}, measured is {_said(measured)}; drift on the boundary varies by a factor"
    said = f"{said} {_said(spread)} over S"
    overlap = _low(predicted) <= _high(measured) and _low(measured) <= _high(predicted)
    if not overlap:
        return Verdict("C9", NOT_SUPPORTED, f"{said}; the exponents do not overlap.", numbers)
    if _low(spread) > DRIFT_FACTOR:
        return Verdict("C9", NOT_SUPPORTED, f"{said}, which is no constant.", numbers)
    narrow = all(_high(one) - _low(one) < EXPONENT_WIDTH for one in (predicted, measured))
    if narrow and (spread.estimate or 0.0) <= DRIFT_FACTOR:
        return Verdict("C9", SUPPORTED, f"{said}.", numbers)
    return Verdict("C9", INCONCLUSIVE, f"{said}, too wide to tell.", numbers)


@dataclass(frozen=True, eq=False)
class _CycleEnds:
    """Runs at S >= 2 with their early measures at the end of a cycle; `near` marks rates up to the boundary."""

    S: Array
    eta: Array
    near: NDArray[np.bool_]
    values: dict[str, Array]
    confidence: float

    @classmethod
    def of(cls, measures: xr.Dataset, calibration: Calibration) -> _CycleEnds:
        names = ("drift", "behavior_k3", "effective_sample_size")
        edges = {one.sync_interval: one.smallest_unstable for one in calibration.brackets}
        columns: dict[str, list[Any]] = {name: [] for name in ("S", "eta", "near", "pair_cosine", *names)}
        for S in measures["sync_interval"].values[measures["sync_interval"].values >= 2]:
            at = measures.sel(sync_interval=S)
            shape = at["pair_cosine"].shape
            eta = np.broadcast_to(at["learning_rate"].values[:, None], shape).ravel()
            edge = edges.get(float(S))
            columns["S"].append(np.full(eta.size, S))
            columns["eta"].append(eta)
            columns["near"].append(eta <= (np.inf if edge is None else edge))
            columns["pair_cosine"].append(at["pair_cosine"].values.ravel())
            for name in names:
                columns[name].append(at[name].sel(lag=int(S) - 1).values.ravel())
        joined = {name: np.concatenate(parts or [np.empty(0)]) for name, parts in columns.items()}
        known = np.isfinite(joined["drift"]) & (joined["drift"] > 0)
        joined = {name: values[known] for name, values in joined.items()}
        S, eta, near = (joined.pop(name) for name in ("S", "eta", "near"))
        return cls(S, eta, near.astype(bool), joined, calibration.confidence)

    def growth(self) -> tuple[Array, Array]:
        """Atoms of alpha and beta."""
        columns = [np.log(self.eta), np.log(self.S), np.log(self.values["drift"])]
        data = np.column_stack(columns)[self.near]
        if len(data) < MIN_RUNS or len(np.unique(data[:, 0])) < 2 or len(np.unique(data[:, 1])) < 2:
            return np.full(1, np.nan), np.full(1, np.nan)
        slopes, _ = _lines(data[resamples(len(data))])
        return slopes[:, 0], slopes[:, 1]

    def mean_of(self, name: str) -> Array:
        """Atoms of the mean over runs up to the boundary."""
        values = self.values[name][self.near]
        values = values[np.isfinite(values)]
        if len(values) < MIN_RUNS:
            return np.full(1, np.nan)
        means: Array = values[resamples(len(values))].mean(axis=1)
        return means


def _on_boundary(table: _CycleEnds, calibration: Calibration) -> tuple[tuple[BoundaryDrift, ...], Estimate]:
    """Drift on the boundary of each S, and how much it varies over S."""
    seen, points, drifts = calibration.observations, [], []
    unstable = seen.collapsed | seen.degraded
    for S in np.unique(table.S):
        log_rate = log_rate_at(seen, unstable, S)
        if log_rate is None:
            continue
        atoms = {name: _at_rate(table, S, name, log_rate) for name in _POINTS}
        if any(np.isnan(one).any() for one in atoms.values()):
            continue
        drifts.append(atoms["drift"])
        said = {name: _estimate(one, calibration) for name, one in atoms.items()}
        points.append(BoundaryDrift(float(S), _estimate(np.exp(log_rate), calibration), **said))
    if len(drifts) < 2:
        return tuple(points), Estimate.unknown()
    stacked = np.stack(drifts)
    return tuple(points), _estimate(stacked.max(axis=0) / stacked.min(axis=0), calibration)


_POINTS = ("drift", "behavior_k3", "effective_sample_size")


def _at_rate(table: _CycleEnds, S: float, name: str, log_rate: Array) -> Array:
    """Atoms of a measure at uncertain rates at one S, by a log-log line through the runs, never beyond the rates."""
    values = np.where(table.values[name] > 0, table.values[name], np.nan)
    here = (table.S == S) & np.isfinite(values)
    x, y = np.log(table.eta[here]), np.log(values[here])
    if here.sum() < MIN_RUNS or len(np.unique(x)) < 3:
        return np.full(NUM_RESAMPLES, np.nan)
    draws = np.random.default_rng((_SEED, int(S), 1)).choice(log_rate, NUM_RESAMPLES)
    draws = np.clip(draws, x.min(), x.max())
    slopes, middles = _lines(np.column_stack([x, y])[resamples(len(x), stream=int(S))])
    atoms: Array = np.exp(middles[:, 1] + slopes[:, 0] * (draws - middles[:, 0]))
    return atoms


def _lag_slope(measures: xr.Dataset, calibration: Calibration, shortest: int) -> Array:
    """Atoms of the exponent of the drift in the lag, within runs at the largest S up to the boundary."""
    S = float(measures["sync_interval"].values[-1])
    edge = {one.sync_interval: one.smallest_unstable for one in calibration.brackets}.get(S)
    lag = measures["lag"].values
    rates = measures["learning_rate"].values <= (np.inf if edge is None else edge)
    chosen = (lag >= shortest) & (lag < S)
    if chosen.sum() < 2:
        return np.full(1, np.nan)
    curves = measures["drift"].sel(sync_interval=S).values[rates][..., chosen].reshape(-1, int(chosen.sum()))
    curves = curves[np.all(np.isfinite(curves) & (curves > 0), axis=1)]
    if len(curves) < 2:
        return np.full(1, np.nan)
    x = np.log(lag[chosen]) - np.log(lag[chosen]).mean()
    slopes = np.log(curves) @ x / (x @ x)
    means: Array = slopes[resamples(len(slopes))].mean(axis=1)
    return means


def resamples(count: int, *, stream: int = 0) -> NDArray[np.int64]:
    """Rows drawn with replacement, shape (NUM_RESAMPLES, count).

    Each stream is drawn by itself: runs at two S know nothing of each other, so the S is the stream wherever numbers at
    several S are compared.
    """
    rng = np.random.default_rng((_SEED, stream))
    rows: NDArray[np.int64] = rng.integers(0, count, size=(NUM_RESAMPLES, count))
    return rows


def _lines(data: Array) -> tuple[Array, Array]:
    """Least-squares slopes of the last column on the others, and the means of all, for each resample.

    Shapes: (resamples, rows, columns) -> (resamples, columns - 1), (resamples, columns). A resample without spread
    gets slopes of zero.
    """
    middles = data.mean(axis=1)
    centred = data - middles[:, None, :]
    x, y = centred[..., :-1], centred[..., -1:]
    transposed = np.swapaxes(x, 1, 2)
    slopes: Array = (np.linalg.pinv(transposed @ x, hermitian=True) @ (transposed @ y))[..., 0]
    return slopes, middles


def _estimate(atoms: Array, calibration: Calibration) -> Estimate:
    if not np.isfinite(atoms).all():
        return Estimate.unknown()
    return Estimate.from_atoms(atoms, confidence=calibration.confidence)


def _said(one: Estimate) -> str:
    return f"{one.estimate:.2f} [{one.low:.2f}, {one.high:.2f}]"


def _low(one: Estimate) -> float:
    return float("nan") if one.low is None else one.low


def _high(one: Estimate) -> float:
    return float("nan") if one.high is None else one.high

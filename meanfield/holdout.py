"""Hold persistent drift against runs it has not seen: fit on every second S, predict the S between, both ways round.

Three predictors are fitted to the same half: persistent drift; the calibration (a power law with free exponent and
the budget law), as the tool would answer; and a constant rate (share of runs that collapse, median collapse step).
S = 1 is in both halves, for it sets the learning-rate ceiling and nothing else. Every other run is held out once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from meanfield.boundary import rate_brackets
from meanfield.calibrate import CONFIDENCE, Calibration, calibrate
from meanfield.fit_persistent import GENERATIONS, PersistentFit, fit_persistent
from meanfield.grids import Array
from meanfield.observations import Observations, observe
from meanfield.recommend import collapse_risk
from meanfield.runs import check_runs
from meanfield.scores import Outcomes, Prediction, Score, score
from theory.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

MODEL, CALIBRATION, CONSTANT = "persistent drift", "calibration", "constant rate"
"""Names of the predictors in the answer."""
MIN_INTERVALS = 4
"""Finite S >= 2 needed: two in each half, so that each can show an exponent."""
NUM_RATES = 400
"""Rates on which the largest stable one is looked for, from a tenth of the smallest to ten times the largest tested."""


@dataclass(frozen=True)
class RatePrediction:
    """Largest stable learning rate [1] at one held-out S, predicted and measured; None where there is none.

    Parameters
    ----------
    sync_interval, steps : float [optimizer step]
        S, and the median length of its runs, for which the prediction is.
    persistent_drift : float or None
        Largest rate below all at which the model collapses within `steps`.
    calibration : float or None
        Posterior median of the boundary.
    largest_stable, smallest_unstable : float or None
        Measured, degraded runs counted as unstable.
    largest_not_collapsed, smallest_collapsed : float or None
        Measured, degraded runs counted as not collapsed, which is what the model speaks of.
    """

    sync_interval: float
    steps: float
    persistent_drift: float | None
    calibration: float | None
    largest_stable: float | None
    smallest_unstable: float | None
    largest_not_collapsed: float | None
    smallest_collapsed: float | None


@dataclass(frozen=True)
class Direction:
    """One way round.

    Parameters
    ----------
    fitted, held_out : tuple of float [optimizer step]
        The S on either side.
    fit : PersistentFit
    scores : tuple of Score
        One for each predictor, on the runs at `held_out`.
    rates : tuple of RatePrediction
        One for each S of `held_out`.
    """

    fitted: tuple[float, ...]
    held_out: tuple[float, ...]
    fit: PersistentFit
    scores: tuple[Score, ...]
    rates: tuple[RatePrediction, ...]

    def to_json(self) -> dict[str, Any]:
        """Return plain dictionaries, lists and numbers."""
        return {
            "fitted": list(self.fitted),
            "held_out": list(self.held_out),
            "fit": asdict(self.fit) | {"on_bound": list(self.fit.on_bound)},
            "scores": [one.to_json() for one in self.scores],
            "rates": [asdict(one) for one in self.rates],
        }


@dataclass(frozen=True)
class Holdout:
    """How the predictors did on runs they were not fitted to.

    Parameters
    ----------
    confidence : float [1]
        Probability inside every interval.
    directions : (Direction, Direction)
    scores : tuple of Score
        One for each predictor, all held-out runs of both directions together.
    collapse_times : DataFrame
        One row for each held-out collapse with a known onset: sync_interval, measured and predicted [optimizer step],
        learning_rate [1]; predicted by persistent drift, inf where it has none.
    """

    confidence: float
    directions: tuple[Direction, Direction]
    scores: tuple[Score, ...]
    collapse_times: pd.DataFrame = field(repr=False, compare=False)

    def to_json(self) -> dict[str, Any]:
        """Return plain dictionaries, lists and numbers, the table of single collapses left out."""
        return {
            "confidence": self.confidence,
            "directions": [one.to_json() for one in self.directions],
            "scores": [one.to_json() for one in self.scores],
        }


def holdout(runs: pd.DataFrame, *, confidence: float = CONFIDENCE, generations: int = GENERATIONS) -> Holdout:
    """Fit on half of the S, predict the other half, both ways round.

    Parameters
    ----------
    runs : DataFrame
        As described in `meanfield.runs`; checked first. S >= 2 that are not finite are left out. A degraded run counts
        as not collapsed until its onset, and not at all if that is 0; to hold the model against any decline, give it
        as collapsed at its onset.
    confidence : float [1]
        Probability inside every interval, in (0, 1).
    generations : int
        Effort of the search, see `meanfield.fit_persistent`.

    Returns
    -------
    Holdout

    Raises
    ------
    InputError
        If the table breaks a rule, holds fewer than four finite S >= 2, or the confidence is not in (0, 1).

    Source: claims C1, C2, C5 and C6 (theory/claims).
    """
    import pandas as pd

    checked = check_runs(runs)
    intervals = observe(checked).law_intervals
    if len(intervals) < MIN_INTERVALS:
        rule = f"hold at least {MIN_INTERVALS} finite sync intervals >= 2"
        raise InputError("runs", rule, len(intervals), "Measure two S for each half.")
    halves = (intervals[::2], intervals[1::2])
    parts = [_Part.of(checked, fitted, held, confidence, generations) for fitted, held in (halves, halves[::-1])]
    together = Outcomes(
        np.concatenate([parts[0].outcomes.cell, parts[1].outcomes.cell + 1 + parts[0].outcomes.cell.max(initial=0)]),
        np.concatenate([part.outcomes.collapsed for part in parts]),
        np.concatenate([part.outcomes.step for part in parts]),
    )
    predictions = {
        name: Prediction(
            np.concatenate([part.predictions[name].probability for part in parts]),
            np.concatenate([part.predictions[name].step for part in parts]),
        )
        for name in (MODEL, CALIBRATION, CONSTANT)
    }
    first, second = (part.direction(confidence) for part in parts)
    times = pd.concat([part.collapse_times() for part in parts], ignore_index=True)
    return Holdout(confidence, (first, second), _scores(together, predictions, confidence), times)


@dataclass(frozen=True, eq=False)
class _Part:
    """One way round before it is scored: what was fitted, what was held out, what was said of it."""

    fitted: Array
    held: Array
    runs: Observations
    fit: PersistentFit
    outcomes: Outcomes
    predictions: Mapping[str, Prediction]
    rates: tuple[RatePrediction, ...]

    @classmethod
    def of(cls, checked: pd.DataFrame, fitted: Array, held: Array, confidence: float, generations: int) -> _Part:
        on_policy = checked["sync_interval"] < 2
        calibration = calibrate(checked[on_policy | checked["sync_interval"].isin(fitted)], confidence=confidence)
        fit = fit_persistent(calibration, generations=generations)
        everything = observe(checked[checked["sync_interval"].isin(held)])
        ceiling = calibration.learning_rate_ceiling.estimate
        below = everything.learning_rate < (np.inf if ceiling is None else ceiling)
        runs = everything.where(below & (everything.watched > 0))
        predictions = {
            MODEL: _by_model(fit, runs),
            CALIBRATION: _by_calibration(calibration, runs),
            CONSTANT: _by_constant(calibration, runs),
        }
        rates = tuple(_rate(fit, calibration, everything, float(S)) for S in held)
        return cls(fitted, held, runs, fit, _outcomes(runs), predictions, rates)

    def direction(self, confidence: float) -> Direction:
        scores = _scores(self.outcomes, self.predictions, confidence)
        return Direction(tuple(self.fitted.tolist()), tuple(self.held.tolist()), self.fit, scores, self.rates)

    def collapse_times(self) -> pd.DataFrame:
        import pandas as pd

        timed = ~np.isnan(self.outcomes.step)
        columns = {
            "sync_interval": self.runs.sync_interval,
            "learning_rate": self.runs.learning_rate,
            "measured": self.outcomes.step,
            "predicted": self.predictions[MODEL].step,
        }
        return pd.DataFrame({name: values[timed] for name, values in columns.items()})


def _scores(outcomes: Outcomes, predictions: Mapping[str, Prediction], confidence: float) -> tuple[Score, ...]:
    return tuple(
        score(name, outcomes, prediction, reference=predictions[MODEL], confidence=confidence)
        for name, prediction in predictions.items()
    )


def _outcomes(runs: Observations) -> Outcomes:
    pairs = np.column_stack([runs.sync_interval, runs.learning_rate])
    cell = np.unique(pairs, axis=0, return_inverse=True)[1].ravel()
    return Outcomes(cell, runs.collapsed, np.where(runs.timed, 0.5 * (runs.low + runs.high), np.nan))


def _by_model(fit: PersistentFit, runs: Observations) -> Prediction:
    S, eta, steps = runs.sync_interval, runs.learning_rate, runs.steps
    probability = fit.collapsed_by(runs.watched, sync_interval=S, learning_rate=eta, steps=steps)
    return Prediction(probability, fit.collapse_step(S, eta, steps=steps))


def _by_calibration(calibration: Calibration, runs: Observations) -> Prediction:
    """The tool's own risk and collapse step; NaN where it gives none."""
    law = calibration.time_law

    @cache
    def probability(S: float, eta: float, step: float) -> float:
        risk = collapse_risk(calibration, S, learning_rate=np.array([eta]), horizon=step)
        return math.nan if risk is None else float(risk[0])

    @cache
    def median(eta: float) -> float:
        estimate = None if law is None else law.collapse_step(eta, confidence=CONFIDENCE).estimate
        return math.nan if estimate is None else estimate

    columns = zip(runs.sync_interval.tolist(), runs.learning_rate.tolist(), runs.watched.tolist(), strict=True)
    probabilities = np.array([probability(*run) for run in columns], dtype=np.float64)
    return Prediction(probabilities, np.array([median(eta) for eta in runs.learning_rate.tolist()], dtype=np.float64))


def _by_constant(calibration: Calibration, runs: Observations) -> Prediction:
    """Share of the fitted runs that collapsed, one of each kind added, and their median collapse step."""
    fitted = calibration.observations.where(calibration.budget_arm)
    watched = fitted.where(fitted.watched > 0)
    share = (watched.collapsed.sum() + 1.0) / (len(watched) + 2.0)
    steps = 0.5 * (fitted.low + fitted.high)[fitted.timed]
    step = float(np.median(steps)) if steps.size else math.nan
    return Prediction(np.full(len(runs), share), np.full(len(runs), step))


def _rate(fit: PersistentFit, calibration: Calibration, runs: Observations, S: float) -> RatePrediction:
    here = runs.where(runs.sync_interval == S)
    T = float(np.median(here.steps))
    (bracket,) = rate_brackets(here, here.collapsed | here.degraded)
    (collapsed_only,) = rate_brackets(here, here.collapsed)
    boundary = calibration.boundary
    log_rate = math.nan if boundary is None else float(np.median(boundary.log_max_rate(S)))
    return RatePrediction(
        sync_interval=S,
        steps=T,
        persistent_drift=_largest_stable(fit, runs.learning_rate, S, T),
        calibration=None if math.isnan(log_rate) else math.exp(log_rate),
        largest_stable=bracket.largest_stable,
        smallest_unstable=bracket.smallest_unstable,
        largest_not_collapsed=collapsed_only.largest_stable,
        smallest_collapsed=collapsed_only.smallest_unstable,
    )


def _largest_stable(fit: PersistentFit, tested: Array, S: float, T: float) -> float | None:
    """Largest rate of a fine grid below all at which the model collapses within T; None if none or all do."""
    rates = np.geomspace(tested.min() / 10.0, tested.max() * 10.0, NUM_RATES)
    steps = fit.collapse_step(np.full(NUM_RATES, S), rates, steps=np.full(NUM_RATES, T))
    collapses = np.flatnonzero(steps <= T)
    return float(rates[collapses[0] - 1]) if collapses.size and collapses[0] > 0 else None

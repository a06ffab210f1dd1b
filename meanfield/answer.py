"""The answer of the prediction, as one object: schema driftlaw.predict/1.

A null stands for what the data cannot say; `missing` then says what would.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from meanfield.calibrate import Calibration
from meanfield.combination import Combination
from meanfield.estimate import Estimate
from meanfield.gaps import NextRun
from meanfield.recommend import (
    MaxRate,
    Query,
    Recommendation,
    max_rate,
    measured_intervals,
    query,
    recommend,
    recommend_at,
    recommend_interval,
    recommend_rate,
    unseen_stretch,
)
from theory.errors import InputError

SCHEMA = "driftlaw.predict/1"
"""Name and version of the JSON object."""
MAX_STEPS = 1e12
"""More optimizer steps than anyone trains."""
RISK = 0.05
"""Accepted probability of a collapse within the horizon, unless told."""


@dataclass(frozen=True, kw_only=True)
class Question:
    """What the user wants to know; checked on construction.

    Parameters
    ----------
    horizon : float [optimizer step]
        Length of the intended run, whole, 1 to 1e12.
    sync_interval : float or None [optimizer step]
        1 to 1e12.
    learning_rate : float or None [1]
        1e-30 to 1e30. With both, that run is answered too; with one, the other is recommended.
    risk : float [1]
        Accepted probability of a collapse within the horizon, in (0, 1).

    Raises
    ------
    InputError
        If a value is outside its range.
    """

    horizon: float
    sync_interval: float | None = None
    learning_rate: float | None = None
    risk: float = RISK

    def __post_init__(self) -> None:
        if not (1 <= self.horizon <= MAX_STEPS and self.horizon == int(self.horizon)):
            raise InputError("horizon", "be a whole number of 1 to 1e12", self.horizon, "Give optimizer steps: 2000.")
        if self.sync_interval is not None and not 1 <= self.sync_interval <= MAX_STEPS:
            raise InputError(
                "sync_interval", "lie in 1 to 1e12", self.sync_interval, "For a fully on-policy run use 1."
            )
        if self.learning_rate is not None and not 1e-30 <= self.learning_rate <= 1e30:
            raise InputError(
                "learning_rate", "lie in 1e-30 to 1e30", self.learning_rate, "Give the step size, like 1e-6."
            )
        if not 0 < self.risk < 1:
            raise InputError("risk", "lie in (0, 1)", self.risk, "The default is 0.05.")


@dataclass(frozen=True, kw_only=True)
class Answer:
    """Everything that is printed, whatever the format; fields as in the JSON object."""

    critical_product: Estimate
    budget: Estimate
    learning_rate_ceiling: Estimate
    boundary_exponent: Estimate
    budget_exponent: Estimate
    combination: Combination
    confidence: float | None
    reference_sync_interval: float | None
    table: tuple[MaxRate, ...]
    query: Query | None
    recommendation: Recommendation | None
    next_runs: tuple[NextRun, ...]
    missing: tuple[str, ...]
    warnings: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the object of schema driftlaw.predict/1, made of plain JSON values."""
        return {
            "schema": SCHEMA,
            "critical_product": self.critical_product.to_json(),
            "budget": self.budget.to_json(),
            "learning_rate_ceiling": self.learning_rate_ceiling.to_json(),
            "boundary_exponent": self.boundary_exponent.to_json(),
            "budget_exponent": self.budget_exponent.to_json(),
            "combination": self.combination.value,
            "confidence": self.confidence,
            "reference_sync_interval": self.reference_sync_interval,
            "table": [_row_json(row) for row in self.table],
            "query": None if self.query is None else _query_json(self.query),
            "recommendation": None if self.recommendation is None else _recommendation_json(self.recommendation),
            "next_runs": [_next_run_json(run) for run in self.next_runs],
            "missing": list(self.missing),
            "warnings": list(self.warnings),
        }


def answer(calibration: Calibration, question: Question) -> Answer:
    """Answer a question from a calibration.

    Parameters
    ----------
    calibration : Calibration
    question : Question

    Returns
    -------
    Answer
    """
    recommendation = _recommendation(calibration, question)
    asked = _query(calibration, question)
    missing = list(calibration.missing)
    if recommendation is None:
        missing.append(_no_recommendation(calibration, question))
    if asked is not None and asked.risk is None:
        missing.append(f"query.risk: the boundary at S = {asked.sync_interval:g} is not known from these runs")
    return Answer(
        critical_product=calibration.critical_product,
        budget=calibration.budget,
        learning_rate_ceiling=calibration.learning_rate_ceiling,
        boundary_exponent=calibration.boundary_exponent,
        budget_exponent=calibration.budget_exponent,
        combination=calibration.combination,
        confidence=calibration.confidence,
        reference_sync_interval=calibration.reference_sync_interval,
        table=_table(calibration, question),
        query=asked,
        recommendation=recommendation,
        next_runs=calibration.next_runs,
        missing=tuple(missing),
        warnings=(*_reach(calibration, question, recommendation), *calibration.warnings),
    )


def _table(calibration: Calibration, question: Question) -> tuple[MaxRate, ...]:
    """One row for each measured S and for the one that was asked for."""
    asked = () if question.sync_interval is None else (question.sync_interval,)
    rows = []
    for sync_interval in sorted({*measured_intervals(calibration), *asked}):
        safe = recommend_rate(calibration, sync_interval, horizon=question.horizon, risk=question.risk)
        row = max_rate(calibration, sync_interval, horizon=question.horizon)
        rows.append(replace(row, safe_learning_rate=safe))
    return tuple(rows)


def _recommendation(calibration: Calibration, question: Question) -> Recommendation | None:
    wanted = {"horizon": question.horizon, "risk": question.risk}
    if question.sync_interval is not None:
        return recommend_at(calibration, question.sync_interval, **wanted)
    if question.learning_rate is not None:
        return recommend_interval(calibration, learning_rate=question.learning_rate, **wanted)
    return recommend(calibration, **wanted)


def _query(calibration: Calibration, question: Question) -> Query | None:
    if question.sync_interval is None or question.learning_rate is None:
        return None
    return query(
        calibration,
        question.sync_interval,
        learning_rate=question.learning_rate,
        horizon=question.horizon,
    )


def _no_recommendation(calibration: Calibration, question: Question) -> str:
    if question.sync_interval is not None:
        if not calibration.answers_at(question.sync_interval):
            return f"recommendation: the boundary at S = {question.sync_interval:g} is not known from these runs"
        return f"recommendation: no rate near the tested ones keeps the risk {question.risk:g} at this S"
    if not any(calibration.answers_at(sync_interval) for sync_interval in measured_intervals(calibration)):
        return "recommendation: no boundary is known; see next_runs"
    return f"recommendation: no measured S keeps a risk of {question.risk:g}; more seeds narrow the boundary"


def _reach(calibration: Calibration, question: Question, recommendation: Recommendation | None) -> list[str]:
    """Warn about what lies outside the measured ranges."""
    seen, warnings = calibration.observations, []
    intervals = measured_intervals(calibration)
    asked = question.sync_interval
    if asked is not None and intervals and not intervals[0] <= asked <= intervals[-1]:
        warnings.append(
            f"S = {asked:g} lies outside the measured range {intervals[0]:g} to {intervals[-1]:g}: extrapolated"
        )
    if len(seen) and question.horizon > seen.steps.max():
        warnings.append(
            f"the horizon is longer than any run ({seen.steps.max():g} steps): what a healthy run does after that was "
            "not seen"
            + (", so rates are cut by the same factor" if unseen_stretch(calibration, question.horizon) > 1 else "")
        )
    rate = question.learning_rate or (recommendation.learning_rate if recommendation else None)
    if rate is None or not len(seen):
        return warnings
    smallest, largest = float(seen.learning_rate.min()), float(seen.learning_rate.max())
    if not smallest <= rate <= largest:
        warnings.append(f"eta = {rate:.3g} lies outside the tested range {smallest:.3g} to {largest:.3g}: extrapolated")
    elif recommendation is not None and question.learning_rate is None and rate > 0.999 * largest:
        warnings.append("the recommended rate is the largest tested one; a larger one may do too")
    return warnings


def _row_json(row: MaxRate) -> dict[str, Any]:
    return {
        "sync_interval": _whole(row.sync_interval),
        "max_learning_rate": row.max_learning_rate.estimate,
        "low": row.max_learning_rate.low,
        "high": row.max_learning_rate.high,
        "binding": row.binding,
        "safe_learning_rate": row.safe_learning_rate,
    }


def _query_json(asked: Query) -> dict[str, Any]:
    return {
        "sync_interval": _whole(asked.sync_interval),
        "learning_rate": asked.learning_rate,
        "horizon": _whole(asked.horizon),
        "risk": asked.risk,
        "collapse_step": asked.collapse_step.to_json(),
        "binding": asked.binding,
    }


def _recommendation_json(recommendation: Recommendation) -> dict[str, Any]:
    return {
        "sync_interval": _whole(recommendation.sync_interval),
        "learning_rate": recommendation.learning_rate,
        "risk": recommendation.risk,
        "why": recommendation.why,
    }


def _next_run_json(run: NextRun) -> dict[str, Any]:
    return {
        "sync_interval": _whole(run.sync_interval),
        "learning_rate": run.learning_rate,
        "steps": run.steps,
        "seeds": run.seeds,
        "why": run.why,
    }


def _whole(number: float) -> float | int:
    """Print 8, not 8.0."""
    return int(number) if number == int(number) else number

"""The same answer from a model's parameters instead of runs: formulas only, so no intervals and no statistics."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from meanfield.answer import Answer, Question
from meanfield.combination import Combination
from meanfield.estimate import Estimate
from meanfield.parameters import MapParameters
from meanfield.recommend import CEILING, HORIZON, STALENESS, MaxRate, Query, Recommendation, choose_interval
from meanfield.simulate import exit_budget

INTERVALS = tuple(2.0**power for power in range(9))
"""S of the table: 1 to 256."""
NUM_RATES = 400
"""Rates of the search grid, refined once: the rate is found within a factor 1 + 1e-4."""


def answer_model(parameters: MapParameters, question: Question) -> Answer:
    """Answer a question from the parameters of the memory map.

    Parameters
    ----------
    parameters : MapParameters
    question : Question
        The accepted risk plays no role: the model is deterministic.

    Returns
    -------
    Answer
        Ends of intervals are None; a risk is 0 or 1.

    Source: claims C1, C2, C6, C7, C8 (theory/claims).
    """
    asked = () if question.sync_interval is None else (question.sync_interval,)
    intervals = sorted({*INTERVALS, *asked})
    table = tuple(max_rate(parameters, S, horizon=question.horizon) for S in intervals)
    recommendation = _recommendation(table, question)
    missing = () if recommendation is not None else (_no_recommendation(parameters),)
    ceiling = parameters.learning_rate_ceiling
    if ceiling is None:
        missing = (*missing, "learning_rate_ceiling: not among the parameters")
    return Answer(
        critical_product=_exact(parameters.critical_product),
        budget=_exact(parameters.exit_radius),
        learning_rate_ceiling=_exact(ceiling),
        boundary_exponent=_exact(-1.0),
        budget_exponent=_exact(-1.0),
        combination=Combination.MIN if parameters.honest_signal > 0 else Combination.MAX,
        confidence=None,
        reference_sync_interval=None,
        table=tuple(replace(row, safe_learning_rate=row.max_learning_rate.estimate) for row in table),
        query=_query(parameters, question),
        recommendation=recommendation,
        next_runs=(),
        missing=missing,
        warnings=("a model was asked, not data: no intervals, and a risk is 0 or 1",),
    )


def _no_recommendation(parameters: MapParameters) -> str:
    if parameters.honest_signal == 0.0 and parameters.initial_memory == 0.0:
        return "recommendation: with honest_signal = initial_memory = 0 nothing moves, so the model limits no rate"
    return "recommendation: the model limits no rate at the S asked for"


def max_rate(parameters: MapParameters, sync_interval: float, *, horizon: float) -> MaxRate:
    """Largest rate below which the model survives the horizon, and which constraint sets it.

    The horizon binds where B/T exceeds C/S (claim C8), or with an honest signal where T*h/R exceeds S/C
    (claim C7).
    """
    rate = _first_collapse(parameters, sync_interval, horizon)
    ceiling = parameters.learning_rate_ceiling
    if ceiling is not None and (rate is None or ceiling <= rate):
        return MaxRate(sync_interval, _exact(ceiling), CEILING)
    if rate is None:
        return MaxRate(sync_interval, Estimate.unknown(), None)
    stale = sync_interval / parameters.critical_product
    saturated = horizon / parameters.exit_radius
    spent = saturated < stale or saturated * parameters.honest_signal > stale
    return MaxRate(sync_interval, _exact(rate), HORIZON if spent else STALENESS)


def _exact(value: float | None) -> Estimate:
    return Estimate(value, None, None, identified=value is not None)


def _first_collapse(parameters: MapParameters, sync_interval: float, horizon: float) -> float | None:
    """Largest rate of a grid below the first that collapses within the horizon; None if none does.

    Nothing collapses below R/T, for the drift speed is at most 1; the grid starts there.
    """
    low = parameters.exit_radius / horizon
    high = 1e4 * max(low, parameters.critical_product / sync_interval)
    for _ in range(2):
        rates = np.geomspace(low * (1.0 - 1e-9), high, NUM_RATES)
        collapsed = np.flatnonzero(exit_budget(parameters, sync_interval * rates) <= rates * horizon)
        if len(collapsed) == 0:
            return None
        first = max(int(collapsed[0]), 1)
        low, high = float(rates[first - 1]), float(rates[first])
    return low


def _query(parameters: MapParameters, question: Question) -> Query | None:
    S, eta = question.sync_interval, question.learning_rate
    if S is None or eta is None:
        return None
    step = float(exit_budget(parameters, np.array([S * eta]))[0]) / eta
    collapse_step = _exact(float(np.ceil(step)) if np.isfinite(step) else None)
    row = max_rate(parameters, S, horizon=question.horizon)
    return Query(S, eta, question.horizon, float(step <= question.horizon), collapse_step, row.binding)


def _recommendation(table: tuple[MaxRate, ...], question: Question) -> Recommendation | None:
    rates = {row.sync_interval: rate for row in table if (rate := row.max_learning_rate.estimate) is not None}
    bindings = {row.sync_interval: row.binding for row in table}
    if question.sync_interval is not None:
        S = question.sync_interval
        why = f"the largest rate at the given S that survives the horizon; the {bindings[S]} constraint binds"
        return Recommendation(S, rates[S], 0.0, why) if S in rates else None
    if question.learning_rate is not None:
        safe = [S for S, rate in rates.items() if question.learning_rate <= rate]
        why = "the largest listed S that survives the horizon at the given rate"
        return Recommendation(max(safe), question.learning_rate, 0.0, why) if safe else None
    if not rates:
        return None
    chosen, why = choose_interval(rates, bindings)
    return Recommendation(chosen, rates[chosen], 0.0, why)

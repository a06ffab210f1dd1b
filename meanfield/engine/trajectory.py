"""One run of a drift model with its path."""

from __future__ import annotations

from collections.abc import Mapping

from meanfield.engine.compiled import TOLERANCE, Adaptive, compile_model
from meanfield.engine.values import grid_of, members_of
from meanfield.hybrid import ModelRun
from theory.models.model import DriftModel


def trajectory(
    model: DriftModel, values: Mapping[str, float], *, horizon: int, tolerance: float = TOLERANCE
) -> ModelRun:
    """Simulate one run of a drift model and keep its path.

    Parameters
    ----------
    model : DriftModel
    values : mapping from a name to its value
        Every parameter of the model, "sync_interval" and "learning_rate".
    horizon : int [optimizer step]
    tolerance : float
        Relative error of a step in every state.

    Returns
    -------
    ModelRun
        With one point after each step of the integrator and each sync, up to the exit or the last step before the
        horizon. Every cycle is walked, so the exit may differ from that of a diagram within the tolerance.

    Raises
    ------
    InputError
        If a value cannot be used.

    Source: claim C30 (theory/claims); the exit is located to the rounding of the step it lies in.
    """
    grid_of(model, values, {})
    method = None if model.noise else Adaptive(tolerance, every_cycle=True)
    return compile_model(model).replay(members_of(model, values), 0, horizon=horizon, method=method)

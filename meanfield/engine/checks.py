"""What no member may have, refused before any work, with how many have it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from meanfield.engine.members import Members
from meanfield.grids import Array
from theory.errors import InputError
from theory.models.model import DriftModel
from theory.symbols import P


def require_tolerance(tolerance: float) -> None:
    """Refuse a tolerance that is no use; raises InputError."""
    if not 1e-13 <= tolerance <= 1e-2:
        raise InputError("tolerance", "be between 1e-13 and 1e-2", tolerance, "Use 1e-6, or 1e-10 where digits count.")


def require_numbers(model: DriftModel, members: Members) -> None:
    """Refuse members of wrong shape or with numbers that break a rule; raises InputError.

    Parameters
    ----------
    model : DriftModel
    members : Members
    """
    S, eta = members.sync_interval, members.learning_rate
    if not S.size or members.parameters.shape != (len(model.parameters), S.size) or eta.shape != S.shape:
        shapes = (members.parameters.shape, S.shape, eta.shape)
        way_out = "Give shapes (num_parameters, n), (n,), (n,) with n >= 1."
        raise InputError("members", f"hold {len(model.parameters)} parameters for each run", shapes, way_out)
    whole = np.isinf(S) | (np.floor(S) == S)
    _require("sync_interval", "be an integer >= 1, or inf", S, (S >= 1.0) & whole, "For an on-policy run use 1.")
    allowed = (eta > 0.0) & np.isfinite(eta)
    _require("learning_rate", "be positive and finite", eta, allowed, "Leave the others out, for example eta = 0.")
    for symbol, values in zip(model.parameters, members.parameters, strict=True):
        rule, allowed = "be a finite number", np.isfinite(values)
        if symbol.is_nonnegative:  # zero is the limit of a positive one
            rule, allowed = "be finite and >= 0", np.isfinite(values) & (values >= 0.0)
        _require(f"{model.name}: {symbol}", rule, values, allowed, "The model declares its symbol so.")
    if any(item.has(P) for item in (*model.flow, *model.sync, *model.noise, *model.solution)):
        _require("sync_interval", "be finite, for the model holds P = S*eta", S, np.isfinite(S), "Leave inf out.")


def _require(argument: str, rule: str, values: Array, allowed: NDArray[np.bool_], way_out: str) -> None:
    if not np.all(allowed):
        wrong = np.flatnonzero(~allowed)
        value = f"{values[wrong[0]]:g} in {wrong.size} of {values.size} members, first in member {wrong[0]}"
        raise InputError(argument, rule, value, way_out)

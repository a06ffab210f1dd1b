"""The map from just after one sync to just after the next, with its Jacobian from the variational equations.

The variational equations of a drift model are a drift model themselves: each deviation is a state, whose flow and
sync are the linear parts of the model's own. They are compiled and walked like any other model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
import sympy as sp
from numpy.typing import ArrayLike

from meanfield.engine.compiled import compile_model
from meanfield.engine.source import slope
from meanfield.engine.values import RUN, grid_of, members_of
from meanfield.grids import Array
from theory.errors import InputError
from theory.models.cycle import feeding_states
from theory.models.model import DriftModel
from theory.symbols import P, tau

TOLERANCE = 1e-12
"""Relative error of a step of the integration."""
LOOSE = 1e-10
"""The tolerance with which a result is compared for its error."""


def carried_states(model: DriftModel) -> tuple[sp.Symbol, ...]:
    """States that feed back and that a sync leaves with a value that depends on a state: all that a map has to carry.

    Parameters
    ----------
    model : DriftModel

    Source: claim C30 (theory/claims) for what feeds back.
    """
    feeding = feeding_states(model)
    rules = dict(zip(model.states, model.sync, strict=True))
    return tuple(state for state in feeding if rules[state].free_symbols & set(feeding))


def variational_model(model: DriftModel) -> DriftModel:
    """Return the states that feed back, and how they answer to a deviation in each carried state, as a drift model.

    Parameters
    ----------
    model : DriftModel

    Returns
    -------
    DriftModel
        The states that feed back, then one state for each of them and each carried one, rows first. Where an
        expression has a corner its slope is that of one side.

    Source: ours; the first variation of claim C30's cycle (theory/claims), at any point and not at the origin only.
    """
    states, carried = feeding_states(model), carried_states(model)
    deviations = [[sp.Symbol(f"{row}_per_{column}", real=True) for column in carried] for row in states]

    def varied(of: tuple[sp.Expr, ...]) -> tuple[sp.Expr, ...]:
        rows = [item for state, item in zip(model.states, of, strict=True) if state in states]
        slopes = [[slope(row, state) for state in states] for row in rows]
        linear = sp.Matrix(slopes) * sp.Matrix(deviations)
        return (*rows, *linear)

    known = {*states, *model.parameters}
    closed = bool(model.solution) and all(
        item.free_symbols <= known | {P, tau}
        for state, item in zip(model.states, model.solution, strict=True)
        if state in states
    )
    names = (*states, *(item for row in deviations for item in row))
    return DriftModel(
        name=f"{model.name}, variational equations",
        states=names,
        parameters=model.parameters,
        flow=varied(model.flow),
        sync=varied(model.sync),
        start=(sp.Integer(0),) * len(names),
        exits=(),
        solution=varied(model.solution) if closed else (),
    )


@dataclass(frozen=True, eq=False)
class CycleMap:
    """The map of a cycle on the carried states.

    Parameters
    ----------
    model : DriftModel
    cycle : function of states (num_states, cells), parameters (num_parameters, cells), products (cells,), tolerance
        One cycle of the variational model with its sync.
    """

    model: DriftModel
    cycle: Callable[[Array, Array, Array, float], Array]

    @cached_property
    def states(self) -> tuple[str, ...]:
        """Names of the carried states."""
        return tuple(str(state) for state in carried_states(self.model))

    @cached_property
    def _reset(self) -> Callable[..., Any]:
        """Value that a sync gives to every state that feeds back, in the parameters; 0 stands for a carried one."""
        carried = carried_states(self.model)
        rules = dict(zip(self.model.states, self.model.sync, strict=True))
        values = [sp.Integer(0) if state in carried else rules[state] for state in feeding_states(self.model)]
        compiled: Callable[..., Any] = sp.lambdify((*self.model.parameters, P), values, modules="numpy")
        return compiled

    def require(self, values: Mapping[str, float]) -> None:
        """Refuse values that are no numbers, missing, unknown or out of range; raises InputError."""
        grid_of(self.model, values, {})
        for name in RUN:
            if not 0.0 < values[name] < np.inf:
                way_out = "S*eta is the length of a cycle."
                raise InputError(f"values: {name}", "be positive and finite", repr(values[name]), way_out)
        parameters = members_of(self.model, values).parameters[:, 0]
        self.model.numbers(dict(zip(self.model.parameter_names, parameters.tolist(), strict=True)))

    def cells(self, values: Mapping[str, ArrayLike]) -> tuple[Array, Array]:
        """Parameters of the model, shape (num_parameters, cells), and S*eta [1], shape (cells,), of named values."""
        members = members_of(self.model, values)
        return members.parameters, members.sync_interval * members.learning_rate

    def __call__(
        self, states: Array, parameters: Array, products: Array, *, tolerance: float = TOLERANCE
    ) -> tuple[Array, Array]:
        """Walk one cycle.

        Parameters
        ----------
        states : array, shape (n, cells)
            Carried states just after a sync.
        parameters : array, shape (num_parameters, cells)
        products : array, shape (cells,) [1]
            S*eta; where it is not positive there is no cycle.
        tolerance : float

        Returns
        -------
        (array, shape (n, cells), array, shape (cells, n, n))
            Carried states just after the next sync, and their derivatives; NaN where the cycle has no length or the
            numerics fail.
        """
        feeding, size = feeding_states(self.model), len(self.states)
        rows = [feeding.index(state) for state in carried_states(self.model)]
        begin = np.array([np.broadcast_to(row, products.shape) for row in self._reset(*parameters, products)], float)
        begin[rows] = states
        unit = np.zeros((len(feeding), size))
        unit[rows, range(size)] = 1.0
        deviations = np.broadcast_to(unit.reshape(-1, 1), (unit.size, products.size))
        lengths = np.where(products > 0.0, products, 1.0)
        after = self.cycle(np.vstack([begin, deviations]), parameters, lengths, tolerance)
        after = np.where(products > 0.0, after, np.nan)
        jacobian = after[len(feeding) :].reshape(len(feeding), size, products.size)[rows]
        return after[rows], np.moveaxis(jacobian, 2, 0)


@cache
def cycle_map(model: DriftModel) -> CycleMap:
    """Compile the map of a cycle, or find it compiled.

    Parameters
    ----------
    model : DriftModel

    Raises
    ------
    InputError
        If no state is carried across a sync, or an expression cannot be compiled.

    Source: claim C30 (theory/claims). Error: `TOLERANCE` of a step.
    """
    if not carried_states(model):
        way_out = "Without one every cycle is the same; see meanfield.engine.trajectory."
        raise InputError(model.name, "carry a state that feeds back across a sync", f"only {model.states}", way_out)
    compiled = compile_model(variational_model(model))

    def cycle(states: Array, parameters: Array, products: Array, tolerance: float) -> Array:
        return compiled.cycle(states, parameters, products, tolerance=tolerance)

    return CycleMap(model, cycle)

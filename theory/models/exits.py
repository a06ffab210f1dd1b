"""When saturated drift meets the exits of a model, and where one exit takes over from the other."""

import sympy as sp

from theory.errors import InputError
from theory.models.cycle import feeding_states
from theory.models.model import CycleEndExit, DriftModel, Exit, WithinExit
from theory.symbols import T, tau

_scale = sp.Symbol("scale", positive=True)
_elapsed = sp.Symbol("elapsed", positive=True)


def saturated_flow(model: DriftModel) -> tuple[sp.Expr, ...]:
    """Flow in the limit where every state that feeds back is positive and large.

    Parameters
    ----------
    model : DriftModel

    Returns
    -------
    tuple of expressions
        In the parameters, one for each state.

    Raises
    ------
    InputError
        If a flow has no finite limit.

    Source: claim C34 (theory/claims).
    """
    large = {state: _scale * sp.Symbol(f"{state}_direction", positive=True) for state in feeding_states(model)}
    flows = tuple(_limit(item.subs(large), dict.fromkeys(model.signals, 0)) for item in model.flow)
    for state, flow in zip(model.states, flows, strict=True):
        if not flow.is_finite or flow.free_symbols - set(model.parameters):
            raise InputError(f"{model.name}: flow of {state}", "saturate", flow, "Give it a drive that saturates.")
    return flows


def _limit(flow: sp.Expr, off: dict[sp.Symbol, int]) -> sp.Expr:
    """Limit of a flow; where sympy has none, with the signals off, which a large state outweighs in a drive."""
    found = sp.limit(flow, _scale, sp.oo)
    return sp.limit(flow.subs(off), _scale, sp.oo) if found.has(sp.Limit) else found


def exit_clock(model: DriftModel, name: str) -> sp.Expr:
    """eta*t at which saturated drift meets an exit: since the start, or since the last sync for an end of a cycle.

    Parameters
    ----------
    model : DriftModel
    name : str
        Of an exit that the drift meets once, on a straight line.

    Returns
    -------
    expression [1]

    Raises
    ------
    InputError
        If the exit is unknown, or is not met once.

    Source: claim C34 (theory/claims).
    """
    leave = _exit(model, name)
    begin = model.sync if isinstance(leave, CycleEndExit) else model.start
    path = {
        state: begun + speed * _elapsed
        for state, begun, speed in zip(model.states, begin, saturated_flow(model), strict=True)
    }
    met = sp.solve(sp.Eq(leave.expression.subs(path), leave.limit), _elapsed)
    if len(met) != 1 or met[0].free_symbols - set(model.parameters):
        raise InputError(f"{model.name}: exit {name}", "be met once on a straight line", met, "Start it at zero.")
    return sp.simplify(met[0])


def crossover_lag(model: DriftModel, *, cycle_end: str, within: str) -> sp.Expr:
    """Sync interval at which two exits allow the same learning rate: below it the horizon binds, above it the cycle.

    Parameters
    ----------
    model : DriftModel
    cycle_end, within : str
        Names of the exits.

    Returns
    -------
    expression [optimizer steps]
        In T and the parameters.

    Raises
    ------
    InputError
        As `exit_clock`, and if an exit is of the other kind.

    Source: claim C34 (theory/claims).
    """
    for name, kind in ((cycle_end, CycleEndExit), (within, WithinExit)):
        if not isinstance(_exit(model, name), kind):
            raise InputError(f"{model.name}: exit {name}", f"be a {kind.__name__}", "the other kind", "Swap the names.")
    rate = exit_clock(model, within) / T
    (interval,) = sp.solve(sp.Eq(tau * rate, exit_clock(model, cycle_end)), tau)
    return sp.simplify(interval)


def _exit(model: DriftModel, name: str) -> Exit:
    for item in model.exits:
        if item.name == name:
            return item
    known = ", ".join(item.name for item in model.exits)
    raise InputError(f"{model.name}: exit", "be one of the model's", repr(name), f"Known: {known}.")

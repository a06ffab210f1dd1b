"""What one sync cycle does to a small deviation, for any drift model: multiplier, boundary in P = S*eta, elasticities.

The flow is linearised where all states that feed back are zero and all signals are off. A cycle maps a deviation by
the Jacobian of the sync times exp(P * Jacobian of the flow); drift dies where every eigenvalue lies inside the unit
circle. Where sympy solves an eigenvalue on the circle for P the boundary is closed, else it is found by numbers.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
import scipy.linalg
import scipy.optimize
import sympy as sp
from numpy.typing import NDArray

from theory.errors import InputError
from theory.models.model import DriftModel
from theory.symbols import P

SAMPLES = 200
"""Parameter sets, log-uniform from 0.1 to 10, on which a solution must be real and positive at least once."""
NEAR = 1e-6
"""How far from a solution, as a share of it, the multiplier is looked at on both sides."""
STEP = 1e-5
"""Relative step of the central differences of an implicit boundary; their error is about 1e-9."""


def feeding_states(model: DriftModel) -> tuple[sp.Symbol, ...]:
    """States that feed back on the motion; the others only count.

    A state only counts if no flow holds it, no sync but its own does, and that adds to it or sets it anew; and so on
    with what it leaves.

    Parameters
    ----------
    model : DriftModel

    Source: claim C30 (theory/claims).
    """
    rules = {state: (flow, sync) for state, flow, sync in zip(model.states, model.flow, model.sync, strict=True)}
    counts = True
    while counts:
        counts = False
        for state, (_, own) in list(rules.items()):
            others = [sync for name, (_, sync) in rules.items() if name != state]
            feeds = own.has(state) and sp.expand(own - state).has(state)
            if not feeds and not any(item.has(state) for item in (*(flow for flow, _ in rules.values()), *others)):
                del rules[state]
                counts = True
    return tuple(rules)


def counting_states(model: DriftModel) -> tuple[sp.Symbol, ...]:
    """States that feed back on nothing, such as a displacement in all; source: claim C30 (theory/claims)."""
    feeding = feeding_states(model)
    return tuple(state for state in model.states if state not in feeding)


@dataclass(frozen=True)
class LinearCycle:
    """A cycle linearised at the origin.

    Attributes
    ----------
    states : tuple of symbols, length n
        Those that feed back.
    parameters : tuple of symbols
    flow, sync : immutable matrices, shape (n, n)
        The two Jacobians; they may hold P.
    """

    states: tuple[sp.Symbol, ...]
    parameters: tuple[sp.Symbol, ...]
    flow: sp.ImmutableMatrix
    sync: sp.ImmutableMatrix

    @cached_property
    def map(self) -> sp.Matrix:
        """The map of a whole cycle without the states that a sync sets to zero: they carry nothing across it."""
        whole = self.sync * (self.flow * P).exp()
        kept = [row for row in range(len(self.states)) if any(item != 0 for item in self.sync.row(row))]
        return sp.simplify(whole.extract(kept, kept))

    @cached_property
    def _numbers(self) -> Callable[..., tuple[Any, Any]]:
        compiled: Callable[..., tuple[Any, Any]] = sp.lambdify(
            (*self.parameters, P), (self.flow, self.sync), modules="numpy"
        )
        return compiled

    def numeric_map(self, numbers: tuple[float, ...], product: float) -> NDArray[np.float64]:
        """The map in numbers [1], shape (n, n), at S*eta = product."""
        try:
            flow, sync = (np.asarray(item, dtype=np.float64) for item in self._numbers(*numbers, product))
        except ZeroDivisionError:
            way_out = "Give a small positive number where a parameter divides."
            raise InputError("values", "leave flow and sync finite", numbers, way_out) from None
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(sync @ scipy.linalg.expm(product * flow), dtype=np.float64)


@cache
def linear_cycle(model: DriftModel) -> LinearCycle:
    """Linearise a cycle of a model at its fixed point, the origin.

    Parameters
    ----------
    model : DriftModel

    Raises
    ------
    InputError
        If no state feeds back, or the origin does not stay where it is with the signals off.

    Source: claim C30 (theory/claims).
    """
    states = feeding_states(model)
    if not states:
        way_out = "Without one there is no threshold; see theory/models/exits.py for its exits."
        raise InputError(model.name, "have a state that feeds back", f"only {model.states}", way_out)
    off = dict.fromkeys((*states, *model.signals), 0)

    def rows(of: tuple[sp.Expr, ...]) -> sp.Matrix:
        return sp.Matrix([item for state, item in zip(model.states, of, strict=True) if state in states])

    for name, of in (("flow", model.flow), ("sync", model.sync)):
        moved = sp.simplify(rows(of).subs(off))
        if any(item != 0 for item in moved):
            way_out = "Name the parameters that drive it in signals, or measure the states from the fixed point."
            raise InputError(f"{model.name}: {name}", "leave the origin where it is", list(moved), way_out)
    flow, sync = (sp.simplify(rows(of).jacobian(states).subs(off)) for of in (model.flow, model.sync))
    return LinearCycle(states, model.parameters, sp.ImmutableMatrix(flow), sp.ImmutableMatrix(sync))


@cache
def multiplier(model: DriftModel) -> sp.Expr:
    """Factor by which a small deviation grows from sync to sync, where a single number says it.

    Raises
    ------
    InputError
        If more than one eigenvalue differs from zero; `numeric_multiplier` still answers.

    Source: claim C30 (theory/claims).
    """
    carried = linear_cycle(model).map
    if sp.simplify(carried.rank()) > 1:
        raise InputError(model.name, "carry one direction across a sync", carried.rank(), "Use numeric_multiplier.")
    return sp.simplify(carried.trace())


@cache
def crossings(model: DriftModel) -> tuple[sp.Expr, ...]:
    """Expressions that are zero where an eigenvalue of the cycle lies on the unit circle, for up to two directions.

    If a sync changes nothing, it is the flow alone that must be stable: determinant, and trace for a pair. Else the
    map has an eigenvalue 1 or -1, or a pair on the circle, whose product, the determinant, is 1. Empty for more.

    Source: claim C30 (theory/claims).
    """
    cycle = linear_cycle(model)
    size = len(cycle.states)
    if cycle.sync == sp.eye(size):
        return (cycle.flow.det(), cycle.flow.trace())[:size] if size <= 2 else ()
    carried = cycle.map if size <= 2 else None
    if carried is None:
        return ()
    here = sp.eye(carried.rows)
    found = [(carried - here).det(), (carried + here).det()]
    if carried.rows == 2:
        found.append(carried.det() - 1)
    return tuple(sp.simplify(item) for item in found)


@cache
def closed_boundaries(model: DriftModel) -> tuple[sp.Expr, ...] | None:
    """Solutions of the crossings for P that are real and positive somewhere; None where sympy has none for one."""
    candidates: list[sp.Expr] = []
    if not crossings(model):
        return None
    for condition in crossings(model):
        if not condition.has(P):
            continue
        try:
            candidates += sp.solve(sp.Eq(condition, 0), P)
        except NotImplementedError:  # how sympy says that it has no solution in closed form
            return None
    return tuple(sp.simplify(item) for item in candidates if _ever_positive(item, model.parameters))


def _ever_positive(solution: sp.Expr, parameters: tuple[sp.Symbol, ...]) -> bool:
    samples = 10.0 ** np.random.default_rng(0).uniform(-1.0, 1.0, size=(SAMPLES, len(parameters)))
    return any(_positive(value) for value in _evaluate(solution, parameters, samples))


def _evaluate(solution: sp.Expr, parameters: tuple[sp.Symbol, ...], samples: NDArray[np.float64]) -> list[complex]:
    compiled = sp.lambdify(parameters, solution, modules="numpy")
    with np.errstate(all="ignore"):
        return [complex(compiled(*row)) for row in samples.astype(np.complex128)]


def _positive(value: complex) -> bool:
    return math.isfinite(value.real) and value.real > 0.0 and abs(value.imag) <= 1e-12 * value.real


def boundary(model: DriftModel) -> sp.Expr:
    """S*eta on the stability boundary, where sympy has it in closed form.

    Parameters
    ----------
    model : DriftModel

    Returns
    -------
    expression [1]
        In the parameters; it counts where it is real and positive.

    Raises
    ------
    InputError
        If there is no closed form, or more than one; `boundary_product` still answers.

    Source: claim C30 (theory/claims).
    """
    found = closed_boundaries(model)
    if found is None or len(found) != 1:
        what = "none" if found is None else f"{len(found)}"
        raise InputError(model.name, "have one closed boundary", what, "Use boundary_product with a bracket.")
    return found[0]


def numeric_multiplier(model: DriftModel, values: Mapping[str, float], product: float) -> float:
    """Spectral radius [1] of the cycle map at S*eta = product; above 1 drift stays alive; NaN beyond a float.

    Source: claim C30 (theory/claims). Error: that of the matrix exponential, near rounding.
    """
    carried = linear_cycle(model).numeric_map(model.numbers(values), product)
    return float(np.max(np.abs(np.linalg.eigvals(carried)))) if np.all(np.isfinite(carried)) else math.nan


def boundary_product(
    model: DriftModel, values: Mapping[str, float], *, bracket: tuple[float, float] = (1e-6, 1e3)
) -> float:
    """S*eta at which drift first stays alive.

    Parameters
    ----------
    model : DriftModel
    values : mapping from the name of a parameter to its value
    bracket : (float, float) [1]
        Where the boundary is looked for if it has no closed form.

    Returns
    -------
    float [1]
        Upper end of the stable interval that starts at 0; inf where there is none, 0 where nothing is stable.

    Raises
    ------
    InputError
        If a value or the bracket cannot be used.

    Source: claim C30 (theory/claims). Error: rounding if closed, else 1e-12 of the value; two boundaries closer than
    2 % are seen as none.
    """
    numbers = model.numbers(values)
    low, high = bracket
    if not 0.0 < low < high < math.inf:
        raise InputError("bracket", "be two increasing positive numbers", bracket, "Give (1e-6, 1e3).")

    def excess(product: float) -> float:
        found = numeric_multiplier(model, values, product)
        return math.nan if math.isnan(found) else math.log(max(found, 1e-300))

    found = [_evaluate(item, model.parameters, np.array([numbers]))[0] for item in closed_boundaries(model) or ()]
    if closed_boundaries(model) is None or not np.all(np.isfinite(found)):  # 0/0 in a limit that exists
        return _first_root(excess, low, high)
    for product in sorted(value.real for value in found if _positive(value)):
        if excess(product * (1.0 - NEAR)) < 0.0 < excess(product * (1.0 + NEAR)):
            return product
    return _first_root(excess, low, high)


def _first_root(excess: Callable[[float], float], low: float, high: float) -> float:
    """First upward zero on a logarithmic scan, then Brent's method."""
    with np.errstate(over="ignore"):
        scan = np.geomspace(low, high, 1 + math.ceil(math.log(high / low) / math.log(1.02)))
        before = float(scan[0])
        if excess(before) > 0.0:
            return 0.0
        for after in scan[1:]:
            if math.isnan(excess(float(after))):  # the flow overflows, and no root came before
                return math.inf
            if excess(float(after)) > 0.0:
                return float(scipy.optimize.brentq(excess, before, float(after), xtol=1e-14, rtol=1e-12))
            before = float(after)
    return math.inf


def closed_elasticities(model: DriftModel) -> dict[str, sp.Expr]:
    """D log(boundary) / d log(parameter) of a closed boundary, for every parameter but the signals.

    Raises
    ------
    InputError
        If the boundary is not closed.

    Source: claim C30 (theory/claims).
    """
    product = boundary(model)
    slow = [symbol for symbol in model.parameters if symbol not in model.signals]
    return {str(symbol): sp.simplify(symbol * sp.diff(product, symbol) / product) for symbol in slow}


def elasticities(
    model: DriftModel, values: Mapping[str, float], *, bracket: tuple[float, float] = (1e-6, 1e3)
) -> dict[str, float]:
    """Per cent by which the boundary moves if a parameter moves by one per cent.

    With F = log(multiplier), which is zero on the boundary, it is -(p*dF/dp)/(P*dF/dP), so the boundary itself need
    not be solved again.

    Parameters
    ----------
    model, values, bracket
        As `boundary_product`.

    Returns
    -------
    dict from the name of a parameter to a number [1]

    Raises
    ------
    InputError
        As `boundary_product`, and if there is no boundary.

    Source: claim C30 (theory/claims). Error: about 1e-9, that of central differences.
    """
    product = boundary_product(model, values, bracket=bracket)
    if not 0.0 < product < math.inf:
        raise InputError(f"{model.name}: values", "have a boundary", product, "Change them or the bracket.")

    def slope(of: Callable[[float], float]) -> float:
        return math.log(of(1.0 + STEP) / of(1.0 - STEP)) / (2.0 * STEP)

    along = slope(lambda factor: numeric_multiplier(model, values, product * factor))

    def one(name: str) -> float:
        changed = slope(lambda factor: numeric_multiplier(model, {**values, name: values[name] * factor}, product))
        return 0.0 - changed / along

    signals = {str(symbol) for symbol in model.signals}
    return {name: one(name) for name in model.parameter_names if name not in signals}

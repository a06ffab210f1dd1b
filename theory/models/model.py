"""What a drift model is: states, their flow inside a sync cycle, the map at a sync, and the exits.

Inside a cycle the clock is eta*t, so one cycle lasts P = S*eta; the symbol P may appear in a flow or a sync. Nothing
here is solved: theory/models/cycle.py derives boundaries, theory/models/exits.py exits.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import SupportsFloat

import sympy as sp

from theory.errors import InputError
from theory.symbols import P, tau


@dataclass(frozen=True)
class CycleEndExit:
    """An exit that is looked at just before a sync: it fires where `expression` >= `limit`.

    Attributes
    ----------
    name : str
    expression : sympy expression
        In the states and parameters.
    limit : sympy expression
        In the parameters.
    """

    name: str
    expression: sp.Expr
    limit: sp.Expr


@dataclass(frozen=True)
class WithinExit:
    """An exit that may fire at any moment of a cycle, where `expression` >= `limit`; fields as `CycleEndExit`."""

    name: str
    expression: sp.Expr
    limit: sp.Expr


Exit = CycleEndExit | WithinExit


def _number(value: object) -> float:
    """Return the value as a float, NaN if it is no number (True is not a number here)."""
    return float(value) if isinstance(value, SupportsFloat) and not isinstance(value, bool) else math.nan


@dataclass(frozen=True)
class DriftModel:
    """A drift model, with everything in sympy.

    Parameters
    ----------
    name : str
    states : tuple of symbols
    parameters : tuple of symbols
        In the order in which they are reported.
    flow : tuple of expressions
        d(state)/d(eta*t) inside a cycle, one for each state.
    sync : tuple of expressions
        New value of each state at a sync, from the values just before it.
    start : tuple of expressions
        Value of each state at the beginning, in the parameters.
    exits : tuple of CycleEndExit or WithinExit
    signals : tuple of symbols
        Parameters that drive the model also where every state is zero; stability is judged with all of them zero.
    claims : tuple of str
        Ids of the claims that the model rests on; they go with what is simulated.
    noise : tuple of expressions
        Standard deviation of the noise of one optimizer step, per unit of eta, one for each state; empty for none. A
        step adds eta*flow + eta*noise*xi with xi standard normal: in the clock eta*t the diffusion is eta*noise**2.
    solution : tuple of expressions
        Each state at the clock tau of theory/symbols since the last sync, in the states just after it; empty where the
        flow has no closed form. What it replaces is the integration of `flow`, whose solution it has to be. Exits are
        then looked at once a cycle: between two syncs none may rise and fall more than once.

    Raises
    ------
    InputError
        If lengths differ, a name comes twice, or an expression holds a symbol that is not declared.

    Source: ours, a frame for the model of claim C5 and others like it.
    """

    name: str
    states: tuple[sp.Symbol, ...]
    parameters: tuple[sp.Symbol, ...]
    flow: tuple[sp.Expr, ...]
    sync: tuple[sp.Expr, ...]
    start: tuple[sp.Expr, ...]
    exits: tuple[Exit, ...]
    signals: tuple[sp.Symbol, ...] = ()
    claims: tuple[str, ...] = ()
    noise: tuple[sp.Expr, ...] = ()
    solution: tuple[sp.Expr, ...] = ()

    def __post_init__(self) -> None:
        for field in ("states", "parameters", "flow", "sync", "start", "exits", "signals", "noise", "solution"):
            if not isinstance(getattr(self, field), tuple):
                given = type(getattr(self, field)).__name__
                raise InputError(f"{self.name}: {field}", "be a tuple", given, "For one item write (item,).")
        for field in ("flow", "sync", "start", "noise", "solution"):
            object.__setattr__(self, field, tuple(sp.sympify(item) for item in getattr(self, field)))
            if getattr(self, field) or field not in ("noise", "solution"):
                self._require_one_for_each_state(field)
        names = [str(symbol) for symbol in (*self.states, *self.parameters, P, tau)]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            rule = "have names of their own, P and tau kept free"
            raise InputError("states and parameters", rule, twice, "Rename one.")
        known = {*self.states, *self.parameters}
        for field in ("flow", "sync", "noise"):
            self._require_known(field, getattr(self, field), known | {P})
        self._require_known("solution", self.solution, known | {P, tau})
        self._require_known("start", self.start, set(self.parameters))
        self._require_known("signals", self.signals, set(self.parameters))
        for item in self.exits:
            self._require_known(f"exit {item.name}: expression", [item.expression], known)
            self._require_known(f"exit {item.name}: limit", [item.limit], set(self.parameters))

    def _require_one_for_each_state(self, field: str) -> None:
        given = len(getattr(self, field))
        if given != len(self.states):
            rule = f"hold one expression for each of the {len(self.states)} states"
            raise InputError(f"{self.name}: {field}", rule, given, f"Give them in the order {self.states}.")

    def _require_known(self, where: str, expressions: Iterable[sp.Expr], known: set[sp.Symbol]) -> None:
        used = set().union(*(sp.sympify(item).free_symbols for item in expressions))
        unknown = sorted(used - known, key=str)
        if unknown:
            names = ", ".join(sorted(map(str, known))) or "no symbol at all"
            way_out = "Declare it; two symbols of one name but other assumptions are two symbols."
            raise InputError(f"{self.name}: {where}", f"use declared symbols only ({names})", unknown, way_out)

    def _require_allowed(self, symbol: sp.Symbol, value: object) -> None:
        number = _number(value)
        rule = "be a number"
        allowed = not math.isnan(number)
        if allowed and symbol.is_nonnegative:  # zero is the limit of a positive one
            rule, allowed = "be >= 0", number >= 0.0
        if not allowed:
            raise InputError(f"{self.name}: {symbol}", rule, repr(value), "The model declares its symbol so.")

    @cached_property
    def parameter_names(self) -> tuple[str, ...]:
        """Names of the parameters, in their order."""
        return tuple(str(symbol) for symbol in self.parameters)

    def numbers(self, values: Mapping[str, float]) -> tuple[float, ...]:
        """Return the values in the order of the parameters.

        Parameters
        ----------
        values : mapping from the name of a parameter to its value

        Raises
        ------
        InputError
            If a parameter is missing or unknown, or a value is no number, or breaks what its symbol assumes.
        """
        known = ", ".join(self.parameter_names)
        for name in (*values, *self.parameter_names):
            if name not in self.parameter_names:
                raise InputError(f"{self.name}: values", "name parameters of the model", repr(name), f"Known: {known}.")
            if name not in values:
                raise InputError(f"{self.name}: values", "give every parameter", f"none for {name}", f"Give {known}.")
        for symbol, name in zip(self.parameters, self.parameter_names, strict=True):
            self._require_allowed(symbol, values[name])
        return tuple(float(values[name]) for name in self.parameter_names)

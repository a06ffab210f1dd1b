"""A symbolic drift model as Python source: the small functions that the hand-written body of the integrator calls.

Every function reads and writes rows of one flat workspace, one column a lane, so that a loop over lanes becomes SIMD
code. What holds no state is computed once a member, not once a stage; common subexpressions are shared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import sympy as sp
from sympy.core.relational import Relational
from sympy.functions.elementary.piecewise import ExprCondPair
from sympy.logic.boolalg import BooleanAtom, BooleanFunction
from sympy.printing.pycode import PythonCodePrinter
from sympy.utilities.iterables import numbered_symbols

from theory.errors import InputError
from theory.models.model import CycleEndExit, DriftModel, WithinExit
from theory.symbols import P, tau

FUNCTIONS = {
    "Abs": "abs",
    "acosh": "math.acosh",
    "asin": "math.asin",
    "asinh": "math.asinh",
    "atan": "math.atan",
    "atanh": "math.atanh",
    "cos": "math.cos",
    "cosh": "math.cosh",
    "erf": "math.erf",
    "erfc": "math.erfc",
    "exp": "math.exp",
    "log": "math.log",
    "sign": "_sign",
    "sin": "math.sin",
    "sinh": "math.sinh",
    "sqrt": "math.sqrt",
    "tan": "math.tan",
    "tanh": "_tanh",
}
"""Functions of sympy that can be compiled, and what stands for each."""

_OTHERS = (sp.Add, sp.Mul, sp.Pow, sp.Min, sp.Max, sp.Piecewise)
"""What else may stand in an expression, beside numbers, symbols and the conditions of a Piecewise."""
_WAY_OUT = f"Write it with {', '.join(FUNCTIONS)}, Min, Max and Piecewise."


class _Printer(PythonCodePrinter):  # type: ignore[misc]  # sympy is untyped
    """Expressions as Python that Numba compiles: float constants, products for small powers, own tanh."""

    def _print_Rational(self, expr: sp.Rational) -> str:  # noqa: N802
        return repr(float(expr))

    _print_Integer = _print_Rational
    _print_Float = _print_Rational

    def _print_NumberSymbol(self, expr: sp.NumberSymbol) -> str:  # noqa: N802
        return repr(float(expr))

    _print_Pi = _print_NumberSymbol
    _print_Exp1 = _print_NumberSymbol

    def _print_Pow(self, expr: sp.Pow, **_: object) -> str:  # noqa: N802
        base, power = expr.args
        if base == sp.E:
            return f"math.exp({self._print(power)})"
        inner = f"({self._print(base)})"
        if power.is_Integer and 1 <= abs(power) <= 4:
            product = "*".join([inner] * abs(int(power)))
            return f"({product})" if power > 0 else f"(1.0/({product}))"
        if abs(power) == sp.Rational(1, 2):
            return f"math.sqrt{inner}" if power > 0 else f"(1.0/math.sqrt{inner})"
        return f"({inner}**{self._print(power)})"

    def _print_Function(self, expr: sp.Function) -> str:  # noqa: N802
        return f"{FUNCTIONS[type(expr).__name__]}({', '.join(self._print(item) for item in expr.args)})"

    def _print_Max(self, expr: sp.Max) -> str:  # noqa: N802
        return self._nested("_larger", expr)

    def _print_Min(self, expr: sp.Min) -> str:  # noqa: N802
        return self._nested("_smaller", expr)

    def _nested(self, name: str, expr: sp.Expr) -> str:
        text: str = self._print(expr.args[0])
        for item in expr.args[1:]:
            text = f"{name}({text}, {self._print(item)})"
        return text


for _name in FUNCTIONS:
    setattr(_Printer, f"_print_{_name}", _Printer._print_Function)


def generate(model: DriftModel) -> str:
    """Return the Python source of a model's sizes and functions, to stand before the body of the integrator.

    Parameters
    ----------
    model : DriftModel

    Raises
    ------
    InputError
        If an expression holds what cannot be compiled.

    Source: the model's own expressions; nothing is approximated but tanh, to rounding.
    """
    states, leaders = state_order(model), _leaders(model)
    parts = _Parts(model, states)
    excess = {kind: exit_excess(model, kind) for kind in (WithinExit, CycleEndExit)}
    rows = {state: sp.Dummy(f"{state}_row", real=True) for state in states}
    slopes = {state: rows[leader] if (leader := _leader(model, state)) else sp.Integer(0) for state in states}
    counts = _counts(model)
    gains = {state: rows[state] for state in counts}
    shifts = [_shift(item, gains, set(states)) for kind in excess for item in excess[kind]]
    skips = bool(counts) and not model.noise and None not in shifts
    noisy = [row for row, state in enumerate(states) if model.noise and model.noise[model.states.index(state)] != 0]
    still = (sp.Integer(0),) * len(states)
    functions = [
        parts.function("start", "start", model.start),
        parts.function("flow", "flow", [model.flow[model.states.index(state)] for state in leaders], still=True),
        parts.function("sync", "sync", model.sync),
        parts.function("solution", "solution", model.solution or model.states, clock=True),
        parts.function("noise", "noise", model.noise or still),
        parts.function("within", "exits", excess[WithinExit]),
        parts.function("ends", "exits", excess[CycleEndExit]),
        parts.function("rates", "exits", [_rate(item, slopes) for item in excess[WithinExit]], rows=rows),
        parts.function("reach", "exits", [sp.Max(0, item) for item in shifts] if skips else [], rows=rows),
    ]
    sizes = {
        "NUM_STATES": len(states),
        "NUM_MOVING": len(leaders),
        "LEADER": tuple(states.index(leader) if (leader := _leader(model, state)) else -1 for state in states),
        "NUM_INPUTS": len(model.parameters) + 1,
        "NUM_DERIVED": len(parts.constants),
        "NUM_WITHIN": len(excess[WithinExit]),
        "NUM_ENDS": len(excess[CycleEndExit]),
        "NUM_EXITS": len(model.exits),
        "COUNTS": tuple(state in counts for state in states),
        "HAS_SOLUTION": bool(model.solution),
        "NUM_NOISY": len(noisy),
        "NOISY": tuple(noisy or [0]),
        "CAN_SKIP": skips,
    }
    whole = [_follow(model, states), _remember(model, states)]
    header = "\n".join(f"{name} = {value}" for name, value in sizes.items())
    return "\n\n\n".join([f"{_IMPORTS}\n{header}", parts.derived(), *whole, *functions])


_IMPORTS = """import math

import numba
import numpy as np

_inner = numba.njit(
    error_model="numpy", fastmath={"contract"}, forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True
)
"""


def exit_excess(model: DriftModel, kind: type) -> list[sp.Expr]:
    """Return how far each exit of a kind is beyond its limit, in the order of the model."""
    return [sp.sympify(item.expression) - item.limit for item in model.exits if isinstance(item, kind)]


def state_order(model: DriftModel) -> tuple[sp.Symbol, ...]:
    """Return the states as the compiled code keeps them: those that are integrated, then the others."""
    leaders = _leaders(model)
    return (*leaders, *(state for state in model.states if state not in leaders))


def _leaders(model: DriftModel) -> tuple[sp.Symbol, ...]:
    """States that are integrated: the others stand still within a cycle, or move as one of these does."""
    read = _read(model)
    leading = [state for state in model.states if _leader(model, state) == state]
    return tuple(sorted(leading, key=lambda state: state not in read))


def _leader(model: DriftModel, state: sp.Symbol) -> sp.Symbol | None:
    """Return the state whose integral moves a state: its own if a flow reads it, None if it stands still."""
    flow_of = dict(zip(model.states, model.flow, strict=True))
    if flow_of[state] == 0:
        return None
    read = _read(model)
    alike = [other for other in model.states if flow_of[other] == flow_of[state]]
    return state if state in read else sorted(alike, key=lambda other: other not in read)[0]


def _follow(model: DriftModel, states: tuple[sp.Symbol, ...]) -> str:
    """Return the source of the function that gives the states that are not integrated their values at NEW."""
    lines = ["@_inner\ndef follow(w, lane):"]
    for row in range(len(_leaders(model)), len(states)):
        leader = _leader(model, states[row])
        moved = "" if leader is None else f" + (w[(NEW + {states.index(leader)}) * LANES + lane]"
        moved += "" if leader is None else f" - w[(STATE + {states.index(leader)}) * LANES + lane])"
        lines.append(f"    w[(NEW + {row}) * LANES + lane] = w[(STATE + {row}) * LANES + lane]{moved}")
    return "\n".join([*lines, "    return"])


def _remember(model: DriftModel, states: tuple[sp.Symbol, ...]) -> str:
    """Return the source of the function that keeps the size of what a sync sets to zero: it starts from nothing."""
    lines = ["@_inner\ndef remember(w, lane):"]
    for row, state in enumerate(states[: len(_leaders(model))]):
        if model.sync[model.states.index(state)] == 0:
            place = f"w[(LARGEST + {row}) * LANES + lane]"
            lines.append(f"    {place} = max({place}, abs(w[(NEW + {row}) * LANES + lane]))")
    return "\n".join([*lines, "    return"])


def _read(model: DriftModel) -> tuple[sp.Symbol, ...]:
    return tuple(state for state in model.states if any(item.has(state) for item in model.flow))


def _counts(model: DriftModel) -> tuple[sp.Symbol, ...]:
    """States that nothing reads, and whose sync only adds to them: each further cycle alike adds the same."""
    found = []
    for state, sync in zip(model.states, model.sync, strict=True):
        others = [item for name, item in zip(model.states, model.sync, strict=True) if name != state]
        added = sp.expand(sync - state)
        if not any(item.has(state) for item in (*model.flow, *others, added)):
            found.append(state)
    return tuple(found)


def _rate(excess: sp.Expr, rows: dict[sp.Symbol, sp.Symbol]) -> sp.Expr:
    """How fast an excess grows, in terms of how fast the states do."""
    return sp.Add(*(slope(excess, state) * row for state, row in rows.items()))


def slope(expression: sp.Expr, symbol: sp.Symbol) -> sp.Expr:
    """Return the derivative for real numbers, without what sympy puts at a corner."""
    real = {item: sp.Dummy(item.name, real=True) for item in expression.free_symbols}
    found = sp.diff(expression.xreplace(real), real.get(symbol, symbol))
    found = found.replace(sp.DiracDelta, lambda *_: sp.Integer(0))
    found = found.rewrite(sp.Piecewise) if found.has(sp.Heaviside) else found
    return found.xreplace({dummy: item for item, dummy in real.items()})


def _shift(excess: sp.Expr, gains: dict[sp.Symbol, sp.Symbol], states: set[sp.Symbol]) -> sp.Expr | None:
    """By how much an excess can grow if the counting states grow by their gains.

    Exact for a line with a slope that holds no state, a bound for the modulus of one; None where it is neither.
    """
    held = [state for state in gains if excess.has(state)]
    if not held:
        return sp.Integer(0)
    if isinstance(excess, sp.Add):
        parts = [_shift(item, gains, states) for item in excess.args]
        return None if None in parts else sp.Add(*parts)
    if isinstance(excess, sp.Abs):
        inner = _shift(excess.args[0], gains, states)
        return None if inner is None else sp.Abs(inner)
    slopes = {state: slope(excess, state) for state in held}
    if any(item.free_symbols & states for item in slopes.values()):
        return None
    return sp.Add(*(item * gains[state] for state, item in slopes.items()))


_LENGTH = sp.Symbol("length", positive=True)


class _Parts:
    """Turns the expressions of one model into functions; keeps what is computed once a member."""

    def __init__(self, model: DriftModel, states: tuple[sp.Symbol, ...]) -> None:
        self.model = model
        self.states = states
        self.constants: dict[sp.Expr, sp.Symbol] = {}
        self.inputs = {symbol: sp.Symbol(f"p{index}", real=True) for index, symbol in enumerate((*model.parameters, P))}

    def function(
        self,
        name: str,
        field: str,
        expressions: Sequence[sp.Expr],
        *,
        still: bool = False,
        clock: bool = False,
        rows: Mapping[sp.Symbol, sp.Symbol] | None = None,
    ) -> str:
        """Return the source of one function of a lane that reads the states at `source` and fills rows at `target`.

        still: a flow, whose values count per cycle, and which finds what stands still among the states of the step;
        clock: takes the clock; rows: reads more rows, at `more`.
        """
        if field not in ("exits", "flow"):
            by_state = dict(zip(self.model.states, expressions, strict=True))
            expressions = [by_state[state] for state in self.states]
        for item in expressions:
            _require_compilable(f"{self.model.name}: {field}", item)
        local = {state: sp.Symbol(f"s{index}", real=True) for index, state in enumerate(self.states)}
        extra = {row: sp.Symbol(f"r{index}", real=True) for index, row in enumerate((rows or {}).values())}
        names = {**local, **extra, **self.inputs, tau: sp.Symbol("clock", real=True)}
        varying = {*local.values(), *extra.values(), names[tau]}
        scale = _LENGTH if still else sp.Integer(1)
        renamed = [self._hoisted(scale * item.xreplace(names), varying) for item in map(sp.sympify, expressions)]
        shared, values = sp.cse(renamed, symbols=numbered_symbols("t", real=True), order="canonical")
        used = set().union(*(item.free_symbols for _, item in shared), *(item.free_symbols for item in values))
        places = ["at", "h"] if still else ["source"]
        arguments = ["w", *places, *(["more"] if rows else []), "target", "lane", *(["clock"] if clock else [])]
        lines = [f"@_inner\ndef {name}({', '.join(arguments)}):"]
        lines += self._loads(used, local, extra, still=still)
        lines += [f"    {symbol} = {_PRINTER.doprint(item)}" for symbol, item in shared]
        for row, item in enumerate(values):
            lines.append(f"    w[(target + {row}) * LANES + lane] = {_PRINTER.doprint(item)}")
        return "\n".join([*lines, "    return"])

    def derived(self) -> str:
        """Return the source of the function that fills what is computed once a member; call it last."""
        lines = ["@_inner\ndef derive(w, lane):"]
        used = set().union(*(item.free_symbols for item in self.constants), set())
        lines += self._loads(used, {}, {}, still=False)
        for row, item in enumerate(self.constants):
            lines.append(f"    w[(DERIVED + {row}) * LANES + lane] = {_PRINTER.doprint(item)}")
        return "\n".join([*lines, "    return"])

    def _loads(
        self,
        used: set[sp.Symbol],
        local: dict[sp.Symbol, sp.Symbol],
        extra: dict[sp.Symbol, sp.Symbol],
        *,
        still: bool,
    ) -> list[str]:
        """Return the lines that load what is used; with `still`, states without a leader come from STATE."""
        places = {_LENGTH: "LENGTH"}
        places |= {symbol: f"INPUTS + {row}" for row, symbol in enumerate(self.inputs.values())}
        places |= {symbol: f"DERIVED + {row}" for row, symbol in enumerate(self.constants.values())}
        places |= {symbol: f"more + {row}" for row, symbol in enumerate(extra.values())}
        places |= {symbol: f"source + {row}" for row, symbol in enumerate(local.values())}
        found = {symbol: f"w[({place}) * LANES + lane]" for symbol, place in places.items()}
        for row, (state, symbol) in enumerate(local.items()):
            if still:
                moves = _leader(self.model, state) is not None
                found[symbol] = f"at(w, h, {row} * LANES + lane)" if moves else f"w[(STATE + {row}) * LANES + lane]"
        return [f"    {symbol} = {value}" for symbol, value in found.items() if symbol in used]

    def _hoisted(self, expr: sp.Expr, varying: set[sp.Symbol]) -> sp.Expr:
        """Put a symbol in the place of every part that holds nothing that varies, where computing it costs anything."""
        if expr.is_Atom:
            return expr
        if not expr.free_symbols & varying:
            return self._constant(expr)
        if isinstance(expr, sp.Add | sp.Mul):
            fixed = [item for item in expr.args if not item.free_symbols & varying]
            moving = [self._hoisted(item, varying) for item in expr.args if item.free_symbols & varying]
            return expr.func(self._constant(expr.func(*fixed)), *moving) if fixed else expr.func(*moving)
        return expr.func(*(self._hoisted(item, varying) for item in expr.args))

    def _constant(self, expr: sp.Expr) -> sp.Expr:
        if expr.is_Atom or not expr.free_symbols:
            return expr
        return self.constants.setdefault(expr, sp.Symbol(f"c{len(self.constants)}", real=True))


def _require_compilable(where: str, expr: sp.Expr) -> None:
    for item in sp.preorder_traversal(sp.sympify(expr)):
        number = item.is_number and item.is_Atom and item.is_finite and item.is_real
        condition = isinstance(item, Relational | BooleanFunction | BooleanAtom | ExprCondPair)
        known = isinstance(item, _OTHERS) or type(item).__name__ in FUNCTIONS
        if not (item.is_Symbol or number or condition or known):
            raise InputError(where, "hold only what can be compiled", item, _WAY_OUT)


_PRINTER = _Printer({"fully_qualified_modules": True})

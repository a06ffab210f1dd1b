"""What the explorer shows, as a value: states, changes that return a new state, undo, and links. No window here."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from urllib.parse import parse_qsl, urlencode

import numpy as np

from meanfield import arguments
from meanfield.engine.values import RUN, names_of
from meanfield.explore.presets import DEFAULT, model_of, preset_of, range_of
from meanfield.grids import Array
from theory.errors import InputError
from theory.symbols import S, eta

MAX_CELLS = 400
"""Most cells on a side of the picture."""
DEFAULT_CELLS = 100
DEFAULT_HORIZON = 2000
FIRST_INTERVAL = 16.0
"""Sync interval of the cell that is chosen at first [optimizer steps]."""
_BOUND = {str(S): RUN[0], str(eta): RUN[1]}


@dataclass(frozen=True)
class Axis:
    """A logarithmic axis of the picture.

    Parameters
    ----------
    name : str
        A parameter of the model, "sync_interval" or "learning_rate".
    low, high : float
        First and last value, 0 < low < high; whole for sync_interval.

    Raises
    ------
    InputError
        If the ends cannot be used.
    """

    name: str
    low: float
    high: float

    def __post_init__(self) -> None:
        if not 0.0 < self.low < self.high < math.inf:
            way_out = "The axis is logarithmic: give two positive numbers, the smaller one first."
            raise InputError(f"axis {self.name}", "run from a positive number to a larger one", self.ends, way_out)
        if self.name == "sync_interval":
            for end in self.ends:
                arguments.sync_interval(end)

    @property
    def ends(self) -> tuple[float, float]:
        """First and last value."""
        return (self.low, self.high)

    def centres(self, cells: int) -> Array:
        """Values of the cells, shape (n,): evenly spaced in the logarithm; distinct whole numbers for sync_interval."""
        values = np.geomspace(self.low, self.high, cells)
        values[[0, -1]] = self.ends
        return np.unique(np.rint(values)) if self.name == "sync_interval" else values


@dataclass(frozen=True)
class ExplorerState:
    """Everything that decides what the explorer shows.

    Parameters
    ----------
    model : str
        Name of a built-in model, see `meanfield.explore.presets.PRESETS`.
    values : tuple of (str, float)
        A value for every parameter, for sync_interval and for learning_rate; that of an axis waits until it is none.
    x, y : Axis
    cells : int
        Cells on a side; fewer where sync intervals would come twice.
    horizon : int [optimizer step]
    selected : (float, float) or None
        The chosen cell by its values on x and y.

    Raises
    ------
    InputError
        If a name is unknown or a value cannot be used.
    """

    model: str
    values: tuple[tuple[str, float], ...]
    x: Axis
    y: Axis
    cells: int = DEFAULT_CELLS
    horizon: int = DEFAULT_HORIZON
    selected: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        names = names_of(model_of(self.model))
        given, known = [name for name, _ in self.values], ", ".join(names)
        for name in (*given, self.x.name, self.y.name):
            if name not in names:
                raise InputError(self.model, "be given its own parameters only", repr(name), f"Known: {known}.")
        for name in names:
            if given.count(name) != 1:
                raise InputError(name, "have one value", given.count(name), f"Give each of {known} once.")
        if self.x.name == self.y.name:
            raise InputError("x and y", "be two quantities", repr(self.x.name), f"Take two of {known}.")
        _require_values(self.model, self.numbers)
        if not 2 <= arguments.count("cells", self.cells, way_out="Use 100.") <= MAX_CELLS:
            raise InputError("cells", f"lie in 2..{MAX_CELLS}", self.cells, "Use 100.")
        arguments.horizon(self.horizon)
        for axis, value in zip((self.x, self.y), self.selected or (), strict=False):
            if not 0.0 < value < math.inf:
                raise InputError(f"selected {axis.name}", "be positive and finite", value, "Take a value on the axis.")
        if self.selected is not None:
            _require_values(self.model, self.run_values(*self.selected))

    @classmethod
    def of(cls, model: str = DEFAULT) -> ExplorerState:
        """Return the state that a model begins with: S and eta as axes, a cell near the middle chosen.

        Raises
        ------
        InputError
            If the model is unknown.
        """
        preset = preset_of(model)
        middles = {name: range_of(model, name).value(0.5) for name in RUN}
        values = {**preset.values, **middles}
        x, y = (first_axis(model, name) for name in RUN)
        state = cls(model, tuple((name, values[name]) for name in names_of(model_of(model))), x, y)
        return state.select(FIRST_INTERVAL, middles["learning_rate"])

    @property
    def numbers(self) -> dict[str, float]:
        """Value of every name."""
        return dict(self.values)

    @property
    def fixed(self) -> dict[str, float]:
        """Value of every name that is no axis."""
        return {name: value for name, value in self.values if name not in (self.x.name, self.y.name)}

    def run_values(self, x: float, y: float) -> dict[str, float]:
        """Value of every name for the run at a place of the picture."""
        return {**self.numbers, self.x.name: x, self.y.name: y}

    def centres(self) -> tuple[Array, Array]:
        """Values of the cells on x and y, shapes (num_columns,) and (num_rows,)."""
        return self.x.centres(self.cells), self.y.centres(self.cells)

    def with_value(self, name: str, value: float) -> ExplorerState:
        """Return the state with another value of a parameter, of sync_interval, of learning_rate or of horizon.

        Raises
        ------
        InputError
            If the name is unknown or the value cannot be used.
        """
        if name == "horizon":
            return replace(self, horizon=arguments.horizon(value))
        if name not in self.numbers:
            raise InputError("name", f"be one of {', '.join(self.numbers)} or horizon", repr(name), "Correct it.")
        return replace(self, values=tuple((key, value if key == name else old) for key, old in self.values))

    def with_axes(self, x: Axis, y: Axis) -> ExplorerState:
        """Return the state with other axes or ranges; the chosen run stays the same, where it lies on both of them.

        Raises
        ------
        InputError
            If the axes are no two quantities of the model.
        """
        bare = replace(self, x=x, y=y, selected=None)
        if self.selected is None:
            return bare
        run = self.run_values(*self.selected)
        place = (run[x.name], run[y.name])
        on_both = x.low <= place[0] <= x.high and y.low <= place[1] <= y.high
        values = tuple((name, run[name]) for name, _ in self.values)
        return replace(bare, values=values, selected=place if on_both else None)

    def with_axis(self, place: str, name: str) -> ExplorerState:
        """Return the state with a quantity as the axis "x" or "y", over its whole range; the two swap if it has them.

        Raises
        ------
        InputError
            If the name is unknown.
        """
        if name not in self.numbers:
            raise InputError("axis", f"be one of {', '.join(self.numbers)}", repr(name), "Correct it.")
        axes = {"x": self.x, "y": self.y}
        other = "y" if place == "x" else "x"
        if name == axes[place].name:
            return self
        if name == axes[other].name:
            return self.with_axes(self.y, self.x)
        return self.with_axes(**{place: first_axis(self.model, name), other: axes[other]})

    def with_model(self, model: str) -> ExplorerState:
        """Return the state that another model begins with, at this size and horizon."""
        return replace(ExplorerState.of(model), cells=self.cells, horizon=self.horizon)

    def select(self, x: float, y: float) -> ExplorerState:
        """Return the state with the cell around a place chosen: the nearest centre in the logarithm."""
        near = [
            float(centres[np.argmin(np.abs(np.log(centres / value)))])
            for centres, value in zip(self.centres(), (x, y), strict=True)
        ]
        return replace(self, selected=(near[0], near[1]))

    def unselect(self) -> ExplorerState:
        """Return the state with no cell chosen."""
        return replace(self, selected=None)

    def to_link(self) -> str:
        """Return the whole state as a query string; `from_link` gives back the same floats."""
        items = [("model", self.model)]
        items += [
            (key, f"{axis.name},{float(axis.low)!r},{float(axis.high)!r}")
            for key, axis in (("x_axis", self.x), ("y_axis", self.y))
        ]
        items += [("cells", str(int(self.cells))), ("horizon", str(int(self.horizon)))]
        items += [(name, repr(float(value))) for name, value in self.values]
        if self.selected is not None:
            items.append(("at", ",".join(repr(float(value)) for value in self.selected)))
        return urlencode(items, safe=",")

    @classmethod
    def from_link(cls, link: str) -> ExplorerState:
        """Return the state of a query string.

        Parameters
        ----------
        link : str
            From `to_link`; what stands before a question mark is left out.

        Raises
        ------
        InputError
            If a part is missing, unknown, given twice or not readable, or a value cannot be used.
        """
        parts = _parts(link)
        model = parts.pop("model")
        x, y = (_axis(key, parts.pop(key)) for key in ("x_axis", "y_axis"))
        cells, horizon = (_whole(key, parts.pop(key)) for key in ("cells", "horizon"))
        at = parts.pop("at", None)
        values = tuple((name, _number(name, text)) for name, text in parts.items())
        selected = None if at is None else _pair("at", at)
        return cls(model, values, x, y, cells, horizon, selected)


def first_axis(model: str, name: str) -> Axis:
    """Return the axis over the whole range of a quantity of a built-in model."""
    return Axis(name, *range_of(model, name).axis())


def _require_values(model: str, values: dict[str, float]) -> None:
    """Refuse values that the model or a run cannot have; raises InputError."""
    arguments.sync_interval(values["sync_interval"])
    arguments.learning_rate(values["learning_rate"])
    for name, value in values.items():
        if not math.isfinite(value):
            raise InputError(name, "be a finite number", value, "Give a finite one.")
    drift = model_of(model)
    drift.numbers({name: values[_BOUND.get(name, name)] for name in drift.parameter_names})


_PARTS = ("model", "x_axis", "y_axis", "cells", "horizon")
_WAY_OUT = "Copy the whole link again."


def _parts(link: str) -> dict[str, str]:
    """Split a link into its parts, each once and none that every link has left out; raises InputError."""
    query = link.strip().rpartition("?")[2]
    try:
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=True)
    except ValueError:
        raise InputError("link", "be a list name=value&name=value", repr(link), _WAY_OUT) from None
    names = [name for name, _ in pairs]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"link: {name}", "be given once", names.count(name), _WAY_OUT)
    for name in _PARTS:
        if name not in names:
            raise InputError(f"link: {name}", "be given", "nothing", _WAY_OUT)
    return dict(pairs)


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"link: {name}", "be a number", repr(text), "Write it like 8 or 1e-3.") from None


def _whole(name: str, text: str) -> int:
    return arguments.count(f"link: {name}", _number(name, text), way_out="Write it like 100.")


def _pair(name: str, text: str) -> tuple[float, float]:
    pair = [_number(name, part) for part in text.split(",")]
    if len(pair) != 2:
        raise InputError(f"link: {name}", "be two numbers with a comma between", repr(text), _WAY_OUT)
    return (pair[0], pair[1])


def _axis(key: str, text: str) -> Axis:
    name, comma, ends = text.partition(",")
    if not comma:
        raise InputError(f"link: {key}", "be name,first,last", repr(text), "Write it like learning_rate,1e-4,0.1.")
    return Axis(name, *_pair(key, ends))

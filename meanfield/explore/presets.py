"""The built-in drift models in the explorer: names, values to begin with, ranges of the sliders, words."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

from meanfield.engine.values import grid_of
from theory.errors import InputError
from theory.models import builders
from theory.models.model import DriftModel
from theory.models.saturation import ALGEBRAIC, ERF, TANH
from theory.symbols import TABLE

LENGTH = "parameter distance"
DEFAULT = "persistent-tanh"
"""Name of the model that the explorer begins with."""


@dataclass(frozen=True)
class Range:
    """Values that a slider can take.

    Attributes
    ----------
    low, high : float
        Positive where the slider is logarithmic.
    linear : bool
        Whether the slider is linear; otherwise it is logarithmic.
    whole : bool
        Whether only whole numbers count.
    """

    low: float
    high: float
    linear: bool = False
    whole: bool = False

    def place(self, value: float) -> float:
        """Place of a value on the slider, from 0 to 1; values beyond an end are placed at that end."""
        if self.linear:
            share = (value - self.low) / (self.high - self.low)
        else:
            share = math.log(max(value, self.low) / self.low) / math.log(self.high / self.low)
        return min(max(share, 0.0), 1.0)

    def value(self, place: float) -> float:
        """Value at a place from 0 to 1, to four digits, which is finer than a slider."""
        if self.linear:
            value = self.low + place * (self.high - self.low)
        else:
            value = self.low * math.exp(place * math.log(self.high / self.low))
        return float(round(value)) if self.whole else float(f"{value:.4g}")

    def axis(self) -> tuple[float, float]:
        """Ends of a logarithmic axis over this range: one that begins at zero begins at a hundredth of its end."""
        return (self.low if self.low > 0.0 else self.high / 100.0, self.high)


@dataclass(frozen=True)
class Preset:
    """A built-in model with what its first picture needs.

    Attributes
    ----------
    build : function that returns the model
    values : mapping from the name of a parameter to its first value
    ranges : mapping from the name of a parameter to a Range
    rates : Range
        Of the learning rate.
    apart : tuple of str
        States that are drawn on a scale of their own, for they are no distances or far larger ones.
    """

    build: Callable[[], DriftModel]
    values: Mapping[str, float]
    ranges: Mapping[str, Range]
    rates: Range
    apart: tuple[str, ...] = ()


INTERVALS = Range(1.0, 1000.0, whole=True)
HORIZONS = Range(100.0, 20000.0, whole=True)

_PERSISTENT_VALUES = {
    "h": 0.0, "k_w": 8.0, "k_s": 20.0, "rho": 0.3, "v": 1.0, "sigma": 1.0, "m0": 0.01, "R_batch": 0.3, "R_crit": 0.8,
}  # fmt: skip
_PERSISTENT_RANGES = {
    "h": Range(0.0, 0.1, linear=True),
    "k_w": Range(0.8, 80.0),
    "k_s": Range(2.0, 200.0),
    "rho": Range(0.0, 0.98, linear=True),
    "v": Range(0.1, 10.0),
    "sigma": Range(0.1, 10.0),
    "m0": Range(1e-4, 1.0),
    "R_batch": Range(0.03, 3.0),
    "R_crit": Range(0.08, 8.0),
}
_PERSISTENT_RATES = Range(1e-4, 0.1)
_FROM_A_START = {"x0": Range(1e-3, 1.0), "R_crit": Range(0.1, 10.0)}

PRESETS: dict[str, Preset] = {
    "persistent-tanh": Preset(
        lambda: builders.persistent_drift(TANH), _PERSISTENT_VALUES, _PERSISTENT_RANGES, _PERSISTENT_RATES, ("m",)
    ),
    "persistent-algebraic": Preset(
        lambda: builders.persistent_drift(ALGEBRAIC), _PERSISTENT_VALUES, _PERSISTENT_RANGES, _PERSISTENT_RATES, ("m",)
    ),
    "persistent-erf": Preset(
        lambda: builders.persistent_drift(ERF), _PERSISTENT_VALUES, _PERSISTENT_RANGES, _PERSISTENT_RATES, ("m",)
    ),
    "two-constraint": Preset(
        builders.two_constraint,
        {"G_upd": 1.0, "R_batch": 0.05, "R_crit": 2.0},
        {"G_upd": Range(0.1, 10.0), "R_batch": Range(0.005, 0.5), "R_crit": Range(0.2, 20.0)},
        Range(3e-5, 0.03),
    ),
    "stale-quadratic": Preset(
        builders.stale_quadratic,
        {"K": 50.0, "f": 0.8, "x0": 0.1, "R_crit": 1.0},
        {"K": Range(5.0, 500.0), "f": Range(0.05, 0.98, linear=True), **_FROM_A_START},
        Range(1e-4, 0.1),
    ),
    "lagged-oscillator": Preset(
        builders.lagged_oscillator,
        {"K": 5.0, "mu": 0.9, "x0": 0.1, "R_crit": 1.0},
        {"K": Range(0.5, 50.0), "mu": Range(0.05, 0.98, linear=True), **_FROM_A_START},
        Range(1e-5, 0.1),
        ("w",),
    ),
}  # fmt: skip


def offer(model: DriftModel, values: Mapping[str, float], *, learning_rates: tuple[float, float] = (1e-5, 0.1)) -> str:
    """Let the explorer of this process show a model of one's own, beside the built-in ones.

    Parameters
    ----------
    model : DriftModel
        Without noise.
    values : mapping from the name of a parameter to its first value
        A slider goes from a tenth of it to ten times that; from 0 to 1 where it is 0.
    learning_rates : (float, float) [1]
        Ends of the slider, and of the axis.

    Returns
    -------
    str
        The name of the model, for `ExplorerState.of`.

    Raises
    ------
    InputError
        If the model has noise, or a value is missing, unknown or cannot be used.
    """
    if model.noise:
        way_out = "Use dataclasses.replace(model, noise=()), or meanfield.engine.ensemble for the noise."
        raise InputError("model", "have no noise", model.name, way_out)
    grid_of(model, dict(values), {"sync_interval": (1.0,), "learning_rate": learning_rates})
    ranges = {
        name: Range(value / 10.0, value * 10.0) if value else Range(0.0, 1.0, linear=True)
        for name, value in values.items()
    }
    PRESETS[model.name] = Preset(lambda: model, dict(values), ranges, Range(*learning_rates))
    model_of.cache_clear()
    return model.name


def preset_of(name: str) -> Preset:
    """Return a built-in model by its name; raises InputError on an unknown one."""
    if name not in PRESETS:
        raise InputError("model", "be a built-in model", repr(name), f"Use one of: {', '.join(PRESETS)}.")
    return PRESETS[name]


@cache
def model_of(name: str) -> DriftModel:
    """Return the drift model of a name, built once; raises InputError on an unknown name."""
    return preset_of(name).build()


def range_of(model: str, name: str) -> Range:
    """Return the range of a parameter of a built-in model, or of sync_interval, learning_rate or horizon."""
    preset = preset_of(model)
    shared = {"sync_interval": INTERVALS, "learning_rate": preset.rates, "horizon": HORIZONS}
    return {**preset.ranges, **shared}[name]


_LETTERS = {"eta": "η", "mu": "μ", "rho": "ρ", "sigma": "σ", "sync_interval": "S", "learning_rate": "η", "horizon": "T"}
_WORDS = {
    "x": ("displacement in all", LENGTH),
    "b": ("behaviour policy", LENGTH),
    "w": ("velocity dx/d(ηt)", LENGTH),
    "x0": ("displacement at the start", LENGTH),
    "m0": ("memory drive at the start", "1"),
    "d": ("drift since the last sync", LENGTH),
}
"""Letters that the symbol table lacks or uses for something else, and `d`, which needs more than its word here."""


def letter_of(name: str) -> str:
    """Letter of a parameter, a state, or a quantity of a run.

    >>> letter_of("sync_interval"), letter_of("k_w")
    ('S', 'k_w')
    """
    return _LETTERS.get(name, name)


def label_of(name: str) -> str:
    """Words, letter and unit of a parameter, a state, or a quantity of a run, for an axis, a slider or a legend.

    >>> label_of("sync_interval")
    'sync interval S [optimizer steps]'
    """
    table = {key: (row.word.replace("_", " "), row.unit) for row in TABLE for key in (row.word, row.letter)}
    words, unit = {**table, **_WORDS}.get(name, ("", "1"))
    if not words:
        return name
    return f"{words} {letter_of(name)}" + ("" if unit == "1" else f" [{unit}]")

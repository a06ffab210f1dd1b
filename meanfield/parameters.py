"""The parameters of the memory-only mean-field map: one frozen record, to and from TOML."""

import difflib
import math
import tomllib
from dataclasses import asdict, dataclass, fields
from numbers import Real
from pathlib import Path
from typing import Any, Self

from meanfield.tables import check_file, shorten, shown
from theory.errors import InputError

DEFAULT_INITIAL_MEMORY = 1e-3
"""Mean normalized update with which a run starts [1]: small, because nothing is aligned yet."""


@dataclass(frozen=True, kw_only=True)
class MapParameters:
    """Parameters of the map u -> tanh(h + (S*eta/C)*u) and of its exit.

    Parameters
    ----------
    critical_product : float [1]
        C, the value of S*eta on the stability boundary; positive and finite.
    exit_radius : float [1]
        R, the displacement at which the iterate leaves the region where the surrogate is valid, in units of
        cumulative learning rate at full drift speed; positive and finite. Saturated drift has this budget.
    honest_signal : float [1]
        h, the part of the drive that does not come from staleness; in [0, inf). With 0 the map is symmetric.
    initial_memory : float [1]
        u0, the mean normalized update of the first cycle; in [0, 1]. With h = u0 = 0 nothing moves.
    learning_rate_ceiling : float or None [1]
        Largest stable learning rate at S = 1, a matter apart from staleness; None if it is not known.
        The map does not use it: it caps the rates that `meanfield.predict` recommends.

    Raises
    ------
    InputError
        If a value is outside its range.

    Source: claims C1 and C2 (theory/claims).

    >>> MapParameters(critical_product=0.02, exit_radius=0.8).initial_memory
    0.001
    """

    critical_product: float
    exit_radius: float
    honest_signal: float = 0.0
    initial_memory: float = DEFAULT_INITIAL_MEMORY
    learning_rate_ceiling: float | None = None

    def __post_init__(self) -> None:
        store_positive(self, "critical_product", "Give S*eta on the stability boundary, for example 0.02.")
        store_positive(self, "exit_radius", "Give eta*T at collapse for saturated drift, for example 0.8.")
        store_within(self, "honest_signal", math.inf, "For a run without honest drift use 0.")
        store_within(self, "initial_memory", 1.0, f"The default is {DEFAULT_INITIAL_MEMORY}.")
        if self.learning_rate_ceiling is not None:
            store_positive(self, "learning_rate_ceiling", "If it is not known leave it out.")

    @classmethod
    def from_toml(cls, path: str | Path) -> Self:
        """Read the parameters from a TOML file with one key per parameter.

        Parameters
        ----------
        path : str or Path

        Returns
        -------
        MapParameters

        Raises
        ------
        InputError
            If the file cannot be read, a key is unknown or missing, or a value is outside its range.
        """
        path = Path(path)
        values = _read_toml(path)
        known = [field.name for field in fields(cls)]
        for key in values:
            if key not in known:
                nearest = difflib.get_close_matches(key, known, n=1, cutoff=0.0)[0]
                raise InputError(f"{path}: key", "be known", shown(key), f"The nearest is {nearest}.")
        for key in ("critical_product", "exit_radius"):
            if key not in values:
                raise InputError(f"{path}: {key}", "be given", "nothing", f"Add a line `{key} = ...`.")
        return cls(**values)

    def to_toml(self) -> str:
        """Return the TOML text that `from_toml` reads back to an equal record.

        >>> print(MapParameters(critical_product=0.02, exit_radius=0.8).to_toml(), end="")
        critical_product = 0.02
        exit_radius = 0.8
        honest_signal = 0.0
        initial_memory = 0.001
        """
        return "".join(f"{key} = {value!r}\n" for key, value in asdict(self).items() if value is not None)


def _read_toml(path: Path) -> dict[str, Any]:
    def refuse(reason: str, way_out: str = "Check the path.") -> InputError:
        return InputError(shorten(path), "be a readable TOML file", reason, way_out)

    check_file(path, refuse=refuse)
    way_out = "Write one `key = number` a line."
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise refuse(str(error.strerror)) from None
    except RecursionError:
        raise refuse("brackets nested too deeply", way_out) from None
    except ValueError as error:
        raise refuse(shorten(error), way_out) from None


def store_positive(record: object, name: str, way_out: str) -> None:
    """Check that a field of a frozen record is positive and finite, and store it as a float; raises InputError."""
    value = finite_number(getattr(record, name))
    if value is None or value <= 0.0:
        raise InputError(name, "be a positive finite number", shown(getattr(record, name)), way_out)
    object.__setattr__(record, name, value)


def store_within(record: object, name: str, top: float, way_out: str) -> None:
    """Check that a field of a frozen record lies in [0, top], finite, and store it as a float; raises InputError."""
    value = finite_number(getattr(record, name))
    if value is None or not 0.0 <= value <= top:
        rule = "be a finite number >= 0" if top == math.inf else f"be a number from 0 to {top:g}"
        raise InputError(name, rule, shown(getattr(record, name)), way_out)
    object.__setattr__(record, name, value)


def finite_number(value: object) -> float | None:
    """Return the value as a float, or None if it is not a finite number (True is not a number here)."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    try:
        number = float(value)
    except OverflowError:  # an integer or a fraction beyond 1e308
        return None
    return number if math.isfinite(number) else None

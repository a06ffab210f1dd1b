"""The runs table: one row a run, read from CSV, JSONL or Parquet, checked before anything is computed.

Columns: run, sync_interval [optimizer step], learning_rate [1], steps [optimizer step], outcome,
collapse_step [optimizer step]; optional collapse_step_low, collapse_step_high (the onset lies in
(low, high]), seed, and whatever else the owner wants to keep. Values are never repaired: a cell that breaks
a rule is an `InputError` that names its row.
"""

from __future__ import annotations

import csv
import difflib
import math
import re
from decimal import Decimal
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from meanfield.files import write_text
from meanfield.outcomes import Outcome
from meanfield.tables import read_table, shorten, shown
from theory.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

REQUIRED = ("run", "sync_interval", "learning_rate", "steps", "outcome")
"""Columns that must be there; `collapse_step` may be missing when no run has one."""
ONSET = ("collapse_step", "collapse_step_low", "collapse_step_high")
"""Columns of the onset, empty where there is none."""
ALIASES = {
    "run": ("name", "id", "run_id", "run_name", "experiment", "trial"),
    "sync_interval": ("s", "sync", "sync_every", "sync_steps", "sync_period", "refresh_interval"),
    "learning_rate": ("lr", "eta", "rate", "step_size", "learningrate"),
    "steps": ("t", "num_steps", "n_steps", "total_steps", "max_steps", "train_steps", "training_steps", "horizon"),
    "outcome": ("status", "label", "result", "state", "verdict"),
}
"""Other names of the required columns, in lower case; they are offered as a rename, never taken."""
MAX_STEPS = 1e12
"""Largest steps and largest finite sync_interval [optimizer step]: more than any run, less than rounding."""
MIN_RATE, MAX_RATE = 1e-30, 1e30
"""Range of learning_rate [1], far beyond any that is used, within which no product overflows."""

_PLAIN = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_WORD = re.compile(r"[+-]?(inf|infinity|nan)", re.ASCII | re.IGNORECASE)


def read_runs(path: str | Path) -> pd.DataFrame:
    """Read and check a runs table.

    Parameters
    ----------
    path : str or Path
        A .csv, .jsonl (or .ndjson) or .parquet file.

    Returns
    -------
    DataFrame
        As from `check_runs`.

    Raises
    ------
    InputError
        If the file cannot be read as a table, or the table breaks a rule.
    """
    return check_runs(read_table(Path(path)))


def check_runs(frame: pd.DataFrame) -> pd.DataFrame:
    """Check a runs table and give its columns their types.

    Parameters
    ----------
    frame : DataFrame
        Cells may be numbers or text.

    Returns
    -------
    DataFrame
        A copy with float64 numbers (NaN where an onset is not given); unknown columns are kept as they are.

    Raises
    ------
    InputError
        If a column is missing or there twice, or a cell breaks a rule; the row is counted from 1, the header apart.
    """
    _check_columns(frame)
    if frame.empty:
        raise InputError("runs", "hold at least one run", "an empty table", "Add one row for each run.")
    checked = frame.reset_index(drop=True)
    for name in ("sync_interval", "learning_rate", "steps"):
        checked[name] = _numbers(checked[name], name)
    for name in ONSET:
        checked[name] = _optional_numbers(checked, name)
    checked["run"] = _names(checked["run"])
    _check_cells(checked)
    onsets = zip(*(checked[name] for name in ONSET), strict=True)
    for row, (outcome, steps, onset) in enumerate(zip(checked["outcome"], checked["steps"], onsets, strict=True)):
        _check_onset(row, outcome, steps, onset=onset)
    _check_duplicates(checked)
    return checked


def write_runs(frame: pd.DataFrame, path: str | Path) -> None:
    """Write a runs table as CSV; the file appears whole or not at all.

    Parameters
    ----------
    frame : DataFrame
        Checked first.
    path : str or Path
        Written beside, synced, then renamed.

    Raises
    ------
    InputError
        If the table breaks a rule, or the folder does not exist.
    """
    path = Path(path)
    if not path.parent.is_dir():
        raise InputError("path", "lie in an existing folder", path, "Make the folder first.")
    table = check_runs(frame).convert_dtypes()  # 800, not 800.0
    text = table.to_csv(index=False)
    if "\r" in text:  # csv leaves a lone carriage return bare, which would end the row
        text = table.to_csv(index=False, quoting=csv.QUOTE_ALL)
    write_text(path, text)


def _check_columns(frame: pd.DataFrame) -> None:
    """Check that each column is there once; what is missing is said all at once."""
    names = [str(column) for column in frame.columns]
    for name in names:
        if names.count(name) > 1:
            raise InputError("runs: header", "name each column once", shown(name), "Rename one of the two.")
    missing = [name for name in REQUIRED if name not in names]
    if missing:
        rule = f"have the column{'s' * (len(missing) > 1)} {', '.join(missing)}"
        free = [name for name in names if name not in (*REQUIRED, *ONSET, "seed")]
        raise InputError("runs", rule, shown(names), _way_to_columns(missing, free))


def _way_to_columns(missing: list[str], free: list[str]) -> str:
    """Say which of the free columns to rename, by alias first and then by the nearest spelling, and which to add."""
    found: dict[str, str] = {}
    for name in missing:
        for column in free:
            if name not in found and column.strip().lower().replace(" ", "_").replace("-", "_") in ALIASES[name]:
                found[name] = column
    for name in missing:
        left = [column for column in free if column not in found.values()]
        near = difflib.get_close_matches(name, left, n=1, cutoff=0.7)
        if name not in found and near:
            found[name] = near[0]
    absent = [name for name in missing if name not in found]
    renamed = ", ".join(f"{shorten(found[name])} to {name}" for name in missing if name in found)
    rename = [f"Rename {renamed}."] if found else []
    add = [f"Add the column{'s' * (len(absent) > 1)} {', '.join(absent)}."] if absent else []
    return " ".join(rename + add)


def _place(row: int, name: str) -> str:
    return f"row {row + 1}: {name}"


def _names(column: pd.Series) -> list[str]:
    import pandas as pd

    for row, (cell, missing) in enumerate(zip(column, column.isna(), strict=True)):
        if missing or not pd.api.types.is_scalar(cell) or not str(cell).strip():
            raise InputError(_place(row, "run"), "be a name", shown(cell), "Name each run, like S8-lr1e-6-seed0.")
    return [str(cell) for cell in column]


def _number(cell: object) -> float | None:
    """Return the number in a cell, None if it is not one; an empty cell is NaN.

    Text is a number in plain notation only: `float` would also take 1_000 and the digits of any script.
    """
    import pandas as pd

    if cell is None or cell is pd.NA:
        return math.nan
    if isinstance(cell, str):
        text = cell.strip(" \t\r\n")
        if not text:
            return math.nan
        number = float(text) if _PLAIN.fullmatch(text) or _WORD.fullmatch(text) else None
        return None if number is not None and math.isinf(number) and not _WORD.fullmatch(text) else number
    if isinstance(cell, bool) or not isinstance(cell, Real | Decimal):
        return None
    try:
        return float(cell)
    except (OverflowError, ValueError):
        return None


def _numbers(column: pd.Series, name: str) -> NDArray[np.float64]:
    numbers = []
    for row, cell in enumerate(column):
        number = _number(cell)
        if number is None:
            raise InputError(_place(row, name), "be a number", shown(cell), "Write it like 8 or 1e-6.")
        numbers.append(number)
    return np.array(numbers, dtype=np.float64)


def _optional_numbers(frame: pd.DataFrame, name: str) -> NDArray[np.float64]:
    return _numbers(frame[name], name) if name in frame.columns else np.full(len(frame), np.nan)


def _check_cells(frame: pd.DataFrame) -> None:
    """Check each cell by itself."""
    words = [outcome.word for outcome in Outcome]
    for row, (sync_interval, learning_rate, steps, outcome) in enumerate(
        zip(frame["sync_interval"], frame["learning_rate"], frame["steps"], frame["outcome"], strict=True)
    ):
        if not sync_interval >= 1:
            raise InputError(
                _place(row, "sync_interval"),
                "be >= 1",
                f"{sync_interval:g}",
                "For a fully on-policy run use 1.",
            )
        if MAX_STEPS < sync_interval < math.inf:
            raise InputError(
                _place(row, "sync_interval"),
                f"be at most {MAX_STEPS:g}",
                f"{sync_interval:g}",
                "For a policy that is never refreshed write inf.",
            )
        if not MIN_RATE <= learning_rate <= MAX_RATE:
            raise InputError(
                _place(row, "learning_rate"),
                f"lie in {MIN_RATE:g}..{MAX_RATE:g}",
                f"{learning_rate:g}",
                "Give the step size, like 1e-6.",
            )
        if not (1 <= steps <= MAX_STEPS and steps == int(steps)):
            raise InputError(
                _place(row, "steps"),
                f"be an integer from 1 to {MAX_STEPS:g}",
                f"{steps:g}",
                "Give the number of optimizer steps.",
            )
        if outcome not in words:
            near = difflib.get_close_matches(str(outcome).strip().lower(), words, n=1, cutoff=0.5)
            way_out = f"Did you mean {near[0]}?" if near else "If it is not known write unknown."
            raise InputError(_place(row, "outcome"), f"be one of {', '.join(words)}", shown(outcome), way_out)


def _check_onset(row: int, outcome: str, steps: float, *, onset: tuple[float, float, float]) -> None:
    """Check the onset (point, low, high) of one run against its outcome and its length."""
    point, low, high = onset
    given = {name: value for name, value in zip(ONSET, onset, strict=True) if not math.isnan(value)}
    if given and outcome == Outcome.STABLE.word:
        name, value = next(iter(given.items()))
        raise InputError(
            _place(row, name),
            "be empty for a stable run",
            f"{value:g}",
            "Correct the outcome or empty the cell.",
        )
    for name, value in given.items():
        smallest = 0.0 if name == "collapse_step_low" else 1.0
        if not smallest <= value <= steps:
            raise InputError(
                _place(row, name),
                f"lie in {smallest:g}..steps = {steps:g}",
                f"{value:g}",
                "Correct either number.",
            )
    if low >= high:
        raise InputError(
            _place(row, "collapse_step_low"),
            f"be below collapse_step_high = {high:g}",
            f"{low:g}",
            "Swap the two?",
        )
    if math.isnan(low) != math.isnan(high):
        missing = "collapse_step_low" if math.isnan(low) else "collapse_step_high"
        raise InputError(_place(row, missing), "be given beside the other end", "nothing", "Give both or neither.")
    if point < low or point > high:
        raise InputError(
            _place(row, "collapse_step"), f"lie in [{low:g}, {high:g}]", f"{point:g}", "Correct the interval."
        )


def _check_duplicates(frame: pd.DataFrame) -> None:
    repeated = frame["run"].duplicated()
    if repeated.any():
        row = int(repeated.to_numpy().argmax())
        raise InputError(
            _place(row, "run"),
            "name each run once",
            shown(frame.at[row, "run"]),
            "Remove the duplicate or rename it.",
        )

"""The runs table: one row a run, read from CSV, JSONL or Parquet, checked before anything is computed.

Columns: run, sync_interval [optimizer step], learning_rate [1], steps [optimizer step], outcome,
collapse_step [optimizer step]; optional collapse_step_low, collapse_step_high (the onset lies in
(low, high]), seed, and whatever else the owner wants to keep. Values are never repaired: a cell that breaks
a rule is an `InputError` that names its row.
"""

from __future__ import annotations

import csv
import difflib
import io
import json
import math
import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from meanfield.errors import InputError
from meanfield.outcomes import Outcome

if TYPE_CHECKING:
    import pandas as pd

REQUIRED = ("run", "sync_interval", "learning_rate", "steps", "outcome")
"""Columns that must be there; `collapse_step` may be missing when no run has one."""
ONSET = ("collapse_step", "collapse_step_low", "collapse_step_high")
"""Columns of the onset, empty where there is none."""


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
    path = Path(path)
    readers = {".csv": _read_csv, ".jsonl": _read_jsonl, ".ndjson": _read_jsonl, ".parquet": _read_parquet}
    if path.suffix.lower() not in readers:
        raise InputError("runs", "end in .csv, .jsonl or .parquet", path, "Save the table as CSV.")
    if not path.is_file():
        kind = "a directory" if path.is_dir() else "no such file"
        raise InputError("runs", "be a readable file", f"{path} ({kind})", "Check the path.")
    return check_runs(readers[path.suffix.lower()](path))


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
        If a column is missing or a cell breaks a rule; the row is counted from 1, the header apart.
    """
    for name in REQUIRED:
        if name not in frame.columns:
            raise InputError("runs", f"have a column {name}", list(frame.columns), _nearest_column(name, frame))
    if frame.empty:
        raise InputError("runs", "hold at least one run", "an empty table", "Add one row for each run.")
    checked = frame.reset_index(drop=True)
    for name in ("sync_interval", "learning_rate", "steps"):
        checked[name] = _numbers(checked[name], name)
    for name in ONSET:
        checked[name] = _optional_numbers(checked, name)
    checked["run"] = checked["run"].astype(str)
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
    text = check_runs(frame).convert_dtypes().to_csv(index=False)  # 800, not 800.0
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    with beside.open("w", encoding="utf-8", newline="") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)


def _read_text(path: Path) -> str:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise InputError("runs", "be text in UTF-8", f"{path} (binary)", "Save the table as CSV.") from None
    except OSError as error:
        raise InputError("runs", "be a readable file", f"{path} ({error.strerror})", "Check the path.") from None
    if not text.strip() or "\0" in text:
        kind = "binary" if "\0" in text else "empty"
        raise InputError("runs", "be a table with a header", f"{path} ({kind})", "Save the table as CSV.")
    return text


def _read_csv(path: Path) -> pd.DataFrame:
    import pandas as pd

    try:
        rows = [row for row in csv.reader(io.StringIO(_read_text(path)), strict=True) if row]
    except csv.Error as error:
        raise InputError("runs", "be valid CSV", f"{path} ({error})", "Save the table again as CSV.") from None
    header = [name.strip() for name in rows[0]]
    for name in header:
        if header.count(name) > 1:
            raise InputError("runs: header", "name each column once", name, "Rename one of the two.")
    for number, row in enumerate(rows[1:], start=1):
        if len(row) != len(header):
            raise InputError(
                f"row {number}",
                f"have {len(header)} cells as the header has",
                len(row),
                "Quote cells with commas.",
            )
    return pd.DataFrame(rows[1:], columns=header, dtype=object)


def _read_jsonl(path: Path) -> pd.DataFrame:
    import pandas as pd

    rows = []
    for number, line in enumerate(_read_text(path).splitlines(), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise InputError(f"line {number}", "be a JSON object", error, "Write one object a line.") from None
        if not isinstance(row, dict):
            raise InputError(f"line {number}", "be a JSON object", repr(row), "Write one object a line.")
        rows.append(row)
    return pd.DataFrame(rows, dtype=object)


def _read_parquet(path: Path) -> pd.DataFrame:
    import pandas as pd

    try:
        return pd.read_parquet(path)
    except ImportError:
        raise InputError(
            "runs",
            "be CSV or JSONL while pyarrow is missing",
            path,
            "Run `pip install pyarrow`, or save CSV.",
        ) from None
    except (OSError, ValueError) as error:
        raise InputError("runs", "be valid Parquet", f"{path} ({error})", "Save the table as CSV.") from None


def _nearest_column(name: str, frame: pd.DataFrame) -> str:
    near = difflib.get_close_matches(name, [str(column) for column in frame.columns], n=1, cutoff=0.5)
    return f"Rename {near[0]} to {name}." if near else f"Add the column {name}."


def _place(row: int, name: str) -> str:
    return f"row {row + 1}: {name}"


def _number(cell: object) -> float | None:
    """Return the number in a cell, None if it is not one; an empty cell is NaN."""
    if cell is None or (isinstance(cell, str) and not cell.strip()):
        return math.nan
    if isinstance(cell, bool):
        return None
    try:
        return float(cell)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None


def _numbers(column: pd.Series, name: str) -> NDArray[np.float64]:
    numbers = []
    for row, cell in enumerate(column):
        number = _number(cell)
        if number is None:
            raise InputError(_place(row, name), "be a number", repr(cell), "Write it like 8 or 1e-6.")
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
        if not 0 < learning_rate < math.inf:
            raise InputError(
                _place(row, "learning_rate"),
                "be positive and finite",
                f"{learning_rate:g}",
                "Give the step size.",
            )
        if not (1 <= steps < math.inf and steps == int(steps)):
            raise InputError(
                _place(row, "steps"),
                "be an integer >= 1",
                f"{steps:g}",
                "Give the number of optimizer steps.",
            )
        if outcome not in words:
            near = difflib.get_close_matches(str(outcome).strip().lower(), words, n=1, cutoff=0.5)
            way_out = f"Did you mean {near[0]}?" if near else "If it is not known write unknown."
            raise InputError(_place(row, "outcome"), f"be one of {', '.join(words)}", repr(outcome), way_out)


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
            repr(frame.at[row, "run"]),
            "Remove the duplicate or rename it.",
        )

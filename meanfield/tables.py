"""Tables from files: CSV, JSONL and Parquet become cells, as they stand; what they mean is checked elsewhere.

Whatever is wrong with a file is an `InputError` in one sentence: its path, its text or its shape.
"""

from __future__ import annotations

import csv
import io
import json
import math
import stat
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from theory.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

MAX_SHOWN = 200
"""Characters of a value that an error repeats."""
MAX_DIGITS = 30
"""Digits of an integer in JSON; no count and no seed is longer."""


def read_table(path: Path) -> pd.DataFrame:
    """Read the cells of a table by the ending of its name.

    Parameters
    ----------
    path : Path
        A .csv, .jsonl (or .ndjson) or .parquet file.

    Returns
    -------
    DataFrame
        Text cells from CSV; whatever JSON or Parquet holds otherwise.

    Raises
    ------
    InputError
        If the file cannot be read as a table.
    """
    readers = {".csv": _read_csv, ".jsonl": _read_jsonl, ".ndjson": _read_jsonl, ".parquet": _read_parquet}
    if path.suffix.lower() not in readers:
        raise InputError("runs", "end in .csv, .jsonl or .parquet", shorten(path), "Save the table as CSV.")
    check_file(path, refuse=lambda kind: _unreadable(path, kind))
    return readers[path.suffix.lower()](path)


def check_file(path: Path, *, refuse: Callable[[str], InputError]) -> None:
    """Raise what `refuse` makes of the reason if the path is no regular file (a pipe would never end)."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        raise refuse("no such file") from None
    except OSError as error:
        raise refuse(str(error.strerror)) from None
    except ValueError as error:  # a path with a NUL
        raise refuse(str(error)) from None
    if not stat.S_ISREG(mode):
        raise refuse("a directory" if stat.S_ISDIR(mode) else "not a regular file")


def shown(value: object) -> str:
    """Return the value as an error repeats it, never longer than a line.

    >>> shown("1e-3x"), len(shown("x" * 1000))
    ("'1e-3x'", 203)
    """
    try:
        return shorten(repr(value))
    except (ValueError, RecursionError):  # an integer of thousands of digits, a list in a list in a list ...
        return f"a huge {type(value).__name__}"


def shorten(text: object) -> str:
    """Return the text, cut where it is too long to be read in an error."""
    whole = str(text)
    return whole if len(whole) <= MAX_SHOWN else f"{whole[:MAX_SHOWN]}..."


def _unreadable(path: Path, kind: str) -> InputError:
    return InputError("runs", "be a readable file", f"{shorten(path)} ({kind})", "Check the path.")


def _read_text(path: Path) -> str:
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError("runs", "be text in UTF-8", f"{path} (binary)", "Save the table as CSV.") from None
    except OSError as error:
        raise _unreadable(path, str(error.strerror)) from None
    if not text.strip() or "\0" in text:
        kind = "binary" if "\0" in text else "empty"
        raise InputError("runs", "be a table with a header", f"{path} ({kind})", "Save the table as CSV.")
    first = text.lstrip().splitlines()[0]
    if first.startswith("#"):
        raise InputError(
            "runs: line 1",
            "not be a comment, no line may be one",
            shown(first),
            "Remove the lines that start with #.",
        )
    return text


def _read_csv(path: Path) -> pd.DataFrame:
    import pandas as pd

    text = _read_text(path)
    try:
        rows = [row for row in csv.reader(io.StringIO(text, newline=""), strict=True) if row]
    except csv.Error as error:
        raise InputError("runs", "be valid CSV", f"{path} ({error})", "Save the table again as CSV.") from None
    header = [name.strip() for name in rows[0]]
    if len(header) == 1 and (";" in header[0] or "\t" in header[0]):
        raise InputError(
            "runs: cells",
            "be separated by commas",
            shown(header[0]),
            "Save the table again with commas, and a point in 1e-6 or 0.5.",
        )
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
    for number, line in enumerate(_read_text(path).split("\n"), start=1):  # splitlines would cut at U+2028 in a text
        if not line.strip():
            continue
        try:
            row = json.loads(line, parse_int=_json_integer, parse_float=_json_float, object_pairs_hook=_json_object)
        except RecursionError:
            raise InputError(
                f"line {number}", "be a JSON object", "brackets nested too deeply", "Write one flat object a line."
            ) from None
        except ValueError as error:
            raise InputError(f"line {number}", "be a JSON object", error, "Write one object a line.") from None
        if not isinstance(row, dict):
            raise InputError(f"line {number}", "be a JSON object", shown(row), "Write one object a line.")
        rows.append(row)
    return pd.DataFrame(rows, dtype=object)


def _json_integer(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise ValueError(f"an integer of {len(text)} digits (at most {MAX_DIGITS})")
    return int(text)


def _json_float(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"a number too large, {shorten(text)} (at most 1e308)")
    return number


def _json_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {shown(twice)} twice")
    return found


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

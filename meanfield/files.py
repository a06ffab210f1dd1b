"""Write a file so that it is there whole or not at all: beside it, synced, then renamed."""

import os
from collections.abc import Callable
from pathlib import Path


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a file beside `path`, then put it in the place of `path`.

    Parameters
    ----------
    path : Path
        Its folder must exist. An old file stays as it was if anything fails, and nothing is left beside it.
    write : callable
        Writes everything to the path it is given.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        write(beside)
        with beside.open("rb") as handle:
            os.fsync(handle.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    r"""Write text in UTF-8, whole or not at all; a "\n" stays one on every system. Arguments as `write_whole`."""
    write_whole(path, lambda beside: beside.write_text(text, encoding="utf-8", newline=""))

"""The folder of compiled models: one Python module for each source, named by its content; Numba caches beside it.

`DRIFTLAW_CACHE` names another folder. A second process finds module and machine code there and compiles nothing.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import pickle
import platform
import sys
from importlib import metadata
from pathlib import Path
from types import ModuleType

from meanfield.files import write_text
from theory.errors import InputError

_PREFIX = "drift_"


def cache_folder() -> Path:
    """Return the folder of compiled models: DRIFTLAW_CACHE, or driftlaw in the user's own cache folder."""
    named = os.environ.get("DRIFTLAW_CACHE")
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "driftlaw"


def key_of(source: str) -> str:
    """Return the name of a source: its content and the versions that compile it."""
    versions = [platform.python_version(), *(metadata.version(name) for name in ("numba", "llvmlite", "numpy"))]
    return _PREFIX + hashlib.sha256("\n".join([*versions, source]).encode()).hexdigest()[:24]


def store(source: str) -> str:
    """Write a source into the cache if it is not there, and return its key.

    Raises
    ------
    InputError
        If the folder cannot be written.
    """
    key = key_of(source)
    path = cache_folder() / f"{key}.py"
    try:
        if not path.is_file() or path.read_text(encoding="utf-8") != source:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_text(path, source)
    except OSError as error:
        way_out = f"{type(error).__name__}: set DRIFTLAW_CACHE to a folder that can be written."
        raise InputError("DRIFTLAW_CACHE", "be a folder for compiled models", str(path.parent), way_out) from error
    return key


def load(key: str) -> ModuleType:
    """Import a compiled model by its key: arrays in, arrays out, without sympy and xarray.

    Parameters
    ----------
    key : str
        As `CompiledModel.key` gives it.

    Returns
    -------
    module
        With the functions and sizes of meanfield/engine/body, `exits` among them.

    Raises
    ------
    InputError
        If there is no such model in the cache.
    """
    if key in sys.modules:
        return sys.modules[key]
    path = cache_folder() / f"{key}.py"
    if not path.is_file():
        raise InputError("key", "be that of a compiled model", key, "Get it from compile_model(model).key.")
    spec = importlib.util.spec_from_file_location(key, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[key] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[key]
        raise
    _drop_broken(path)
    return module


def _drop_broken(path: Path) -> None:
    """Delete machine code that cannot be read, such as a file cut short: Numba would fail on it, not compile again.

    To be called with the module loaded, for the code refers to it.
    """
    files = sorted((path.parent / "__pycache__").glob(f"{path.stem}.*.nb[ic]"))
    try:
        for file in files:
            with file.open("rb") as stream:
                while stream.peek(1):
                    pickle.load(stream)
    except Exception:  # unpickling fails in as many ways as there are bytes
        for file in files:
            file.unlink(missing_ok=True)

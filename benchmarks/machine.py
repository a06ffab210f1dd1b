"""What machine a measurement is from."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path

PACKAGES = ("driftlaw", "numpy", "scipy", "numba", "llvmlite", "sympy", "jax", "diffrax", "numbalsoda", "jitcode")


def cores() -> set[int]:
    """Return the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return os.sched_getaffinity(0)
    return set(range(os.cpu_count() or 1))


def described() -> dict[str, object]:
    """Return processor, cores, load, Python and the versions of the packages that are installed."""
    return {
        "processor": _processor(),
        "commit": _commit(),
        "cores": len(cores()),
        "system": platform.system(),
        "python": platform.python_version(),
        "load": os.getloadavg()[0],
        "versions": {name: version for name in PACKAGES if (version := _version(name))},
    }


def _processor() -> str:
    """Name, family and model, for the name alone may say little."""
    path = Path("/proc/cpuinfo")
    if not path.exists():
        return platform.processor() or platform.machine()
    pairs = [line.partition(":") for line in path.read_text(encoding="utf-8").splitlines()]
    values = {name.strip(): value.strip() for name, _, value in reversed(pairs)}
    wanted = {"model name": "", "cpu family": "family ", "model": "model "}
    return ", ".join(label + values[name] for name, label in wanted.items() if name in values)


def _commit() -> str:
    """Commit of this folder, with a mark if the engine differs from it; empty outside a clone."""
    folder = Path(__file__).parent.parent

    def git(*words: str) -> str:
        return subprocess.run(["git", "-C", folder, *words], capture_output=True, text=True, check=False).stdout.strip()

    try:
        changed = git(
            "status",
            "--porcelain",
            "--untracked-files=no",
            "--",
            "meanfield",
            "theory",
            "benchmarks/*.py",
            "benchmarks/peers",
        )
        return git("rev-parse", "--short", "HEAD") + (" with changes" if changed else "")
    except OSError:
        return ""


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None

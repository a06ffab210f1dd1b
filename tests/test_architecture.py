"""Import rules shown by a child process: no torch below validation, nothing heavy with a package."""

import subprocess
import sys

WITHOUT_TORCH = """
import importlib, pkgutil, sys
for name in ("torch", "triton", "safetensors"):
    sys.modules[name] = None  # an import of it now raises ImportError
for package in ("theory", "meanfield"):
    for module in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
            print(module.name)
"""

LIGHT = """
import sys
import theory, meanfield
heavy = {"sympy", "numba", "xarray", "matplotlib", "pandas", "numpy", "scipy"}
print(*sorted(heavy & set(sys.modules)))
"""


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_theory_and_meanfield_import_without_torch():
    child = run(WITHOUT_TORCH)
    assert child.returncode == 0, child.stderr
    seen = set(child.stdout.split())
    assert {"theory.drift", "theory.surrogate.exact", "meanfield.simulate", "meanfield.results"} <= seen


def test_the_packages_load_nothing_heavy():
    child = run(LIGHT)
    assert child.returncode == 0, child.stderr
    assert child.stdout.split() == []

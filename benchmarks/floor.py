"""How far a rate is from what a core can do: its measured peak of multiply-adds, and the flops that the toy needs."""

from __future__ import annotations

import ctypes
import math
import platform
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

WIDTHS = {"avx2": (32, ["-mavx2", "-mfma"]), "avx512f": (64, ["-mavx512f"])}
"""Bytes of a vector and the compiler's options, by the flag that the processor shows."""
CHAINS = 12
TANH = 31
"""A [7/6] quotient at x/8, three double angles, one division."""
FLOW = TANH + 6
STAGES = 2 + 4 + 6 + 8 + 10 + 10
ERROR = 11
NORM = 27
"""Scale, quotient and square of two states, and the next step."""
FLOPS_PER_STEP = 6 * FLOW + 2 * (STAGES + ERROR) + NORM
"""Of Dormand and Prince's pair on the two states m and x: 351."""


def peaks() -> dict[str, float]:
    """Measure one core: its "clock" in GHz and flops per second for each vector width; {} without a compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler or platform.machine() != "x86_64":
        return {}
    flags = Path("/proc/cpuinfo").read_text(encoding="utf-8").split() if Path("/proc/cpuinfo").exists() else []
    found: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, (width, options) in WIDTHS.items():
            if name in flags:
                library = _compiled(compiler, Path(folder) / f"{name}.so", width, options)
                found["clock"] = 24e-9 / _seconds(library.products, 10_000_000)
                found[name] = CHAINS * width / 4 / _seconds(_multiply_add(library), 20_000_000)
    return found


def _compiled(compiler: str, target: Path, width: int, options: list[str]) -> ctypes.CDLL:
    source = Path(__file__).with_name("fma.c")
    command = [compiler, "-O3", "-shared", "-fPIC", f"-DWIDTH={width}", *options, str(source), "-o", str(target)]
    subprocess.run(command, check=True)
    library = ctypes.CDLL(str(target))
    library.multiply_add.restype = ctypes.c_double
    library.multiply_add.argtypes = [ctypes.c_long, ctypes.c_double, ctypes.c_double]
    library.products.argtypes = [ctypes.c_long]
    return library


def _multiply_add(library: ctypes.CDLL) -> Callable[[int], None]:
    def rounds(number: int) -> None:
        if not math.isclose(library.multiply_add(number, 0.5, 1.0), library.multiply_add(100, 0.5, 1.0)):
            raise AssertionError("the chains do not end where they have to")

    return rounds


def _seconds(rounds: Callable[[int], object], number: int) -> float:
    """CPU seconds of a round, the least of five tries."""
    tries = []
    for _ in range(5):
        start = time.process_time()
        rounds(number)
        tries.append(time.process_time() - start)
    return min(tries) / number

"""Run every engine on the toy, in turns, each in a process of its own on one core: `python -m benchmarks.engine`.

The other engines come from benchmarks/requirements.txt; one that is not installed is reported as such.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from benchmarks import machine, reference, report, toy
from benchmarks.tasks import WRONG

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "benchmarks" / "results" / "engine.json"
OURS = "ours"
ENGINES = {
    OURS: "benchmarks.ours",
    "ours, with the map": "benchmarks.ours_map",
    "SciPy RK45, all sets in one state": "benchmarks.peers.scipy_stacked",
    "diffrax Dopri5, vmap": "benchmarks.peers.diffrax_whole",
    "diffrax Dopri5, vmap in batches of 200": "benchmarks.peers.diffrax_vmap",
    "numbalsoda lsoda": "benchmarks.peers.numbalsoda_lsoda",
    "numbalsoda dop853": "benchmarks.peers.numbalsoda_dop853",
    "JiTCODE dopri5": "benchmarks.peers.jitcode_dopri5",
    "SciPy RK45, one set at a time": "benchmarks.peers.scipy_loop",
}
OTHERS = {
    "imports": {},
    "kernel": {},
    "dataset": {},
    "diagram": {"every_cycle": True},
    "diagram, map": {"every_cycle": False},
    "labelled_diagram": {},
    "noise": {},
    "numpy_noise": {},
}
"""What is measured besides, in every round: a task of benchmarks/tasks.py and its arguments."""
WIDE = ("diagram", "diagram, map", "labelled_diagram")
"""Those that have two cores."""
CHECKED = 2
"""Sets whose reference is checked by another method, slowly."""


@dataclass(frozen=True)
class Bench:
    """Where children run: the last core, or the last two, with caches of compiled code in one folder."""

    caches: Path
    cores: list[int] = field(default_factory=lambda: sorted(machine.cores()))

    def child(self, task: str, arguments: dict[str, object], *, num_cores: int = 1) -> dict[str, object]:
        """Run one task; what goes wrong there becomes the answer."""
        order = {"task": task, "arguments": arguments, "cores": self.cores[-num_cores:], "start": time.time()}
        command = [sys.executable, "-m", "benchmarks.child", json.dumps(order)]
        done = subprocess.run(
            command, cwd=self.caches, env=self.environment(), capture_output=True, text=True, check=False
        )
        if done.returncode:
            last = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
            return {"missing": f"failed: {last}"}
        return json.loads(done.stdout.splitlines()[-1])

    def environment(self) -> dict[str, str]:
        """One thread for everything, and no kind of processor forced upon BLAS."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("OPENBLAS")}
        threads = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMBA")}
        flags = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
        folders = dict.fromkeys(("DRIFTLAW_CACHE", "BENCHMARKS_CACHE"), str(self.caches))
        return {**kept, **threads, **folders, "XLA_FLAGS": flags, "PYTHONPATH": str(ROOT)}

    def round(self) -> dict[str, dict[str, object]]:
        """Every engine and every other task once."""
        found = {name: self.child("toy", {"engine": module}) for name, module in ENGINES.items()}
        key = self.child("toy_key", {})["key"]
        for name, arguments in OTHERS.items():
            given = {"key": key} if name == "kernel" else arguments
            found[name] = self.child(name.split(",")[0], given, num_cores=2 if name in WIDE else 1)
        return found


def judge(found: dict[str, dict[str, object]], ends: toy.Array, clocks: toy.Array) -> None:
    """Replace end states and clocks of the engines by their errors."""
    for answer in found.values():
        if "ends" in answer:
            states = np.array(answer.pop("ends"))
            errors = np.abs(states / ends[: states.size] - 1.0)
            errors[np.isnan(errors)] = np.inf
            answer |= {"num_sets": states.size, "error": errors.max(), "wrong": int((errors > WRONG).sum())}
        if "clocks" in answer:
            found_clocks = np.array(answer.pop("clocks"))
            true_clocks = clocks[: found_clocks.size]
            both = np.isfinite(found_clocks) & np.isfinite(true_clocks)
            answer["exits_error"] = np.abs(found_clocks[both] / true_clocks[both] - 1.0).max()
            answer["exits_apart"] = int((np.isfinite(found_clocks) != np.isfinite(true_clocks)).sum())


def measured(rounds: int) -> dict[str, object]:
    """Run all rounds; returns all that a page needs."""
    sets = toy.sets()
    ends, clocks = reference.ends(sets), reference.clocks(sets, toy.RADIUS)
    checked = np.abs(reference.checked(toy.sets(CHECKED)) / ends[:CHECKED] - 1.0).max()
    found: dict[str, object] = {"machine": machine.described(), "date": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"}
    found["reference"] = {"checked": checked, "num_checked": CHECKED, "collapsed": float(np.isfinite(clocks).mean())}
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder))
        found["rounds"] = []
        for number in range(rounds):
            answers = bench.round()
            judge(answers, ends, clocks)
            found["rounds"].append(answers)
            print(f"round {number + 1} of {rounds} done", file=sys.stderr)
        found["peaks"], found["continuous"] = bench.child("peaks", {}), bench.child("continuous", {})
    return found


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="the first one starts without compiled code")
    parser.add_argument("--out", type=Path, default=OUT, help="a JSON file; a page goes beside it")
    given = parser.parse_args()
    found = measured(given.rounds)
    page = report.page(found)
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps(found, indent=1, default=float) + "\n", encoding="utf-8")
    given.out.with_suffix(".md").write_text(page, encoding="utf-8")
    print(page)


if __name__ == "__main__":
    main()

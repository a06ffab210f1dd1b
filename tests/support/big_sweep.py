"""A sweep of a million runs, killed at random moments and resumed: `python -m tests.support.big_sweep`.

One sweep goes through; of a second one the parent process is killed again and again, workers and all, until it is done.
Then every file of the two stores is compared.
"""

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import sympy as sp

from meanfield.engine.sweep import SHARD_SIZE, SweepPlan, open_sweep, run_sweep
from meanfield.engine.sweep_store import done_flags
from theory.models.model import DriftModel, WithinExit
from theory.models.saturation import TANH

HORIZON = 600


def fading_memory() -> DriftModel:
    """The model of docs/new_model.md: no closed solution, so that members share the steps of their block."""
    x, d, m = sp.symbols("x d m", real=True)
    k_w, k_s, rho, c, R = sp.symbols("k_w k_s rho c R", positive=True)
    speed = TANH(m + k_w * d)
    return DriftModel(
        name="fading memory",
        states=(d, m, x),
        parameters=(k_w, k_s, rho, c, R),
        flow=(speed, -c * m, speed),
        sync=(sp.Integer(0), rho * m + k_s * d, x),
        start=(sp.Integer(0), sp.Rational(1, 100), sp.Integer(0)),
        exits=(WithinExit("region", sp.Abs(x), R),),
    )


def big_plan(num_runs: int, shard_size: int = SHARD_SIZE) -> SweepPlan:
    """A plan of about so many runs over four axes, the sync interval not the first of them."""
    num_rates = 25
    num_gains = max(1, round(num_runs / (8 * 5 * num_rates)))
    axes = {
        "k_w": np.geomspace(2.0, 30.0, num_gains + 1)[1:],
        "rho": (0.1, 0.2, 0.3, 0.4, 0.5),
        "sync_interval": (1, 2, 4, 8, 16, 32, 64, 128),
        "learning_rate": np.geomspace(3e-4, 3e-2, num_rates),
    }
    values = {"k_s": 20.0, "c": 2.0, "R": 0.8}
    return SweepPlan(fading_memory(), values, axes, HORIZON, shard_size=shard_size)


def start(store: Path, num_runs: int, shard_size: int, num_workers: int) -> "subprocess.Popen[str]":
    """Start the sweep in a process of its own."""
    options = [
        "--store",
        str(store),
        "--runs",
        str(num_runs),
        "--shard",
        str(shard_size),
        "--workers",
        str(num_workers),
    ]
    command = [sys.executable, "-m", "tests.support.big_sweep", *options]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})


def kill_until_done(
    store: Path, num_runs: int, shard_size: int, num_workers: int, *, longest: float, most: int
) -> list[int]:
    """Kill the sweep after random waits of up to `longest` seconds, `most` times at most, then let it end.

    Returns how many shards were done after each kill.
    """
    done: list[int] = []
    while len(done) < most:
        process = start(store, num_runs, shard_size, num_workers)
        wait = random.uniform(0.0, longest)
        print(f"killed {wait:.3f} s after it had begun, unless it ended before", flush=True)  # noqa: T201
        try:
            _, said = process.communicate(timeout=wait)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.communicate()
            done.append(int(done_flags(store).sum()) if store.exists() else 0)
        else:
            assert process.returncode == 0, said
            return done
    _, said = start(store, num_runs, shard_size, num_workers).communicate()
    assert ", stored in " in said or "shards done before" in said, said
    return done


def contents(store: Path) -> dict[str, bytes]:
    """Every file of a store."""
    return {str(path.relative_to(store)): path.read_bytes() for path in sorted(store.rglob("*")) if path.is_file()}


def _check(folder: Path, num_runs: int, shard_size: int, num_workers: int) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    plan = big_plan(num_runs, shard_size)
    began = time.monotonic()
    _, said = start(folder / "whole.zarr", num_runs, shard_size, num_workers).communicate()
    whole = time.monotonic() - began
    assert ", stored in " in said, said
    began = time.monotonic()
    longest = max(4.0, whole / 2.0)
    done = kill_until_done(folder / "killed.zarr", num_runs, shard_size, num_workers, longest=longest, most=8)
    spent = time.monotonic() - began
    began = time.monotonic()
    found = open_sweep(folder / "killed.zarr")
    read = time.monotonic() - began
    same = contents(folder / "whole.zarr") == contents(folder / "killed.zarr")
    shards = len(plan.layout.shards)
    lines = (
        f"trajectories   {plan.layout.size} in {shards} shards, {num_workers} worker processes",
        f"seconds        {whole:.1f} without a kill, {spent:.1f} with {len(done)} kills, {read:.2f} to read",
        f"kills          shards done after each: {', '.join(map(str, done))}",
        f"collapsed      {float((found['exit'] >= 0).mean()):.3f} of all",
        "same bits" if same else "OTHER BITS",
    )
    print("\n".join(lines))  # noqa: T201
    sys.exit(0 if same else 1)


def main() -> None:
    """Run the check, or with --store just the sweep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1_000_000)
    parser.add_argument("--shard", type=int, default=SHARD_SIZE)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=Path("build/big_sweep"))
    parser.add_argument("--store", type=Path)
    given = parser.parse_args()
    if given.store:
        run_sweep(big_plan(given.runs, given.shard), given.store, num_workers=given.workers)
    else:
        _check(given.folder, given.runs, given.shard, given.workers)


if __name__ == "__main__":
    main()

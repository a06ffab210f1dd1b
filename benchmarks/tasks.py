"""What a child process measures: each task returns plain numbers; `start` is when the child was started.

Heavy imports are inside the tasks, for a start is measured with what it needs and nothing else.
"""

from __future__ import annotations

import importlib
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path

AT_LEAST = 1.0
"""CPU seconds that a timed part lasts, in as many passes as that takes."""
SIDE = 200
"""Points of an axis of the phase diagram."""
INTERVAL = 16
WRONG = 1e-3
"""An end state that is so far off, relative, is called wrong."""
NOISE = 0.01

Numbers = dict[str, float | str | list[float]]


def toy(start: float, engine: str) -> Numbers:
    """One set from the start of the process, then all sets that the engine is timed on, compiled before."""
    try:
        module = importlib.import_module(engine)
    except ImportError as error:
        return {"missing": f"not installed: {error}"}
    from benchmarks import toy

    module.run(toy.sets(1))
    found = _since(start)
    sets = toy.sets(getattr(module, "NUM_SETS", toy.NUM_SETS))
    found |= {"ends": module.run(sets).tolist(), **_timed(lambda: module.run(sets))}
    found["memory"] = _peak_memory()
    if hasattr(module, "exits"):
        found["clocks"] = module.exits(sets, toy.RADIUS).tolist()
        found |= {f"exits_{name}": value for name, value in _timed(lambda: module.exits(sets, toy.RADIUS)).items()}
    return found


def imports(start: float) -> Numbers:
    """Interpreter, NumPy and Numba: what no compiled model can start without."""
    import numba  # noqa: F401

    return _since(start)


def kernel(start: float, key: str) -> Numbers:
    """One block of sets, as arrays, from the compiled toy in the cache."""
    import numpy as np

    from meanfield.engine.cache import load

    module = load(key)
    lanes, ones = module.LANES, np.ones(module.LANES)
    inputs = np.array([ones, 0.01 * ones, 1e9 * ones, INTERVAL * 0.01 * ones])
    clocks, codes, finals = np.empty(lanes), np.empty(lanes, dtype=np.int8), np.empty((3, lanes))
    numbers = (0, 1, lanes, 1e-6, 0.0)
    module.exits(inputs, inputs[-1].copy(), 200 * ones, *numbers, clocks, codes, finals, 0, np.empty((0, 4)))
    return _since(start)


def dataset(start: float) -> Numbers:
    """A small phase diagram as a Dataset, from the model in sympy on."""
    from meanfield.engine.diagram import phase_diagram

    model, values, axes = _diagram(4)
    phase_diagram(model, values, axes=axes, horizon=200 * INTERVAL)
    return _since(start)


def diagram(start: float, every_cycle: bool) -> Numbers:
    """A phase diagram of 200 x 200 cells and 200 syncs on arrays, two threads."""
    from meanfield.engine.compiled import Adaptive, compile_model
    from meanfield.engine.values import grid_members, grid_of

    model, values, axes = _diagram(SIDE)
    compiled, members = compile_model(model), grid_members(model, values, grid_of(model, values, axes))
    method = Adaptive(every_cycle=every_cycle)

    def walk():
        return compiled.exits(members, horizon=200 * INTERVAL, method=method, num_threads=2)

    collapsed = float((walk().code >= 0).mean())
    return {"collapsed": collapsed, **_timed(walk), "since": time.time() - start}


def labelled_diagram(start: float) -> Numbers:
    """The same by the public call, which gives a Dataset."""
    from meanfield.engine.diagram import phase_diagram

    model, values, axes = _diagram(SIDE)

    def walk():
        return phase_diagram(model, values, axes=axes, horizon=200 * INTERVAL)

    walk()
    return {**_timed(walk), "since": time.time() - start}


def noise(start: float) -> Numbers:
    """Euler-Maruyama steps of all sets with additive noise on m: nanoseconds of a step of one set."""
    import numpy as np

    from benchmarks import toy
    from meanfield.engine.compiled import EulerMaruyama, compile_model
    from meanfield.engine.members import Members

    sets = toy.sets()
    parameters = np.array([sets.gain, sets.learning_rate, np.full(len(sets), toy.NEVER)])
    compiled, members = compile_model(toy.model(NOISE)), Members(parameters, sets.sync_interval, sets.learning_rate)

    def walk():
        return compiled.exits(members, horizon=toy.NOISY_STEPS, method=EulerMaruyama(seed=1), num_threads=1)

    walk()
    return {**_timed(walk), "since": time.time() - start}


def numpy_noise(start: float) -> Numbers:
    """The same by NumPy, all sets in one state, one call of its generator for a step."""
    import numpy as np

    from benchmarks import toy

    sets = toy.sets()

    def walk():
        rng = np.random.default_rng(1)
        m, x, behaviour = np.zeros((3, len(sets)))
        normal, since = np.empty(len(sets)), np.zeros(len(sets))
        for _ in range(toy.NOISY_STEPS):
            rng.standard_normal(out=normal)
            moved = x + sets.learning_rate * np.tanh(m)
            m = m + (-toy.FADING * m + sets.gain * (x - behaviour) + toy.PUSH)
            m += sets.learning_rate * NOISE * normal
            x, since = moved, since + 1.0
            synced = since >= sets.sync_interval
            behaviour, since = np.where(synced, x, behaviour), np.where(synced, 0.0, since)
        return x

    walk()
    return {**_timed(walk), "since": time.time() - start}


def continuous(start: float) -> Numbers:
    """Sets whose end states numbalsoda's DOP853 gets wrong, without saying so, where S is not a whole number."""
    import numpy as np

    from benchmarks import toy
    from benchmarks.peers import numbalsoda_dop853, numbalsoda_lsoda

    whole = toy.sets()
    intervals = whole.sync_interval + np.random.default_rng(1).uniform(size=len(whole))
    sets = toy.Sets(intervals, whole.learning_rate, whole.gain)
    apart = np.abs(numbalsoda_dop853.run(sets) / numbalsoda_lsoda.run(sets) - 1.0)
    return {"wrong": int((apart > WRONG).sum()), "since": time.time() - start}


def peaks(start: float) -> Numbers:
    """Peak of one core, and the steps that the toy needs."""
    from benchmarks import floor, ours
    from benchmarks import toy as sets

    alone, blocks = ours.steps_per_cycle(sets.sets())
    return {**floor.peaks(), "alone": alone, "blocks": blocks, "since": time.time() - start}


def toy_key(start: float) -> Numbers:
    """Name of the compiled toy."""
    from benchmarks import ours

    return {"key": ours.key(), "since": time.time() - start}


def _diagram(side: int):
    """Model, values and axes of a phase diagram over gain and learning rate; four in ten cells collapse."""
    import numpy as np

    from benchmarks import toy

    axes = {"k": np.geomspace(0.2, 4.0, side), "learning_rate": np.geomspace(1e-3, 1e-1, side)}
    return toy.model(), {"R": toy.RADIUS, "sync_interval": INTERVAL}, axes


def _since(start: float) -> Numbers:
    return {"first_wall": time.time() - start, "first_cpu": time.process_time()}


def _timed(call: Callable[[], object]) -> Numbers:
    """Wall and CPU seconds of one pass; the mean of the passes."""
    wall, cpu, passes = time.perf_counter(), time.process_time(), 0
    while passes == 0 or time.process_time() - cpu < AT_LEAST:
        call()
        passes += 1
    return {"wall": (time.perf_counter() - wall) / passes, "cpu": (time.process_time() - cpu) / passes}


def _peak_memory() -> float:
    """Largest resident size of this process so far, in MB."""
    status = Path("/proc/self/status")
    if status.exists():  # what getrusage says on Linux holds the parent's too
        line = next(line for line in status.read_text(encoding="utf-8").splitlines() if line.startswith("VmHWM"))
        return float(line.split()[1]) / 1024
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit

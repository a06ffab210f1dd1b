"""Generated code against its symbolic expressions, the cache, and the traps of compiled code."""

import ast
import dataclasses
import importlib
import math
import os
import re
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest
import sympy as sp

from meanfield.engine import body
from meanfield.engine.cache import cache_folder, load, store
from meanfield.engine.compiled import compile_model
from meanfield.engine.members import LANES
from meanfield.engine.source import generate, state_order
from tests.support.models import a, b, burst, memory_map, swing, x, zoo
from theory.errors import InputError
from theory.models.builders import persistent_drift
from theory.models.model import DriftModel, WithinExit
from theory.symbols import P, tau

ROUNDED = 2e-13
"""A dozen elementary functions of numbers up to ten, in another order than sympy's."""


def evaluated(model, states, parameters, products):
    """What the compiled functions say: flow, sync, states at clock 1, excess within, excess at the end."""
    compiled = compile_model(model)
    size = 3 * len(model.states) + len(model.exits)
    values = np.full((products.size, size), np.nan)
    order = [model.states.index(state) for state in state_order(model)]
    compiled._module.evaluate(np.ascontiguousarray(states[order]), np.vstack([parameters, products]), LANES, values)
    back = np.argsort(order)
    rows = [part * len(model.states) + row for part in range(3) for row in back]
    return np.hstack([values[:, rows], values[:, 3 * len(model.states) :]])


@pytest.mark.parametrize("model", [zoo(), persistent_drift(), memory_map()], ids=lambda model: model.name)
def test_compiled_functions_equal_the_expressions_at_random_points(model):
    rng = np.random.default_rng(3)
    n = 2 * LANES
    states = rng.uniform(0.2, 2.0, (len(model.states), n)) * rng.choice([-1.0, 1.0], (len(model.states), n))
    declared = [state.is_nonnegative or row == 0 for row, state in enumerate(model.states)]  # 0: x ** (a/b) of the zoo
    states[declared] = np.abs(states[declared])
    parameters, products = rng.uniform(0.3, 2.0, (len(model.parameters), n)), rng.uniform(0.3, 2.0, n)
    found = evaluated(model, states, parameters, products)
    within = [item for item in model.exits if isinstance(item, WithinExit)]
    ends = [item for item in model.exits if not isinstance(item, WithinExit)]
    solution = [item.subs(tau, 1) for item in (model.solution or model.states)]
    excess = [sp.sympify(item.expression) - item.limit for item in (*within, *ends)]
    symbols = (*model.states, *model.parameters, P)
    wanted = [[item.subs(dict(zip(symbols, row, strict=True))).evalf(30) for item in
               (*model.flow, *model.sync, *solution, *excess)]
              for row in np.vstack([states, parameters, products]).T.tolist()]  # fmt: skip
    assert np.allclose(found, np.array(wanted, dtype=float), rtol=ROUNDED, atol=ROUNDED)


def test_what_holds_no_state_is_computed_once_a_member():
    source = generate(persistent_drift())
    flow = source[source.index("def flow") : source.index("def sync")]
    assert "/" not in flow  # 1/sigma is among what is derived
    assert flow.count("_tanh(") == 1  # d and x move alike


@pytest.mark.parametrize(
    ("expression", "named"),
    [(sp.gamma(x), "gamma"), (sp.I * x, "I"), (sp.Integral(sp.exp(x), x), "Integral"), (sp.Function("f")(x), "f")],
)
def test_an_expression_that_cannot_be_compiled_is_named(expression, named):
    model = DriftModel("odd", (x,), (a,), (expression,), (x,), (a,), (WithinExit("out", x, a),))
    with pytest.raises(InputError, match=rf"odd: flow must hold only what can be compiled, got {named}.*Write it with"):
        compile_model(model)


def test_tanh_has_the_accuracy_of_a_library_and_keeps_sign_and_ends():
    compiled = compile_model(memory_map())
    tanh = compiled._module._tanh

    @numba.njit(error_model="numpy")
    def both(values, out):
        for i in range(values.size):
            out[i] = tanh(values[i])

    values = np.concatenate([np.linspace(-25.0, 25.0, 100_001), np.geomspace(1e-300, 1.0, 1001), [math.inf, -math.inf]])
    out = np.empty(values.size)
    both(values, out)
    exact = np.tanh(values)
    nonzero = exact != 0.0
    assert np.max(np.abs(out[nonzero] / exact[nonzero] - 1.0)) < 2e-15
    assert np.all(np.abs(out) <= 1.0 + 1e-15)
    assert out[-2:].tolist() == [1.0, -1.0]


def test_loops_over_lanes_become_packed_instructions():
    """Six stages have a tanh each: with Python's error model a branch guards every division and none is packed."""
    together = compile_model(dataclasses.replace(persistent_drift(), solution=()))._module._together

    @numba.njit(error_model="numpy", fastmath={"contract"})
    def run(w, h, tolerance, lanes):
        return together(w, h, tolerance, lanes)

    run.compile((numba.float64[::1], numba.float64, numba.float64, numba.int64))
    assembly = next(iter(run.inspect_asm().values()))
    packed = len(re.findall(r"\bv?divpd\b|\bfdiv\s+v", assembly))
    single = len(re.findall(r"\bv?divsd\b|\bfdiv\s+d", assembly))
    assert packed >= 6
    assert single <= packed  # what is left over after whole vectors
    assert "ZeroDivisionError" not in assembly


def test_a_state_that_is_no_number_is_seen():
    """`fastmath` is limited to contraction: with all of it NaN compares as if it were a number."""
    compiled = compile_model(memory_map())
    flags = compiled._module.exits.targetoptions["fastmath"]
    assert flags == {"contract"}
    values = {"h": 0.0, "b": 1.0, "u0": 1e200, "R": 1e308}
    from meanfield.hybrid import FAILED
    from tests.support.models import members

    found = compiled.exits(members(compiled.model, 10.0, 1e107, **values), horizon=100)
    assert found.code.tolist() == [FAILED]


def test_a_second_process_compiles_nothing(tmp_path):
    """The Numba cache is hit: stats of the kernel say so, and no new file appears."""
    script = (
        "import numpy as np\n"
        "from meanfield.engine.compiled import compile_model\n"
        "from tests.support.models import burst, members\n"
        "compiled = compile_model(burst())\n"
        "found = compiled.exits(members(burst(), 4.0, 0.1, a=1.0, R=5.0), horizon=100)\n"
        "stats = compiled._module.exits.stats\n"
        "print(compiled.key, found.clock[0].hex(), sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))\n"
    )
    environment = {**os.environ, "DRIFTLAW_CACHE": str(tmp_path), "PYTHONPATH": "."}

    def run():
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stderr
        return done.stdout.split()

    first, files = run(), sorted(tmp_path.rglob("*"))
    second = run()
    assert first[2:] == ["0", "1"]
    assert second[2:] == ["1", "0"]
    assert first[:2] == second[:2]
    assert sorted(tmp_path.rglob("*")) == files


def test_machine_code_that_is_cut_short_is_compiled_again(tmp_path, monkeypatch):
    """As a full disk would leave it."""
    monkeypatch.setenv("DRIFTLAW_CACHE", str(tmp_path))
    key = store("import numba\n\n\n@numba.njit(cache=True)\ndef double(x):\n    return 2 * x\n")

    def loaded():
        sys.modules.pop(key, None)
        double = load(key).double
        return double(21), sum(double.stats.cache_hits.values())

    assert [loaded(), loaded()] == [(42, 0), (42, 1)]
    for file in (*tmp_path.rglob("*.nbi"), *tmp_path.rglob("*.nbc")):
        os.truncate(file, file.stat().st_size // 2)
        assert [loaded(), loaded()] == [(42, 0), (42, 1)]
    assert len(list(tmp_path.rglob("*.nb?"))) == 2
    monkeypatch.delitem(sys.modules, key)


def test_the_kernel_path_needs_neither_sympy_nor_xarray():
    key = compile_model(burst()).key
    script = (
        "import sys, numpy as np\n"
        "from meanfield.engine.cache import load\n"
        f"module = load({key!r})\n"
        "n = 16; inputs = np.ascontiguousarray(np.tile([[1.0], [5.0], [0.4]], n))\n"
        "clocks, codes, finals = np.empty(n), np.empty(n, np.int8), np.empty((1, n))\n"
        "module.exits(inputs, inputs[2].copy(), np.full(n, 9.0), 0, 1, 16, 1e-10, 0.0, clocks, codes, finals, 0,"
        " np.empty((0, 2)))\n"
        "print(clocks[0], sorted({'sympy', 'xarray', 'pandas'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=dict(os.environ))
    assert done.returncode == 0, done.stderr
    clock, loaded = done.stdout.split(maxsplit=1)
    assert float(clock) == pytest.approx(1.0 - 1.0 / 5.0, rel=1e-9)
    assert loaded.strip() == "[]"


def test_the_cache_names_content_and_refuses_what_it_does_not_have(tmp_path, monkeypatch):
    monkeypatch.setenv("DRIFTLAW_CACHE", str(tmp_path / "new"))
    assert cache_folder() == tmp_path / "new"
    assert store("A = 1\n") != store("A = 2\n")
    key = store("A = 3\n")
    (tmp_path / "new" / f"{key}.py").write_text("A = 4\n")  # damaged: written again
    assert store("A = 3\n") == key
    assert load(key).A == 3
    with pytest.raises(InputError, match="key must be that of a compiled model, got drift_none"):
        load("drift_none")
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("DRIFTLAW_CACHE", str(tmp_path / "file"))
    with pytest.raises(InputError, match="DRIFTLAW_CACHE must be a folder for compiled models"):
        store("A = 1\n")


def test_the_sources_of_different_models_differ():
    names = {generate(model) for model in (burst(), swing(), memory_map(), memory_map(sp.atan), zoo())}
    assert len(names) == 5
    assert b in zoo().parameters


def test_the_sample_has_what_a_generated_model_has():
    """The files of the body are read and checked against the sample; names and arguments must be the generator's."""

    def named(text):
        tree = ast.parse(text)
        functions = {
            node.name: [item.arg for item in node.args.args] for node in tree.body if isinstance(node, ast.FunctionDef)
        }
        targets = [node.targets[0] for node in tree.body if isinstance(node, ast.Assign)]
        return functions, {target.id for target in targets if isinstance(target, ast.Name)}

    sample = named(Path(body.__file__).with_name("sample.py").read_text(encoding="utf-8"))
    assert sample == named(generate(burst()))
    assert importlib.import_module("meanfield.engine.body.noise").NUM_ROWS > 0  # imports what it uses

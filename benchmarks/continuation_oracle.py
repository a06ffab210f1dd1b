"""Folds, Hopf points and branches of two smooth models by jaxcont and by AUTO (xpplab): the numbers of others.

    python -m venv VENV && VENV/bin/pip install jaxcont==0.4.0 xpplab==0.1.2
    JAX_ENABLE_X64=1 VENV/bin/python benchmarks/continuation_oracle.py > tests/support/continuation_oracle.json

Equilibria of x' = tanh(h + k*x) - x are the fixed points of the memory map. The other model has two states:
a' = tanh(p + g*a - b) - a, b' = c*(a - b).
"""

import contextlib
import datetime
import io
import json
import re
import sys
from importlib import metadata

import jax.numpy as jnp
import jaxcont
import xpplab

MEMORY = {"h": -0.3}
PAIR = {"g": 2.5, "c": 0.1}
MEMORY_ODE = "x'=tanh(h+k*x)-x\nparam k=8,h=-0.3\ninit x=0.9999\n"
PAIR_ODE = "a'=tanh(p+g*a-b)-a\nb'=c*(a-b)\nparam p=1,g=2.5,c=0.1\ninit a=0.98,b=0.98\n"
AUTO = {"nmax": 4000, "dsmin": 1e-6, "dsmax": 0.01, "epsl": 1e-10, "epsu": 1e-10, "epss": 1e-10, "npr": 5000}


def memory(state, k, _):
    return jnp.tanh(MEMORY["h"] + k * state) - state


def pair(state, p, _):
    a, b = state
    return jnp.array([jnp.tanh(p + PAIR["g"] * a - b) - a, PAIR["c"] * (a - b)])


def by_jaxcont(flow, start, parameter, end, num_points):
    problem = jaxcont.bif_problem(flow, u0=jnp.array(start), p0=parameter)
    settings = jaxcont.ContinuationPar(ds=0.01, ds_max=0.05, max_steps=num_points, newton_tol=1e-12)
    events = [jaxcont.Fold(), jaxcont.Hopf()]
    found = jaxcont.continuation(problem, p_span=(parameter, end), settings=settings, events=events)
    refine = {"fold": jaxcont.fold_point, "hopf": jaxcont.hopf_point}
    special = []
    for event in found.events:
        state, place, *_, converged = refine[event.kind](flow, event.u, event.p, tol=1e-13)
        assert converged
        special.append({"kind": event.kind, "parameter": float(place), "states": state.tolist()})
    rows = range(0, found.branch.n_valid, max(1, found.branch.n_valid // 40))
    branch = [[float(found.branch.params[row]), *found.branch.states[row].tolist()] for row in rows]
    return {"special": special, "branch": branch}


def by_auto(text, parameter, states, second, *, low, high):
    """Special points, some points with their eigenvalues, and the curve of folds in a second parameter."""
    model = xpplab.Model.from_text(text)
    branch = model.auto.equilibria(parameter, ds=-0.01, parmin=low, parmax=high, **AUTO)
    kinds = {"LP": "fold", "HB": "hopf"}
    special = [
        {"kind": kinds[point.type], "parameter": point.value, "states": [point.u0[name.upper()] for name in states]}
        for point in model.auto.diagram.special()
        if point.type in kinds
    ]
    rows = [branch[row] for row in range(0, len(branch), max(1, len(branch) // 40))]
    points = [
        [point.value, *(point.u0[name.upper()] for name in states), *sorted(abs(item) for item in point.multipliers)]
        for point in rows
        if not point.type
    ]
    fold = branch.first("LP")
    curve = model.auto.continue_from(fold, "two-parameter", second=second, ds=0.01)
    rows = [curve[row] for row in range(0, len(curve), max(1, len(curve) // 30))]
    return {"special": special, "branch": points, "folds": [[point.value, point.value2] for point in rows]}


def main():
    with contextlib.redirect_stdout(io.StringIO()):
        found = {
            "memory": {
                "values": MEMORY,
                "jaxcont": by_jaxcont(memory, [0.9999], 8.0, 0.5, 260),
                "auto": by_auto(MEMORY_ODE, "k", ["x"], "h", low=0.1, high=9.0),
            },
            "pair": {
                "values": PAIR,
                "jaxcont": by_jaxcont(pair, [0.98, 0.98], 1.0, -1.5, 1500),
                "auto": by_auto(PAIR_ODE, "p", ["a", "b"], "g", low=-1.0, high=1.5),
            },
        }
    versions = {name: metadata.version(name) for name in ("jaxcont", "jax", "xpplab", "numpy")}
    command = "JAX_ENABLE_X64=1 python benchmarks/continuation_oracle.py"
    date = datetime.date.today().isoformat()
    text = json.dumps({"command": command, "date": date, "versions": versions, **found}, indent=1)
    sys.stdout.write(re.sub(r"\[[^\[\]{}]*\]", lambda row: " ".join(row.group().split()), text) + "\n")


if __name__ == "__main__":
    main()

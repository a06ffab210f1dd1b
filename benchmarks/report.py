"""The page of a measurement, from its numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from benchmarks import floor, toy

Answers = dict[str, dict]
OURS, MAP = "ours", "ours, with the map"

DIAGRAMS = {
    "diagram": "200 x 200 cells, 200 syncs, two threads, every cycle walked",
    "diagram, map": "the same with the sync-to-sync map",
    "labelled_diagram": "the same by the public call, Dataset included",
}
NOISE = {"noise": "a step with additive noise, ours", "numpy_noise": "the same, NumPy, all sets in one state"}
STARTS = {
    "imports": "interpreter, NumPy and Numba alone",
    "kernel": "arrays, and the compiled toy from the cache",
    OURS: "the toy in sympy, compiled before, on arrays",
    "dataset": "the public call, which gives a Dataset",
}


def page(found: dict) -> str:
    """Return the page in Markdown."""
    rounds: list[Answers] = found["rounds"]
    parts = [
        _head(found),
        _engines(rounds),
        _wrong(found),
        _exits(rounds),
        _floor(found),
        _others(rounds),
        _starts(rounds),
    ]
    return "\n\n".join(parts) + "\n"


def three(value: float) -> str:
    """Return three digits, without an exponent where there is no need of one."""
    if value == 0.0 or not math.isfinite(value):
        return f"{value:g}"
    places = 2 - math.floor(math.log10(abs(value)))
    return f"{round(value, places):,.{max(places, 0)}f}" if abs(value) >= 1e-3 else f"{value:.1e}"


def span(values: Sequence[float], shown: Callable[[float], str] = three) -> str:
    """Return least and largest of some values, or the one that they are."""
    low, high = shown(min(values)), shown(max(values))
    return low if low == high else f"{low} to {high}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    marks = ["---", *["---:"] * (len(head) - 1)]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, marks, *rows))


def rates(rounds: list[Answers], name: str, part: str = "") -> list[float]:
    """Trajectories per CPU second in every round."""
    return [answers[name]["num_sets"] / answers[name][f"{part}cpu"] for answers in rounds]


def ratios(rounds: list[Answers], ours: str, name: str, part: str = "") -> str:
    """How many times as fast one of ours is, least and largest over the rounds."""
    if ours == name:
        return "1"
    pairs = zip(rates(rounds, ours, part), rates(rounds, name, part), strict=True)
    return span([mine / other for mine, other in pairs])


def _measured(rounds: list[Answers], name: str, quantity: str) -> list[float]:
    return [answers[name][quantity] for answers in rounds if quantity in answers[name]]


def _seconds(answers: Sequence[dict]) -> str:
    wall, cpu = ([answer[kind] for answer in answers] for kind in ("first_wall", "first_cpu"))
    return f"{span(wall)} ({span(cpu)})"


def _head(found: dict) -> str:
    machine, reference, num_rounds = found["machine"], found["reference"], len(found["rounds"])
    checked = f"on {reference['num_checked']} sets it agrees with Radau to {reference['checked']:.0e}"
    load = f"{machine['load']:.1f}"
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    return f"""# Speed of the engine, side by side

Written by `python -m benchmarks.engine` on {found["date"]}; {num_rounds} rounds, the engines in turns.
Commit {machine["commit"] or "unknown"}; {machine["processor"]}, {machine["cores"]} cores; load at the start {load}.
{machine["system"]}, Python {machine["python"]}, {versions}.

The toy: x' = eta\\*tanh(m), m' = -m/10 + k\\*(x - x_b) + 1/50, x_b := x every S steps, {toy.NUM_SYNCS} syncs. There are
{toy.NUM_SETS:,} sets with eta in [1e-3, 1e-1] and k in [0.2, 4], both log-uniform, and S whole in [4, 64]. Every
engine starts again at each sync, with rtol {toy.RTOL:g} and atol {toy.ATOL:g}; ours takes {toy.RTOL:g} of the largest
size of a state. One process, one core, one thread. Ranges are over the rounds, ratios from the same round: compare
ratios, not rates, with other machines.

The reference is DOP853 at 1e-13; {checked}."""


def _engines(rounds: list[Answers]) -> str:
    head = ["engine", "trajectories per CPU second", "ours over it", "our map over it", "max error of x"]
    head += ["cold start, s (CPU)", "second start, s (CPU)", "peak MB"]
    rows = []
    for name in [name for name, answer in rounds[0].items() if "num_sets" in answer]:
        answers = [item[name] for item in rounds]
        sets = "" if answers[0]["num_sets"] == toy.NUM_SETS else f", {answers[0]['num_sets']} sets"
        row = [name + sets, span(rates(rounds, name)), ratios(rounds, OURS, name), ratios(rounds, MAP, name)]
        row += [
            f"{max(answer['error'] for answer in answers):.1e}",
            "as ours" if name == MAP else _seconds(answers[:1]),
        ]
        rows.append([*row, _seconds(answers[1:]) if answers[1:] else "-", span(_measured(rounds, name, "memory"))])
    text = (
        "A start is from the beginning of the process to the result for one set: cold with no compiled code on disk,\n"
        "second with what a process before it has left there."
    )
    missing = [f"- {name}: {answer['missing']}" for name, answer in rounds[0].items() if "missing" in answer]
    return "\n\n".join(["## x after the last sync", table(head, rows), text, *missing])


def _wrong(found: dict) -> str:
    lines = [
        f"- {name}: {answer['wrong']} of {answer['num_sets']} end states are off by more than 0.1 %."
        for name, answer in found["rounds"][0].items()
        if answer.get("wrong") or (name == "numbalsoda dop853" and "wrong" in answer)
    ]
    if "wrong" in found["continuous"]:
        lines.append(
            f"- The same where S is no whole number: {found['continuous']['wrong']} of {toy.NUM_SETS}, "
            "against its lsoda, with success reported."
        )
    return "\n".join(lines)


def _exits(rounds: list[Answers]) -> str:
    head = ["engine", "trajectories per CPU second", "ours over it", "our map over it", "max error", "judged otherwise"]
    rows = []
    for name, answer in rounds[0].items():
        if "exits_cpu" in answer:
            row = [name, span(rates(rounds, name, "exits_"))]
            row += [ratios(rounds, ours, name, "exits_") for ours in (OURS, MAP)]
            rows.append([*row, f"{answer['exits_error']:.1e}", str(answer["exits_apart"])])
    text = (
        f"A set stops where abs(x) = {toy.RADIUS:g}, and about half of them get there. The error is that of the time,\n"
        "relative; sets judged otherwise leave here and stay in the reference, or the other way round."
    )
    return "\n\n".join(["## Time of the exit", text, table(head, rows)])


def _floor(found: dict) -> str:
    peaks, head = found["peaks"], "## Share of the peak"
    if "alone" not in peaks:
        return f"{head}\n\nNot measured: {peaks['missing']}"
    needed = peaks["alone"] * toy.NUM_SYNCS * floor.FLOPS_PER_STEP
    step = f"A step of Dormand and Prince's pair on m and x takes {floor.FLOPS_PER_STEP} flops (tanh {floor.TANH})."
    cycle = f"needs {peaks['alone']:.1f} steps from sync to sync, in a block of thirty-two {peaks['blocks']:.1f}"
    text = f"{step}\nA set by itself {cycle}:\n{needed / 1e6:.2f} Mflop a trajectory."
    if "clock" not in peaks:
        return f"{head}\n\n{text}\nThe peak is not measured: that needs a C compiler and an x86-64 processor."
    rows = []
    for name, (width, _) in floor.WIDTHS.items():
        if name in peaks:
            a_cycle = peaks[name] / (peaks["clock"] * 1e9 * width / 4)
            shares = [100.0 * rate * needed / peaks[name] for rate in rates(found["rounds"], OURS)]
            row = [name, f"{peaks[name] / 1e9:.1f}", f"{a_cycle:.2f}", three(peaks[name] / needed)]
            rows.append([*row, f"{span(shares)} %"])
    columns = ["vectors", "peak, Gflop/s", "multiply-adds of a vector a cycle", "bound, trajectories/s", "ours"]
    clock = f"The clock is {peaks['clock']:.2f} GHz, measured with integer products of three cycles each."
    return "\n\n".join([head, text, table(columns, rows), clock])


def _others(rounds: list[Answers]) -> str:
    steps = toy.NUM_SETS * toy.NOISY_STEPS / 1e9
    rows = []
    for names, unit, scale in ((DIAGRAMS, "s", 1.0), (NOISE, "ns", steps)):
        for name, label in names.items():
            if missing := rounds[0][name].get("missing"):
                rows.append([label, "not measured", missing])
                continue
            cells = [[value / scale for value in _measured(rounds, name, kind)] for kind in ("wall", "cpu")]
            rows.append([label, *(f"{span(cell)} {unit}" for cell in cells)])
    text = (
        "The diagram is over k and eta at S = 16; its wall time is that of two cores only if no one else has them.\n"
        f"Noise is on m, {toy.NOISY_STEPS:,} Euler-Maruyama steps of each set on one core: the time of one step."
    )
    return "\n\n".join(["## Phase diagram and noise", text, table(["what", "wall", "CPU"], rows)])


def _starts(rounds: list[Answers]) -> str:
    later = rounds[1:] or rounds
    rows = [
        [label, *(span(_measured(later, name, kind)) for kind in ("first_wall", "first_cpu"))]
        for name, label in STARTS.items()
        if all("first_wall" in answers[name] for answers in later)
    ]
    first = rounds[0][OURS]
    rows.append(
        ["the toy in sympy, compiled for the first time", three(first["first_wall"]), three(first["first_cpu"])]
    )
    head = "## From the start of a process to its first result"
    return "\n\n".join([head, table(["with", "wall, s", "CPU, s"], rows)])

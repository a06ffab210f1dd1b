"""Checks of C1, C2 and C4 to C9: what follows in the model. Whether real runs show it is a matter of data."""

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from theory import coherence, drift, persistent, thresholds
from theory.checking import Check, Comparison, close
from theory.checks.bound import bias_bound
from theory.formula import Formula
from theory.numeric import numpy_function

ROUNDING = 1e-9
"""Thousands of float64 roundings, or a bisection to the last digits."""
ODE = 1e-8
"""A fourth-order integration of 2,000 steps over a clock of order one: its error is far below."""
DIFFERENCE = 1e-6
"""A derivative taken as a difference over 1e-4, or a linear law at an amplitude of 1e-4: second order in it."""


def bisect(function: Callable[[float], float], low: float, high: float) -> float:
    """Where an increasing function crosses zero, to the last digits."""
    for _ in range(200):
        middle = (low + high) / 2.0
        low, high = (middle, high) if function(middle) < 0.0 else (low, middle)
    return (low + high) / 2.0


def number(formula: Formula, *values: float) -> float:
    """Evaluate a formula."""
    return float(numpy_function(formula)(*values))


def walk(product: float, C: float, R: float, h: float, u0: float) -> float:
    """eta*t at which the memory map's displacement reaches R, cycle by cycle."""
    u, x, clock = u0, 0.0, 0.0
    while x + product * u < R:
        x, clock, u = x + product * u, clock + product, math.tanh(h + product / C * u)
    return clock + (R - x) / u


def flow(clock: float, z0: float, k_w: float, v: float, sigma: float) -> float:
    """Displacement of persistent drift after a clock, by Runge and Kutta's fourth-order method."""
    d, step = 0.0, clock / 2000

    def slope(d: float) -> float:
        return v * math.tanh(z0 + k_w * d / sigma)

    for _ in range(2000):
        a = slope(d)
        b = slope(d + step * a / 2)
        c = slope(d + step * b / 2)
        d += step * (a + 2 * b + 2 * c + slope(d + step * c)) / 6
    return d


def law_one() -> tuple[Comparison, ...]:
    """In the memory map the largest rate at which a small memory dies, by bisection, falls as 1/S."""
    intervals = np.array([1.0, 4.0, 16.0, 64.0])

    def growth(eta: float, S: float) -> float:
        return math.tanh(S * eta / 0.02 * 1e-7) - 1e-7

    rates = [bisect(partial(growth, S=S), 1e-6, 1.0) for S in intervals]
    slope = np.polyfit(np.log(intervals), np.log(rates), 1)[0]
    return (
        close("slope of log eta on log S", slope, -1.0, rtol=ROUNDING),
        close("the boundary", numpy_function(drift.BOUNDARY)(intervals, 0.02), rates, rtol=ROUNDING),
    )


def law_two() -> tuple[Comparison, ...]:
    """In the memory map runs with one S*eta collapse at one eta*T, whatever S: slope -1 of log T on log eta."""
    rates = np.array([1e-3, 4e-3, 2e-2])
    times = [walk(0.04, 0.02, 0.8, 0.0, 1e-3) / eta for eta in rates]
    slope = np.polyfit(np.log(rates), np.log(times), 1)[0]
    return (close("slope of log T on log eta", slope, -1.0, rtol=ROUNDING),)


def two_constraints() -> tuple[Comparison, ...]:
    """The rates at which counted steps of full size fill the radius of a cycle or of the run, and where they meet."""
    S, T, R_batch, R_crit, G = 8, 1000, 0.3, 5.0, 2.0
    cycle = bisect(lambda eta: sum(eta * G for _ in range(S)) - R_batch, 0.0, 1.0)
    run = bisect(lambda eta: sum(eta * G for _ in range(T)) - R_crit, 0.0, 1.0)
    meeting = bisect(lambda S: R_crit / (T * G) - R_batch / (S * G), 1.0, 1e4)
    wide = (64, T, R_batch, R_crit, G)
    return (
        close("rate of a cycle", number(thresholds.STALENESS_RATE, S, R_batch, G), cycle, rtol=ROUNDING),
        close("rate of a run", number(thresholds.HORIZON_RATE, T, R_crit, G), run, rtol=ROUNDING),
        close("min rule", number(thresholds.MIN_RULE, S, *wide[1:]), min(cycle, run), rtol=ROUNDING),
        close("min rule, long cycle", number(thresholds.MIN_RULE, *wide), cycle * S / 64, rtol=ROUNDING),
        close("min form", number(thresholds.MIN_FORM, S, T, R_batch / G, R_crit / G), min(cycle, run), rtol=ROUNDING),
        close("crossover", number(thresholds.CROSSOVER, T, R_batch, R_crit), meeting, rtol=ROUNDING),
    )


def memory_map() -> tuple[Comparison, ...]:
    """The map, its fixed point and its boundary against iteration and bisection."""
    kappa, h = 1.7, 0.1
    u = 0.3
    for _ in range(500):
        u = math.tanh(h + kappa * u)
    multiplier = (math.tanh(h + kappa * (u + 1e-4)) - math.tanh(h + kappa * (u - 1e-4))) / 2e-4
    tiny = 1.0 + 1e-6
    small = bisect(lambda u: u - math.tanh(tiny * u), 1e-4, 1e-2)
    return (
        close("critical product", number(drift.CRITICAL_PRODUCT, 0.6, 3.0), 0.2, rtol=ROUNDING),
        close("gain", number(drift.GAIN, 8.0, 0.05, 0.2), 2.0, rtol=ROUNDING),
        close("next memory", number(drift.NEXT_MEMORY, 0.3, kappa, h), math.tanh(h + kappa * 0.3), rtol=ROUNDING),
        close("gain of the fixed point", number(drift.GAIN_OF_FIXED_POINT, u, h), kappa, rtol=ROUNDING),
        close("multiplier", number(drift.MULTIPLIER, u, kappa), multiplier, rtol=DIFFERENCE),
        close("boundary", number(drift.BOUNDARY, 8.0, 0.2) * 8.0 / 0.2, 1.0, rtol=ROUNDING),
        close("amplitude above it", number(drift.AMPLITUDE, tiny), small, rtol=1e-5),
        *persistent_drift(),
    )


def persistent_drift() -> tuple[Comparison, ...]:
    """Flow, growth and boundary of persistent drift against integration and bisection."""
    k_s, k_w, rho, v, sigma, h = 0.9, 1.5, 0.3, 0.7, 0.4, 0.2
    d = flow(0.8, h, k_w, v, sigma)

    def growth(product: float, *, across: float = k_s, within: float = k_w, kept: float = rho) -> float:
        return kept + across * flow(product, 1e-4 / sigma, within, v, sigma) / 1e-4

    half = growth(0.4)
    boundary = bisect(lambda product: growth(product) - 1.0, 0.01, 2.0)
    across = bisect(lambda product: growth(product, within=1e-7, kept=0.0) - 1.0, 0.01, 2.0)
    share = bisect(lambda product: growth(product, across=rho * k_w) - 1.0, 0.01, 2.0)
    rate = k_w / sigma * v * math.tanh(0.6)
    return (
        close("flow of the drive", number(persistent.DRIVE_RATE, 0.6, k_w, v, sigma), rate, rtol=ROUNDING),
        close("drift", number(persistent.DRIFT, 0.8, h, k_w, v, sigma), d, rtol=ODE),
        close("drive", number(persistent.DRIVE, 0.8, h, k_w, v, sigma), h + k_w * d / sigma, rtol=ODE),
        close("memory across a sync", number(persistent.NEXT_MEMORY, 0.5, d, rho, k_s), rho * 0.5 + k_s * d, rtol=ODE),
        close("growth", number(persistent.GROWTH, 8.0, 0.05, k_s, k_w, rho, v, sigma), half, rtol=DIFFERENCE),
        close("boundary", number(persistent.BOUNDARY_PRODUCT, k_s, k_w, rho, v, sigma), boundary, rtol=DIFFERENCE),
        close("without k_w and rho", number(persistent.ACROSS_ONLY_PRODUCT, k_s, v, sigma), across, rtol=DIFFERENCE),
        close("k_s = rho*k_w", number(persistent.ONE_SLOPE_PRODUCT, k_w, rho, v, sigma), share, rtol=DIFFERENCE),
    )


def exit_budget() -> tuple[Comparison, ...]:
    """Exits against the walked map, at several S of one S*eta, and against the integrated flow."""
    C, kappa, R, cycles = 0.2, 1.5, 8.0, 12
    u = 0.5
    for _ in range(500):
        u = math.tanh(kappa * u)
    u0 = u / kappa**cycles
    covered = sum(C * kappa * u0 * kappa**k for k in range(cycles))
    straight = C * kappa * cycles + (R - covered) / u
    clock = number(persistent.CLOCK_OF_DRIFT, flow(0.8, 0.2, 1.5, 0.7, 0.4), 0.2, 1.5, 0.7, 0.4)
    return (
        close("steady drift", number(drift.EXIT_BUDGET, R, u), walk(C * kappa, C, R, 0.0, u), rtol=ROUNDING),
        close("cycles of growth", number(drift.GROWTH_CYCLES, kappa, u0, u), cycles, rtol=ROUNDING),
        close("growth, then drift", number(drift.EXIT_BUDGET_FROM_START, R, C, kappa, u0, u), straight, rtol=ROUNDING),
        close("clock of a drift", clock, 0.8, rtol=ODE),
        close("saturated", number(persistent.SATURATED_BUDGET, 5.0, 0.7), flow_exit(5.0, 0.7), rtol=ODE),
    )


def flow_exit(radius: float, speed: float) -> float:
    """eta*t at which drift that starts saturated has covered the radius."""
    return bisect(lambda clock: flow(clock, 50.0, 1.5, speed, 0.4) - radius, 0.1, 20.0)


def smooth_min() -> tuple[Comparison, ...]:
    """A weak honest signal walked to its exit below the boundary, against the linear formulas."""
    C, R, h, kappa = 0.2, 2.0, 1e-5, 0.5
    u = 0.0
    for _ in range(500):
        u = math.tanh(h + kappa * u)
    clock = walk(C * kappa, C, R, h, u)
    S = 16.0
    eta = C * kappa / S
    return (
        close("memory", number(drift.LINEAR_MEMORY, kappa, h), u, rtol=DIFFERENCE),
        close("budget", number(drift.LINEAR_EXIT_BUDGET, R, kappa, h), clock, rtol=DIFFERENCE),
        close("budget where kappa = 0", number(thresholds.HONEST_BUDGET, R, h), R / h, rtol=ROUNDING),
        close("rate of that horizon", number(thresholds.SMOOTH_RATE, S, clock / eta, C, R, h), eta, rtol=DIFFERENCE),
    )


def max_form() -> tuple[Comparison, ...]:
    """The rate above which both conditions hold, by bisection on whether a run violates the two."""
    C, B = 0.02, 0.8

    def margin(eta: float, S: float, T: float) -> float:
        return min(S * eta / C, eta * T / B) - 1.0

    found = []
    for S, T in ((4.0, 1000.0), (64.0, 1000.0), (64.0, 100000.0)):
        expected = bisect(partial(margin, S=S, T=T), 1e-9, 1.0)
        found.append(close("both conditions", number(thresholds.MAX_FORM, S, T, C, B), expected, rtol=ROUNDING))
    return tuple(found)


def drift_argument() -> tuple[Comparison, ...]:
    """Summed unit steps of one pairwise cosine, and slopes of the rate that keeps their length."""
    q, S = 0.1, 20
    steps = np.column_stack([np.full(S, math.sqrt(q)), math.sqrt(1 - q) * np.eye(S)])
    square = numpy_function(coherence.SQUARE_DISPLACEMENT)
    change = np.log(square(S * math.exp(1e-4), q) / square(S * math.exp(-1e-4), q)) / 2e-4
    exponent = number(coherence.LOCAL_EXPONENT, S, q)

    def excess(eta: float, S: float) -> float:
        return float(eta**0.8 * S**0.5 - 0.3)

    short, long = (bisect(partial(excess, S=S), 0.0, 1.0) for S in (10.0, 40.0))
    slope = math.log(long / short) / math.log(4.0)
    return (
        close("square displacement", square(S, q), np.sum(steps.sum(axis=0) ** 2), rtol=ROUNDING),
        close("local exponent", exponent, -change / 2, rtol=DIFFERENCE),
        close("boundary exponent", number(coherence.BOUNDARY_EXPONENT, 0.8, 0.5), slope, rtol=ROUNDING),
    )


CHECKS: dict[str, Check] = {
    "C1": law_one,
    "C2": law_two,
    "C3": bias_bound,
    "C4": two_constraints,
    "C5": memory_map,
    "C6": exit_budget,
    "C7": smooth_min,
    "C8": max_form,
    "C9": drift_argument,
}

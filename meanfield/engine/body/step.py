"""One step of a block: Dormand-Prince of order 5 with its error, or the closed solution of the flow."""

from meanfield.engine.body.rows import (
    ERROR,
    HUGE,
    K1,
    K2,
    K3,
    K4,
    K5,
    K6,
    K7,
    LANES,
    LARGEST,
    LATER,
    LENGTH,
    LIVE,
    NEW,
    STATE,
    _outer,
)
from meanfield.engine.body.sample import HAS_SOLUTION, NUM_MOVING, NUM_STATES, _inner, flow, follow, solution, within

# ---- below this mark: the body ----

SAFETY, SLOWEST, FASTEST = 0.97, 0.2, 5.0
ABSOLUTE = 1e-9  # size of a state below which its error no longer counts relative to it

# Dormand and Prince 1980, orders 5 and 4.
A21 = 1 / 5
A31, A32 = 3 / 40, 9 / 40
A41, A42, A43 = 44 / 45, -56 / 15, 32 / 9
A51, A52, A53, A54 = 19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729
A61, A62, A63, A64, A65 = 9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656
B1, B3, B4, B5, B6 = 35 / 384, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84
E1, E3, E4 = B1 - 5179 / 57600, B3 - 7571 / 16695, B4 - 393 / 640
E5, E6, E7 = B5 + 92097 / 339200, B6 - 187 / 2100, -1 / 40


@_inner
def _now(w, h, at):
    """A state at the beginning of the step; `at` is its place in a block of rows."""
    return w[STATE * LANES + at]


@_inner
def _new(w, h, at):
    """A state at the end of the step."""
    return w[NEW * LANES + at]


@_inner
def _second(w, h, at):
    """A state at the second stage, and so on."""
    return w[STATE * LANES + at] + h * (A21 * w[K1 * LANES + at])


@_inner
def _third(w, h, at):
    return w[STATE * LANES + at] + h * (A31 * w[K1 * LANES + at] + A32 * w[K2 * LANES + at])


@_inner
def _fourth(w, h, at):
    slope = A41 * w[K1 * LANES + at] + A42 * w[K2 * LANES + at] + A43 * w[K3 * LANES + at]
    return w[STATE * LANES + at] + h * slope


@_inner
def _fifth(w, h, at):
    slope = A51 * w[K1 * LANES + at] + A52 * w[K2 * LANES + at] + A53 * w[K3 * LANES + at]
    return w[STATE * LANES + at] + h * (slope + A54 * w[K4 * LANES + at])


@_inner
def _sixth(w, h, at):
    slope = A61 * w[K1 * LANES + at] + A62 * w[K2 * LANES + at] + A63 * w[K3 * LANES + at]
    slope += A64 * w[K4 * LANES + at] + A65 * w[K5 * LANES + at]
    return w[STATE * LANES + at] + h * slope


@_inner
def _seventh(w, h, lane):
    for i in range(NUM_MOVING):
        at = i * LANES + lane
        slope = B1 * w[K1 * LANES + at] + B3 * w[K3 * LANES + at] + B4 * w[K4 * LANES + at]
        slope += B5 * w[K5 * LANES + at] + B6 * w[K6 * LANES + at]
        w[NEW * LANES + at] = w[STATE * LANES + at] + h * slope
    follow(w, lane)
    flow(w, _new, h, K7, lane)


@_inner
def _solved(w, h, lane):
    solution(w, STATE, NEW, lane, h * w[LENGTH * LANES + lane])
    flow(w, _new, h, K7, lane)


@_inner
def _judge(w, h, tolerance, lane):
    """Mean square of the error of a step over what is allowed; huge where it is no number."""
    total = 0.0
    for i in range(NUM_MOVING):
        at = i * LANES + lane
        error = E1 * w[K1 * LANES + at] + E3 * w[K3 * LANES + at] + E4 * w[K4 * LANES + at]
        error += E5 * w[K5 * LANES + at] + E6 * w[K6 * LANES + at] + E7 * w[K7 * LANES + at]
        size = max(w[LARGEST * LANES + at], abs(w[STATE * LANES + at]), abs(w[NEW * LANES + at]))
        error = h * error / (tolerance * (size + ABSOLUTE))
        total += error * error
    total = total / max(NUM_MOVING, 1)
    total = total if total < HUGE else HUGE
    w[ERROR * LANES + lane] = total if w[LIVE * LANES + lane] > 0.0 else 0.0


@_outer
def _alone(w, h, lane):
    """Step of one lane, to the same states as a step of its block; fills NEW, K7 and LATER."""
    if HAS_SOLUTION:
        _solved(w, h, lane)
    else:
        flow(w, _second, h, K2, lane)
        flow(w, _third, h, K3, lane)
        flow(w, _fourth, h, K4, lane)
        flow(w, _fifth, h, K5, lane)
        flow(w, _sixth, h, K6, lane)
        _seventh(w, h, lane)
    within(w, NEW, LATER, lane)


@_outer
def _worst(w, lanes):
    worst = 0.0
    for lane in range(lanes):
        worst = max(worst, w[ERROR * LANES + lane])
    return worst


@_outer
def _together(w, h, tolerance, lanes):
    """Step of all lanes of a block; returns the largest error over what is allowed, squared."""
    if HAS_SOLUTION:
        for lane in range(lanes):
            _solved(w, h, lane)
            lost = 0.0
            for i in range(NUM_STATES):
                lost += 0.0 if abs(w[(NEW + i) * LANES + lane]) < HUGE else HUGE
            w[ERROR * LANES + lane] = lost if w[LIVE * LANES + lane] > 0.0 else 0.0
        return _worst(w, lanes)
    for lane in range(lanes):
        flow(w, _second, h, K2, lane)
    for lane in range(lanes):
        flow(w, _third, h, K3, lane)
    for lane in range(lanes):
        flow(w, _fourth, h, K4, lane)
    for lane in range(lanes):
        flow(w, _fifth, h, K5, lane)
    for lane in range(lanes):
        flow(w, _sixth, h, K6, lane)
    for lane in range(lanes):
        _seventh(w, h, lane)
    for lane in range(lanes):
        _judge(w, h, tolerance, lane)
    return _worst(w, lanes)

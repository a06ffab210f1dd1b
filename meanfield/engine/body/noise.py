"""Noise: blocks of lanes that take Euler-Maruyama steps, one or several for each optimizer step.

The noise of a step is a function of seed, member, step and state alone (Philox 4x32 with ten rounds, Salmon et al.
2011), so it does not depend on the thread or the order in which a block is walked.
"""

import math

import numpy as np

from meanfield.engine.body.exits import _any_live, _clock, _note, _stop
from meanfield.engine.body.rows import (
    CLOCK,
    FINAL,
    HUGE,
    K1,
    LANES,
    LATER,
    LENGTH,
    LIVE,
    NEW,
    NORMAL,
    NUM_ROWS,
    PERIOD,
    SINCE,
    SPARE,
    STATE,
    STAYED,
    _entry,
    _outer,
)
from meanfield.engine.body.sample import (
    NOISY,
    NUM_MOVING,
    NUM_NOISY,
    NUM_STATES,
    NUM_WITHIN,
    _inner,
    flow,
    follow,
    noise,
    within,
)
from meanfield.engine.body.step import _now
from meanfield.engine.body.walk import _arrive, _begin, _load, _sync, _unload

# ---- below this mark: the body ----

LOW = np.uint64(0xFFFFFFFF)
HALF = np.uint64(32)
MULTIPLY_0, MULTIPLY_1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
WEYL_0, WEYL_1 = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
ROUNDS = 10
UNIT = 2.0**-32


@_inner
def _philox(c0, c1, c2, c3, k0, k1):
    """Four random words of 32 bits, each in an unsigned 64-bit number, from a counter and a key of such words."""
    for _ in range(ROUNDS):
        product_0, product_1 = MULTIPLY_0 * c0, MULTIPLY_1 * c2
        c0, c1, c2, c3 = (
            (product_1 >> HALF) ^ c1 ^ k0,
            product_1 & LOW,
            (product_0 >> HALF) ^ c3 ^ k1,
            product_0 & LOW,
        )
        k0, k1 = (k0 + WEYL_0) & LOW, (k1 + WEYL_1) & LOW
    return c0, c1, c2, c3


@_inner
def _uniform(word):
    """A number in (0, 1), never at its ends."""
    return (float(np.int64(word)) + 0.5) * UNIT


@_inner
def _draw(w, members, block, draw, seed, lane):
    """Fill four rows with standard normal numbers: Box and Muller, two pairs."""
    member, counter = np.uint64(members[block * LANES + lane]), np.uint64(draw)
    key = np.uint64(seed)
    a, b, c, d = _philox(counter & LOW, counter >> HALF, member & LOW, member >> HALF, key & LOW, key >> HALF)
    radius, angle = math.sqrt(-2.0 * math.log(_uniform(a))), 2.0 * math.pi * _uniform(b)
    w[NORMAL * LANES + lane] = radius * math.cos(angle)
    w[(NORMAL + 1) * LANES + lane] = radius * math.sin(angle)
    radius, angle = math.sqrt(-2.0 * math.log(_uniform(c))), 2.0 * math.pi * _uniform(d)
    w[(NORMAL + 2) * LANES + lane] = radius * math.cos(angle)
    w[(NORMAL + 3) * LANES + lane] = radius * math.sin(angle)


@_outer
def _shake(w, members, block, step, root, seed, lanes):
    """Add the noise of one step to NEW: four normal numbers serve four noisy states, or four steps of one."""
    for lane in range(lanes):
        noise(w, STATE, SPARE, lane)
    for i in range(NUM_NOISY):
        draw = step * NUM_NOISY + i
        if draw % 4 == 0:
            for lane in range(lanes):
                _draw(w, members, block, draw // 4, seed, lane)
        row = NORMAL + draw % 4
        for lane in range(lanes):
            scale = root * w[LENGTH * LANES + lane]
            w[(NEW + NOISY[i]) * LANES + lane] += scale * w[(SPARE + NOISY[i]) * LANES + lane] * w[row * LANES + lane]


@_outer
def _end_cycles(w, goes_on, lanes):
    """Sync the lanes whose cycle is over; what a sync at the horizon leads to is no longer looked at."""
    for lane in range(lanes):
        if w[SINCE * LANES + lane] >= w[PERIOD * LANES + lane]:
            w[SINCE * LANES + lane] = 0.0
            _sync(w, lane)
            if goes_on and w[LIVE * LANES + lane] > 0.0:
                _arrive(w, _clock(w, 0.0, lane), lane)


@_outer
def _advance(w, members, block, step, goes_on, root, seed, lanes):
    """One Euler-Maruyama step of a block, its exits and syncs."""
    for lane in range(lanes):
        flow(w, _now, 0.0, K1, lane)
    for at in range(NUM_MOVING * lanes):
        w[NEW * LANES + at] = w[STATE * LANES + at] + w[K1 * LANES + at]
    for lane in range(lanes):
        follow(w, lane)
    _shake(w, members, block, step, root, seed, lanes)
    beyond = 0.0
    for lane in range(lanes):
        within(w, NEW, LATER, lane)
        near = 0.0
        for i in range(NUM_STATES):
            near = near if abs(w[(NEW + i) * LANES + lane]) < HUGE else 1.0
        for i in range(NUM_WITHIN):
            near = 1.0 if w[(LATER + i) * LANES + lane] >= 0.0 else near
        beyond = max(beyond, near * w[LIVE * LANES + lane])
    for at in range(NUM_STATES * lanes):
        w[STATE * LANES + at] = w[NEW * LANES + at]
    over = 0.0
    for lane in range(lanes):
        w[SINCE * LANES + lane] += 1.0
        over = max(over, w[SINCE * LANES + lane] - w[PERIOD * LANES + lane])
    if beyond > 0.0:
        for lane in range(lanes):
            if w[LIVE * LANES + lane] > 0.0:
                _arrive(w, w[LENGTH * LANES + lane] * (step + 1), lane)
    if over >= 0.0:
        _end_cycles(w, goes_on, lanes)


@_entry
def noisy_exits(
    inputs, steps, periods, members, num_steps, first, last, lanes, root, seed, clocks, codes, finals, lane, path
):
    """Walk the blocks first .. last - 1 through num_steps noisy steps; returns how many points of a path were met.

    inputs: shape (NUM_INPUTS, n); steps: eta*t of one step, shape (n,); periods: steps from sync to sync, shape (n,);
    members: number of each member, for its noise, shape (n,); root: square root of the steps of an optimizer step.
    The others as `exits`.
    """
    w = np.empty(NUM_ROWS * LANES)
    num_points = 0
    for block in range(first, last):
        _load(w, inputs, steps, block, lanes)
        _begin(w, lanes)
        for at in range(lanes):
            w[PERIOD * LANES + at] = periods[block * LANES + at]
        if path.shape[0] > 0:
            num_points = _note(w, STATE, 0.0, lane, path, 0)
        for step in range(num_steps):
            was_live = w[LIVE * LANES + lane] > 0.0
            _advance(w, members, block, step, step + 1 < num_steps, root, seed, lanes)
            if path.shape[0] > 0 and was_live:
                ended = w[LIVE * LANES + lane] == 0.0
                clock = w[CLOCK * LANES + lane] if ended else w[LENGTH * LANES + lane] * (step + 1)
                num_points = _note(w, FINAL if ended else STATE, clock, lane, path, num_points)
            if not _any_live(w):
                break
        for at in range(lanes):
            if w[LIVE * LANES + at] > 0.0:
                _stop(w, STATE, np.inf, STAYED, at)
        _unload(w, block, clocks, codes, finals, lanes)
    return num_points

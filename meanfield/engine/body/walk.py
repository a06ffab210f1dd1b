"""From sync to sync until every lane of a block has stopped; cycles that repeat the last one are passed over."""

import math

import numpy as np

from meanfield.engine.body.exits import _any_live, _check, _clock, _farthest, _note, _stop
from meanfield.engine.body.rows import (
    BEFORE,
    CHANGE,
    CLOCK,
    CODE,
    CYCLE,
    ERROR,
    EXCESS,
    FAILED,
    FALL,
    FINAL,
    GAIN,
    GOING,
    HUGE,
    INPUTS,
    K1,
    K7,
    LANES,
    LARGEST,
    LAST,
    LATER,
    LENGTH,
    LIVE,
    NEW,
    NUM_ROWS,
    PRODUCT,
    REACH,
    RISE,
    SPARE,
    STATE,
    STAYED,
    TOP,
    _entry,
    _outer,
)
from meanfield.engine.body.sample import (
    CAN_SKIP,
    COUNTS,
    HAS_SOLUTION,
    LEADER,
    NUM_ENDS,
    NUM_EXITS,
    NUM_INPUTS,
    NUM_MOVING,
    NUM_STATES,
    NUM_WITHIN,
    derive,
    ends,
    flow,
    rates,
    reach,
    remember,
    solution,
    start,
    sync,
    within,
)
from meanfield.engine.body.step import FASTEST, SAFETY, SLOWEST, _now, _together

# ---- below this mark: the body ----

FIRST_STEP = 0.1
SMALLEST_STEP = 1e-10
MOST_STEPS = 100_000
ROUNDED = 1e-15  # of a counter, whose gain is a difference


@_outer
def _accept(w, lanes):
    for lane in range(lanes):
        remember(w, lane)
    for at in range(NUM_STATES * lanes):
        w[STATE * LANES + at] = w[NEW * LANES + at]
    for at in range(NUM_MOVING * lanes):
        w[K1 * LANES + at] = w[K7 * LANES + at]
    for at in range(NUM_WITHIN * lanes):
        w[EXCESS * LANES + at] = w[LATER * LANES + at]
        w[RISE * LANES + at] = w[FALL * LANES + at]


@_outer
def _give_up(w, worst, done, lanes):
    """Stop the lanes that allow no further step; the others go on."""
    for lane in range(lanes):
        if w[LIVE * LANES + lane] > 0.0 and w[ERROR * LANES + lane] >= worst:
            _stop(w, STATE, _clock(w, done, lane), FAILED, lane)


@_outer
def _cycle(w, first, tolerance, watched, lanes, lane, path, num_points):
    """Walk the block from one sync to the next; returns the step to begin the next cycle with, and the points noted.

    Exits are looked for if `watched`; the path of `lane` is noted as far as `path` has room.
    """
    for other in range(lanes):
        flow(w, _now, 0.0, K1, other)
        within(w, STATE, EXCESS, other)
        rates(w, STATE, K1, RISE, other)
        within(w, STATE, TOP, other)
    done, h, taken = 0.0, 1.0 if HAS_SOLUTION else first, 0
    while done < 1.0 and _any_live(w):
        left = 1.0 - done
        h = left if h > 0.999 * left else min(h, 0.5 * left)
        worst = _together(w, h, tolerance, lanes)
        taken += 1
        if taken > MOST_STEPS or (worst > 1.0 and h < SMALLEST_STEP):
            _give_up(w, worst, done, lanes)
            taken = 0
            continue
        if worst > 1.0:
            h *= max(SLOWEST, SAFETY * worst**-0.1)
            continue
        was_live = w[LIVE * LANES + lane] > 0.0
        if watched:
            _check(w, done, h, lanes)
        if path.shape[0] > 0 and was_live:
            ended = w[LIVE * LANES + lane] == 0.0
            clock = w[CLOCK * LANES + lane] if ended else _clock(w, done + h, lane)
            num_points = _note(w, FINAL if ended else NEW, clock, lane, path, num_points)
        _accept(w, lanes)
        grown = h * min(FASTEST, SAFETY * (1.0 / math.sqrt(math.sqrt(math.sqrt(max(worst, 1e-12))))))
        first = grown if done == 0.0 else first
        done = 1.0 if h == left else done + h
        h = grown
    return min(first, 1.0), num_points


@_outer
def _arrive(w, clock, lane):
    """Stop a lane whose states are beyond an exit, or are no numbers."""
    within(w, STATE, LATER, lane)
    code = _farthest(w, LATER, NUM_WITHIN, lane)
    if code >= 0:
        _stop(w, STATE, clock, code, lane)
        return
    for i in range(NUM_STATES):
        if not abs(w[(STATE + i) * LANES + lane]) < HUGE:
            _stop(w, STATE, clock, FAILED, lane)


@_outer
def _sync(w, lane):
    """Look at the exits at the end of a cycle, then sync."""
    ends(w, STATE, TOP + NUM_WITHIN, lane)
    code = _farthest(w, TOP + NUM_WITHIN, NUM_ENDS, lane)
    if code >= 0 and w[LIVE * LANES + lane] > 0.0:
        clock = (w[CYCLE * LANES + lane] + 1.0) * w[PRODUCT * LANES + lane]
        _stop(w, STATE, clock, NUM_WITHIN + code, lane)
    sync(w, STATE, STATE, lane)
    w[CYCLE * LANES + lane] += 1.0
    for i in range(NUM_STATES):
        at = i * LANES + lane
        w[LARGEST * LANES + at] *= 0.5


@_outer
def _settled(w, skip, cycles, lane):
    """Whether all that is carried stays as it is for so many cycles, to a relative `skip`.

    A state has settled if its change from sync to sync does not grow, and once a cycle comes to less than that; a
    counter has if it grows by the same as in the cycle before.
    """
    settled = True
    for i in range(NUM_STATES):
        now, was = w[(STATE + i) * LANES + lane], w[(BEFORE + i) * LANES + lane]
        gain, before = now - was, w[(GAIN + i) * LANES + lane]
        w[(GAIN + i) * LANES + lane] = gain
        w[(BEFORE + i) * LANES + lane] = now
        if COUNTS[i]:
            settled = settled and abs(gain - before) <= skip * abs(gain) + ROUNDED * abs(now)
        elif now != was:
            change = abs(gain) / max(abs(now), abs(was))
            settled = settled and change <= w[(CHANGE + i) * LANES + lane] and change * cycles <= skip
            w[(CHANGE + i) * LANES + lane] = change
    for i in range(NUM_EXITS):
        settled = settled and w[(TOP + i) * LANES + lane] < 0.0
    return settled


@_outer
def _skip(w, skip, lane):
    """Pass over the cycles that repeat the last one, as far as no exit can fire in them."""
    cycles = w[LAST * LANES + lane] - w[CYCLE * LANES + lane]
    if not _settled(w, skip, cycles, lane):
        return
    reach(w, STATE, GAIN, REACH, lane)
    for i in range(NUM_EXITS):
        growth = w[(REACH + i) * LANES + lane]
        if growth > 0.0:
            cycles = min(cycles, np.floor(-w[(TOP + i) * LANES + lane] / growth) - 1.0)
    if cycles > 0.0:
        for i in range(NUM_STATES):
            if COUNTS[i]:
                w[(STATE + i) * LANES + lane] += cycles * w[(GAIN + i) * LANES + lane]
                w[(BEFORE + i) * LANES + lane] = w[(STATE + i) * LANES + lane]
        w[CYCLE * LANES + lane] += cycles


@_outer
def _turn(w, skip, lanes):
    """Everything between two cycles."""
    for lane in range(lanes):
        _sync(w, lane)
        if w[LIVE * LANES + lane] > 0.0:
            if CAN_SKIP and skip > 0.0:
                _skip(w, skip, lane)
            if w[CYCLE * LANES + lane] >= w[LAST * LANES + lane]:
                _stop(w, STATE, np.inf, STAYED, lane)
            else:
                _arrive(w, _clock(w, 0.0, lane), lane)


@_outer
def _load(w, inputs, lengths, block, lanes):
    w[:] = 0.0
    for lane in range(lanes):
        for i in range(NUM_INPUTS):
            w[(INPUTS + i) * LANES + lane] = inputs[i, block * LANES + lane]
        w[LENGTH * LANES + lane] = lengths[block * LANES + lane]
        w[LIVE * LANES + lane] = 1.0
        w[GOING * LANES] += 1.0
        derive(w, lane)


@_outer
def _begin(w, lanes):
    for lane in range(lanes):
        start(w, STATE, STATE, lane)
        for i in range(NUM_STATES):
            at = i * LANES + lane
            w[BEFORE * LANES + at] = w[STATE * LANES + at]
        _arrive(w, 0.0, lane)


@_outer
def _unload(w, block, clocks, codes, finals, lanes):
    for lane in range(lanes):
        member = block * LANES + lane
        clocks[member] = w[CLOCK * LANES + lane]
        codes[member] = int(w[CODE * LANES + lane])
        for i in range(NUM_STATES):
            finals[i, member] = w[(FINAL + i) * LANES + lane]


@_entry
def exits(inputs, lengths, num_cycles, first, last, lanes, tolerance, skip, clocks, codes, finals, lane, path):
    """Walk the blocks first .. last - 1 to their exits or horizons; returns how many points of a path were met.

    inputs: shape (NUM_INPUTS, n), parameters and P; lengths: eta*t of a cycle, shape (n,); num_cycles: shape (n,);
    n whole blocks. Fills clocks (n,) with eta*t at exit (inf: none), codes (n,) with the number of the exit (those
    within a cycle first), STAYED or FAILED, and finals (NUM_STATES, n) with the states there. The path of `lane` of
    the last block goes into path, shape (rows, 1 + NUM_STATES): clock and states.
    """
    w = np.empty(NUM_ROWS * LANES)
    num_points = 0
    for block in range(first, last):
        _load(w, inputs, lengths, block, lanes)
        _begin(w, lanes)
        for other in range(lanes):
            w[LAST * LANES + other] = num_cycles[block * LANES + other]
        if path.shape[0] > 0:
            num_points = _note(w, STATE, 0.0, lane, path, 0)
        step = FIRST_STEP
        while _any_live(w):
            step, num_points = _cycle(w, step, tolerance, True, lanes, lane, path, num_points)
            _turn(w, skip, lanes)
            if path.shape[0] > 0 and w[LIVE * LANES + lane] > 0.0:
                num_points = _note(w, STATE, _clock(w, 0.0, lane), lane, path, num_points)
        _unload(w, block, clocks, codes, finals, lanes)
    return num_points


@_entry
def cycle(states, inputs, lengths, lanes, tolerance):
    """Replace states, shape (NUM_STATES, n), by those one cycle and sync later; NaN where that fails."""
    w = np.empty(NUM_ROWS * LANES)
    path = np.empty((0, 1 + NUM_STATES))
    for block in range(lengths.size // LANES):
        _load(w, inputs, lengths, block, lanes)
        for at in range(NUM_STATES * LANES):
            w[STATE * LANES + at] = states[at // LANES, block * LANES + at % LANES]
        _cycle(w, FIRST_STEP, tolerance, False, lanes, 0, path, 0)
        for lane in range(lanes):
            sync(w, STATE, STATE, lane)
            for i in range(NUM_STATES):
                alive = w[LIVE * LANES + lane] > 0.0
                states[i, block * LANES + lane] = w[(STATE + i) * LANES + lane] if alive else np.nan


@_entry
def evaluate(states, inputs, lanes, values):
    """Fill values with every function of the model at given states, for comparison with its expressions.

    states: (NUM_STATES, n); values: (n, rows): flow, sync, states at the clock 1, excess within, excess at the end.
    """
    w = np.empty(NUM_ROWS * LANES)
    ones = np.ones(inputs.shape[1])
    for block in range(inputs.shape[1] // LANES):
        _load(w, inputs, ones, block, lanes)
        for lane in range(lanes):
            member = block * LANES + lane
            for i in range(NUM_STATES):
                w[(STATE + i) * LANES + lane] = states[i, member]
            flow(w, _now, 0.0, K1, lane)
            for i in range(NUM_STATES):
                moves = LEADER[i] >= 0
                values[member, i] = w[(K1 + LEADER[i]) * LANES + lane] if moves else 0.0
            sync(w, STATE, NEW, lane)
            solution(w, STATE, SPARE, lane, 1.0)
            within(w, STATE, LATER, lane)
            ends(w, STATE, TOP, lane)
            for i in range(NUM_STATES):
                values[member, NUM_STATES + i] = w[(NEW + i) * LANES + lane]
                values[member, 2 * NUM_STATES + i] = w[(SPARE + i) * LANES + lane]
            for i in range(NUM_WITHIN):
                values[member, 3 * NUM_STATES + i] = w[(LATER + i) * LANES + lane]
            for i in range(NUM_ENDS):
                values[member, 3 * NUM_STATES + NUM_WITHIN + i] = w[(TOP + i) * LANES + lane]

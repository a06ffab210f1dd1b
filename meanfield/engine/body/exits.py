"""Exits inside a step: which lanes need a closer look, and the moment at which an exit fires."""

import numpy as np

from meanfield.engine.body.rows import (
    CLOCK,
    CODE,
    CYCLE,
    EXCESS,
    FALL,
    FINAL,
    GOING,
    K7,
    LANES,
    LATER,
    LENGTH,
    LIVE,
    NEAR,
    NEW,
    PRODUCT,
    RISE,
    TOP,
    _outer,
)
from meanfield.engine.body.sample import NUM_STATES, NUM_WITHIN, _inner, rates, within
from meanfield.engine.body.step import _alone

# ---- below this mark: the body ----

MOST_SECANTS = 60


@_inner
def _look(w, h, lane):
    """Mark the lane if an exit lies in the step: beyond its limit at the end, or perhaps beyond it in between.

    An excess that does not fall at the beginning and falls at the end peaks in between. How high is read off the cubic
    with the same ends and slopes, with room for as much again as the slopes lift it; the closer look decides.
    """
    within(w, NEW, LATER, lane)
    rates(w, NEW, K7, FALL, lane)
    near = 0.0
    for i in range(NUM_WITHIN):
        at = i * LANES + lane
        first, last = w[EXCESS * LANES + at], w[LATER * LANES + at]
        rise, fall = h * w[RISE * LANES + at], h * w[FALL * LANES + at]
        middle = 0.5 * (first + last) + 0.125 * (rise - fall)
        peak = max(first, middle, last) + 0.125 * (rise - fall)
        turns = (rise >= 0.0) & (fall < 0.0)
        near = 1.0 if (last >= 0.0) | (turns & (peak >= 0.0)) else near
        w[TOP * LANES + at] = max(w[TOP * LANES + at], peak if turns else last)
    w[NEAR * LANES + lane] = near * w[LIVE * LANES + lane]


@_outer
def _excess_at(w, h, lane):
    """Step one lane and return the largest excess there; -inf where none is a number."""
    _alone(w, h, lane)
    largest = -np.inf
    for i in range(NUM_WITHIN):
        if w[(LATER + i) * LANES + lane] > largest:
            largest = w[(LATER + i) * LANES + lane]
    return largest


@_outer
def _peak(w, h, lane):
    """Share of a step at which some excess is at or beyond its limit and before which none has been; 0 if none is.

    Every excess that peaks inside is followed to its peak by bisection, also where another one is beyond at the end.
    """
    found = h if _excess_at(w, h, lane) >= 0.0 else 0.0
    for i in range(NUM_WITHIN):
        if w[(RISE + i) * LANES + lane] >= 0.0 and w[(FALL + i) * LANES + lane] < 0.0:
            low, high = 0.0, h
            while high - low > 1e-12 * h:
                middle = 0.5 * (low + high)
                _alone(w, middle, lane)
                if w[(LATER + i) * LANES + lane] >= 0.0:
                    found = middle if found == 0.0 else min(found, middle)
                    break
                rates(w, NEW, K7, LATER, lane)
                if w[(LATER + i) * LANES + lane] > 0.0:
                    low = middle
                else:
                    high = middle
    return found


@_outer
def _locate(w, h, lane):
    """Share of a step after which an exit fires, by the secant rule of Illinois inside a bracket; -1 if none does.

    Leaves the states of that moment at NEW and the excesses at LATER; if none fires, those of the whole step.
    """
    high = _peak(w, h, lane)
    if high == 0.0:
        _alone(w, h, lane)
        return -1.0
    low, below, beyond = 0.0, -np.inf, _excess_at(w, high, lane)
    for i in range(NUM_WITHIN):
        below = max(below, w[(EXCESS + i) * LANES + lane])
    side = 0
    for _ in range(MOST_SECANTS):
        if high - low <= 1e-14 * high or beyond == 0.0:
            break
        weight = -below / (beyond - below)
        middle = low + (high - low) * weight if 0.0 < weight < 1.0 else 0.5 * (low + high)
        value = _excess_at(w, middle, lane)
        if value >= 0.0:
            high, beyond = middle, value
            below = 0.5 * below if side > 0 else below
            side = 1
        else:
            low, below = middle, value
            beyond = 0.5 * beyond if side < 0 else beyond
            side = -1
    _excess_at(w, high, lane)
    return high


@_outer
def _stop(w, rows, clock, code, lane):
    for i in range(NUM_STATES):
        w[(FINAL + i) * LANES + lane] = w[(rows + i) * LANES + lane]
    w[CLOCK * LANES + lane] = clock
    w[CODE * LANES + lane] = code
    w[GOING * LANES] -= w[LIVE * LANES + lane]
    w[LIVE * LANES + lane] = 0.0


@_inner
def _any_live(w):
    return w[GOING * LANES] > 0.0


@_outer
def _farthest(w, rows, num_exits, lane):
    """Number of the exit farthest beyond its limit, or -1 if none is."""
    found, largest = -1, 0.0
    for i in range(num_exits):
        if w[(rows + i) * LANES + lane] >= largest:
            found, largest = i, w[(rows + i) * LANES + lane]
    return found


@_outer
def _clock(w, share, lane):
    """eta*t at a share of the present cycle."""
    synced = w[CYCLE * LANES + lane]  # 0 in an open cycle, whose S*eta may be inf
    return (synced + share) * w[PRODUCT * LANES + lane] if synced > 0.0 else share * w[LENGTH * LANES + lane]


@_outer
def _note(w, rows, clock, lane, path, num_points):
    """Write clock and states of a lane to the next row of its path, as long as there is one."""
    if num_points < path.shape[0]:
        path[num_points, 0] = clock
        for i in range(NUM_STATES):
            path[num_points, 1 + i] = w[(rows + i) * LANES + lane]
    return num_points + 1


@_outer
def _check(w, done, h, lanes):
    """Stop the lanes of which an exit fires in the step just taken, where and as it fires."""
    near = 0
    for lane in range(lanes):
        _look(w, h, lane)
        near += 1 if w[NEAR * LANES + lane] > 0.0 else 0
    if near > 0:
        for lane in range(lanes):
            if w[NEAR * LANES + lane] > 0.0:
                share = _locate(w, h, lane)
                if share >= 0.0:
                    code = _farthest(w, LATER, NUM_WITHIN, lane)
                    _stop(w, NEW, _clock(w, done + share, lane), code, lane)

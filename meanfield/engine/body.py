"""The hand-written body of the integrator: blocks of lanes that walk through sync cycles in step.

Above the mark stands a model as `meanfield.engine.source` writes one, here x' = -K*x with an exit at |x| = R, so that
this file can be read and run by itself. A compiled model is its own functions followed by what stands below the mark.

A block is `LANES` members. They share one step, as a share of their sync cycles, whatever those last; one flat
workspace `w` holds a row for each quantity and in it a column for each lane, so that loops over lanes become SIMD code.
A lane that has stopped is masked out. Its slow twin is `meanfield.hybrid`.
"""

import math

import numba
import numpy as np

NUM_STATES = 1
NUM_READ = 1
NUM_INPUTS = 3
NUM_DERIVED = 0
NUM_WITHIN = 1
NUM_ENDS = 0
NUM_EXITS = 1
NUM_CARRIED = 1
HAS_SOLUTION = False
CAN_SKIP = False

_inner = numba.njit(error_model="numpy", fastmath={"contract"}, forceinline=True)


@_inner
def derive(w, lane):
    """Fill what is computed once a member."""
    return


@_inner
def start(w, source, target, lane):
    """States at the start."""
    w[target * LANES + lane] = 1.0


@_inner
def flow(w, source, target, lane):
    """d(states)/d(share of a cycle)."""
    w[target * LANES + lane] = w[LENGTH * LANES + lane] * (-w[INPUTS * LANES + lane] * w[source * LANES + lane])


@_inner
def sync(w, source, target, lane):
    """States after a sync."""
    w[target * LANES + lane] = w[source * LANES + lane]


@_inner
def solution(w, source, target, lane, clock):
    """States after a clock inside a cycle; read only where HAS_SOLUTION."""
    return


@_inner
def within(w, source, target, lane):
    """How far each exit within a cycle is beyond its limit."""
    w[target * LANES + lane] = abs(w[source * LANES + lane]) - w[(INPUTS + 1) * LANES + lane]


@_inner
def ends(w, source, target, lane):
    """How far each exit at the end of a cycle is beyond its limit."""
    return


@_inner
def rates(w, source, more, target, lane):
    """How fast each excess of `within` grows where the states grow as the rows at `more` say."""
    w[target * LANES + lane] = _sign(w[source * LANES + lane]) * w[more * LANES + lane]


@_inner
def reach(w, source, more, target, lane):
    """By how much each excess can grow in a cycle that adds the rows at `more`; read only where CAN_SKIP."""
    return


# ---- below this mark: the body ----

LANES = 16

# Rows of the workspace.
INPUTS = 0
PRODUCT = INPUTS + NUM_INPUTS - 1  # S*eta
DERIVED = INPUTS + NUM_INPUTS
LENGTH = DERIVED + NUM_DERIVED  # eta*t that a cycle lasts
STATE = LENGTH + 1
STAGE = STATE + NUM_STATES
NEW = STAGE + NUM_STATES
SLOPE = NEW + NUM_STATES  # of the seven stages
K1, K2, K3, K4 = SLOPE, SLOPE + NUM_STATES, SLOPE + 2 * NUM_STATES, SLOPE + 3 * NUM_STATES
K5, K6, K7 = SLOPE + 4 * NUM_STATES, SLOPE + 5 * NUM_STATES, SLOPE + 6 * NUM_STATES
LARGEST = SLOPE + 7 * NUM_STATES  # size of each state, for the error
ERROR = LARGEST + NUM_STATES
LIVE = ERROR + 1  # 1 while the lane goes on
NEAR = LIVE + 1  # 1 where an exit may lie in the step
CYCLE = NEAR + 1  # syncs so far
LAST = CYCLE + 1  # syncs at which the horizon is reached
CLOCK = LAST + 1  # eta*t at exit
CODE = CLOCK + 1
EXCESS = CODE + 1  # of the exits within, at the beginning of the step
LATER = EXCESS + NUM_WITHIN  # the same at its end
RISE = LATER + NUM_WITHIN  # how fast they grow, at the beginning
FALL = RISE + NUM_WITHIN  # and at the end
TOP = FALL + NUM_WITHIN  # largest excess of every exit in this cycle
REACH = TOP + NUM_EXITS
BEFORE = REACH + NUM_EXITS  # states after the last sync
GAIN = BEFORE + NUM_STATES
CHANGE = GAIN + NUM_STATES  # relative change of what is carried, from sync to sync
FINAL = CHANGE + 1  # states where the lane stopped
NUM_ROWS = FINAL + NUM_STATES

STAYED, FAILED = -1.0, -2.0
FIRST_STEP = 0.1
SMALLEST_STEP = 1e-10
MOST_STEPS = 100_000
SAFETY, SLOWEST, FASTEST = 0.9, 0.2, 5.0
ABSOLUTE = 1e-6
HUGE = 1e300
MOST_SECANTS = 60

# Dormand and Prince 1980, orders 5 and 4.
A21 = 1 / 5
A31, A32 = 3 / 40, 9 / 40
A41, A42, A43 = 44 / 45, -56 / 15, 32 / 9
A51, A52, A53, A54 = 19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729
A61, A62, A63, A64, A65 = 9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656
B1, B3, B4, B5, B6 = 35 / 384, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84
E1, E3, E4 = B1 - 5179 / 57600, B3 - 7571 / 16695, B4 - 393 / 640
E5, E6, E7 = B5 + 92097 / 339200, B6 - 187 / 2100, -1 / 40

_outer = numba.njit(error_model="numpy", fastmath={"contract"})
_entry = numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})


@_inner
def _sign(x):
    return 1.0 if x > 0.0 else (-1.0 if x < 0.0 else 0.0)


@_inner
def _tanh(x):
    """Branch-free tanh: a Pade quotient at x/16, then four double angles, and one division in all."""
    y = min(max(x, -20.0), 20.0) * 0.0625
    s = y * y
    a = y * (1.0 + s * (17325.0 / 135135.0 + s * (378.0 / 135135.0 + s * (1.0 / 135135.0))))
    b = 1.0 + s * (62370.0 / 135135.0 + s * (3150.0 / 135135.0 + s * (28.0 / 135135.0)))
    a, b = 2.0 * a * b, a * a + b * b
    a, b = 2.0 * a * b, a * a + b * b
    a, b = 2.0 * a * b, a * a + b * b
    return 2.0 * a * b / (a * a + b * b)


@_inner
def _second(w, h, lane):
    for i in range(NUM_READ):
        at = i * LANES + lane
        w[STAGE * LANES + at] = w[STATE * LANES + at] + h * (A21 * w[K1 * LANES + at])
    flow(w, STAGE, K2, lane)


@_inner
def _third(w, h, lane):
    for i in range(NUM_READ):
        at = i * LANES + lane
        w[STAGE * LANES + at] = w[STATE * LANES + at] + h * (A31 * w[K1 * LANES + at] + A32 * w[K2 * LANES + at])
    flow(w, STAGE, K3, lane)


@_inner
def _fourth(w, h, lane):
    for i in range(NUM_READ):
        at = i * LANES + lane
        slope = A41 * w[K1 * LANES + at] + A42 * w[K2 * LANES + at] + A43 * w[K3 * LANES + at]
        w[STAGE * LANES + at] = w[STATE * LANES + at] + h * slope
    flow(w, STAGE, K4, lane)


@_inner
def _fifth(w, h, lane):
    for i in range(NUM_READ):
        at = i * LANES + lane
        slope = A51 * w[K1 * LANES + at] + A52 * w[K2 * LANES + at] + A53 * w[K3 * LANES + at]
        w[STAGE * LANES + at] = w[STATE * LANES + at] + h * (slope + A54 * w[K4 * LANES + at])
    flow(w, STAGE, K5, lane)


@_inner
def _sixth(w, h, lane):
    for i in range(NUM_READ):
        at = i * LANES + lane
        slope = A61 * w[K1 * LANES + at] + A62 * w[K2 * LANES + at] + A63 * w[K3 * LANES + at]
        slope += A64 * w[K4 * LANES + at] + A65 * w[K5 * LANES + at]
        w[STAGE * LANES + at] = w[STATE * LANES + at] + h * slope
    flow(w, STAGE, K6, lane)


@_inner
def _seventh(w, h, lane):
    for i in range(NUM_STATES):
        at = i * LANES + lane
        slope = B1 * w[K1 * LANES + at] + B3 * w[K3 * LANES + at] + B4 * w[K4 * LANES + at]
        slope += B5 * w[K5 * LANES + at] + B6 * w[K6 * LANES + at]
        w[NEW * LANES + at] = w[STATE * LANES + at] + h * slope
    flow(w, NEW, K7, lane)


@_inner
def _solved(w, h, lane):
    solution(w, STATE, NEW, lane, h * w[LENGTH * LANES + lane])
    flow(w, NEW, K7, lane)


@_inner
def _judge(w, h, tolerance, lane):
    """Mean square of the error of a step over what is allowed; huge where it is no number."""
    total = 0.0
    for i in range(NUM_STATES):
        at = i * LANES + lane
        error = E1 * w[K1 * LANES + at] + E3 * w[K3 * LANES + at] + E4 * w[K4 * LANES + at]
        error += E5 * w[K5 * LANES + at] + E6 * w[K6 * LANES + at] + E7 * w[K7 * LANES + at]
        size = max(w[LARGEST * LANES + at], abs(w[NEW * LANES + at]))
        error = h * error / (tolerance * (size + ABSOLUTE))
        total += error * error
    total = total / NUM_STATES
    total = total if total < HUGE else HUGE
    w[ERROR * LANES + lane] = total if w[LIVE * LANES + lane] > 0.0 else 0.0


@_inner
def _alone(w, h, lane):
    """Step of one lane, to the same states as a step of its block; fills NEW, K7 and LATER."""
    if HAS_SOLUTION:
        _solved(w, h, lane)
    else:
        _second(w, h, lane)
        _third(w, h, lane)
        _fourth(w, h, lane)
        _fifth(w, h, lane)
        _sixth(w, h, lane)
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
        _second(w, h, lane)
    for lane in range(lanes):
        _third(w, h, lane)
    for lane in range(lanes):
        _fourth(w, h, lane)
    for lane in range(lanes):
        _fifth(w, h, lane)
    for lane in range(lanes):
        _sixth(w, h, lane)
    for lane in range(lanes):
        _seventh(w, h, lane)
    for lane in range(lanes):
        _judge(w, h, tolerance, lane)
    return _worst(w, lanes)


@_inner
def _look(w, h, lane):
    """Mark the lane if an exit lies in the step: beyond its limit at the end, or perhaps beyond it in between.

    An excess that rises at the beginning and falls at the end peaks in between; if it is concave the peak lies below
    the point where the two tangents meet, and the closer look decides.
    """
    within(w, NEW, LATER, lane)
    rates(w, STATE, K1, RISE, lane)
    rates(w, NEW, K7, FALL, lane)
    near = 0.0
    for i in range(NUM_WITHIN):
        at = i * LANES + lane
        first, last = w[EXCESS * LANES + at], w[LATER * LANES + at]
        rise, fall = h * w[RISE * LANES + at], h * w[FALL * LANES + at]
        turns = (rise > 0.0) & (fall < 0.0)
        peak = min(first + rise, last - fall) if turns else last
        meet = first * (rise - fall) + rise * (last - first - fall)
        near = 1.0 if (last >= 0.0) | (turns & (meet >= 0.0)) else near
        w[TOP * LANES + at] = max(w[TOP * LANES + at], peak)
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
    """Share of a step after which some excess is at or beyond its limit; 0 if it is nowhere, found by bisection."""
    if _excess_at(w, h, lane) >= 0.0:
        return h
    for i in range(NUM_WITHIN):
        low, high = 0.0, h
        if w[(RISE + i) * LANES + lane] > 0.0 and w[(FALL + i) * LANES + lane] < 0.0:
            while high - low > 1e-12 * h:
                middle = 0.5 * (low + high)
                if _excess_at(w, middle, lane) >= 0.0:
                    return middle
                rates(w, NEW, K7, LATER, lane)
                if w[(LATER + i) * LANES + lane] > 0.0:
                    low = middle
                else:
                    high = middle
    return 0.0


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
    w[LIVE * LANES + lane] = 0.0


@_outer
def _any_live(w, lanes):
    live = 0.0
    for lane in range(lanes):
        live = max(live, w[LIVE * LANES + lane])
    return live > 0.0


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
    synced = w[CYCLE * LANES + lane]
    elapsed = synced * w[PRODUCT * LANES + lane] if synced > 0.0 else 0.0
    return elapsed + share * w[LENGTH * LANES + lane]


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
    near = 0.0
    for lane in range(lanes):
        _look(w, h, lane)
    for lane in range(lanes):
        near = max(near, w[NEAR * LANES + lane])
    if near > 0.0:
        for lane in range(lanes):
            if w[NEAR * LANES + lane] > 0.0:
                share = _locate(w, h, lane)
                if share >= 0.0:
                    code = _farthest(w, LATER, NUM_WITHIN, lane)
                    _stop(w, NEW, _clock(w, done + share, lane), code, lane)


@_outer
def _accept(w, lanes):
    for at in range(NUM_STATES * LANES):
        w[LARGEST * LANES + at] = max(w[LARGEST * LANES + at], abs(w[NEW * LANES + at]))
        w[STATE * LANES + at] = w[NEW * LANES + at]
        w[K1 * LANES + at] = w[K7 * LANES + at]
    for at in range(NUM_WITHIN * LANES):
        w[EXCESS * LANES + at] = w[LATER * LANES + at]


@_outer
def _give_up(w, worst, lanes):
    """Stop the lanes that allow no further step; the others go on."""
    for lane in range(lanes):
        if w[LIVE * LANES + lane] > 0.0 and w[ERROR * LANES + lane] >= worst:
            _stop(w, STATE, np.inf, FAILED, lane)


@_outer
def _cycle(w, first, tolerance, watched, lanes, lane, path, num_points):
    """Walk the block from one sync to the next; returns the step to begin the next cycle with, and the points noted.

    Exits are looked for if `watched`; the path of `lane` is noted as far as `path` has room.
    """
    for other in range(lanes):
        flow(w, STATE, K1, other)
        within(w, STATE, EXCESS, other)
        within(w, STATE, TOP, other)
    done, h, taken = 0.0, 1.0 if HAS_SOLUTION else first, 0
    while done < 1.0 and _any_live(w, lanes):
        left = 1.0 - done
        h = left if h > 0.999 * left else min(h, 0.5 * left)
        worst = _together(w, h, tolerance, lanes)
        taken += 1
        if taken > MOST_STEPS or (worst > 1.0 and h < SMALLEST_STEP):
            _give_up(w, worst, lanes)
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
        grown = h * min(FASTEST, SAFETY * max(worst, 1e-12) ** -0.1)
        first = grown if done == 0.0 else first
        done = 1.0 if h == left else done + h
        h = grown
    return min(first, 1.0), num_points


@_outer
def _arrive(w, lane):
    """Stop a lane that begins a cycle beyond an exit, or with states that are no numbers."""
    within(w, STATE, LATER, lane)
    code = _farthest(w, LATER, NUM_WITHIN, lane)
    if code >= 0:
        _stop(w, STATE, _clock(w, 0.0, lane), code, lane)
        return
    for i in range(NUM_STATES):
        if not abs(w[(STATE + i) * LANES + lane]) < HUGE:
            _stop(w, STATE, np.inf, FAILED, lane)


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
        w[LARGEST * LANES + at] = max(0.5 * w[LARGEST * LANES + at], abs(w[STATE * LANES + at]))


@_outer
def _skip(w, skip, lane):
    """Pass over the cycles that repeat the last one, as far as no exit can fire in them.

    What is carried changes by less from sync to sync; the rest of a geometric series must be below `skip`, relative.
    """
    change, previous = 0.0, w[CHANGE * LANES + lane]
    for i in range(NUM_STATES):
        now, was = w[(STATE + i) * LANES + lane], w[(BEFORE + i) * LANES + lane]
        w[(GAIN + i) * LANES + lane] = now - was
        w[(BEFORE + i) * LANES + lane] = now
        if i < NUM_CARRIED and now != was:
            change = max(change, abs(now - was) / max(abs(now), abs(was)))
    w[CHANGE * LANES + lane] = change
    if change > 0.0 and not (change < previous and change * change <= skip * (previous - change)):
        return
    reach(w, STATE, GAIN, REACH, lane)
    cycles = w[LAST * LANES + lane] - w[CYCLE * LANES + lane]
    for i in range(NUM_EXITS):
        growth = w[(REACH + i) * LANES + lane]
        if growth > 0.0:
            cycles = min(cycles, np.floor(-w[(TOP + i) * LANES + lane] / growth) - 1.0)
    if cycles > 0.0:
        for i in range(NUM_CARRIED, NUM_STATES):
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
                _arrive(w, lane)


@_outer
def _load(w, inputs, lengths, block, lanes):
    w[:] = 0.0
    for lane in range(lanes):
        for i in range(NUM_INPUTS):
            w[(INPUTS + i) * LANES + lane] = inputs[i, block * LANES + lane]
        w[LENGTH * LANES + lane] = lengths[block * LANES + lane]
        w[LIVE * LANES + lane] = 1.0
        derive(w, lane)


@_outer
def _begin(w, num_cycles, block, lanes):
    for lane in range(lanes):
        w[LAST * LANES + lane] = num_cycles[block * LANES + lane]
        w[CHANGE * LANES + lane] = 0.0
        start(w, STATE, STATE, lane)
        for i in range(NUM_STATES):
            at = i * LANES + lane
            w[LARGEST * LANES + at] = abs(w[STATE * LANES + at])
            w[BEFORE * LANES + at] = w[STATE * LANES + at]
        _arrive(w, lane)


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
        _begin(w, num_cycles, block, lanes)
        if path.shape[0] > 0:
            num_points = _note(w, STATE, 0.0, lane, path, 0)
        step = FIRST_STEP
        while _any_live(w, lanes):
            step, num_points = _cycle(w, step, tolerance, True, lanes, lane, path, num_points)
            _turn(w, skip, lanes)
            if path.shape[0] > 0 and w[LIVE * LANES + lane] > 0.0:
                num_points = _note(w, STATE, _clock(w, 0.0, lane), lane, path, num_points)
        for lane_out in range(lanes):
            member = block * LANES + lane_out
            clocks[member] = w[CLOCK * LANES + lane_out]
            codes[member] = int(w[CODE * LANES + lane_out])
            for i in range(NUM_STATES):
                finals[i, member] = w[(FINAL + i) * LANES + lane_out]
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
            w[LARGEST * LANES + at] = abs(w[STATE * LANES + at])
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
            flow(w, STATE, K1, lane)
            sync(w, STATE, K2, lane)
            solution(w, STATE, K3, lane, 1.0)
            within(w, STATE, LATER, lane)
            ends(w, STATE, TOP, lane)
            for i in range(NUM_STATES):
                for part in range(3):
                    values[member, part * NUM_STATES + i] = w[(K1 + part * NUM_STATES + i) * LANES + lane]
            for i in range(NUM_WITHIN):
                values[member, 3 * NUM_STATES + i] = w[(LATER + i) * LANES + lane]
            for i in range(NUM_ENDS):
                values[member, 3 * NUM_STATES + NUM_WITHIN + i] = w[(TOP + i) * LANES + lane]

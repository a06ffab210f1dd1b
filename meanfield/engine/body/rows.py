"""Rows of the workspace, and what all parts of the body share.

One flat workspace `w` holds a row for each quantity and in it a column for each lane, so that a loop over lanes becomes
SIMD code.
"""

import numba

from meanfield.engine.body.sample import NUM_DERIVED, NUM_EXITS, NUM_INPUTS, NUM_MOVING, NUM_STATES, NUM_WITHIN, _inner

# ---- below this mark: the body ----

LANES = 32

# Rows of the workspace.
INPUTS = 0
PRODUCT = INPUTS + NUM_INPUTS - 1  # S*eta
DERIVED = INPUTS + NUM_INPUTS
LENGTH = DERIVED + NUM_DERIVED  # eta*t that a cycle lasts
STATE = LENGTH + 1
NEW = STATE + NUM_STATES
SPARE = NEW + NUM_STATES  # for what a model says of every state
SLOPE = SPARE + NUM_STATES  # of the seven stages
K1, K2, K3, K4 = SLOPE, SLOPE + NUM_MOVING, SLOPE + 2 * NUM_MOVING, SLOPE + 3 * NUM_MOVING
K5, K6, K7 = SLOPE + 4 * NUM_MOVING, SLOPE + 5 * NUM_MOVING, SLOPE + 6 * NUM_MOVING
LARGEST = SLOPE + 7 * NUM_MOVING  # size that a state reached which a sync sets to zero
ERROR = LARGEST + NUM_STATES
GOING = ERROR + 1  # in its first place: how many lanes go on
LIVE = GOING + 1  # 1 while the lane goes on
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
FINAL = CHANGE + NUM_STATES  # states where the lane stopped
NORMAL = FINAL + NUM_STATES  # four standard normal numbers
PERIOD = NORMAL + 4  # noisy steps from sync to sync
SINCE = PERIOD + 1  # noisy steps since the last sync
NUM_ROWS = SINCE + 1

STAYED, FAILED = -1.0, -2.0
HUGE = 1e300  # a number beyond it is none

_outer = numba.njit(error_model="numpy", fastmath={"contract"}, no_cpython_wrapper=True, no_cfunc_wrapper=True)
_entry = numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})


@_inner
def _sign(x):
    return 1.0 if x > 0.0 else (-1.0 if x < 0.0 else 0.0)


@_inner
def _larger(a, b):
    """The larger of two numbers; no number if one of them is none."""
    return a if (a > b) | (a != a) else b


@_inner
def _smaller(a, b):
    return a if (a < b) | (a != a) else b


@_inner
def _tanh(x):
    """Branch-free tanh: a Pade quotient at x/16, then four double angles, and one division in all."""
    y = min(max(x, -20.0), 20.0) * 0.125
    s = y * y
    a = y * (1.0 + s * (17325.0 / 135135.0 + s * (378.0 / 135135.0 + s * (1.0 / 135135.0))))
    b = 1.0 + s * (62370.0 / 135135.0 + s * (3150.0 / 135135.0 + s * (28.0 / 135135.0)))
    a, b = 2.0 * a * b, a * a + b * b
    a, b = 2.0 * a * b, a * a + b * b
    return 2.0 * a * b / (a * a + b * b)

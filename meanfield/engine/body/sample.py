"""A model as `meanfield.engine.source` writes one: x' = -K*x, with an exit where |x| = R.

The other files of this folder are the hand-written body. They import these names, so that they can be read, checked
and run as they stand; a compiled model is its own functions in the place of these, followed by what stands below the
mark of rows, step, exits, walk and noise. The slow twin is `meanfield.hybrid`.
"""

import numba

_inner = numba.njit(
    error_model="numpy", fastmath={"contract"}, forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True
)

NUM_STATES = 1
NUM_MOVING = 1
LEADER = (0,)
NUM_INPUTS = 3
NUM_DERIVED = 0
NUM_WITHIN = 1
NUM_ENDS = 0
NUM_EXITS = 1
COUNTS = (False,)
HAS_SOLUTION = False
NUM_NOISY = 0
NOISY = (0,)
CAN_SKIP = False

INPUTS, LENGTH, LANES = 0, 3, 32


@_inner
def derive(w, lane):
    """Fill what is computed once a member."""
    return


@_inner
def start(w, source, target, lane):
    """States at the start."""
    w[target * LANES + lane] = 1.0


@_inner
def flow(w, at, h, target, lane):
    """d(states)/d(share of a cycle); `at` says what a state is at a stage of a step h."""
    w[target * LANES + lane] = w[LENGTH * LANES + lane] * (-w[INPUTS * LANES + lane] * at(w, h, lane))


@_inner
def follow(w, lane):
    """New values of the states that stand still in a cycle, or move as another does."""
    return


@_inner
def remember(w, lane):
    """Keep the size of the states that a sync sets to zero, for the error of the first steps after it."""
    return


@_inner
def sync(w, source, target, lane):
    """States after a sync."""
    w[target * LANES + lane] = w[source * LANES + lane]


@_inner
def solution(w, source, target, lane, clock):
    """States after a clock inside a cycle; read only where HAS_SOLUTION."""
    return


@_inner
def noise(w, source, target, lane):
    """Standard deviation of the noise of an optimizer step, per unit of eta; read only where HAS_NOISE."""
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
    w[target * LANES + lane] = (1.0 if w[source * LANES + lane] > 0.0 else -1.0) * w[more * LANES + lane]


@_inner
def reach(w, source, more, target, lane):
    """By how much each excess can grow in a cycle that adds the rows at `more`; read only where CAN_SKIP."""
    return

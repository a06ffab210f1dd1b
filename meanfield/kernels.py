"""Closed maps in Numba, in this one file: arrays and scalars in, arrays out; checks live in `simulate`.

What is compiled from a symbolic model is in meanfield/engine. Numba's disk cache does not notice an edit in another
file, hence the one file. The slow twins are in tests/support/references.py.
"""

import math

import numba
import numpy as np
from numpy.typing import NDArray

_compile = numba.njit(cache=True, error_model="numpy")


@_compile
def memory_path(kappa: float, h: float, u0: float, memory: NDArray[np.float64]) -> None:
    """Fill `memory` with u_0, u_1, ... of u -> tanh(h + kappa*u), one value a cycle. Source: claim C5."""
    u = u0
    for k in range(memory.size):
        memory[k] = u
        u = math.tanh(h + kappa * u)


@_compile
def exit_clocks(
    products: NDArray[np.float64],
    num_cycles: NDArray[np.int64],
    C: float,
    R: float,
    h: float,
    u0: float,
    clocks: NDArray[np.float64],
) -> None:
    """Fill `clocks` with eta*t where sum_k S*eta*u_k reaches R, located inside its cycle; inf if it does not.

    One element for each product S*eta, which may be inf (one open cycle). At most `num_cycles` cycles are
    walked; once the memory no longer changes, one straight line leads to the exit, however far it is.
    h and u0 are >= 0. Source: claim C6.
    """
    for i in range(products.size):
        product = products[i]
        clocks[i] = np.inf
        u = u0
        x = 0.0
        elapsed = 0.0
        for _ in range(num_cycles[i]):
            needed = np.inf
            if u > 0.0:
                needed = (R - x) / u
            if needed <= product:
                clocks[i] = elapsed + needed
                break
            following = math.tanh(h + product / C * u)
            if following == u:
                clocks[i] = elapsed + needed
                break
            x += product * u
            elapsed += product
            u = following


@_compile
def _drift_in(clock: float, z0: float, a: float, twice_sinh: float, shrink: float) -> float:
    """Displacement after `clock` from the drive z0 > 0: asinh(sinh(z0)*exp(g)) - z0, over a, with g = a*clock.

    Written as one asinh by its addition theorem, so nothing cancels at small a; in the limit tanh(z0)*clock.
    twice_sinh = 2*sinh(g) and shrink = exp(-2*g) are the same in every cycle. Source: claim C5.
    """
    slope = math.tanh(z0)
    growth = a * clock
    if a == 0.0 or growth < 1e-15:  # a = 0 by itself, for clock may be inf
        return slope * clock
    if growth > 300.0:  # sinh may overflow; the exponentials that are left out are below 1e-130
        return max(0.0, clock + math.log(2.0 * slope / (1.0 + slope)) / a)
    squared = slope * slope
    x = slope * twice_sinh / (1.0 + math.sqrt(shrink * (1.0 - squared) + squared))
    return math.log1p(x + x * x / (1.0 + math.sqrt(1.0 + x * x))) / a  # asinh(x), written out for speed


@_compile
def _clock_to(drift: float, z0: float, a: float) -> float:
    """Clock after which the displacement from the drive z0 > 0 is `drift`: the inverse of `_drift_in`. Claim C6."""
    if a == 0.0:
        return drift / math.tanh(z0)
    return drift + math.log1p(-math.expm1(-2.0 * a * drift) / math.expm1(2.0 * z0)) / a


@_compile
def persistent_exits(
    products: NDArray[np.float64],
    num_cycles: NDArray[np.int64],
    parameters: NDArray[np.float64],
    clocks: NDArray[np.float64],
    exits: NDArray[np.int8],
) -> None:
    """Fill `clocks` with eta*t at exit (inf: none) and `exits` with its code, for each parameter row and product.

    A row is (a, s, rho, h, m0, R, R_batch), every one >= 0: dz/dclock = a*tanh(z) from z = h + m, the displacement d
    grows at tanh(z), and m -> rho*m + s*d at the end of a cycle. Code 2: the displacement in all reaches R, located
    in its cycle. Code 1: that of a whole cycle is at least R_batch. At most `num_cycles` cycles are walked; once the
    memory no longer changes, whole cycles are skipped to the exit, however far it is.
    clocks, exits: shape (rows, products). Sources: claims C5 and C6.
    """
    for p in range(parameters.shape[0]):
        a, s, rho, h, m0, R, R_batch = parameters[p]
        for i in range(products.size):
            product = products[i]
            clocks[p, i] = np.inf
            exits[p, i] = 0
            twice_sinh, shrink = 2.0 * math.sinh(a * product), math.exp(-2.0 * a * product)
            m = m0
            x = 0.0
            for cycle in range(num_cycles[i]):
                elapsed = cycle * product if cycle > 0 else 0.0
                z0 = h + m
                drift = _drift_in(product, z0, a, twice_sinh, shrink) if z0 > 0.0 else 0.0
                if drift >= R - x:
                    clocks[p, i] = elapsed + _clock_to(R - x, z0, a)
                    exits[p, i] = 2
                    break
                if drift >= R_batch:
                    clocks[p, i] = elapsed + product
                    exits[p, i] = 1
                    break
                following = rho * m + s * drift
                if following == m:
                    whole = np.floor((R - x) / drift) if drift > 0.0 else np.inf
                    if whole < np.inf:
                        left = max(0.0, R - x - whole * drift)
                        clocks[p, i] = elapsed + whole * product + _clock_to(left, z0, a)
                        exits[p, i] = 2
                    break
                x += drift
                m = following

"""Every Numba function, in this one file: arrays and scalars in, arrays out; checks live in `simulate`.

Numba's disk cache does not notice an edit in another file, hence the one file. The slow twins are in
tests/support/references.py.
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

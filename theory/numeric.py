"""Formula -> NumPy callable. The argument order is the formula's own, never that of a set."""

from collections.abc import Callable
from functools import cache

import numpy as np
import sympy as sp
from numpy.typing import ArrayLike, NDArray

from theory.formula import Formula


@cache
def numpy_function(formula: Formula) -> Callable[..., NDArray[np.float64]]:
    """Return a NumPy function of a formula's arguments, in their order; cached in memory.

    Parameters
    ----------
    formula : Formula

    Returns
    -------
    callable
        Takes one number or array per argument, positionally, broadcasts them and gives float64.

    >>> from theory.drift import BOUNDARY
    >>> float(numpy_function(BOUNDARY)(8, 0.02))
    0.0025
    """
    modules = ["numpy", "scipy"] if formula.expression.has(sp.erf) else "numpy"
    compiled = sp.lambdify(formula.arguments, formula.expression, modules=modules)

    def evaluate(*values: ArrayLike) -> NDArray[np.float64]:
        if len(values) != len(formula.arguments):
            raise ValueError(
                f"values of {formula.name} must be one for each of {formula.arguments}, got {len(values)}. "
                "Give a number or an array for each, in this order."
            )
        arrays = np.broadcast_arrays(*(np.asarray(value, dtype=np.float64) for value in values))
        return np.asarray(compiled(*arrays), dtype=np.float64)

    return evaluate

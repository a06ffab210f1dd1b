"""From a calibration to the parameters of the memory map, so that the model can be held against the same runs.

C is the measured threshold. The exit radius is solved for: with it, the median over the collapsed runs of
log(model's eta*T at exit / measured eta*T at collapse) is zero. The honest signal is 0 and the initial memory
is stated, not fitted: one number per run cannot fix both it and the radius.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from meanfield.calibrate import MIN_COLLAPSED, Calibration
from meanfield.grids import Array
from meanfield.parameters import MapParameters
from meanfield.simulate import exit_budget

INITIAL_MEMORY = 0.1
"""Assumed alignment of the first update with the persistent direction [1]: the order of the cosine between a
fresh gradient and the mean gradient of a cycle."""
LOG_RADIUS_REACH = float(np.log(1e4))
"""How far from the median measured budget, in log units, the radius is looked for."""


@dataclass(frozen=True)
class MapFit:
    """The fitted map, or why there is none.

    Parameters
    ----------
    parameters : MapParameters or None
    num_collapsed : int
        Collapsed runs that set the radius.
    sentence : str
        What the parameters rest on, or what is missing.
    """

    parameters: MapParameters | None
    num_collapsed: int
    sentence: str


def fit_map(calibration: Calibration, *, initial_memory: float = INITIAL_MEMORY) -> MapFit:
    """Parameters of the memory map that match a calibration.

    Parameters
    ----------
    calibration : Calibration
    initial_memory : float [1]
        u0, assumed; in (0, 1].

    Returns
    -------
    MapFit
        Only collapses with S*eta above C count, since the map never exits below it, and only those below the
        learning-rate ceiling where it is known, since above it staleness is not what makes a run collapse.

    Source: claims C5 and C6 (theory/claims). The map has the boundary exponent -1 by construction: where
    the data reject -1 the sentence says so, and the fit is there to be looked at, not to be used.
    """
    product = calibration.critical_product.estimate
    if product is None:
        return MapFit(None, 0, "No map is fitted: the threshold S*eta is not known from these runs.")
    products, measured = _collapses(calibration, product)
    if len(products) < MIN_COLLAPSED:
        rule = f"a radius needs {MIN_COLLAPSED} collapsed runs above the threshold and below the ceiling"
        return MapFit(None, len(products), f"No map is fitted: {rule}, there are {len(products)}.")

    def parameters(log_radius: float) -> MapParameters:
        return MapParameters(
            critical_product=product,
            exit_radius=float(np.exp(log_radius)),
            initial_memory=initial_memory,
            learning_rate_ceiling=calibration.learning_rate_ceiling.estimate,
        )

    def excess(log_radius: float) -> float:
        return float(np.median(np.log(exit_budget(parameters(log_radius), products) / measured)))

    middle = float(np.log(np.median(measured)))
    ends = (middle - LOG_RADIUS_REACH, middle + LOG_RADIUS_REACH)
    if excess(ends[0]) > 0 or excess(ends[1]) < 0:
        return MapFit(None, len(products), "No map is fitted: no exit radius gives the measured collapse times.")
    radius = brentq(excess, *ends, xtol=1e-6)
    return MapFit(parameters(float(radius)), len(products), _sentence(calibration, len(products)))


def _collapses(calibration: Calibration, product: float) -> tuple[Array, Array]:
    """S*eta and eta*T (middle of the onset interval) of the collapses that the map can speak of."""
    seen = calibration.observations
    above_threshold = seen.sync_interval * seen.learning_rate > product
    used = seen.where(calibration.budget_arm & seen.collapsed & above_threshold)
    return used.sync_interval * used.learning_rate, used.learning_rate * 0.5 * (used.low + used.high)


def _sentence(calibration: Calibration, num_collapsed: int) -> str:
    said = f"The exit radius matches {num_collapsed} collapses in the median"
    if not calibration.critical_product.identified:
        return f"{said}; the fitted exponents are not the -1 that the map has, so it is shown for comparison only."
    return f"{said}; threshold as measured, no honest signal."

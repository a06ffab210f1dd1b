"""What the figures draw, computed: lines with their bands, and the drift at the end of each cycle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from meanfield.boundary import BoundaryPosterior, RateBracket
from meanfield.budget import BudgetPosterior
from meanfield.calibrate import Calibration
from meanfield.estimate import Estimate
from meanfield.grids import Array
from meanfield.parameters import MapParameters
from meanfield.simulate import exit_budget
from theory.errors import InputError

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr


@dataclass(frozen=True, eq=False)
class Curve:
    """A line, with the band of its interval where it has one.

    Parameters
    ----------
    x, middle : array, shape (n,)
    low, high : array, shape (n,), or None
    """

    x: Array
    middle: Array
    low: Array | None = None
    high: Array | None = None


def boundary_curve(boundary: BoundaryPosterior, *, sync_intervals: ArrayLike, confidence: float) -> Curve:
    """Largest stable learning rate against S, with its pointwise interval.

    Parameters
    ----------
    boundary : BoundaryPosterior
        With a power law.
    sync_intervals : array, shape (n,) [optimizer step]
        At least 2: at S = 1 there is only the ceiling.
    confidence : float [1]
        Probability inside the band at each S.

    Source: claim C1 (theory/claims).
    """
    intervals = np.asarray(sync_intervals, dtype=np.float64)
    atoms = np.stack([boundary.log_max_rate(float(sync_interval)) for sync_interval in intervals])
    tail = 0.5 * (1.0 - confidence)
    low, middle, high = np.exp(np.quantile(atoms, [tail, 0.5, 1.0 - tail], axis=1))
    return Curve(intervals, middle, low, high)


def time_law_curve(time_law: BudgetPosterior, *, learning_rates: ArrayLike, confidence: float) -> Curve:
    """Median collapse step against the learning rate at the fitted slope, with its pointwise interval.

    Parameters
    ----------
    time_law : BudgetPosterior
    learning_rates : array, shape (n,) [1]
    confidence : float [1]
        Probability inside the band at each rate. The scatter of single runs is not in it.

    Source: claim C2 (theory/claims).
    """
    rates = np.asarray(learning_rates, dtype=np.float64)
    log_median = time_law.log_time[:, None] - time_law.slope[:, None] * (np.log(rates) - time_law.mean_log_rate)
    tail = 0.5 * (1.0 - confidence)
    low, middle, high = np.exp(np.quantile(log_median, [tail, 0.5, 1.0 - tail], axis=0))
    return Curve(rates, middle, low, high)


def budget_curve(budget: Estimate, *, learning_rates: ArrayLike) -> Curve | None:
    """Collapse step budget / learning_rate, a line of slope -1; None where the budget is not known.

    Source: claim C2 (theory/claims).
    """
    if budget.estimate is None:
        return None
    rates = np.asarray(learning_rates, dtype=np.float64)
    return Curve(rates, budget.estimate / rates)


def exit_budget_curve(parameters: MapParameters, *, products: ArrayLike) -> Curve:
    """Cumulative learning rate at exit of the memory map against S*eta, where it exits.

    Source: claim C6 (theory/claims).
    """
    x = np.asarray(products, dtype=np.float64)
    budgets = exit_budget(parameters, x)
    exits = np.isfinite(budgets)
    return Curve(x[exits], budgets[exits])


def cycle_end_drift(dataset: xr.Dataset, *, runs: pd.DataFrame, calibration: Calibration) -> pd.DataFrame:
    """Drift of the last batch of a cycle early in training, for every cell of a sweep.

    Parameters
    ----------
    dataset : Dataset
        As `meanfield.results.SWEEP` says; the batch at step k*S has the lag S - 1.
    runs : DataFrame
        What `meanfield.labels.label_sweep` made of the Dataset.
    calibration : Calibration
        Its brackets say which cells lie on the boundary.

    Returns
    -------
    DataFrame
        Columns sync_interval [optimizer step], learning_rate [1], drift [nat], and the marks largest_stable and
        smallest_unstable of the two rates at the boundary of each S that has runs of both kinds. The drift is
        the median over seeds of the median over the cycles that ended within the first `early_steps` and before
        the run declined. Cells without such a cycle are left out, and so is S = 1, where it is zero by construction.

    Raises
    ------
    InputError
        If the runs are not those of the Dataset.
    """
    import pandas as pd

    drift = dataset["drift"].transpose("sync_interval", "learning_rate", "seed", "step").values
    if len(runs) != drift[..., 0].size:
        raise InputError("runs", f"hold the {drift[..., 0].size} runs of the Dataset", len(runs), "Use label_sweep.")
    healthy_until = runs["collapse_step_low"].fillna(np.inf).to_numpy().reshape(drift.shape[:-1])
    brackets = {bracket.sync_interval: bracket for bracket in calibration.brackets if bracket.closed}
    step = dataset["step"].values
    early = step <= early_steps(dataset)
    rows = []
    for S, of_interval, until_interval in zip(dataset["sync_interval"].values, drift, healthy_until, strict=True):
        if S < 2:
            continue
        ends = (step % S == 0) & early
        cells = zip(dataset["learning_rate"].values, of_interval, until_interval, strict=True)
        for eta, of_cell, until in cells:
            medians = [_median(curve[ends & (step <= last)]) for curve, last in zip(of_cell, until, strict=True)]
            bracket = brackets.get(float(S), RateBracket(float(S), None, None))
            edges = (eta == bracket.largest_stable, eta == bracket.smallest_unstable)
            rows.append((float(S), float(eta), _median(np.array(medians)), *edges))
    columns = ["sync_interval", "learning_rate", "drift", "largest_stable", "smallest_unstable"]
    table = pd.DataFrame(rows, columns=columns)
    return table.dropna(subset="drift").reset_index(drop=True)


def early_steps(dataset: xr.Dataset) -> int:
    """Steps from which `cycle_end_drift` takes its cycles: the largest S of the sweep [optimizer step].

    So many steps hold a cycle at every S, and the same piece of training: later a run that does well moves
    less and less, whatever its S.
    """
    return int(dataset["sync_interval"].values[-1])


def _median(values: Array) -> float:
    """Median of the finite values; NaN if there are none."""
    finite = values[np.isfinite(values)]
    return float(np.median(finite)) if finite.size else float("nan")

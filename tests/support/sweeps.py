"""Synthetic sweeps drawn from known laws: the exact model that `meanfield.calibrate` fits."""

import numpy as np
import pandas as pd

from meanfield.persistent import persistent_exits

INTERVALS = (2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
RATES = tuple(np.geomspace(1e-4, 3e-2, 7))
PERSISTENT_RATES = tuple(np.geomspace(5e-4, 3e-2, 8))


def draw_sweep(
    seed,
    *,
    critical_product=0.05,
    exponent=1.0,
    scale=0.1,
    budget=0.7,
    scatter=0.2,
    ceiling=None,
    intervals=INTERVALS,
    rates=RATES,
    steps=(20_000,),
    num_seeds=2,
    spends_everywhere=False,
):
    """One row a run. With `spends_everywhere` the budget alone collapses a run too (the min-form).

    The boundary is critical_product / 11.31 at S = 11.31, the geometric middle of the default intervals.
    """
    rng = np.random.default_rng(seed)
    middle = np.sqrt(2.0 * 64.0)
    rows = []
    for interval in intervals:
        max_rate = critical_product / middle * (interval / middle) ** -exponent
        if ceiling is not None:
            max_rate = ceiling if interval == 1 else min(ceiling, max_rate)
        for rate in rates:
            for num_steps in steps:
                for replica in range(num_seeds):
                    unstable = np.log(rate / max_rate) + scale * rng.logistic() > 0
                    time = max(1.0, np.ceil(budget / rate * np.exp(scatter * rng.normal())))
                    collapsed = (unstable or spends_everywhere) and time <= num_steps
                    if spends_everywhere and unstable and not collapsed:
                        collapsed, time = True, float(num_steps)
                    rows.append(
                        {
                            "run": f"S{interval:g}-lr{rate:.9g}-T{num_steps}-{replica}",
                            "sync_interval": interval,
                            "learning_rate": rate,
                            "steps": num_steps,
                            "outcome": "collapsed" if collapsed else "stable",
                            "collapse_step": time if collapsed else np.nan,
                            "seed": replica,
                        }
                    )
    return pd.DataFrame(rows)


def draw_persistent(seed, parameters, *, scatter=0.2, steps=800, num_seeds=3):
    """One row a run that follows persistent drift, its collapse step spread log-normally between seeds."""
    rng = np.random.default_rng(seed)
    S, eta, replica = (
        axis.ravel() for axis in np.meshgrid(INTERVALS, PERSISTENT_RATES, np.arange(num_seeds), indexing="ij")
    )
    exits = persistent_exits(parameters, sync_intervals=S, learning_rates=eta, horizon=100 * steps)
    onset = np.maximum(1.0, np.ceil(exits.collapse_step * np.exp(scatter * rng.normal(size=S.size))))
    collapsed = onset <= steps
    return pd.DataFrame(
        {
            "run": [f"S{run[0]:g}-lr{run[1]:.9g}-{run[2]}" for run in zip(S, eta, replica, strict=True)],
            "sync_interval": S,
            "learning_rate": eta,
            "steps": steps,
            "outcome": np.where(collapsed, "collapsed", "stable"),
            "collapse_step": np.where(collapsed, onset, np.nan),
            "seed": replica,
        }
    )

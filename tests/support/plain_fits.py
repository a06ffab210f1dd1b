"""Slow twins of the fits: one dense grid over the whole prior, the likelihood written out run by run."""

import math

import numpy as np

from meanfield.persistent import persistent_exits


def log_logistic(z):
    return -math.log1p(math.exp(-z)) if z > -30 else z


def plain_boundary(runs, *, num_points):
    """Marginal quantiles (5, 50, 95 %) of log eta_max(S_ref) and of the exponent; no ceiling."""
    reference = math.sqrt(runs["sync_interval"].min() * runs["sync_interval"].max())
    log_rates = np.linspace(
        math.log(runs["learning_rate"].min()) - 2, math.log(runs["learning_rate"].max()) + 2, num_points
    )
    exponents = np.linspace(-1.0, 3.0, num_points)
    scales = np.exp(np.linspace(math.log(0.03), 0.0, 15))
    log_density = np.zeros((num_points, num_points, 15))
    for run in runs.itertuples():
        offset = math.log(run.sync_interval / reference)
        threshold = log_rates[:, None] - exponents[None, :] * offset
        z = (math.log(run.learning_rate) - threshold)[:, :, None] / scales
        sign = -1.0 if run.outcome == "stable" else 1.0
        log_density += -np.logaddexp(0.0, -sign * z)
    weights = np.exp(log_density - log_density.max())
    return _quantiles(log_rates, weights.sum((1, 2))), _quantiles(exponents, weights.sum((0, 2)))


def plain_budget(runs, probability, *, num_points):
    """Marginal quantiles of log T at the mean log rate of the collapsed runs, and of the slope."""
    collapsed = runs["outcome"] == "collapsed"
    middle = np.log(runs.loc[collapsed, "learning_rate"]).mean()
    times = np.log(runs.loc[collapsed, "collapse_step"])
    log_times = np.linspace(times.min() - 2, times.max() + 2, num_points)
    slopes = np.linspace(-1.0, 3.0, num_points)
    scatters = np.exp(np.linspace(math.log(0.05), math.log(1.5), 13))
    log_density = np.zeros((num_points, num_points, 13))
    normal = np.vectorize(lambda z: 0.5 * math.erfc(-z / math.sqrt(2.0)))
    for run, p in zip(runs.itertuples(), probability, strict=True):
        median = log_times[:, None] - slopes[None, :] * (math.log(run.learning_rate) - middle)

        def by(step, median=median):
            return normal((math.log(step) - median)[:, :, None] / scatters)

        if run.outcome == "collapsed":
            density = by(run.collapse_step) - by(run.collapse_step - 1)
        else:
            density = 1.0 - p * by(run.steps)
        log_density += np.log(np.maximum(density, 1e-300))
    weights = np.exp(log_density - log_density.max())
    return _quantiles(log_times, weights.sum((1, 2))), _quantiles(slopes, weights.sum((0, 2)))


def _quantiles(axis, weights):
    step = axis[1] - axis[0]
    edges = np.append(axis - 0.5 * step, axis[-1] + 0.5 * step)
    cumulative = np.append(0.0, np.cumsum(weights)) / weights.sum()
    return np.interp([0.05, 0.5, 0.95], cumulative, edges)


def plain_persistent(runs, parameters, scatter, *, outlier_share, horizon):
    """Log likelihood of persistent drift, run by run from the table; `runs` holds finite S >= 2 only."""

    def by(step, median):
        if step <= 0 or not math.isfinite(median):
            return 0.0
        return 0.5 * math.erfc(-math.log(step / median) / scatter / math.sqrt(2.0))

    total = 0.0
    for run in runs.itertuples():
        exits = persistent_exits(
            parameters, sync_intervals=run.sync_interval, learning_rates=run.learning_rate, horizon=horizon
        )
        median = float(exits.cumulative_learning_rate) / run.learning_rate

        def outlier_by(step, length=run.steps):
            return 0.5 * math.log(1.0 + step) / math.log(1.0 + length)

        if run.outcome == "collapsed":
            low, high = run.collapse_step - 1, run.collapse_step
            follows, strays = by(high, median) - by(low, median), outlier_by(high) - outlier_by(low)
        else:
            watched = run.steps if run.outcome == "stable" else run.collapse_step - 1
            follows, strays = 1.0 - by(watched, median), 1.0 - outlier_by(watched)
        total += math.log((1.0 - outlier_share) * follows + outlier_share * strays)
    return total

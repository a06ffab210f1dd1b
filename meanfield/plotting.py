"""The five figures: each takes ready-made results and axes, draws, and returns the axes. Nothing is fitted.

A runs table is one that `meanfield.runs.check_runs` accepts: seed and onset columns may be missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from meanfield import plot_style as style
from meanfield.curves import Curve
from meanfield.outcomes import Outcome
from meanfield.runs import check_runs

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.collections import PathCollection
    from matplotlib.lines import Line2D

    from meanfield.calibrate import Calibration
    from meanfield.estimate import Estimate

SEED_SPREAD = 1.07
"""Factor in x between the marks of two runs of one cell."""
MAX_SYNC_LINES = 60
"""More synchronizations than this are not marked: the lines would fill the figure."""


def plot_phase_diagram(
    runs: pd.DataFrame,
    axes: Axes,
    *,
    calibration: Calibration,
    boundary: Curve | None,
    model: xr.Dataset | None,
) -> Axes:
    """Outcome of every run over (S, eta), with the fitted boundary and that of the model.

    Parameters
    ----------
    runs : DataFrame
        Runs of one cell lie side by side, in the order of the table.
    axes : Axes
    calibration : Calibration
        Its ceiling and its budget are drawn, the latter as the line B/T with T the longest run.
    boundary : Curve or None
        From `meanfield.curves.boundary_curve`.
    model : Dataset or None
        From `meanfield.simulate.phase_diagram`, at the horizon of the runs.

    Returns
    -------
    Axes

    Source: claims C1, C5 and C8 (theory/claims).
    """
    runs = check_runs(runs)
    handles = _draw_outcomes(runs, axes)
    limits = _rate_limits(runs)
    if boundary is not None:
        handles.append(_draw_curve(boundary, axes, colour=style.FIT_COLOUR, label="boundary, fitted"))
    if model is not None:
        handles.append(_draw_model_boundary(model, axes))
    ceiling, budget = calibration.learning_rate_ceiling.estimate, calibration.budget.estimate
    if ceiling is not None:
        handles.append(_level(axes, ceiling, label="ceiling at S = 1", dashes="--"))
    if budget is not None:
        rate = budget / float(runs["steps"].max())
        if limits[0] < rate < limits[1]:
            handles.append(_level(axes, rate, label="horizon line B/T" + _doubt(calibration.budget)))
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_ylim(*limits)
    style.plain_ticks(axes, sorted(runs["sync_interval"].unique()))
    style.dress(
        axes,
        title="Outcome of every run",
        x="sync interval S [optimizer steps]",
        y="learning rate η",
    )
    style.legend_outside(axes, handles)
    return axes


def _draw_outcomes(runs: pd.DataFrame, axes: Axes) -> list[Line2D]:
    """One mark per run, those of a cell side by side; returns the legend entries."""
    cells = runs.groupby(["sync_interval", "learning_rate"])["run"]
    rank, size = cells.cumcount(), cells.transform("size")
    x = runs["sync_interval"] * SEED_SPREAD ** (rank - 0.5 * (size - 1))
    handles = []
    for outcome in Outcome:
        here = runs["outcome"] == outcome.word
        if not here.any():
            continue
        axes.scatter(
            x[here],
            runs.loc[here, "learning_rate"],
            marker=style.OUTCOME_MARKERS[outcome],
            color=style.OUTCOME_COLOURS[outcome],
            s=34,
            linewidths=0,
            zorder=3,
            label=outcome.word,
        )
        handles.append(style.outcome_handle(outcome))
    return handles


def _rate_limits(runs: pd.DataFrame) -> tuple[float, float]:
    rates = runs["learning_rate"]
    return float(rates.min()) / 1.5, float(rates.max()) * 1.5


def _draw_curve(curve: Curve, axes: Axes, *, colour: str, label: str) -> Line2D:
    (line,) = axes.plot(curve.x, curve.middle, color=colour, linewidth=2.0, label=label, zorder=2)
    if curve.low is not None and curve.high is not None:
        axes.fill_between(curve.x, curve.low, curve.high, color=colour, alpha=0.2, linewidth=0, zorder=1)
    return line


def _draw_model_boundary(model: xr.Dataset, axes: Axes) -> Line2D:
    """Line through the smallest rate that collapses at each S; a gap where none does."""
    collapsed = model["outcome"] == Outcome.COLLAPSED.code
    rate = model["learning_rate"].where(collapsed).min("learning_rate").values
    label = "boundary, model\n(slope −1 by construction)"
    (line,) = axes.plot(model["sync_interval"].values, rate, label=label, zorder=2)
    line.set(color=style.MODEL_COLOUR, linestyle="dashdot", linewidth=2.0)
    return line


def _level(axes: Axes, y: float, *, label: str, dashes: str = ":") -> Line2D:
    return axes.axhline(y, color=style.INK, linewidth=1.1, linestyle=dashes, label=label)


def _log_scales(axes: Axes, *, nothing: str | None) -> None:
    """Make both axes logarithmic; without data they get limits of their own, and say what is missing."""
    axes.set_xscale("log")
    axes.set_yscale("log")
    if nothing is not None:
        axes.set(xlim=(1e-3, 1.0), ylim=(1e-3, 1.0))
        axes.text(0.5, 0.5, nothing, transform=axes.transAxes, ha="center", va="center")


def _upright(axes: Axes, x: float, *, label: str) -> Line2D:
    return axes.axvline(x, color=style.INK, linewidth=1.1, linestyle="--", label=label)


def _doubt(estimate: Estimate) -> str:
    return "" if estimate.identified else "\n(no constant by this fit)"


def plot_rewards(dataset: xr.Dataset, axes: Axes, *, outcomes: Sequence[str]) -> Axes:
    """Learner reward against the step at one S and one seed, one line per learning rate.

    Parameters
    ----------
    dataset : Dataset
        As `meanfield.results.SWEEP` says, reduced to one S, one seed and the rates to be drawn.
    axes : Axes
    outcomes : sequence of str, one per learning rate
        Outcome words of these runs.

    Returns
    -------
    Axes
        Synchronizations are thin lines, unless there are too many; the mark at the end is the outcome.
    """
    rates, steps = dataset["learning_rate"].values, dataset["step"].values
    handles = []
    for rate, word, colour in zip(rates, outcomes, style.ramp(len(rates)), strict=True):
        reward = dataset["learner_reward"].sel(learning_rate=rate).values
        seen = np.isfinite(reward)
        if not seen.any():
            continue
        (line,) = axes.plot(steps[seen], reward[seen], color=colour, linewidth=1.6, zorder=3)
        line.set(label=f"η = {rate:.2g}  {word}", markevery=[-1], markersize=8, clip_on=False)
        line.set_marker(style.OUTCOME_MARKERS[Outcome.from_word(word)])
        handles.append(line)
    floor = float(dataset.attrs["reward_floor"])
    handles.append(_level(axes, floor, label="random policy"))
    axes.set_xlim(0, steps[-1])
    axes.set_ylim(bottom=min(0.0, floor))
    sync_interval, seed = float(dataset["sync_interval"]), int(dataset["seed"])
    title = f"Reward while training, S = {sync_interval:g}, seed {seed}"
    style.dress(axes, title=title, x="optimizer step", y="expected reward of the learner")
    axes.grid(visible=False, axis="x")
    handles += _mark_syncs(axes, sync_interval, num_steps=int(steps[-1]))
    style.legend_outside(axes, handles)
    return axes


def _mark_syncs(axes: Axes, sync_interval: float, *, num_steps: int) -> list[Line2D]:
    if sync_interval < 2 or not 1 <= num_steps / sync_interval <= MAX_SYNC_LINES:
        return []
    syncs = np.arange(sync_interval, num_steps + 1, sync_interval)
    lines = [axes.axvline(step, color=style.INK, alpha=0.25, linewidth=0.6, zorder=0) for step in syncs]
    lines[0].set_label("synchronization")
    return lines[:1]


def plot_collapse_steps(
    runs: pd.DataFrame, axes: Axes, *, calibration: Calibration, fit: Curve | None, budget: Curve | None
) -> Axes:
    """Collapse step against the learning rate, with the interval in which the onset lies.

    Parameters
    ----------
    runs : DataFrame
        A collapse at a known step alone is drawn as the interval (step - 1, step], one at no known step is not.
    axes : Axes
    calibration : Calibration
        Its ceiling is drawn, and its slope is said.
    fit : Curve or None
        From `meanfield.curves.time_law_curve`: the line of the fitted slope.
    budget : Curve or None
        From `meanfield.curves.budget_curve`: the line of slope -1, law two.

    Returns
    -------
    Axes

    Source: claim C2 (theory/claims).
    """
    runs = check_runs(runs)
    collapsed = _onsets(runs)
    styles = style.interval_styles(runs["sync_interval"])
    handles = []
    for index, (sync_interval, look) in enumerate(styles.items()):
        here = collapsed[collapsed["sync_interval"] == sync_interval]
        if here.empty:
            continue
        shift = 1.035 ** (index - 0.5 * (len(styles) - 1))
        _draw_onsets(here, axes, look=look, shift=shift)
        handles.append(style.interval_handle(sync_interval, look))
    horizon = float(runs["steps"].max())
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(*_rate_limits(runs))
    axes.set_ylim(0.7, 1.6 * horizon)
    axes.yaxis.set_major_formatter("{x:g}")
    if fit is not None:
        handles.append(_draw_curve(fit, axes, colour=style.FIT_COLOUR, label=_slope_label(calibration)))
    if budget is not None:
        label = "law two, slope −1" + ("" if calibration.budget.identified else "\n(outside the interval)")
        handles.append(_draw_curve(budget, axes, colour=style.FIT_COLOUR, label=label))
        handles[-1].set_linestyle("dashed")
    handles.append(_level(axes, horizon, label="end of the runs"))
    handles += _ceiling_line(axes, calibration)
    style.dress(
        axes, title="When the collapsed runs collapse", x="learning rate η", y="collapse step T [optimizer steps]"
    )
    style.legend_outside(axes, handles)
    return axes


def _onsets(runs: pd.DataFrame) -> pd.DataFrame:
    """Collapsed runs whose onset is known at all, each with both ends of the interval in which it lies."""
    collapsed = runs[runs["outcome"] == Outcome.COLLAPSED.word]
    point = collapsed["collapse_step"]
    low, high = collapsed["collapse_step_low"].fillna(point - 1.0), collapsed["collapse_step_high"].fillna(point)
    return collapsed.assign(collapse_step_low=low, collapse_step_high=high).dropna(subset="collapse_step_high")


def _slope_label(calibration: Calibration) -> str:
    slope = calibration.budget_exponent.estimate
    return "fitted" if slope is None else f"fitted, slope {slope:.2f}".replace("-", "−")


def _draw_onsets(runs: pd.DataFrame, axes: Axes, *, look: tuple[str, str], shift: float) -> None:
    """Onset intervals as bars, with the mark at the upper end: the first evaluation that shows the collapse."""
    colour, marker = look
    x = runs["learning_rate"] * shift
    axes.vlines(x, runs["collapse_step_low"].clip(lower=0.7), runs["collapse_step_high"], color=colour, linewidth=1.3)
    axes.scatter(x, runs["collapse_step_high"], marker=marker, color=colour, s=30, linewidths=0, zorder=3)


def _ceiling_line(axes: Axes, calibration: Calibration) -> list[Line2D]:
    ceiling = calibration.learning_rate_ceiling.estimate
    if ceiling is None:
        return []
    return [_upright(axes, ceiling, label="ceiling at S = 1")]


def plot_collapse_budgets(runs: pd.DataFrame, axes: Axes, *, calibration: Calibration, model: Curve | None) -> Axes:
    """eta*T at collapse against S*eta: if the model holds, every S lies on one curve.

    Parameters
    ----------
    runs : DataFrame
        Onsets as in `plot_collapse_steps`.
    axes : Axes
    calibration : Calibration
        Its threshold C is drawn; collapses above its ceiling are faint: runs at S = 1 are unstable there too
        (degraded or collapsed).
    model : Curve or None
        From `meanfield.curves.exit_budget_curve`.

    Returns
    -------
    Axes

    Source: claims C2 and C6 (theory/claims).
    """
    runs = check_runs(runs)
    collapsed = _onsets(runs)
    ceiling = calibration.learning_rate_ceiling.estimate
    styles = style.interval_styles(runs["sync_interval"])
    handles = []
    for sync_interval, look in styles.items():
        here = collapsed[collapsed["sync_interval"] == sync_interval]
        if here.empty:
            continue
        faint = here["learning_rate"] > (np.inf if ceiling is None else ceiling)
        _draw_budgets(here[~faint], axes, look=look, alpha=1.0)
        _draw_budgets(here[faint], axes, look=look, alpha=0.25)
        handles.append(style.interval_handle(sync_interval, look))
    if model is not None:
        handles.append(_draw_curve(model, axes, colour=style.MODEL_COLOUR, label="model"))
        handles[-1].set_linestyle("dashdot")
    product = calibration.critical_product.estimate
    if product is not None:
        handles.append(_upright(axes, product, label="threshold C" + _doubt(calibration.critical_product)))
    _log_scales(axes, nothing="no run collapsed" if collapsed.empty else None)
    title = "Cumulative learning rate at collapse"
    style.dress(axes, title=title, x="S·η", y="η·T at collapse")
    style.legend_outside(axes, handles, title=None if ceiling is None else "faint: above the\nceiling at S = 1")
    return axes


def _draw_budgets(runs: pd.DataFrame, axes: Axes, *, look: tuple[str, str], alpha: float) -> None:
    colour, marker = look
    rate = runs["learning_rate"]
    x = rate * runs["sync_interval"]
    high = rate * runs["collapse_step_high"]
    low = (rate * runs["collapse_step_low"]).clip(lower=0.1 * high)
    axes.vlines(x, low, high, color=colour, alpha=alpha, linewidth=1.3)
    axes.scatter(x, high, marker=marker, color=colour, alpha=alpha, s=30, linewidths=0, zorder=3)


def plot_drift(table: pd.DataFrame, axes: Axes, *, calibration: Calibration, early_steps: int) -> Axes:
    """Drift at the end of a cycle against eta*(S - 1), one line per S, the cells at the boundary marked.

    Parameters
    ----------
    table : DataFrame
        From `meanfield.curves.cycle_end_drift`.
    axes : Axes
    calibration : Calibration
        The S of its runs, so that colours agree between figures.
    early_steps : int [optimizer step]
        Steps from which the table takes its cycles, for the title.

    Returns
    -------
    Axes
        S = 1 has no drift by construction, and the axes say so.

    Source: claim C3 (theory/claims): the order of the drift within a cycle.
    """
    styles = style.interval_styles(calibration.observations.sync_interval)
    handles: list[Artist] = []
    for sync_interval, (colour, marker) in styles.items():
        here = table[table["sync_interval"] == sync_interval]
        if here.empty:
            continue
        x = here["learning_rate"] * (sync_interval - 1)
        (line,) = axes.plot(x, here["drift"], color=colour, marker=marker, label=f"S = {sync_interval:g}")
        handles.append(line)
    marks = ("largest_stable", "smallest_unstable")
    stable, unstable = (table[table[mark].astype(bool)] for mark in marks)  # no column of an empty table has a type
    handles.append(_frame(stable, axes, of=Outcome.STABLE, marker="s", size=90, label="largest stable η"))
    handles.append(_frame(unstable, axes, of=Outcome.COLLAPSED, marker="o", size=300, label="smallest unstable η"))
    _log_scales(axes, nothing="no cycle ended before a decline" if table.empty else None)
    axes.text(
        0.98, 0.02, "S = 1: zero by construction", transform=axes.transAxes, ha="right", va="bottom", fontsize="small"
    )
    title = f"Drift at the end of a cycle, first {early_steps} steps"
    style.dress(axes, title=title, x="η·lag at the last batch, η·(S − 1)", y="rms log-ratio per token [nat]")
    style.legend_outside(axes, handles)
    return axes


def _frame(table: pd.DataFrame, axes: Axes, *, of: Outcome, marker: str, size: float, label: str) -> PathCollection:
    """Open marks around the cells of a table."""
    x = table["learning_rate"] * (table["sync_interval"] - 1)
    colour = style.OUTCOME_COLOURS[of]
    frames = axes.scatter(x, table["drift"], marker=marker, s=size, facecolors="none", edgecolors=colour)
    frames.set(label=label, linewidths=1.8, zorder=4)
    return frames

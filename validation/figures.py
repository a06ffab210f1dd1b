"""The five figures of a report as inline SVG, each with one sentence that says what to look at."""

import io
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from meanfield import plot_style, plotting
from meanfield.boundary import RateBracket
from meanfield.calibrate import Calibration
from meanfield.curves import (
    boundary_curve,
    budget_curve,
    cycle_end_drift,
    early_steps,
    exit_budget_curve,
    time_law_curve,
)
from meanfield.estimate import Estimate
from meanfield.outcomes import Outcome
from meanfield.simulate import phase_diagram
from validation.comparison import Comparison

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

NUM_LINES = 5
"""Learning rates in the figure of the rewards."""
ABOVE_CEILING = "where runs at S = 1 are unstable too (degraded or collapsed)"
"""Why collapses above the ceiling are not counted against staleness."""
_SIZE = (8.0, 4.8)


@dataclass(frozen=True)
class ReportFigure:
    """One figure of the report.

    Parameters
    ----------
    name : str
        Used in ids: letters only.
    caption : str
        What to look at, and what this sweep shows. Plain text.
    svg : str
        An <svg> element that takes its text colour from the page.
    """

    name: str
    caption: str
    svg: str


def report_figures(comparison: Comparison) -> tuple[ReportFigure, ...]:
    """Draw the five figures of a comparison."""
    return (_phase(comparison), _rewards(comparison), _steps(comparison), _budgets(comparison), _drift(comparison))


def _figure(name: str, caption: str, draw: Callable[["Axes"], object]) -> ReportFigure:
    return ReportFigure(name, caption, draw_svg(draw, name=name))


def draw_svg(draw: Callable[["Axes"], object], *, name: str) -> str:
    """Draw on new axes and return the figure as an <svg> element with ids of its own, equal bits for equal input.

    Parameters
    ----------
    draw : callable
        Draws on the axes it is given.
    name : str
        Prefix of every id, so that several figures share a page.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rc("svg", fonttype="path", hashsalt="driftlaw")
        mpl.rc("font", size=10.5)
        mpl.rc("text", color=plot_style.INK)
        mpl.rc("axes", edgecolor=plot_style.INK, labelcolor=plot_style.INK)
        mpl.rc("xtick", color=plot_style.INK)
        mpl.rc("ytick", color=plot_style.INK)
        figure = Figure(figsize=_SIZE, layout="constrained")
        draw(figure.add_subplot())
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    element = text[text.index("<svg") :].replace(plot_style.INK, "currentColor")
    element = re.sub(r"<(metadata|style)\b.*?</\1>", "", element, flags=re.DOTALL)
    element = re.sub(r'\bid="', f'id="{name}-', element)
    element = element.replace('href="#', f'href="#{name}-').replace("url(#", f"url(#{name}-")
    return re.sub(r'<svg [^>]*?viewBox="([^"]*)"[^>]*>', r'<svg viewBox="\1" aria-hidden="true">', element, count=1)


def said_exponent(estimate: Estimate) -> str:
    """Return an exponent with its interval, with true minus signs."""
    if estimate.estimate is None or estimate.low is None or estimate.high is None:
        return "not known"
    return f"{estimate.estimate:.2f} [{estimate.low:.2f}, {estimate.high:.2f}]".replace("-", "−")


def _rates(comparison: Comparison, count: int) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    tested = comparison.experiment.learning_rate
    return np.geomspace(tested[0] / 1.5, tested[-1] * 1.5, count)


def _phase(comparison: Comparison) -> ReportFigure:
    calibration, intervals = comparison.calibration, comparison.experiment.sync_interval
    stale = [S for S in intervals if S >= 2]
    has_law = calibration.boundary is not None and calibration.boundary.log_rate is not None
    curve = None
    if calibration.boundary is not None and has_law:
        axis = np.geomspace(stale[0], stale[-1], 60)
        curve = boundary_curve(calibration.boundary, sync_intervals=axis, confidence=calibration.confidence)
    model, parameters = None, comparison.map_fit.parameters
    if parameters is not None:
        model = phase_diagram(
            parameters,
            sync_intervals=np.arange(stale[0], stale[-1] + 1),
            learning_rates=_rates(comparison, 300),
            horizon=comparison.experiment.max_steps,
        )
    if curve is None:
        caption = "Look at where the marks change. These runs do not give a boundary, so none is drawn."
    else:
        caption = (
            "Look at how steeply the fitted boundary falls. Law one says exponent −1, like the model; here the "
            f"exponent is {said_exponent(calibration.boundary_exponent)}."
        )
    return _figure(
        "phase",
        caption,
        lambda axes: plotting.plot_phase_diagram(
            comparison.runs, axes, calibration=calibration, boundary=curve, model=model
        ),
    )


def _words(comparison: Comparison) -> "np.ndarray[tuple[int, int, int], np.dtype[np.str_]]":
    """Outcome words on the grid (S, eta, seed)."""
    shape = tuple(comparison.dataset.sizes[name] for name in ("sync_interval", "learning_rate", "seed"))
    return comparison.runs["outcome"].to_numpy(dtype=str).reshape(shape)


def _rewards(comparison: Comparison) -> ReportFigure:
    """At the S that shows most outcomes, nearest to the middle of the tested ones; the rates around the change."""
    words, intervals = _words(comparison)[:, :, 0], comparison.experiment.sync_interval
    middle = np.sqrt(intervals[0] * intervals[-1])
    variety = [(len(set(words[i])), -abs(np.log(S / middle))) for i, S in enumerate(intervals)]
    chosen = max(range(len(intervals)), key=variety.__getitem__)
    changed = np.flatnonzero(words[chosen] != Outcome.STABLE.word)
    start = int(changed[0]) - 2 if changed.size else len(words[chosen])
    start = max(0, min(start, len(words[chosen]) - NUM_LINES))
    shown = slice(start, start + NUM_LINES)
    dataset = comparison.dataset.isel(sync_interval=chosen, seed=0, learning_rate=shown)
    outcomes = words[chosen, shown].tolist()
    told = ", ".join(f"{outcomes.count(word)} {word}" for word in dict.fromkeys(outcomes))
    caption = (
        f"Look at where a line drops and whether it comes back: of these {len(outcomes)} runs at "
        f"S = {intervals[chosen]}, in which only the learning rate differs, {told}."
    )
    return _figure("rewards", caption, lambda axes: plotting.plot_rewards(dataset, axes, outcomes=outcomes))


def _collapsed(comparison: Comparison) -> "pd.DataFrame":
    runs = comparison.runs
    return runs[(runs["outcome"] == Outcome.COLLAPSED.word) & (runs["sync_interval"] >= 2)]


def _steps(comparison: Comparison) -> ReportFigure:
    calibration = comparison.calibration
    rates = _rates(comparison, 60)
    ceiling = calibration.learning_rate_ceiling.estimate
    if ceiling is not None:
        rates = rates[rates < ceiling]
    fit = None
    if calibration.time_law is not None and calibration.budget_exponent.estimate is not None:
        fit = time_law_curve(calibration.time_law, learning_rates=rates, confidence=calibration.confidence)
    budget = budget_curve(calibration.budget, learning_rates=rates)
    return _figure(
        "steps",
        _steps_caption(comparison),
        lambda axes: plotting.plot_collapse_steps(
            comparison.runs, axes, calibration=calibration, fit=fit, budget=budget
        ),
    )


def _steps_caption(comparison: Comparison) -> str:
    calibration, collapsed = comparison.calibration, _collapsed(comparison)
    ceiling, slope = calibration.learning_rate_ceiling.estimate, calibration.budget_exponent
    if slope.estimate is None:
        return f"Look at when runs collapse: of those at S ≥ 2, {len(collapsed)} did, too few for a slope."
    above = 0 if ceiling is None else int((collapsed["learning_rate"] > ceiling).sum())
    ignored = ""
    if above:
        ignored = (
            f"Neither line counts the {above} collapses (of {len(collapsed)} at S ≥ 2) right of the ceiling, "
            f"{ABOVE_CEILING}; runs"
        )
    return (
        "Look at whether the marks follow the dashed line (law two: slope −1): the fitted slope (solid line) is "
        f"{said_exponent(slope)}. {ignored or 'Runs'} that had not collapsed count too, which moves both lines up."
    )


def _budgets(comparison: Comparison) -> ReportFigure:
    calibration, parameters = comparison.calibration, comparison.map_fit.parameters
    curve = None
    if parameters is not None:
        products = np.asarray(comparison.experiment.sync_interval)[:, None] * _rates(comparison, 2)
        axis = np.geomspace(products.min(), products.max(), 400)
        curve = exit_budget_curve(parameters, products=axis)
    known = [(S, one.estimate) for S, one in calibration.interval_budgets if one.estimate is not None]
    caption = "Look at whether the marks of all S lie on one curve. "
    if known:
        least, most = min(known, key=lambda pair: pair[1]), max(known, key=lambda pair: pair[1])
        caption += (
            f"Fitted at each S alone, η·T goes from {least[1]:.2g} (S = {least[0]:g}) to {most[1]:.2g} "
            f"(S = {most[0]:g}). "
        )
    caption += comparison.map_fit.sentence
    ceiling, runs = calibration.learning_rate_ceiling.estimate, comparison.runs
    collapsed = runs["outcome"] == Outcome.COLLAPSED.word
    if ceiling is not None and (collapsed & (runs["learning_rate"] > ceiling)).any():
        caption += (
            f" Faint marks are collapses above the ceiling, {ABOVE_CEILING}; neither η·T nor the curve counts them."
        )
    return _figure(
        "budgets",
        caption,
        lambda axes: plotting.plot_collapse_budgets(comparison.runs, axes, calibration=calibration, model=curve),
    )


def _drift(comparison: Comparison) -> ReportFigure:
    calibration = comparison.calibration
    table = cycle_end_drift(comparison.dataset, runs=comparison.runs, calibration=calibration)
    steps = early_steps(comparison.dataset)
    return _figure(
        "drift",
        _drift_caption(table, calibration),
        lambda axes: plotting.plot_drift(table, axes, calibration=calibration, early_steps=steps),
    )


def _drift_caption(table: "pd.DataFrame", calibration: Calibration) -> str:
    parts = []
    for mark, name in (
        ("largest_stable", "blue squares (largest stable η)"),
        ("smallest_unstable", "red circles (smallest unstable η)"),
    ):
        drift = table.loc[table[mark], "drift"]
        if len(drift):
            spread = f"{drift.min():.2g} to {drift.max():.2g} nat, a factor {drift.max() / drift.min():.2g}"
            parts.append(f"the {name} go from {spread}")
    if not parts:
        return "Look at how the drift grows with η·lag. No cell of this sweep lies at a boundary."
    caption = (
        "Look at whether the blue squares, and the red circles, lie at one height at all S: then drift alone would "
        f"tell the boundary. Here {', and '.join(parts)}."
    )
    mixed = [f"{one.sync_interval:g}" for one in calibration.brackets if one.sync_interval >= 2 and _overlap(one)]
    if mixed:
        caption += (
            f" At S = {_listed(mixed)} stable and unstable rates overlap: the red circle lies on or left of the blue "
            "square."
        )
    return caption


def _listed(words: list[str]) -> str:
    return " and ".join([*([", ".join(words[:-1])] if words[:-1] else []), words[-1]])


def _overlap(bracket: RateBracket) -> bool:
    """Whether the smallest unstable rate is not above the largest stable one."""
    stable, unstable = bracket.largest_stable, bracket.smallest_unstable
    return stable is not None and unstable is not None and unstable <= stable

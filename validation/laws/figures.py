"""The figures of the page of the measured laws, as PNG files; each can be read without the text."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from meanfield import plot_style as style
from meanfield.estimate import Estimate
from meanfield.outcomes import Outcome
from validation.laws.setting import Setting
from validation.laws.text import FIGURES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Styles = dict[float, tuple[str, str]]
"""S -> colour and marker, the same in all panels."""

_DPI = 110
_PER_ROW = 4
_LEGEND = 8
_SEED_SPREAD = 1.09
_LAW_COLOURS = ("#1f8a70", "#8a63c9", "#d5482a")


def draw_all(settings: Sequence[Setting], folder: Path) -> None:
    """Write one PNG per figure of `validation.laws.text.FIGURES` to the folder."""
    import matplotlib as mpl

    styles = style.interval_styles(S for one in settings for S in one.experiment.sync_interval)
    budget, cosine, held_out = (partial(draw, styles=styles) for draw in (_budget, _cosine, _holdout))
    draws: dict[str, Callable[[Sequence[Setting]], Figure]] = {
        "exponents": _exponents,
        "phases": lambda chosen: _small_multiples(chosen, _phase, x="S [optimizer steps]", y="learning rate η"),
        "budgets": lambda chosen: _small_multiples(chosen, budget, x="S·η", y="η·T at collapse"),
        "horizons": lambda chosen: _small_multiples(chosen, _horizon, x="S [optimizer steps]", y="η on the boundary"),
        "lags": lambda chosen: _small_multiples(chosen, _lags, x="lag [optimizer steps]", y="drift [nat]"),
        "drift": _drift,
        "cosines": lambda chosen: _small_multiples(chosen, cosine, x="η / boundary rate of its S", y="cosine"),
        "holdout": lambda chosen: _small_multiples(chosen, held_out, x="predicted collapse step", y="measured"),
    }
    for name, draw in draws.items():
        with mpl.rc_context():
            mpl.rcdefaults()
            mpl.rc("font", size=9)
            figure = draw(settings)
            figure.suptitle(FIGURES[name], x=0.01, ha="left", fontweight="bold")
            figure.savefig(folder / f"{name}.png", dpi=_DPI, facecolor=style.PAPER, metadata={"Software": None})


def _new_figure(width: float, height: float) -> "Figure":
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def _small_multiples(
    settings: Sequence[Setting], draw: Callable[[Setting, "Axes"], dict[str, Any]], *, x: str, y: str
) -> "Figure":
    """One panel a sweep, and one legend for all below them."""
    num_rows = -(-len(settings) // _PER_ROW)
    figure = _new_figure(3.3 * _PER_ROW, 2.6 * num_rows + 0.9)
    panels = figure.subplots(num_rows, _PER_ROW, squeeze=False).ravel()
    handles: dict[str, Any] = {}
    for place, (setting, axes) in enumerate(zip(settings, panels, strict=False)):
        handles |= draw(setting, axes)
        lowest = place + _PER_ROW >= len(settings)
        style.dress(axes, title=setting.name, x=x if lowest else "", y="")
        style.readable_logs(axes)
    for axes in panels[len(settings) :]:
        axes.set_axis_off()
    words = sorted(handles, key=_rank)  # sorted keeps the order of what is no S
    figure.legend([handles[word] for word in words], words, loc="outside lower left", ncols=_LEGEND, frameon=False)
    figure.supylabel(y)
    return figure


def _rank(word: str) -> float:
    """S of a legend entry; what is no S comes last."""
    return float(word.removeprefix("S = ")) if word.startswith("S = ") else np.inf


def _exponents(settings: Sequence[Setting]) -> "Figure":
    figure = _new_figure(13.2, 1.2 + 0.42 * len(settings))
    left, right = figure.subplots(1, 2, sharey=True)
    _forest(
        left,
        {
            "measured, degraded unstable": [one.findings.calibration.boundary_exponent for one in settings],
            "measured, degraded stable": [
                one.findings.calibration.boundary_exponent_collapsed_only for one in settings
            ],
            "predicted by the drift": [one.findings.growth.predicted_exponent for one in settings],
        },
    )
    _forest(
        right,
        {
            "measured": [one.findings.calibration.budget_exponent for one in settings],
            "without degraded runs": [one.findings.calibration.budget_exponent_without_degraded for one in settings],
        },
    )
    for value, words in ((-1.0, "law one"), (-0.5, "no coherence")):
        left.axvline(value, color=style.INK, linewidth=1.0, linestyle="--" if value == -1 else ":")
        left.text(value, -0.75, words, ha="center", fontsize="small")
    right.axvline(-1.0, color=style.INK, linewidth=1.0, linestyle="--")
    right.text(-1.0, -0.75, "law two", ha="center", fontsize="small")
    left.set_yticks(range(len(settings)), [one.name for one in settings])
    left.set_ylim(len(settings) - 0.4, -1.0)
    left.set_xlim(-2.2, 0.4)
    right.set_xlim(-3.1, 0.1)
    style.dress(left, title="Boundary: slope of log η_max on log S", x="", y="")
    style.dress(right, title="Collapse: slope of log T on log η", x="", y="")
    for axes in (left, right):
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=3, frameon=False)
    return figure


def _forest(axes: "Axes", rows: dict[str, list[Estimate]]) -> None:
    """Intervals of each sweep, the readings one below the other; pale where not identified."""
    for place, (label, estimates) in enumerate(rows.items()):
        for row, one in enumerate(estimates):
            if one.estimate is None or one.low is None or one.high is None:
                continue
            y, alpha = row + 0.22 * (place - 0.5 * (len(rows) - 1)), 1.0 if one.identified else 0.3
            colour = _LAW_COLOURS[place]
            axes.plot([one.low, one.high], [y, y], color=colour, alpha=alpha, linewidth=2)
            axes.plot([one.estimate], [y], color=colour, alpha=alpha, marker="os^"[place], markersize=5)
        axes.plot([], [], color=_LAW_COLOURS[place], marker="os^"[place], label=label)


def _phase(setting: Setting, axes: "Axes") -> dict[str, Any]:
    """One mark a run, seeds of a cell side by side, and the fitted boundary with its band."""
    runs = setting.findings.runs
    cells = runs.groupby(["sync_interval", "learning_rate"])["run"]
    rank, size = cells.cumcount(), cells.transform("size")
    x = runs["sync_interval"] * _SEED_SPREAD ** (rank - 0.5 * (size - 1))
    handles: dict[str, Any] = {}
    for outcome in Outcome:
        here = runs["outcome"] == outcome.word
        look: dict[str, Any] = {
            "color": style.OUTCOME_COLOURS[outcome],
            "marker": style.OUTCOME_MARKERS[outcome],
            "linewidths": 0,
        }
        if here.any():
            axes.scatter(x[here], runs.loc[here, "learning_rate"], s=9, **look)
            handles[outcome.word] = axes.scatter([], [], s=30, **look)
    curve = setting.boundary
    if curve is not None and curve.low is not None and curve.high is not None:
        (handles["boundary, 90 % band"],) = axes.plot(curve.x, curve.middle, color=style.INK, linewidth=1.4)
        axes.fill_between(curve.x, curve.low, curve.high, color=style.INK, alpha=0.15, linewidth=0)
    axes.set(xscale="log", yscale="log")
    style.plain_ticks(axes, sorted(runs["sync_interval"].unique()))
    return handles


def _budget(setting: Setting, axes: "Axes", *, styles: Styles) -> dict[str, Any]:
    runs, calibration = setting.findings.runs, setting.findings.calibration
    collapsed = runs[(runs["outcome"] == Outcome.COLLAPSED.word) & (runs["sync_interval"] >= 2)]
    ceiling = calibration.learning_rate_ceiling.estimate
    handles: dict[str, Any] = {}
    for S, (colour, marker) in styles.items():
        here = collapsed[collapsed["sync_interval"] == S]
        if here.empty:
            continue
        eta = here["learning_rate"].to_numpy()
        faint = eta >= (np.inf if ceiling is None else ceiling)
        budget = eta * here["collapse_step"].to_numpy()
        axes.scatter(S * eta[faint], budget[faint], color=colour, marker=marker, s=14, alpha=0.25, linewidths=0)
        axes.scatter(S * eta[~faint], budget[~faint], color=colour, marker=marker, s=18, linewidths=0)
        handles[f"S = {S:g}"] = axes.scatter([], [], color=colour, marker=marker, s=18)
    product, known = calibration.critical_product.estimate, calibration.budget.estimate
    if product is not None:
        handles["threshold C"] = axes.axvline(product, color=style.INK, linewidth=1, linestyle="--")
    if known is not None:
        handles["budget B (faint: above the ceiling)"] = axes.axhline(
            known, color=style.INK, linewidth=1, linestyle=":"
        )
    axes.set(xscale="log", yscale="log")
    return handles


def _horizon(setting: Setting, axes: "Axes") -> dict[str, Any]:
    handles: dict[str, Any] = {}
    cuts = setting.findings.cuts
    for cut, colour in zip(cuts, style.ramp(len(cuts)), strict=False):
        if not cut.max_rates:
            continue
        S = [interval for interval, _ in cut.max_rates]
        ends = np.array([[one.estimate, one.low, one.high] for _, one in cut.max_rates], dtype=np.float64)
        (line,) = axes.plot(S, ends[:, 0], color=colour, marker="o", markersize=3.5, linewidth=1.4)
        axes.fill_between(S, ends[:, 1], ends[:, 2], color=colour, alpha=0.15, linewidth=0)
        handles[f"first {cut.horizon / setting.experiment.max_steps:.0%} of the steps"] = line
    axes.set(xscale="log", yscale="log")
    style.plain_ticks(axes, [S for S in setting.experiment.sync_interval if S >= 2])
    return handles


def _drift(settings: Sequence[Setting]) -> "Figure":
    figure = _new_figure(13.2, 5.4)
    axes = figure.subplots()
    markers = "os^DvPXh<>*"
    for place, (setting, colour) in enumerate(zip(settings, style.ramp(len(settings)), strict=True)):
        points = setting.findings.growth.on_boundary
        if not points:
            continue
        S = np.array([point.sync_interval for point in points]) * 1.012 ** (place - 0.5 * len(settings))
        ends = np.array([[p.drift.estimate, p.drift.low, p.drift.high] for p in points], dtype=np.float64)
        look: dict[str, Any] = {"color": colour, "marker": markers[place % len(markers)], "markersize": 5}
        axes.plot(S, ends[:, 0], linewidth=1.3, label=setting.name, **look)
        axes.vlines(S, ends[:, 1], ends[:, 2], color=colour, linewidth=1.2, alpha=0.6)
    axes.set(xscale="log", yscale="log")
    axes.yaxis.set_major_formatter("{x:g}")
    style.plain_ticks(axes, sorted({S for one in settings for S in one.experiment.sync_interval if S >= 2}))
    style.dress(axes, title="", x="S [optimizer steps]", y="drift at the end of a cycle [nat]")
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False)
    return figure


def _lags(setting: Setting, axes: "Axes") -> dict[str, Any]:
    """Median drift over seeds at the largest S, one line per rate from the smallest to the boundary."""
    S = float(setting.experiment.sync_interval[-1])
    drift = setting.findings.measures["drift"].sel(sync_interval=S)
    edges = {one.sync_interval: one.smallest_unstable for one in setting.findings.calibration.brackets}
    edge = edges.get(S)
    rates = [rate for rate in drift["learning_rate"].values if edge is None or rate <= edge]
    lag = drift["lag"].values
    handles: dict[str, Any] = {}
    for rate, colour in zip(rates, style.ramp(len(rates)), strict=True):
        curves = drift.sel(learning_rate=rate).values
        known = np.isfinite(curves).any(axis=0) & (lag > 0)
        axes.plot(lag[known], np.nanmedian(curves[:, known], axis=0), color=colour, linewidth=1.2)
    for words, place in (("smallest η", 0), ("smallest η with an unstable run", len(rates) - 1)):
        (handles[words],) = axes.plot([], [], color=style.ramp(len(rates))[place])
    start = lag[lag > 0][0]
    for power, dashes in ((1.0, "--"), (0.5, ":")):
        level = float(np.nanmin(drift.values[..., lag > 0])) if np.isfinite(drift.values).any() else 1.0
        label = "∝ lag" if power == 1 else "∝ √lag"
        (handles[label],) = axes.plot(lag[lag > 0], level * (lag[lag > 0] / start) ** power, linestyle=dashes)
        handles[label].set(color=style.INK, linewidth=1)
    axes.set(xscale="log", yscale="log")
    return handles


def _cosine(setting: Setting, axes: "Axes", *, styles: Styles) -> dict[str, Any]:
    measures, handles = setting.findings.measures, {}
    rates = {p.sync_interval: p.learning_rate.estimate for p in setting.findings.growth.on_boundary}
    for S, (colour, marker) in styles.items():
        rate = rates.get(S)
        if rate is None:
            continue
        cosine = measures["cycle_cosine"].sel(sync_interval=S).values
        counts = np.isfinite(cosine).sum(axis=1)
        mean = np.where(counts > 0, np.nansum(cosine, axis=1) / np.maximum(counts, 1), np.nan)
        x = measures["learning_rate"].values / rate
        (handles[f"S = {S:g}"],) = axes.plot(x, mean, color=colour, marker=marker, markersize=3.5, linewidth=1.1)
    axes.axvline(1.0, color=style.INK, linewidth=1, linestyle="--")
    axes.axhline(0.0, color=style.INK, linewidth=0.8, linestyle=":")
    axes.set_xscale("log")
    return handles


def _holdout(setting: Setting, axes: "Axes", *, styles: Styles) -> dict[str, Any]:
    handles: dict[str, Any] = {}
    if setting.held_out is None:
        return handles
    times = setting.held_out.collapse_times
    for S, (colour, marker) in styles.items():
        here = times[times["sync_interval"] == S]
        if here.empty:
            continue
        look: dict[str, Any] = {"color": colour, "marker": marker, "s": 16, "linewidths": 0}
        axes.scatter(here["predicted"], here["measured"], **look)
        handles[f"S = {S:g}"] = axes.scatter([], [], **look)
    horizon = float(setting.experiment.max_steps)
    (handles["equal"],) = axes.plot([1, horizon], [1, horizon], color=style.INK, linewidth=1, linestyle="--")
    axes.set(xscale="log", yscale="log", xlim=(5, 20 * horizon), ylim=(5, 1.3 * horizon))
    return handles

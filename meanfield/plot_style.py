"""How the figures look: one colour and one marker per outcome and per S, told apart without colour too."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from meanfield.outcomes import Outcome

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

INK = "#22262b"
"""Text, axes and reference lines; a page may replace it by its own text colour."""
PAPER = "#fffffe"
"""Background; a page may replace it by its own."""
MODEL_COLOUR = "#8a63c9"
FIT_COLOUR = "#1f8a70"
OUTCOME_COLOURS = {
    Outcome.STABLE: "#3a86c8",
    Outcome.DEGRADED: "#e69f00",
    Outcome.COLLAPSED: "#d5482a",
    Outcome.FAILED: "#b0679b",
    Outcome.UNKNOWN: "#8a8f98",
}
OUTCOME_MARKERS = {
    Outcome.STABLE: "o",
    Outcome.DEGRADED: "^",
    Outcome.COLLAPSED: "X",
    Outcome.FAILED: "s",
    Outcome.UNKNOWN: "d",
}
_RAMP = ("#3f6fd8", "#8e5fc4", "#d3527f", "#e5793a", "#c9a21a")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "h", "<", ">")


def ramp(count: int) -> list[str]:
    """Colours for so many ordered values, from cold to warm, all of middle lightness."""
    from matplotlib.colors import LinearSegmentedColormap, to_hex

    colours = LinearSegmentedColormap.from_list("ramp", list(_RAMP))
    return [to_hex(colours(place)) for place in np.linspace(0.0, 1.0, max(count, 2))[:count]]


def interval_styles(sync_intervals: Iterable[float]) -> dict[float, tuple[str, str]]:
    """Colour and marker of each S, rising in S."""
    intervals = sorted({float(sync_interval) for sync_interval in sync_intervals})
    colours = ramp(len(intervals))
    return {S: (colours[i], _MARKERS[i % len(_MARKERS)]) for i, S in enumerate(intervals)}


def outcome_handle(outcome: Outcome) -> Line2D:
    """Legend entry of an outcome."""
    from matplotlib.lines import Line2D

    colour, marker = OUTCOME_COLOURS[outcome], OUTCOME_MARKERS[outcome]
    return Line2D([], [], linestyle="none", marker=marker, color=colour, markersize=7, label=outcome.word)


def interval_handle(sync_interval: float, style: tuple[str, str]) -> Line2D:
    """Legend entry of an S."""
    from matplotlib.lines import Line2D

    colour, marker = style
    return Line2D([], [], linestyle="none", marker=marker, color=colour, markersize=7, label=f"S = {sync_interval:g}")


def legend_outside(axes: Axes, handles: Sequence[Artist], *, title: str | None = None) -> None:
    """Put the legend to the right of the data, never over it.

    A figure without a layout engine gets the constrained one, which makes room for the legend; another is kept.
    """
    figure = axes.figure.figure  # a subfigure has its figure's engine
    if figure.get_layout_engine() is None:
        figure.set_layout_engine("constrained")
    axes.legend(
        handles=list(handles),
        title=title,
        loc="upper left",
        bbox_to_anchor=(1.02, 1.0),
        borderaxespad=0.0,
        frameon=False,
        alignment="left",
    )


def dress(axes: Axes, *, title: str, x: str, y: str) -> None:
    """Title, axis labels with units, a light grid, no box."""
    axes.set_title(title, loc="left", fontweight="bold")
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(visible=True, which="major", color="#8a8f98", alpha=0.25, linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def readable_logs(axes: Axes) -> None:
    """Logarithmic axes with marks that do not overlap: plain 1, 2, 5 over less than two decades, else decades only."""
    from matplotlib.ticker import FixedLocator, LogLocator, NullFormatter

    for axis, scale, (low, high) in (
        (axes.xaxis, axes.get_xscale(), axes.get_xlim()),
        (axes.yaxis, axes.get_yscale(), axes.get_ylim()),
    ):
        if scale != "log" or isinstance(axis.get_major_locator(), FixedLocator):
            continue
        axis.set_minor_formatter(NullFormatter())
        if high < 100.0 * low:
            axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            axis.set_major_formatter("{x:g}")


def plain_ticks(axes: Axes, values: Iterable[float]) -> None:
    """Mark exactly these values on the x axis, written as plain numbers."""
    ticks = list(values)
    axes.set_xticks(ticks, [f"{value:g}" for value in ticks])
    axes.xaxis.minorticks_off()

"""The two pictures of the explorer: outcomes over two quantities, and the path of one run. They only draw."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from meanfield import plot_style as style
from meanfield.explore.compute import FAILED, FIRST_EXIT, STABLE, Limit, Picture, edges
from meanfield.explore.presets import label_of, letter_of, model_of, preset_of
from meanfield.explore.state import ExplorerState
from meanfield.explore.threshold import has_boundary
from meanfield.hybrid import ModelRun
from meanfield.outcomes import Outcome
from theory.models.model import WithinExit

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

    from meanfield.grids import Array

SMALL = 8.0
"""Size of small text [point]."""
HEADROOM = 1.15
"""Top of the scale over the largest value that it shows."""
_LIGHTER = 0.45
"""How much lighter than the exit before it an exit is drawn."""


def exit_colours(count: int) -> list[str]:
    """Colours of the exits of a model: that of a collapse, each next one lighter."""
    from matplotlib.colors import to_hex, to_rgb

    full, paper = (np.array(to_rgb(item)) for item in (style.OUTCOME_COLOURS[Outcome.COLLAPSED], style.PAPER))
    return [to_hex(paper + (full - paper) * (1.0 - _LIGHTER) ** index) for index in range(count)]


class PhasePanel:
    """Outcomes over the two axes of a state, the boundary of small drift, the chosen cell, and runs of one's own.

    Parameters
    ----------
    axes : Axes
        Empty.
    state : ExplorerState
    runs : DataFrame or None
        From `meanfield.runs.read_runs`; drawn where the axes are S and eta.
    picture : Picture
    """

    def __init__(self, axes: Axes, state: ExplorerState, runs: pd.DataFrame | None, picture: Picture) -> None:
        from matplotlib.colors import ListedColormap
        from matplotlib.patches import Patch

        self.axes = axes
        exits = model_of(state.model).exits
        outcomes = (Outcome.STABLE, Outcome.FAILED)
        colours = [style.OUTCOME_COLOURS[outcome] for outcome in outcomes] + exit_colours(len(exits))
        names = ["stable", "failed"] + [f"collapsed, {item.name}" for item in exits]
        axes.set(xscale="log", yscale="log")
        self.mesh = axes.pcolormesh(
            edges(picture.x),
            edges(picture.y),
            picture.kind,
            cmap=ListedColormap(colours),
            vmin=-0.5,
            vmax=len(colours) - 0.5,
            zorder=1,
        )
        (self.line,) = axes.plot([], [], color=style.INK, linewidth=2.0, zorder=2, label="boundary of small drift")
        (self.mark,) = axes.plot([], [], "o", color=style.PAPER, markeredgecolor=style.INK, markersize=9, zorder=4)
        self.mark.set(markeredgewidth=2.0, label="chosen run", linestyle="none")
        style.dress(axes, title="", x=label_of(state.x.name), y=label_of(state.y.name))
        axes.set_title("Outcome of every run", loc="left", fontweight="bold", y=1.16)
        marks = self._draw_runs(state, runs)
        axes.set(xlim=edges(picture.x)[[0, -1]], ylim=edges(picture.y)[[0, -1]])
        style.readable_logs(axes)
        threshold = [self.line] if has_boundary(model_of(state.model)) else []
        kinds = [Patch(color=colour, label=name) for colour, name in zip(colours, names, strict=True)]
        axes.legend(
            handles=[*kinds, *threshold, self.mark, *marks],
            loc="lower left",
            bbox_to_anchor=(0.0, 1.0),
            ncols=5,
            frameon=False,
            fontsize=SMALL,
            borderaxespad=0.2,
            handlelength=1.4,
            columnspacing=0.9,
        )
        spines = [axes.spines[side] for side in ("left", "bottom")]
        self.moving: list[Artist] = [self.mesh, self.line, *marks, self.mark, *spines]
        """What another state changes, and what lies over it, in the order in which it is drawn."""

    def _draw_runs(self, state: ExplorerState, runs: pd.DataFrame | None) -> list[Artist]:
        """Draw runs of one's own, if the axes are theirs; returns their legend entries."""
        if runs is None or {state.x.name, state.y.name} != {"sync_interval", "learning_rate"}:
            return []
        handles: list[Artist] = []
        for outcome in Outcome:
            here = runs[runs["outcome"] == outcome.word]
            if here.empty:
                continue
            marks = self.axes.scatter(
                here[state.x.name],
                here[state.y.name],
                s=38,
                color=style.OUTCOME_COLOURS[outcome],
                marker=style.OUTCOME_MARKERS[outcome],
                edgecolors=style.PAPER,
                zorder=3,
            )
            marks.set_label(f"your run: {outcome.word}")
            handles.append(marks)
        return handles

    def show(self, state: ExplorerState, picture: Picture, boundary: tuple[Array, Array] | None) -> None:
        """Take another picture over the same axes; the next drawing shows it."""
        self.mesh.set_array(picture.kind)
        self.line.set_data(*(boundary or ([], [])))
        self.mark.set_data(*([[value] for value in state.selected] if state.selected else ([], [])))


class RunPanel:
    """States of one run over its optimizer steps, with the limits of the exits and the exit that fired.

    Parameters
    ----------
    axes : Axes
        Empty.
    state : ExplorerState
    """

    def __init__(self, axes: Axes, state: ExplorerState) -> None:
        self.axes = axes
        self._apart = preset_of(state.model).apart
        self.other = axes.twinx() if self._apart else None
        names = [str(symbol) for symbol in model_of(state.model).states]
        self.lines = {}
        for name, colour in zip(names, style.ramp(len(names)), strict=True):
            where = self.other if name in self._apart and self.other is not None else axes
            (self.lines[name],) = where.plot([], [], color=colour, linewidth=1.5, label=label_of(name))
        self.levels = [
            axes.axhline(np.nan, color=colour, linestyle="--", linewidth=1.3)
            for colour in exit_colours(len(model_of(state.model).exits))
        ]
        (self.mark,) = axes.plot([], [], style.OUTCOME_MARKERS[Outcome.COLLAPSED], markersize=10, zorder=4)
        self.mark.set(color=style.OUTCOME_COLOURS[Outcome.COLLAPSED], markeredgecolor=style.PAPER, clip_on=False)
        style.dress(axes, title="", x="optimizer step", y="distance\n[parameter distance]")
        axes.yaxis.label.set_fontsize(SMALL + 1)
        if self.other is not None:
            (name,) = self._apart
            self.other.set_ylabel(label_of(name).replace(" [", "\n["), color=self.lines[name].get_color())
            self.other.yaxis.label.set_fontsize(SMALL + 1)
            self.other.spines["top"].set_visible(False)
        self._legend(state)
        self.moving: list[Artist] = [axes, *([] if self.other is None else [self.other])]
        """What another state changes, in the order in which it is drawn."""

    def show(self, state: ExplorerState, run: ModelRun | None, limits: tuple[Limit, ...]) -> None:
        """Draw another run, or say that none is chosen."""
        if run is None or state.selected is None:
            for line in (*self.lines.values(), self.mark):
                line.set_data([], [])
            for level in self.levels:
                level.set_ydata([np.nan, np.nan])
            self.axes.set_title("Click a cell to see its run.", loc="left", fontsize=SMALL + 2)
            return
        steps = run.cumulative_learning_rate / state.run_values(*state.selected)["learning_rate"]
        for name, line in self.lines.items():
            line.set_data(steps, run.states[name])
        for level, item in zip(self.levels, limits, strict=True):
            level.set_ydata([item.limit, item.limit])
        self._mark_exit(run, limits, steps[-1])
        self._scale(run, limits, float(max(steps[-1], 1.0)))
        self.axes.set_title(sentence(state, run), loc="left", fontsize=SMALL + 2)

    def _mark_exit(self, run: ModelRun, limits: tuple[Limit, ...], step: float) -> None:
        fired = [item for item in limits if item.name == run.exit]
        place = [(step, run.states[name][-1]) for item in fired for name in item.states[:1]]
        self.mark.set_data([x for x, _ in place], [y for _, y in place])

    def _scale(self, run: ModelRun, limits: tuple[Limit, ...], end: float) -> None:
        """Scales from the run, and from the limits that it comes near."""
        self.axes.set_xlim(0.0, 1.02 * end)
        for axes in (self.axes, self.other):
            if axes is None:
                continue
            shown = [values for name, values in run.states.items() if self.lines[name].axes is axes]
            low, high = _ends(shown)
            if axes is self.axes:
                near = [item.limit for item in limits if item.limit <= 3.0 * max(high, -low) or item.name == run.exit]
                high = max([high, *near]) if low >= 0.0 else high
            axes.set_ylim(low * HEADROOM, high * HEADROOM)

    def _legend(self, state: ExplorerState) -> None:
        """Put the legend below, as a part of the figure: it stays the same."""
        for level, item in zip(self.levels, model_of(state.model).exits, strict=True):
            level.set_label(f"limit of exit {item.name}" + ("" if isinstance(item, WithinExit) else ", seen at a sync"))
        self.axes.figure.figure.legend(
            handles=[*self.lines.values(), *self.levels],
            loc="upper left",
            bbox_to_anchor=(0.0, -0.34),
            bbox_transform=self.axes.transAxes,
            ncols=3,
            frameon=False,
            fontsize=SMALL,
            borderaxespad=0.0,
        )


def _ends(values: list[Array]) -> tuple[float, float]:
    """Smallest and largest finite value, zero among them, and never the same."""
    finite = np.concatenate([[0.0], *(item[np.isfinite(item)] for item in values)])
    low, high = float(finite.min()), float(finite.max())
    return (low, high) if high > low else (low, low + 1.0)


def place_words(state: ExplorerState, x: float, y: float) -> str:
    """Say which cell it is, as "S = 16, η = 0.003".

    >>> place_words(ExplorerState.of(), 16.0, 0.003)
    'S = 16, η = 0.003'
    """
    return ", ".join(
        f"{letter_of(axis.name)} = {value:.4g}" for axis, value in zip((state.x, state.y), (x, y), strict=True)
    )


def sentence(state: ExplorerState, run: ModelRun) -> str:
    """Say what became of the chosen run."""
    x, y = state.selected or (np.nan, np.nan)
    kind = FAILED if run.failed else STABLE
    return _words(state, (x, y), kind, run.exit, run.collapse_step)


def cell_sentence(state: ExplorerState, picture: Picture, x: float, y: float) -> str:
    """Say what becomes of the run of the cell around a place of the picture."""
    column = int(np.argmin(np.abs(np.log(picture.x / x))))
    row = int(np.argmin(np.abs(np.log(picture.y / y))))
    kind = int(picture.kind[row, column])
    name = model_of(state.model).exits[kind - FIRST_EXIT].name if kind >= FIRST_EXIT else ""
    place = (float(picture.x[column]), float(picture.y[row]))
    return _words(state, place, kind, name, float(picture.collapse_step[row, column]))


def _words(state: ExplorerState, place: tuple[float, float], kind: int, name: str, step: float) -> str:
    if name:
        what = f"{Outcome.COLLAPSED.sentence} Exit {name} at step {step:.0f}."
    else:
        what = (Outcome.FAILED if kind == FAILED else Outcome.STABLE).sentence
    return f"{place_words(state, *place)}: {what}"

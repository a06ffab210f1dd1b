"""The window of the explorer: events -> states -> pictures. `explore()` opens one, in a notebook too."""

from __future__ import annotations

import sys
from collections.abc import Callable
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from meanfield.explore import compute
from meanfield.explore.controls import Controls
from meanfield.explore.history import History
from meanfield.explore.panels import SMALL, PhasePanel, RunPanel, cell_sentence
from meanfield.explore.path import chosen_run
from meanfield.explore.presets import DEFAULT
from meanfield.explore.state import Axis, ExplorerState
from meanfield.explore.threshold import boundary
from theory.errors import InputError

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.artist import Artist
    from matplotlib.backend_bases import DrawEvent, MouseEvent
    from matplotlib.figure import Figure
    from matplotlib.transforms import Bbox

SIZE = (13.5, 8.0)
"""Width and height of the figure [inch]."""
LINK_LENGTH = 200
"""Characters of a line of the link."""
MARGIN = 1.5
"""Factor by which the axes reach beyond one's own runs."""
_PHASE = (0.07, 0.44, 0.486, 0.42)
_PATH = (0.07, 0.16, 0.486, 0.15)
_STATUS = (0.07, 0.366)
"""Places in the figure: the two pictures (left, bottom, width, height), and where the line between them begins."""
_HINT = "Move over the picture to read a cell, click to choose it."


class Explorer:
    """A phase diagram that answers to widgets.

    Parameters
    ----------
    figure : Figure
        Empty; it is drawn on a canvas of any backend.
    state : ExplorerState
    runs : DataFrame, optional
        From `meanfield.runs.read_runs`.

    Attributes
    ----------
    history : History
        Its present is what is shown, except while a slider is held.
    state : ExplorerState
        What is shown.
    picture : Picture
    """

    def __init__(self, figure: Figure, state: ExplorerState, runs: pd.DataFrame | None = None) -> None:
        self.figure, self.history, self.state, self.runs = figure, History(state), state, runs
        self.picture, self._coarse = compute.picture(state), False
        self._build()
        self._take()
        figure.canvas.mpl_connect("button_press_event", self._pressed)
        figure.canvas.mpl_connect("button_release_event", self._released)
        figure.canvas.mpl_connect("motion_notify_event", self._moved)
        figure.canvas.mpl_connect("draw_event", lambda event: self._drawn(event))  # a function keeps the explorer alive

    @property
    def link(self) -> str:
        """The whole state as a query string."""
        return self.state.to_link()

    def commit(self, state: ExplorerState) -> None:
        """Show a state in full and make it a step that can be undone; what the engine refuses is said and not shown."""
        if self._show(state, compute.picture):
            self.history = self.history.push(state)

    def preview(self, state: ExplorerState) -> None:
        """Show a state on a coarse grid while a slider is held; it is no step."""
        self._show(state, compute.coarse_picture)

    def undo(self) -> None:
        """Go one step back."""
        self._go(self.history.undo())

    def redo(self) -> None:
        """Go one step on."""
        self._go(self.history.redo())

    def print_link(self) -> None:
        """Print the link on the terminal, and in the window until the state changes."""
        self._link_text.set_text("\n".join(wrap(self.link, LINK_LENGTH, break_on_hyphens=False)))
        self._refresh()
        sys.stdout.write(f"{self.link}\n")
        sys.stdout.flush()

    def _go(self, history: History) -> None:
        if history is not self.history and self._show(history.present, compute.picture):
            self.history = history

    def _show(self, state: ExplorerState, compute_picture: Callable[[ExplorerState], compute.Picture]) -> bool:
        """Compute and draw a state; returns whether the engine took it."""
        try:
            picture = self.picture if self._same_picture(state) else compute_picture(state)
        except InputError as error:
            self.controls.show(self.state)
            self._say(str(error))
            return False
        before, self.state, self.picture = self.state, state, picture
        self._coarse = compute_picture is compute.coarse_picture
        if (before.model, before.x, before.y, before.cells) != (state.model, state.x, state.y, state.cells):
            self.controls.disconnect()
            self._build()
            self._take()
            self.figure.canvas.draw_idle()
        else:
            self._take()
            self._refresh()
        return True

    def _same_picture(self, state: ExplorerState) -> bool:
        """Whether only the chosen cell differs, and the picture in the window is full."""
        return not self._coarse and state.unselect() == self.state.unselect()

    def _build(self) -> None:
        """Make every artist and widget of the model and the axes of the state."""
        self._moving: list[Artist] = []
        self.figure.clear()
        self.phase = PhasePanel(self.figure.add_axes(_PHASE), self.state, self.runs, self.picture)
        self.path = RunPanel(self.figure.add_axes(_PATH), self.state)
        self._status = self.phase.axes.text(*_STATUS, _HINT, transform=self.figure.transFigure, va="center")
        self._status.set(fontsize=SMALL + 1, clip_on=False)
        self._link_text = self.phase.axes.text(0.01, 0.012, "", transform=self.figure.transFigure, clip_on=False)
        self._link_text.set(fontsize=6.5, family="monospace", color="#5a616b")
        self.controls = self._make_controls()
        self._let_move()

    def _let_move(self) -> None:
        """Take what states change out of the drawing of the figure, where the backend can restore what is behind it."""
        self._background: Any = None
        self._axes = [*self.path.moving, *self.controls.moving]
        self._moving = [*self.phase.moving, self._status, self._link_text, *self._axes]
        for artist in self._moving:
            artist.set_animated(self.figure.canvas.supports_blit)

    def _make_controls(self) -> Controls:
        return Controls(
            self.figure,
            self.state,
            on_value=self._value_changed,
            on_axis=lambda place, name: self.commit(self.state.with_axis(place, name)),
            on_model=lambda name: self.commit(self.state.with_model(name)),
            on_button={"undo": self.undo, "redo": self.redo, "link": self.print_link},
        )

    def _take(self) -> None:
        """Give the state to every part of the window; nothing is drawn."""
        self.phase.show(self.state, self.picture, boundary(self.state))
        self.path.show(self.state, chosen_run(self.state), compute.limits(self.state))
        self.controls.show(self.state)
        self._link_text.set_text("")

    def _refresh(self) -> None:
        """Draw what has changed, over what is kept of the rest where the backend can; else all."""
        canvas: Any = self.figure.canvas
        if self._background is None:
            canvas.draw_idle()
            return
        canvas.restore_region(self._background)
        for artist in self._moving:
            artist.draw(canvas.get_renderer())
        canvas.blit(self.figure.bbox)

    def _value_changed(self, name: str, value: float) -> None:
        state = self.state.with_value(name, value)
        if self.controls.held:
            self.preview(state)
        else:
            self.commit(state)

    def _pressed(self, event: MouseEvent) -> None:
        """Choose the cell under the mouse, unless a tool of the toolbar has the mouse."""
        place = self._place(event)
        if place is not None and not self.figure.canvas.widgetlock.locked() and event.button == 1:
            self.commit(self.state.select(*place))

    def _released(self, _event: MouseEvent) -> None:
        """Show in full what a slider was left at."""
        if self._coarse:
            self.commit(self.state)

    def _moved(self, event: MouseEvent) -> None:
        place = self._place(event)
        if place is not None and not self.controls.held:
            self._say(cell_sentence(self.state, self.picture, *place))

    def _place(self, event: MouseEvent) -> tuple[float, float] | None:
        """Values of both axes under the mouse; None where it is not over the picture."""
        if event.inaxes is not self.phase.axes or event.xdata is None or event.ydata is None:
            return None
        return (event.xdata, event.ydata)

    def _say(self, words: str) -> None:
        """Write a line below the picture, without drawing the rest again where the backend can."""
        if words == self._status.get_text():
            return
        self._status.set_text(words)
        canvas: Any = self.figure.canvas
        if self._background is None:
            canvas.draw_idle()
            return
        canvas.restore_region(self._behind_status)
        self._status.draw(canvas.get_renderer())
        canvas.blit(self._strip())

    def _strip(self) -> Bbox:
        """The part of the figure that the line below the picture may fill [pixel]."""
        from matplotlib.transforms import Bbox

        x, y = _STATUS
        return Bbox.from_extents(x, y - 0.013, _PHASE[0] + _PHASE[2], y + 0.013).transformed(self.figure.transFigure)

    def _drawn(self, event: DrawEvent) -> None:
        """Keep what is drawn without that which moves, then draw that too."""
        canvas: Any = self.figure.canvas
        if not (self._moving and canvas.supports_blit):
            return
        if canvas.is_saving():  # then the picture draws what moves itself, but for whole axes
            for axes in self._axes:
                axes.draw(event.renderer)
            return
        self._background = canvas.copy_from_bbox(self.figure.bbox)
        self._behind_status = canvas.copy_from_bbox(self._strip())
        for artist in self._moving:
            artist.draw(event.renderer)


def first_state(runs: pd.DataFrame | None, model: str = DEFAULT) -> ExplorerState:
    """Return the state that a model begins with, its axes wide enough for all finite sync intervals of the runs."""
    state = ExplorerState.of(model)
    if runs is None:
        return state
    S, eta = (runs[name][np.isfinite(runs[name])] for name in ("sync_interval", "learning_rate"))
    x, y = state.x, state.y
    if not S.empty:
        x = Axis(x.name, min(x.low, float(np.floor(S.min()))), max(x.high, float(np.ceil(S.max() * MARGIN))))
    y = Axis(y.name, min(y.low, float(eta.min()) / MARGIN), max(y.high, float(eta.max()) * MARGIN))
    return state.with_axes(x, y)


def explore(state: ExplorerState | None = None, runs: pd.DataFrame | None = None) -> Explorer:
    """Open the explorer in a window, or in the output of a notebook cell with `%matplotlib widget`.

    Parameters
    ----------
    state : ExplorerState, optional
        Default: persistent drift over S and eta.
    runs : DataFrame, optional
        From `meanfield.runs.read_runs`.

    Returns
    -------
    Explorer
        It holds the figure and its widgets, and lives as long as the figure.
    """
    import matplotlib.pyplot as plt

    return Explorer(plt.figure(figsize=SIZE), first_state(runs) if state is None else state, runs)

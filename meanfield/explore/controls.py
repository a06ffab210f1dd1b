"""The widgets beside the pictures: model, a slider for each quantity, which two are the axes, buttons."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from meanfield import plot_style as style
from meanfield.explore.panels import SMALL
from meanfield.explore.presets import PRESETS, label_of, range_of
from meanfield.explore.state import ExplorerState

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.widgets import AxesWidget, Button, RadioButtons, Slider

ROW = 0.045
"""Height of a row [share of the figure]."""
_TOP = 0.655
_TRACK = (0.815, 0.085)
_COLUMNS = {"x": 0.948, "y": 0.970}
_BUTTONS = {"undo": "Undo", "redo": "Redo", "link": "Print link"}


class Controls:
    """The widgets of a state; each reports to a function that it is given.

    Parameters
    ----------
    figure : Figure
    state : ExplorerState
    on_value : function of a name and a value
        Called while a slider moves.
    on_axis : function of "x" or "y" and a name
    on_model : function of the name of a model
    on_button : mapping from "undo", "redo" and "link" to a function without arguments
    """

    def __init__(
        self,
        figure: Figure,
        state: ExplorerState,
        *,
        on_value: Callable[[str, float], None],
        on_axis: Callable[[str, str], None],
        on_model: Callable[[str], None],
        on_button: Mapping[str, Callable[[], None]],
    ) -> None:
        self._figure, self._on_value = figure, on_value
        self.sliders: dict[str, Slider] = {}
        self.model = self._radio((0.60, 0.755, 0.19, 0.185), tuple(PRESETS), tuple(PRESETS).index(state.model))
        self.model.ax.set_title("Model", loc="left", fontsize=SMALL + 2, fontweight="bold")
        self.model.on_clicked(lambda name: on_model(str(name)))
        self.buttons = {
            name: self._button((0.83, 0.90 - 0.055 * row, 0.13, 0.042), _BUTTONS[name], on_button[name])
            for row, name in enumerate(_BUTTONS)
        }
        names = tuple(state.numbers)
        for row, name in enumerate((*names, "horizon")):
            self._row(state, name, _TOP - ROW * row)
        self.axes_choice = {place: self._column(place, names, state, on_axis) for place in _COLUMNS}

    def show(self, state: ExplorerState) -> None:
        """Put every slider where the state has it, without a report."""
        for name, slider in self.sliders.items():
            value = value_of(state, name)
            slider.eventson = False
            slider.set_val(range_of(state.model, name).place(value))
            slider.eventson = True
            slider.valtext.set_text(f"{value:.0f}" if range_of(state.model, name).whole else f"{value:.3g}")

    @property
    def moving(self) -> list[Axes]:
        """Axes of the sliders, which another state changes."""
        return [slider.ax for slider in self.sliders.values()]

    @property
    def held(self) -> bool:
        """Whether a slider is held with the mouse."""
        return any(slider.drag_active for slider in self.sliders.values())

    def disconnect(self) -> None:
        """Let the widgets hear no more events."""
        widgets: list[AxesWidget] = [self.model, *self.buttons.values(), *self.sliders.values()]
        for widget in (*widgets, *self.axes_choice.values()):
            widget.disconnect_events()

    def _row(self, state: ExplorerState, name: str, y: float) -> None:
        """Draw a slider with its label, or which axis the quantity is."""
        from matplotlib.widgets import Slider

        class QuietSlider(Slider):
            """A slider that leaves all drawing to the window."""

            drawon = False

        self._figure.text(_TRACK[0] - 0.012, y, label_of(name), ha="right", va="center", fontsize=SMALL)
        for place, axis in (("x", state.x), ("y", state.y)):
            if axis.name == name:
                text = f"{place} axis, {axis.low:g} to {axis.high:g}"
                self._figure.text(_TRACK[0], y, text, va="center", fontsize=SMALL, color=style.MODEL_COLOUR)
                return
        axes = self._axes((_TRACK[0], y - 0.3 * ROW, _TRACK[1], 0.6 * ROW))
        scale = range_of(state.model, name)
        slider = QuietSlider(axes, "", 0.0, 1.0, valinit=scale.place(value_of(state, name)), initcolor="none")
        slider.valtext.set_fontsize(SMALL)
        slider.poly.set_facecolor(style.MODEL_COLOUR)
        slider.on_changed(lambda place: self._on_value(name, scale.value(place)))
        self.sliders[name] = slider

    def _column(
        self, place: str, names: tuple[str, ...], state: ExplorerState, on_axis: Callable[[str, str], None]
    ) -> RadioButtons:
        """Draw a column of marks beside the rows, one for each name; the chosen one is the axis."""
        from matplotlib.widgets import RadioButtons

        height = ROW * (len(names) + 1)
        axes = self._axes((_COLUMNS[place], _TOP + ROW - height, 0.02, height))
        axes.set_axis_off()
        chosen = names.index({"x": state.x, "y": state.y}[place].name)
        column = RadioButtons(axes, names, chosen, activecolor=style.MODEL_COLOUR, useblit=False)
        for label in column.labels:
            label.set_visible(False)
        self._figure.text(_COLUMNS[place] + 0.005, _TOP + 0.8 * ROW, place, ha="center", fontsize=SMALL)
        column.on_clicked(lambda name: on_axis(place, str(name)))
        return column

    def _radio(self, box: tuple[float, float, float, float], names: tuple[str, ...], chosen: int) -> RadioButtons:
        from matplotlib.widgets import RadioButtons

        axes = self._axes(box)
        axes.set_axis_off()
        radio = RadioButtons(axes, names, chosen, activecolor=style.MODEL_COLOUR, useblit=False)
        for label in radio.labels:
            label.set_fontsize(SMALL + 1)
        return radio

    def _button(self, box: tuple[float, float, float, float], words: str, on_click: Callable[[], None]) -> Button:
        from matplotlib.widgets import Button

        button = Button(self._axes(box), words, color="#eceef1", hovercolor="#eceef1", useblit=False)
        button.label.set_fontsize(SMALL + 1)
        button.on_clicked(lambda _event: on_click())
        return button

    def _axes(self, box: tuple[float, float, float, float]) -> Axes:
        return self._figure.add_axes(box)


def value_of(state: ExplorerState, name: str) -> float:
    """Value of a quantity or of the horizon."""
    return float(state.horizon) if name == "horizon" else state.numbers[name]

"""The window of the explorer without a screen: synthetic events on Agg, and what they change."""

import dataclasses
import gc

import numpy as np
import pandas as pd
import pytest
from matplotlib.backend_bases import MouseEvent
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.image import imread

from meanfield import plot_style
from meanfield.explore import compute
from meanfield.explore.history import History
from meanfield.explore.panels import cell_sentence, exit_colours
from meanfield.explore.path import chosen_run
from meanfield.explore.presets import PRESETS, range_of
from meanfield.explore.state import Axis, ExplorerState
from meanfield.explore.threshold import boundary
from meanfield.explore.view import SIZE, Explorer, first_state
from meanfield.outcomes import Outcome
from theory.errors import InputError

SMALL = dataclasses.replace(ExplorerState.of(), cells=24, horizon=400)


@pytest.fixture(scope="module")
def window():
    return opened(SMALL)


@pytest.fixture
def explorer(window):
    """The window of all tests, put back to its first state: a new one takes a third of a second."""
    window.commit(SMALL)
    window.history = History(SMALL)
    return window


@pytest.fixture
def runs():
    return pd.DataFrame(
        {
            "run": ["a", "b", "c"],
            "sync_interval": [4.0, 16.0, np.inf],
            "learning_rate": [1e-3, 1e-2, 1e-2],
            "outcome": ["stable", "collapsed", "degraded"],
        }
    )


def opened(state, runs=None):
    figure = Figure(figsize=SIZE, dpi=50)
    FigureCanvasAgg(figure)
    found = Explorer(figure, state, runs)
    figure.canvas.draw()
    return found


def mouse(explorer, name, axes, place, button=1):
    """Send an event of the mouse at a place of some axes, given as shares of their box."""
    x, y = axes.transAxes.transform(place)
    explorer.figure.canvas.callbacks.process(name, MouseEvent(name, explorer.figure.canvas, x, y, button=button))


def click(explorer, axes, place):
    mouse(explorer, "button_press_event", axes, place)
    mouse(explorer, "button_release_event", axes, place)


def pixels(explorer):
    return np.asarray(explorer.figure.canvas.buffer_rgba()).copy()


def shown_kind(explorer):
    return np.asarray(explorer.phase.mesh.get_array()).reshape(explorer.picture.kind.shape)


def test_a_slider_that_is_set_changes_state_picture_and_history(explorer):
    before = shown_kind(explorer).copy()
    explorer.controls.sliders["k_s"].set_val(0.9)
    value = range_of(SMALL.model, "k_s").value(0.9)
    assert explorer.state == explorer.history.present == SMALL.with_value("k_s", value)
    assert explorer.history.past == (SMALL,)
    assert np.array_equal(shown_kind(explorer), compute.picture(explorer.state).kind)
    assert not np.array_equal(shown_kind(explorer), before)


def test_a_held_slider_shows_the_coarse_grid_and_the_full_one_when_it_is_let_go(explorer):
    slider = explorer.controls.sliders["k_s"].ax
    mouse(explorer, "button_press_event", slider, (0.7, 0.5))
    mouse(explorer, "motion_notify_event", slider, (0.8, 0.5))
    mouse(explorer, "motion_notify_event", slider, (0.9, 0.5))
    value = explorer.state.numbers["k_s"]
    assert value == pytest.approx(range_of(SMALL.model, "k_s").value(0.9), rel=0.01)
    assert np.array_equal(shown_kind(explorer), compute.coarse_picture(explorer.state).kind)
    assert not np.array_equal(shown_kind(explorer), compute.picture(explorer.state).kind)
    assert explorer.history.present == SMALL
    mouse(explorer, "button_release_event", slider, (0.9, 0.5))
    assert explorer.history.past == (SMALL,)  # one drag, one step
    assert explorer.history.present.numbers["k_s"] == value
    assert np.array_equal(shown_kind(explorer), compute.picture(explorer.state).kind)


def test_a_click_chooses_the_cell_under_the_mouse_and_shows_its_run(explorer):
    click(explorer, explorer.phase.axes, (0.81, 0.9))
    x, y = explorer.phase.axes.transData.inverted().transform(explorer.phase.axes.transAxes.transform((0.81, 0.9)))
    assert explorer.state.selected == SMALL.select(x, y).selected
    assert tuple(item[0] for item in explorer.phase.mark.get_data()) == explorer.state.selected
    run = chosen_run(explorer.state)
    steps, displacement = explorer.path.lines["x"].get_data()
    assert np.array_equal(displacement, run.states["x"])
    assert steps[-1] == pytest.approx(run.cumulative_learning_rate[-1] / explorer.state.selected[1])
    assert run.exit in explorer.path.axes.get_title("left")
    assert explorer.path.mark.get_data()[0] == [steps[-1]]


def test_a_click_computes_no_picture_again(explorer, monkeypatch):
    monkeypatch.setattr(compute, "diagram", None)
    click(explorer, explorer.phase.axes, (0.3, 0.3))
    assert explorer.state.selected != SMALL.selected


def test_a_click_is_left_to_a_tool_that_has_the_mouse(explorer):
    explorer.figure.canvas.widgetlock(explorer)
    click(explorer, explorer.phase.axes, (0.3, 0.3))
    explorer.figure.canvas.widgetlock.release(explorer)
    assert explorer.state == SMALL


def test_a_stable_run_has_no_mark(explorer):
    click(explorer, explorer.phase.axes, (0.02, 0.02))
    assert explorer.path.mark.get_data() == ([], [])
    assert Outcome.STABLE.sentence in explorer.path.axes.get_title("left")


def test_limits_of_exits_are_lines_at_their_values(explorer):
    explorer.controls.sliders["R_crit"].set_val(0.75)
    batch, region = (level.get_ydata()[0] for level in explorer.path.levels)
    assert batch == SMALL.numbers["R_batch"]
    assert region == explorer.state.numbers["R_crit"]


def test_undo_and_redo_buttons_go_back_and_on(explorer):
    first = pixels(explorer)
    explorer.controls.sliders["k_s"].set_val(0.9)
    second = pixels(explorer)
    click(explorer, explorer.controls.buttons["undo"].ax, (0.5, 0.5))
    assert explorer.state == SMALL
    assert explorer.controls.sliders["k_s"].val == range_of(SMALL.model, "k_s").place(SMALL.numbers["k_s"])
    assert np.array_equal(pixels(explorer), first)
    click(explorer, explorer.controls.buttons["undo"].ax, (0.5, 0.5))
    assert explorer.state == SMALL
    click(explorer, explorer.controls.buttons["redo"].ax, (0.5, 0.5))
    assert explorer.state.numbers["k_s"] == range_of(SMALL.model, "k_s").value(0.9)
    assert np.array_equal(pixels(explorer), second)


def test_what_is_drawn_over_the_rest_is_what_a_whole_drawing_shows(explorer):
    explorer.controls.sliders["k_s"].set_val(0.2)
    click(explorer, explorer.phase.axes, (0.9, 0.5))
    mouse(explorer, "motion_notify_event", explorer.phase.axes, (0.5, 0.4), button=None)
    quick = pixels(explorer)
    explorer.figure.canvas.draw()
    assert np.array_equal(quick, pixels(explorer))


def test_a_saved_picture_shows_what_the_window_shows(explorer, tmp_path):
    explorer.figure.canvas.draw()
    shown = pixels(explorer)
    explorer.figure.savefig(tmp_path / "a.png", dpi=50)
    saved = np.rint(255 * imread(tmp_path / "a.png")).astype(int)
    assert np.array_equal(saved, shown)


def test_the_mouse_over_a_cell_says_what_becomes_of_its_run(explorer):
    mouse(explorer, "motion_notify_event", explorer.phase.axes, (0.97, 0.97), button=None)
    words = explorer._status.get_text()
    x, y = float(explorer.picture.x[-1]), float(explorer.picture.y[-1])
    assert words == cell_sentence(SMALL, explorer.picture, x, y)
    assert Outcome.COLLAPSED.sentence in words
    assert f"at step {explorer.picture.collapse_step[-1, -1]:.0f}" in words
    mouse(explorer, "motion_notify_event", explorer.phase.axes, (0.01, 0.01), button=None)
    assert Outcome.STABLE.sentence in explorer._status.get_text()


def test_a_quantity_becomes_an_axis_by_a_mark_beside_its_slider(explorer):
    column = explorer.controls.axes_choice["y"]
    names = list(SMALL.numbers)
    column.set_active(names.index("k_s"))
    assert explorer.state == SMALL.with_axis("y", "k_s")
    assert "k_s" in explorer.phase.axes.get_ylabel()
    assert "k_s" not in explorer.controls.sliders
    assert "learning_rate" in explorer.controls.sliders
    click(explorer, explorer.controls.buttons["undo"].ax, (0.5, 0.5))
    assert explorer.state == SMALL
    assert "learning rate" in explorer.phase.axes.get_ylabel()


@pytest.mark.parametrize("name", PRESETS)
def test_another_model_brings_its_own_sliders(explorer, name):
    explorer.controls.model.set_active(list(PRESETS).index(name))
    assert explorer.state == SMALL if name == SMALL.model else SMALL.with_model(name)
    axes = {explorer.state.x.name, explorer.state.y.name}
    assert set(explorer.controls.sliders) == {*explorer.state.numbers, "horizon"} - axes
    explorer.controls.sliders["R_crit"].set_val(0.25)
    assert explorer.state.numbers["R_crit"] == range_of(name, "R_crit").value(0.25)
    assert np.array_equal(shown_kind(explorer), compute.picture(explorer.state).kind)


def test_sliders_of_a_model_before_hear_nothing_any_more(explorer):
    old = explorer.controls.sliders["R_crit"]
    explorer.commit(SMALL.with_model("two-constraint"))
    state = explorer.state
    mouse(explorer, "button_press_event", old.ax, (0.95, 0.5))
    assert not old.drag_active
    assert "k_w" not in explorer.state.numbers
    assert explorer.state.model == state.model


def test_the_horizon_has_a_slider_of_whole_steps(explorer):
    explorer.controls.sliders["horizon"].set_val(0.37)
    assert explorer.state.horizon == range_of(SMALL.model, "horizon").value(0.37)
    assert explorer.state.horizon == int(explorer.state.horizon)


def test_the_link_is_printed_and_shown_until_the_state_changes(explorer, capsys):
    click(explorer, explorer.controls.buttons["link"].ax, (0.5, 0.5))
    printed = capsys.readouterr().out
    assert ExplorerState.from_link(printed) == SMALL
    assert explorer._link_text.get_text().replace("\n", "") == printed.strip()
    explorer.controls.sliders["k_s"].set_val(0.2)
    assert explorer._link_text.get_text() == ""


def test_a_value_beyond_its_slider_is_kept_and_written(explorer):
    explorer.commit(SMALL.with_value("k_w", 500.0))
    assert explorer.controls.sliders["k_w"].val == 1.0
    assert explorer.controls.sliders["k_w"].valtext.get_text() == "500"
    assert explorer.state.numbers["k_w"] == 500.0


def test_what_the_engine_refuses_is_said_and_not_shown(explorer, monkeypatch):
    def refuse(*given):
        raise InputError("k_s", "be kind", 3, "Be kinder.")

    monkeypatch.setattr(compute, "diagram", refuse)
    explorer.controls.sliders["k_s"].set_val(0.9)
    assert explorer._status.get_text() == "k_s must be kind, got 3. Be kinder."
    assert explorer.state == explorer.history.present == SMALL
    assert explorer.controls.sliders["k_s"].val == range_of(SMALL.model, "k_s").place(SMALL.numbers["k_s"])


def test_the_boundary_of_small_drift_lies_over_the_picture(explorer):
    x, y = explorer.phase.line.get_data()
    expected = boundary(SMALL)
    assert np.array_equal(x, expected[0], equal_nan=True)
    assert np.array_equal(y, expected[1], equal_nan=True)
    assert explorer.phase.line.get_zorder() > explorer.phase.mesh.get_zorder()
    explorer.commit(SMALL.with_model("two-constraint"))
    assert len(explorer.phase.line.get_xdata()) == 0


def test_outcomes_and_exits_have_colours_of_their_own(explorer):
    colours = [explorer.phase.mesh.cmap(kind)[:3] for kind in range(4)]
    assert colours[0] == to_rgb(plot_style.OUTCOME_COLOURS[Outcome.STABLE])
    assert colours[2] == to_rgb(plot_style.OUTCOME_COLOURS[Outcome.COLLAPSED])
    assert len(set(colours)) == 4
    assert len(set(exit_colours(4))) == 4
    words = [item.get_text() for item in explorer.phase.axes.get_legend().get_texts()]
    assert words[:4] == ["stable", "failed", "collapsed, batch", "collapsed, region"]
    # the colour in the middle of the last cell is that of its kind
    place = explorer.phase.axes.transData.transform((explorer.picture.x[-2], explorer.picture.y[-2])).astype(int)
    shown = pixels(explorer)[-place[1] - 1, place[0], :3] / 255
    assert np.allclose(shown, colours[explorer.picture.kind[-2, -2]], atol=0.01)


def marks(explorer, word):
    found = [item for item in explorer.phase.axes.collections if item.get_label() == f"your run: {word}"]
    return [tuple(place) for item in found for place in item.get_offsets()]


def test_own_runs_lie_over_the_picture_where_the_axes_are_theirs(runs):
    explorer = opened(SMALL, runs)
    assert marks(explorer, "stable") == [(4.0, 1e-3)]
    assert marks(explorer, "collapsed") == [(16.0, 1e-2)]
    explorer.commit(SMALL.with_axis("x", "learning_rate"))
    assert marks(explorer, "collapsed") == [(1e-2, 16.0)]
    explorer.commit(SMALL.with_axis("y", "k_s"))
    assert marks(explorer, "collapsed") == []


def test_the_first_axes_reach_as_far_as_ones_own_runs(runs):
    far = pd.concat([runs, runs.assign(sync_interval=[5000.0, 2.0, np.inf], learning_rate=[1e-7, 1e-6, 0.5])])
    state = first_state(far)
    assert state.x == Axis("sync_interval", 1.0, 7500.0)
    assert state.y.low < 1e-7
    assert state.y.high > 0.5
    assert first_state(runs).x == ExplorerState.of().x
    assert first_state(None, "two-constraint") == ExplorerState.of("two-constraint")


def test_an_explorer_lives_as_long_as_its_figure():
    figure = opened(SMALL).figure
    gc.collect()
    figure.canvas.draw()
    slider_axes = [axes for axes in figure.axes if axes.get_animated()]
    row = np.asarray(figure.canvas.buffer_rgba())
    x, y = (int(value) for value in slider_axes[-1].transAxes.transform((0.05, 0.5)))
    assert not np.all(row[-y - 1, x, :3] == 255)  # the slider is there


def test_a_canvas_that_cannot_restore_is_drawn_as_a_whole(monkeypatch):
    monkeypatch.setattr(FigureCanvasAgg, "supports_blit", False)
    explorer = opened(SMALL)
    assert not any(artist.get_animated() for artist in explorer._moving)
    explorer.controls.sliders["k_s"].set_val(0.9)
    plain = pixels(explorer)
    monkeypatch.undo()
    quick = opened(SMALL)
    quick.controls.sliders["k_s"].set_val(0.9)
    different = np.any(plain != pixels(quick), axis=-1)
    assert np.mean(different) < 2e-3  # frames and panels lie over one another in another order

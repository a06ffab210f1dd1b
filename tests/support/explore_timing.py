"""How long the explorer takes to answer, drawing included: `python -m tests.support.explore_timing`.

Synthetic events on Agg: a slider that jumps, a slider that is dragged and let go, a click, the mouse that moves.
"""

import argparse
import statistics
import time

from matplotlib.backend_bases import MouseEvent
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from meanfield.explore.presets import PRESETS
from meanfield.explore.state import Axis, ExplorerState
from meanfield.explore.view import SIZE, Explorer

INTERVALS = Axis("sync_interval", 45.0, 4500.0)
"""So wide that 200 columns have distinct sync intervals."""


def big_state(model, cells):
    state = ExplorerState.of(model)
    few = state.y
    rates = Axis("learning_rate", few.low / 20.0, few.high / 20.0)
    state = state.with_axes(INTERVALS, rates)
    return ExplorerState(model, state.values, state.x, state.y, cells, 2000, (100.0, (rates.low * rates.high) ** 0.5))


def mouse(explorer, name, place, button=1):
    event = MouseEvent(name, explorer.figure.canvas, *place, button=button)
    explorer.figure.canvas.callbacks.process(name, event)


def on_slider(explorer, name, share):
    axes = explorer.controls.sliders[name].ax
    return axes.transAxes.transform((share, 0.5))


def on_cell(explorer, x_share, y_share):
    return explorer.phase.axes.transAxes.transform((x_share, y_share))


def measured(act, repeats):
    times = []
    for turn in range(repeats):
        begun = time.perf_counter()
        act(turn)
        times.append(1e3 * (time.perf_counter() - begun))
    return worded(times)


def worded(times):
    return f"{statistics.median(times):6.0f} ms median, {max(times):6.0f} ms worst of {len(times)}"


def report(model, cells, repeats):
    begun = time.perf_counter()
    explorer = Explorer(FigureCanvasAgg(Figure(figsize=SIZE)).figure, big_state(model, cells))
    explorer.figure.canvas.draw()
    opened = time.perf_counter() - begun
    name = next(iter(explorer.controls.sliders))

    def jump(turn):
        explorer.controls.sliders[name].set_val(0.4 + 0.01 * turn)

    def drag(turn):
        mouse(explorer, "motion_notify_event", on_slider(explorer, name, 0.3 + 0.01 * turn))

    def click(turn):
        mouse(explorer, "button_press_event", on_cell(explorer, 0.2 + 0.02 * turn, 0.5))
        mouse(explorer, "button_release_event", on_cell(explorer, 0.2 + 0.02 * turn, 0.5))

    def hover(turn):
        mouse(explorer, "motion_notify_event", on_cell(explorer, 0.2 + 0.02 * turn, 0.4), button=None)

    def let_go(turn):
        mouse(explorer, "button_press_event", on_slider(explorer, name, 0.45 + 0.01 * turn))
        begun = time.perf_counter()
        mouse(explorer, "button_release_event", on_slider(explorer, name, 0.45 + 0.01 * turn))
        released.append(1e3 * (time.perf_counter() - begun))

    released = []
    lines = [f"slider set, full picture  {measured(jump, repeats)}"]
    mouse(explorer, "button_press_event", on_slider(explorer, name, 0.3))
    lines.append(f"slider held, coarse       {measured(drag, repeats)}")
    mouse(explorer, "button_release_event", on_slider(explorer, name, 0.3))
    measured(let_go, repeats)
    lines += [
        f"slider let go, full       {worded(released)}",
        f"click, path of the run    {measured(click, repeats)}",
        f"mouse over a cell         {measured(hover, repeats)}",
        f"canvas alone              {measured(lambda _: explorer.figure.canvas.draw(), repeats)}",
    ]
    rows, columns = explorer.picture.kind.shape
    heading = f"{model}, {columns} x {rows} cells, opened in {opened:.1f} s"
    return "\n  ".join([heading, *lines])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--models", nargs="+", default=list(PRESETS))
    given = parser.parse_args()
    for model in given.models:
        print(report(model, given.cells, given.repeats), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()

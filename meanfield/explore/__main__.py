"""Command line: explore a drift model in a window, or save its picture.

python -m meanfield.explore --model persistent-tanh --save picture.png

Nothing heavy is imported before a picture is asked for, so `--help` is quick.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from meanfield.explore.state import ExplorerState


def explore(
    model: Annotated[str | None, typer.Option(help="Name of a built-in model, such as persistent-tanh.")] = None,
    runs: Annotated[Path | None, typer.Option(help="Your own runs, laid over: .csv, .jsonl or .parquet.")] = None,
    link: Annotated[str | None, typer.Option(help="A link that the window has printed.")] = None,
    save: Annotated[Path | None, typer.Option(help="Write the picture to this file and open no window.")] = None,
) -> None:
    """Show which runs of a drift model collapse, and move its parameters with sliders.

    Click a cell to see the path of its run. --link opens what a link holds, --model another model.
    """
    from meanfield.runs import read_runs

    table = None if runs is None else read_runs(runs)
    state = _state(model, link, table)
    if save is not None:
        _save(state, table, save)
    else:
        _open(state, table)


def _state(model: str | None, link: str | None, runs: pd.DataFrame | None) -> ExplorerState:
    from meanfield.explore.presets import DEFAULT
    from meanfield.explore.state import ExplorerState
    from meanfield.explore.view import first_state
    from theory.errors import InputError

    if model is not None and link is not None:
        raise InputError(
            "--model and --link", "not be given together", "both", "A link names its model: leave one out."
        )
    return first_state(runs, model or DEFAULT) if link is None else ExplorerState.from_link(link)


def _save(state: ExplorerState, runs: pd.DataFrame | None, path: Path) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from meanfield.explore.view import SIZE, Explorer
    from meanfield.files import write_whole
    from theory.errors import InputError

    figure = Figure(figsize=SIZE)
    known = FigureCanvasAgg(figure).get_supported_filetypes()
    kind = path.suffix.lstrip(".").lower()
    if kind not in known:
        raise InputError("--save", f"end in one of {', '.join(sorted(known))}", str(path), "Use picture.png.")
    if not path.parent.is_dir():
        raise InputError("--save", "lie in a folder that is there", str(path), "Make the folder first.")
    explorer = Explorer(figure, state, runs)
    write_whole(path, lambda beside: explorer.figure.savefig(beside, format=kind, dpi=150))


def _open(state: ExplorerState, runs: pd.DataFrame | None) -> None:
    import matplotlib.pyplot as plt

    from meanfield.explore.view import Explorer

    explorer = Explorer(_window(), state, runs)
    plt.show()
    explorer.print_link()


def _window() -> Figure:
    """Open an empty window; raises InputError where matplotlib has none."""
    import matplotlib.pyplot as plt

    from meanfield.explore.view import SIZE
    from theory.errors import InputError

    way_out = "Write the picture to a file instead: --save picture.png."
    try:
        figure = plt.figure(figsize=SIZE)
    except ImportError as error:
        raise InputError("the display", "open a window", f"the answer: {error}", way_out) from None
    if figure.canvas.required_interactive_framework is None and plt.get_backend().lower() != "webagg":
        plt.close(figure)
        raise InputError("the display", "open a window", f"none, matplotlib draws with {plt.get_backend()}", way_out)
    return figure


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code; see `meanfield.command.run_command`."""
    from meanfield.command import run_command

    return run_command(explore, arguments)


if __name__ == "__main__":
    sys.exit(main())

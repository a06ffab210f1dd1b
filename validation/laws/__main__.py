"""Make the page of the measured laws from kept data: `python -m validation.laws docs/laws --page docs/laws.md`.

Reads the runs.csv and measures.nc that validation.compare wrote for each sweep; needs no store and no torch.
"""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from theory.errors import InputError

if TYPE_CHECKING:
    from validation.laws.setting import Setting

NUMBERS_FILE = "laws.json"
"""Every number of the page; the page is made from it."""


def main(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder with one subfolder for each sweep.")],
    page: Annotated[Path, typer.Option(help="Markdown file to write; figures go to DIR.")],
) -> None:
    """Hold the claims against every sweep in DIR, and write the numbers, the figures and the page."""
    from rich.progress import track

    from meanfield.files import write_text
    from validation.laws.figures import draw_all
    from validation.laws.page import render
    from validation.laws.setting import read_setting

    folders = setting_folders(folder)
    if not page.parent.is_dir():
        raise InputError("--page", "lie in an existing folder", page, f"Make {page.parent} first.")
    settings: list[Setting] = []
    for one in track(folders, description="reading", disable=not sys.stderr.isatty()):
        settings.append(read_setting(one))
        typer.echo(f"{settings[-1].name}: done", err=True)
    numbers = {"schema": "driftlaw.laws/1", "settings": [one.to_json() for one in settings]}
    write_text(folder / NUMBERS_FILE, json.dumps(numbers, indent=1, allow_nan=False) + "\n")
    draw_all(settings, folder)
    write_text(page, render(numbers, folder=folder, page=page))
    typer.echo(f"page: {page}")


def setting_folders(folder: Path) -> list[Path]:
    """Subfolders that hold a sweep's data, in the order in which the page shows them.

    Raises
    ------
    InputError
        If there is none.
    """
    from validation.laws.text import SETTINGS

    found = {path.parent.name: path.parent for path in folder.glob("*/measures.nc")}
    if not found:
        way_out = f"Make them with python -m validation.compare STORE... --out {folder}."
        raise InputError("DIR", "hold subfolders with measures.nc", str(folder), way_out)
    ranks = {name: rank for rank, name in enumerate(SETTINGS)}
    return [found[name] for name in sorted(found, key=lambda name: (ranks.get(name, len(ranks)), name))]


def read_numbers(folder: Path) -> dict[str, Any]:
    """Return the numbers that `main` wrote."""
    numbers: dict[str, Any] = json.loads((folder / NUMBERS_FILE).read_text(encoding="utf-8"))
    return numbers


if __name__ == "__main__":
    from meanfield.command import run_command

    sys.exit(run_command(main))

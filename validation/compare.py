"""Compare a sweep with the theory: `python -m validation.compare SWEEP.zarr --out DIR`. Needs no torch."""

import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from theory.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console
    from rich.table import Table

    from validation.comparison import Comparison

RUNS_FILE, MEASURES_FILE, SUMMARY_FILE, REPORT_FILE = "runs.csv", "measures.nc", "summary.json", "report.html"
_PIPE_WIDTH = 125


def main(
    store: Annotated[list[Path], typer.Argument(metavar="SWEEP.zarr...", help="Stores made by validation.run.")],
    out: Annotated[Path, typer.Option(help="Folder for the results; a subfolder for each of several stores.")],
) -> None:
    """Label the runs of sweeps, hold the claims against them, and write tables and a report.

    These are runs.csv, measures.nc, summary.json and report.html. Of several sweeps the exponents are shown beside each
    other.
    """
    from validation.comparison import compare

    with _writing(out):
        if not next(path for path in (out, *out.absolute().parents) if path.exists()).is_dir():
            raise NotADirectoryError
    folders = _folders(store, out)
    comparisons = []
    for path, folder in folders.items():
        comparisons.append(compare(path))
        _write(comparisons[-1], folder)
        _print(comparisons[-1], folder / REPORT_FILE)
    if len(comparisons) > 1:
        _print_overview(comparisons)


def _folders(stores: list[Path], out: Path) -> dict[Path, Path]:
    """Where the results of each store go; refuses two sweeps of one name, and a name that leads elsewhere."""
    from validation.store import stored_experiment

    if len(stores) == 1:
        return {stores[0]: out}
    folders: dict[Path, Path] = {}
    for store in stores:
        name = stored_experiment(store).name
        folder, way_out = out / name, "Compare them apart, each with an --out of its own."
        if name in (".", "..") or folder.name != name:
            raise InputError("SWEEP.zarr", "hold an experiment whose name can be a folder's", name, way_out)
        if folder in folders.values():
            raise InputError("SWEEP.zarr", "hold experiments of different names", name, way_out)
        folders[store] = folder
    return folders


def _write(comparison: "Comparison", folder: Path) -> None:
    import json

    from meanfield import results
    from meanfield.files import write_text
    from meanfield.runs import write_runs
    from validation.report import render

    page = render(comparison)
    with _writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        write_runs(comparison.runs, folder / RUNS_FILE)
        results.save(comparison.findings.measures, folder / MEASURES_FILE)
        write_text(folder / SUMMARY_FILE, json.dumps(comparison.to_json(), indent=2, allow_nan=False) + "\n")
        write_text(folder / REPORT_FILE, page)


@contextmanager
def _writing(out: Path) -> "Iterator[None]":
    try:
        yield
    except OSError as error:
        way_out = f"{type(error).__name__}: give another name; the folder is made if it is not there."
        raise InputError("--out", "be a folder that can be written", out, way_out) from error


def _console() -> "Console":
    from rich.console import Console

    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, no_color=True, width=_PIPE_WIDTH)


def _print(comparison: "Comparison", report: Path) -> None:
    console = _console()
    counts = ", ".join(f"{count} {word}" for word, count in comparison.counts.items())
    console.print(f"{comparison.experiment.name}: {len(comparison.runs)} runs, {counts}", markup=False)
    if comparison.num_done < comparison.num_shards:
        console.print(f"unfinished: {comparison.num_done} of {comparison.num_shards} shards done", markup=False)
    console.print(_verdicts(comparison))
    console.print(f"report: {report}", markup=False, soft_wrap=True)


def _verdicts(comparison: "Comparison") -> "Table":
    from rich import box
    from rich.table import Table

    from theory.claims import claim

    table = Table("claim", "reading", "verdict", "because", box=box.SIMPLE_HEAD)
    for one in (*comparison.judgements, *comparison.checks):
        verdict = one.verdict
        table.add_row(claim(verdict.claim_id).title, one.reading, verdict.word, verdict.sentence)
    return table


def _print_overview(comparisons: "list[Comparison]") -> None:
    """One row a sweep: exponents with their intervals, budget, ceiling, and which form the horizons support."""
    from rich import box
    from rich.table import Table

    header = ("sweep", "boundary exponent", "degraded stable", "drift predicts", "budget exponent", "ceiling", "form")
    table = Table(*header, box=box.SIMPLE_HEAD)
    for one in comparisons:
        known, growth = one.calibration, one.findings.growth
        exponents = (
            known.boundary_exponent,
            known.boundary_exponent_collapsed_only,
            growth.predicted_exponent,
            known.budget_exponent,
        )
        said = [number.said() for number in (*exponents, known.learning_rate_ceiling)]
        table.add_row(one.experiment.name, *said, one.findings.combination.value)
    _console().print(table)


if __name__ == "__main__":
    from meanfield.command import run_command

    sys.exit(run_command(main))

"""Compare a sweep with the theory: `python -m validation.compare SWEEP.zarr --out DIR`. Needs no torch."""

import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from meanfield.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.table import Table

    from validation.comparison import Comparison

RUNS_FILE, SUMMARY_FILE, REPORT_FILE = "runs.csv", "summary.json", "report.html"
_PIPE_WIDTH = 125


def main(
    store: Annotated[Path, typer.Argument(metavar="SWEEP.zarr", help="Store made by validation.run.")],
    out: Annotated[Path, typer.Option(help="Folder for runs.csv, summary.json and report.html.")],
) -> None:
    """Label the runs of a sweep, hold the two laws against them, and write a report."""
    import json

    from meanfield.files import write_text
    from meanfield.runs import write_runs
    from validation.comparison import compare
    from validation.report import render

    with _writing(out):
        if not next(path for path in (out, *out.absolute().parents) if path.exists()).is_dir():
            raise NotADirectoryError
    comparison = compare(store)
    page = render(comparison)
    with _writing(out):
        out.mkdir(parents=True, exist_ok=True)
        write_runs(comparison.runs, out / RUNS_FILE)
        write_text(out / SUMMARY_FILE, json.dumps(comparison.to_json(), indent=2, allow_nan=False) + "\n")
        write_text(out / REPORT_FILE, page)
    _print(comparison, out / REPORT_FILE)


@contextmanager
def _writing(out: Path) -> "Iterator[None]":
    try:
        yield
    except OSError as error:
        way_out = f"{type(error).__name__}: give another name; the folder is made if it is not there."
        raise InputError("--out", "be a folder that can be written", out, way_out) from error


def _print(comparison: "Comparison", report: Path) -> None:
    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, no_color=True, width=_PIPE_WIDTH)
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


if __name__ == "__main__":
    from meanfield.command import run_command

    sys.exit(run_command(main))

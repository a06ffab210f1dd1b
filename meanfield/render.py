"""The answer as text: a page for a person, JSON for a program, CSV for a spreadsheet."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING

from meanfield.answer import Answer
from meanfield.estimate import Estimate

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

PIPE_WIDTH = 110
"""Columns of the page when it is not written to a terminal."""


def as_json(answer: Answer) -> str:
    """Return the object of schema driftlaw.predict/1, indented."""
    return json.dumps(answer.to_json(), indent=2, allow_nan=False)


def as_csv(answer: Answer) -> str:
    """Return the table over S as CSV, an empty cell for null."""
    rows = answer.to_json()["table"]
    buffer = io.StringIO()
    header = ["sync_interval", "max_learning_rate", "low", "high", "binding", "safe_learning_rate"]
    writer = csv.DictWriter(buffer, fieldnames=header, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return buffer.getvalue().rstrip("\n")


def print_page(answer: Answer) -> None:
    """Print the page: colours on a terminal, plain text of fixed width in a pipe."""
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=False)
    if not console.is_terminal:
        console = Console(highlight=False, no_color=True, width=PIPE_WIDTH)
    _print_table(console, "What is known", _numbers(answer))
    if answer.table:
        _print_table(console, "Learning rate at each S", _rates(answer))
    _print_query(console, answer)
    _print_recommendation(console, answer)
    _print_next_runs(console, answer)
    for title, lines in (("Not known", answer.missing), ("Careful", answer.warnings)):
        if lines:
            console.print(f"[bold]{title}[/bold]")
        for line in lines:
            console.print(f"  - {line}", markup=False)


def _print_table(console: Console, title: str, table: Table) -> None:
    console.print(f"[bold]{title}[/bold]")
    console.print(table)


def _grid(*columns: str) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for index, column in enumerate(columns):
        table.add_column(column, justify="left" if index in (0, len(columns) - 1) else "right")
    return table


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"


def _step(value: float | None) -> str:
    return "-" if value is None else f"{max(value, 1.0):.0f}"


def _interval(estimate: Estimate) -> str:
    if estimate.low is None or estimate.high is None:
        return "-"
    return f"{estimate.low:.3g} .. {estimate.high:.3g}"


def _numbers(answer: Answer) -> Table:
    """Threshold, budget and exponents with their intervals."""
    share = "interval" if answer.confidence is None else f"{answer.confidence:.0%} interval"
    table = _grid("", "estimate", share, "")
    rows = (
        ("critical product  S*eta", answer.critical_product),
        ("budget  eta*T at collapse", answer.budget),
        ("learning-rate ceiling  eta at S = 1", answer.learning_rate_ceiling),
        ("boundary exponent  (Law 1: -1)", answer.boundary_exponent),
        ("budget exponent  (Law 2: -1)", answer.budget_exponent),
    )
    for name, estimate in rows:
        note = "" if estimate.identified else ("not known" if estimate.estimate is None else "not identified")
        table.add_row(name, _number(estimate.estimate), _interval(estimate), note)
    table.add_row("threshold and budget combine as", answer.combination.value, "", "")
    return table


def _rates(answer: Answer) -> Table:
    table = _grid("S", "half of the seeds stable", "interval", "safe", "limited by")
    for row in answer.table:
        rate = row.max_learning_rate
        cells = (_number(rate.estimate), _interval(rate), _number(row.safe_learning_rate))
        table.add_row(f"{row.sync_interval:g}", *cells, row.binding or "not known")
    return table


def _print_query(console: Console, answer: Answer) -> None:
    asked = answer.query
    if asked is None:
        return
    console.print("[bold]Your run[/bold]")
    risk = "not known" if asked.risk is None else f"{asked.risk:.1%}"
    console.print(
        f"  S = {asked.sync_interval:g}, eta = {asked.learning_rate:.3g}, {asked.horizon:g} steps: "
        f"risk of collapse {risk}"
    )
    step = asked.collapse_step
    if step.estimate is not None:
        between = "" if step.low is None else f" ({_step(step.low)} .. {_step(step.high)})"
        console.print(f"  if it is unstable it collapses near step {_step(step.estimate)}{between}")
    console.print(f"  what limits it: {asked.binding or 'not known'}\n")


def _print_recommendation(console: Console, answer: Answer) -> None:
    advice = answer.recommendation
    console.print("[bold]Use[/bold]")
    if advice is None:
        console.print("  nothing can be recommended: see what is not known, below\n")
        return
    said = f"  S = {advice.sync_interval:g}, eta = {advice.learning_rate:.3g} (risk of collapse {advice.risk:.1%})"
    console.print(f"{said}: {advice.why}\n")


def _print_next_runs(console: Console, answer: Answer) -> None:
    if not answer.next_runs:
        return
    table = _grid("S", "eta", "steps", "seeds", "to learn")
    for run in answer.next_runs:
        table.add_row(f"{run.sync_interval:g}", _number(run.learning_rate), str(run.steps), str(run.seeds), run.why)
    _print_table(console, "Run next", table)

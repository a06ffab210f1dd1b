"""Command line: threshold, budget, risk and a recommended run, from a runs table or a model.

python -m meanfield.predict --runs runs.csv --horizon 2000 --sync-interval 8 --learning-rate 1e-6

Nothing heavy is imported before an answer is asked for, so `--help` is quick.
"""

from __future__ import annotations

import sys
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from meanfield.answer import Answer, Question


class Format(Enum):
    """How the answer is written."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


def predict(
    horizon: Annotated[float, typer.Option(help="Length of the intended run [optimizer steps].")],
    runs: Annotated[Path | None, typer.Option(help="Runs table: .csv, .jsonl or .parquet, one row a run.")] = None,
    params: Annotated[Path | None, typer.Option(help="Parameters of the model: a .toml file.")] = None,
    sync_interval: Annotated[
        float | None, typer.Option(help="S: the behaviour policy is refreshed every S optimizer steps.")
    ] = None,
    learning_rate: Annotated[float | None, typer.Option(help="eta: the constant learning rate.")] = None,
    risk: Annotated[float, typer.Option(help="Accepted probability of a collapse within the horizon.")] = 0.05,
    output: Annotated[Format, typer.Option("--format", help="How to write the answer.")] = Format.TABLE,
) -> None:
    """Say which S and eta an asynchronous RL run survives, and when a given run would collapse.

    Give --runs or --params. With --sync-interval and --learning-rate that run is answered too; with one of
    the two the other is recommended.
    """
    from meanfield.answer import Question

    question = Question(horizon=horizon, sync_interval=sync_interval, learning_rate=learning_rate, risk=risk)
    _write(_answer(runs, params, question), output)


def _answer(runs: Path | None, params: Path | None, question: Question) -> Answer:
    from theory.errors import InputError

    if runs is not None and params is not None:
        raise InputError("--runs and --params", "not be given together", "both", "Leave one out.")
    if runs is not None:
        from meanfield.answer import answer
        from meanfield.calibrate import calibrate
        from meanfield.runs import read_runs

        return answer(calibrate(read_runs(runs)), question)
    if params is not None:
        from meanfield.model_answer import answer_model
        from meanfield.parameters import MapParameters

        return answer_model(MapParameters.from_toml(params), question)
    raise InputError("--runs or --params", "be given", "neither", "Give a table of runs: --runs runs.csv.")


def _write(answer: Answer, output: Format) -> None:
    from meanfield import render

    if output is Format.TABLE:
        render.print_page(answer)
    else:
        typer.echo(render.as_json(answer) if output is Format.JSON else render.as_csv(answer))


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code; see `meanfield.command.run_command`."""
    from meanfield.command import run_command

    return run_command(predict, arguments)


if __name__ == "__main__":
    sys.exit(main())

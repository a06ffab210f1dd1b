from typing import Annotated

import pytest
import typer

from meanfield.command import run_command
from theory.errors import InputError


def double(number: Annotated[int, typer.Argument()], fail: str = "") -> None:
    """Print twice the number."""
    if fail == "input":
        raise InputError("number", "be\neven", number, "Add one.")
    if fail == "stop":
        raise KeyboardInterrupt
    if fail == "exit":
        raise typer.Exit(1)
    typer.echo(2 * number)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["4"], 0, ""),
        (["4", "--fail", "input"], 2, "number must be even, got 4. Add one.\n"),
        (["4", "--fail", "stop"], 130, ""),
        (["4", "--fail", "exit"], 1, ""),
    ],
)
def test_exit_codes_and_one_line_errors(
    capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, said: str
) -> None:
    assert run_command(double, arguments) == code
    out, err = capsys.readouterr()
    assert err == said
    assert out == ("8\n" if code == 0 else "")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [([], "got: nothing."), (["x"], "got: x."), (["4", "--speed", "3"], "--speed"), (["4", "5"], "got: 4 5.")],
)
def test_a_misused_command_line_is_one_line(
    capsys: pytest.CaptureFixture[str], arguments: list[str], named: str
) -> None:
    assert run_command(double, arguments) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert named.lower() in err.lower()
    assert err.endswith(". Try --help.\n")

"""Run a command-line function: exit 0 with an answer, 2 with one line that says what to change."""

import sys
from collections.abc import Callable, Sequence
from typing import Any

import typer

from theory.errors import InputError

_UsageError: Any = typer.BadParameter.__base__
"""What typer raises for any misuse of the command line; its place in the package changed between versions."""


def run_command(function: Callable[..., Any], arguments: Sequence[str] | None = None) -> int:
    """Run a typer function on command-line arguments and return its exit code.

    Parameters
    ----------
    function : callable
        Annotated as typer wants it.
    arguments : sequence of str, optional
        Default: those of the process.

    Returns
    -------
    int
        0 after an answer or the help text; 2 after bad input, with one line on stderr; 130 when interrupted; the
        code of a `typer.Exit` that the function raised.
    """
    app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    app.command()(function)
    try:
        code = app(args=arguments, standalone_mode=False)
    except InputError as error:
        return _complain(str(error))
    except _UsageError as error:
        given = " ".join(sys.argv[1:] if arguments is None else arguments) or "nothing"
        return _complain(f"{error.format_message().rstrip('.')}, got: {given}. Try --help.")
    except (KeyboardInterrupt, typer.Abort):
        return 130
    return code if isinstance(code, int) else 0


def _complain(message: str) -> int:
    print(" ".join(message.split()), file=sys.stderr)  # noqa: T201
    return 2

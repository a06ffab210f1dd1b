"""python -m meanfield.explore: pictures, links, and what it refuses in one line."""

import os
import subprocess
import sys

import pytest
from matplotlib.image import imread

from meanfield.explore.__main__ import main
from meanfield.explore.state import ExplorerState

RUNS = "examples/demo_runs.csv"


def ask(capsys, *arguments):
    status = main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_a_picture_is_saved_without_a_window(capsys, tmp_path):
    path = tmp_path / "picture.png"
    assert ask(capsys, "--save", path) == (0, "", "")
    picture = imread(path)
    assert picture.shape[1] > 1500
    assert picture.std() > 0.1
    assert [item.name for item in tmp_path.iterdir()] == ["picture.png"]


def test_runs_and_link_change_the_picture(capsys, tmp_path):
    link = ExplorerState.of().with_value("k_s", 100.0).to_link()
    for name, given in (("plain", []), ("runs", ["--runs", RUNS]), ("link", ["--link", link])):
        assert ask(capsys, *given, "--save", tmp_path / f"{name}.png")[0] == 0
    plain, runs, linked = ((tmp_path / f"{name}.png").read_bytes() for name in ("plain", "runs", "link"))
    assert len({plain, runs, linked}) == 3


def test_a_vector_picture_is_saved_too(capsys, tmp_path):
    path = tmp_path / "picture.svg"
    assert ask(capsys, "--model", "two-constraint", "--save", path)[0] == 0
    assert path.read_text(encoding="utf-8").lstrip().startswith("<?xml")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--model", "tanh"], "model must be a built-in model, got 'tanh'. Use one of: persistent-tanh"),
        (["--link", "model=x"], "link: x_axis must be given"),
        (["--model", "two-constraint", "--link", "model=x"], "--model and --link must not be given together"),
        (["--runs", "nowhere.csv"], "nowhere.csv"),
        (["--save", "picture.tiger"], "--save must end in one of"),
        (["--save", "picture"], "--save must end in one of"),
        (["--save", "no_such_folder/picture.png"], "--save must lie in a folder that is there"),
        (["--zeal"], "--zeal"),
    ],
)
def test_bad_input_is_one_line_and_exit_two(capsys, arguments, message):
    status, out, err = ask(capsys, *arguments)
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    assert message in err


def test_without_a_display_the_way_out_is_save():
    bare = {key: value for key, value in os.environ.items() if key not in ("DISPLAY", "WAYLAND_DISPLAY", "MPLBACKEND")}
    child = subprocess.run(
        [sys.executable, "-m", "meanfield.explore"],
        capture_output=True,
        text=True,
        check=False,
        env={**bare, "MPLBACKEND": "agg"},
    )
    assert (child.returncode, child.stdout) == (2, "")
    assert child.stderr.count("\n") == 1
    assert "the display must open a window" in child.stderr
    assert "--save picture.png" in child.stderr


def test_help_loads_nothing_heavy():
    code = (
        "import sys; from meanfield.explore.__main__ import main; main(['--help']); "
        "print(*sorted({'matplotlib', 'sympy', 'numba', 'pandas'} & set(sys.modules)), file=sys.stderr)"
    )
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    for option in ("--model", "--runs", "--link", "--save"):
        assert option in child.stdout
    assert child.stderr.strip() == ""

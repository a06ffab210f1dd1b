"""What the README says is true: the tree is the disk, the code runs, the printed answer is the answer."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from validation.config import load_experiment

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PACKAGES = ("theory", "meanfield", "validation")


def blocks(language: str) -> list[str]:
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL)
    return [text for name, text in fenced if name == language]


def run_module(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", *arguments], capture_output=True, text=True, cwd=ROOT, check=False)


@pytest.mark.parametrize("package", PACKAGES)
def test_the_tree_names_every_module(package: str) -> None:
    (tree,) = (block for block in blocks("") if block.startswith("theory/"))
    section = re.search(rf"^{package}/.*?\n((?:  .*\n)+)", tree, flags=re.MULTILINE)
    assert section is not None
    named = {line.split()[0] for line in section.group(1).splitlines()}
    on_disk = {path.name for path in (ROOT / package).glob("*.py") if path.name != "__init__.py"}
    assert {name for name in named if name.endswith(".py")} == on_disk


def test_the_printed_prediction_is_the_prediction() -> None:
    (block,) = (block for block in blocks("") if "--sync-interval 16" in block)
    command, printed = block.split("\n", 1)
    result = run_module(*command.removeprefix("$ python -m ").split())
    assert result.returncode == 0, result.stderr
    assert [line.rstrip() for line in result.stdout.splitlines()] == printed.splitlines()


def test_the_python_of_the_readme_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    for block in blocks("python"):
        exec(compile(block, "README.md", "exec"), {})  # the README is ours
    sys.modules["matplotlib.pyplot"].close("all")
    assert "collapsed" in capsys.readouterr().out
    assert {path.name for path in tmp_path.iterdir()} == {"examples", "diagram.nc", "phase_diagram.png"}


def test_the_experiment_of_the_readme_loads(tmp_path: Path) -> None:
    (block,) = blocks("toml")
    (tmp_path / "mine.toml").write_text(block)
    assert load_experiment(tmp_path / "mine.toml").grpo.epsilon == 0.2


def test_every_file_the_readme_links_exists() -> None:
    links = [link for link in re.findall(r"\]\(([^)]+)\)", README) if not link.startswith("http")]
    assert len(links) >= 3
    assert [link for link in links if not (ROOT / link).exists()] == []


FLAGS = {
    "meanfield.predict": "format help horizon learning-rate params risk runs sync-interval",
    "validation.run": "help store workers",
    "validation.compare": "help out",
}


@pytest.mark.parametrize("module", FLAGS)
def test_the_flags_are_pinned(module: str) -> None:
    result = run_module(module, "--help")
    assert result.returncode == 0
    assert " ".join(sorted(set(re.findall(r"^ +--([a-z-]+)", result.stdout, flags=re.MULTILINE)))) == FLAGS[module]

"""The page of the measured laws: from made-up sweeps to the page, and the page of the repository from its data."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from meanfield import results
from meanfield.command import run_command
from meanfield.plot_style import interval_styles
from meanfield.runs import read_runs, write_runs
from tests.support.measured import law_experiment, trace, write_store
from theory.claims import claim
from validation import compare
from validation.config import load_experiment
from validation.findings import declines
from validation.laws import figures, setting
from validation.laws.__main__ import NUMBERS_FILE, main, read_numbers, setting_folders
from validation.laws.page import render
from validation.laws.setting import Setting, read_setting
from validation.laws.text import CONTRASTS, FIGURES, SETTINGS

ROOT = Path(__file__).parents[2]
SWEEPS = {"momentum": (4, 8, 16, 32), "sort": (1, 8, 16)}
"""Sync intervals of the made-up sweeps; only the first has two halves to hold one against the other."""


def sometimes_degraded(run, max_steps):
    """The law, with a fall and a recovery in one cell, and a run that fails."""
    metrics = trace(run, max_steps)
    if (run.sync_interval, run.learning_rate) == (8, 0.01):
        metrics["learner_reward"][100:120] = 0.01
    if (run.sync_interval, run.learning_rate, run.seed) == (16, 0.05, 2):
        metrics["learner_reward"][30:] = np.nan
    return metrics


@pytest.fixture(scope="module")
def quick():
    """A search of a few generations in place of the whole one, and no report drawn."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(setting, "GENERATIONS", 2)
        patch.setattr("meanfield.fit_persistent.CLIMB_STEPS", 20)
        patch.setattr("validation.report.render", lambda comparison: comparison.experiment.name)
        yield


@pytest.fixture(scope="module")
def data(quick, tmp_path_factory):
    """What validation.compare wrote of two sweeps."""
    path = tmp_path_factory.mktemp("laws")
    stores = [
        write_store(path / f"{name}.zarr", law_experiment(name=name, sync_interval=S), trace=sometimes_degraded)
        for name, S in SWEEPS.items()
    ]
    assert run_command(compare.main, [*map(str, stores), "--out", str(path / "laws")]) == 0
    return path / "laws"


@pytest.fixture(scope="module")
def made(data):
    """The folder after the command, with its page beside it."""
    (data / "conclusions.md").write_text("**Written by hand.**\n", encoding="utf-8")
    assert run_command(main, [str(data), "--page", str(data.parent / "laws.md")]) == 0
    return data


@pytest.fixture(scope="module")
def page(made):
    return (made.parent / "laws.md").read_text(encoding="utf-8")


@pytest.fixture
def copy(data, tmp_path):
    """One sweep's data, to be broken."""
    return Path(shutil.copytree(data / "sort", tmp_path / "sort"))


# --- from stores to the page


def test_an_interval_looks_the_same_in_every_panel_and_in_the_one_legend(made, monkeypatch):
    """The sweeps have other intervals, so a style chosen for each panel would mean another S in each."""
    drawn = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, path, **_: drawn.append((path.stem, figure)))
    figures.draw_all([read_setting(folder) for folder in setting_folders(made)], made)
    budgets = dict(drawn)["budgets"]
    (legend,) = budgets.legends
    words = [text.get_text() for text in legend.get_texts()]
    intervals = [float(word.removeprefix("S = ")) for word in words if word.startswith("S = ")]
    assert intervals == sorted(set(intervals))
    styles = interval_styles({S for values in SWEEPS.values() for S in values})
    known = {to_hex(colour) for colour, _ in styles.values()}
    for axes in budgets.axes:
        shown = {to_hex(one.get_facecolor()[0]) for one in axes.collections if len(one.get_offsets())}
        assert shown <= known
    shared = [
        {to_hex(one.get_facecolor()[0]) for one in axes.collections if len(one.get_offsets())}
        for axes in budgets.axes
        if axes.collections
    ]
    assert to_hex(styles[8.0][0]) in set.intersection(*shared)


def test_the_command_writes_numbers_figures_and_page(made, page):
    assert {path.name for path in made.glob("*.png")} == {f"{name}.png" for name in FIGURES}
    for path in made.glob("*.png"):
        assert path.read_bytes().startswith(b"\x89PNG")
    assert read_numbers(made)["schema"] == "driftlaw.laws/1"
    assert page.startswith("# What the laws do on real runs")
    assert page.endswith("\n")
    assert "**Written by hand.**" in page


def test_sweeps_are_shown_in_their_order_and_others_by_name(made, tmp_path):
    assert [one["name"] for one in read_numbers(made)["settings"]] == ["sort", "momentum"]
    for name in ("zeta", "alpha", "sort", "transformer", "momentum"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "measures.nc").touch()
    (tmp_path / "other").mkdir()
    names = [path.name for path in setting_folders(tmp_path)]
    assert names == ["sort", "momentum", "transformer", "alpha", "zeta"]


def test_the_page_made_again_from_the_numbers_is_the_page(made, page):
    assert render(read_numbers(made), folder=made, page=made.parent / "laws.md") == page
    elsewhere = render(read_numbers(made), folder=made, page=made / "sub" / "laws.md")
    assert "](laws/phases.png)" in page
    assert "](../phases.png)" in elsewhere


def test_the_page_holds_verdicts_rules_and_numbers(made, page):
    for one in read_numbers(made)["settings"]:
        for judged in one["verdicts"]:
            assert f"- `{one['name']}`, {judged['claim']} ({judged['reading']}): {judged['sentence']}" in page
        exponent = one["boundary_exponent"]
        if exponent["estimate"] is not None:
            assert (
                f"{exponent['estimate']:.2f} [{exponent['low']:.2f}, {exponent['high']:.2f}]".replace("-", "−") in page
            )
    for claim_id in ("C1", "C2", "C9"):
        assert f"- {claim_id}: {claim(claim_id).verdict_rule}" in page
    assert "not known" not in page
    assert "None" not in page
    assert "nan" not in page


def test_every_table_is_whole(page):
    """Every row has as many cells as the header above it."""
    width = None
    rows = 0
    for line in page.splitlines():
        if not line.startswith("| "):
            width = None
            continue
        cells = line.replace("\\|", "").count("|")
        assert width in (None, cells), line
        width, rows = cells, rows + 1
    assert rows > 40


def test_the_page_says_which_runs_were_left_out_and_why(made, page):
    for one in read_numbers(made)["settings"]:
        for reason, count in one["left_out"].items():
            where, because = reason.split(": ", 1)
            assert f"| `{one['name']}` | {where} | {because} | {count} |" in page
    assert "| `sort` | all fits | failed, a reward that is not finite | 1 |" in page
    assert "| `sort` | all fits | fewer than 3 seeds in its cell | 2 |" in page


def test_a_contrast_is_shown_where_both_its_sweeps_are(page):
    shown = [one for one in CONTRASTS if one.question in page]
    assert {(one.base, one.changed) for one in shown} == {("sort", "momentum")} & {
        (one.base, one.changed) for one in CONTRASTS
    }


def test_the_words_are_those_of_the_experiments():
    """Every sweep of the page has an experiment file, a place in the order and a sentence."""
    files = {path.stem for path in (ROOT / "validation/experiments/laws").glob("*.toml")}
    assert files == set(SETTINGS)
    for name in files:
        assert load_experiment(ROOT / f"validation/experiments/laws/{name}.toml").name == name
    for one in CONTRASTS:
        assert {one.base, one.changed} <= files


# --- one sweep


def test_half_of_the_intervals_foretell_the_others_where_there_are_four(made):
    held = {one["name"]: one["holdout"] for one in read_numbers(made)["settings"]}
    assert held["sort"] is None
    assert len(held["momentum"]["scores"]) == 3


def test_a_decline_of_any_kind_counts_for_the_model_and_a_left_out_run_does_not(made):
    one = read_setting(made / "sort")
    used = declines(one._used)
    assert one.findings.runs["outcome"].value_counts()["degraded"] == 3
    assert set(used["outcome"]) == {"stable", "collapsed"}
    assert len(used) == len(one.findings.runs) - 3


def test_a_sweep_whose_cells_have_two_seeds_has_numbers_and_no_model(quick, tmp_path):
    store = write_store(
        tmp_path / "s.zarr", law_experiment(seed=(0, 1), sync_interval=(2, 4, 8, 16), learning_rate=(0.01, 0.05))
    )
    assert run_command(compare.main, [str(store), "--out", str(tmp_path / "out")]) == 0
    said = read_setting(tmp_path / "out").to_json()
    assert said["holdout"] is None
    assert said["honest_log_ratio"] is None
    assert {one["verdict"] for one in said["verdicts"]} == {"inconclusive"}


def test_a_smaller_model_is_never_more_likely(made):
    for one in read_numbers(made)["settings"]:
        assert one["honest_log_ratio"] is None or one["honest_log_ratio"] >= 0.0


def test_the_numbers_are_the_findings_of_the_kept_data(made):
    said = read_numbers(made)["settings"][0]
    findings = read_setting(made / "sort").findings
    assert {name: said[name] for name in findings.to_json()} == json.loads(json.dumps(findings.to_json()))
    assert said["outcomes"] == {"collapsed": 17, "degraded": 3, "failed": 1, "stable": 24}
    assert said["times_of_declines"]["num_events"] == said["times"]["num_events"] + 3
    assert said["boundary_exponent"] == findings.calibration.boundary_exponent.to_json()
    assert [one["claim"] for one in said["verdicts"]] == ["C1", "C1", "C2", "C2", "C9"]


# --- what is refused


def test_an_empty_folder_is_refused(tmp_path, capsys):
    for folder in (tmp_path, tmp_path / "none"):
        assert run_command(main, [str(folder), "--page", str(tmp_path / "laws.md")]) == 2
        said = capsys.readouterr().err
        assert f"DIR must hold subfolders with measures.nc, got {folder}. Make them with python -m" in said
        assert said.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_page_that_cannot_be_written_is_refused_before_any_work(data, tmp_path, capsys):
    assert run_command(main, [str(data), "--page", str(tmp_path / "none" / "laws.md")]) == 2
    said = capsys.readouterr().err
    assert said.startswith("--page must lie in an existing folder, got")
    assert "done" not in said


@pytest.mark.parametrize("name", ["momentum", "relabelled", "moved", "missing"])
def test_a_runs_table_that_is_not_of_the_measures_is_refused(copy, data, name, capsys):
    table = read_runs(copy / "runs.csv")
    if name == "momentum":
        shutil.copy(data / "momentum" / "runs.csv", copy / "runs.csv")
        message = "must hold the 45 runs of measures.nc, got 60. Both files must come from one call"
    elif name == "relabelled":
        table.loc[0, "outcome"] = "unknown"
        write_runs(table, copy / "runs.csv")
        message = "must hold what measures.nc does: S1-lr0.002-seed0 stable in row 1, got S1-lr0.002-seed0 unknown."
    elif name == "moved":
        row = int((table["outcome"] == "collapsed").to_numpy().argmax())
        table.loc[row, ["collapse_step", "collapse_step_high"]] += 1
        write_runs(table, copy / "runs.csv")
        message = f"in row {row + 1}"
    else:
        (copy / "runs.csv").unlink()
        message = "runs.csv"
    assert run_command(main, [str(copy.parent), "--page", str(copy.parent / "laws.md")]) == 2
    assert message in capsys.readouterr().err
    assert not (copy.parent / NUMBERS_FILE).exists()


def test_another_kind_of_data_is_refused(copy, capsys):
    from meanfield.parameters import MapParameters
    from meanfield.simulate import phase_diagram

    diagram = phase_diagram(
        MapParameters(critical_product=0.02, exit_radius=0.8), sync_intervals=[4], learning_rates=[1e-3], horizon=9
    )
    results.save(diagram, copy / "measures.nc")
    assert run_command(main, [str(copy.parent), "--page", str(copy.parent / "laws.md")]) == 2
    assert "measures.nc must have the schema driftlaw.measures/1, got driftlaw.phase_diagram" in capsys.readouterr().err


def test_a_setting_reads_itself_from_a_folder(copy):
    one = read_setting(copy)
    assert isinstance(one, Setting)
    assert one.name == "sort"
    assert one.boundary.x.min() <= 8
    assert one.boundary.x.max() >= 16

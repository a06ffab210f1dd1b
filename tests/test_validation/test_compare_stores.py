"""Several sweeps compared at once: a folder for each, and one table of them all."""

import contextlib
import io
import json
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from meanfield import results
from meanfield.command import run_command
from meanfield.labels import DEFAULT_RULE
from tests.support.measured import law_experiment, trace, write_store
from validation import compare
from validation.comparison import compare as compare_store
from validation.figures import report_figures
from validation.measures import measure
from validation.store import open_sweep

FILES = ["measures.nc", "report.html", "runs.csv", "summary.json"]


def holds(run, max_steps):
    """A run that never collapses."""
    metrics = trace(run, max_steps)
    reward = metrics["learner_reward"]
    return {**metrics, "learner_reward": np.where(np.isnan(reward), np.nan, 0.9)}


@pytest.fixture(scope="module", autouse=True)
def no_page():
    """Drawing the report is what takes time, and its tests are elsewhere."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("validation.report.render", lambda comparison: comparison.experiment.name)
        yield


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """The law, and a sweep in which nothing happens."""
    folder = tmp_path_factory.mktemp("stores")
    few = {"sync_interval": (1, 8), "learning_rate": (0.01, 0.02), "max_steps": 64}
    return (
        write_store(folder / "a.zarr", law_experiment(name="law", sync_interval=(8, 16, 32))),
        write_store(folder / "b.zarr", law_experiment(name="quiet", **few), trace=holds),
    )


@pytest.fixture(scope="module")
def ran(stores, tmp_path_factory):
    """The folder that one call wrote, and what it said."""
    out = tmp_path_factory.mktemp("out") / "new"
    with contextlib.redirect_stdout(io.StringIO()) as said:
        assert run_command(compare.main, [*map(str, stores), "--out", str(out)]) == 0
    return out, said.getvalue()


@pytest.fixture(scope="module")
def together(ran):
    return ran[0]


def test_each_store_has_a_folder_of_its_name(together):
    assert sorted(path.name for path in together.iterdir()) == ["law", "quiet"]
    for name in ("law", "quiet"):
        assert sorted(path.name for path in (together / name).iterdir()) == FILES


def test_the_files_of_a_store_are_those_it_has_alone(together, stores, tmp_path):
    assert run_command(compare.main, [str(stores[1]), "--out", str(tmp_path)]) == 0
    for name in ("runs.csv", "summary.json"):
        assert (tmp_path / name).read_text() == (together / "quiet" / name).read_text()


def test_the_measures_are_those_of_the_store(together, stores):
    for name, store in zip(("law", "quiet"), stores, strict=True):
        kept = results.load(together / name / "measures.nc")
        expected = measure(open_sweep(store), rule=DEFAULT_RULE)
        xr.testing.assert_equal(kept, expected)
        assert kept.attrs["shard_digests"] == expected.attrs["shard_digests"]


def overview(text: str) -> dict[str, list[str]]:
    """Rows of the last table of the output, by their first cell; cells are two blanks apart."""
    rows = text[text.rindex("sweep  ") :].splitlines()[2:]
    return {row.split()[0]: row.split() for row in rows if row.strip()}


def test_one_table_holds_the_exponents_of_all(stores, ran):
    said = ran[1]
    assert "law: 45 runs" in said
    assert "quiet: 12 runs, 12 stable" in said
    comparison = compare_store(stores[0])
    table = " ".join(said[said.rindex("boundary exponent") :].split())
    for number in (
        comparison.calibration.boundary_exponent,
        comparison.calibration.budget_exponent,
        comparison.findings.growth.predicted_exponent,
    ):
        assert f"{number.estimate:.3g}" in table
    rows = overview(said)
    assert set(rows) >= {"law", "quiet"}
    assert rows["quiet"].count("known") == 5
    assert rows["quiet"][-1] == rows["law"][-1] == "undecided"


def test_one_store_alone_has_no_overview(stores, tmp_path, capsys):
    assert run_command(compare.main, [str(stores[1]), "--out", str(tmp_path)]) == 0
    assert "drift predicts" not in capsys.readouterr().out


def test_two_stores_of_one_name_are_refused_before_any_work(stores, tmp_path, capsys):
    again = write_store(tmp_path / "again.zarr", law_experiment(name="law", sync_interval=(8,)))
    for pair in ((stores[0], again), (stores[0], stores[0])):
        assert run_command(compare.main, [*map(str, pair), "--out", str(tmp_path / "out")]) == 2
        captured = capsys.readouterr()
        assert "SWEEP.zarr must hold experiments of different names, got law. Compare them apart" in captured.err
        assert captured.out == ""
        assert not (tmp_path / "out").exists()


def test_what_is_no_store_among_stores_is_refused_before_any_work(stores, tmp_path, capsys):
    arguments = [str(stores[0]), str(tmp_path / "nothing.zarr"), "--out", str(tmp_path / "out")]
    assert run_command(compare.main, arguments) == 2
    assert "STORE must be a sweep store" in capsys.readouterr().err
    assert not Path(tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["../beside", "a/b", ".."])
def test_a_name_that_is_no_folder_of_its_own_is_refused(stores, tmp_path, capsys, name):
    odd = write_store(tmp_path / "odd.zarr", law_experiment(name=name, sync_interval=(8,)))
    assert run_command(compare.main, [str(stores[1]), str(odd), "--out", str(tmp_path / "in" / "out")]) == 2
    assert f"got {name}" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["odd.zarr"]


@pytest.mark.parametrize("intervals", [(1,), (1, 4), (2,)])
def test_sweeps_with_short_cycles_are_compared(tmp_path, intervals):
    """No lag beyond 8, or none at all: what needs them is not known, and nothing breaks."""
    small = law_experiment(sync_interval=intervals, learning_rate=(0.01, 0.05))
    comparison = compare_store(write_store(tmp_path / "s.zarr", small))
    assert comparison.findings.growth.with_long_lag.estimate is None
    json.dumps(comparison.to_json(), allow_nan=False)
    if intervals == (1,):
        assert "No cell of this sweep lies at a boundary." in {one.caption[-41:] for one in report_figures(comparison)}


@pytest.mark.parametrize("max_steps", [1, 3])
def test_the_shortest_sweeps_are_compared(tmp_path, max_steps):
    small = law_experiment(sync_interval=(1, 8), learning_rate=(0.01, 0.05), max_steps=max_steps)
    comparison = compare_store(write_store(tmp_path / "s.zarr", small))
    assert set(comparison.counts) <= {"stable", "unknown"}
    json.dumps(comparison.to_json(), allow_nan=False)


def test_a_sweep_of_two_seeds_is_compared_without_a_verdict(tmp_path, capsys):
    store = write_store(tmp_path / "s.zarr", law_experiment(seed=(0, 1), sync_interval=(8, 16)))
    assert run_command(compare.main, [str(store), "--out", str(tmp_path / "out")]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "No cell has 3 seeds" in said
    assert "supported" not in said

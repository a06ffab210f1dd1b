"""One shard trained again has the bits that were kept: a real sweep, from training to the check."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from meanfield import results
from meanfield.command import run_command
from meanfield.labels import DEFAULT_RULE
from tests.support.experiments import small_experiment
from validation import compare, report, rerun
from validation.config import Experiment
from validation.measures import measure
from validation.plan import Plan
from validation.run import prepare
from validation.store import open_sweep, stored_experiment
from validation.worker import run_shard


@pytest.fixture(scope="module")
def whole() -> Experiment:
    """Two shards; a cell needs three seeds."""
    return replace(small_experiment(), seed=(0, 1, 2))


@pytest.fixture(scope="module")
def folder(whole: Experiment, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The experiment file, and what validation.compare wrote of its sweep."""
    path = tmp_path_factory.mktemp("rerun")
    prepare(whole, path / "sweep.zarr")
    for shard in Plan(whole).shards:
        run_shard(path / "sweep.zarr", shard)
    assert run_command(compare.main, [str(path / "sweep.zarr"), "--out", str(path / "out")]) == 0
    (path / "small.toml").write_text(report.experiment_toml(whole))
    assert stored_experiment(path / "sweep.zarr") == whole
    return path


def again(folder: Path, *options: str, experiment: str = "small.toml", measures: str = "out/measures.nc") -> int:
    return run_command(rerun.main, [str(folder / experiment), "--measures", str(folder / measures), *options])


@pytest.mark.parametrize("shard", [0, 1])
def test_a_shard_trained_again_has_the_same_bits(folder: Path, shard: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert again(folder, "--shard", str(shard)) == 0
    assert capsys.readouterr().out == f"small, shard {shard} (6 runs of 12 steps): the same bits\n"


def test_other_bits_are_told_and_are_a_failure(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = results.load(folder / "out/measures.nc")
    digests = json.loads(kept.attrs["shard_digests"])
    kept.attrs["shard_digests"] = json.dumps([digests[1], digests[1]])
    results.save(kept, folder / "changed.nc")
    assert again(folder, measures="changed.nc") == 1
    said = capsys.readouterr().out
    assert said.startswith("small, shard 0 (6 runs of 12 steps): other bits; kept ones were made with {")
    assert '"torch"' in said
    assert again(folder, "--shard", "1", measures="changed.nc") == 0


def test_a_run_with_another_seed_has_other_bits(folder: Path, whole: Experiment) -> None:
    """What the digest is of, is what was trained: the same file under the seeds of another sweep does not pass."""
    other = replace(whole, seed=(0, 1, 3))
    (folder / "other.toml").write_text(report.experiment_toml(other))
    kept = results.load(folder / "out/measures.nc")
    kept.attrs["experiment"] = other.to_json()
    results.save(kept, folder / "relabelled.nc")
    assert again(folder, experiment="other.toml", measures="relabelled.nc") == 1


def test_a_shard_that_was_not_finished_is_refused_before_it_is_trained(
    folder: Path, whole: Experiment, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prepare(whole, tmp_path / "half.zarr")
    run_shard(tmp_path / "half.zarr", Plan(whole).shards[0])
    results.save(measure(open_sweep(tmp_path / "half.zarr"), rule=DEFAULT_RULE), folder / "half.nc")
    assert again(folder, measures="half.nc") == 0
    capsys.readouterr()
    assert again(folder, "--shard", "1", measures="half.nc") == 2
    assert "--shard must be finished in the kept measures, got 1" in capsys.readouterr().err


def test_what_does_not_belong_together_is_refused(
    folder: Path, whole: Experiment, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "longer.toml").write_text(report.experiment_toml(replace(whole, max_steps=13)))
    cases = [
        ({"experiment": "longer.toml"}, (), "--measures must be those of small, got"),
        ({}, ("--shard", "2"), "--shard must lie in 0 .. 1, got 2"),
        ({}, ("--shard", "-1"), "--shard must lie in 0 .. 1, got -1"),
        ({"measures": "none.nc"}, (), "must be a NetCDF file, got"),
        ({"measures": "out/report.html"}, (), "must be a NetCDF file, got"),
        ({"experiment": "none.toml"}, (), "EXPERIMENT must be a readable TOML file"),
    ]
    for files, options, message in cases:
        assert again(folder, *options, **files) == 2
        captured = capsys.readouterr()
        assert message in captured.err
        assert captured.err.count("\n") == 1
        assert captured.out == ""

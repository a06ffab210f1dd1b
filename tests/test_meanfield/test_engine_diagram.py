"""Phase diagrams on any axes, whole and refined, saved and loaded; single runs by name."""

import json
import math

import numpy as np
import pytest

from meanfield import results
from meanfield.engine.diagram import phase_diagram, refined_diagram
from meanfield.engine.ensemble import ensemble_diagram
from meanfield.engine.trajectory import trajectory
from meanfield.outcomes import Outcome
from tests.support.models import burst, memory_map, ornstein
from theory.errors import InputError
from theory.models.builders import persistent_drift, two_constraint
from theory.models.cycle import boundary_product

VALUES = {
    "h": 0.0,
    "k_w": 8.0,
    "k_s": 20.0,
    "rho": 0.3,
    "v": 1.0,
    "sigma": 1.0,
    "m0": 0.02,
    "R_batch": 0.3,
    "R_crit": 0.8,
}


def without(*names):
    return {name: value for name, value in VALUES.items() if name not in names}


def test_cells_of_any_axes_are_the_runs_of_their_values():
    axes = {"rho": [0.1, 0.9], "learning_rate": [1e-3, 4e-3, 2e-2], "sync_interval": [2, 16]}
    grid = phase_diagram(persistent_drift(), without("rho"), axes=axes, horizon=500)
    assert grid.outcome.dims == ("rho", "learning_rate", "sync_interval")
    assert set(np.unique(grid.outcome)) == {Outcome.STABLE.code, Outcome.COLLAPSED.code}
    exits = json.loads(grid.attrs["exits"])
    for rho in axes["rho"]:
        for rate in axes["learning_rate"]:
            for interval in axes["sync_interval"]:
                cell = grid.sel(rho=rho, learning_rate=rate, sync_interval=interval)
                values = {**VALUES, "rho": rho, "learning_rate": rate, "sync_interval": interval}
                run = trajectory(persistent_drift(), values, horizon=500)
                assert (run.exit or None) == (exits[int(cell.exit)] if cell.exit >= 0 else None)
                assert math.isnan(cell.collapse_step) if not run.exit else cell.collapse_step == run.collapse_step


def test_the_diagram_turns_where_theory_says():
    """With a long horizon small drift dies below S*eta = boundary_product and collapses above."""
    values = {**without(), "m0": 1e-3, "R_batch": 1e9, "R_crit": 50.0}
    product = boundary_product(persistent_drift(), values)
    rates = product / 8.0 * np.array([0.5, 0.98, 1.02, 2.0])
    axes = {"sync_interval": [8], "learning_rate": rates}
    grid = phase_diagram(persistent_drift(), values, axes=axes, horizon=10_000_000)
    assert grid.outcome.values.tolist() == [[0, 0, 2, 2]]


@pytest.mark.parametrize("shape", [(65, 40), (8, 33)])
def test_a_refined_diagram_is_the_whole_one_with_fewer_runs(shape):
    axes = {"sync_interval": np.arange(1, shape[0] + 1), "learning_rate": np.geomspace(1e-4, 3e-2, shape[1])}
    whole = phase_diagram(persistent_drift(), VALUES, axes=axes, horizon=1000)
    refined = refined_diagram(persistent_drift(), VALUES, axes=axes, horizon=1000)
    assert np.array_equal(whole.outcome, refined.outcome)
    differs = (whole.exit != refined.exit).values
    assert differs.mean() < 0.02  # which exit comes first changes in stripes narrower than a coarsest cell
    done = refined.simulated.values.astype(bool)
    assert not differs[done].any()
    assert done.mean() < 0.75
    assert np.allclose(whole.collapse_step.values[done], refined.collapse_step.values[done], equal_nan=True)
    assert np.all(np.isnan(refined.collapse_step.values[~done]))
    assert whole.simulated.values.all()


def test_refining_in_three_dimensions_and_along_one_point():
    axes = {"rho": np.linspace(0.0, 0.95, 17), "sync_interval": [8], "learning_rate": np.geomspace(1e-4, 3e-2, 33)}
    whole = phase_diagram(persistent_drift(), without("rho"), axes=axes, horizon=1000)
    refined = refined_diagram(persistent_drift(), without("rho"), axes=axes, horizon=1000, levels=2)
    assert np.array_equal(whole.outcome, refined.outcome)
    assert refined.simulated.values.mean() < 0.8


def test_diagrams_are_saved_and_loaded(tmp_path):
    grid = phase_diagram(
        two_constraint(), {"R_batch": 0.3, "R_crit": 0.8, "sync_interval": 8, "learning_rate": 1e-3},
        axes={"G_upd": [0.5, 2.0]}, horizon=1000,
    )  # fmt: skip
    assert results.load(results.save(grid, tmp_path / "grid.nc")).identical(grid)
    values = {"a": 1.0, "R": 1.1, "sync_interval": 8, "learning_rate": 0.05}
    noisy = ensemble_diagram(ornstein(), values, axes={"g": [1.0, 2.0]}, horizon=20, num_members=50)
    assert results.load(results.save(noisy, tmp_path / "noisy.nc")).identical(noisy)
    assert noisy.collapse_step_quantile.dims == ("g", "quantile")
    assert json.loads(noisy.attrs["parameters"])["model"] == "Ornstein-Uhlenbeck"


def test_a_failed_cell_is_neither_stable_nor_collapsed():
    values = {"R": 1e301, "sync_interval": 1000, "learning_rate": 1e-3}
    grid = phase_diagram(burst(), values, axes={"a": [0.1, 2.0]}, horizon=2000)
    assert grid.outcome.values.tolist() == [Outcome.STABLE.code, Outcome.FAILED.code]
    run = trajectory(burst(), {**values, "a": 2.0}, horizon=2000)
    assert run.failed
    assert run.exit == ""
    assert run.collapse_step == math.inf


@pytest.mark.parametrize(
    ("values", "axes", "words"),
    [
        (VALUES, {"sync_interval": [1, 2]}, "values must give every parameter, got none for learning_rate"),
        (without("h"), {"sync_interval": [2], "learning_rate": [1e-3]}, "got none for h"),
        (VALUES, {"sync_interval": [1.5], "learning_rate": [1e-3]}, "sync_interval must be an integer >= 1, or inf"),
        (
            VALUES,
            {"sync_interval": [2, 1], "learning_rate": [1e-3]},
            "axes: sync_interval must be a strictly increasing",
        ),
        (VALUES, {"sync_interval": [2], "learning_rate": [1e-3, math.nan]}, "axes: learning_rate must be a strictly"),
        (VALUES, {"sync_interval": [2], "learning_rate": [0.0, 1e-3]}, "learning_rate must be positive.*eta = 0"),
        ({**VALUES, "k_w": math.nan}, {"sync_interval": [2], "learning_rate": [1e-3]}, "k_w must be finite"),
    ],
)
def test_a_grid_that_cannot_be_is_refused(values, axes, words):
    for diagram in (phase_diagram, refined_diagram):
        with pytest.raises(InputError, match=words):
            diagram(persistent_drift(), values, axes=axes, horizon=100)


def test_a_run_by_name_takes_every_name_once():
    with pytest.raises(InputError, match="memory map: values must give every parameter, got none for sync_interval"):
        trajectory(memory_map(), {"h": 0.0, "b": 1.0, "u0": 0.1, "R": 1.0, "learning_rate": 0.1}, horizon=10)


def test_the_path_of_a_run_has_every_cycle():
    values = {"G_upd": 1.0, "R_batch": 0.3, "R_crit": 8.0, "sync_interval": 16, "learning_rate": 1e-3}
    run = trajectory(two_constraint(), values, horizon=2000)
    syncs = np.flatnonzero(np.diff(run.cumulative_learning_rate) == 0.0)
    assert run.cumulative_learning_rate[syncs] == pytest.approx(16e-3 * np.arange(1, 125), rel=1e-12)
    assert np.all(run.states["d"][syncs + 1] == 0.0)

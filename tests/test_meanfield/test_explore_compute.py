"""Numbers of the explorer against the slow twin, the boundary of the theory, and scipy."""

import dataclasses
import math

import numpy as np
import pytest
import scipy.linalg

from meanfield.explore import compute
from meanfield.explore.compute import FIRST_EXIT, STABLE
from meanfield.explore.path import chosen_run
from meanfield.explore.presets import PRESETS, model_of
from meanfield.explore.state import Axis, ExplorerState
from meanfield.explore.threshold import boundary, exponentials
from meanfield.hybrid import model_phase_diagram, simulate_model
from meanfield.outcomes import Outcome
from theory.models.cycle import boundary_product

LOCATED = 1e-6
"""Error that the boundary may have, of its halvings."""
WITHOUT_STIFFNESS = [name for name in PRESETS if name not in ("stale-quadratic", "lagged-oscillator")]
"""Models of which the twin can follow every cell: its steps are as long as the cycle is."""
WITH_THRESHOLD = [name for name in PRESETS if name != "two-constraint"]


def small(name, cells=9):
    return dataclasses.replace(ExplorerState.of(name), cells=cells, horizon=300)


def twin(state, x, y):
    model, values = model_of(state.model), state.run_values(x, y)
    run = {key: values[key] for key in ("sync_interval", "learning_rate")}
    bound = {"S": run["sync_interval"], "eta": run["learning_rate"]}
    numbers = {key: bound.get(key, values.get(key)) for key in model.parameter_names}
    return simulate_model(model, numbers, **run, horizon=state.horizon, steps_per_cycle=64)


@pytest.mark.parametrize("name", PRESETS)
def test_the_first_picture_shows_stable_and_collapsed_cells(name):
    state = dataclasses.replace(ExplorerState.of(name), cells=40)
    kind = compute.picture(state).kind
    assert 0.2 < np.mean(kind == STABLE) < 0.8
    middle = kind[kind.shape[0] // 4 : -kind.shape[0] // 4, kind.shape[1] // 4 : -kind.shape[1] // 4]
    assert 0.1 < np.mean(middle == STABLE) < 0.9
    exits = set(np.unique(kind)) - {STABLE}
    assert exits == {FIRST_EXIT + index for index in range(len(model_of(name).exits))}


@pytest.mark.parametrize("name", WITHOUT_STIFFNESS)
def test_rows_are_y_columns_are_x_and_cells_are_runs_of_the_twin(name):
    state = small(name, cells=13)
    picture = compute.picture(state)
    assert picture.kind.shape == (picture.y.size, picture.x.size)
    numbers = {key: state.numbers[key] for key in model_of(name).parameter_names}
    expected = model_phase_diagram(
        model_of(name), numbers, sync_intervals=picture.x, learning_rates=picture.y, horizon=300, steps_per_cycle=64
    )
    collapsed = (expected["outcome"] == Outcome.COLLAPSED.code).values.T
    assert np.array_equal(picture.kind >= FIRST_EXIT, collapsed)
    steps = expected["collapse_step"].values.T
    assert np.array_equal(np.isnan(picture.collapse_step), np.isnan(steps))
    assert np.nanmax(np.abs(picture.collapse_step - steps)) <= 1.0


@pytest.mark.parametrize("name", ["persistent-tanh", "two-constraint"])
def test_each_exit_has_its_kind(name):
    state = small(name, cells=6)
    picture = compute.picture(state)
    exits = [item.name for item in model_of(name).exits]
    for column, row in ((0, -1), (-1, -1), (-2, -2), (-1, -3), (2, 2), (0, 0)):
        run = chosen_run(state.select(picture.x[column], picture.y[row]))
        kind = FIRST_EXIT + exits.index(run.exit) if run.exit else STABLE
        assert picture.kind[row, column] == kind


def test_a_picture_over_two_parameters_uses_the_fixed_s_and_eta():
    state = small("persistent-tanh").with_axis("y", "k_s").with_axis("x", "rho")
    assert {"sync_interval", "learning_rate"} <= state.fixed.keys()
    picture = compute.picture(state)
    run = twin(state, float(picture.x[2]), float(picture.y[-1]))
    assert picture.collapse_step[-1, 2] == pytest.approx(run.collapse_step, abs=1.0)


@pytest.mark.parametrize("cells", [2, 5, 30])
def test_a_coarse_picture_has_the_cells_of_the_full_one_where_it_was_simulated(cells):
    state = dataclasses.replace(ExplorerState.of(), cells=cells, horizon=300)
    full, coarse = compute.picture(state), compute.coarse_picture(state)
    assert coarse.kind.shape == full.kind.shape
    kept = [np.unique([*range(0, size, compute.COARSE), size - 1]) for size in full.kind.shape]
    assert np.array_equal(coarse.kind[np.ix_(*kept)], full.kind[np.ix_(*kept)])
    assert np.array_equal(coarse.y, full.y)
    for row in range(full.kind.shape[0]):  # every row is one of those simulated, a nearest one
        distance = np.abs(np.log(full.y[kept[0]] / full.y[row]))
        nearest = kept[0][distance <= distance.min() + 1e-9]
        assert any(np.array_equal(coarse.kind[row], coarse.kind[other]) for other in nearest)


def test_cells_meet_halfway_in_the_logarithm():
    centres = np.array([1.0, 2.0, 4.0, 16.0])
    edges = compute.edges(centres)
    assert np.allclose(edges, [math.sqrt(0.5), math.sqrt(2), math.sqrt(8), 8.0, 32.0])
    assert np.all((edges[:-1] < centres) & (centres < edges[1:]))


@pytest.mark.parametrize("name", WITH_THRESHOLD)
def test_the_boundary_over_s_and_eta_is_that_of_the_theory(name):
    state = ExplorerState.of(name)
    x, y = boundary(state)
    shown = np.isfinite(x)
    assert shown.sum() > 30
    numbers = {key: state.numbers.get(key, 1e-3) for key in model_of(name).parameter_names}
    assert np.allclose(x[shown] * y[shown], boundary_product(model_of(name), numbers), rtol=LOCATED)


def test_the_boundary_over_two_parameters_is_that_of_the_theory():
    state = ExplorerState.of().with_axis("y", "k_s").with_axis("x", "rho")
    model = model_of(state.model)
    product = state.fixed["sync_interval"] * state.fixed["learning_rate"]
    x, y = boundary(state)
    for rho, k_s in np.array([x, y]).T[np.isfinite(x)][::12]:
        values = {**state.numbers, "rho": rho, "k_s": k_s}
        found = boundary_product(model, {key: values[key] for key in model.parameter_names})
        assert found == pytest.approx(product, rel=LOCATED)


def test_a_model_without_feedback_has_no_boundary_and_one_out_of_the_picture_is_empty():
    assert boundary(ExplorerState.of("two-constraint")) is None
    state = ExplorerState.of()
    below = state.with_axes(Axis("sync_interval", 1.0, 4.0), Axis("learning_rate", 1e-6, 1e-5))
    x, y = boundary(below)
    assert x.size == y.size == 0


def test_exponentials_of_many_matrices_are_those_of_scipy():
    rng = np.random.default_rng(7)
    matrices = rng.normal(size=(40, 3, 3)) * np.geomspace(1e-3, 30.0, 40)[:, None, None]
    matrices[0] = [[0, 1, 0], [0, 0, 1], [0, 0, 0]]  # no eigenvectors enough
    for found, matrix in zip(exponentials(matrices), matrices, strict=True):
        expected = scipy.linalg.expm(matrix)
        assert np.allclose(found, expected, rtol=0, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize("name", PRESETS)
def test_the_chosen_run_is_that_of_the_twin_through_every_cycle(name):
    state = dataclasses.replace(ExplorerState.of(name), horizon=395)
    run, expected = chosen_run(state), twin(state, *state.selected)
    assert run.exit == expected.exit
    assert run.collapse_step == pytest.approx(expected.collapse_step, abs=1.0)
    clocks, cycle = run.cumulative_learning_rate, state.selected[0] * state.selected[1]
    assert clocks[-1] > expected.cumulative_learning_rate[-1] - cycle
    assert np.diff(clocks).max() <= cycle * (1.0 + 1e-9)  # no cycle is passed over
    displacement = np.interp(clocks, expected.cumulative_learning_rate, expected.states["x"])  # no sync moves it
    assert np.allclose(run.states["x"], displacement, rtol=0.0, atol=1e-3 * np.abs(displacement).max())
    assert chosen_run(state.unselect()) is None


@pytest.mark.parametrize("name", WITHOUT_STIFFNESS)
def test_a_path_goes_on_to_the_horizon_and_bends_inside_a_cycle(name):
    state = dataclasses.replace(ExplorerState.of(name), horizon=500).select(300.0, 1e-4)
    longer = dataclasses.replace(state, horizon=2 * int(state.selected[0]))  # to the end of the cycle
    run, expected = chosen_run(state), twin(longer, *state.selected)
    clocks, eta = run.cumulative_learning_rate, state.selected[1]
    assert run.exit == ""
    assert np.sum(clocks < state.selected[0] * eta) >= 3
    assert clocks[-1] == pytest.approx(500 * eta, rel=1e-12)
    assert np.all(np.diff(clocks) >= 0.0)
    displacement = np.interp(clocks, expected.cumulative_learning_rate, expected.states["x"])
    assert np.allclose(run.states["x"], displacement, rtol=0.0, atol=2e-2 * np.abs(displacement).max())


@pytest.mark.parametrize("name", ["persistent-tanh", "two-constraint"])
def test_a_path_through_a_closed_solution_shows_every_sync(name):
    state = dataclasses.replace(ExplorerState.of(name), horizon=395)
    run, expected = chosen_run(state), twin(state, *state.selected)
    cycle = state.selected[0] * state.selected[1]
    middles = cycle * (np.arange(int(run.cumulative_learning_rate[-1] / cycle)) + 0.5)
    assert middles.size > 10
    for key, values in run.states.items():
        found = np.interp(middles, run.cumulative_learning_rate, values)
        there = np.interp(middles, expected.cumulative_learning_rate, expected.states[key])
        assert np.allclose(found, there, rtol=0.0, atol=5e-3 * np.abs(there).max())


@pytest.mark.parametrize("mu", [0.2, 0.5, 0.95])
def test_the_boundary_of_the_oscillator_is_right_where_its_multiplier_is_steep(mu):
    state = ExplorerState.of("lagged-oscillator").with_value("mu", mu)
    x, y = boundary(state)
    shown = np.isfinite(x)
    assert np.allclose(x[shown] * y[shown], (1.0 - mu) / state.numbers["K"], rtol=LOCATED)


def test_the_cell_and_the_run_tell_the_same():
    state = small("persistent-tanh", cells=12)
    picture = compute.picture(state)
    for row, y in enumerate(picture.y):
        run = chosen_run(state.select(picture.x[6], y))
        step = picture.collapse_step[row, 6]
        assert (math.isinf(run.collapse_step) and math.isnan(step)) or run.collapse_step == step


def test_limits_are_numbers_with_the_states_they_bound():
    state = ExplorerState.of().with_value("R_crit", 2.5)
    batch, region = compute.limits(state)
    assert (batch.name, batch.states, batch.limit) == ("batch", ("d",), 0.3)
    assert (region.name, region.states, region.limit) == ("region", ("x",), 2.5)
    turned = state.with_axis("y", "R_crit").select(16.0, 4.0)
    assert compute.limits(turned)[1].limit == turned.selected[1]


def test_runs_whose_numbers_fail_have_a_kind_of_their_own(monkeypatch):
    state = small("persistent-tanh", cells=3)
    plain = compute.diagram(state, *state.centres())
    plain["outcome"][0, 1] = Outcome.FAILED.code
    plain["exit"][0, 1] = -1
    monkeypatch.setattr(compute, "diagram", lambda *_: plain)
    assert compute.picture(state).kind[1, 0] == compute.FAILED

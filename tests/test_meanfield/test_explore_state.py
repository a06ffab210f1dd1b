"""States of the explorer: first values, changes, undo, links."""

import dataclasses
import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meanfield.engine.values import names_of
from meanfield.explore import presets
from meanfield.explore.history import History
from meanfield.explore.presets import PRESETS, Range, label_of, model_of, range_of
from meanfield.explore.state import Axis, ExplorerState, first_axis
from theory.errors import InputError
from theory.models.builders import two_constraint

positive = st.floats(min_value=1e-300, max_value=1e300)


@pytest.fixture
def state():
    return ExplorerState.of()


@pytest.mark.parametrize("name", PRESETS)
def test_every_model_has_a_value_a_range_and_words_for_every_quantity(name):
    state = ExplorerState.of(name)
    model = model_of(name)
    assert tuple(state.numbers) == names_of(model)
    for key in (*state.numbers, "horizon"):
        scale = range_of(name, key)
        value = float(state.horizon) if key == "horizon" else state.numbers[key]
        assert scale.low <= value <= scale.high
        assert scale.linear or scale.low > 0.0
        assert label_of(key)
    assert all(label_of(str(symbol)) for symbol in model.states)
    assert set(PRESETS[name].apart) <= {str(symbol) for symbol in model.states}


def test_the_explorer_begins_with_persistent_drift_over_s_and_eta(state):
    assert state.model == "persistent-tanh"
    assert (state.x.name, state.y.name) == ("sync_interval", "learning_rate")
    assert state.selected is not None


@pytest.mark.parametrize("scale", [Range(1e-4, 1.0), Range(0.0, 0.9, linear=True), Range(1.0, 1000.0, whole=True)])
def test_a_slider_gives_back_its_values(scale):
    for place in np.linspace(0.0, 1.0, 23):
        value = scale.value(float(place))
        assert scale.low <= value <= scale.high
        assert scale.value(scale.place(value)) == value
    assert (scale.value(0.0), scale.value(1.0)) == (scale.low, scale.high)
    assert scale.place(10.0 * scale.high) == 1.0


def test_sync_intervals_are_distinct_whole_numbers_with_both_ends():
    centres = Axis("sync_interval", 1.0, 1000.0).centres(100)
    assert np.all(np.diff(centres) >= 1.0)
    assert np.array_equal(centres, np.rint(centres))
    assert (centres[0], centres[-1]) == (1.0, 1000.0)
    assert Axis("sync_interval", 45.0, 4500.0).centres(200).size == 200


def test_other_axes_are_even_in_the_logarithm_and_end_exactly():
    centres = Axis("k_w", 0.3, 0.7).centres(50)
    assert np.allclose(np.diff(np.log(centres)), math.log(7 / 3) / 49)
    assert (centres[0], centres[-1]) == (0.3, 0.7)


def test_a_change_returns_a_new_state(state):
    changed = state.with_value("k_w", 3.0)
    assert changed.numbers == {**state.numbers, "k_w": 3.0}
    assert state.numbers["k_w"] != 3.0
    assert state.with_value("horizon", 500.0).horizon == 500
    with pytest.raises(dataclasses.FrozenInstanceError):
        state.horizon = 3


def test_the_chosen_cell_is_the_nearest_one_in_the_logarithm(state):
    x, y = state.centres()
    chosen = state.select(x[3] * 1.01, y[5] * 0.99).selected
    assert chosen == (x[3], y[5])
    between = math.sqrt(y[5] * y[6])
    assert state.select(1.0, between * 1.001).selected[1] == y[6]
    assert state.select(1e9, 1e-9).selected == (x[-1], y[0])
    assert state.unselect().selected is None


def test_the_chosen_run_stays_when_an_axis_changes(state):
    turned = state.with_axis("y", "k_s")
    assert turned.selected == (state.selected[0], state.numbers["k_s"])
    assert turned.run_values(*turned.selected) == state.run_values(*state.selected)
    assert turned.fixed["learning_rate"] == state.selected[1]
    assert "k_s" not in turned.fixed


def test_a_run_beside_the_axes_is_not_chosen_any_more(state):
    narrow = state.with_axes(Axis("sync_interval", 100.0, 200.0), state.y)
    assert narrow.selected is None


def test_two_axes_swap_when_one_is_asked_for_twice(state):
    swapped = state.with_axis("x", "learning_rate")
    assert (swapped.x, swapped.y) == (state.y, state.x)
    assert swapped.selected == state.selected[::-1]
    assert state.with_axis("x", "sync_interval") is state


def test_another_model_keeps_size_and_horizon(state):
    other = dataclasses.replace(state, cells=33, horizon=444).with_model("stale-quadratic")
    assert (other.model, other.cells, other.horizon) == ("stale-quadratic", 33, 444)
    assert set(other.numbers) == set(names_of(model_of("stale-quadratic")))


def test_undo_and_redo(state):
    one, two, three = (state.with_value("k_w", value) for value in (1.0, 2.0, 3.0))
    history = History(state).push(one).push(two)
    assert history.undo().present == one
    assert history.undo().undo().present == state
    assert history.undo().undo().undo().present == state
    assert history.undo().redo() == history
    assert history.redo() == history
    assert history.undo().push(three).redo().present == three
    assert history.push(two) == history


@given(
    values=st.lists(positive, min_size=9, max_size=9),
    rates=st.lists(positive, min_size=3, max_size=3, unique=True).map(sorted),
    cells=st.integers(2, 400),
    horizon=st.integers(1, 10**9),
    interval=st.integers(2, 10**6),
)
@settings(max_examples=60, deadline=None)
def test_a_link_gives_back_the_same_state_to_the_last_bit(values, rates, cells, horizon, interval):
    state = ExplorerState.of()
    for name, value in zip(state.numbers, values, strict=False):
        state = state.with_value(name, value)
    x, y = Axis("sync_interval", 1.0, float(interval)), Axis("learning_rate", rates[0], rates[2])
    state = dataclasses.replace(state, x=x, y=y, cells=cells, horizon=horizon, selected=(1.0, rates[1]))
    assert ExplorerState.from_link(state.to_link()) == state
    assert ExplorerState.from_link(f"https://example.org/explore?{state.to_link()}\n") == state
    assert ExplorerState.from_link(state.unselect().to_link()) == state.unselect()


@pytest.mark.parametrize("name", PRESETS)
def test_every_model_has_a_link(name):
    state = ExplorerState.of(name)
    assert ExplorerState.from_link(state.to_link()) == state


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("model=persistent-tanh&", "", "link: model must be given"),
        ("model=persistent-tanh", "model=persistent", "model must be a built-in model, got 'persistent'"),
        ("x_axis=sync_interval", "x_axis=S", "given its own parameters only, got 'S'"),
        ("x_axis=sync_interval,1.0,1000.0", "x_axis=sync_interval", "link: x_axis must be name,first,last"),
        ("sync_interval,1.0,1000.0", "sync_interval,1.0", "link: x_axis must be two numbers"),
        ("sync_interval,1.0,1000.0", "sync_interval,1.5,1000.0", "sync_interval must be an integer >= 1"),
        ("learning_rate,0.0001,0.1", "learning_rate,0.1,0.0001", "axis learning_rate must run from a positive"),
        ("learning_rate,0.0001,0.1", "learning_rate,0.0,0.1", "axis learning_rate must run from a positive"),
        ("learning_rate,0.0001,0.1", "sync_interval,1.0,2.0", "x and y must be two quantities"),
        ("cells=100", "cells=1", "cells must lie in 2..400"),
        ("cells=100", "cells=9999", "cells must lie in 2..400"),
        ("cells=100", "cells=many", "link: cells must be a number, got 'many'"),
        ("horizon=2000", "horizon=0.5", "link: horizon must be an integer >= 1"),
        ("k_w=8.0", "k_w=big", "link: k_w must be a number, got 'big'"),
        ("k_w=8.0", "k_w=-8.0", "k_w must be >= 0, got -8.0"),
        ("k_w=8.0", "k_w=inf", "k_w must be a finite number"),
        ("k_w=8.0", "k_w=nan", "k_w must be a finite number"),
        ("k_w=8.0&", "", "k_w must have one value, got 0"),
        ("k_w=8.0", "k_w=8.0&k_w=9.0", "link: k_w must be given once, got 2"),
        ("k_w=8.0", "k_w=8.0&zeal=9.0", "given its own parameters only, got 'zeal'"),
        ("&at=16.0,", "&at=", "link: at must be two numbers"),
        ("&at=16.0,", "&at=16.5,", "sync_interval must be an integer >= 1"),
        ("&at=16.0,", "&at=-16.0,", "selected sync_interval must be positive"),
        ("&", " ", "link: x_axis must be given"),
    ],
)
def test_a_bad_link_says_what_is_wrong(state, old, new, message):
    link = state.to_link()
    assert old in link
    with pytest.raises(InputError) as refused:
        ExplorerState.from_link(link.replace(old, new))
    assert message in str(refused.value)


@pytest.mark.parametrize("link", ["", "nothing", "a=1&&b", "?"])
def test_what_is_no_link_is_refused(link):
    with pytest.raises(InputError, match="link"):
        ExplorerState.from_link(link)


def test_unknown_names_are_refused(state):
    with pytest.raises(InputError, match="model must be a built-in model"):
        ExplorerState.of("tanh")
    with pytest.raises(InputError, match="name must be one of h, k_w"):
        state.with_value("zeal", 1.0)
    with pytest.raises(InputError, match="axis must be one of h, k_w"):
        state.with_axis("x", "horizon")


def test_the_axis_of_a_range_from_zero_begins_above_it():
    assert first_axis("persistent-tanh", "h").low > 0.0


def test_states_need_no_matplotlib():
    code = "import sys, meanfield.explore.history, meanfield.explore.compute; print('matplotlib' in sys.modules)"
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert child.stdout == "False\n"


def test_a_model_of_ones_own_is_offered_beside_the_others(monkeypatch):
    monkeypatch.setattr(presets, "PRESETS", dict(presets.PRESETS))
    own = dataclasses.replace(two_constraint(), name="my own")
    name = presets.offer(own, {"G_upd": 1.0, "R_batch": 0.0, "R_crit": 2.0}, learning_rates=(1e-4, 1e-2))
    state = ExplorerState.of(name)
    assert presets.model_of(name) == own
    assert (state.y.low, state.y.high) == (1e-4, 1e-2)
    assert presets.range_of(name, "R_batch") == presets.Range(0.0, 1.0, linear=True)
    assert ExplorerState.from_link(state.to_link()) == state
    assert presets.label_of("my_letter") == "my_letter"
    with pytest.raises(InputError, match="model must have no noise, got"):
        presets.offer(dataclasses.replace(own, noise=(1, 0)), {"G_upd": 1.0, "R_batch": 1.0, "R_crit": 2.0})
    with pytest.raises(InputError, match="must give every parameter, got none for R_crit"):
        presets.offer(own, {"G_upd": 1.0, "R_batch": 1.0})
    presets.model_of.cache_clear()

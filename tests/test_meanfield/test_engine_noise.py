"""Walks with noise: the generator, a plain twin with the same numbers, moments, strong and weak order."""

import dataclasses
import math

import numba
import numpy as np
import pytest
import sympy as sp

from meanfield.engine.bracket import find_boundary, find_noisy_boundary
from meanfield.engine.compiled import EulerMaruyama, compile_model
from meanfield.engine.ensemble import ensemble_diagram, wilson
from meanfield.engine.members import Members
from meanfield.hybrid import FAILED
from tests.support.models import geometric, members, ornstein
from tests.support.philox import normal_numbers
from theory.errors import InputError
from theory.models.builders import two_constraint

Z = 4.0
"""Standard errors that a statistic may be off: 6e-5 false alarms each, with the seeds fixed."""
OU = {"a": 2.0, "g": 0.5, "R": 1e9}
RATE, STEPS = 0.01, 100


@pytest.mark.parametrize(
    ("words", "counter", "key"),
    [
        ("6627e8d5 e169c58d bc57ac4c 9b00dbd8", (0, 0, 0, 0), (0, 0)),
        ("408f276d 41c83b0e a20bc7c6 6d5451fd", (0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2),
        (
            "d16cfe09 94fdcceb 5001e420 24126ea1",
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xA4093822, 0x299F31D0),
        ),
    ],
)
def test_the_generator_gives_the_published_words(words, counter, key):
    """Known answers of Random123 for Philox 4x32 with ten rounds."""
    philox = compile_model(ornstein())._module._philox

    @numba.njit
    def run(numbers):
        return philox(numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], numbers[5])

    found = run(np.array([*counter, *key], dtype=np.uint64))
    assert " ".join(f"{int(word):08x}" for word in found) == words


def test_equal_to_a_plain_loop_with_the_same_numbers():
    """Two members, two steps an update, exits and syncs, numbers drawn by a generator written again in Python."""
    model, method = geometric(), EulerMaruyama(seed=2**40 + 7, steps_per_update=2)
    runs = members(model, 3.0, 0.1, a=np.array([-1.0, -0.2]), g=0.8, R=1.6)
    runs = Members(np.abs(runs.parameters), runs.sync_interval, runs.learning_rate, np.array([5, 2**33 + 1]))
    found = compile_model(model).exits(runs, horizon=40, method=method)
    for row, number in enumerate(runs.number):
        a, g, R = runs.parameters[:, row]
        x, y, clock = 1.0, 1.0, math.inf
        dt = 0.1 / 2
        for step, normal in zip(range(80), normal_numbers(method.seed, int(number)), strict=False):
            x += dt * (-a * x) + math.sqrt(0.1 * dt) * g * x * normal
            if x >= R:
                clock = dt * (step + 1)
                break
            y = y / 2 if (step + 1) % 6 == 0 else y
        assert found.states[:, row] == pytest.approx([y, x], rel=1e-12)
        assert found.clock[row] == pytest.approx(clock, rel=1e-14)


def test_moments_of_the_discrete_process():
    """x_t of an Ornstein-Uhlenbeck process with one step an update: mean and variance are geometric sums."""
    n = 20_000
    runs = members(ornstein(), np.full(n, 8.0), RATE, **OU)
    x = compile_model(ornstein()).exits(runs, horizon=STEPS, method=EulerMaruyama(seed=1)).states[0]
    kept = 1.0 - 2.0 * RATE
    mean, variance = kept**STEPS, (0.5 * RATE) ** 2 * (1.0 - kept ** (2 * STEPS)) / (1.0 - kept**2)
    assert abs(x.mean() - mean) < Z * math.sqrt(variance / n)
    assert abs(x.var() / variance - 1.0) < Z * math.sqrt(2.0 / n)
    lagged = np.corrcoef(x[:-1], x[1:])[0, 1]
    assert abs(lagged) < Z / math.sqrt(n)  # members of a block are independent


def test_strong_order_one_half_where_noise_depends_on_the_state():
    """Geometric Brownian motion is exact in the sum of its own increments: every member has its own exact end."""
    n, a, g, T = 2000, 0.5, 1.0, 16
    eta = 1.0 / T  # ends at tau = 1, diffusion eta*g**2 per unit
    errors = []
    parts = np.array([4, 16, 64])
    for part in parts:
        method = EulerMaruyama(seed=9, steps_per_update=int(part))
        runs = members(geometric(), np.full(n, 1e6), eta, a=a, g=g * math.sqrt(T), R=1e9)
        found = compile_model(geometric()).exits(runs, horizon=T, method=method)
        normals = np.array([list(normal_numbers(9, number, T * part)) for number in range(64)])
        brownian = math.sqrt(eta / part / 1.0) * normals.sum(axis=1)
        exact = np.exp(-a - 0.5 * g**2 + g * brownian)
        errors.append(np.mean(np.abs(found.states[1, :64] - exact)))
    slope = np.polyfit(np.log(parts), np.log(errors), 1)[0]
    assert slope == pytest.approx(-0.5, abs=0.2)  # 64 members; -1 is far


def test_strong_order_one_where_noise_is_additive():
    """Given its increments W_i the exact end is normal with a known mean and width: both go down as the step."""
    a, T = 2.0, 16
    eta = 1.0 / T
    errors, parts = [], np.array([1, 4, 16])
    for part in parts:
        runs = members(ornstein(), np.full(64, 1e6), eta, a=a, g=math.sqrt(T), R=1e9)
        found = compile_model(ornstein()).exits(
            runs, horizon=T, method=EulerMaruyama(seed=4, steps_per_update=int(part))
        )
        dt = eta / part
        normals = np.array([list(normal_numbers(4, number, T * part)) for number in range(64)])
        ends = 1.0 - dt * np.arange(1, T * part + 1)
        mean_kernel = np.exp(-a * ends) * (1.0 - math.exp(-a * dt)) / (a * dt)
        given = math.exp(-a) + math.sqrt(dt) * normals @ mean_kernel
        width = np.sum(np.exp(-2 * a * ends) * (1.0 - math.exp(-2 * a * dt)) / (2 * a) - dt * mean_kernel**2)
        errors.append(math.sqrt(np.mean((found.states[0] - given) ** 2) + width))
    slope = np.polyfit(np.log(parts), np.log(errors), 1)[0]
    assert slope == pytest.approx(-1.0, abs=0.1)


def test_weak_order_one():
    """Second moment of geometric Brownian motion: the sample shows the scheme's own, whose error goes as the step."""
    n, a, g, T = 40_000, 1.0, 0.5, 4
    eta, exact = 1.0 / T, math.exp(-2 * a + g**2)
    errors = []
    parts = np.array([2, 4, 8])
    for part in parts:
        runs = members(geometric(), np.full(n, 1e6), eta, a=a, g=g * math.sqrt(T), R=1e9)
        x = compile_model(geometric()).exits(runs, horizon=T, method=EulerMaruyama(3, int(part))).states[1]
        h = eta / part
        scheme = ((1.0 - a * h) ** 2 + g**2 * h) ** (T * part)
        moment = np.mean(x**2)
        assert abs(moment - scheme) < Z * np.std(x**2) / math.sqrt(n)
        errors.append(abs(scheme - exact))
    assert np.polyfit(np.log(parts), np.log(errors), 1)[0] == pytest.approx(-1.0, abs=0.1)


def test_results_depend_on_seed_and_number_only():
    compiled, n = compile_model(ornstein()), 200
    runs = members(ornstein(), np.resize([4.0, 8.0, 16.0], n), RATE, a=2.0, g=3.0, R=1.02)
    once = compiled.exits(runs, horizon=50, method=EulerMaruyama(seed=5), num_threads=1)
    again = compiled.exits(runs, horizon=50, method=EulerMaruyama(seed=5), num_threads=2)
    assert np.array_equal(once.states, again.states)
    other = compiled.exits(runs, horizon=50, method=EulerMaruyama(seed=6))
    assert not np.array_equal(once.states, other.states)
    picked = np.array([150, 3, 77])
    few = Members(runs.parameters[:, picked], runs.sync_interval[picked], runs.learning_rate[picked], picked)
    alone = compiled.exits(few, horizon=50, method=EulerMaruyama(seed=5))
    assert np.array_equal(alone.states, once.states[:, picked])  # fixed steps: not even the block matters


def test_replay_gives_any_member_again_bit_for_bit():
    compiled, method = compile_model(ornstein()), EulerMaruyama(seed=5)
    runs = members(ornstein(), np.resize([4.0, 8.0, 16.0], 100), RATE, a=2.0, g=3.0, R=1.02)
    found = compiled.exits(runs, horizon=50, method=method)
    left = np.flatnonzero(found.code >= 0)
    assert 5 < left.size < 95
    for member in (int(left[0]), int(left[-1]), int(np.flatnonzero(found.code < 0)[0])):
        path = compiled.replay(runs, member, horizon=50, method=method)
        assert path.states["x"][-1] == found.states[0, member]
        if found.code[member] >= 0:
            assert path.cumulative_learning_rate[-1] == found.clock[member]
            assert abs(path.states["x"][-1]) >= 1.02 > np.max(np.abs(path.states["x"][:-1]))


def test_a_noisy_run_that_blows_up_fails():
    model = geometric()
    runs = members(model, 8.0, 1.0, a=0.0, g=1e200, R=1e308)
    assert compile_model(model).exits(runs, horizon=9).code.tolist() == [FAILED]


# ---- ensembles ----


def test_first_passage_of_a_brownian_motion():
    """Reflection principle: the level is passed by time T with probability erfc(level/sqrt(2 T)); steps are looked at.

    A walk that is looked at only once a step passes late: the level counts as higher by 0.5826 standard deviations of
    a step (Siegmund 1985), which the wanted value takes in.
    """
    values, axes = {"a": 0.0, "g": 1.0, "R": 1.08, "sync_interval": 8}, {"learning_rate": [0.01, 0.02]}
    method = EulerMaruyama(seed=2)
    grid = ensemble_diagram(ornstein(), values, axes=axes, horizon=400, num_members=20_000, method=method)
    for row, eta in enumerate(axes["learning_rate"]):
        level = 0.08 + 0.5826 * eta  # |x| = 1.08 from x = 1; the other side is 2 away and never met
        wanted = math.erfc(level / (math.sqrt(2 * 400) * eta))
        low, high = grid.collapse_probability_low.values[row], grid.collapse_probability_high.values[row]
        assert low < wanted < high
        median = grid.collapse_step_quantile.sel(quantile=0.5).values[row]
        assert math.erfc(level / (math.sqrt(2 * median) * eta)) == pytest.approx(0.5, abs=0.02)
    assert np.allclose(grid.exit_share.sum("exit") + grid.failed_share, grid.collapse_probability)


def test_quantiles_and_means_are_those_of_the_runs():
    """Ten runs: the third to collapse is the quantile 0.3, and one that comes too late is inf."""
    values, axes = {"a": 0.0, "R": 1.05, "sync_interval": 8, "learning_rate": 0.01}, {"g": [0.4, 1.0]}
    grid = ensemble_diagram(
        ornstein(), values, axes=axes, horizon=60, num_members=10, quantiles=[0.25, 0.3, 0.95], method=EulerMaruyama(4)
    )
    for row, g in enumerate(axes["g"]):
        runs = members(ornstein(), np.full(10, 8.0), 0.01, a=0.0, g=g, R=1.05)
        runs = Members(runs.parameters, runs.sync_interval, runs.learning_rate, np.arange(10) + 10 * row)
        clock = compile_model(ornstein()).exits(runs, horizon=60, method=EulerMaruyama(4)).clock
        steps = np.sort(np.round(clock / 0.01))
        assert np.array_equal(grid.collapse_step_quantile.values[row], steps[[2, 2, 9]])
        assert grid.collapse_probability.values[row] == np.isfinite(steps).mean()
        assert grid.collapse_step_mean.values[row] == pytest.approx(steps[np.isfinite(steps)].mean())
    assert 0.0 < grid.collapse_probability.values[0] < 1.0


def test_interval_of_a_share_covers_as_it_says():
    rng = np.random.default_rng(0)
    for p in (0.02, 0.3, 0.5):
        shares = rng.binomial(100, p, 4000) / 100
        low, high = wilson(shares, 100)
        covered = np.mean((low <= p) & (p <= high))
        assert 0.85 < covered < 0.96
    assert wilson(np.array([0.0, 1.0]), 10)[0][0] == 0.0


def test_boundary_of_the_two_constraints_lies_in_its_bracket():
    """Below: eta*T*G = R_crit; above S = horizon*R_batch/R_crit: S*eta*G = R_batch."""
    values = {"G_upd": 1.3, "R_batch": 0.02, "R_crit": 0.7}
    intervals = np.array([1.0, 4.0, 16.0, 64.0])
    found = find_boundary(
        two_constraint(),
        values,
        along="learning_rate",
        bracket=(1e-6, 1.0),
        over=("sync_interval", intervals),
        horizon=512,
    )
    exact = np.minimum(0.7 / (1.3 * 512), 0.02 / (1.3 * intervals))
    assert np.all((found.low <= exact * (1 + 1e-9)) & (exact * (1 - 1e-9) <= found.high))
    assert np.all(found.high / found.low - 1.0 <= 1e-6)
    nowhere = find_boundary(
        two_constraint(),
        values,
        along="learning_rate",
        bracket=(1e-6, 1e-5),
        over=("sync_interval", intervals),
        horizon=512,
    )
    assert np.all(np.isnan(nowhere.estimate))


def test_noisy_boundary_is_where_half_of_the_runs_pass():
    """Brownian motion from 1 to R: the median passage scales as eta, so half pass by T at eta = gap/(g z sqrt(T))."""
    values = {"a": 0.0, "R": 1.2, "sync_interval": 8}
    found = find_noisy_boundary(
        ornstein(), values, along="learning_rate", bracket=(1e-3, 1.0),
        over=("g", [0.5, 1.0]), horizon=400, num_members=4000, method=EulerMaruyama(seed=8),
    )  # fmt: skip
    z = 0.6744897501960817
    exact = 0.2 / (np.array([0.5, 1.0]) * (z * math.sqrt(400) - 0.5826))
    assert np.all((found.low < exact) & (exact < found.high))
    assert np.all(found.high / found.low < 1.1)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"num_members": 0}, "num_members must be an integer >= 1"),
        ({"quantiles": [0.5, 1.5]}, "quantiles must be numbers between 0 and 1"),
        ({"axes": {"g": [1.0, 1.0]}}, "axes: g must be a strictly increasing list"),
        ({"axes": {"speed": [1.0]}}, "Ornstein-Uhlenbeck: values must name parameters of the model, got 'speed'"),
        ({"axes": {"a": [1.0]}}, "axes must hold no name that has a value, got 'a'"),
        ({"axes": {}}, "Ornstein-Uhlenbeck: values must give every parameter, got none for g"),
    ],
)
def test_arguments_of_an_ensemble_are_checked(arguments, words):
    values = {"a": 1.0, "R": 2.0, "sync_interval": 8, "learning_rate": 0.01}
    with pytest.raises(InputError, match=words):
        ensemble_diagram(ornstein(), values, **{"axes": {"g": [1.0]}, "horizon": 10, "num_members": 5, **arguments})


@pytest.mark.parametrize("seed", [-1, 2**64, 0.5])
def test_a_seed_is_a_64_bit_number(seed):
    with pytest.raises(InputError, match="seed must be an integer from 0"):
        EulerMaruyama(seed=seed)


def test_noise_needs_one_expression_for_each_state():
    with pytest.raises(InputError, match="noise must hold one expression for each of the 1 states"):
        dataclasses.replace(ornstein(), noise=(sp.Integer(1), sp.Integer(1)))

import json

import numpy as np
import pytest

from meanfield.estimate import Estimate
from meanfield.grids import NUM_ATOMS, log_axis, low_discrepancy, posterior_atoms

GRID_QUANTILE = 0.02
"""Quantiles of atoms against exact ones, in standard deviations: a fifth of the last grid's step."""


def test_unknown_is_null_everywhere():
    assert json.loads(json.dumps(Estimate.unknown().to_json())) == {
        "estimate": None,
        "low": None,
        "high": None,
        "identified": False,
    }


def test_interval_tests_of_an_unknown_number_are_false():
    assert not Estimate.unknown().contains(0.0)
    assert not Estimate.unknown().excludes(0.0)
    assert not Estimate(1.0, 0.9, 1.1, identified=False).excludes(0.0)
    assert Estimate(1.0, 0.9, 1.1).excludes(0.0)
    assert Estimate(1.0, 0.9, 1.1).contains(1.1)


@pytest.mark.parametrize("correlation", [0.0, 0.9])
def test_atoms_of_a_gaussian_have_its_quantiles(correlation):
    """A narrow, tilted peak far from the middle of a wide prior, which the coarse grid steps over."""

    def log_posterior(x, y, log_scale):
        u, v = (x[:, None] - 3.7) / 0.02, (y[None, :] + 0.4) / 0.05
        quadratic = (u**2 - 2 * correlation * u * v + v**2) / (1 - correlation**2)
        widening = np.exp(2 * log_scale)
        return -0.5 * quadratic[..., None] / widening - 12 * log_scale

    axes = (np.linspace(-10, 10, 41), np.linspace(-5, 5, 41), log_axis((1.0, 30.0), 9))
    x, y, scale = posterior_atoms(log_posterior, axes, fixed=2)
    narrow = np.exp(scale) < 1.3
    z = (x[narrow] - 3.7) / 0.02
    assert narrow.sum() > 500
    assert np.std(y[narrow]) == pytest.approx(0.05 * np.mean(np.exp(scale[narrow])), rel=0.1)
    for probability, expected in ((0.05, -1.645), (0.5, 0.0), (0.95, 1.645)):
        assert np.quantile(z, probability) == pytest.approx(expected, abs=0.15)


def test_atoms_of_a_plateau_fill_it_evenly():
    def log_posterior(x, log_scale):
        inside = (x > 0.25) & (x < 0.75)
        return np.where(inside, 0.0, -1e3)[:, None] + 0.0 * log_scale

    x, _ = posterior_atoms(log_posterior, (np.linspace(-4, 4, 65), np.zeros(1)), fixed=1)
    assert np.quantile(x, [0.05, 0.5, 0.95]) == pytest.approx([0.275, 0.5, 0.725], abs=GRID_QUANTILE)


def test_atoms_stay_inside_the_prior():
    x, _ = posterior_atoms(lambda x, s: 50 * x[:, None] + 0 * s, (np.linspace(-1, 3, 29), np.zeros(1)), fixed=1)
    assert x.max() <= 3.0
    assert x.min() > 2.5


def test_an_axis_of_one_point_stays():
    x, y = posterior_atoms(lambda x, y: -(x[:, None] ** 2) + 0 * y, (np.linspace(-3, 3, 31), np.ones(1)), fixed=1)
    assert np.all(y == 1.0)
    assert np.std(x) == pytest.approx(np.sqrt(0.5), rel=0.02)
    assert len(np.unique(x)) == NUM_ATOMS


def test_offsets_are_even_in_every_axis():
    sequence = low_discrepancy(4)
    assert sequence.shape == (4, NUM_ATOMS)
    assert np.all((sequence >= 0) & (sequence < 1))
    for axis in sequence:
        assert np.max(np.abs(np.sort(axis) - np.arange(NUM_ATOMS) / NUM_ATOMS)) < 0.01

import math

import numpy as np
import pytest
import xarray as xr

from meanfield import results
from meanfield.parameters import MapParameters
from meanfield.simulate import phase_diagram, simulate
from theory.errors import InputError

MODEL = MapParameters(critical_product=0.02, exit_radius=0.8)


@pytest.fixture
def diagram():
    return phase_diagram(MODEL, sync_intervals=[4, 16, math.inf], learning_rates=[1e-3, 8e-3], horizon=900)


@pytest.fixture
def sweep():
    shape = (2, 3, 1, 5)
    reward = np.arange(30.0).reshape(shape)
    reward[..., ::2] = np.nan
    return results.build(
        results.SWEEP,
        coordinates={
            "sync_interval": [4, math.inf],
            "learning_rate": [1e-3, 2e-3, 4e-3],
            "seed": [7],
            "step": np.arange(1, 6),
        },
        variables={item.name: reward + number for number, item in enumerate(results.SWEEP.variables)},
        attributes={"reward_floor": 0.001, "initial_reward": 0.6, "experiment": "{}", "versions": "{}"},
    )


def test_predicted_and_measured_data_share_their_names():
    for schema in (results.PHASE_DIAGRAM, results.TRAJECTORY):
        for name in set(schema.table) & set(results.SWEEP.table):
            assert schema.table[name].unit == results.SWEEP.table[name].unit
            assert schema.table[name].dtype == results.SWEEP.table[name].dtype


def test_the_sweep_has_the_published_form(sweep):
    assert sweep.learner_reward.dims == ("sync_interval", "learning_rate", "seed", "step")
    assert [item.name for item in results.SWEEP.variables] == [
        "learner_reward",
        "rollout_reward",
        "entropy",
        "drift",
        "behavior_k3",
        "clip_fraction",
        "grad_norm",
        "effective_sample_size",
        "gradient_cosine",
        "pair_cosine",
        "cycle_cosine",
        "displacement_since_sync",
        "displacement_since_start",
    ]
    assert sweep.drift.attrs["units"] == "nat"
    assert sweep.step.attrs["units"] == "optimizer step"
    assert sweep.step.dtype == np.int64
    assert sweep.sync_interval.dtype == np.float64


def test_what_is_saved_comes_back_identical(diagram, sweep, tmp_path):
    run = simulate(MODEL, sync_interval=math.inf, learning_rate=1e-3, horizon=9)
    for dataset in (diagram, sweep, run):
        path = results.save(dataset, tmp_path / "data.nc")
        back = results.load(path)
        xr.testing.assert_identical(back, dataset)
        assert {name: back[name].dtype for name in back.variables} == {
            name: dataset[name].dtype for name in dataset.variables
        }
    assert [path.name for path in tmp_path.iterdir()] == ["data.nc"]


def test_a_failed_write_leaves_the_old_file(diagram, tmp_path, monkeypatch):
    path = results.save(diagram, tmp_path / "data.nc")
    before = path.read_bytes()

    def half(self, target, **options):
        target.write_bytes(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(xr.Dataset, "to_netcdf", half)
    with pytest.raises(OSError, match="disk full"):
        results.save(diagram, path)
    assert path.read_bytes() == before
    assert [item.name for item in tmp_path.iterdir()] == ["data.nc"]


def test_a_reader_of_the_old_file_keeps_it(diagram, tmp_path):
    path = results.save(diagram, tmp_path / "data.nc")
    before = path.read_bytes()
    with path.open("rb") as reader:
        results.save(diagram.assign_attrs(horizon=7), path)
        assert reader.read() == before
    assert path.read_bytes() != before


def test_missing_variable(diagram):
    with pytest.raises(InputError, match=r"phase_diagram/1: outcome must be given, got nothing\. It is code of"):
        results.check(diagram.drop_vars("outcome"), results.PHASE_DIAGRAM)


def test_unknown_variable(diagram):
    with pytest.raises(InputError, match=r"phase_diagram/1: outcomes must be a known name, got it\. Known: sync_int"):
        results.check(diagram.assign(outcomes=diagram.outcome), results.PHASE_DIAGRAM)
    with pytest.raises(InputError, match=r"phase_diagram/1: outcomes must be a known name"):
        results.build(results.PHASE_DIAGRAM, coordinates={}, variables={"outcomes": 1}, attributes={})


def test_wrong_dimensions(diagram):
    with pytest.raises(InputError, match=r"outcome must have the dimensions \('sync_.*got \('lear.*Transpose it to"):
        results.check(diagram.transpose("learning_rate", "sync_interval"), results.PHASE_DIAGRAM)


def test_wrong_dtype(diagram):
    with pytest.raises(InputError, match=r"outcome must be of dtype int8, got int64\. Cast it to int8\."):
        results.check(diagram.assign(outcome=diagram.outcome.astype("int64")), results.PHASE_DIAGRAM)


def test_missing_attribute(diagram):
    del diagram.attrs["horizon"]
    with pytest.raises(InputError, match=r"attribute horizon must be given, got nothing\. Set attrs\['horizon'\]\."):
        results.check(diagram, results.PHASE_DIAGRAM)


def test_an_integer_beyond_the_file_format(sweep, tmp_path):
    large = sweep.assign_coords(seed=("seed", [2**40], sweep.seed.attrs))
    with pytest.raises(InputError, match=r"seed must fit 32 bits, got 1099511627776\. Use smaller integers\."):
        results.save(large, tmp_path / "data.nc")
    assert list(tmp_path.iterdir()) == []


def test_a_missing_folder(diagram, tmp_path):
    with pytest.raises(InputError, match=r"path must lie in an existing folder, got .*Create .* first\."):
        results.save(diagram, tmp_path / "none" / "data.nc")


@pytest.mark.parametrize("content", [None, b"", b"not a data file", b"CDF\x01"])
def test_an_unreadable_file(content, tmp_path):
    path = tmp_path / "data.nc"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=r"path must be a NetCDF file, got .*Reading said: "):
        results.load(path)


def test_a_dataset_without_a_schema_of_ours(diagram, tmp_path):
    del diagram.attrs["schema"]
    with pytest.raises(InputError, match=r"attribute schema must be one of driftlaw\.sweep/2, .*, got None\. Build it"):
        results.save(diagram, tmp_path / "data.nc")
    diagram.to_netcdf(tmp_path / "other.nc", engine="scipy")
    with pytest.raises(InputError, match="attribute schema must be one of"):
        results.load(tmp_path / "other.nc")

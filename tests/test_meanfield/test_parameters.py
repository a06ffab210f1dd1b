import math
import os
from dataclasses import FrozenInstanceError

import pytest

from meanfield.parameters import DEFAULT_INITIAL_MEMORY, MapParameters
from theory.errors import InputError


def test_defaults():
    parameters = MapParameters(critical_product=1, exit_radius=50)
    assert parameters.honest_signal == 0.0
    assert parameters.initial_memory == DEFAULT_INITIAL_MEMORY == 1e-3
    assert parameters.learning_rate_ceiling is None
    assert isinstance(parameters.exit_radius, float)
    with pytest.raises(FrozenInstanceError):
        parameters.exit_radius = 1.0


@pytest.mark.parametrize("name", ["critical_product", "exit_radius", "learning_rate_ceiling"])
@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf, "0.02", True])
def test_positive_parameters(name, value):
    values = {"critical_product": 0.02, "exit_radius": 0.8, name: value}
    with pytest.raises(InputError, match=rf"{name} must be a positive finite number, got {value!r}\. "):
        MapParameters(**values)


@pytest.mark.parametrize("value", [-0.1, math.nan, math.inf, None])
def test_honest_signal(value):
    with pytest.raises(InputError, match=r"honest_signal must be a finite number >= 0, got .*use 0\."):
        MapParameters(critical_product=0.02, exit_radius=0.8, honest_signal=value)


@pytest.mark.parametrize("value", [-0.1, 1.1, math.nan])
def test_initial_memory(value):
    with pytest.raises(InputError, match=r"initial_memory must be a number from 0 to 1, got .*default is 0\.001\."):
        MapParameters(critical_product=0.02, exit_radius=0.8, initial_memory=value)


@pytest.mark.parametrize(
    "parameters",
    [
        MapParameters(critical_product=0.02, exit_radius=0.8),
        MapParameters(
            critical_product=1e-17 / 3,
            exit_radius=2e30,
            honest_signal=0.1,
            initial_memory=1.0,
            learning_rate_ceiling=1e-5,
        ),
    ],
)
def test_toml_round_trip_is_exact(parameters, tmp_path):
    path = tmp_path / "model.toml"
    path.write_text(parameters.to_toml())
    assert MapParameters.from_toml(path) == parameters


def test_unknown_key_names_the_nearest(tmp_path):
    path = tmp_path / "model.toml"
    path.write_text("critical_prodct = 0.02\nexit_radius = 0.8\n")
    with pytest.raises(
        InputError,
        match=r"model\.toml: key must be known, got 'critical_prodct'\. The nearest is critical_product\.",
    ):
        MapParameters.from_toml(path)


def test_missing_key(tmp_path):
    path = tmp_path / "model.toml"
    path.write_text("critical_product = 0.02\n")
    with pytest.raises(InputError, match=r"model\.toml: exit_radius must be given, got nothing\. Add a line"):
        MapParameters.from_toml(path)


@pytest.mark.parametrize(
    "content",
    [
        "critical_product = \n",
        b"\xff\xfe",
        "critical_product = " + "[" * 100_000,
        "critical_product = " + "9" * 5000,
    ],
    ids=["empty", "binary", "nested", "huge"],
)
def test_unreadable_file(content, tmp_path):
    path = tmp_path / "model.toml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError, match=r"model\.toml must be a readable TOML file, got .*`key = number`") as error:
        MapParameters.from_toml(path)
    assert len(str(error.value)) < 500


def test_paths_that_cannot_be_read(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "pipe.toml")
    (tmp_path / "model.toml").write_text("critical_product = 0.02\nexit_radius = 0.8\n")
    expected = {
        "none.toml": r"none\.toml must be a readable TOML file, got no such file\. Check the path",
        "pipe.toml": "must be a readable TOML file, got not a regular file",
        ".": "must be a readable TOML file, got a directory",
        "x" * 5000: "must be a readable TOML file, got File name too long",
    }
    for name, text in expected.items():
        with pytest.raises(InputError, match=text) as error:
            MapParameters.from_toml(tmp_path / name)
        assert len(str(error.value)) < 400

    def refuse(*_args, **_keywords):
        raise PermissionError(13, "Permission denied")

    for call in ("read_text", "stat"):
        monkeypatch.setattr(type(tmp_path), call, refuse)
        with pytest.raises(InputError, match=r"model\.toml must be a readable TOML file, got Permission denied"):
            MapParameters.from_toml(tmp_path / "model.toml")


def test_an_integer_beyond_any_float_is_refused(tmp_path):
    path = tmp_path / "model.toml"
    path.write_text(f"critical_product = {'9' * 400}\nexit_radius = 0.8\n")
    with pytest.raises(InputError, match=r"critical_product must be a positive finite number, got 9+\.\.\.\. Give"):
        MapParameters.from_toml(path)
    with pytest.raises(InputError, match="exit_radius must be a positive finite number, got a huge int"):
        MapParameters(critical_product=0.02, exit_radius=10**5000)


def test_a_bad_value_in_a_file_is_named(tmp_path):
    path = tmp_path / "model.toml"
    path.write_text('critical_product = "0.02"\nexit_radius = 0.8\n')
    with pytest.raises(InputError, match=r"critical_product must be a positive finite number, got '0.02'"):
        MapParameters.from_toml(path)

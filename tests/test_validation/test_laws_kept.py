"""The page of the repository is made from its numbers, and the numbers from the kept data: nothing is patched here."""

import json
from pathlib import Path

import pytest

from validation.laws.__main__ import NUMBERS_FILE, read_numbers, setting_folders
from validation.laws.page import render
from validation.laws.setting import read_setting
from validation.laws.text import FIGURES, SETTINGS

ROOT = Path(__file__).parents[2]
LAWS = ROOT / "docs" / "laws"
SAME = 1e-9
"""The same numbers computed again on another machine: thousands of roundings of 1e-16, and searches that stop."""


def kept_numbers():
    assert (LAWS / NUMBERS_FILE).is_file(), f"{LAWS / NUMBERS_FILE} is not there: make it with make laws"
    return read_numbers(LAWS)


def test_the_page_of_the_repository_is_made_from_its_numbers():
    numbers, page = kept_numbers(), ROOT / "docs" / "laws.md"
    assert page.read_text(encoding="utf-8") == render(numbers, folder=LAWS, page=page)


def test_every_sweep_of_the_repository_has_its_data_and_its_figures():
    names = [one["name"] for one in kept_numbers()["settings"]]
    assert names == [path.name for path in setting_folders(LAWS)] == list(SETTINGS)
    assert {path.stem for path in LAWS.glob("*.png")} == set(FIGURES)


def test_the_smallest_sweep_of_the_repository_gives_its_numbers_again():
    numbers = {one["name"]: one for one in kept_numbers()["settings"]}
    smallest = min(numbers, key=lambda name: sum(numbers[name]["outcomes"].values()))
    found = json.loads(json.dumps(read_setting(LAWS / smallest).to_json(), allow_nan=False))
    assert list(same(found, numbers[smallest], smallest)) == []


def same(found, kept, place):
    """Where two JSON values differ by more than rounding."""
    if isinstance(kept, dict) and isinstance(found, dict) and set(found) == set(kept):
        for key in kept:
            yield from same(found[key], kept[key], f"{place}.{key}")
    elif isinstance(kept, list) and isinstance(found, list) and len(found) == len(kept):
        for index, pair in enumerate(zip(found, kept, strict=True)):
            yield from same(*pair, f"{place}[{index}]")
    elif isinstance(kept, float) and isinstance(found, float):
        if found != pytest.approx(kept, rel=SAME):
            yield f"{place}: {found} is not {kept}"
    elif type(found) is not type(kept) or found != kept:
        yield f"{place}: {found} is not {kept}"


def test_the_comparison_of_numbers_sees_a_change():
    one = {"a": [1.0, {"b": "x"}], "c": None, "d": 1}
    assert list(same(json.loads(json.dumps(one)), one, "o")) == []
    changes = ({"a": [1.0 + 1e-8, {"b": "x"}]}, {"a": [1.0]}, {"c": 0.0}, {"d": 2}, {"a": [1.0, {"b": "y"}]})
    for change in changes:
        assert len(list(same({**one, **change}, one, "o"))) == 1

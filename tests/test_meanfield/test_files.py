import os
from pathlib import Path

import pytest

from meanfield.files import write_text, write_whole


def test_text_is_written_as_it_is_and_nothing_stays_beside(tmp_path: Path) -> None:
    write_text(tmp_path / "a.txt", "η\nb\r\n")
    write_text(tmp_path / "a.txt", "η\nc\r\n")
    assert (tmp_path / "a.txt").read_bytes() == "η\nc\r\n".encode()
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_a_failed_write_leaves_the_old_file_and_nothing_beside(tmp_path: Path) -> None:
    write_text(tmp_path / "a.txt", "old")

    def half(beside: Path) -> None:
        beside.write_text("ha")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        write_whole(tmp_path / "a.txt", half)
    assert (tmp_path / "a.txt").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_the_bytes_are_synced_before_the_rename(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there = []
    monkeypatch.setattr(os, "fsync", lambda _number: there.append((tmp_path / "a.txt").exists()))
    write_text(tmp_path / "a.txt", "new")
    assert there == [False]

import json
import math
import os
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from meanfield.observations import observe
from meanfield.runs import check_runs, read_runs, write_runs
from theory.errors import InputError

HEADER = "run,sync_interval,learning_rate,steps,outcome,collapse_step,collapse_step_low,collapse_step_high"
GOOD = "a,8,1e-3,800,collapsed,300,290,300"


def write(tmp_path, *rows, header=HEADER, name="runs.csv"):
    path = tmp_path / name
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return path


def test_a_good_table_is_read_with_types_and_unknown_columns(tmp_path):
    path = write(tmp_path, GOOD + ",x", "b,inf,1e-3,800,stable,,,,y", header=HEADER + ",note")
    frame = read_runs(path)
    assert frame["sync_interval"].tolist() == [8.0, np.inf]
    assert frame["note"].tolist() == ["x", "y"]
    assert np.isnan(frame["collapse_step"][1])
    assert frame["steps"].dtype == np.float64


def test_collapse_columns_may_be_missing(tmp_path):
    path = write(tmp_path, "a,8,1e-3,800,stable", header="run,sync_interval,learning_rate,steps,outcome")
    assert np.isnan(read_runs(path)["collapse_step_low"][0])


def test_jsonl_reads_as_csv(tmp_path):
    path = tmp_path / "runs.jsonl"
    rows = [
        {"run": 1, "sync_interval": 8, "learning_rate": 1e-3, "steps": 800, "outcome": "collapsed",
         "collapse_step": 300},
        {"run": 2, "sync_interval": 8, "learning_rate": 1e-4, "steps": 800, "outcome": "stable",
         "collapse_step": None},
    ]  # fmt: skip
    path.write_text("\n\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    frame = read_runs(path)
    assert frame["run"].tolist() == ["1", "2"]
    assert frame["collapse_step"][0] == 300


def test_written_tables_read_back_equal(tmp_path):
    frame = read_runs(write(tmp_path, GOOD, "b,8,1.0000000001e-4,800,stable,,,"))
    write_runs(frame, tmp_path / "again.csv")
    pd.testing.assert_frame_equal(read_runs(tmp_path / "again.csv"), frame)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["again.csv", "runs.csv"]


def test_an_invalid_table_is_not_written(tmp_path):
    frame = read_runs(write(tmp_path, GOOD)).assign(steps=0)
    with pytest.raises(InputError, match=r"row 1: steps must be an integer from 1 to 1e\+12, got 0"):
        write_runs(frame, tmp_path / "bad.csv")
    assert not (tmp_path / "bad.csv").exists()
    with pytest.raises(InputError, match="path must lie in an existing folder"):
        write_runs(frame, tmp_path / "nowhere" / "bad.csv")


BAD_ROWS = {
    "b,0,1e-3,800,stable,,,": "row 2: sync_interval must be >= 1, got 0. For a fully on-policy run use 1.",
    "b,nan,1e-3,800,stable,,,": "row 2: sync_interval must be >= 1, got nan",
    "b,8,-1e-3,800,stable,,,": "row 2: learning_rate must lie in 1e-30..1e+30, got -0.001",
    "b,8,nan,800,stable,,,": "row 2: learning_rate must lie in 1e-30..1e+30, got nan",
    "b,8,,800,stable,,,": "row 2: learning_rate must lie in 1e-30..1e+30, got nan",
    "b,8,inf,800,stable,,,": "row 2: learning_rate must lie in 1e-30..1e+30, got inf",
    "b,8,1e-3x,800,stable,,,": "row 2: learning_rate must be a number, got '1e-3x'. Write it like 8 or 1e-6.",
    "b,8,1e-3,0,stable,,,": "row 2: steps must be an integer from 1 to 1e+12, got 0",
    "b,8,1e-3,10.5,stable,,,": "row 2: steps must be an integer from 1 to 1e+12, got 10.5",
    "b,8,1e-3,800,colapsed,,,": "row 2: outcome must be one of stable, degraded, collapsed, failed, unknown, "
    "got 'colapsed'. Did you mean collapsed?",
    "b,8,1e-3,800,zzz,,,": "If it is not known write unknown.",
    "a,8,1e-3,800,stable,,,": "row 2: run must name each run once, got 'a'. Remove the duplicate or rename it.",
    "b,8,1e-3,800,stable,300,,": "row 2: collapse_step must be empty for a stable run, got 300",
    "b,8,1e-3,800,stable,,10,20": "row 2: collapse_step_low must be empty for a stable run, got 10",
    "b,8,1e-3,800,collapsed,801,,": "row 2: collapse_step must lie in 1..steps = 800, got 801",
    "b,8,1e-3,800,collapsed,0,,": "row 2: collapse_step must lie in 1..steps = 800, got 0",
    "b,8,1e-3,800,collapsed,,-1,20": "row 2: collapse_step_low must lie in 0..steps = 800, got -1",
    "b,8,1e-3,800,collapsed,,30,20": "row 2: collapse_step_low must be below collapse_step_high = 20, got 30",
    "b,8,1e-3,800,collapsed,,30,": "row 2: collapse_step_high must be given beside the other end, got nothing",
    "b,8,1e-3,800,collapsed,50,20,30": "row 2: collapse_step must lie in [20, 30], got 50",
    "b,8,1e-31,800,stable,,,": "row 2: learning_rate must lie in 1e-30..1e+30, got 1e-31. Give the step size",
    "b,8,1e31,800,stable,,,": "row 2: learning_rate must lie in 1e-30..1e+30, got 1e+31",
    "b,2e12,1e-3,800,stable,,,": "row 2: sync_interval must be at most 1e+12, got 2e+12. For a policy that is "
    "never refreshed write inf.",
    "b,8,1e-3,2e12,stable,,,": "row 2: steps must be an integer from 1 to 1e+12, got 2e+12",
    "b,8,1e-3,inf,stable,,,": "row 2: steps must be an integer from 1 to 1e+12, got inf",
    "b,8,1e-3,1_000,stable,,,": "row 2: steps must be a number, got '1_000'. Write it like 8 or 1e-6.",
    "b,8,1e-3,٨٠٠,stable,,,": "row 2: steps must be a number, got '٨٠٠'",
    "b,0x8,1e-3,800,stable,,,": "row 2: sync_interval must be a number, got '0x8'",
    "b,1e999,1e-3,800,stable,,,": "row 2: sync_interval must be a number, got '1e999'",
    "b,8,.,800,stable,,,": "row 2: learning_rate must be a number, got '.'",
    " ,8,1e-3,800,stable,,,": "row 2: run must be a name, got ' '. Name each run, like S8-lr1e-6-seed0.",
    "b,8,1e-3,800": "row 2 must have 8 cells as the header has, got 4",
}


@pytest.mark.parametrize("row", BAD_ROWS)
def test_bad_rows_are_named(tmp_path, row):
    with pytest.raises(InputError) as error:
        read_runs(write(tmp_path, GOOD, row))
    assert BAD_ROWS[row] in str(error.value)
    assert "\n" not in str(error.value)


def one_run(**cells):
    values = {"run": "a", "sync_interval": 8, "learning_rate": 1e-3, "steps": 800, "outcome": "collapsed"} | cells
    return pd.DataFrame({name: [value] for name, value in values.items()}, dtype=object)


@pytest.mark.parametrize("cell", ["800", " 8e2 ", "+800.", "00800", np.int32(800), Decimal(800), 800])
def test_numbers_in_plain_notation_are_read(cell):
    assert check_runs(one_run(steps=cell))["steps"].tolist() == [800.0]


@pytest.mark.parametrize("cell", ["inf", "+Infinity", "INF", math.inf])
def test_never_refreshed_is_a_word_or_a_float(cell):
    assert check_runs(one_run(sync_interval=cell))["sync_interval"].tolist() == [math.inf]


@pytest.mark.parametrize("cell", ["", " ", "nan", "NaN", None, pd.NA, math.nan])
def test_an_onset_may_be_empty(cell):
    assert np.isnan(check_runs(one_run(collapse_step=cell))["collapse_step"][0])


@pytest.mark.parametrize(
    ("cell", "said"),
    [(10**400, "1000"), (10**5000, "a huge int"), (Decimal("sNaN"), "Decimal"), (b"8", "b'8'"), (1j, "1j"), ([8], "8")],
    ids=["long", "huge", "signalling", "bytes", "complex", "list"],
)
def test_cells_of_another_type_are_not_numbers(cell, said):
    with pytest.raises(InputError, match="row 1: sync_interval must be a number, got ") as error:
        check_runs(one_run(sync_interval=cell))
    assert said in str(error.value)
    assert len(str(error.value)) < 300


@pytest.mark.parametrize("cell", [None, math.nan, pd.NA, "", "\t", ["a"], {"a": 1}])
def test_a_run_without_a_name_is_refused(cell):
    with pytest.raises(InputError, match="row 1: run must be a name, got "):
        check_runs(one_run(run=cell))


def test_a_true_value_is_not_a_number():
    frame = pd.DataFrame(
        {"run": ["a"], "sync_interval": [True], "learning_rate": [1e-3], "steps": [8], "outcome": ["stable"]},
        dtype=object,
    )
    with pytest.raises(InputError, match="row 1: sync_interval must be a number, got True"):
        check_runs(frame)


def test_files_that_are_no_table(tmp_path):
    (tmp_path / "dir.csv").mkdir()
    (tmp_path / "binary.csv").write_bytes(b"\x89PNG\xff\xfe\x00")
    (tmp_path / "nul.csv").write_bytes(b"run\0steps")
    (tmp_path / "empty.csv").write_text("  \n", encoding="utf-8")
    (tmp_path / "open.csv").write_text('run,steps\n"a,3\n', encoding="utf-8")
    (tmp_path / "twice.csv").write_text("run,run\n1,2\n", encoding="utf-8")
    (tmp_path / "bad.jsonl").write_text("{run: 1}\n", encoding="utf-8")
    (tmp_path / "list.jsonl").write_text("[1]\n", encoding="utf-8")
    expected = {
        "dir.csv": r"be a readable file, got .*dir.csv \(a directory\)",
        "none.csv": r"be a readable file, got .*none.csv \(no such file\)",
        "binary.csv": r"be text in UTF-8, got .*\(binary\)",
        "nul.csv": r"be a table with a header, got .*\(binary\)",
        "empty.csv": r"be a table with a header, got .*\(empty\)",
        "open.csv": "be valid CSV",
        "twice.csv": "runs: header must name each column once, got 'run'",
        "bad.jsonl": "line 1 must be a JSON object",
        "list.jsonl": r"line 1 must be a JSON object, got \[1\]",
        "runs.xls": "must end in .csv, .jsonl or .parquet",
    }
    for name, text in expected.items():
        with pytest.raises(InputError, match=text):
            read_runs(tmp_path / name)


def test_a_table_without_rows_and_without_a_column(tmp_path):
    with pytest.raises(InputError, match="runs must hold at least one run"):
        read_runs(write(tmp_path))
    with pytest.raises(
        InputError, match=r"have the column learning_rate, got .*Rename learning_rates to learning_rate\."
    ):
        read_runs(write(tmp_path, header="run,sync_interval,learning_rates,steps,outcome"))
    with pytest.raises(InputError, match=r"have the column steps, got .*Add the column steps\."):
        read_runs(write(tmp_path, header="run,sync_interval,learning_rate,outcome"))


HEADERS = {
    "run,S,lr,T,status": "have the columns sync_interval, learning_rate, steps, outcome, got "
    "['run', 'S', 'lr', 'T', 'status']. Rename S to sync_interval, lr to learning_rate, T to steps, status to outcome.",
    "name,sync interval,eta,num_steps,label": "Rename name to run, sync interval to sync_interval, eta to "
    "learning_rate, num_steps to steps, label to outcome.",
    "runs,LR,status": "Rename runs to run, LR to learning_rate, status to outcome. "
    "Add the columns sync_interval, steps.",
    "x,seed,collapse_step": "Add the columns run, sync_interval, learning_rate, steps, outcome.",
    "run,steps,outcome,learning_rate,lag": "Add the column sync_interval.",
}


@pytest.mark.parametrize("header", HEADERS)
def test_all_missing_columns_are_said_at_once_with_what_to_rename(tmp_path, header):
    with pytest.raises(InputError) as error:
        read_runs(write(tmp_path, header=header))
    assert HEADERS[header] in str(error.value)


@pytest.mark.parametrize("separator", [";", "\t"])
def test_another_separator_is_named(tmp_path, separator):
    path = write(tmp_path, GOOD.replace(",", separator), header=HEADER.replace(",", separator))
    with pytest.raises(InputError, match=r"cells must be separated by commas, got 'run.*Save the table again with"):
        read_runs(path)


@pytest.mark.parametrize("name", ["runs.csv", "runs.jsonl"])
def test_comment_lines_are_not_allowed(tmp_path, name):
    path = write(tmp_path, HEADER, GOOD, header="# my runs, all of them", name=name)
    with pytest.raises(
        InputError, match=r"line 1 must not be a comment, .*got '# my runs.*Remove the lines that start with #"
    ):
        read_runs(path)


JSON_ROW = '{"run": "a", "sync_interval": %s, "learning_rate": 1e-3, "steps": 800, "outcome": "stable"}'
BAD_LINES = {
    JSON_ROW % ("9" * 400): "line 2 must be a JSON object, got an integer of 400 digits (at most 30)",
    JSON_ROW % ("9" * 5000): "line 2 must be a JSON object, got an integer of 5000 digits (at most 30)",
    JSON_ROW % "1e999": "line 2 must be a JSON object, got a number too large, 1e999 (at most 1e308)",
    JSON_ROW % '8, "steps": 8': "line 2 must be a JSON object, got the key 'steps' twice. Write one object a line.",
    "[" * 100_000: "line 2 must be a JSON object, got brackets nested too deeply. Write one flat object a line.",
    JSON_ROW % ("[" * 500 + "]" * 500): "row 2: sync_interval must be a number, got [[[",
    JSON_ROW % '"1_000"': "row 2: sync_interval must be a number, got '1_000'",
    (JSON_ROW % 8).replace('"a"', "null"): "row 2: run must be a name, got None",
    (JSON_ROW % 8).replace('"run"', '"name"'): "row 2: run must be a name, got nan",
}


@pytest.mark.parametrize("line", BAD_LINES, ids=range(len(BAD_LINES)))
def test_bad_lines_of_json_are_named(tmp_path, line):
    path = write(tmp_path, line, header=(JSON_ROW % 8).replace('"a"', '"first"'), name="runs.jsonl")
    with pytest.raises(InputError) as error:
        read_runs(path)
    assert BAD_LINES[line] in str(error.value)
    assert len(str(error.value)) < 400


def test_a_line_of_json_ends_at_a_newline_only(tmp_path):
    path = tmp_path / "runs.jsonl"
    path.write_bytes((JSON_ROW % 8).replace('"a"', '"a\u2028b"').encode() + b"\r\n")
    assert read_runs(path)["run"].tolist() == ["a\u2028b"]


@pytest.mark.parametrize(
    "name", ["plain", "a,b", 'say "a"', "two\nlines", "two\r\nlines", "carriage\rreturn", " spaced ", "nan", "007"]
)
def test_writing_and_reading_are_exact_inverses(tmp_path, name):
    frame = check_runs(one_run(run=name, collapse_step=3, note="", learning_rate=0.1 + 0.2))
    frame = pd.concat([frame, check_runs(one_run(run="b", sync_interval=math.inf, learning_rate=1e30, note="#x"))])
    write_runs(frame, tmp_path / "runs.csv")
    again = read_runs(tmp_path / "runs.csv")
    pd.testing.assert_frame_equal(again, check_runs(frame), check_column_type=False)
    assert again["run"].tolist() == [name, "b"]
    first = (tmp_path / "runs.csv").read_bytes()
    write_runs(again, tmp_path / "runs.csv")
    assert (tmp_path / "runs.csv").read_bytes() == first


def test_paths_that_cannot_be_read(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "pipe.csv")
    expected = {
        tmp_path / "pipe.csv": r"runs must be a readable file, got .*pipe.csv \(not a regular file\)\. Check the path",
        tmp_path / f"{'x' * 5000}.csv": r"runs must be a readable file, got .*\(File name too long\)",
        tmp_path / "nul\0.csv": r"runs must be a readable file, got .*\(embedded null byte\)",
        write(tmp_path, GOOD) / "below.csv": r"runs must be a readable file, got .*\(Not a directory\)",
    }
    for path, text in expected.items():
        with pytest.raises(InputError, match=text):
            read_runs(path)

    def refuse(*_args, **_keywords):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(type(tmp_path), "stat", refuse)
    with pytest.raises(InputError, match=r"runs must be a readable file, got .*\(Permission denied\)"):
        read_runs(tmp_path / "runs.csv")


def test_an_unreadable_file(tmp_path, monkeypatch):
    path = write(tmp_path, GOOD)

    def refuse(*_args, **_keywords):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(type(path), "read_bytes", refuse)
    with pytest.raises(InputError, match=r"be a readable file, got .*\(Permission denied\)"):
        read_runs(path)


def test_parquet_without_pyarrow_and_broken(tmp_path, monkeypatch):
    path = tmp_path / "runs.parquet"
    path.write_bytes(b"no parquet")

    def missing(_path):
        raise ImportError("pyarrow")

    def broken(_path):
        raise ValueError("not a parquet file")

    monkeypatch.setattr(pd, "read_parquet", missing)
    with pytest.raises(InputError, match=r"be CSV or JSONL while pyarrow is missing.*pip install pyarrow"):
        read_runs(path)
    monkeypatch.setattr(pd, "read_parquet", broken)
    with pytest.raises(InputError, match="be valid Parquet"):
        read_runs(path)


def test_observations_know_onsets_and_leave_out_what_says_nothing(tmp_path):
    rows = (
        "a,8,1e-3,800,collapsed,300,,",
        "b,8,2e-3,800,collapsed,,,",
        "c,8,3e-3,800,collapsed,,200,250",
        "d,8,4e-3,800,degraded,,,",
        "e,8,5e-3,800,degraded,,100,110",
        "f,1,6e-3,800,stable,,,",
        "g,inf,6e-3,800,stable,,,",
        "h,8,1e-3,800,failed,,,",
        "i,8,1e-3,800,unknown,,,",
    )
    seen = observe(read_runs(write(tmp_path, *rows)))
    by_rate = {(S, eta): (low, high) for S, eta, low, high in zip(
        seen.sync_interval, seen.learning_rate, seen.low, seen.high, strict=True)}  # fmt: skip
    assert len(seen) == 7
    assert by_rate[8, 1e-3] == (299, 300)
    assert by_rate[8, 2e-3] == (0, 800)
    assert by_rate[8, 3e-3] == (200, 250)
    assert np.all(np.isnan(by_rate[1, 6e-3]))
    assert seen.timed.sum() == 2
    assert sorted(seen.watched[seen.degraded]) == [0, 100]
    assert seen.law_intervals.tolist() == [8.0]
    assert seen.on_policy.sum() == 1


@pytest.mark.parametrize(
    ("onset", "timed"), [("1,,", 1), (",0,1", 1), (",0,799", 1), (",0,800", 0), (",,", 0), (",10,800", 1)]
)
def test_a_collapse_is_timed_when_its_interval_is_not_the_whole_run(tmp_path, onset, timed):
    assert observe(read_runs(write(tmp_path, f"a,8,1e-3,800,collapsed,{onset}"))).timed.sum() == timed

import json
import subprocess
import sys

import pytest

from meanfield.answer import SCHEMA, Question
from meanfield.model_answer import answer_model
from meanfield.parameters import MapParameters
from meanfield.predict import main
from meanfield.simulate import simulate
from tests.support.sweeps import INTERVALS, draw_sweep

KEYS = [
    "schema", "critical_product", "budget", "learning_rate_ceiling", "boundary_exponent", "budget_exponent",
    "combination", "confidence", "reference_sync_interval", "table", "query", "recommendation", "next_runs",
    "missing", "warnings",
]  # fmt: skip
ESTIMATE_KEYS = ["estimate", "low", "high", "identified"]
OPTIONS = [
    "--format", "--help", "--horizon", "--learning-rate", "--params", "--risk", "--runs", "--sync-interval",
]  # fmt: skip


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("predict") / "runs.csv"
    draw_sweep(42, ceiling=0.012, intervals=(1.0, *INTERVALS)).to_csv(path, index=False)
    return str(path)


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.toml"
    path.write_text("critical_product = 0.02\nexit_radius = 0.8\nlearning_rate_ceiling = 0.012\n", encoding="utf-8")
    return str(path)


def ask(capsys, *arguments):
    status = main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_json_has_the_keys_of_the_schema(capsys, table):
    status, out, err = ask(
        capsys, "--runs", table, "--horizon", 2000, "--sync-interval", 8, "--learning-rate", "1e-3", "--format", "json"
    )
    found = json.loads(out)
    assert (status, err) == (0, "")
    assert list(found) == KEYS
    assert found["schema"] == SCHEMA == "driftlaw.predict/1"
    for name in KEYS[1:6]:
        assert list(found[name]) == ESTIMATE_KEYS
    assert list(found["query"]) == [
        "sync_interval", "learning_rate", "horizon", "risk", "collapse_step", "binding"
    ]  # fmt: skip
    assert list(found["query"]["collapse_step"]) == ESTIMATE_KEYS
    assert list(found["recommendation"]) == ["sync_interval", "learning_rate", "risk", "why"]
    for row in found["table"]:
        assert list(row) == ["sync_interval", "max_learning_rate", "low", "high", "binding", "safe_learning_rate"]
    for run in found["next_runs"]:
        assert list(run) == ["sync_interval", "learning_rate", "steps", "seeds", "why"]
    assert [row["sync_interval"] for row in found["table"]] == [1, 2, 4, 8, 16, 32, 64]
    assert found["combination"] == "undecided"
    assert found["confidence"] == 0.9


def test_json_without_a_query_and_with_nulls(capsys, tmp_path):
    path = tmp_path / "runs.csv"
    draw_sweep(1, rates=(1e-6,)).to_csv(path, index=False)
    _, out, _ = ask(capsys, "--runs", path, "--horizon", 2000, "--format", "json")
    found = json.loads(out)
    assert found["query"] is None
    assert found["recommendation"] is None
    assert found["critical_product"] == {"estimate": None, "low": None, "high": None, "identified": False}
    assert found["table"][0]["binding"] is None
    assert found["reference_sync_interval"] is None


def test_the_page_has_every_part_and_no_escape_codes(capsys, table):
    status, out, _ = ask(capsys, "--runs", table, "--horizon", 2000, "--sync-interval", 8, "--learning-rate", 2e-2)
    assert status == 0
    assert "\x1b" not in out
    for part in (
        "critical product  S*eta", "budget  eta*T at collapse", "90% interval", "boundary exponent  (Law 1: -1)",
        "Learning rate at each S", "staleness", "ceiling", "Your run", "risk of collapse",
        "if it is unstable it collapses near step", "Use", "Run next", "Not known", "Careful",
    ):  # fmt: skip
        assert part in out, part


def test_csv_is_the_table(capsys, table):
    _, out, _ = ask(capsys, "--runs", table, "--horizon", 2000, "--format", "csv")
    lines = out.splitlines()
    assert lines[0] == "sync_interval,max_learning_rate,low,high,binding,safe_learning_rate"
    assert len(lines) == 8
    assert lines[1].split(",")[4] == "ceiling"


def test_the_flags_are_pinned(capsys):
    status, out, _ = ask(capsys, "--help")
    assert status == 0
    listed = {line.split()[0] for line in out.splitlines() if line.startswith("  --")}
    assert sorted(listed) == OPTIONS


USAGE = {
    ("--horizon", "20"): "--runs or --params must be given, got neither. Give a table of runs: --runs runs.csv.",
    ("--runs", "a.csv", "--params", "b.toml", "--horizon", "20"): "must not be given together, got both",
    ("--runs", "a.csv"): "Missing option '--horizon', got: --runs a.csv. Try --help.",
    ("--horizon", "x"): "Invalid value for '--horizon'",
    (
        "--horizon",
        "20",
        "--format",
        "yaml",
    ): "'yaml' is not one of 'table', 'json', 'csv', got: --horizon 20 --format yaml. Try --help.",
    ("--horizon", "20", "--bogus"): "No such option: --bogus",
    ("--runs", "nowhere.csv", "--horizon", "20"): "runs must be a readable file, got nowhere.csv (no such file)",
    ("--runs", "a.csv", "--horizon", "0"): "horizon must be a whole number of 1 to 1e12, got 0",
    ("--runs", "a.csv", "--horizon", "20", "--risk", "2"): "risk must lie in (0, 1), got 2",
    ("--params", "nowhere.toml", "--horizon", "20"): "nowhere.toml must be a readable TOML file",
}


FILES = {
    ("--runs", "a.csv"): ("# runs\n", "line 1 must not be a comment"),
    ("--runs", "b.csv"): ("run;steps\n", "cells must be separated by commas"),
    ("--runs", "c.csv"): ("run,S,lr,T,status\n", "Rename S to sync_interval, lr to learning_rate, T to steps"),
    ("--runs", "d.jsonl"): ("[" * 100_000, "line 1 must be a JSON object, got brackets nested too deeply"),
    ("--runs", "e.jsonl"): ('{"run": %s}' % ("9" * 5000), "line 1 must be a JSON object, got an integer of 5000"),
    ("--params", "f.toml"): ("exit_radius = " + "[" * 100_000, "must be a readable TOML file, got brackets nested"),
    ("--params", "g.toml"): (f"critical_product = {'9' * 400}\nexit_radius = 1", "be a positive finite number"),
    ("--runs", "x" * 5000 + ".csv"): (None, "runs must be a readable file, got xxx"),
}


@pytest.mark.parametrize("option", FILES, ids=range(len(FILES)))
def test_files_that_cannot_be_used_are_one_line_and_exit_two(capsys, tmp_path, monkeypatch, option):
    monkeypatch.chdir(tmp_path)
    content, said = FILES[option]
    if content is not None:
        (tmp_path / option[1]).write_text(content, encoding="utf-8")
    status, out, err = ask(capsys, *option, "--horizon", 20)
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    assert said in err


@pytest.mark.parametrize("arguments", USAGE)
def test_usage_errors_are_one_line_and_exit_two(capsys, arguments):
    status, out, err = ask(capsys, *arguments)
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    assert USAGE[arguments] in err


def test_an_unknown_key_of_a_model_names_the_nearest(capsys, tmp_path):
    path = tmp_path / "model.toml"
    path.write_text("critical_produkt = 0.02\n", encoding="utf-8")
    status, _, err = ask(capsys, "--params", path, "--horizon", 20)
    assert (status, err.count("\n")) == (2, 1)
    assert "critical_product" in err.split("nearest")[1]


def run_process(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "meanfield.predict", *arguments], capture_output=True, text=True, check=False, timeout=60
    )


def test_the_process_answers_refuses_and_helps(table, tmp_path):
    done = run_process("--runs", table, "--horizon", "2000", "--format", "json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["schema"] == SCHEMA
    bad = tmp_path / "bad.csv"
    bad.write_text("run,sync_interval,learning_rate,steps,outcome\na,0,1e-3,10,stable\n", encoding="utf-8")
    refused = run_process("--runs", str(bad), "--horizon", "2000")
    assert refused.returncode == 2
    assert refused.stderr == ("row 1: sync_interval must be >= 1, got 0. For a fully on-policy run use 1.\n")
    assert run_process("--help").returncode == 0


def test_help_loads_nothing_heavy():
    code = (
        "import sys; from meanfield.predict import main; main(['--help']); "
        "print([m for m in ('numpy', 'scipy', 'pandas', 'xarray', 'numba', 'sympy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.splitlines()[-1] == "[]"


PARAMETERS = MapParameters(critical_product=0.02, exit_radius=0.8)


@pytest.mark.parametrize("sync_interval", [2, 16, 128])
def test_the_model_survives_just_below_its_largest_rate_and_not_above(sync_interval):
    found = answer_model(PARAMETERS, Question(horizon=2000, sync_interval=sync_interval))
    rate = found.recommendation.learning_rate
    below, above = (
        simulate(PARAMETERS, sync_interval=sync_interval, learning_rate=factor * rate, horizon=2000)
        for factor in (0.998, 1.002)
    )
    assert int(below.outcome) == 0
    assert int(above.outcome) == 2


def test_the_model_knows_its_own_collapse_step_and_what_binds(capsys, model):
    _, out, _ = ask(
        capsys,
        "--params",
        model,
        "--horizon",
        2000,
        "--sync-interval",
        8,
        "--learning-rate",
        "4e-3",
        "--format",
        "json",
    )
    found = json.loads(out)
    path = simulate(MapParameters.from_toml(model), sync_interval=8, learning_rate=4e-3, horizon=2000)
    assert found["query"]["collapse_step"]["estimate"] == float(path.collapse_step)
    assert found["query"]["risk"] == 1.0
    assert found["combination"] == "max"
    binding = {row["sync_interval"]: row["binding"] for row in found["table"]}
    assert (binding[1], binding[8], binding[256]) == ("ceiling", "staleness", "horizon")
    assert "no intervals" in found["warnings"][0]


def test_a_model_page_prints(capsys, model):
    status, out, _ = ask(capsys, "--params", model, "--horizon", 2000)
    assert status == 0
    assert "Use" in out


def test_what_the_model_recommends_depends_on_what_is_fixed():
    free = answer_model(PARAMETERS, Question(horizon=2000)).recommendation
    assert (free.sync_interval, free.risk) == (1.0, 0.0)
    at_rate = answer_model(PARAMETERS, Question(horizon=2000, learning_rate=2e-3)).recommendation
    assert at_rate.sync_interval == 8.0
    refused = answer_model(PARAMETERS, Question(horizon=2000, learning_rate=5.0))
    assert refused.recommendation is None
    assert "recommendation: the model limits no rate at the S asked for" in refused.missing


def test_a_model_with_an_honest_signal_is_the_min_form():
    honest = MapParameters(critical_product=0.02, exit_radius=0.8, honest_signal=0.05)
    found = answer_model(honest, Question(horizon=20_000, sync_interval=1, learning_rate=2e-3))
    assert found.combination.value == "min"
    assert found.query.binding == "horizon"
    assert found.query.risk == 1.0


def test_a_model_that_never_moves_is_safe_at_any_rate():
    idle = MapParameters(critical_product=0.02, exit_radius=0.8, initial_memory=0.0)
    found = answer_model(idle, Question(horizon=2000, sync_interval=8, learning_rate=1.0))
    assert found.query.risk == 0.0
    assert found.query.collapse_step.estimate is None
    assert found.recommendation is None
    assert all(row.binding is None for row in found.table)
    capped = MapParameters(critical_product=0.02, exit_radius=0.8, initial_memory=0.0, learning_rate_ceiling=0.01)
    assert {row.binding for row in answer_model(capped, Question(horizon=2000)).table} == {"ceiling"}

import json
import re
import subprocess
import sys
import tomllib
from html.parser import HTMLParser

import numpy as np
import pytest

from meanfield.calibrate import calibrate
from meanfield.command import run_command
from meanfield.estimate import Estimate
from meanfield.runs import read_runs
from meanfield.verdicts import law_two
from tests.support.measured import BUDGET, FLOOR, PRODUCT, law_experiment, trace, write_store
from theory.claims.laws import LAWS
from validation import compare, report
from validation.comparison import compare as compare_store
from validation.config import GrpoConfig, experiment_from_mapping
from validation.figures import draw_svg, report_figures, said_exponent
from validation.findings import (
    CEILING_IGNORED,
    DEGRADED_CENSORED,
    DEGRADED_COLLAPSED,
    DEGRADED_STABLE,
    DEGRADED_UNSTABLE,
    EARLY_DRIFT,
)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return write_store(tmp_path_factory.mktemp("laws") / "sweep.zarr", law_experiment())


@pytest.fixture(scope="module")
def comparison(store):
    return compare_store(store)


@pytest.fixture(scope="module")
def page(comparison):
    return report.render(comparison)


class Outline(HTMLParser):
    """Checks that tags are closed in order; keeps ids and the text outside of styles and figures."""

    def __init__(self, page):
        super().__init__()
        self.open, self.ids, self.text = [], [], []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.ids += [value for name, value in attrs if name == "id"]
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, _tag, attrs):
        self.ids += [value for name, value in attrs if name == "id"]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not {"svg", "style"} & set(self.open):
            self.text.append(data)


def text_of(page):
    return " ".join(" ".join(Outline(page).text).split())


def test_laws_that_hold_are_supported_under_both_readings(comparison):
    judged = [(one.verdict.claim_id, one.reading, one.verdict.word) for one in comparison.judgements]
    assert judged == [
        ("C1", DEGRADED_UNSTABLE, "supported"),
        ("C1", DEGRADED_STABLE, "supported"),
        ("C2", DEGRADED_CENSORED, "supported"),
        ("C2", DEGRADED_COLLAPSED, "supported"),
        ("C9", EARLY_DRIFT, "inconclusive"),
    ]
    assert comparison.calibration.critical_product.contains(PRODUCT)
    # the slowest seed takes half as long again as the fastest
    assert BUDGET <= comparison.calibration.budget.estimate <= 1.5 * BUDGET


def test_the_check_keeps_the_collapses_above_the_ceiling(comparison):
    assert [(one.verdict.claim_id, one.reading) for one in comparison.checks] == [
        ("C1", CEILING_IGNORED),
        ("C2", CEILING_IGNORED),
    ]
    used = comparison.calibration
    assert used.observations.learning_rate[used.budget_arm].max() == 0.02
    stale = calibrate(comparison.runs[comparison.runs["sync_interval"] >= 8])
    assert stale.observations.learning_rate[stale.budget_arm].max() == 0.05
    assert comparison.checks[1].verdict == law_two(stale) != law_two(used)


def test_without_a_ceiling_there_is_no_check(tmp_path):
    stale = law_experiment(sync_interval=(8, 16, 32))
    assert compare_store(write_store(tmp_path / "s.zarr", stale)).checks == ()


def test_degraded_runs_are_read_both_ways(tmp_path):
    def falls_and_recovers(run, max_steps):
        metrics = trace(run, max_steps)
        if run.sync_interval == 8 and run.learning_rate == 0.01:
            metrics["learner_reward"][100:120] = FLOOR
        return metrics

    comparison = compare_store(write_store(tmp_path / "s.zarr", law_experiment(), trace=falls_and_recovers))
    assert comparison.counts["degraded"] == 3
    both = (comparison.calibration.brackets, comparison.calibration.brackets_collapsed_only)
    at_8 = [next(b for b in brackets if b.sync_interval == 8).smallest_unstable for brackets in both]
    assert at_8 == [0.01, 0.02]
    unstable, stable, *_ = (one.verdict.numbers for one in comparison.judgements)
    assert abs(unstable["exponent"] - stable["exponent"]) > 0.01


WITHOUT_TORCH = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("torch", "triton", "safetensors"):
            raise ImportError(name)

sys.meta_path.insert(0, Absent())
from meanfield.command import run_command
from validation.compare import main
sys.exit(run_command(main, sys.argv[1:]))
"""


@pytest.fixture(scope="module")
def child(store, tmp_path_factory):
    """The command in a process that cannot import torch: the process and the folder it wrote."""
    out = tmp_path_factory.mktemp("child") / "new" / "out"
    arguments = [sys.executable, "-c", WITHOUT_TORCH, str(store), "--out", str(out)]
    return subprocess.run(arguments, capture_output=True, text=True, check=False), out


def test_the_command_needs_no_torch_writes_four_files_and_says_where(child):
    process, out = child
    assert process.returncode == 0, process.stderr
    assert process.stderr == ""
    assert sorted(path.name for path in out.iterdir()) == ["measures.nc", "report.html", "runs.csv", "summary.json"]
    assert "60 runs, 30 stable, 30 collapsed" in process.stdout
    assert process.stdout.count("supported") >= 4
    assert f"report: {out / 'report.html'}" in process.stdout
    assert "unfinished" not in process.stdout


def test_the_runs_are_accepted_by_predict(child, capsys):
    from meanfield.predict import main

    _, out = child
    assert len(read_runs(out / "runs.csv")) == 60
    assert main(["--runs", str(out / "runs.csv"), "--horizon", "256", "--format", "json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["critical_product"]["low"] <= PRODUCT <= answer["critical_product"]["high"]


def test_the_summary_holds_numbers_rule_versions_and_provenance(comparison):
    summary = json.loads(json.dumps(comparison.to_json(), allow_nan=False))
    assert summary["schema"] == "driftlaw.compare/2"
    assert summary["shards"] == {"done": 8, "total": 8}
    assert summary["outcomes"] == {"stable": 30, "collapsed": 30}
    assert [one["claim"] for one in summary["verdicts"]] == ["C1", "C1", "C2", "C2", "C9"]
    assert summary["label_rule"]["collapse_fraction"] == 0.25
    assert experiment_from_mapping(summary["experiment"] | {"grpo": {}}) == law_experiment()
    assert {"torch", "numpy"} <= set(summary["versions"]["sweep"])
    assert summary["memory_map"]["parameters"]["critical_product"] > 0


def test_an_unfinished_store_is_compared_and_says_so(tmp_path, capsys):
    store = write_store(tmp_path / "s.zarr", law_experiment(), num_done=5)
    assert run_command(compare.main, [str(store), "--out", str(tmp_path / "out")]) == 0
    assert "unfinished: 5 of 8 shards done" in capsys.readouterr().out
    text = text_of((tmp_path / "out" / "report.html").read_text(encoding="utf-8"))
    assert "Unfinished sweep: 5 of 8 shards done." in text
    # shards end inside a cell: of the 60 runs 37 are done, and the cells with fewer than three of these do not count
    assert "left out of every fit. " in text
    assert "fewer than 3 seeds in its cell" in text
    assert "23: unknown, not run yet or never above the floor" in text
    assert "and 11 more" in text


def test_a_store_without_any_finished_run_is_refused(tmp_path, capsys):
    store = write_store(tmp_path / "s.zarr", law_experiment(), num_done=0)
    assert run_command(compare.main, [str(store), "--out", str(tmp_path / "out")]) == 2
    assert "must hold a finished shard, got none of 8" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_sweep_without_any_collapse_is_reported_as_knowing_nothing(tmp_path):
    def holds(run, max_steps):
        reward = trace(run, max_steps)["learner_reward"]
        return {**trace(run, max_steps), "learner_reward": np.where(np.isnan(reward), np.nan, 0.9)}

    comparison = compare_store(write_store(tmp_path / "s.zarr", law_experiment(), trace=holds))
    assert comparison.counts == {"stable": 60}
    captions = {one.name: one.caption for one in report_figures(comparison)}
    assert captions["steps"] == "Look at when runs collapse: of those at S ≥ 2, 0 did, too few for a slope."
    assert "No cell of this sweep lies at a boundary." in captions["drift"]
    text = text_of(report.render(comparison))
    assert "No recommendation: the boundary is not known from these runs." in text
    assert "inconclusive" in text
    assert re.search(r"\bsupported\b (?!if)", text.split("Figures")[0].replace("Rule: Supported", "")) is None


def test_a_run_that_failed_is_left_out_by_name(tmp_path):
    def fails(run, max_steps):
        metrics = trace(run, max_steps)
        if run.sync_interval == 16 and run.learning_rate == 0.01 and run.seed == 1:
            metrics["learner_reward"][100:] = np.nan
        return metrics

    text = text_of(report.render(compare_store(write_store(tmp_path / "s.zarr", law_experiment(), trace=fails))))
    assert "3 runs are left out of every fit." in text
    assert "1: failed, a reward that is not finite (S16-lr0.01-seed1)" in text
    assert "2: fewer than 3 seeds in its cell (S16-lr0.01-seed0, S16-lr0.01-seed2)" in text


@pytest.mark.parametrize("name", ["nothing.zarr", "file"])
def test_what_is_no_store_is_refused_in_one_line(tmp_path, capsys, name):
    (tmp_path / "file").write_text("no store")
    assert run_command(compare.main, [str(tmp_path / name), "--out", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert "STORE must be a sweep store" in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_an_output_that_is_a_file_is_refused(store, tmp_path, capsys):
    (tmp_path / "file").write_text("keep me")
    assert run_command(compare.main, [str(store), "--out", str(tmp_path / "file")]) == 2
    assert "--out must be a folder" in capsys.readouterr().err
    assert (tmp_path / "file").read_text() == "keep me"


def test_the_page_is_one_file_without_script_or_network(page):
    outline = Outline(page)
    assert len(outline.ids) == len(set(outline.ids))
    assert "<script" not in page
    assert not re.search(r'(?:src|href)="(?!#)', page)
    assert "@import" not in page
    assert not re.search(r"url\((?!#)", page)
    for target in re.findall(r'(?:href="#|url\(#)([^")]+)', page):
        assert target in outline.ids
    assert "prefers-color-scheme: dark" in page
    assert page.count("<svg") == page.count("<figcaption") == 5


def test_commands_and_the_experiment_file_keep_their_plain_characters(page):
    shown = re.findall(r"<pre>(.*?)</pre>", page, flags=re.DOTALL)
    assert len(shown) == 2
    for text in shown:
        assert "−" not in text
        assert "\u00a0" not in text


def test_names_from_the_experiment_are_escaped(page):
    assert "laws <hold>" not in page
    assert "laws &lt;hold&gt;" in page


def test_the_page_says_what_was_run_and_the_answer(page, comparison):
    text = text_of(page)
    for part in (
        "sort, 3 of 10 symbols, exact-match reward",
        "GRPO without clipping",
        "1, 8, 16, 32 optimizer steps",
        "3 per cell, 256 optimizer steps each",
        "60 runs: 30 stable, 30 collapsed",
        "Law one (largest stable η ∝ 1/S) is supported; law two (collapse after a fixed η·T) is supported.",
        "Keep S·η below the threshold.",
        f"For 256 steps use S = {comparison.answer.recommendation.sync_interval:g}",
        "No run was left out of every fit",
        "save the experiment printed below as experiment.toml",
        "python -m validation.run experiment.toml",
    ):
        assert part in text


def test_every_claim_is_judged_or_listed_as_not_tested(page):
    text = text_of(page)
    judged, after = text[text.index("Verdicts") :].split("Read with care")
    untested = after[after.index("Not tested by this sweep") :]
    assert "Figure 5." in judged
    for claim in LAWS:
        here = judged if claim.id in ("C1", "C2", "C9") else untested
        assert f"{claim.id} {claim.title}" in here
    assert judged.count(DEGRADED_STABLE) == judged.count(DEGRADED_CENSORED) == 1
    assert untested.count("Would need:") == 6
    assert "R_batch" not in text


def test_a_law_the_data_reject_is_reported_as_not_supported(tmp_path):
    """A boundary that does not depend on S (exponent 0), and a collapse step that does not depend on eta."""

    def flat(run, max_steps):
        metrics = trace(run, max_steps)
        fallen = np.arange(1, max_steps + 1) >= (50 if run.learning_rate > 0.007 else np.inf)
        reward = metrics["learner_reward"]
        metrics["learner_reward"] = np.where(np.isnan(reward), np.nan, np.where(fallen, FLOOR, 0.9))
        return metrics

    stale = law_experiment(sync_interval=(8, 16, 32))
    comparison = compare_store(write_store(tmp_path / "s.zarr", stale, trace=flat))
    assert [one.verdict.word for one in comparison.judgements] == ["not supported"] * 5
    text = text_of(report.render(comparison))
    assert "Law one (largest stable η ∝ 1/S) is not supported" in text
    assert "S·η is no constant here" in text
    assert text.count("no constant by this fit: see the verdicts") == 2
    assert "touches the steepest slope" not in text


def test_a_slope_at_the_edge_of_what_the_fit_allows_is_said(comparison):
    import dataclasses

    steep = dataclasses.replace(comparison.answer, budget_exponent=Estimate(-2.97, -3.0, -2.8))
    text = text_of(report.render(dataclasses.replace(comparison, answer=steep)))
    assert "touches the steepest slope that the fit allows (−3)" in text


def test_two_horizons_that_decide_judge_the_forms(comparison):
    """The form is an output of the fit; the page must follow it."""
    import dataclasses

    from meanfield.combination import Combination

    decided = dataclasses.replace(comparison.answer, combination=Combination.MAX)
    page = report.render(dataclasses.replace(comparison, answer=decided))
    text = text_of(page)
    of_min, of_max = text[text.index("C7 ") :].split("C8 ")
    assert "disfavoured The outcomes at several run lengths favour the max-form." in of_min
    assert " favoured The outcomes at several run lengths favour the max-form." in of_max
    assert text.count("Would need:") == 4


def test_the_experiment_file_on_the_page_makes_the_same_experiment():
    experiment = law_experiment(grpo=GrpoConfig(epsilon=0.2))
    for one in (experiment, law_experiment()):
        assert experiment_from_mapping(tomllib.loads(report.experiment_toml(one))) == one


def test_the_page_has_equal_bits_each_time(comparison, page):
    assert report.render(comparison) == page


def test_captions_carry_the_numbers_of_the_fit(comparison):
    captions = {one.name: one.caption for one in report_figures(comparison)}
    assert said_exponent(comparison.calibration.boundary_exponent) in captions["phase"]
    assert said_exponent(comparison.calibration.budget_exponent) in captions["steps"]
    above = "where runs at S = 1 are unstable too (degraded or collapsed)"
    assert f"the 9 collapses (of 27 at S ≥ 2) right of the ceiling, {above}" in captions["steps"]
    assert f"Faint marks are collapses above the ceiling, {above}" in captions["budgets"]
    assert comparison.map_fit.sentence in captions["budgets"]
    # drift 10*eta*(S - 1): largest stable 0.7, 0.75, 0.62 nat; smallest unstable 1.4, 1.5, 1.55 nat,
    # which two digits show as 1.4 to 1.5
    assert "blue squares (largest stable η) go from 0.62 to 0.75 nat, a factor 1.2" in captions["drift"]
    assert "red circles (smallest unstable η) go from 1.4 to 1.5 nat, a factor 1.1" in captions["drift"]
    assert "overlap" not in captions["drift"]
    assert "of these 5 runs at S = 8" in captions["rewards"]


def test_figures_follow_the_text_colour_of_the_page():
    from meanfield.plot_style import INK

    svg = draw_svg(lambda axes: axes.set_title("title"), name="one")
    assert "currentColor" in svg
    assert INK not in svg
    assert 'id="one-' in svg


def test_no_figure_stays_open(page):
    import matplotlib.pyplot as plt

    assert page.count("<svg") == 5
    assert plt.get_fignums() == []

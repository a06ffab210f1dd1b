import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from meanfield import plot_style, plotting
from meanfield.budget import BudgetPosterior
from meanfield.calibrate import calibrate
from meanfield.curves import (
    Curve,
    boundary_curve,
    budget_curve,
    cycle_end_drift,
    exit_budget_curve,
    time_law_curve,
)
from meanfield.estimate import Estimate
from meanfield.fit_map import fit_map
from meanfield.labels import label_sweep
from meanfield.outcomes import Outcome
from meanfield.results import SWEEP, build
from meanfield.simulate import phase_diagram
from theory.errors import InputError

INTERVALS, RATES, SEEDS, NUM_STEPS = (1, 4, 8, 16), (0.002, 0.01, 0.02, 0.05), (0, 1, 2), 96
FALL = {(4, 0.05): 30, (8, 0.02): 60, (8, 0.05): 24, (16, 0.01): 80, (16, 0.02): 50, (16, 0.05): 20, (1, 0.05): 20}
"""Step at which every seed of a cell collapses."""


def make_sweep():
    """Reward 0.9 until the collapse; drift 10*eta*lag times (1 + seed), a hundredfold after that or step 16."""
    step = np.arange(1, NUM_STEPS + 1)
    shape = (len(INTERVALS), len(RATES), len(SEEDS), NUM_STEPS)
    reward, drift = np.full(shape, np.nan), np.empty(shape)
    for i, S in enumerate(INTERVALS):
        evaluated = step % max(1, S // 8) == 0
        for j, eta in enumerate(RATES):
            fallen = step >= FALL.get((S, eta), np.inf)
            reward[i, j] = np.where(evaluated, np.where(fallen, 0.0, 0.9), np.nan)
            drift[i, j] = (
                10 * eta * ((step - 1) % S) * (1 + np.arange(3))[:, None] * np.where(fallen | (step > 16), 100.0, 1.0)
            )
    rest = set(SWEEP.names) - {"learner_reward", "drift"}
    return build(
        SWEEP,
        coordinates={"sync_interval": INTERVALS, "learning_rate": RATES, "seed": SEEDS, "step": step},
        variables={"learner_reward": reward, "drift": drift, **dict.fromkeys(rest, reward)},
        attributes={"reward_floor": 0.0, "initial_reward": 0.6, "experiment": "{}", "versions": "{}"},
    )


DATASET = make_sweep()
RUNS = label_sweep(DATASET)
CALIBRATION = calibrate(RUNS)


@pytest.fixture
def axes():
    assert mpl.get_backend().lower() == "agg"
    return Figure().add_subplot()


def legend_of(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


def entries_of(axes):
    """The legend without what it says about a doubtful fit."""
    return [text.split("\n")[0] for text in legend_of(axes)]


def test_the_phase_diagram_has_one_mark_per_run_and_all_the_lines(axes):
    fit = fit_map(CALIBRATION)
    model = phase_diagram(
        fit.parameters, sync_intervals=[4, 8, 16], learning_rates=np.geomspace(1e-3, 0.1, 50), horizon=NUM_STEPS
    )
    curve = boundary_curve(CALIBRATION.boundary, sync_intervals=[4, 8, 16], confidence=0.9)
    returned = plotting.plot_phase_diagram(RUNS, axes, calibration=CALIBRATION, boundary=curve, model=model)
    assert returned is axes
    assert entries_of(axes) == [
        "stable", "collapsed", "boundary, fitted", "boundary, model", "ceiling at S = 1", "horizon line B/T"
    ]  # fmt: skip
    marks = {one.get_label(): one.get_offsets() for one in axes.collections if one.get_label() in outcome_words()}
    assert {word: len(places) for word, places in marks.items()} == {"stable": 27, "collapsed": 21}
    assert axes.get_xscale() == axes.get_yscale() == "log"
    (band,) = [one for one in axes.collections if type(one).__name__ == "FillBetweenPolyCollection"]
    assert band.get_datalim(axes.transData).y1 >= curve.high.max() * 0.999


def outcome_words():
    return {outcome.word for outcome in Outcome}


def test_seeds_lie_side_by_side_in_their_cell(axes):
    plotting.plot_phase_diagram(RUNS, axes, calibration=CALIBRATION, boundary=None, model=None)
    places = np.concatenate([np.asarray(one.get_offsets()) for one in axes.collections])
    cell = places[np.isclose(places[:, 1], 0.002) & (np.abs(np.log(places[:, 0] / 8)) < 0.2)]
    assert np.sort(cell[:, 0]) == pytest.approx(8.0 * plotting.SEED_SPREAD ** np.array([-1.0, 0.0, 1.0]))


def marks_of(axes):
    """Places of all marks, sorted."""
    marks = [np.asarray(one.get_offsets()) for one in axes.collections if type(one).__name__ == "PathCollection"]
    return np.array(sorted(map(tuple, np.concatenate(marks))))


def test_columns_that_a_runs_table_need_not_have_may_be_missing():
    """Without the onset interval the step alone is drawn, as (step - 1, step]."""
    bare = RUNS.drop(columns=["seed", "collapse_step_low", "collapse_step_high"])
    draws = (
        lambda runs, axes: plotting.plot_phase_diagram(runs, axes, calibration=CALIBRATION, boundary=None, model=None),
        lambda runs, axes: plotting.plot_collapse_steps(runs, axes, calibration=CALIBRATION, fit=None, budget=None),
        lambda runs, axes: plotting.plot_collapse_budgets(runs, axes, calibration=CALIBRATION, model=None),
    )
    for draw in draws:
        with_all, without = (draw(runs, Figure().add_subplot()) for runs in (RUNS, bare))
        assert marks_of(without) == pytest.approx(marks_of(with_all))
        assert legend_of(without) == legend_of(with_all)
    bars = [path for one in draws[1](bare, Figure().add_subplot()).collections[:-1:2] for path in one.get_segments()]
    assert len(bars) == 21
    assert {float(np.ptp(bar[:, 1])) for bar in bars} == {1.0}


def test_a_collapse_at_no_known_step_has_no_mark():
    bare = RUNS.drop(columns=["collapse_step", "collapse_step_low", "collapse_step_high"])
    axes = plotting.plot_collapse_steps(bare, Figure().add_subplot(), calibration=CALIBRATION, fit=None, budget=None)
    assert len(axes.collections) == 0
    assert legend_of(axes) == ["end of the runs", "ceiling at S = 1"]


def test_the_legend_lies_inside_a_plain_figure():
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots()
    plotting.plot_phase_diagram(RUNS, axes, calibration=CALIBRATION, boundary=None, model=None)
    figure.draw_without_rendering()
    legend = axes.get_legend().get_window_extent()
    plt.close(figure)
    assert legend.x1 <= figure.bbox.x1
    assert legend.x0 > axes.get_window_extent().x1


def test_a_layout_engine_of_the_user_is_kept():
    figure = Figure(layout="tight")
    engine = figure.get_layout_engine()
    plotting.plot_phase_diagram(RUNS, figure.add_subplot(), calibration=CALIBRATION, boundary=None, model=None)
    assert figure.get_layout_engine() is engine


def test_every_outcome_has_its_own_colour_and_marker():
    assert len({plot_style.OUTCOME_COLOURS[one] for one in Outcome}) == len(Outcome)
    assert len({plot_style.OUTCOME_MARKERS[one] for one in Outcome}) == len(Outcome)


def test_the_model_boundary_is_the_smallest_rate_that_collapses(axes):
    fit = fit_map(CALIBRATION)
    model = phase_diagram(
        fit.parameters, sync_intervals=[1, 8, 16], learning_rates=np.geomspace(1e-3, 1e-1, 40), horizon=NUM_STEPS
    )
    plotting.plot_phase_diagram(RUNS, axes, calibration=CALIBRATION, boundary=None, model=model)
    (line,) = [one for one in axes.lines if one.get_label() == "boundary, model\n(slope −1 by construction)"]
    for rate, outcomes in zip(line.get_ydata(), model["outcome"].values, strict=True):
        first = np.flatnonzero(outcomes == Outcome.COLLAPSED.code)
        assert np.isnan(rate) if first.size == 0 else rate == model["learning_rate"].values[first[0]]


def test_rewards_end_with_the_mark_of_their_outcome(axes):
    one = DATASET.isel(sync_interval=3, seed=0)
    plotting.plot_rewards(one, axes, outcomes=["stable", "collapsed", "collapsed", "collapsed"])
    lines = {line.get_label(): line for line in axes.lines}
    assert lines["η = 0.002  stable"].get_marker() == plot_style.OUTCOME_MARKERS[Outcome.STABLE]
    assert lines["η = 0.05  collapsed"].get_marker() == plot_style.OUTCOME_MARKERS[Outcome.COLLAPSED]
    assert lines["η = 0.05  collapsed"].get_ydata()[-1] == 0.0
    assert "random policy" in lines
    assert sum(np.ptp(line.get_xdata()) == 0 for line in axes.lines) == NUM_STEPS // 16
    assert axes.get_title(loc="left") == "Reward while training, S = 16, seed 0"


@pytest.mark.parametrize("index", [0, 1])
def test_rewards_show_no_sync_at_one_step_or_when_there_are_too_many(axes, index, monkeypatch):
    monkeypatch.setattr(plotting, "MAX_SYNC_LINES", 10)
    plotting.plot_rewards(DATASET.isel(sync_interval=index, seed=0), axes, outcomes=["stable"] * 4)
    assert "synchronization" not in legend_of(axes)


def test_a_run_without_evaluations_has_no_line(axes):
    empty = DATASET.isel(sync_interval=3, seed=0).copy(deep=True)
    empty["learner_reward"][0] = np.nan
    plotting.plot_rewards(empty, axes, outcomes=["unknown", "collapsed", "collapsed", "collapsed"])
    assert not any("unknown" in label for label in legend_of(axes))


def test_collapse_steps_have_their_censoring_interval_and_both_lines(axes):
    rates = [0.001, 0.1]
    budget = budget_curve(CALIBRATION.budget, learning_rates=rates)
    fit = time_law_curve(CALIBRATION.time_law, learning_rates=rates, confidence=0.9)
    plotting.plot_collapse_steps(RUNS, axes, calibration=CALIBRATION, fit=fit, budget=budget)
    bars = [path for one in axes.collections if type(one).__name__ == "LineCollection" for path in one.get_segments()]
    assert len(bars) == 21
    ends = sorted({(bar[0][1], bar[1][1]) for bar in bars if np.ptp(bar[:, 1]) > 1})
    assert ends == [(18.0, 20.0), (48.0, 50.0), (78.0, 80.0)]
    slope = f"{CALIBRATION.budget_exponent.estimate:.2f}".replace("-", "−")
    assert entries_of(axes) == ["S = 1", "S = 4", "S = 8", "S = 16", f"fitted, slope {slope}", "law two, slope −1",
                               "end of the runs", "ceiling at S = 1"]  # fmt: skip
    fitted, law_two = axes.lines[:2]
    assert (fitted.get_linestyle(), law_two.get_linestyle()) == ("-", "--")
    steepness = [np.ptp(np.log(line.get_ydata())) / np.log(100.0) for line in (fitted, law_two)]
    assert steepness == pytest.approx([-CALIBRATION.budget_exponent.estimate, 1.0], abs=0.02)
    assert sum(type(one).__name__ == "FillBetweenPolyCollection" for one in axes.collections) == 1


def test_a_budget_that_is_no_constant_is_said_to_be_none(axes):
    curve = Curve(np.array([0.001, 0.1]), np.array([100.0, 1.0]))
    rejected = calibrate(RUNS)
    object.__setattr__(rejected, "budget", Estimate(0.5, 0.4, 0.6, identified=False))
    object.__setattr__(rejected, "critical_product", Estimate(0.1, 0.05, 0.2, identified=False))
    plotting.plot_collapse_steps(RUNS, axes, calibration=rejected, fit=None, budget=curve)
    assert "law two, slope −1\n(outside the interval)" in legend_of(axes)
    plotting.plot_collapse_budgets(RUNS, axes, calibration=rejected, model=None)
    assert "threshold C\n(no constant by this fit)" in legend_of(axes)


def test_collapse_budgets_lie_at_the_product_and_faint_above_the_ceiling(axes):
    model = exit_budget_curve(fit_map(CALIBRATION).parameters, products=np.geomspace(0.01, 1, 50))
    plotting.plot_collapse_budgets(RUNS, axes, calibration=CALIBRATION, model=model)
    marks = [one for one in axes.collections if type(one).__name__ == "PathCollection"]
    bright = np.concatenate([np.asarray(one.get_offsets()) for one in marks if one.get_alpha() == 1.0])
    faint = np.concatenate([np.asarray(one.get_offsets()) for one in marks if one.get_alpha() < 1.0])
    assert np.unique(bright, axis=0) == pytest.approx(np.array([[0.16, 0.8], [0.16, 1.2], [0.32, 1.0]]))
    assert np.unique(faint[:, 0]) == pytest.approx([0.05, 0.2, 0.4, 0.8])
    assert entries_of(axes)[-2:] == ["model", "threshold C"]


def test_an_exit_budget_curve_leaves_out_where_the_map_never_exits():
    parameters = fit_map(CALIBRATION).parameters
    curve = exit_budget_curve(parameters, products=parameters.critical_product * np.array([0.5, 0.9, 1.5, 3.0]))
    assert curve.x == pytest.approx(parameters.critical_product * np.array([1.5, 3.0]))


def test_a_budget_curve_falls_as_one_over_the_rate():
    curve = budget_curve(Estimate(0.5, 0.4, 0.8), learning_rates=[0.01, 0.1])
    assert curve.middle == pytest.approx([50.0, 5.0])
    assert curve.low is None
    assert curve.high is None
    assert budget_curve(Estimate.unknown(), learning_rates=[0.01]) is None


def test_a_time_law_curve_is_the_quantile_of_its_atoms_at_each_rate():
    """Three atoms through T = 100 at eta = 0.01 with the slopes 0, 1 and 2."""
    law = BudgetPosterior(np.log(0.01), np.log([100.0] * 3), np.array([0.0, 1.0, 2.0]), np.ones(3))
    curve = time_law_curve(law, learning_rates=[0.001, 0.01, 0.1], confidence=1.0)
    assert curve.middle == pytest.approx([1000.0, 100.0, 10.0])
    assert curve.low == pytest.approx([100.0, 100.0, 1.0])
    assert curve.high == pytest.approx([10000.0, 100.0, 100.0])


def test_cycle_end_drift_takes_the_last_lag_of_the_early_cycles():
    table = cycle_end_drift(DATASET, runs=RUNS, calibration=CALIBRATION).set_index(["sync_interval", "learning_rate"])
    # the middle seed has drift 20*eta*(S - 1); the hundredfold drift after step 16 must not count
    for (S, eta), row in table.iterrows():
        assert row["drift"] == pytest.approx(20 * eta * (S - 1))
    assert 1.0 not in table.index.get_level_values("sync_interval")
    assert len(table) == 12
    assert set(table.index[table["largest_stable"]]) == {(4.0, 0.02), (8.0, 0.01), (16.0, 0.002)}
    assert set(table.index[table["smallest_unstable"]]) == {(4.0, 0.05), (8.0, 0.02), (16.0, 0.01)}


def test_a_run_that_falls_in_its_first_cycle_has_no_drift():
    early = RUNS.copy()
    cell = (early["sync_interval"] == 16) & (early["learning_rate"] == 0.05)
    early.loc[cell, "collapse_step_low"] = 15.0
    table = cycle_end_drift(DATASET, runs=early, calibration=CALIBRATION)
    assert table.query("sync_interval == 16")["learning_rate"].tolist() == [0.002, 0.01, 0.02]
    assert len(table.query("sync_interval == 8")) == 4


def test_drift_wants_the_runs_of_the_dataset():
    with pytest.raises(InputError, match=r"runs must hold the 48 runs of the Dataset, got 47\. Use label_sweep\."):
        cycle_end_drift(DATASET, runs=RUNS[1:], calibration=CALIBRATION)


def test_drift_has_a_line_per_interval_and_says_why_one_is_missing(axes):
    table = cycle_end_drift(DATASET, runs=RUNS, calibration=CALIBRATION)
    plotting.plot_drift(table, axes, calibration=CALIBRATION, early_steps=16)
    assert axes.get_title(loc="left") == "Drift at the end of a cycle, first 16 steps"
    assert legend_of(axes) == ["S = 4", "S = 8", "S = 16", "largest stable η", "smallest unstable η"]
    assert [text.get_text() for text in axes.texts] == ["S = 1: zero by construction"]
    x, y = axes.lines[0].get_data()
    assert x == pytest.approx(3 * np.array(RATES))
    assert y == pytest.approx(60 * np.array(RATES))
    stable, unstable = (np.asarray(one.get_offsets())[0] for one in axes.collections)
    assert stable == pytest.approx([3 * 0.02, 60 * 0.02])
    assert unstable == pytest.approx([3 * 0.05, 60 * 0.05])
    assert [len(one.get_offsets()) for one in axes.collections] == [3, 3]
    square, circle = (one.get_paths()[0] for one in axes.collections)
    assert len(square.vertices) != len(circle.vertices)


def test_nothing_to_draw_is_drawn_and_said():
    stable = RUNS.assign(outcome="stable", collapse_step=np.nan, collapse_step_low=np.nan, collapse_step_high=np.nan)
    calibration = calibrate(stable)
    columns = ["sync_interval", "learning_rate", "drift", "largest_stable", "smallest_unstable"]
    table = pd.DataFrame(columns=columns).astype({"largest_stable": bool, "smallest_unstable": bool})
    draws = {
        "stable": lambda axes: plotting.plot_phase_diagram(
            stable, axes, calibration=calibration, boundary=None, model=None
        ),
        "end of the runs": lambda axes: plotting.plot_collapse_steps(
            stable, axes, calibration=calibration, fit=None, budget=None
        ),
        "no run collapsed": lambda axes: plotting.plot_collapse_budgets(
            stable, axes, calibration=calibration, model=None
        ),
        "no cycle ended before a decline": lambda axes: plotting.plot_drift(
            table, axes, calibration=calibration, early_steps=16
        ),
    }
    for word, draw in draws.items():
        figure = Figure()
        axes = draw(figure.add_subplot())
        figure.draw_without_rendering()
        assert word in [*legend_of(axes), *(text.get_text() for text in axes.texts)]


@pytest.mark.parametrize(
    ("limits", "marks"),
    [((0.15, 4.0), ["0.2", "0.5", "1", "2"]), ((0.6, 4.5), ["1", "2"]), ((3.0, 4e3), ["10^{1}", "10^{2}", "10^{3}"])],
)
def test_logarithmic_marks_are_few_and_plain_over_a_short_range(axes, limits, marks):
    axes.set(xscale="log", xlim=limits)
    plot_style.readable_logs(axes)
    axes.figure.draw_without_rendering()
    low, high = limits
    ticks = zip(axes.xaxis.get_majorticklocs(), axes.xaxis.get_ticklabels(), strict=True)
    shown = [label.get_text() for place, label in ticks if low <= place <= high]
    assert [mark in text for mark, text in zip(marks, shown, strict=True)] == [True] * len(marks)
    assert {label.get_text() for label in axes.xaxis.get_ticklabels(minor=True)} <= {""}

"""What became of a measured run: one rule, fixed before any run, stored with the result.

floor is the expected reward of a uniformly random policy; peak is the run's own best smoothed reward so far;
gain = peak - floor.

- collapsed: below floor + collapse_fraction * gain from some evaluation to the end, for at least
  min_evaluations evaluations.
- degraded: ends below floor + degraded_fraction * gain, or fell below floor + fall_fraction * gain for at
  least min_evaluations evaluations (once the peak was established) and came back.
- stable: neither.
- failed: a reward that is not finite.
- unknown: evaluated fewer than min_evaluations times, or never above the floor.

The onset lies in (last evaluation before the decline, first evaluation of it].
Source: ours (the label rule); a reward of the behaviour policy lags by up to one cycle and is labelled apart.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from meanfield.outcomes import Outcome
from theory.errors import InputError

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

Array = NDArray[np.float64]

ROUNDING = 1e-9
"""Relative gain below which a run has learned nothing: far above rounding, far below any reward."""

EVALUATIONS_A_CYCLE = 8
"""A sweep evaluates the learner every max(1, S // 8) steps: in a shorter run no evaluation is due."""


@dataclass(frozen=True, kw_only=True)
class LabelRule:
    """Parameters of the label rule.

    Parameters
    ----------
    collapse_fraction, fall_fraction, degraded_fraction : float [1]
        Shares of the gain, rising, in (0, 1).
    established_fraction : float [1]
        A fall counts only once the peak so far has reached this share of the run's overall gain, so that the
        noise of a policy that has not learned yet is no fall.
    min_evaluations : int
        Length of a collapse, or of a fall, in evaluations.
    smoothing_window : int
        Evaluations in the trailing mean from which the peak is taken (crossings use the reward itself).
    """

    collapse_fraction: float = 0.25
    fall_fraction: float = 0.5
    degraded_fraction: float = 0.8
    established_fraction: float = 0.5
    min_evaluations: int = 3
    smoothing_window: int = 3

    def __post_init__(self) -> None:
        fractions = (self.collapse_fraction, self.fall_fraction, self.degraded_fraction)
        if not 0 < fractions[0] < fractions[1] < fractions[2] < 1:
            raise InputError(
                "label fractions",
                "rise inside (0, 1) from collapse over fall to degraded",
                fractions,
                "The defaults are 0.25, 0.5 and 0.8.",
            )
        if not 0 < self.established_fraction <= 1:
            raise InputError("established_fraction", "lie in (0, 1]", self.established_fraction, "The default is 0.5.")
        for name in ("min_evaluations", "smoothing_window"):
            if getattr(self, name) < 1:
                raise InputError(name, "be an integer >= 1", getattr(self, name), "The default is 3.")

    def to_json(self) -> dict[str, float | int]:
        """Return the parameters as a dictionary, to be stored with the labels."""
        return asdict(self)


DEFAULT_RULE = LabelRule()
"""The rule used when none is given."""


@dataclass(frozen=True)
class RunLabel:
    """The outcome of one run.

    Parameters
    ----------
    outcome : Outcome
    collapse_step_low, collapse_step_high : float or None [optimizer step]
        Onset of a collapsed or degraded run, in (low, high]; None otherwise.
    """

    outcome: Outcome
    collapse_step_low: float | None = None
    collapse_step_high: float | None = None


def label_run(step: Array, reward: Array, *, floor: float, rule: LabelRule = DEFAULT_RULE) -> RunLabel:
    """Outcome of one run from the learner's own reward.

    Parameters
    ----------
    step : array, shape (n,) [optimizer step]
        Steps of the evaluations, rising.
    reward : array, shape (n,) [1]
        A value that is not finite means that the numerics failed.
    floor : float [1]
        Expected reward of a uniformly random policy.
    rule : LabelRule

    Returns
    -------
    RunLabel

    Raises
    ------
    InputError
        If the two arrays differ in shape, the steps do not rise, or the floor is not finite.
    """
    step, reward = np.asarray(step, dtype=np.float64), np.asarray(reward, dtype=np.float64)
    if step.shape != reward.shape or step.ndim != 1:
        raise InputError(
            "reward", f"have the shape of step, {step.shape}", reward.shape, "Give one reward for each step."
        )
    if np.any(np.diff(step) <= 0):
        raise InputError("step", "rise", step.tolist(), "Sort the evaluations and merge those of one step.")
    if not np.isfinite(floor):
        raise InputError("floor", "be finite", floor, "Give the expected reward of a random policy.")
    if not np.all(np.isfinite(reward)):
        return RunLabel(Outcome.FAILED)
    if len(reward) < rule.min_evaluations:
        return RunLabel(Outcome.UNKNOWN)
    peak = np.maximum.accumulate(_trailing_mean(reward, rule.smoothing_window))
    if peak[-1] - floor <= ROUNDING * max(abs(floor), abs(peak[-1])):
        return RunLabel(Outcome.UNKNOWN)
    return _label_by_gain(step, (reward - floor), peak - floor, rule=rule)


def _label_by_gain(step: Array, height: Array, gain: Array, *, rule: LabelRule) -> RunLabel:
    """Apply the rule to the reward above the floor and the best of it so far."""
    collapse_start = _start_of_tail(height < rule.collapse_fraction * gain)
    if len(step) - collapse_start >= rule.min_evaluations:
        return _declined(Outcome.COLLAPSED, step, collapse_start)
    established = gain >= rule.established_fraction * gain[-1]
    falls = _long_runs((height < rule.fall_fraction * gain) & established, rule.min_evaluations)
    decline_start = _start_of_tail(height < rule.degraded_fraction * gain)
    starts = [start for start in (falls[0] if len(falls) else len(step), decline_start) if start < len(step)]
    if starts:
        return _declined(Outcome.DEGRADED, step, min(starts))
    return RunLabel(Outcome.STABLE)


def _declined(outcome: Outcome, step: Array, start: int) -> RunLabel:
    low = float(step[start - 1]) if start > 0 else 0.0
    return RunLabel(outcome, low, float(step[start]))


def _trailing_mean(values: Array, window: int) -> Array:
    """Mean of the last `window` values, of fewer at the start; same shape."""
    total = np.concatenate([[0.0], np.cumsum(values)])
    end = np.arange(1, len(values) + 1)
    begin = np.maximum(end - window, 0)
    mean: Array = (total[end] - total[begin]) / (end - begin)
    return mean


def _start_of_tail(below: NDArray[np.bool_]) -> int:
    """Index from which `below` holds to the end; len(below) if it does not hold there."""
    above = np.flatnonzero(~below)
    return int(above[-1]) + 1 if len(above) else 0


def _long_runs(below: NDArray[np.bool_], length: int) -> NDArray[np.intp]:
    """Find the starts of the stretches of at least `length` True values."""
    edges = np.diff(np.concatenate([[False], below, [False]]).astype(np.int8))
    starts, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
    return starts[ends - starts >= length]


def label_rollout_run(
    step: Array, reward: Array, *, floor: float, sync_interval: float, rule: LabelRule = DEFAULT_RULE
) -> RunLabel:
    """Outcome of one run from rollout reward only, which belongs to the behaviour policy.

    As `label_run`, but the decline of the learner began up to one cycle before it shows, so the lower end of
    the onset interval moves down to the synchronization before the last healthy batch was sampled.

    Parameters
    ----------
    step, reward, floor, rule
        As in `label_run`; one reward a rollout batch.
    sync_interval : float [optimizer step]
        S >= 1; inf (never refreshed) moves the lower end to 0.
    """
    if not sync_interval >= 1:
        raise InputError("sync_interval", "be >= 1", sync_interval, "For a fully on-policy run use 1.")
    label = label_run(step, reward, floor=floor, rule=rule)
    if label.collapse_step_low is None:
        return label
    low = max(0.0, label.collapse_step_low - sync_interval)
    return RunLabel(label.outcome, low, label.collapse_step_high)


def label_sweep(dataset: xr.Dataset, *, rule: LabelRule = DEFAULT_RULE) -> pd.DataFrame:
    """Make the runs table of a sweep, labelled on the learner's own reward.

    Parameters
    ----------
    dataset : Dataset
        Variable learner_reward [1] with dims sync_interval, learning_rate, seed, step; NaN where it was not
        evaluated. Attribute reward_floor [1]; with initial_reward [1] the untrained policy is step 0. With the
        variable rollout_reward [1] it is known which runs were trained at all.
    rule : LabelRule

    Returns
    -------
    DataFrame
        Columns run, sync_interval, learning_rate, seed, steps, outcome, collapse_step, collapse_step_low,
        collapse_step_high. A run that lacks an evaluation which was due (others at its S have it, or it was
        trained and has none) is failed; one of which nothing was measured, or nothing was due, is unknown.

    Raises
    ------
    InputError
        If the variable or the attribute reward_floor is missing.
    """
    import pandas as pd

    if "learner_reward" not in dataset.data_vars:
        raise InputError("dataset", "hold learner_reward", list(dataset.data_vars), "Give a sweep Dataset.")
    if "reward_floor" not in dataset.attrs:
        raise InputError(
            "dataset",
            "have the attribute reward_floor",
            list(dataset.attrs),
            "Set it to a random policy's reward.",
        )
    reward, trained = _curves(dataset, "learner_reward"), _trained(dataset)
    steps = int(dataset["step"].values[-1])
    rows = []
    for i, sync_interval in enumerate(dataset["sync_interval"].values):
        evaluated = np.any(~np.isnan(reward[i]), axis=(0, 1))
        due = bool(evaluated.any()) or sync_interval / EVALUATIONS_A_CYCLE < steps + 1
        for j, learning_rate in enumerate(dataset["learning_rate"].values):
            for k, seed in enumerate(dataset["seed"].values):
                if np.all(np.isnan(reward[i, j, k])):
                    label = RunLabel(Outcome.FAILED if due and trained[i, j, k] else Outcome.UNKNOWN)
                else:
                    label = _label_curve(dataset, reward[i, j, k], evaluated, rule=rule)
                rows.append(_row(float(sync_interval), float(learning_rate), int(seed), steps=steps, label=label))
    return pd.DataFrame(rows)


def _curves(dataset: xr.Dataset, name: str) -> Array:
    curves: Array = dataset[name].transpose("sync_interval", "learning_rate", "seed", "step").values
    return curves


def _trained(dataset: xr.Dataset) -> NDArray[np.bool_]:
    """Which runs sampled a batch whose reward is known: shape (sync_interval, learning_rate, seed)."""
    if "rollout_reward" not in dataset.data_vars:
        return np.zeros([dataset.sizes[name] for name in ("sync_interval", "learning_rate", "seed")], dtype=bool)
    trained: NDArray[np.bool_] = np.asarray(np.isfinite(_curves(dataset, "rollout_reward")).any(axis=-1))
    return trained


def _label_curve(dataset: xr.Dataset, curve: Array, evaluated: NDArray[np.bool_], *, rule: LabelRule) -> RunLabel:
    step = dataset["step"].values[evaluated].astype(np.float64)
    reward = curve[evaluated]
    if "initial_reward" in dataset.attrs:
        step = np.concatenate([[0.0], step])
        reward = np.concatenate([[float(dataset.attrs["initial_reward"])], reward])
    return label_run(step, reward, floor=float(dataset.attrs["reward_floor"]), rule=rule)


def _row(sync_interval: float, learning_rate: float, seed: int, *, steps: int, label: RunLabel) -> dict[str, object]:
    low, high = (math.nan if end is None else end for end in (label.collapse_step_low, label.collapse_step_high))
    return {
        "run": f"S{sync_interval:g}-lr{learning_rate!r}-seed{seed}",
        "sync_interval": sync_interval,
        "learning_rate": learning_rate,
        "seed": seed,
        "steps": steps,
        "outcome": label.outcome.word,
        "collapse_step": high,
        "collapse_step_low": low,
        "collapse_step_high": high,
    }

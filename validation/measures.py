"""From a sweep to its measures: what each run comes to, small enough to be kept in a repository. No torch."""

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from meanfield.labels import LabelRule, label_sweep
from meanfield.outcomes import Outcome
from meanfield.results import BY_LAG, MEASURES, SWEEP, WINDOW_MEANS, build
from validation.config import experiment_from_mapping
from validation.plan import Plan

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd

Array = NDArray[np.float64]

WINDOW_CYCLES = 4
"""The window holds this many cycles of the largest S: early training, the same piece of it at every S."""
LAST_CYCLES = 5
"""Cycles before the onset over which `cycle_cosine_at_onset` is averaged."""
CUTS = (4, 2, 1)
"""Every run is also labelled after a quarter and a half of its length; fewer horizons in one of less than 4 steps."""


def measure(dataset: xr.Dataset, *, rule: LabelRule) -> xr.Dataset:
    """Reduce a sweep to one number a run (and lag, or horizon).

    Parameters
    ----------
    dataset : Dataset
        As `meanfield.results.SWEEP` says.
    rule : LabelRule

    Returns
    -------
    Dataset
        As `meanfield.results.MEASURES` says. NaN where a run has no such value: a lag that its S does not reach, no
        cycle in the window before the onset, a run that is not there.
    """
    steps = dataset["step"].values
    window = min(WINDOW_CYCLES * int(dataset["sync_interval"].values[-1]), int(steps[-1]))
    horizons = sorted({max(1, int(steps[-1]) // share) for share in CUTS})
    cut = _cut_labels(dataset, horizons, rule=rule)
    runs = _Runs(dataset, onset=cut["collapse_step_low"][-1], window=window)
    attributes = {name: dataset.attrs[name] for name in SWEEP.attributes}
    attributes |= {"window": window, "label_rule": json.dumps(rule.to_json()), "shard_digests": _digests(dataset)}
    coordinates: dict[str, Any] = {name: dataset[name].values for name in _AXES}
    coordinates |= {"lag": runs.lags, "horizon": horizons}
    return build(MEASURES, coordinates=coordinates, variables={**runs.reduce(), **cut}, attributes=attributes)


def cut_runs(measures: xr.Dataset, horizon: int) -> "pd.DataFrame":
    """The runs table of the runs cut at one of the horizons of the measures [optimizer step]."""
    import pandas as pd

    at = measures.sel(horizon=horizon)
    cells = at["outcome"].to_dataframe().reset_index()
    low, high = (at[f"collapse_step_{end}"].values.astype(np.float64).ravel() for end in ("low", "high"))
    names = [f"S{S:g}-lr{eta!r}-seed{k}" for S, eta, k in zip(*(cells[n] for n in _AXES), strict=True)]
    words = [Outcome.from_code(code).word for code in cells["outcome"]]
    columns = {"run": names, **{name: cells[name] for name in _AXES}, "steps": horizon, "outcome": words}
    onset = {"collapse_step": high, "collapse_step_low": low, "collapse_step_high": high}
    return pd.DataFrame({**columns, **onset})


_AXES = ("sync_interval", "learning_rate", "seed")


def _cut_labels(dataset: xr.Dataset, horizons: list[int], *, rule: LabelRule) -> dict[str, Array]:
    """Outcome and onset of every run at every cut, shape (horizon, sync_interval, learning_rate, seed)."""
    shape = tuple(dataset.sizes[name] for name in _AXES)
    tables = [label_sweep(dataset.isel(step=slice(horizon)), rule=rule) for horizon in horizons]
    codes = [[Outcome.from_word(word).code for word in table["outcome"]] for table in tables]
    onsets = {
        name: np.stack([table[name].to_numpy(dtype=np.float64).reshape(shape) for table in tables])
        for name in ("collapse_step_low", "collapse_step_high")
    }
    return {"outcome": np.array(codes).reshape(len(horizons), *shape), **onsets}


@dataclass(frozen=True)
class _Run:
    """Which steps of one run count, as masks over its steps."""

    lag: Array
    ends_cycle: NDArray[np.bool_]
    early: NDArray[np.bool_]
    healthy: NDArray[np.bool_]


class _Runs:
    """The traces of a sweep run by run, with what counts of them."""

    def __init__(self, dataset: xr.Dataset, *, onset: Array, window: int) -> None:
        self.intervals = dataset["sync_interval"].values.astype(int)
        largest = int(self.intervals[-1])
        powers = {2**k for k in range(largest.bit_length()) if 2**k < largest}
        self.lags = sorted(powers | {int(S) - 1 for S in self.intervals if S > 1}) or [0]
        self.step = dataset["step"].values
        self.last = np.where(np.isnan(onset), self.step[-1], onset)
        self.window = window
        self.traces = {name: dataset[name].transpose(*_AXES, "step").values for name in SWEEP.names}

    def reduce(self) -> dict[str, Array]:
        """Every variable of the measures that is not a label."""
        reduced = {name: self._each(name, self._by_lag) for name in BY_LAG}
        reduced |= {name: self._each(name, _early_mean) for name in WINDOW_MEANS}
        reduced["displacement_since_sync"] = self._each("displacement_since_sync", self._at_cycle_ends)
        reduced["learner_reward"] = self._each("learner_reward", lambda trace, _: _last(trace))
        reduced["best_reward"] = self._each("learner_reward", lambda trace, _: _finite(np.max, trace))
        reduced["cycle_cosine_at_onset"] = self._each("cycle_cosine", _last_cycles)
        reduced["displacement_at_onset"] = self._each(
            "displacement_since_start", lambda trace, run: _last(trace[run.healthy])
        )
        return reduced

    def _each(self, name: str, reduce: "Callable[[Array, _Run], Any]") -> Array:
        trace = self.traces[name]
        values = [reduce(trace[cell], self._run(cell)) for cell in np.ndindex(trace.shape[:-1])]
        return np.array(values).reshape(*trace.shape[:-1], *np.shape(values[0]))

    def _run(self, cell: tuple[int, ...]) -> _Run:
        healthy, S = self.step <= self.last[cell], self.intervals[cell[0]]
        return _Run((self.step - 1) % S, self.step % S == 0, healthy & (self.step <= self.window), healthy)

    def _by_lag(self, trace: Array, run: _Run) -> Array:
        return np.array([_finite(np.median, trace[run.early & (run.lag == lag)]) for lag in self.lags])

    def _at_cycle_ends(self, trace: Array, run: _Run) -> float:
        return _finite(np.median, trace[run.early & run.ends_cycle])


def _early_mean(trace: Array, run: _Run) -> float:
    return _finite(np.mean, trace[run.early])


def _last_cycles(trace: Array, run: _Run) -> float:
    before = trace[run.healthy]
    return _finite(np.mean, before[np.isfinite(before)][-LAST_CYCLES:])


def _finite(reduce: "Callable[[Array], Any]", values: Array) -> float:
    """Of the finite values; NaN if there are none."""
    finite = values[np.isfinite(values)]
    return float(reduce(finite)) if finite.size else float("nan")


def _last(values: Array) -> float:
    finite = values[np.isfinite(values)]
    return float(finite[-1]) if finite.size else float("nan")


def _digests(dataset: xr.Dataset) -> str:
    """SHA-256 of the traces of every shard, in the order of the plan, as a JSON list."""
    plan = Plan(experiment_from_mapping(json.loads(dataset.attrs["experiment"])))
    order = [dataset[name].transpose("sync_interval", "seed", "learning_rate", "step").values for name in SWEEP.names]
    flat = [values.reshape(len(plan.runs), -1) for values in order]
    return json.dumps([digest([values[shard.start : shard.stop] for values in flat]) for shard in plan.shards])


def digest(traces: list[Array]) -> str:
    """SHA-256 of the traces of one shard, one array per variable of a sweep in its order, each (run, step)."""
    total = hashlib.sha256()
    for values in traces:
        total.update(np.ascontiguousarray(values, dtype="<f4").tobytes())
    return total.hexdigest()

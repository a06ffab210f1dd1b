"""Hold the theory against one sweep: label, calibrate, judge. One call, one frozen record; no torch."""

import json
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from meanfield.answer import RISK, Answer, Question, answer
from meanfield.calibrate import Calibration, calibrate
from meanfield.fit_map import MapFit, fit_map
from meanfield.labels import DEFAULT_RULE, LabelRule, label_sweep
from meanfield.outcomes import Outcome
from meanfield.recommend import measured_intervals, recommend_rate
from meanfield.verdicts import Verdict, law_one, law_two
from validation.config import Experiment
from validation.store import done_flags, open_sweep, stored_experiment

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

SCHEMA = "driftlaw.compare/1"
"""Name and version of the JSON object."""
DEGRADED_UNSTABLE = "degraded as unstable"
DEGRADED_STABLE = "degraded as stable"
CEILING_IGNORED = "check: ceiling ignored"


@dataclass(frozen=True)
class Reading:
    """One reading of the degraded runs, with what it gives.

    Parameters
    ----------
    name : str
    calibration : Calibration
    verdicts : tuple of Verdict
        Law one, law two.
    """

    name: str
    calibration: Calibration
    verdicts: tuple[Verdict, Verdict]


@dataclass(frozen=True, eq=False)
class Comparison:
    """Everything the report shows.

    Parameters
    ----------
    store : Path
    experiment : Experiment
    dataset : Dataset
    num_shards, num_done : int
        Shards of the store, and how many of them are finished.
    rule : LabelRule
    runs : DataFrame
        The labelled runs.
    readings : tuple of Reading
        Degraded as unstable, which the answer uses, then degraded as stable.
    ceiling_ignored : Reading or None
        As the first, from the runs at S >= 2 alone, so that no ceiling is known and collapses above it count for
        the budget; None if the first leaves out no collapse for that reason. A check, not a verdict.
    answer : Answer
        For a run as long as these.
    safe_rates : tuple of (S, float or None)
        Largest rate at each S that keeps the accepted risk over such a run.
    map_fit : MapFit
    """

    store: Path
    experiment: Experiment
    dataset: "xr.Dataset"
    num_shards: int
    num_done: int
    rule: LabelRule
    runs: "pd.DataFrame"
    readings: tuple[Reading, Reading]
    ceiling_ignored: Reading | None
    answer: Answer
    safe_rates: tuple[tuple[float, float | None], ...]
    map_fit: MapFit

    @property
    def calibration(self) -> Calibration:
        """The calibration under the default reading."""
        return self.readings[0].calibration

    @property
    def checks(self) -> tuple[Reading, ...]:
        """Readings that are no verdict: none or one."""
        return () if self.ceiling_ignored is None else (self.ceiling_ignored,)

    @property
    def counts(self) -> dict[str, int]:
        """Runs of each outcome that occurs, by its word."""
        counts = self.runs["outcome"].value_counts()
        return {outcome.word: int(counts[outcome.word]) for outcome in Outcome if outcome.word in counts}

    @property
    def left_out(self) -> "pd.DataFrame":
        """Runs that no fit uses: failed or unknown."""
        return self.runs[self.runs["outcome"].isin([Outcome.FAILED.word, Outcome.UNKNOWN.word])]

    @property
    def versions(self) -> dict[str, dict[str, str]]:
        """Versions that made the runs, and those that read them."""
        packages = ("driftlaw", "numpy", "scipy", "numba", "xarray", "matplotlib")
        return {
            "sweep": json.loads(self.dataset.attrs["versions"]),
            "comparison": {name: metadata.version(name) for name in packages},
        }

    def to_json(self) -> dict[str, Any]:
        """Return numbers, verdicts, label rule, versions and provenance as plain JSON values."""
        parameters = self.map_fit.parameters
        return {
            "schema": SCHEMA,
            "store": str(self.store),
            "shards": {"done": self.num_done, "total": self.num_shards},
            "outcomes": self.counts,
            "answer": self.answer.to_json(),
            "verdicts": {reading.name: [_verdict_json(one) for one in reading.verdicts] for reading in self.readings},
            "checks": {check.name: [_verdict_json(one) for one in check.verdicts] for check in self.checks},
            "safe_rates": [{"sync_interval": S, "learning_rate": rate} for S, rate in self.safe_rates],
            "interval_budgets": [
                {"sync_interval": S, **budget.to_json()} for S, budget in self.calibration.interval_budgets
            ],
            "memory_map": {
                "parameters": None if parameters is None else vars(parameters),
                "num_collapsed": self.map_fit.num_collapsed,
                "sentence": self.map_fit.sentence,
            },
            "label_rule": self.rule.to_json(),
            "reward_floor": float(self.dataset.attrs["reward_floor"]),
            "initial_reward": float(self.dataset.attrs["initial_reward"]),
            "experiment": json.loads(self.experiment.to_json()),
            "versions": self.versions,
        }


def compare(store: Path, *, rule: LabelRule = DEFAULT_RULE) -> Comparison:
    """Label the runs of a sweep, fit them under both readings of degraded, and judge the two laws.

    Parameters
    ----------
    store : Path
        May be unfinished; runs that are not there yet are unknown and left out.
    rule : LabelRule

    Returns
    -------
    Comparison

    Raises
    ------
    InputError
        If `store` is no sweep store.

    Source: claims C1 and C2 (theory/claims.py).
    """
    experiment = stored_experiment(store)
    dataset = open_sweep(store)
    flags = done_flags(store)
    runs = label_sweep(dataset, rule=rule)
    readings = (_read(runs, DEGRADED_UNSTABLE), _read(_degraded_as_stable(runs), DEGRADED_STABLE))
    calibration = readings[0].calibration
    return Comparison(
        store=store,
        experiment=experiment,
        dataset=dataset,
        num_shards=len(flags),
        num_done=int(flags.sum()),
        rule=rule,
        runs=runs,
        readings=readings,
        ceiling_ignored=_ceiling_ignored(runs, calibration),
        answer=answer(calibration, Question(horizon=experiment.max_steps)),
        safe_rates=_safe_rates(calibration, horizon=experiment.max_steps),
        map_fit=fit_map(calibration),
    )


def _read(runs: "pd.DataFrame", name: str) -> Reading:
    calibration = calibrate(runs)
    return Reading(name, calibration, (law_one(calibration), law_two(calibration)))


def _degraded_as_stable(runs: "pd.DataFrame") -> "pd.DataFrame":
    read = runs.copy()
    degraded = read["outcome"] == Outcome.DEGRADED.word
    read.loc[degraded, "outcome"] = Outcome.STABLE.word
    read.loc[degraded, ["collapse_step", "collapse_step_low", "collapse_step_high"]] = float("nan")
    return read


def _ceiling_ignored(runs: "pd.DataFrame", calibration: Calibration) -> Reading | None:
    seen = calibration.observations
    left_out = seen.law_arm & ~calibration.budget_arm & seen.collapsed
    return _read(runs[runs["sync_interval"] >= 2], CEILING_IGNORED) if left_out.any() else None


def _safe_rates(calibration: Calibration, *, horizon: float) -> tuple[tuple[float, float | None], ...]:
    safe = []
    for sync_interval in measured_intervals(calibration):
        found = recommend_rate(calibration, sync_interval, horizon=horizon, risk=RISK)
        safe.append((sync_interval, None if found is None else found[0]))
    return tuple(safe)


def _verdict_json(verdict: Verdict) -> dict[str, Any]:
    return {
        "claim": verdict.claim_id,
        "verdict": verdict.word,
        "sentence": verdict.sentence,
        "numbers": dict(verdict.numbers),
    }

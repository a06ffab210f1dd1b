"""One setting of the measured laws: a sweep's kept data, what it says, and how the mean-field model predicts it."""

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from meanfield import results
from meanfield.calibrate import calibrate
from meanfield.curves import Curve, boundary_curve
from meanfield.fit_persistent import fit_persistent
from meanfield.holdout import MIN_INTERVALS, Holdout, holdout
from meanfield.runs import ONSET, read_runs
from theory.errors import InputError
from validation.compare import MEASURES_FILE, RUNS_FILE
from validation.config import Experiment, experiment_from_mapping
from validation.findings import FROM_ALL, LEFT_OUT, Findings, declines, find
from validation.measures import cut_runs

if TYPE_CHECKING:
    import pandas as pd

GENERATIONS = 100
"""Effort of every search for the parameters of persistent drift, of which a page needs dozens."""


@dataclass(frozen=True, eq=False)
class Setting:
    """A sweep read from its kept data.

    Parameters
    ----------
    findings : Findings
    experiment : Experiment
    """

    findings: Findings
    experiment: Experiment

    @property
    def name(self) -> str:
        """Name of the experiment."""
        return self.experiment.name

    @property
    def _used(self) -> "pd.DataFrame":
        """The runs of cells with enough seeds."""
        runs = self.findings.runs
        return runs[~runs[LEFT_OUT].str.startswith(FROM_ALL)]

    @cached_property
    def held_out(self) -> Holdout | None:
        """Predictions for half of the S values from the other half; None with too few S, or seeds, for two halves.

        Any decline counts, at its onset: it is what the boundary is made of.
        """
        used = self._used
        num_stale = used.loc[used["sync_interval"] >= 2, "sync_interval"].nunique()
        return holdout(declines(used), generations=GENERATIONS) if num_stale >= MIN_INTERVALS else None

    @cached_property
    def honest_log_ratio(self) -> float | None:
        """Log likelihood ratio [nat] of persistent drift with an honest signal, h > 0, over h = 0, by the declines."""
        if self._used.empty:
            return None
        calibration = calibrate(declines(self._used))
        free, without = (
            fit_persistent(calibration, without=parts, generations=GENERATIONS) for parts in ((), ("honest_drive",))
        )
        if free.log_likelihood is None or without.log_likelihood is None:
            return None
        # the smaller model is part of the larger one: a search that ended below it stopped at a lesser maximum
        return max(0.0, free.log_likelihood - without.log_likelihood)

    def to_json(self) -> dict[str, Any]:
        """Return every number of the setting as plain JSON values."""
        findings, calibration = self.findings, self.findings.calibration
        exponents = (
            "boundary_exponent",
            "boundary_exponent_given_time",
            "boundary_exponent_collapsed_only",
            "boundary_exponent_collapsed_only_given_time",
            "budget_exponent",
            "budget_exponent_without_degraded",
        )
        products = ("critical_product", "budget", "learning_rate_ceiling")
        return {
            "name": self.name,
            "experiment": json.loads(self.experiment.to_json()),
            "versions": json.loads(findings.measures.attrs["versions"]),
            "outcomes": _counts(findings.runs["outcome"]),
            "left_out": _counts(findings.runs[LEFT_OUT].replace("", np.nan).dropna()),
            **{name: getattr(calibration, name).to_json() for name in (*exponents, *products)},
            "interval_budgets": [{"sync_interval": S, **one.to_json()} for S, one in calibration.interval_budgets],
            "verdicts": [
                {"claim": one.verdict.claim_id, "reading": one.reading, "verdict": one.verdict.word}
                | {"sentence": one.verdict.sentence}
                for one in findings.judgements
            ],
            **findings.to_json(),
            "honest_log_ratio": self.honest_log_ratio,
            "holdout": None if self.held_out is None else self.held_out.to_json(),
        }

    @cached_property
    def boundary(self) -> Curve | None:
        """The fitted boundary at the measured S >= 2; None where there is none."""
        calibration = self.findings.calibration
        if calibration.boundary is None or calibration.boundary.log_rate is None:
            return None
        intervals = [S for S in self.experiment.sync_interval if S >= 2]
        return boundary_curve(calibration.boundary, sync_intervals=intervals, confidence=calibration.confidence)


def read_setting(folder: Path) -> Setting:
    """Read what validation.compare wrote for one sweep.

    Raises
    ------
    InputError
        If a file is missing, cannot be read, or is not of this sweep.
    """
    measures = results.load(folder / MEASURES_FILE)
    if measures.attrs["schema"] != results.MEASURES.name:
        way_out = "Make it with python -m validation.compare."
        raise InputError(MEASURES_FILE, f"have the schema {results.MEASURES.name}", measures.attrs["schema"], way_out)
    experiment = experiment_from_mapping(json.loads(measures.attrs["experiment"]))
    runs = read_runs(folder / RUNS_FILE)
    _check_labels(runs, cut_runs(measures, int(measures["horizon"].values[-1])), folder)
    return Setting(find(runs, measures), experiment)


def _check_labels(runs: "pd.DataFrame", kept: "pd.DataFrame", folder: Path) -> None:
    """Refuse a runs table whose runs, outcomes or onsets are not those that the measures hold."""
    argument, way_out = str(folder / RUNS_FILE), "Both files must come from one call of validation.compare."
    if len(runs) != len(kept):
        raise InputError(argument, f"hold the {len(kept)} runs of {MEASURES_FILE}", len(runs), way_out)
    names = ["run", "outcome", *ONSET]
    other = (runs[names].fillna(-1.0) != kept[names].fillna(-1.0)).any(axis=1)
    if other.any():
        row = int(other.to_numpy().argmax())
        said, given = (f"{table['run'].iloc[row]} {table['outcome'].iloc[row]}" for table in (kept, runs))
        raise InputError(argument, f"hold what {MEASURES_FILE} does: {said} in row {row + 1}", given, way_out)


def _counts(words: "pd.Series[str]") -> dict[str, int]:
    return {str(word): int(count) for word, count in words.value_counts().sort_index().items()}

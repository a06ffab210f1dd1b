"""Hold the theory against one sweep: label, calibrate, judge. One call, one frozen record; no torch."""

import json
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from meanfield.answer import Answer, Question, answer
from meanfield.calibrate import Calibration
from meanfield.fit_map import MapFit, fit_map
from meanfield.labels import DEFAULT_RULE, LabelRule, label_sweep
from meanfield.outcomes import Outcome
from theory.errors import InputError
from validation.config import Experiment
from validation.findings import FROM_ALL, LEFT_OUT, Findings, Judgement, find
from validation.measures import measure
from validation.store import done_flags, open_sweep, stored_experiment

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

SCHEMA = "driftlaw.compare/2"
"""Name and version of the JSON object."""


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
    findings : Findings
        The labelled runs, the measures, and what they say.
    answer : Answer
        For a run as long as these.
    map_fit : MapFit
    """

    store: Path
    experiment: Experiment
    dataset: "xr.Dataset"
    num_shards: int
    num_done: int
    rule: LabelRule
    findings: Findings
    answer: Answer
    map_fit: MapFit

    @property
    def runs(self) -> "pd.DataFrame":
        """The labelled runs."""
        return self.findings.runs

    @property
    def calibration(self) -> Calibration:
        """What the runs say."""
        return self.findings.calibration

    @property
    def judgements(self) -> tuple[Judgement, ...]:
        """The verdicts: law one under both readings of degraded, law two, the drift argument."""
        return self.findings.judgements

    @property
    def checks(self) -> tuple[Judgement, ...]:
        """Both laws with the ceiling ignored; no verdicts."""
        return self.findings.checks

    @property
    def counts(self) -> dict[str, int]:
        """Runs of each outcome that occurs, by its word."""
        counts = self.runs["outcome"].value_counts()
        return {outcome.word: int(counts[outcome.word]) for outcome in Outcome if outcome.word in counts}

    @property
    def left_out(self) -> "pd.DataFrame":
        """Runs that no fit uses: failed, unknown, or of a cell with too few seeds."""
        return self.runs[self.runs[LEFT_OUT].str.startswith(FROM_ALL)]

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
            "verdicts": [_judgement_json(one) for one in self.judgements],
            "checks": [_judgement_json(one) for one in self.checks],
            **self.findings.to_json(),
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
    """Label the runs of a sweep, calibrate them, and judge the two laws.

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
        If `store` is no sweep store, or no shard of it is finished.

    Source: claims C1, C2 and C9 (theory/claims).
    """
    experiment = stored_experiment(store)
    dataset = open_sweep(store)
    flags = done_flags(store)
    if not flags.any():
        raise InputError(
            "SWEEP.zarr", "hold a finished shard", f"none of {len(flags)}", "Train it with python -m validation.run."
        )
    findings = find(label_sweep(dataset, rule=rule), measure(dataset, rule=rule))
    calibration = findings.calibration
    return Comparison(
        store=store,
        experiment=experiment,
        dataset=dataset,
        num_shards=len(flags),
        num_done=int(flags.sum()),
        rule=rule,
        findings=findings,
        answer=answer(calibration, Question(horizon=experiment.max_steps)),
        map_fit=fit_map(calibration),
    )


def _judgement_json(judgement: Judgement) -> dict[str, Any]:
    verdict = judgement.verdict
    return {
        "claim": verdict.claim_id,
        "reading": judgement.reading,
        "verdict": verdict.word,
        "sentence": verdict.sentence,
        "numbers": dict(verdict.numbers),
    }

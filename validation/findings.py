"""What one sweep says, from its runs table and its measures alone: from a store or from kept data. No torch."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from meanfield.boundary import log_rate_at
from meanfield.calibrate import Calibration, calibrate
from meanfield.combination import Combination, log_likelihood_ratio
from meanfield.estimate import Estimate
from meanfield.growth import DriftGrowth, drift_growth, drift_verdict
from meanfield.outcomes import Outcome
from meanfield.persistence import Persistence, persistence
from meanfield.time_surface import TimeSurface, fit_time_surface
from meanfield.verdicts import INCONCLUSIVE, Verdict, law_one, law_one_collapsed_only, law_two
from validation.measures import cut_runs

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

MIN_SEEDS = 3
"""Runs of known outcome that a cell (S, eta) needs to enter a verdict."""
DEGRADED_UNSTABLE = "degraded as unstable"
DEGRADED_STABLE = "degraded as stable"
DEGRADED_CENSORED = "degraded censored at its onset"
DEGRADED_COLLAPSED = "degraded as collapsed at its onset"
EARLY_DRIFT = "early training"
CEILING_IGNORED = "check: ceiling ignored"

FROM_ALL = "all fits"
"""How the reason of a run begins that enters no fit."""
FAILED = f"{FROM_ALL}: failed, a reward that is not finite"
UNKNOWN = f"{FROM_ALL}: unknown, not run yet or never above the floor"
FEW_SEEDS = f"{FROM_ALL}: fewer than {MIN_SEEDS} seeds in its cell"
ON_POLICY = "both laws: S = 1 gives the ceiling"
ABOVE_CEILING = "law two: above the learning-rate ceiling"
LEFT_OUT = "left_out"
"""Column of the runs table: what a run is left out of, and why; empty for a run that counts everywhere."""


@dataclass(frozen=True)
class Judgement:
    """A verdict, and how the runs were read for it."""

    reading: str
    verdict: Verdict


@dataclass(frozen=True)
class Cut:
    """The same runs cut at a horizon [optimizer step]: exponent of the boundary and its rate at each S >= 2."""

    horizon: int
    exponent: Estimate
    max_rates: tuple[tuple[float, Estimate], ...]
    num_unstable: int


@dataclass(frozen=True, eq=False)
class Findings:
    """Everything that the runs table and the measures of one sweep say about the claims.

    Parameters
    ----------
    runs : DataFrame
        The runs table with the column `left_out`.
    measures : Dataset
        As `meanfield.results.MEASURES` says.
    used : Dataset
        The same of the runs that enter fits; of the others nothing is known in it.
    calibration : Calibration
        Of the runs in cells with at least `MIN_SEEDS` known outcomes.
    judgements : tuple of Judgement
        Law one under both readings of degraded, the one that the answer uses first; law two likewise; the drift
        argument. All inconclusive where no cell has `MIN_SEEDS` seeds; then the numbers are those of all runs.
    checks : tuple of Judgement
        Both laws from the runs at S >= 2 alone, so that no ceiling is known and collapses above it count for the
        budget; empty if no collapse is left out for that reason. No verdicts.
    growth : DriftGrowth
    persistence : Persistence
    times, times_of_declines : TimeSurface
        Exponents of the collapse time in eta and in S; degraded runs censored at their onset, and counted at it.
    """

    runs: "pd.DataFrame"
    measures: "xr.Dataset"
    used: "xr.Dataset"
    calibration: Calibration
    judgements: tuple[Judgement, ...]
    checks: tuple[Judgement, ...]
    growth: DriftGrowth
    persistence: Persistence
    times: TimeSurface
    times_of_declines: TimeSurface

    def to_json(self) -> dict[str, Any]:
        """Return growth of the drift, cuts and the form that they support as plain JSON values."""
        ratio = self.log_ratio_of_forms
        growth = {name: one.to_json() for name, one in vars(self.growth).items() if isinstance(one, Estimate)}
        drifts = [_numbers_json(vars(point)) for point in self.growth.on_boundary]
        cuts = [
            {"horizon": cut.horizon, "exponent": cut.exponent.to_json(), "num_unstable": cut.num_unstable}
            | {"max_rates": [{"sync_interval": S, **rate.to_json()} for S, rate in cut.max_rates]}
            for cut in self.cuts
        ]
        forms = {"combination": self.combination.value, "log_ratio_max_over_min": ratio}
        contrasts = [_numbers_json(vars(one)) for one in self.persistence.contrasts]
        distances = {name: getattr(self.persistence, name).to_json() for name in ("exit_distance", "exit_spread")}
        return {
            "times": _numbers_json(vars(self.times)),
            "times_of_declines": _numbers_json(vars(self.times_of_declines)),
            "growth": {**growth, "on_boundary": drifts},
            "cuts": cuts,
            "forms": forms,
            "persistence": {"contrasts": contrasts, **distances},
        }

    @cached_property
    def cuts(self) -> tuple[Cut, ...]:
        """The boundary at every horizon of the measures, the shortest first: it moves if the horizon binds."""
        return tuple(_cut(self.used, int(horizon)) for horizon in self.measures["horizon"].values)

    @cached_property
    def log_ratio_of_forms(self) -> tuple[float, float] | None:
        """Log likelihood ratio of max-form over min-form [nat], with and without the ceiling (claims C7 and C8).

        Every second seed is cut at the shortest horizon, so that no run counts at two lengths. None without two seeds
        or without a boundary at S >= 2. Beyond +-log(20) on both sides it is decided.
        """
        boundary = self.calibration.boundary
        if self.measures.sizes["seed"] < 2 or boundary is None or boundary.log_rate is None:
            return None
        seen = self._at_two_horizons.observations
        unstable = seen.collapsed | seen.degraded
        ceiling = self.calibration.learning_rate_ceiling.estimate
        ends = (np.inf if ceiling is None else float(np.log(ceiling)), np.inf)
        known, unknown = (log_likelihood_ratio(seen, unstable, log_ceiling=end) for end in ends)
        return known, unknown

    @cached_property
    def combination(self) -> Combination:
        """Which form the runs cut at two horizons support."""
        if self.log_ratio_of_forms is None:
            return Combination.UNDECIDED
        return self._at_two_horizons.combination

    @cached_property
    def _at_two_horizons(self) -> Calibration:
        """Calibration of the runs, every second seed cut at the shortest horizon."""
        return calibrate(self._mixed_horizons())

    def _mixed_horizons(self) -> "pd.DataFrame":
        import pandas as pd

        short, whole = (cut_runs(self.used, int(end)) for end in self.measures["horizon"].values[[0, -1]])
        cut = short["seed"].isin(self.measures["seed"].values[1::2])
        return pd.concat([short[cut], whole[~cut]])


def find(runs: "pd.DataFrame", measures: "xr.Dataset") -> Findings:
    """Calibrate the runs of a sweep and judge the claims.

    Parameters
    ----------
    runs : DataFrame
        A runs table over the grid of the measures, in its order; a column `left_out` is made anew.
    measures : Dataset
        As `meanfield.results.MEASURES` says.

    Raises
    ------
    InputError
        If the table breaks a rule.

    Source: claims C1, C2, C9 (theory/claims).
    """
    reasons = _reasons(runs)
    too_few = not (reasons == "").any()
    counted = runs if too_few else runs[~reasons.isin([FEW_SEEDS])]
    calibration = calibrate(counted)
    reasons = reasons.mask((reasons == "") & (runs["sync_interval"] < 2), ON_POLICY)
    ceiling = calibration.learning_rate_ceiling.estimate
    if ceiling is not None:
        reasons = reasons.mask((reasons == "") & (runs["learning_rate"] >= ceiling), ABOVE_CEILING)
    used = _entered(measures, runs.index.isin(counted.index) & ~reasons.isin([FAILED, UNKNOWN]).to_numpy())
    growth = drift_growth(used, calibration=calibration)
    judgements = (
        Judgement(DEGRADED_UNSTABLE, law_one(calibration)),
        Judgement(DEGRADED_STABLE, law_one_collapsed_only(calibration)),
        Judgement(DEGRADED_CENSORED, law_two(calibration)),
        Judgement(DEGRADED_COLLAPSED, law_two(calibrate(declines(counted)))),
        Judgement(EARLY_DRIFT, drift_verdict(growth, calibration)),
    )
    return Findings(
        runs=runs.assign(**{LEFT_OUT: reasons}),
        measures=measures,
        used=used,
        calibration=calibration,
        judgements=tuple(map(_too_few, judgements)) if too_few else judgements,
        checks=_checks(counted, calibration),
        growth=growth,
        persistence=persistence(used, calibration=calibration),
        times=fit_time_surface(calibration, degraded_counts=False),
        times_of_declines=fit_time_surface(calibration, degraded_counts=True),
    )


def declines(runs: "pd.DataFrame") -> "pd.DataFrame":
    """The runs with degraded ones read as collapsed at their onset."""
    return runs.assign(outcome=runs["outcome"].replace(Outcome.DEGRADED.word, Outcome.COLLAPSED.word))


def _too_few(judgement: Judgement) -> Judgement:
    """The same numbers without a verdict: no cell has the seeds for one."""
    said = f"No cell has {MIN_SEEDS} seeds, so nothing is judged. {judgement.verdict.sentence}"
    return Judgement(judgement.reading, replace(judgement.verdict, word=INCONCLUSIVE, sentence=said))


def _numbers_json(values: dict[str, Any]) -> dict[str, Any]:
    return {name: one.to_json() if isinstance(one, Estimate) else one for name, one in values.items()}


def _reasons(runs: "pd.DataFrame") -> "pd.Series[Any]":
    """Why a run enters no fit at all; empty where it does."""
    import pandas as pd

    known = ~runs["outcome"].isin([Outcome.FAILED.word, Outcome.UNKNOWN.word])
    seeds = known.groupby([runs["sync_interval"], runs["learning_rate"]]).transform("sum")
    reasons = pd.Series("", index=runs.index).mask(seeds < MIN_SEEDS, FEW_SEEDS)
    reasons = reasons.mask(runs["outcome"] == Outcome.FAILED.word, FAILED)
    return reasons.mask(runs["outcome"] == Outcome.UNKNOWN.word, UNKNOWN)


def _entered(measures: "xr.Dataset", entered: NDArray[np.bool_]) -> "xr.Dataset":
    """Measures in which nothing is known of the other runs; entered: one flag a run, in the order of the grid."""
    outcome = measures["outcome"]
    flags = outcome.isel(horizon=0).copy(data=entered.reshape(outcome.shape[1:]))
    known = {name: values.where(flags) for name, values in measures.items()}
    return measures.assign({**known, "outcome": outcome.where(flags, Outcome.UNKNOWN.code)})


def _checks(runs: "pd.DataFrame", calibration: Calibration) -> tuple[Judgement, ...]:
    seen = calibration.observations
    left_out = seen.law_arm & ~calibration.budget_arm & seen.collapsed
    if not left_out.any():
        return ()
    ignoring = calibrate(runs[runs["sync_interval"] >= 2])
    return tuple(Judgement(CEILING_IGNORED, law(ignoring)) for law in (law_one, law_two))


def _cut(measures: "xr.Dataset", horizon: int) -> Cut:
    calibration = calibrate(cut_runs(measures, horizon))
    seen = calibration.observations
    unstable = seen.collapsed | seen.degraded
    rates = []
    for S in seen.law_intervals:
        log_rate = log_rate_at(seen, unstable, S)
        if log_rate is not None:
            rates.append((float(S), Estimate.from_atoms(np.exp(log_rate), confidence=calibration.confidence)))
    return Cut(horizon, calibration.boundary_exponent, tuple(rates), int((unstable & seen.law_arm).sum()))

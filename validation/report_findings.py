"""Two sections of the report: what the drift of early training predicts, and the same runs cut shorter."""

from meanfield.combination import LIKELIHOOD_RATIO
from meanfield.estimate import Estimate
from meanfield.growth import BoundaryDrift
from validation.findings import Findings
from validation.html_parts import table, text

_HOW_DRIFT = (
    "Drift is the rms log-ratio per token of the last batch of a cycle, early in training and before any decline. If a "
    "fixed drift makes a run unstable, the boundary exponent is −β/α."
)


def drift_body(findings: Findings) -> str:
    """Growth exponents, the boundary exponent that they predict, and the drift on the boundary of each S."""
    growth = findings.growth
    rows = (
        ("drift grows with η to the power α", growth.with_rate),
        ("and with S to the power β", growth.with_interval),
        ("inside a cycle with the lag to the power", growth.with_lag),
        ("and over lags from 8", growth.with_long_lag),
        ("mean cosine of two raw gradients of a cycle", growth.pair_cosine),
        ("boundary exponent predicted, −β/α", growth.predicted_exponent),
        ("boundary exponent measured", findings.calibration.boundary_exponent),
        ("drift on the boundary, largest over smallest S", growth.spread),
    )
    body = table(("early training", "number"), [(text(name), text(one.said())) for name, one in rows])
    points = [
        tuple(text(cell) for cell in (f"{one.sync_interval:g}", *map(Estimate.said, _numbers(one))))
        for one in growth.on_boundary
    ]
    header = ("S", "η on its boundary", "drift [nat]", "KL (k3) [nat]", "effective sample size")
    return f'<p class="note">{text(_HOW_DRIFT)}</p>\n{body}\n{table(header, points) if points else ""}'


def _numbers(point: BoundaryDrift) -> tuple[Estimate, ...]:
    return point.learning_rate, point.drift, point.behavior_k3, point.effective_sample_size


def times_body(findings: Findings) -> str:
    """Collapse times with the exponents in eta and in S both free."""
    readings = (("collapses", findings.times), ("all declines", findings.times_of_declines))
    rows = [
        [text(name), *(text(number.said()) for number in (one.with_rate, one.with_interval, one.rate_less_interval))]
        for name, one in readings
    ]
    header = ("times of", "slope of log T on log η", "slope on log S", "1 if η·T depends on S·η alone")
    said = "Law two says −1 and 0, whatever S. Runs at S ≥ 2 below the ceiling; what did not collapse is censored."
    return f'<p class="note">{text(said)}</p>\n{table(header, rows)}'


def horizon_body(findings: Findings) -> str:
    """The boundary at every horizon, and which form the runs cut at two horizons support."""
    intervals = sorted({S for cut in findings.cuts for S, _ in cut.max_rates})
    rows = []
    for cut in findings.cuts:
        known = dict(cut.max_rates)
        rates = (known[S].said() if S in known else "–" for S in intervals)
        rows.append([text(cell) for cell in (str(cut.horizon), cut.exponent.said(), *rates)])
    header = ("steps", "boundary exponent", *(f"η on the boundary, S = {S:g}" for S in intervals))
    return f'{table(header, rows)}\n<p class="note">{text(_form(findings))}</p>'


def _form(findings: Findings) -> str:
    ratios = findings.log_ratio_of_forms
    if ratios is None:
        return "Whether a collapse needs both a threshold and a budget cannot be asked of these runs."
    told = " and ".join(f"{value:.1f}" for value in ratios)
    return (
        "With every second seed cut at the shortest horizon, the log likelihood ratio of the max-form (a collapse "
        "needs S·η above a threshold and η·T above a budget) over the min-form (either is enough) is "
        f"{told}, with and without the ceiling; it is decided where both lie beyond ±log {LIKELIHOOD_RATIO:g} on one "
        f"side. Here: {findings.combination.value}."
    )

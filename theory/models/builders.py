"""Four drift models, built from the symbol table."""

import sympy as sp

from theory.models.model import CycleEndExit, DriftModel, WithinExit
from theory.models.saturation import TANH, Saturation
from theory.symbols import G_upd, K, P, R_batch, R_crit, d, eta, f, h, k_s, k_w, m, mu, rho, sigma, tau, v

initial_drive = sp.Symbol("m0", nonnegative=True)
"""Memory drive at the start [1]."""
displacement = sp.Symbol("x", real=True)
"""Displacement in all [parameter distance]."""
behavior = sp.Symbol("b", real=True)
"""Where the behaviour policy was taken [parameter distance]."""
velocity = sp.Symbol("w", real=True)
"""d(displacement)/d(eta*t) [parameter distance]."""
start = sp.Symbol("x0", real=True)
"""Displacement at the start [parameter distance]."""

_BATCH = CycleEndExit("batch", d, R_batch)
_REGION = WithinExit("region", sp.Abs(displacement), R_crit)


def _tanh_solution() -> tuple[sp.Expr, ...]:
    """Persistent drift inside a cycle for tanh: asinh(sinh(z0)*exp(g)) - z0 with g = k_w*v*tau/sigma, as one asinh.

    By its addition theorem nothing cancels at small g. Without feedback inside the cycle the drive stays, and beyond
    g = 300 sinh would overflow; what is left out there is below 1e-130. Source: claim C5, theory/persistent.py.
    """
    growth = k_w * v * tau / sigma
    slope = sp.tanh((h + m + k_w * d) / sigma)
    root = sp.sqrt(sp.exp(-2 * growth) * (1 - slope**2) + slope**2)
    grown = sigma / k_w * sp.asinh(2 * slope * sp.sinh(growth) / (1 + root))
    large = sp.Max(0, v * tau + sigma / k_w * sp.log(2 * sp.Abs(slope) / (1 + sp.Abs(slope))))
    none = growth < sp.Rational(1, 10**300)  # k_w is declared positive, and zero is its limit
    drift = sp.Piecewise((v * slope * tau, none), (sp.sign(slope) * large, growth > 300), (grown, True))
    return (d + drift, m, displacement + drift)


def persistent_drift(saturation: Saturation = TANH) -> DriftModel:
    """Persistent drift: the drive (h + m + k_w*d)/sigma grows inside a cycle, and a sync turns drift into memory.

    Parameters
    ----------
    saturation : Saturation

    Returns
    -------
    DriftModel
        States d, m, x; parameters h, k_w, k_s, rho, v, sigma, m0, R_batch, R_crit.

    Source: claims C5, C6 and C30 (theory/claims); for tanh it is the model of theory/persistent.py.
    """
    speed = v * saturation((h + m + k_w * d) / sigma)
    return DriftModel(
        name=f"persistent drift, {saturation.name}",
        states=(d, m, displacement),
        parameters=(h, k_w, k_s, rho, v, sigma, initial_drive, R_batch, R_crit),
        flow=(speed, sp.Integer(0), speed),
        sync=(sp.Integer(0), rho * m + k_s * d, displacement),
        start=(sp.Integer(0), initial_drive, sp.Integer(0)),
        exits=(_BATCH, _REGION),
        signals=(h,),
        claims=("C5", "C6", "C30"),
        solution=_tanh_solution() if saturation == TANH else (),
    )


def two_constraint() -> DriftModel:
    """Drift at the constant speed G_upd: no threshold, only the two exits of the two-constraint rule.

    Returns
    -------
    DriftModel
        States d, x; parameters G_upd, R_batch, R_crit.

    Source: claims C4 and C34 (theory/claims).
    """
    return DriftModel(
        name="two-constraint",
        states=(d, displacement),
        parameters=(G_upd, R_batch, R_crit),
        flow=(G_upd, G_upd),
        sync=(sp.Integer(0), displacement),
        start=(sp.Integer(0), sp.Integer(0)),
        exits=(_BATCH, _REGION),
        claims=("C4", "C34"),
        solution=(d + G_upd * tau, displacement + G_upd * tau),
    )


def stale_quadratic() -> DriftModel:
    """Gradient flow on a quadratic, of whose curvature K the behaviour policy carries the share f.

    Returns
    -------
    DriftModel
        States x, b; parameters K, f, x0, R_crit.

    Source: claim C32 (theory/claims).
    """
    return DriftModel(
        name="stale quadratic",
        states=(displacement, behavior),
        parameters=(K, f, start, R_crit),
        flow=(-K * ((1 - f) * displacement + f * behavior), sp.Integer(0)),
        sync=(displacement, displacement),
        start=(start, start),
        exits=(_REGION,),
        claims=("C32",),
    )


def lagged_oscillator() -> DriftModel:
    """Heavy ball whose gradient is S steps old, with x(t - S) taken to first order: damping 1 - mu - K*S*eta.

    Returns
    -------
    DriftModel
        States x, w; parameters K, mu, eta, x0, R_crit. A sync changes nothing.

    Source: claim C33 (theory/claims); the rule is that of arXiv:2606.30789.
    """
    pull = (1 - mu - K * P) * velocity + K * displacement
    return DriftModel(
        name="lagged oscillator",
        states=(displacement, velocity),
        parameters=(K, mu, eta, start, R_crit),
        flow=(velocity, -pull / (mu * eta)),
        sync=(displacement, velocity),
        start=(start, sp.Integer(0)),
        exits=(_REGION,),
        claims=("C33",),
    )

"""Drift metrics of the log-ratio delta = log pi_theta - log pi_b, for samples of the behaviour policy b.

For a Gaussian delta whose ratio has the mean 1, delta ~ N(-s^2/2, s^2), every metric is a function of s. Log-ratios of
language models are more peaked with heavier tails: these closed forms tell trends, and theory/conversions.py bounds.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
import sympy as sp
from numpy.typing import ArrayLike, NDArray

from theory.errors import InputError
from theory.formula import Formula
from theory.symbols import ESS, KL, M2, TV, X2, F, L, eps_high, eps_low, log_ratio, s

_tilt = sp.Symbol("tilt", real=True)
_edge, _unit = sp.symbols("edge unit", real=True)
_first, _second = sp.symbols("first second", integer=True, positive=True)


def _density() -> sp.Expr:
    """Density of the log-ratio under the behaviour policy."""
    return sp.exp(-((log_ratio + s**2 / 2) ** 2) / (2 * s**2)) / (s * sp.sqrt(2 * sp.pi))


@cache
def _mean_power() -> sp.Expr:
    """Mean of exp(tilt*delta): one integral over the density, from which the moments follow."""
    return sp.simplify(sp.integrate(sp.exp(_tilt * log_ratio) * _density(), (log_ratio, -sp.oo, sp.oo)))


def _divergence() -> sp.Expr:
    """Integrate exp(tilt*delta) over the density; minus its slope at tilt = 0."""
    return -sp.diff(_mean_power(), _tilt).subs(_tilt, 0)


def _learner_divergence() -> sp.Expr:
    """Integrate exp(tilt*delta) over the density; its slope at tilt = 1."""
    return sp.diff(_mean_power(), _tilt).subs(_tilt, 1)


def _second_moment() -> sp.Expr:
    """Integrate exp(tilt*delta) over the density; its second derivative at tilt = 0."""
    return sp.expand(sp.diff(_mean_power(), _tilt, 2).subs(_tilt, 0))


def _chi_square() -> sp.Expr:
    """Integrate exp(tilt*delta) over the density; its value at tilt = 2, minus 1."""
    return _mean_power().subs(_tilt, 2) - 1


def _effective_share() -> sp.Expr:
    """Integrate exp(tilt*delta) over the density; the square of its value at tilt = 1 over that at tilt = 2."""
    return _mean_power().subs(_tilt, 1) ** 2 / _mean_power().subs(_tilt, 2)


def _total_variation() -> sp.Expr:
    """Integrate 1-exp(delta) over the density where the ratio is below 1."""
    lost = (1 - sp.exp(log_ratio)) * _density()
    return sp.simplify(sp.integrate(lost, (log_ratio, -sp.oo, 0)))


def _clip_fraction() -> sp.Expr:
    """Integrate the density, in standard units, outside of log(1-eps_low) and log(1+eps_high)."""
    standard = (_density() * s).subs(log_ratio, s * _unit - s**2 / 2)
    below = sp.integrate(sp.simplify(standard), (_unit, -sp.oo, _edge)).rewrite(sp.erf)
    low, high = ((sp.log(ratio) + s**2 / 2) / s for ratio in (1 - eps_low, 1 + eps_high))
    return sp.expand(below.subs(_edge, low) + 1 - below.subs(_edge, high), deep=False)


def _sequence_width() -> sp.Expr:
    """Add the variances of L independent tokens."""
    return sp.sqrt(sp.summation(s**2, (_first, 1, L)))


def _sequence_divergence() -> sp.Expr:
    """Add the divergences of L tokens, each given the ones before it: the chain rule."""
    return sp.summation(KL, (_first, 1, L))


def _sequence_effective_share() -> sp.Expr:
    """Multiply the shares of L independent tokens, as their mean square ratios multiply."""
    return sp.product(ESS, (_first, 1, L))


def _sequence_second_moment() -> sp.Expr:
    """Add E[delta_i*delta_k] over all pairs of L independent tokens: M2 on the diagonal, KL^2 off it."""
    pairs = sp.summation(KL**2, (_first, 1, L), (_second, 1, L)) - sp.summation(KL**2, (_first, 1, L))
    return sp.factor(pairs) + sp.summation(M2, (_first, 1, L))


def _widest_second_moment() -> sp.Expr:
    """Bound E[delta_i*delta_k] by Cauchy-Schwarz and add over all pairs of L tokens."""
    return sp.summation(sp.sqrt(M2) * sp.sqrt(M2), (_first, 1, L), (_second, 1, L))


GAUSSIAN_KL = Formula("divergence of a Gaussian log-ratio", KL, _divergence, (s,), "C27")
"""E[-delta] = KL(b||theta) [nat]."""

GAUSSIAN_LEARNER_KL = Formula(
    "learner divergence of a Gaussian log-ratio", sp.Symbol("KL_theta"), _learner_divergence, (s,), "C27"
)
"""E[r*delta] = KL(theta||b) [nat]."""

GAUSSIAN_M2 = Formula("second moment of a Gaussian log-ratio", M2, _second_moment, (s,), "C27")
"""E[delta^2] [nat^2]."""

GAUSSIAN_CHI_SQUARE = Formula("chi-square of a Gaussian log-ratio", X2, _chi_square, (s,), "C27")
"""E[r^2] - 1 [1]."""

GAUSSIAN_ESS = Formula("effective share of a Gaussian log-ratio", ESS, _effective_share, (s,), "C27")
"""(E r)^2/E[r^2] [1]."""

GAUSSIAN_TV = Formula("total variation of a Gaussian log-ratio", TV, _total_variation, (s,), "C27")
"""E|r-1|/2 [1]."""

GAUSSIAN_CLIP = Formula("clip fraction of a Gaussian log-ratio", F, _clip_fraction, (s, eps_low, eps_high), "C27")
"""P(r outside [1-eps_low, 1+eps_high]) [1]."""

SEQUENCE_WIDTH = Formula("width of a sequence", sp.Symbol("s_L"), _sequence_width, (s, L), "C28")
"""Standard deviation [nat] of the log-ratio of L independent tokens."""

SEQUENCE_KL = Formula("divergence of a sequence", sp.Symbol("KL_L"), _sequence_divergence, (KL, L), "C28")
"""KL [nat] of L tokens whose mean divergence given the ones before is KL; needs no independence."""

SEQUENCE_ESS = Formula("effective share of a sequence", sp.Symbol("ESS_L"), _sequence_effective_share, (ESS, L), "C28")
"""Effective share [1] of L independent tokens."""

SEQUENCE_M2 = Formula("second moment of a sequence", sp.Symbol("M2_L"), _sequence_second_moment, (M2, KL, L), "C28")
"""E[delta^2] [nat^2] of L independent tokens."""

WIDEST_SEQUENCE_M2 = Formula(
    "bound on the second moment of a sequence", sp.Symbol("M2_max"), _widest_second_moment, (M2, L), "C28"
)
"""Largest E[delta^2] [nat^2] of L tokens with the mean second moment M2, however they depend on each other."""


@dataclass(frozen=True)
class LevelMetrics:
    """Drift metrics of a sample at one level.

    Attributes
    ----------
    level : str
        "token" or "sequence".
    count : int
        Tokens or sequences.
    kl_k1 : float
        Mean of -delta [nat]; may be negative in a sample.
    kl_k3 : float
        Mean of r-1-delta [nat], >= 0.
    kl_learner : float
        Mean of r*delta-r+1 [nat], >= 0: the divergence under the learner.
    second_moment : float
        Mean of delta^2 [nat^2].
    chi_square : float
        Mean of r^2, minus 1 [1].
    ess : float
        (sum of r)^2 over the count times the sum of r^2 [1].
    clip_fraction : float
        Share with r outside the clip [1].
    total_variation : float
        Half of the mean of |r-1| [1].
    """

    level: str
    count: int
    kl_k1: float
    kl_k3: float
    kl_learner: float
    second_moment: float
    chi_square: float
    ess: float
    clip_fraction: float
    total_variation: float


@dataclass(frozen=True)
class SampleMetrics:
    """Drift metrics of a sample by token and by sequence."""

    token: LevelMetrics
    sequence: LevelMetrics


def check_clip(epsilon: float, epsilon_high: float | None) -> float:
    """Return the upper width of the clip [1], the lower one unless given.

    Raises
    ------
    InputError
        If the lower width is not in (0, 1) or the upper one not positive and finite.

    Notes
    -----
    Source: claim C27.
    """
    if not 0.0 < epsilon < 1.0:
        raise InputError("epsilon", "be in (0, 1)", epsilon, "A ratio is clipped to [1 - epsilon, 1 + epsilon].")
    high = epsilon if epsilon_high is None else epsilon_high
    if not 0.0 < high < np.inf:
        raise InputError("epsilon_high", "be positive and finite", high, "Leave it out for a clip of equal widths.")
    return high


def _level(level: str, delta: NDArray[np.float64], low: float, high: float) -> LevelMetrics:
    """Metrics of log-ratios, shape (count,); what exceeds float64 becomes inf."""
    with np.errstate(over="ignore"):
        excess = np.expm1(delta)
        chi_square = float(np.mean(np.exp(2.0 * delta))) - 1.0
        learner = float(np.mean(excess * (delta - 1.0) + delta))
    weights = np.exp(delta - delta.max())
    outside = (delta < np.log1p(-low)) | (delta > np.log1p(high))
    return LevelMetrics(
        level=level,
        count=delta.size,
        kl_k1=float(np.mean(-delta)),
        kl_k3=float(np.mean(excess - delta)),
        kl_learner=learner,
        second_moment=float(np.mean(delta**2)),
        chi_square=chi_square,
        ess=float(weights.sum() ** 2 / (delta.size * (weights**2).sum())),
        clip_fraction=float(np.mean(outside)),
        total_variation=float(0.5 * np.mean(np.abs(excess))),
    )


def _checked(log_ratio: ArrayLike, mask: ArrayLike | None) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Log-ratios with zeros where masked, and the mask, both of shape (n, L)."""
    delta = np.asarray(log_ratio, dtype=np.float64)
    if delta.ndim != 2 or delta.size == 0:
        raise InputError("log_ratio", "have the shape (n, L)", delta.shape, "Give one row for each sequence.")
    keep = np.ones(delta.shape, dtype=bool) if mask is None else np.asarray(mask)
    if keep.shape != delta.shape or keep.dtype != np.bool_:
        got = f"{keep.dtype} of shape {keep.shape}"
        raise InputError("mask", "be boolean with the shape of log_ratio", got, "True marks a token that counts.")
    empty = np.flatnonzero(~keep.any(axis=1))
    if empty.size:
        raise InputError("mask", "keep a token of every sequence", f"none in row {empty[0]}", "Leave that row out.")
    bad = np.argwhere(keep & ~np.isfinite(delta))
    if bad.size:
        row, token = bad[0]
        place = f"log_ratio[{row}, {token}]"
        raise InputError(place, "be finite", delta[row, token], "Mask padding; look for a log-probability of -inf.")
    return np.where(keep, delta, 0.0), keep


def metrics(
    log_ratio: ArrayLike,
    *,
    mask: ArrayLike | None = None,
    epsilon: float = 0.2,
    epsilon_high: float | None = None,
) -> SampleMetrics:
    """Return the drift metrics of a sample of the behaviour policy.

    Parameters
    ----------
    log_ratio : array, shape (n, L)
        log pi_theta - log pi_b [nat] of each token of each sequence.
    mask : boolean array, shape (n, L), optional
        True where a token counts; the rest may hold anything.
    epsilon, epsilon_high : float
        Lower and upper width of the clip [1]; the upper is the lower if not given.

    Returns
    -------
    SampleMetrics
        By token, and by sequence with the sum of the log-ratios of its tokens.

    Raises
    ------
    InputError
        If a shape is wrong, a log-ratio that counts is not finite, a sequence has no token, or a width is out of range.

    Notes
    -----
    Source: claims C27 and C28 (definitions).

    >>> found = metrics([[0.2, -0.2], [0.2, -0.2]])
    >>> round(found.token.second_moment, 3), found.sequence.ess
    (0.04, 1.0)
    """
    high = check_clip(epsilon, epsilon_high)
    delta, keep = _checked(log_ratio, mask)
    return SampleMetrics(
        token=_level("token", delta[keep], epsilon, high),
        sequence=_level("sequence", delta.sum(axis=1), epsilon, high),
    )

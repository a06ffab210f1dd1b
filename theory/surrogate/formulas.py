"""Terms of the surrogate as symbols: the clip and its jump, the weight a ratio leaves, the gain of normalising."""

import sympy as sp

from theory.formula import Formula
from theory.symbols import G, advantage, eps_high, eps_low, log_ratio, own, own2, p, ratio, whole, whole2

_lag = sp.Symbol("x", positive=True)
_correct = sp.Symbol("k", integer=True, positive=True)


def _term() -> sp.Expr:
    """Take the smaller of r*A and the clipped r times A."""
    clipped = sp.Min(sp.Max(ratio, 1 - eps_low), 1 + eps_high)
    return sp.Min(ratio * advantage, clipped * advantage)


def _onset() -> sp.Expr:
    """Solve for the log-ratio at which a ratio meets the upper end of the clip."""
    (onset,) = sp.solve(sp.Eq(sp.exp(log_ratio), 1 + eps_high), log_ratio)
    return onset


def _lower_onset() -> sp.Expr:
    """Solve for the log-ratio at which a ratio meets the lower end of the clip."""
    (onset,) = sp.solve(sp.Eq(sp.exp(log_ratio), 1 - eps_low), log_ratio)
    return onset


def _jump() -> sp.Expr:
    """Differentiate the unclipped term by log r at the upper end; beyond it the slope is zero."""
    term = (ratio * advantage).subs(ratio, sp.exp(log_ratio))
    return sp.simplify(-sp.diff(term, log_ratio).subs(log_ratio, _onset()))


def _weight() -> sp.Expr:
    """Multiply b(o)/pi(o) = exp(-whole) by the ratio exp(own)."""
    return sp.exp(own - whole)


def _weight_series(order: int) -> sp.Expr:
    """Coefficient of x^order, each log-ratio being first*x + second*x^2."""
    moved = _weight().subs({own: own * _lag + own2 * _lag**2, whole: whole * _lag + whole2 * _lag**2})
    return sp.expand(sp.diff(moved, _lag, order).subs(_lag, 0) / sp.factorial(order))


def _weight_first() -> sp.Expr:
    """Expand the weight to first order in the policy lag."""
    return _weight_series(1)


def _weight_second() -> sp.Expr:
    """Expand the weight to second order in the policy lag."""
    return _weight_series(2)


def _gain(spread: sp.Expr) -> sp.Expr:
    """Covariance of advantage and reward in a group of G with k correct, averaged over k, over p*(1 - p)."""
    covariance = _correct * (G - _correct) / G**2
    chance = sp.binomial(G, _correct) * p**_correct * (1 - p) ** (G - _correct)
    return sp.Sum(chance * covariance / spread, (_correct, 1, G - 1)) / (p * (1 - p))


def _normalised_gain() -> sp.Expr:
    """Average over how many of the G rewards are 1, each group divided by its sample standard deviation."""
    return _gain(sp.sqrt(_correct * (G - _correct) / (G * (G - 1))))


def _mean_only_gain() -> sp.Expr:
    """Variance of a binomial count over G^2*p*(1 - p), with the mean of the group taken from the same samples."""
    second_moment = G * p * (1 - p) + (G * p) ** 2
    return sp.simplify((G * (G * p) - second_moment) / G**2 / (p * (1 - p)))


def _large_group_gain() -> sp.Expr:
    """Put the covariance p*(1 - p) and the standard deviation of a single reward in place of the averages."""
    return p * (1 - p) / sp.sqrt(p * (1 - p)) / (p * (1 - p))


TERM = Formula(
    "clipped surrogate term", sp.Function("term")(ratio), _term, (ratio, advantage, eps_low, eps_high), "C13"
)
"""What one ratio adds to the surrogate [advantage]; PPO, arXiv:1707.06347, equation 7."""

ONSET = Formula("onset of the clip", log_ratio, _onset, (eps_high,), "C13")
"""Largest log r [nat] up to which the clip changes nothing."""

LOWER_ONSET = Formula("lower onset of the clip", log_ratio, _lower_onset, (eps_low,), "C13")
"""Smallest log r [nat] down to which it changes nothing; further from 0 than ONSET where both eps are equal."""

JUMP = Formula("jump at the onset", sp.Symbol("Delta"), _jump, (advantage, eps_high), "C13")
"""What the slope of the term by log r loses [advantage] where a ratio with A > 0 passes the upper end."""

WEIGHT = Formula("weight of a stale sample", sp.Symbol("w"), _weight, (own, whole), "C11")
"""b(o)*r/pi(o) [1]: what a sample counts for, against a fresh one; 1 where the ratio is that of the sequence."""

WEIGHT_FIRST = Formula("weight to first order", sp.Symbol("w_1"), _weight_first, (own, whole), "C11")
"""Coefficient of x in WEIGHT; own and whole are the first-order coefficients of the log-ratios."""

WEIGHT_SECOND = Formula("weight to second order", sp.Symbol("w_2"), _weight_second, (own, whole, own2, whole2), "C11")
"""Coefficient of x^2 in WEIGHT; own2 and whole2 are the second-order coefficients of the log-ratios."""

NORMALISED_GAIN = Formula("gain of normalised advantages", sp.Symbol("c"), _normalised_gain, (p, G), "C12")
"""Factor [1/reward] between dV/dtheta and the mean of A*dlog(pi), rewards 0 or 1 with probability p of 1."""

MEAN_ONLY_GAIN = Formula("gain of centred advantages", sp.Symbol("c"), _mean_only_gain, (G,), "C12")
"""The same factor [1] without the division: it does not depend on the policy."""

LARGE_GROUP_GAIN = Formula("gain of large groups", sp.Symbol("c"), _large_group_gain, (p,), "C12")
"""Limit of NORMALISED_GAIN for G -> infinity."""

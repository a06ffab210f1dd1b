"""What one drift metric says about another: bounds that hold for any two policies, and the Gaussian estimate.

Every inequality reads smaller <= f(larger) with f increasing. It holds for any pair of policies whose ratio has the
mean 1 under the behaviour policy, and f cannot be made smaller by a constant factor: some pair comes as close as one
likes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import sympy as sp
from scipy.optimize import brentq
from sympy.codegen.rewriting import optimize, optims_numpy

from theory import metrics as gaussian
from theory.errors import InputError
from theory.formula import Formula
from theory.metrics import check_clip
from theory.numeric import numpy_function
from theory.symbols import ESS, KL, M2, TV, X2, F, eps, ratio

_step = sp.Symbol("step", positive=True)
_learner = sp.Symbol("KL_theta")


def _pinsker() -> sp.Expr:
    """Divergence of two mirrored two-valued policies, to second order in their total variation, solved for it."""
    mirrored = _step * sp.log((1 + _step) / (1 - _step))
    curvature = sp.diff(mirrored, _step, 2).subs(_step, 0) / 2
    (found,) = sp.solve(sp.Eq(curvature * _step**2, KL), _step)
    return found


def _bretagnolle_huber() -> sp.Expr:
    """Jensen bounds the overlap E[sqrt(r)] by exp(-KL/2) from below, and it is at most sqrt(1-TV^2)."""
    overlap = sp.Symbol("overlap", positive=True)
    (found,) = sp.solve(sp.Eq(sp.sqrt(1 - _step**2), overlap), _step)
    return found.subs(overlap, sp.exp(-KL / 2))


def _log_chi_square() -> sp.Expr:
    """Jensen under the learner: the mean of log r is at most the log of the mean of r, which is 1+chi^2."""
    mean_ratio = X2 + 1
    return sp.log(mean_ratio)


def _half_root() -> sp.Expr:
    """Jensen: half of E|r-1| is at most half of the root of E[(r-1)^2]."""
    return sp.sqrt(X2) / 2


def _root_second_moment() -> sp.Expr:
    """Jensen: E[-delta] is at most the root of E[delta^2]."""
    return sp.sqrt(M2)


def _variation_of_second_moment() -> sp.Expr:
    """The part of r below 1 falls short by at most 1-exp(-|delta|), concave in |delta|: Jensen, twice."""
    return 1 - sp.exp(-_root_second_moment())


def _markov(cost: sp.Expr, mean: sp.Symbol) -> sp.Expr:
    """Mean of a cost over its least value out of the clip, at r = 1+eps."""
    return mean / cost.subs(ratio, 1 + eps)


def _clip_of_variation() -> sp.Expr:
    """Markov for |r-1|, whose mean is 2*TV."""
    return 2 * _markov(ratio - 1, TV)


def _clip_of_chi_square() -> sp.Expr:
    """Markov for (r-1)^2, whose mean is chi^2."""
    return _markov((ratio - 1) ** 2, X2)


def _clip_of_second_moment() -> sp.Expr:
    """Markov for (log r)^2, which is smaller at 1+eps than at 1-eps."""
    return _markov(sp.log(ratio) ** 2, M2)


def _clip_of_divergence() -> sp.Expr:
    """Markov for r-1-log r, whose mean is KL and which is smaller at 1+eps than at 1-eps."""
    return _markov(ratio - 1 - sp.log(ratio), KL)


def _clip_of_learner_divergence() -> sp.Expr:
    """Markov for r*log r-r+1, whose mean is the divergence under the learner; smaller at 1+eps than at 1-eps."""
    return _markov(ratio * sp.log(ratio) - ratio + 1, KL)


def _share() -> sp.Expr:
    """The mean ratio is 1, so the mean square ratio is 1+chi^2."""
    return 1 / (1 + X2)


SHARE_OF_CHI_SQUARE = Formula("effective share from chi-square", ESS, _share, (X2,), "C29")
"""Effective share [1]; an equality."""

PINSKER = Formula("Pinsker", TV, _pinsker, (KL,), "C29")
"""Largest total variation [1] at a divergence [nat] in either direction; best where it is small."""

BRETAGNOLLE_HUBER = Formula("Bretagnolle and Huber", TV, _bretagnolle_huber, (KL,), "C29")
"""Largest total variation [1] at a divergence [nat] in either direction; best where it is large."""

LEARNER_KL_OF_CHI_SQUARE = Formula("learner divergence from chi-square", _learner, _log_chi_square, (X2,), "C29")
"""Largest KL(theta||b) [nat]; nothing of the kind holds for KL(b||theta)."""

VARIATION_OF_CHI_SQUARE = Formula("total variation from chi-square", TV, _half_root, (X2,), "C29")
"""Largest total variation [1]."""

KL_OF_SECOND_MOMENT = Formula("divergence from the second moment", KL, _root_second_moment, (M2,), "C29")
"""Largest KL(b||theta) [nat]."""

VARIATION_OF_SECOND_MOMENT = Formula(
    "total variation from the second moment", TV, _variation_of_second_moment, (M2,), "C29"
)
"""Largest total variation [1]."""

CLIP_OF_VARIATION = Formula("clip fraction from total variation", F, _clip_of_variation, (TV, eps), "C29")
"""Largest clip fraction [1]."""

CLIP_OF_CHI_SQUARE = Formula("clip fraction from chi-square", F, _clip_of_chi_square, (X2, eps), "C29")
"""Largest clip fraction [1]."""

CLIP_OF_SECOND_MOMENT = Formula("clip fraction from the second moment", F, _clip_of_second_moment, (M2, eps), "C29")
"""Largest clip fraction [1]."""

CLIP_OF_KL = Formula("clip fraction from the divergence", F, _clip_of_divergence, (KL, eps), "C29")
"""Largest clip fraction [1]."""

CLIP_OF_LEARNER_KL = Formula(
    "clip fraction from the learner divergence", F, _clip_of_learner_divergence, (KL, eps), "C29"
)
"""Largest clip fraction [1]."""


def _with_plain_argument(argument: sp.Expr) -> sp.Expr:
    """The log of 1/x as -log(x), which reads well where x reaches 0."""
    numerator, denominator = sp.fraction(sp.cancel(argument))
    flipped = sp.expand(denominator / numerator) if numerator.is_number else None
    return sp.log(argument) if flipped is None or denominator.is_number else -sp.log(flipped)


@cache
def _turned(formula: Formula, expression: sp.Expr) -> Formula:
    """An inequality solved for its larger metric, kept by what the formula says now."""

    def turned() -> sp.Expr:
        """Solve the inequality for the larger metric where it is an equality."""
        (found,) = sp.solve(sp.Eq(expression, _step), formula.arguments[0])
        return found.replace(sp.log, _with_plain_argument)

    arguments = (_step, *formula.arguments[1:])
    return Formula(f"{formula.name}, turned", formula.arguments[0], turned, arguments, "C29")


@dataclass(frozen=True)
class Inequality:
    """smaller <= f(larger), with f increasing.

    Parameters
    ----------
    smaller, larger : str
        Names of metrics.
    formula : Formula
        f; its first argument is the larger metric, a second one the width of the clip.
    """

    smaller: str
    larger: str
    formula: Formula

    @property
    def inverse(self) -> Formula:
        """The same read the other way: the least value of the larger metric at a value of the smaller."""
        return _turned(self.formula, self.formula.expression)


INEQUALITIES: tuple[Inequality, ...] = (
    Inequality("total_variation", "kl", PINSKER),
    Inequality("total_variation", "kl_learner", PINSKER),
    Inequality("total_variation", "kl", BRETAGNOLLE_HUBER),
    Inequality("total_variation", "kl_learner", BRETAGNOLLE_HUBER),
    Inequality("kl_learner", "chi_square", LEARNER_KL_OF_CHI_SQUARE),
    Inequality("total_variation", "chi_square", VARIATION_OF_CHI_SQUARE),
    Inequality("kl", "second_moment", KL_OF_SECOND_MOMENT),
    Inequality("total_variation", "second_moment", VARIATION_OF_SECOND_MOMENT),
    Inequality("clip_fraction", "total_variation", CLIP_OF_VARIATION),
    Inequality("clip_fraction", "chi_square", CLIP_OF_CHI_SQUARE),
    Inequality("clip_fraction", "second_moment", CLIP_OF_SECOND_MOMENT),
    Inequality("clip_fraction", "kl", CLIP_OF_KL),
    Inequality("clip_fraction", "kl_learner", CLIP_OF_LEARNER_KL),
)

_GAUSSIAN: dict[str, Formula] = {
    "kl": gaussian.GAUSSIAN_KL,
    "kl_learner": gaussian.GAUSSIAN_LEARNER_KL,
    "second_moment": gaussian.GAUSSIAN_M2,
    "chi_square": gaussian.GAUSSIAN_CHI_SQUARE,
    "ess": gaussian.GAUSSIAN_ESS,
    "total_variation": gaussian.GAUSSIAN_TV,
    "clip_fraction": gaussian.GAUSSIAN_CLIP,
}
METRICS: tuple[str, ...] = tuple(_GAUSSIAN)
"""Names of the metrics that can be converted."""

_LARGEST = {"total_variation": 1.0, "clip_fraction": 1.0}
_GRID: tuple[float, ...] = tuple(np.geomspace(1e-8, 26.0, 300).tolist())
"""Gaussian widths [nat]: below, float64 sees no drift; above, the mean square ratio leaves float64."""


@dataclass(frozen=True)
class Converted:
    """What one metric says about another.

    Attributes
    ----------
    low, high : float
        No pair of policies is outside; inf if nothing bounds it.
    estimate : float
        Value for a Gaussian log-ratio.
    """

    low: float
    high: float
    estimate: float


def _check(metric: str, value: float) -> None:
    if metric not in METRICS:
        raise InputError("metric", f"be one of {', '.join(METRICS)}", repr(metric), "k1 and k3 both estimate kl.")
    if metric == "ess":
        if not 0.0 < value <= 1.0:
            raise InputError("ess", "be in (0, 1]", value, "Divide the effective sample size by the sample size.")
    elif not 0.0 <= value < np.inf:
        raise InputError(metric, "be finite and >= 0", value, "A mean of k1 can be negative; use the mean of k3.")
    elif value > _LARGEST.get(metric, np.inf):
        raise InputError(metric, "be in [0, 1]", value, "It is a share; total variation is half of E|r-1|.")


@cache
def _precise(formula: Formula) -> Callable[..., float]:
    """Compile with log1p and expm1: a bound must not be lost to rounding where policies nearly agree."""
    compiled = sp.lambdify(formula.arguments, optimize(formula.expression, optims_numpy), modules="numpy")
    return lambda *values: float(compiled(*map(np.float64, values)))


def _bounds(metric: str, value: float, width: float) -> dict[str, tuple[float, float]]:
    """Carry a value through the inequalities, both ways, until nothing tightens."""
    names = [name for name in METRICS if name != "ess"]
    low = dict.fromkeys(names, 0.0)
    high = {name: _LARGEST.get(name, np.inf) for name in names}
    low[metric] = high[metric] = value
    with np.errstate(divide="ignore", over="ignore"):
        for _ in names:  # a chain visits each metric once
            for rule in INEQUALITIES:
                clip = (width,) if len(rule.formula.arguments) == 2 else ()
                above = _precise(rule.formula)(high[rule.larger], *clip)
                below = _precise(rule.inverse)(low[rule.smaller], *clip)
                high[rule.smaller] = min(high[rule.smaller], above)
                low[rule.larger] = max(low[rule.larger], below)
    return {name: (low[name], high[name]) for name in names}


def _gaussian_value(metric: str, width: float, clip: tuple[float, float]) -> float:
    """A metric of a Gaussian log-ratio of this width [nat]."""
    return float(numpy_function(_GAUSSIAN[metric])(width, *(clip if metric == "clip_fraction" else ())))


def gaussian_width(metric: str, value: float, *, epsilon: float = 0.2, epsilon_high: float | None = None) -> float:
    """Return the width of the Gaussian log-ratio that has this value of a metric.

    Parameters
    ----------
    metric : str
        One of METRICS.
    value : float
    epsilon, epsilon_high : float
        Lower and upper width of the clip [1]; the upper is the lower if not given.

    Returns
    -------
    float
        Width s [nat], the smallest if several fit a clip with a far wider lower side; cut at 26, and 0 below 1e-8.

    Raises
    ------
    InputError
        If the metric is unknown or the value or a width out of its range.

    Notes
    -----
    Source: claim C27.

    >>> round(gaussian_width("ess", 0.96), 3)
    0.202
    """
    clip = (epsilon, check_clip(epsilon, epsilon_high))
    _check(metric, value)
    sign = -1.0 if metric == "ess" else 1.0

    def excess(width: float) -> float:
        return sign * (_gaussian_value(metric, width, clip) - value)

    if value == (1.0 if metric == "ess" else 0.0) or excess(_GRID[0]) >= 0.0:
        return 0.0
    reached = next((end for end in range(1, len(_GRID)) if excess(_GRID[end]) > 0.0), None)
    return _GRID[-1] if reached is None else float(brentq(excess, _GRID[reached - 1], _GRID[reached], xtol=1e-14))


def convert(
    metric: str, value: float, *, epsilon: float = 0.2, epsilon_high: float | None = None
) -> dict[str, Converted]:
    """Return what one metric of a pair of policies says about all others.

    Parameters
    ----------
    metric : str
        One of METRICS; "kl" is the mean of k1 or k3, "kl_learner" the divergence under the learner.
    value : float
        Its value for the two policies, at the level of tokens or of sequences.
    epsilon, epsilon_high : float
        Lower and upper width of the clip [1]; the upper is the lower if not given.

    Returns
    -------
    dict of str to Converted
        Every other metric: bounds that no pair of policies breaks, and the value for a Gaussian log-ratio.

    Raises
    ------
    InputError
        If the metric is unknown (the known ones are listed) or the value or a width out of its range.

    Notes
    -----
    Source: claims C27 and C29.

    >>> found = convert("second_moment", 0.04)
    >>> round(found["kl"].estimate, 4), round(found["kl"].high, 4)
    (0.0198, 0.2)
    """
    width = gaussian_width(metric, value, epsilon=epsilon, epsilon_high=epsilon_high)
    clip = (epsilon, check_clip(epsilon, epsilon_high))
    chi_square = metric if metric != "ess" else "chi_square"
    bounds = _bounds(chi_square, value if metric != "ess" else 1.0 / value - 1.0, min(clip))
    low, high = (float(numpy_function(SHARE_OF_CHI_SQUARE)(end)) for end in bounds["chi_square"][::-1])
    bounds["ess"] = (low, high)
    nothing = {name: 1.0 if name == "ess" else 0.0 for name in METRICS}
    estimates = {name: _gaussian_value(name, width, clip) for name in METRICS} if width > 0.0 else nothing
    return {name: Converted(*bounds[name], estimates[name]) for name in METRICS if name != metric}

"""Checks of the claims on metrics: quadrature, enumeration of tokens, and pairs of discrete policies."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import quad

from theory import conversions, metrics
from theory.checking import Check, Comparison, close, never_above
from theory.conversions import INEQUALITIES, Inequality
from theory.formula import Formula
from theory.numeric import numpy_function

_QUADRATURE = 1e-8
_EXACT = 1e-10
_TIGHT = 5e-3
_CLIP = (0.2, 0.28)

Floats = NDArray[np.float64]


def _integral(value: Callable[[float], float], width: float, low: float, high: float) -> float:
    """Integral over a stretch of the log-ratio, cut 14 widths from the mean of both policies."""

    def weighted(delta: float) -> float:
        return float(value(delta) * np.exp(-0.5 * ((delta + width**2 / 2) / width) ** 2) / (width * np.sqrt(2 * np.pi)))

    reach = 14.0 * width + 2.0 * width**2
    ends = max(low, -reach), min(high, reach)
    return float(quad(weighted, *ends, epsabs=1e-13, epsrel=1e-11, limit=200)[0])


def _gaussian() -> tuple[Comparison, ...]:
    """Integrate each definition numerically over the normal density."""
    low, high = np.log1p(-_CLIP[0]), np.log1p(_CLIP[1])
    comparisons = []
    for width in (0.1, 0.5, 1.3):

        def mean(
            value: Callable[[float], float], low: float = -np.inf, high: float = np.inf, s: float = width
        ) -> float:
            return _integral(value, s, low, high)

        square = mean(lambda delta: np.exp(2 * delta))
        expected: dict[Formula, float] = {
            metrics.GAUSSIAN_KL: mean(lambda delta: -delta),
            metrics.GAUSSIAN_LEARNER_KL: mean(lambda delta: delta * np.exp(delta)),
            metrics.GAUSSIAN_M2: mean(lambda delta: delta**2),
            metrics.GAUSSIAN_CHI_SQUARE: square - 1.0,
            metrics.GAUSSIAN_ESS: mean(np.exp) ** 2 / square,
            metrics.GAUSSIAN_TV: 0.5 * (mean(lambda d: -np.expm1(d), high=0.0) + mean(np.expm1, low=0.0)),
            metrics.GAUSSIAN_CLIP: mean(lambda _: 1.0, high=low) + mean(lambda _: 1.0, low=high),
        }
        for formula, value in expected.items():
            clip = _CLIP if formula is metrics.GAUSSIAN_CLIP else ()
            found = numpy_function(formula)(width, *clip)
            comparisons.append(close(f"{formula.name} at s = {width}", found, value, rtol=_QUADRATURE))
    return tuple(comparisons)


def exact_metrics(learner: Floats, behaviour: Floats, width: float) -> dict[str, float]:
    """Every metric of two discrete policies, shape (outcomes,), from its definition; width of the clip [1]."""
    excess = (learner - behaviour) / behaviour
    delta = np.log1p(excess)
    square = float(behaviour @ (1.0 + excess) ** 2)
    return {
        "kl": float(behaviour @ (excess - delta)),
        "kl_learner": float(behaviour @ ((1.0 + excess) * delta - excess)),
        "second_moment": float(behaviour @ delta**2),
        "chi_square": float(behaviour @ excess**2),
        "ess": 1.0 / square,
        "total_variation": float(0.5 * np.abs(learner - behaviour).sum()),
        "clip_fraction": float(behaviour @ (np.abs(excess) > width)),
    }


def _product(one: Floats, length: int) -> Floats:
    """Probabilities of all sequences of equal independent tokens."""
    whole = np.ones(1)
    for _ in range(length):
        whole = np.multiply.outer(whole, one).ravel()
    return whole


def _markov_divergence(length: int) -> tuple[float, float]:
    """KL of a sequence of dependent tokens by enumeration, and the mean over tokens of the KL given the prefix."""
    generator = np.random.default_rng(0)
    behaviour, learner, per_token = np.ones(1), np.ones(1), []
    for _ in range(length):
        following = generator.dirichlet(np.ones(3), size=(2, behaviour.size))
        given = (following[0] * np.log(following[0] / following[1])).sum(axis=1)
        per_token.append(float(behaviour @ given))
        behaviour = (behaviour[:, None] * following[0]).ravel()
        learner = (learner[:, None] * following[1]).ravel()
    return float(behaviour @ np.log(behaviour / learner)), float(np.mean(per_token))


def _sequence() -> tuple[Comparison, ...]:
    """Enumerate all sequences of four tokens, independent ones and dependent ones."""
    length, generator = 4, np.random.default_rng(1)
    behaviour, learner = generator.dirichlet(np.ones(5), size=2)
    token = exact_metrics(learner, behaviour, 0.2)
    whole = exact_metrics(_product(learner, length), _product(behaviour, length), 0.2)
    widths = [np.sqrt(each["second_moment"] - each["kl"] ** 2) for each in (token, whole)]
    dependent, mean = _markov_divergence(length)
    rare = np.array([1.0 - 1e-9, 1e-9])
    moved = np.array([0.9, 0.1])
    steady = exact_metrics(moved, rare, 0.2)["second_moment"]
    summed = exact_metrics(_product(moved, length), _product(rare, length), 0.2)["second_moment"]
    share = numpy_function(metrics.SEQUENCE_ESS)(token["ess"], length)
    second = numpy_function(metrics.SEQUENCE_M2)(token["second_moment"], token["kl"], length)
    widest = numpy_function(metrics.WIDEST_SEQUENCE_M2)
    bound = widest(token["second_moment"], length)
    return (
        close("width", numpy_function(metrics.SEQUENCE_WIDTH)(widths[0], length), widths[1], rtol=_EXACT),
        close("divergence", numpy_function(metrics.SEQUENCE_KL)(token["kl"], length), whole["kl"], rtol=_EXACT),
        close("of dependent tokens", numpy_function(metrics.SEQUENCE_KL)(mean, length), dependent, rtol=_EXACT),
        close("effective share", share, whole["ess"], rtol=_EXACT),
        close("second moment", second, whole["second_moment"], rtol=_EXACT),
        never_above("second moment below its bound", whole["second_moment"], bound),
        close("the bound is nearly met by a steady shift", widest(steady, length), summed, rtol=_TIGHT),
    )


def _pairs() -> list[tuple[Floats, Floats]]:
    """Random pairs of discrete policies, from nearly equal to nearly disjoint."""
    generator = np.random.default_rng(2)
    pairs = []
    for number in range(300):
        size, sharpness = 2 + number % 7, 10.0 ** generator.uniform(-1.0, 1.0)
        behaviour, other = (generator.dirichlet(np.full(size, sharpness), size=2) + 1e-9) / (1.0 + size * 1e-9)
        mix = 10.0 ** generator.uniform(-3.0, 0.0)
        pairs.append(((1.0 - mix) * behaviour + mix * other, behaviour))
    return pairs


def _nearly_met(width: float) -> list[tuple[Floats, Floats]]:
    """Pairs of policies (learner, behaviour) that nearly meet one inequality or another."""
    small, edge = 1e-7, width * (1.0 + 1e-9)
    rare = np.array([1.0 - small, small])
    shifted = np.array([np.exp(-0.5) * (1.0 - small), 1.0 - np.exp(-0.5) * (1.0 - small)])
    sided = np.array([small, 1.0 - small])
    both = np.array([0.25, 0.25, 0.5])
    return [
        (np.array([0.505, 0.495]), np.array([0.495, 0.505])),
        (rare, rare[::-1]),
        (np.array([1.0 - 1e-12, 1e-12]), np.array([0.3, 0.7])),
        (np.array([0.6, 0.4]), np.array([0.5, 0.5])),
        (shifted, rare),
        (both * np.array([1.0 + edge, 1.0 - edge, 1.0]), both),
        (sided * np.array([1.0 + edge, 1.0 - small * edge / (1.0 - small)]), sided),
    ]


def _of(rule: Inequality, cases: list[dict[str, float]], width: float) -> tuple[Floats, Floats, Floats]:
    """The smaller metric, its bound from the larger one, and what the turned bound makes of that bound."""
    clip = (width,) if len(rule.formula.arguments) == 2 else ()
    smaller = np.array([case[rule.smaller] for case in cases])
    larger = np.array([case[rule.larger] for case in cases])
    bound = numpy_function(rule.formula)(larger, *clip)
    unsaturated = larger[bound < 0.9999] if rule.smaller == "total_variation" else larger
    there = numpy_function(rule.formula)(unsaturated, *clip)
    return smaller, bound, numpy_function(rule.inverse)(there, *clip) / unsaturated


def _inequalities() -> tuple[Comparison, ...]:
    """Hold every bound against random pairs of discrete policies, and against a pair that nearly meets it."""
    width = 0.2
    random = [exact_metrics(*pair, width) for pair in _pairs()]
    near = [exact_metrics(*pair, width) for pair in _nearly_met(width)]
    comparisons = []
    for rule in INEQUALITIES:
        name = f"{rule.smaller} by {rule.larger}: {rule.formula.name}"
        smaller, bound, turned = _of(rule, random, width)
        comparisons.append(never_above(name, smaller, bound))
        comparisons.append(close(f"{name}, turned", turned, np.ones_like(turned), rtol=1e-6))
        smaller, bound, _ = _of(rule, near, width)
        met = int(np.argmax(smaller / bound))
        comparisons.append(close(f"{name}, nearly met", bound[met], smaller[met], rtol=_TIGHT))
    shares = numpy_function(conversions.SHARE_OF_CHI_SQUARE)([case["chi_square"] for case in random])
    comparisons.append(close("effective share", shares, [case["ess"] for case in random], rtol=_EXACT))
    return tuple(comparisons)


CHECKS: dict[str, Check] = {"C27": _gaussian, "C28": _sequence, "C29": _inequalities}

"""Checks of C10 to C15 on enumerated policies."""

import itertools

import numpy as np

from theory.checking import Check, Comparison, close
from theory.numeric import numpy_function
from theory.surrogate import formulas, ratios, two_tokens
from theory.surrogate.curvature import cross_token_curvature, curvature, reward_hessian
from theory.surrogate.exact import Clip, Surrogate
from theory.surrogate.groups import Advantage, Groups, mean_and_std, mean_only, reward_only
from theory.surrogate.policies import Array, TabularPolicy
from theory.surrogate.split import bias_split, ratio_part, ratio_part_expansion
from theory.symbols import G, p

ROUNDING = 1e-10
"""Sums of up to a thousand terms of order one in float64, some of which cancel."""
SLOPE = 0.02
"""Error allowed for a fitted order, for lags of 1e-3 to 1e-2, where the next order is a percent at most."""
_LAGS = np.geomspace(1e-3, 1e-2, 5)


def example(advantage: Advantage, level: ratios.Level, *, levels: int = 3) -> Surrogate:
    """Return a surrogate on three tokens of three symbols with random rewards of so many levels."""
    policy = TabularPolicy.per_prefix(3, 3)
    rewards = np.random.default_rng(levels).integers(0, levels, len(policy.tokens)).astype(np.float64)
    return Surrogate(policy, rewards, Groups(advantage, 4), level)


def point(surrogate: Surrogate, seed: int = 0) -> tuple[Array, Array]:
    """Random parameters and a random direction of unit length, each of the policy's shape."""
    rng = np.random.default_rng(seed)
    direction = rng.normal(size=surrogate.policy.shape)
    return rng.normal(size=surrogate.policy.shape), direction / np.linalg.norm(direction)


def fitted_order(sizes: Array) -> float:
    """Slope of log size on log lag over the lags of the checks."""
    return float(np.polyfit(np.log(_LAGS), np.log(sizes), 1)[0])


def two_derivatives() -> tuple[Comparison, ...]:
    """Both derivatives against differences of the enumerated J, and their sum against zero and dV/dtheta."""
    found = []
    for advantage, level in itertools.product((mean_only, mean_and_std), (ratios.token, ratios.sequence)):
        surrogate = example(advantage, level)
        theta, direction = point(surrogate)
        size = np.linalg.norm(surrogate.learner_gradient(theta, theta))
        total = float(np.linalg.norm(surrogate.total_derivative(theta)) / size)
        found.append(Comparison(f"total derivative, {advantage.__name__}, {level.__name__}", total, ROUNDING))
        b, h = theta - 0.3 * direction, 1e-5
        slope = (surrogate.value(theta, b + h * direction) - surrogate.value(theta, b - h * direction)) / (2 * h)
        exact = float((surrogate.behavior_gradient(theta, b) * direction).sum())
        found.append(close("derivative through b", exact, slope, rtol=1e-7))
    for level, share in ((ratios.token, 1 / 3), (ratios.sequence_product, 1.0)):
        surrogate = example(reward_only, level)
        theta, _ = point(surrogate)
        gradient = surrogate.reward_gradient(theta)
        found.append(close("total of bare rewards", surrogate.total_derivative(theta), gradient, rtol=ROUNDING))
        learner = surrogate.learner_gradient(theta, theta)
        found.append(close(f"learner's share, {level.__name__}", learner, share * gradient, rtol=ROUNDING))
    return (*found, *_two_tokens())


def _two_tokens() -> tuple[Comparison, ...]:
    """Compare the symbolic chain for two tokens with the enumerated one."""
    policy, rewards = TabularPolicy.per_position(2, 2), np.array([0.3, -1.0, 0.7, 2.0])
    centred = Surrogate(policy, rewards, Groups(mean_only, 2), ratios.token)
    theta, direction = np.array([[0.0, 0.4], [0.0, -0.9]]), np.array([[0.0, 0.8], [0.0, -0.5]])
    first, second = 1 / (1 + np.exp(-theta[:, 1]))
    bias = [centred.learner_gradient(theta, theta - x * direction)[0, 1] for x in (-1e-4, 1e-4)]
    bare = Surrogate(policy, rewards, Groups(reward_only, 2), ratios.token)
    fresh = numpy_function(two_tokens.LEARNER_GRADIENT)(first, second, 2, *rewards)
    slope = numpy_function(two_tokens.FIRST_BIAS)(first, second, -0.5, 2, *rewards)
    total = numpy_function(two_tokens.TOTAL_DERIVATIVE)(first, second, *rewards)
    return (
        close("two tokens, learner", fresh, centred.learner_gradient(theta, theta)[0, 1], rtol=ROUNDING),
        close("two tokens, bias", slope, (bias[1] - bias[0]) / 2e-4, rtol=1e-6),
        close("two tokens, total", total, bare.total_derivative(theta)[0, 1], rtol=ROUNDING),
    )


def missing_ratios() -> tuple[Comparison, ...]:
    """The enumerated ratio part against its expansion: orders 1, 2 and 3, and zero for the product of ratios."""
    weight = numpy_function(formulas.WEIGHT)(0.3, 0.5)
    found = [close("weight", weight, np.exp(0.3) / np.exp(0.5), rtol=ROUNDING)]
    for level in (ratios.token, ratios.sequence):
        surrogate = example(mean_only, level)
        theta, direction = point(surrogate)
        advantages = surrogate.parts(theta)
        parts = [ratio_part(surrogate, advantages, theta, theta - x * direction) for x in _LAGS]
        one, two = ratio_part_expansion(surrogate, advantages, theta, direction)
        rests = (
            parts,
            [part - x * one for part, x in zip(parts, _LAGS, strict=True)],
            [part - x * one - x * x * two for part, x in zip(parts, _LAGS, strict=True)],
        )
        for order, rest in enumerate(rests, start=1):
            error = abs(fitted_order(np.array([np.linalg.norm(one_lag) for one_lag in rest])) - order)
            found.append(Comparison(f"order {order}, {level.__name__}", error, SLOPE))
    surrogate = example(mean_and_std, ratios.sequence_product)
    theta, direction = point(surrogate)
    left = np.linalg.norm(bias_split(surrogate, theta, theta - direction).ratios)
    return (*found, Comparison("product of ratios", float(left), ROUNDING))


def group_statistics() -> tuple[Comparison, ...]:
    """The normalisation part: zero when centred, first order when divided, parallel to dV for two levels."""
    centred, divided = example(mean_only, ratios.token), example(mean_and_std, ratios.token)
    theta, direction = point(centred)
    zero = float(np.linalg.norm(bias_split(centred, theta, theta - direction).normalisation))
    sizes = [np.linalg.norm(bias_split(divided, theta, theta - x * direction).normalisation) for x in _LAGS]
    found = [
        Comparison("centred advantages", zero, ROUNDING),
        Comparison("order when divided", abs(fitted_order(np.array(sizes)) - 1), SLOPE),
    ]
    for advantage, formula in ((mean_and_std, formulas.NORMALISED_GAIN), (mean_only, formulas.MEAN_ONLY_GAIN)):
        binary = example(advantage, ratios.sequence_product, levels=2)
        gain = float(formula.expression.subs(G, 4).doit().subs(p, binary.expected_reward(theta)))
        gradient = binary.learner_gradient(theta, theta)
        found.append(close(formula.name, gradient, gain * binary.reward_gradient(theta), rtol=ROUNDING))
    part = bias_split(example(mean_and_std, ratios.token, levels=2), theta, theta - direction).normalisation.ravel()
    along = example(mean_only, ratios.token, levels=2).reward_gradient(theta).ravel()
    cosine = abs(part @ along) / np.linalg.norm(part) / np.linalg.norm(along)
    large = Groups(mean_and_std, 1000).parts(np.array([0.0, 1.0]), np.array([0.7, 0.3]))
    gap = np.diff(large[0] - large[1])[0]
    limit = float(numpy_function(formulas.LARGE_GROUP_GAIN)(0.3))
    return (
        *found,
        close("two levels: parallel to dV", cosine, 1.0, rtol=ROUNDING),
        close("gain of groups of 1000", gap, limit, rtol=2e-3),
    )


def clip_onset() -> tuple[Comparison, ...]:
    """The clip part just below each onset against zero, and the jump of the gradient across it."""
    term = numpy_function(formulas.TERM)(np.array([0.5, 0.9, 1.2, 1.5]), np.array([1.0, -1.0, 2.0, 2.0]), 0.2, 0.3)
    top, bottom = float(numpy_function(formulas.ONSET)(0.3)), float(numpy_function(formulas.LOWER_ONSET)(0.2))
    return (
        *_onset(Clip(low=0.999, high=0.3), top, "upper"),
        *_onset(Clip(low=0.2, high=1e3), bottom, "lower"),
        close("the term", term, [0.5, -0.9, 2.4, 2.6], rtol=ROUNDING),
    )


def _onset(clip: Clip, log_ratio: float, end: str) -> tuple[Comparison, ...]:
    """Compare both sides of the lag at which the first log-ratio reaches the given one; only that end can act."""
    policy = TabularPolicy.per_position(3, 3)  # every token is in sequences of every reward
    rewards = example(mean_only, ratios.token).rewards
    surrogate = Surrogate(policy, rewards, Groups(mean_only, 4), ratios.token, clip)
    theta, direction = point(surrogate)
    low, high = 0.0, 5.0
    for _ in range(60):
        middle = (low + high) / 2
        reach = (surrogate.log_ratios(theta, theta - middle * direction) / log_ratio).max()
        low, high = (middle, high) if reach < 1 else (low, middle)
    before, after = (bias_split(surrogate, theta, theta - x * direction).clip for x in (low * 0.9999, high * 1.0001))
    behavior = theta - high * direction
    passed = surrogate.log_ratios(theta, behavior) / log_ratio > 0.9999
    plus, minus = surrogate.parts(behavior)
    jump = numpy_function(formulas.JUMP)
    lost = jump(plus, clip.high) if log_ratio > 0 else -jump(minus, -clip.low)
    weights = policy.probabilities(behavior)[:, None] * passed * lost[:, None] / policy.length
    return (
        Comparison(f"before the {end} onset", float(np.linalg.norm(before)), 1e-14),
        close(f"jump at the {end} onset", after, policy.pull_back(weights, theta), rtol=1e-3),
    )


def stale_curvature() -> tuple[Comparison, ...]:
    """dg/db by complex derivatives against cross-token products of scores and blocks of the Hessian of V."""
    found = []
    for policy in (TabularPolicy.markov(3, 3), TabularPolicy.per_position(3, 3)):
        rewards = np.random.default_rng(1).normal(size=len(policy.tokens)).round(1)
        surrogate = Surrogate(policy, rewards, Groups(mean_only, 2), ratios.token)
        theta, _ = point(surrogate)
        gain = float(formulas.MEAN_ONLY_GAIN.expression.subs(G, 2)) / policy.length
        parts = curvature(surrogate, theta)
        expected = gain * cross_token_curvature(surrogate, theta)
        found.append(close("cross-token products", parts.stale, expected, rtol=ROUNDING))
        hessian = gain * reward_hessian(surrogate, theta)
        found.append(close("both parts add to the Hessian", parts.fresh + parts.stale, hessian, rtol=ROUNDING))
    block = np.kron(np.eye(policy.shape[0]), np.ones((policy.shape[1],) * 2))
    found.append(close("fresh part is the diagonal blocks", parts.fresh, hessian * block, rtol=ROUNDING))
    exact = Surrogate(policy, rewards, Groups(mean_only, 2), ratios.sequence_product)
    return (*found, Comparison("product of ratios", curvature(exact, theta).stale_share, ROUNDING))


def expected_advantages() -> tuple[Comparison, ...]:
    """Multinomial sums against all K^(G-1) groups, and their slopes against differences."""
    levels, chance = np.array([0.0, 0.5, 2.0]), np.array([0.5, 0.2, 0.3])
    found = []
    for advantage in (mean_only, mean_and_std):
        groups = Groups(advantage, 4)
        brute = np.zeros((2, 3))
        for own, *rest in itertools.product(range(3), repeat=4):
            rewards = levels[[own, *rest]]
            value = advantage(rewards[:1], rewards.mean(keepdims=True), rewards.var(ddof=1, keepdims=True))[0]
            brute[:, own] += np.prod(chance[rest]) * np.array([max(value, 0.0), max(-value, 0.0)])
        found.append(close(f"parts, {advantage.__name__}", groups.parts(levels, chance), brute, rtol=ROUNDING))
        move = 1e-6 * np.eye(3)
        slopes = [
            (np.array(groups.parts(levels, chance + one)) - np.array(groups.parts(levels, chance - one))) / 2e-6
            for one in move
        ]
        found.append(
            close("slopes", groups.slopes(levels, chance), np.stack(slopes, axis=-1), rtol=1e-8),
        )
    return tuple(found)


CHECKS: dict[str, Check] = {
    "C10": two_derivatives,
    "C11": missing_ratios,
    "C12": group_statistics,
    "C13": clip_onset,
    "C14": stale_curvature,
    "C15": expected_advantages,
}

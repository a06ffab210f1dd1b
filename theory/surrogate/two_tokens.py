"""The whole chain in symbols for two tokens of two symbols: surrogate, its two derivatives, expansion in the lag.

Token c is 1 with probability p_c = 1/(1 + exp(-logit)); the rewards of 00, 01, 10 and 11 are R_00 to R_11; the
surrogate is token level with centred advantages. The behaviour policy lags by x along (d_1, d_2).
"""

from itertools import product

import sympy as sp

from theory.formula import Formula
from theory.symbols import G

p1, p2 = sp.symbols("p_1 p_2", positive=True)
d1, d2 = sp.symbols("d_1 d_2", real=True)
rewards = sp.symbols("R_00 R_01 R_10 R_11", real=True)
_logits = sp.symbols("theta_1 theta_2", real=True)
_behavior = sp.symbols("b_1 b_2", real=True)
_lag = sp.Symbol("x", positive=True)


def _chance(logit: sp.Expr, token: int) -> sp.Expr:
    one = 1 / (1 + sp.exp(-logit))
    return one if token else 1 - one


def _surrogate(*, centred: bool) -> sp.Expr:
    """Sum b(o) * mean of the token ratios * advantage over the four sequences."""
    sequences = list(product((0, 1), repeat=2))
    behavior = [sp.prod(_chance(b, token) for b, token in zip(_behavior, one, strict=True)) for one in sequences]
    value = sum(chance * reward for chance, reward in zip(behavior, rewards, strict=True))
    total = sp.Integer(0)
    for one, chance, reward in zip(sequences, behavior, rewards, strict=True):
        ratios = [_chance(t, o) / _chance(b, o) for t, b, o in zip(_logits, _behavior, one, strict=True)]
        advantage = (1 - 1 / G) * (reward - value) if centred else reward
        total += chance * sum(ratios) / 2 * advantage
    return total


def _at_probabilities(expression: sp.Expr) -> sp.Expr:
    """Put the logits log(p/(1 - p)) in, and gather."""
    logits = {_logits[0]: sp.log(p1 / (1 - p1)), _logits[1]: sp.log(p2 / (1 - p2))}
    return sp.factor(sp.simplify(expression.subs(logits)))


def _learner(order: int) -> sp.Expr:
    """Coefficient of x^order in d J / d theta_1 at b = theta - x*d."""
    gradient = sp.diff(_surrogate(centred=True), _logits[0])
    lagged = gradient.subs(dict(zip(_behavior, (_logits[0] - _lag * d1, _logits[1] - _lag * d2), strict=True)))
    return _at_probabilities(sp.diff(lagged, _lag, order).subs(_lag, 0) / sp.factorial(order))


def _fresh() -> sp.Expr:
    """Differentiate J by theta_1 at frozen b, and put b = theta."""
    return _learner(0)


def _first() -> sp.Expr:
    """Differentiate J by theta_1 at frozen b, put b = theta - x*d, and take the coefficient of x."""
    return _learner(1)


def _total() -> sp.Expr:
    """Put b = theta into J with bare rewards first, and differentiate then."""
    at_theta = _surrogate(centred=False).subs(dict(zip(_behavior, _logits, strict=True)))
    return _at_probabilities(sp.diff(at_theta, _logits[0]))


LEARNER_GRADIENT = Formula("learner's gradient of two tokens", sp.Symbol("g_1"), _fresh, (p1, p2, G, *rewards), "C10")
"""d J / d theta_1 [reward] at b = theta: half of (1 - 1/G)*dV/dtheta_1."""

FIRST_BIAS = Formula("bias of two tokens to first order", sp.Symbol("g_1x"), _first, (p1, p2, d2, G, *rewards), "C10")
"""Coefficient of x [reward]: it is the interaction R_00 - R_01 - R_10 + R_11 that makes the bias, and only the lag of
the other token."""

TOTAL_DERIVATIVE = Formula(
    "total derivative of two tokens with bare rewards", sp.Symbol("J_1"), _total, (p1, p2, *rewards), "C10"
)
"""d J(theta; theta) / d theta_1 [reward]: dV/dtheta_1."""

"""The staleness-induced bias of an update: its bound, a sawtooth in the lag that is zero at every sync.

The learner follows the partial derivative g(theta; b) of the surrogate with the behaviour policy b frozen,
j steps old. The bias is g(theta; b) - g(theta; theta). It has two parts, both proportional to the distance
|theta - b|: the samples come from another distribution (2*M per unit of total variation), and the integrand
is another one.
"""

import sympy as sp

from theory.formula import Formula
from theory.symbols import L_D, G_upd, L_b, L_phi, M, S, eta, j, t

_distance, _total_variation, _earlier = sp.symbols("distance total_variation i", positive=True)


def _slope() -> sp.Expr:
    """Bias per distance: |E_p f - E_q f| <= 2*M*TV(p, q), and the Lipschitz part."""
    sampling = (2 * M * _total_variation).subs(_total_variation, L_D * _distance)
    return sp.expand((sampling + L_phi * _distance) / _distance)


def _bound_at_lag() -> sp.Expr:
    """L_b times the distance that j updates of norm at most eta*G_upd can cover."""
    return L_b * sp.summation(eta * G_upd, (_earlier, 1, j))


def _bound_at_step() -> sp.Expr:
    """Put the lag of step t, (t - 1) mod S, into the bound at a lag."""
    return _bound_at_lag().subs(j, sp.Mod(t - 1, S))


def _cycle_maximum() -> sp.Expr:
    """Put the largest lag of a cycle, S - 1, into the bound at a lag."""
    return _bound_at_lag().subs(j, S - 1)


def _cycle_mean() -> sp.Expr:
    """Average the bound over the lags 0 to S - 1."""
    return sp.factor(sp.summation(_bound_at_lag(), (j, 0, S - 1)) / S)


BIAS_SLOPE = Formula("bias slope", L_b, _slope, (M, L_D, L_phi), "C3")
"""L_b [gradient per parameter distance]."""

_bias = sp.Function("bias")

LAG_BOUND = Formula("bias bound at a lag", _bias(j), _bound_at_lag, (j, eta, L_b, G_upd), "C3")
"""Bound on the bias of an update at lag j [gradient]."""

STEP_BOUND = Formula("bias bound at a step", _bias(t), _bound_at_step, (t, S, eta, L_b, G_upd), "C3")
"""The sawtooth: the bound at step t = 1, 2, ... of a run that syncs before steps 1, S + 1, ... [gradient]."""

CYCLE_MAXIMUM = Formula("largest bias bound of a cycle", _bias(S - 1), _cycle_maximum, (S, eta, L_b, G_upd), "C3")
"""The bound at the last step of a cycle, lag S - 1 [gradient]."""

CYCLE_MEAN = Formula(
    "mean bias bound of a cycle",
    sp.Sum(_bias(j), (j, 0, S - 1)) / S,
    _cycle_mean,
    (S, eta, L_b, G_upd),
    "C3",
)
"""The mean of the bound over the lags 0 to S - 1 [gradient]."""

"""The two-constraint rules: min-form, max-form, where they cross, and the smooth form that joins them."""

import sympy as sp

from theory.drift import BOUNDARY, EXIT_BUDGET, LINEAR_EXIT_BUDGET
from theory.formula import Formula
from theory.symbols import B, C, G_upd, R, R_batch, R_crit, S, T, eta, h, kappa


def _rate(equation: sp.Eq) -> sp.Expr:
    (rate,) = sp.solve(equation, eta)
    return rate


def _cycle_rate() -> sp.Expr:
    """Solve for the rate at which S steps of full size cover R_batch."""
    return _rate(sp.Eq(S * eta * G_upd, R_batch))


def _run_rate() -> sp.Expr:
    """Solve for the rate at which T steps of full size cover R_crit."""
    return _rate(sp.Eq(T * eta * G_upd, R_crit))


def _min_rule() -> sp.Expr:
    """Take the smaller of both rates."""
    return sp.Min(_cycle_rate(), _run_rate())


def _min_form() -> sp.Expr:
    """Write the min rule in C = R_batch/G_upd and B = R_crit/G_upd."""
    return _min_rule().subs({R_batch: C * G_upd, R_crit: B * G_upd})


def _max_form() -> sp.Expr:
    """Take the larger of the rate on the boundary and the rate whose budget is the horizon."""
    return sp.Max(BOUNDARY.expression, _rate(sp.Eq(eta * T, B)))


def _crossover() -> sp.Expr:
    """Solve for the sync interval at which both rates are equal."""
    (interval,) = sp.solve(sp.Eq(_cycle_rate(), _run_rate()), S)
    return interval


def _smooth_rate() -> sp.Expr:
    """LINEAR_EXIT_BUDGET at kappa = S*eta/C, solved for the learning rate that exits just at the horizon."""
    budget = LINEAR_EXIT_BUDGET.expression.subs(kappa, S * eta / C)
    return sp.simplify(_rate(sp.Eq(eta * T, budget)))


def _honest_budget() -> sp.Expr:
    """Put u = h into the exit budget of steady drift: the budget where staleness does not count."""
    return EXIT_BUDGET.expression.subs(EXIT_BUDGET.arguments[1], h)


STALENESS_RATE = Formula("learning rate a cycle allows", eta, _cycle_rate, (S, R_batch, G_upd), "C4")
"""Learning rate [1] at which the drift inside a cycle reaches R_batch."""

HORIZON_RATE = Formula("learning rate a horizon allows", eta, _run_rate, (T, R_crit, G_upd), "C4")
"""Learning rate [1] at which the drift over the run reaches R_crit."""

MIN_RULE = Formula("min-form", eta, _min_rule, (S, T, R_batch, R_crit, G_upd), "C4")
"""Learning rate [1] below which both constraints hold; sufficient for a stable run."""

MIN_FORM = Formula(
    "min-form of products",
    eta,
    _min_form,
    (S, T, C, B),
    "C4",
)
"""The same rule [1] in C = R_batch/G_upd and B = R_crit/G_upd."""

CROSSOVER = Formula("crossover sync interval", S, _crossover, (T, R_batch, R_crit), "C4")
"""Sync interval [optimizer steps] above which, in the min-form, the cycle and not the horizon binds."""

MAX_FORM = Formula("max-form", eta, _max_form, (S, T, C, B), "C8")
"""Learning rate [1] above which both S*eta > C and eta*T > B, so that a run collapses within its horizon."""

HONEST_BUDGET = Formula("budget of the honest signal", B, _honest_budget, (R, h), "C7")
"""B [1] of the smooth form: eta*T at exit far below the boundary."""

SMOOTH_RATE = Formula("smooth min-form", eta, _smooth_rate, (S, T, C, R, h), "C7")
"""Learning rate [1] that exits just at the horizon, S*eta < C: 1/eta is the sum of S/C and T*h/R."""

"""Drift models of the engine's tests; the fewer there are, the less is compiled."""

import numpy as np
import sympy as sp

from meanfield.engine.members import Members
from theory.models.model import CycleEndExit, DriftModel, WithinExit
from theory.symbols import P

x, y, d = sp.symbols("x y d", real=True)
a, b, g, R, Q = sp.symbols("a b g R Q", positive=True)


VALUES = {"h": 0.02, "k_w": 8.0, "k_s": 20.0, "rho": 0.3, "v": 1.0, "sigma": 1.0, "m0": 0.05}
LIMITS = {"R_batch": 0.25, "R_crit": 1.2}
"""Of persistent drift."""
NONE = 1e9
"""A limit that is never met."""
GLOBAL = 10.0
"""House rule for an integrator against an exact solution: ten times its tolerance."""


def memory_map(saturated=sp.tanh):
    """u -> tanh(h + kappa*u) with kappa = P*b: constant speed inside a cycle; h and b may be negative."""
    h, b, u0, u = sp.symbols("h b u0 u", real=True)
    return DriftModel(
        "memory map",
        (u, d, x),
        (h, b, u0, R),
        (sp.Integer(0), u, u),
        (saturated(h + b * d), sp.Integer(0), x),
        (u0, sp.Integer(0), sp.Integer(0)),
        (WithinExit("region", sp.Abs(x), R),),
    )


def fast_and_slow():
    """At a sync u goes half of its way to s, and s the share b of its way to 1, from 1 - a; x' = u. u begins at s + g.

    The states are p = u + s and q = u + 2*s, so that each holds the fast change and the slow one.
    """
    p, q = sp.symbols("p q", real=True)
    u, s = 2 * p - q, q - p
    after_u, after_s = (u + s) / 2, s + b * (1 - s)
    return DriftModel(
        "fast and slow",
        (p, q, x),
        (a, b, g, R),
        (sp.Integer(0), sp.Integer(0), u),
        (after_u + after_s, after_u + 2 * after_s, x),
        (2 * (1 - a) + g, 3 * (1 - a) + g, sp.Integer(0)),
        (WithinExit("region", sp.Abs(x), R),),
    )


def swing():
    """x'' = -a**2*x from x = 0 at speed b*a: x = b*sin(a*tau), and a sync changes nothing. Exits above R and Q."""
    return DriftModel(
        "swing",
        (x, y),
        (a, b, R, Q),
        (y, -(a**2) * x),
        (x, y),
        (sp.Integer(0), a * b),
        (WithinExit("above", x, R), CycleEndExit("end", -x, Q)),
    )


def burst():
    """x' = x**2 from x = a: infinite at tau = 1/a."""
    return DriftModel("burst", (x,), (a, R), (x**2,), (x,), (a,), (WithinExit("region", x, R),))


def zoo():
    """Every function that can be compiled, in one model."""
    small = x / 10
    flow = (
        sp.exp(-(x**2)) + sp.log(2 + y**2) + sp.sqrt(a + x**2) + sp.tan(small) + sp.Abs(y) ** sp.Rational(3, 2),
        sp.sin(x * b) + sp.cos(y) ** 3 + sp.sinh(small) + sp.cosh(small) - sp.tanh(3 * x / P) + sp.sign(y) * x**-2,
    )
    sync = (
        sp.asinh(x) + sp.atan(y) + sp.erf(x) + sp.erfc(y) + sp.Min(x, y, a) + sp.Max(x, b) + sp.pi + x ** (a / b),
        sp.Piecewise((x * y, x > y), (y**-1 + sp.E, True)) + sp.acosh(2 + x**2) + sp.asin(small) + sp.atanh(small),
    )
    return DriftModel("zoo", (x, y), (a, b), flow, sync, (a, b), (WithinExit("sum", sp.Abs(x) + y * a, a + b),))


def humps():
    """Within a cycle x = n*(tau - tau**2) rises and falls; n counts the cycles from 0. Exits that come and go."""
    n = sp.Symbol("n", real=True)
    none = sp.Integer(0)
    return DriftModel(
        "humps",
        (x, y, n),
        (R, Q, g),
        ((1 - 2 * y) * n, sp.Integer(1), none),
        (none, none, n + 1),
        (none, none, none),
        (WithinExit("x", x, R), WithinExit("end", y + n, Q), WithinExit("flat start", n * y**2 * (1 - y), g)),
    )


def products():
    """x = tau, and d the same since the last sync. Exits in which a counter meets what a sync resets, and corners."""
    still = sp.Symbol("x")  # of no declared kind
    return DriftModel(
        "products",
        (still, d),
        (R, Q, g, a),
        (sp.Integer(1), sp.Integer(1)),
        (still, sp.Integer(0)),
        (sp.Integer(0), sp.Integer(0)),
        (
            WithinExit("product", still * d, R),
            WithinExit("factor", still * (1 + d), Q),
            WithinExit("corner", sp.Max(sp.Abs(still), 3 * d, a), g),
        ),
    )


def dip():
    """x = exp(b*(tau**2/2 - tau)): down to exp(-b/2) at tau = 1, and up to where it began at tau = 2."""
    return DriftModel(
        "dip",
        (x, y),
        (b, R),
        (x * (y - 1) * b, sp.Integer(1)),
        (x, y),
        (sp.Integer(1), sp.Integer(0)),
        (WithinExit("region", x, R),),
    )


def creeping():
    """x' = m - 1, and the share a of m - 1 goes at every sync, next to nothing of m. NaN where g is above 1."""
    m = sp.Symbol("m", real=True)
    return DriftModel(
        "creeping",
        (x, m),
        (a, b, g, R),
        (m - 1, sp.Integer(0)),
        (x + 0 * m, 1 + (m - 1) * (1 - a) + sp.Max(0, sp.sqrt(1 - g))),
        (sp.Integer(0), 1 + b),
        (WithinExit("region", x, R),),
    )


def ornstein():
    """x' = -a*x with additive noise g."""
    return DriftModel(
        "Ornstein-Uhlenbeck", (x,), (a, g, R), (-a * x,), (x,), (1,), (WithinExit("out", sp.Abs(x), R),), noise=(g,)
    )


def geometric():
    """x' = -a*x with noise g*x, and a counter of the path; a sync halves y, which noise does not move."""
    return DriftModel(
        "geometric",
        (y, x),
        (a, g, R),
        (sp.Integer(0), -a * x),
        (y / 2, x),
        (1, 1),
        (WithinExit("out", x, R),),
        noise=(sp.Integer(0), g * x),
    )


def members(model, S, eta, **values):
    """Members from numbers or arrays, broadcast."""
    S, eta, *rows = np.broadcast_arrays(S, eta, *(values[name] for name in model.parameter_names))
    return Members(np.array(rows, dtype=float).reshape(len(rows), -1), S.ravel().astype(float), eta.ravel().copy())

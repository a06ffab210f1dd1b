"""Drift models whose fixed points are known in closed form, with a signal of either sign."""

import sympy as sp

from theory.models.model import DriftModel
from theory.models.saturation import ALGEBRAIC

x, d, m, u = sp.symbols("x d m u", real=True)
signal = sp.Symbol("h", real=True)
C, k_w, k_s, rho = sp.symbols("C k_w k_s rho", positive=True)

MEMORY = DriftModel(
    name="memory map, signal of either sign",
    states=(d, u, x),
    parameters=(signal, C),
    flow=(u, sp.Integer(0), u),
    sync=(sp.Integer(0), sp.tanh(signal + d / C), x),
    start=(sp.Integer(0), sp.Rational(1, 2), sp.Integer(0)),
    exits=(),
)
"""u -> tanh(h + S*eta/C*u)."""

PERSISTENT = DriftModel(
    name="persistent drift, signal of either sign",
    states=(d, m),
    parameters=(signal, k_w, k_s, rho),
    flow=(ALGEBRAIC(signal + m + k_w * d), sp.Integer(0)),
    sync=(sp.Integer(0), rho * m + k_s * d),
    start=(sp.Integer(0), sp.Integer(1)),
    exits=(),
    signals=(signal,),
)
RUN = {"sync_interval": 1.0, "learning_rate": 1.0}
SLOPES = {"k_w": 8.0, "k_s": 20.0, "rho": 0.3}

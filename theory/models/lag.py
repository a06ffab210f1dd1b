"""Heavy ball whose gradient is exactly D steps old: the exact boundary, for the error of the lagged oscillator.

x_{t+1} - x_t = mu*(x_t - x_{t-1}) - eta*K*x_{t-D}. On the boundary it swings without damping at a frequency omega, so
both eta*K and D are explicit in omega. The swing turns by theta = omega*D within the lag.
"""

import sympy as sp

from theory.formula import Formula
from theory.symbols import K, eta, mu, omega

lag = sp.Symbol("D", positive=True)
"""Lag of every gradient [optimizer steps]."""
theta = sp.Symbol("theta", positive=True)
"""Angle of the swing within one lag [radian], below pi/2."""
_slow = sp.Symbol("slow", positive=True)


def _pull() -> sp.Expr:
    """(1 - e^(-i*omega))*(e^(i*omega) - mu): what the gradient must balance, up to e^(-i*omega*D)."""
    turn = sp.exp(sp.I * omega)
    return (turn - 1) * (1 - mu / turn)


def _gain() -> sp.Expr:
    """Take the modulus of the characteristic equation on the unit circle."""
    real, imaginary = _pull().as_real_imag()
    return sp.sqrt(sp.simplify(real**2 + imaginary**2))


def _lag() -> sp.Expr:
    """Take the argument of the characteristic equation on the unit circle: the lag and the pull turn by pi in all."""
    real, imaginary = (sp.simplify(item) for item in _pull().as_real_imag())
    return (sp.pi - sp.atan2(imaginary, real)) / omega


def _continuous() -> tuple[sp.Expr, sp.Expr]:
    """Split mu*x'' + (1 - mu)*x' + eta*K*x(t - D) = 0 at x = e^(i*theta*t/D) into its two parts."""
    gain = sp.Symbol("gain", positive=True)
    rate = sp.I * theta / lag
    real, imaginary = sp.expand(
        mu * rate**2 + (1 - mu) * rate + gain * sp.exp(-sp.I * theta), complex=True
    ).as_real_imag()
    (solved,) = sp.solve(sp.Eq(imaginary, 0), gain)
    return solved, real.subs(gain, solved)


def _long_factor() -> sp.Expr:
    """Divide the gain of the continuous equation by that of the first-order rule, (1 - mu)/D."""
    gain, _ = _continuous()
    return sp.simplify(gain * lag / (1 - mu))


def _long_lag() -> sp.Expr:
    """Solve the other part of the continuous equation for the lag."""
    (solved,) = sp.solve(sp.Eq(_continuous()[1], 0), lag)
    return sp.simplify(solved)


LAG_GAIN = Formula("gain on the boundary at a fixed lag", eta * K, _gain, (omega, mu), "C33")
"""eta*K [1] at which a swing of this frequency is neither damped nor grows."""

LAG_OF_FREQUENCY = Formula("lag of an undamped frequency", lag, _lag, (omega, mu), "C33")
"""Lag D [optimizer steps] at which the boundary has this frequency; whole for a real run."""

LONG_LAG_FACTOR = Formula("error of the first-order rule at long lags", sp.Symbol("c_D"), _long_factor, (theta,), "C33")
"""Exact boundary over (1 - mu)/D [1] where D and 1/(1 - mu) are long: from 1 at theta = 0 to pi/2."""

LONG_LAG = Formula("long lag of an angle", lag, _long_lag, (theta, mu), "C33")
"""Lag D [optimizer steps] that belongs to the angle theta, for `LONG_LAG_FACTOR`."""

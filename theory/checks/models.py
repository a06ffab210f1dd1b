"""Checks of the claims on models: integrated flows, single gradient steps, eigenvalues of the delayed recursion."""

from collections.abc import Callable

import numpy as np
import scipy.optimize
import scipy.special
from numpy.typing import NDArray

from theory import persistent, thresholds
from theory.checking import Check, Comparison, close
from theory.models import formulas, lag
from theory.numeric import numpy_function

Array = NDArray[np.float64]
Response = Callable[[Array], Array]


def _tanh(drive: Array) -> Array:
    return np.asarray(np.tanh(drive))


def _algebraic(drive: Array) -> Array:
    return np.asarray(drive / np.sqrt(1.0 + drive**2))


def _erf(drive: Array) -> Array:
    return np.asarray(scipy.special.erf(np.sqrt(np.pi) / 2.0 * drive))


_SLOPES = {"k_s": 20.0, "k_w": 8.0, "rho": 0.3, "v": 0.7, "sigma": 1.3}


def _cycle(phi: Response, memory: Array, product: Array, slopes: dict[str, float], signal: float = 0.0) -> Array:
    """Memory after a cycle, by 400 Runge-Kutta steps of the drift."""
    drift = np.zeros_like(memory * product)
    step = product / 400

    def speed(at: Array) -> Array:
        return np.asarray(slopes["v"] * phi((signal + memory + slopes["k_w"] * at) / slopes["sigma"]))

    for _ in range(400):
        one = speed(drift)
        two = speed(drift + step / 2 * one)
        three = speed(drift + step / 2 * two)
        drift = drift + step / 6 * (one + 2 * two + 2 * three + speed(drift + step * three))
    return np.asarray(slopes["rho"] * memory + slopes["k_s"] * drift)


def _integrated_boundary(slopes: dict[str, float]) -> float:
    """S*eta at which the integrated cycle leaves a tiny memory as it was."""
    tiny = np.array(1e-7)
    return float(scipy.optimize.brentq(lambda product: _cycle(_tanh, tiny, product, slopes) / tiny - 1.0, 1e-3, 1.0))


def _moved_boundary(name: str) -> float:
    """Elasticity of the integrated boundary, by central differences."""
    step = 1e-3
    high, low = (_integrated_boundary({**_SLOPES, name: _SLOPES[name] * (1.0 + way)}) for way in (step, -step))
    return float(np.log(high / low) / np.log((1.0 + step) / (1.0 - step)))


def _check_boundary() -> tuple[Comparison, ...]:
    """Integrate cycles from a tiny memory for three saturations; move each parameter and find the boundary again."""
    numbers = tuple(_SLOPES.values())
    boundary = np.asarray(numpy_function(persistent.BOUNDARY_PRODUCT)(*numbers))
    products = boundary * np.array([0.5, 1.0, 2.0])
    tiny = np.array(1e-7)
    found = [
        close(name, _cycle(phi, tiny, products, _SLOPES) / tiny, growth, rtol=1e-7)
        for growth in [numpy_function(persistent.GROWTH)(products, 1.0, *numbers)]
        for name, phi in (("growth, tanh", _tanh), ("growth, algebraic", _algebraic), ("growth, erf", _erf))
    ]
    found.append(close("boundary", _integrated_boundary(_SLOPES), boundary, rtol=1e-8))
    for name, formula in (
        ("k_w", formulas.WITHIN_ELASTICITY),
        ("k_s", formulas.ACROSS_ELASTICITY),
        ("rho", formulas.RETENTION_ELASTICITY),
    ):
        expected = numpy_function(formula)(_SLOPES["k_s"], _SLOPES["k_w"], _SLOPES["rho"])
        found.append(close(f"elasticity to {name}", _moved_boundary(name), expected, rtol=1e-5))
    return tuple(found)


def _check_flows() -> tuple[Comparison, ...]:
    """Add up the clock from z0 to z by quadrature; integrate a cycle from the memory that it must keep."""
    v, sigma, k_w = _SLOPES["v"], _SLOPES["sigma"], _SLOPES["k_w"]
    z0, z = 0.2, 3.0
    nodes, weights = np.polynomial.legendre.leggauss(60)
    at = z0 + (z - z0) * (nodes + 1.0) / 2.0
    clock = (z - z0) / 2.0 * np.sum(weights * sigma / (k_w * v * _algebraic(at)))
    found = [close("clock", clock, numpy_function(formulas.ALGEBRAIC_CLOCK)(z, z0, k_w, v, sigma), rtol=1e-12)]
    memory = np.array([0.1, 0.5, 2.0, 5.0])
    for name, phi, formula in (
        ("kept memory, tanh", _tanh, formulas.TANH_FIXED_POINT),
        ("kept memory, algebraic", _algebraic, formulas.ALGEBRAIC_FIXED_POINT),
    ):
        products = numpy_function(formula)(memory, 0.05, *_SLOPES.values())
        found.append(close(name, _cycle(phi, memory, products, _SLOPES, signal=0.05), memory, rtol=1e-9))
    return tuple(found)


def _stepped_multiplier(shares: Array, product: Array, curvature: float) -> Array:
    """Factor of a cycle of 20,000 gradient steps that see the share `shares` of the curvature at the sync."""
    num_steps = 20_000
    x, pull = np.ones_like(shares), product / num_steps * curvature
    for _ in range(num_steps):
        x = x - pull * ((1.0 - shares) * x + shares)
    return x


def _check_stale() -> tuple[Comparison, ...]:
    """Take 20,000 gradient steps between two syncs of a quadratic that is partly stale."""
    curvature, shares = 1.7, np.array([0.6, 0.75, 0.9, 1.2])
    boundary = numpy_function(formulas.STALE_BOUNDARY)(curvature, shares)
    half = boundary / 2.0
    return (
        close(
            "multiplier",
            _stepped_multiplier(shares, half, curvature),
            numpy_function(formulas.STALE_MULTIPLIER)(half, curvature, shares),
            rtol=1e-3,
        ),
        close("boundary", _stepped_multiplier(shares, boundary, curvature), -np.ones(4), rtol=1e-3),
        close(
            "wholly stale",
            _stepped_multiplier(np.ones(1), numpy_function(formulas.WHOLLY_STALE_BOUNDARY)(curvature), curvature),
            [-1.0],
            rtol=1e-9,
        ),
    )


def _delayed_boundary(num_lags: int, momentum: float) -> float:
    """eta*K at which the recursion with this lag has a root on the unit circle, from its eigenvalues."""

    def excess(gain: float) -> float:
        coefficients = np.zeros(num_lags + 2)
        coefficients[:3] = (1.0, -1.0 - momentum, momentum)
        coefficients[num_lags + 1] += gain
        return float(np.max(np.abs(np.roots(coefficients)))) - 1.0

    rule = (1.0 - momentum) / num_lags
    return float(scipy.optimize.brentq(excess, 0.9 * rule, 1.7 * rule, xtol=1e-14))


def _check_oscillator() -> tuple[Comparison, ...]:
    """Find the learning rate at which the delayed recursion has an eigenvalue on the unit circle, lag by lag."""
    momentum, curvature = 0.9, 1.7
    rule = float(numpy_function(formulas.OSCILLATOR_BOUNDARY)(curvature, momentum))
    found = [close("lag 1: the rule is exact", _delayed_boundary(1, momentum), rule * curvature, rtol=1e-9)]
    lags = numpy_function(lag.LAG_OF_FREQUENCY)
    for num_lags in (1, 4, 16):
        omega = scipy.optimize.brentq(lambda at, D=num_lags: float(lags(at, momentum)) - D, 1e-6, 3.0, xtol=1e-15)
        exact = numpy_function(lag.LAG_GAIN)(omega, momentum)
        found.append(close(f"lag {num_lags}", exact, _delayed_boundary(num_lags, momentum), rtol=1e-9))
    theta = np.array([0.3, 0.9, 1.4])
    length = numpy_function(lag.LONG_LAG)(theta, momentum)
    gain = numpy_function(lag.LONG_LAG_FACTOR)(theta) * (1.0 - momentum) / length
    rate = 1j * theta / length
    inertia, pull = momentum * rate**2 + (1.0 - momentum) * rate, -gain * np.exp(-rate * length)
    found.append(close("long lag, real part", inertia.real, pull.real, rtol=1e-12))
    found.append(close("long lag, imaginary part", inertia.imag, pull.imag, rtol=1e-12))
    return tuple(found)


def _first_exit(sync_interval: int, rate: float, radii: tuple[float, float], speed: float) -> tuple[str, int]:
    """Walk at constant speed until an exit fires: which one, and after how many steps."""
    since_sync = walked = 0.0
    for step in range(1, 1_000_000):
        since_sync, walked = since_sync + rate * speed, walked + rate * speed
        if walked >= radii[1]:
            return "region", step
        if step % sync_interval == 0:
            if since_sync >= radii[0]:
                return "batch", step
            since_sync = 0.0
    return "none", 0


def _check_exits() -> tuple[Comparison, ...]:
    """Walk step by step at constant speed and see which exit fires on either side of each limit, and when."""
    speed, batch, region, horizon = 0.7, 0.3, 2.0, 2_000
    product = float(numpy_function(formulas.SATURATED_PRODUCT)(batch, speed))
    sides = [_first_exit(10, product / 10 * (1.0 + way), (batch, region), speed)[0] for way in (-2e-3, 2e-3)]
    found = [close("exit at the end of a cycle", [side == "batch" for side in sides], [0, 1], rtol=0)]
    budget = float(numpy_function(persistent.SATURATED_BUDGET)(region, speed))
    _, steps = _first_exit(10, budget / horizon, (np.inf, region), speed)
    found.append(close("step at the exit of the region", steps, horizon, rtol=1e-3))
    lag_of_both = float(numpy_function(thresholds.CROSSOVER)(horizon, batch, region))
    last_rates = np.array([batch / (lag_of_both * speed), region / (horizon * speed)])
    found.append(close("both exits at the crossover", last_rates[0], last_rates[1], rtol=1e-12))
    return tuple(found)


CHECKS: dict[str, Check] = {
    "C30": _check_boundary,
    "C31": _check_flows,
    "C32": _check_stale,
    "C33": _check_oscillator,
    "C34": _check_exits,
}

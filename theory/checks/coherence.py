"""Checks of the claims on coherence: every gradient is followed through the optimizer, none of the sums is used."""

import numpy as np
from numpy.typing import NDArray

from theory import growth
from theory.checking import Check, Comparison, close
from theory.numeric import numpy_function

_EXACT = 1e-9
_STENCIL = 1e-5
_FIRST_ORDER = 1e-3
_SAMPLED = 0.05  # 10 000 coordinates give a mean square to 1.4 %; the bound is 3.5 times that
_PAST = 400  # gradients before the cycle; 0.9^400 is 5e-19
_COSINES = (0.0, 0.02, 0.3, 1.0)

Floats = NDArray[np.float64]


def _weights(num_lags: int, momentum: float, restoring: float = 0.0) -> tuple[Floats, Floats]:
    """Weights of all gradients in each update and in the drift after it, shapes (num_lags, gradients)."""
    width = _PAST + num_lags
    moment, drift = np.zeros(width), np.zeros(width)
    updates, drifts = [], []
    for step, gradient in enumerate(np.eye(width)):
        moment = momentum * moment + (1.0 - momentum) * gradient
        if step >= _PAST:
            drift = (1.0 - restoring) * drift + moment
            updates.append(moment)
            drifts.append(drift)
    return np.array(updates), np.array(drifts)


def _products(left: Floats, right: Floats, cosine: float) -> Floats:
    """Mean products of weighted sums of gradients whose pairwise cosine is q, row by row."""
    shared = left.sum(axis=-1) * right.sum(axis=-1)
    return np.asarray(cosine * shared + (1.0 - cosine) * (left * right).sum(axis=-1))


def _squares(lags: Floats, cosine: float, momentum: float, restoring: float = 0.0) -> Floats:
    """Square drift at whole lags, from the weights of every gradient."""
    _, drifts = _weights(int(lags.max()), momentum, restoring)
    chosen = drifts[lags.astype(int) - 1]
    return _products(chosen, chosen, cosine)


def _stencil_slope(lag: int, cosine: float, momentum: float, restoring: float = 0.0) -> float:
    """Half the log slope of the brute-force square drift, by the difference formula of sixth order."""
    lags = lag + np.arange(-3.0, 4.0)
    logs = np.log(_squares(lags, cosine, momentum, restoring))
    return float(0.5 * lag * (logs @ np.array([-1.0, 9.0, -45.0, 0.0, 45.0, -9.0, 1.0])) / 60.0)


def _adam_squares(num_lags: int, cosine: float) -> Floats:
    """Mean square drift of a real Adam over 10 000 coordinates, from a warm start, in units of eta."""
    generator = np.random.default_rng(0)
    decay, second_decay, warm_up, width = 0.9, 0.999, 400, 10_000
    persistent = generator.choice([-1.0, 1.0], size=width)
    moment, second, drift = np.zeros(width), np.zeros(width), np.zeros(width)
    squares = []
    for step in range(1, warm_up + num_lags + 1):
        gradient = np.sqrt(cosine) * persistent + np.sqrt(1.0 - cosine) * generator.normal(size=width)
        moment += (1.0 - decay) * (gradient - moment)
        second += (1.0 - second_decay) * (gradient**2 - second)
        scale = np.sqrt(second / (1.0 - second_decay**step)) + 1e-8
        if step > warm_up:
            drift += moment / (1.0 - decay**step) / scale
            squares.append(float(np.mean(drift**2)))
    return np.array(squares)


def _crossings() -> tuple[Comparison, ...]:
    """The three crossovers, from brute-force drifts far from them."""
    (early,), (long,) = _squares(np.array([1.0]), 0.0, 0.8), _squares(np.array([3000.0]), 0.0, 0.0) / 3000.0
    end = numpy_function(growth.BALLISTIC_END)(0.8)
    coherent = _squares(np.array([50.0]), 1.0, 0.0)[0] / 50.0**2
    start = float(numpy_function(growth.COHERENT_START)(0.04))
    without = float(numpy_function(growth.NO_DIFFUSION)(0.8))
    return (
        close("ballistic end: noise update squared against one step", end, long / early, rtol=_EXACT),
        close("coherent start: both parts are as large", 0.04 * coherent * start**2, 0.96 * start * long, rtol=_EXACT),
        close("no diffusion: both crossovers at one lag", (1.0 - without) / without, long / early, rtol=_EXACT),
    )


def _drift() -> tuple[Comparison, ...]:
    """Follow every gradient through the moving average, and run a real Adam on 10 000 coordinates."""
    lags = np.arange(1.0, 41.0)
    comparisons = list(_crossings())
    for cosine in _COSINES:
        updates, _ = _weights(40, 0.9)
        products = _products(updates, updates[:1], cosine)
        found = numpy_function(growth.COVARIANCE)(lags - 1.0, cosine, 0.9)
        comparisons.append(close(f"covariance at q = {cosine}", found, products, rtol=_EXACT))
        rms = numpy_function(growth.UPDATE_RMS)(cosine, 0.9)
        comparisons.append(close(f"rms at q = {cosine}", rms, np.sqrt(products[0]), rtol=_EXACT))
        squares = numpy_function(growth.SQUARE_DRIFT)(lags, cosine, 0.9)
        comparisons.append(close(f"drift at q = {cosine}", squares, _squares(lags, cosine, 0.9), rtol=_EXACT))
    for cosine in (0.0, 0.2):
        sampled = _adam_squares(30, cosine)
        ratios = sampled / numpy_function(growth.SQUARE_DRIFT)(lags[:30], cosine, 0.9)
        comparisons.append(close(f"a real Adam at q = {cosine}", ratios, np.ones(30), rtol=_SAMPLED))
    return tuple(comparisons)


def _exponents() -> tuple[Comparison, ...]:
    """Follow every gradient with a restoring rate, and take slopes by differences over whole lags."""
    lags = np.arange(1.0, 41.0)
    comparisons = []
    for cosine in _COSINES:
        restored = numpy_function(growth.RESTORED_SQUARE_DRIFT)(lags, cosine, 0.9, 0.05)
        brute = _squares(lags, cosine, 0.9, 0.05)
        comparisons.append(close(f"restored drift at q = {cosine}", restored, brute, rtol=_EXACT))
        plateau = numpy_function(growth.PLATEAU)(cosine, 0.9, 0.05)
        settled = _squares(np.array([600.0]), cosine, 0.9, 0.05)
        comparisons.append(close(f"plateau at q = {cosine}", plateau, settled, rtol=_EXACT))
        slope, slope_restored = _stencil_slope(30, cosine, 0.9), _stencil_slope(30, cosine, 0.9, 0.05)
        for formula, values, expected in (
            (growth.SLOPE, (30, cosine, 0.9), slope),
            (growth.EXPONENT, (30, cosine, 0.9), -slope),
            (growth.RESTORED_SLOPE, (30, cosine, 0.9, 0.05), slope_restored),
            (growth.RESTORED_EXPONENT, (30, cosine, 0.9, 0.05), -slope_restored),
        ):
            found = numpy_function(formula)(*values)
            comparisons.append(close(f"{formula.name} at q = {cosine}", found, expected, rtol=_STENCIL))
    return tuple(comparisons)


def _inversion() -> tuple[Comparison, ...]:
    """Recover the cosine that a brute-force drift was made with."""
    comparisons = []
    for cosine in (0.02, 0.3, 0.9):
        early, late = _squares(np.array([3.0, 40.0]), cosine, 0.9)
        found = numpy_function(growth.COSINE_OF_RATIO)(late / early, 3.0, 40.0, 0.9)
        comparisons.append(close(f"from two lags at q = {cosine}", found, cosine, rtol=_EXACT))
        slope = _stencil_slope(30, cosine, 0.9)
        found = numpy_function(growth.COSINE_OF_SLOPE)(slope, 30.0, 0.9)
        comparisons.append(close(f"from a slope at q = {cosine}", found, cosine, rtol=_FIRST_ORDER))
    return tuple(comparisons)


def _pair_sum(num_steps: int, cosine: float, momentum: float) -> float:
    """Square drift of a long cycle, as the sum of brute-force covariances over all pairs of steps."""
    updates, _ = _weights(_PAST, momentum)
    noise = _products(updates, updates[:1], 0.0)
    pairs = num_steps * noise[0] + 2.0 * float((num_steps - np.arange(1.0, _PAST)) @ noise[1:])
    return float(cosine * num_steps**2 + (1.0 - cosine) * pairs)


def _noise() -> tuple[Comparison, ...]:
    """Hold the brute-force drift at the radius, for short and for very long cycles, and at two rates in one clock."""
    cosine, radius, long = 0.05, 0.3, 1_000_000
    intervals = np.array([1.0, 4.0, 16.0, 64.0])
    product = numpy_function(growth.PRODUCT)
    brute = intervals * radius / np.sqrt(_squares(intervals, cosine, 0.9))
    limit = numpy_function(growth.LIMIT_PRODUCT)(cosine, radius)
    far = long * radius / np.sqrt(_pair_sum(long, cosine, 0.9))
    lasting = radius / np.sqrt(cosine)
    shortfall = numpy_function(growth.NOISE_SHORTFALL)(long, cosine)
    rates = np.array([0.01, 0.001])
    spread = [rate**2 * _pair_sum(round(2.0 / rate), cosine, 0.0) for rate in rates]
    clock = numpy_function(growth.CLOCK_SQUARE)(2.0, rates, cosine)
    diffusion = (clock[0] - clock[1]) / (rates[0] - rates[1])
    return (
        close("S*eta on the boundary", product(intervals, cosine, 0.9, radius), brute, rtol=_EXACT),
        close("its limit", limit, far, rtol=_FIRST_ORDER),
        close("its first correction", shortfall * long, (far / lasting - 1.0) * long, rtol=_FIRST_ORDER),
        close("square drift in one clock", clock, spread, rtol=_EXACT),
        close("diffusion per rate in that clock", diffusion, 2.0 * (1.0 - cosine), rtol=_EXACT),
    )


CHECKS: dict[str, Check] = {"C23": _drift, "C24": _exponents, "C25": _inversion, "C26": _noise}

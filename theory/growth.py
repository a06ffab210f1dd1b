"""Drift inside a cycle with momentum: how it grows with the lag, and the boundary that follows.

Gradients are normalised and any two of them have the mean cosine q: a persistent direction plus independent noise.
Adam's first moment averages the noise of neighbouring steps, so its updates line up for about (1+beta1)/(1-beta1)
steps whatever q is. The drift is ballistic first, then diffusive, then coherent. A restoring rate c flattens it.
"""

from dataclasses import dataclass

import numpy as np
import sympy as sp
from numpy.typing import ArrayLike, NDArray

from theory.errors import InputError
from theory.formula import Formula
from theory.numeric import numpy_function
from theory.symbols import R_batch, S, beta1, c, eta, g, growth_slope, j, j2, q, tau

_SMALLEST = 1e-300
"""Stands for a momentum of 0 in the slopes, whose beta1^j*log(beta1) then is 0 as it must be."""
_APART = 1e-7
"""Closest that 1-c may come to beta1 in numbers: the closed form is smooth there, but reads 0/0."""

_ratio, _keep, _decay = sp.symbols("ratio keep decay", positive=True)
_count = sp.Symbol("count", positive=True, integer=True)
_index = sp.Symbol("index", integer=True, nonnegative=True)


def _geometric(ratio: sp.Expr, count: sp.Expr) -> sp.Expr:
    """Sum of count powers of a ratio other than 1, from the power 0."""
    general = sp.summation(_ratio**_index, (_index, 0, _count - 1)).args[-1].expr
    return general.subs(_count, count).subs(_ratio, ratio)


def _endless(ratio: sp.Expr) -> sp.Expr:
    """Sum of all powers of a ratio below 1."""
    return sp.summation(_ratio**_index, (_index, 0, sp.oo)).args[0].expr.subs(_ratio, ratio)


def _covariance() -> sp.Expr:
    """Sum the shared noise of two moving averages, j steps apart; what persists passes unchanged."""
    shared = (1 - beta1) ** 2 * beta1**j * _endless(beta1**2)
    return q + (1 - q) * sp.factor(shared)


def _update_rms() -> sp.Expr:
    """Root of the covariance of an update with itself."""
    return sp.sqrt(_covariance().subs(j, 0))


def _noise_square() -> sp.Expr:
    """Sum b^|m-n| over all pairs of j updates: the diagonal, and twice the geometric sums below it."""
    below = _decay * (_count - _geometric(_decay, _count)) / (1 - _decay)
    pairs = (_count + 2 * below) * (1 - _decay) / (1 + _decay)
    lagged = sp.simplify(pairs - _count)
    return (_count + sp.factor(lagged)).subs({_count: j, _decay: beta1})


def _square_drift() -> sp.Expr:
    """Sum the covariance over all pairs of j updates."""
    return q * j**2 + (1 - q) * _noise_square()


def _ballistic_end() -> sp.Expr:
    """Lag at which j^2 times the variance of a noise update meets the diffusive j."""
    (lag,) = sp.solve(sp.Eq(_ratio * _covariance().subs({q: 0, j: 0}), 1), _ratio)
    return lag


def _coherent_start() -> sp.Expr:
    """Lag at which the coherent q*j^2 meets the diffusive (1-q)*j."""
    (lag,) = sp.solve(sp.Eq(_ratio * q, 1 - q), _ratio)
    return lag


def _no_diffusion() -> sp.Expr:
    """Cosine at which the coherent stretch starts where the ballistic one ends."""
    (cosine,) = sp.solve(sp.Eq(_coherent_start(), _ballistic_end()), q)
    return sp.factor(cosine)


def _restored_square_drift() -> sp.Expr:
    """Sum the covariance over all pairs of updates, each shrunk by 1-c a step: all sums are geometric."""
    both = _keep * _decay
    crossed = sp.simplify(sp.expand_power_base(_decay ** (j - 1) * _geometric(_keep / _decay, j)))
    below = both / (1 - both) * (_geometric(_keep**2, j) - _keep ** (j - 1) * crossed)
    noise = (_geometric(_keep**2, j) + 2 * below) * (1 - _decay) / (1 + _decay)
    whole = q * _geometric(_keep, j) ** 2 + (1 - q) * noise
    return whole.subs({_keep: 1 - c, _decay: beta1})


def _plateau() -> sp.Expr:
    """Let the powers of the lag in the restored square drift die out."""
    keep = 1 - c
    noise = _endless(_keep**2) * (1 + 2 * (_endless(_keep * _decay) - 1)) * (1 - _decay) / (1 + _decay)
    whole = q * _endless(_keep) ** 2 + (1 - q) * noise
    return whole.subs({_keep: keep, _decay: beta1})


def _slope_of(square: sp.Expr) -> sp.Expr:
    """Half the slope of the log of a square drift on the log of the lag."""
    return j * sp.diff(square, j) / (2 * square)


def _slope() -> sp.Expr:
    """Differentiate the log of the square drift by the log of the lag, and halve it."""
    return _slope_of(_square_drift())


def _restored_slope() -> sp.Expr:
    """Differentiate the log of the restored square drift by the log of the lag, and halve it."""
    return _slope_of(_restored_square_drift())


def _exponent() -> sp.Expr:
    """Slope of the log of R/D on the log of S: minus the growth slope at the end of a cycle."""
    return -_slope().subs(j, S)


def _restored_exponent() -> sp.Expr:
    """Slope of the log of R/D on the log of S with a restoring rate: minus the growth slope."""
    return -_restored_slope().subs(j, S)


def _cosine_of_ratio() -> sp.Expr:
    """Solve the ratio of two square drifts, linear in the cosine once multiplied out, for the cosine."""
    square = _square_drift()
    (cosine,) = sp.solve(sp.Eq(square.subs(j, j2), g * square), q)
    return cosine


def _cosine_of_slope() -> sp.Expr:
    """Solve the growth slope, linear in the cosine once multiplied out, for the cosine."""
    square = _square_drift()
    (cosine,) = sp.solve(sp.Eq(j * sp.diff(square, j), 2 * growth_slope * square), q)
    return cosine


def _product() -> sp.Expr:
    """Hold eta times the drift after S steps at the radius, and multiply by S."""
    mean = sp.expand(_square_drift().subs(j, S) / S**2)
    return R_batch / sp.sqrt(mean)


def _product_by_inverse() -> tuple[sp.Expr, sp.Symbol]:
    """The product in powers of 1/S, where beta1^S has died out or stays bounded, and the symbol of 1/S."""
    inverse, damped = sp.symbols("inverse damped", positive=True)
    mean = (_square_drift().subs(beta1**j, damped) * inverse**2).subs(j, 1 / inverse)
    return R_batch / sp.sqrt(sp.expand(mean)), inverse


def _limit_product() -> sp.Expr:
    """Let 1/S go to zero in the product."""
    product, inverse = _product_by_inverse()
    return product.subs(inverse, 0)


def _noise_shortfall() -> sp.Expr:
    """Expand the product in 1/S to first order; momentum enters at the second."""
    product, inverse = _product_by_inverse()
    first = sp.diff(product, inverse) / product
    return sp.simplify(first.subs(inverse, 0)) / S


def _clock_square() -> sp.Expr:
    """Put j = tau/eta into the square drift without momentum and multiply by eta^2."""
    return sp.expand(eta**2 * _square_drift().subs(beta1, 0).subs(j, tau / eta).subs(0 ** (tau / eta), 0))


_D2 = sp.Symbol("D_j") ** 2

COVARIANCE = Formula("covariance of two updates", sp.Symbol("K_j"), _covariance, (j, q, beta1), "C23")
"""Mean product [1] of two updates of Adam that are j steps apart, gradients normalised."""

UPDATE_RMS = Formula("rms of an update", sp.Symbol("K_0") ** sp.Rational(1, 2), _update_rms, (q, beta1), "C23")
"""Root mean square of an update over eta [1]: sqrt((1-beta1)/(1+beta1)) for pure noise, 1 if all persists."""

SQUARE_DRIFT = Formula("square drift with momentum", _D2, _square_drift, (j, q, beta1), "C23")
"""Mean square distance over eta^2 [steps^2] after j updates."""

BALLISTIC_END = Formula("end of the ballistic stretch", sp.Symbol("j_b"), _ballistic_end, (beta1,), "C23")
"""Lag [steps] at which the noise stops to line up."""

COHERENT_START = Formula("start of the coherent stretch", sp.Symbol("j_c"), _coherent_start, (q,), "C23")
"""Lag [steps] from which the persistent direction leads."""

NO_DIFFUSION = Formula("cosine without a diffusive stretch", q, _no_diffusion, (beta1,), "C23")
"""Cosine [1] from which the drift is never diffusive."""

RESTORED_SQUARE_DRIFT = Formula(
    "square drift with a restoring rate", _D2, _restored_square_drift, (j, q, beta1, c), "C24"
)
"""Mean square distance over eta^2 [steps^2] after j updates; 1-c must differ from beta1."""

PLATEAU = Formula("plateau of the square drift", sp.Symbol("D_oo") ** 2, _plateau, (q, beta1, c), "C24")
"""Mean square distance over eta^2 [steps^2] far beyond 1/c updates."""

SLOPE = Formula("growth slope", growth_slope, _slope, (j, q, beta1), "C24")
"""Slope of the log of the drift on the log of the lag [1], beta1 > 0."""

RESTORED_SLOPE = Formula("growth slope with a restoring rate", growth_slope, _restored_slope, (j, q, beta1, c), "C24")
"""Slope of the log of the drift on the log of the lag [1], beta1 > 0 and other than 1-c."""

EXPONENT = Formula("boundary exponent with momentum", sp.Symbol("a_S"), _exponent, (S, q, beta1), "C24")
"""Slope of log eta_max on log S [1], beta1 > 0."""

RESTORED_EXPONENT = Formula(
    "boundary exponent with a restoring rate", sp.Symbol("a_S"), _restored_exponent, (S, q, beta1, c), "C24"
)
"""Slope of log eta_max on log S [1]: it rises towards 0 far beyond 1/c steps."""

COSINE_OF_RATIO = Formula("cosine from the drift at two lags", q, _cosine_of_ratio, (g, j, j2, beta1), "C25")
"""Cosine [1] from the ratio g of the square drifts at lags j2 and j; no cosine gives it if it is not in [0, 1]."""

COSINE_OF_SLOPE = Formula("cosine from the slope at a lag", q, _cosine_of_slope, (growth_slope, j, beta1), "C25")
"""Cosine [1] from the growth slope at lag j, beta1 > 0; no cosine gives it if it is not in [0, 1]."""

PRODUCT = Formula("S*eta on the boundary with noise", S * eta, _product, (S, q, beta1, R_batch), "C26")
"""S*eta [1] at which the drift after S steps is R_batch, in units of a normalised step."""

LIMIT_PRODUCT = Formula("S*eta on the boundary of long cycles", S * eta, _limit_product, (q, R_batch), "C26")
"""S*eta [1] for S far beyond 1/q."""

NOISE_SHORTFALL = Formula("first correction of S*eta", sp.Symbol("delta_S"), _noise_shortfall, (S, q), "C26")
"""Relative change of S*eta against long cycles [1], to first order in 1/S."""

CLOCK_SQUARE = Formula("square drift by the clock", sp.Symbol("d_tau") ** 2, _clock_square, (tau, eta, q), "C26")
"""Mean square displacement [1] without momentum at eta*t = tau: noise spreads in proportion to eta."""


def _in_unit(argument: str, value: float, *, with_one: bool, way_out: str) -> None:
    """Refuse what is not in [0, 1], or not in [0, 1)."""
    if not (0.0 <= value < 1.0 or (with_one and value == 1.0)):
        raise InputError(argument, "be in [0, 1]" if with_one else "be in [0, 1)", value, way_out)


def _check_momentum(momentum: float) -> None:
    _in_unit("momentum", momentum, with_one=False, way_out="Give Adam's beta1; without momentum use 0.")


def _steps(argument: str, values: ArrayLike) -> NDArray[np.float64]:
    """Numbers of steps as an array, refused below 1."""
    steps = np.asarray(values, dtype=np.float64)
    if steps.size == 0 or not np.all(np.isfinite(steps) & (steps >= 1.0)):
        raise InputError(argument, "be numbers of steps >= 1", values, "At lag 0 there is no drift yet.")
    return steps


@dataclass(frozen=True)
class CycleDrift:
    """Drift of a cycle whose gradients are partly persistent.

    Parameters
    ----------
    pair_cosine : float
        Mean cosine q [1] over all pairs of raw gradients of a cycle, in [0, 1].
    momentum : float
        Adam's beta1 [1], in [0, 1).
    restoring : float
        Share c of the drift taken back at each step [1]; 0, or in [1e-6, 1).

    Raises
    ------
    InputError
        If a number is out of its range.

    Notes
    -----
    Source: claims C23, C24 and C26.

    >>> round(float(CycleDrift(0.01).exponent(64)), 2)
    -0.76
    """

    pair_cosine: float
    momentum: float = 0.9
    restoring: float = 0.0

    def __post_init__(self) -> None:
        way_out = "Average the cosine over all pairs of gradients; if it is below 0, use 0."
        _in_unit("pair_cosine", self.pair_cosine, with_one=True, way_out=way_out)
        _check_momentum(self.momentum)
        if self.restoring != 0.0 and not 1e-6 <= self.restoring < 1.0:
            raise InputError("restoring", "be 0 or in [1e-6, 1)", self.restoring, "Below 1e-6 use 0.")

    def _evaluate(self, free: Formula, restored: Formula, steps: NDArray[np.float64]) -> NDArray[np.float64]:
        momentum = max(self.momentum, _SMALLEST)
        if self.restoring == 0.0:
            return numpy_function(free)(steps, self.pair_cosine, momentum)
        gap = 1.0 - self.restoring - momentum
        rate = self.restoring if abs(gap) >= _APART else self.restoring + _APART
        return numpy_function(restored)(steps, self.pair_cosine, momentum, rate)

    def square(self, lags: ArrayLike) -> NDArray[np.float64]:
        """Mean square drift over eta^2 [steps^2] at lags [steps], same shape. Source: claims C23 and C24."""
        return self._evaluate(SQUARE_DRIFT, RESTORED_SQUARE_DRIFT, _steps("lags", lags))

    def slope(self, lags: ArrayLike) -> NDArray[np.float64]:
        """Slope of the log of the drift on the log of the lag [1] at lags [steps]. Source: claim C24."""
        return self._evaluate(SLOPE, RESTORED_SLOPE, _steps("lags", lags))

    def exponent(self, sync_intervals: ArrayLike) -> NDArray[np.float64]:
        """Slope of log eta_max on log S [1] at sync intervals [steps]. Source: claim C24."""
        return self._evaluate(EXPONENT, RESTORED_EXPONENT, _steps("sync_intervals", sync_intervals))


def cosine_from_drift(lags: tuple[float, float], squares: tuple[float, float], *, momentum: float = 0.9) -> float:
    """Return the mean cosine that gives the drift at two lags.

    Parameters
    ----------
    lags : tuple of two floats
        Two lags [steps], the second later.
    squares : tuple of two floats
        Mean square drift at each, in any common unit.
    momentum : float
        Adam's beta1 [1].

    Returns
    -------
    float
        The cosine [1]; out of [0, 1] if no cosine gives this drift.

    Raises
    ------
    InputError
        If the lags do not grow, or a square is not positive, or the momentum is out of [0, 1).

    Notes
    -----
    Source: claim C25.

    >>> walk = CycleDrift(0.2)
    >>> round(cosine_from_drift((2, 30), (walk.square(2), walk.square(30))), 9)
    0.2
    """
    _check_momentum(momentum)
    first, second = _steps("lags", lags)
    if not first < second:
        raise InputError("lags", "grow", lags, "Give the earlier lag first.")
    if len(squares) != 2 or not all(np.isfinite(value) and value > 0.0 for value in squares):
        raise InputError("squares", "be two positive finite numbers", squares, "Take the floor at lag 0 off first.")
    return float(numpy_function(COSINE_OF_RATIO)(squares[1] / squares[0], first, second, momentum))


def cosine_from_slope(slope: float, lag: float, *, momentum: float = 0.9) -> float:
    """Return the mean cosine that gives a growth slope at a lag.

    Parameters
    ----------
    slope : float
        Slope of the log of the drift (not of its square) on the log of the lag [1].
    lag : float
        Lag [steps].
    momentum : float
        Adam's beta1 [1].

    Returns
    -------
    float
        The cosine [1]; out of [0, 1] if no cosine gives this slope.

    Raises
    ------
    InputError
        If the slope is not finite, the lag is below 1 or the momentum is out of [0, 1).

    Notes
    -----
    Source: claim C25.

    >>> round(cosine_from_slope(float(CycleDrift(0.2).slope(30)), 30), 9)
    0.2
    """
    _check_momentum(momentum)
    steps = _steps("lag", lag)
    if not np.isfinite(slope):
        raise InputError("slope", "be finite", slope, "Fit it over lags with a drift above 0.")
    return float(numpy_function(COSINE_OF_SLOPE)(slope, steps, max(momentum, _SMALLEST)))

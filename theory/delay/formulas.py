"""Closed forms of the stable learning rates with old gradients; a is eta times the curvature."""

import sympy as sp

from theory.formula import Formula
from theory.symbols import S, a, beta1, ell, f, j, mu, w, zeta

_power = sp.Symbol("power", positive=True)  # alpha**S, with alpha what a step keeps of x
_sum = sp.Symbol("sum", positive=True)
_cosine = sp.Symbol("cosine", real=True)
_root = sp.Symbol("root")


def _fixed() -> sp.Expr:
    """A root e^(iw) of z^(j+1) - z^j + a needs a = z^j*(1 - z); its modulus is a, and its phase must be zero."""
    half = sp.simplify(((1 - sp.exp(sp.I * w)) * sp.exp(-sp.I * w / 2)).rewrite(sp.cos))
    modulus = half / -sp.I
    (angle,) = sp.solve(sp.Eq(w * j + w / 2 - sp.pi / 2, 0), w)
    return sp.simplify(modulus).subs(w, angle)


def _fixed_limit() -> sp.Expr:
    """With time in units of S, a root i*w needs i*w = -S*a*(1 - f + zeta + f*e^(-iw)); solve both parts."""
    (cosine,) = sp.solve(sp.Eq(1 - f + zeta + f * _cosine, 0), _cosine)
    (product,) = sp.solve(sp.Eq(w, a * f * sp.sqrt(1 - _cosine**2)), a)
    return product.subs(w, sp.acos(_cosine)).subs(_cosine, cosine)


def _periodic() -> sp.Expr:
    """A cycle of S equal steps multiplies the sync point by 1 - S*a; set it to -1."""
    (bound,) = sp.solve(sp.Eq(1 - S * a, -1), a)
    return bound


def _late() -> sp.Expr:
    """The sync points follow a fixed lag of ell cycles at the rate S*a."""
    return FIXED_BOUND.expression.subs(j, ell) / S


def _mixed_parts() -> tuple[sp.Expr, sp.Expr]:
    gain = sp.integrate(sp.exp(-sp.I * w * j), (j, 0, 1)).rewrite(sp.cos)
    return sp.simplify(sp.re(sp.expand(gain))), sp.simplify(sp.im(sp.expand(gain)))


def _mixed_share() -> sp.Expr:
    """With the lags spread over [0, 1] of S, the real part of the root condition at i*w is solved for the share."""
    (share,) = sp.solve(sp.Eq(1 - f + f * _mixed_parts()[0], 0), f)
    return sp.simplify(share)


def _mixed_product() -> sp.Expr:
    """The imaginary part of the root condition at i*w, solved for S*a."""
    (product,) = sp.solve(sp.Eq(w + a * f * _mixed_parts()[1], 0), a)
    return sp.simplify(product)


def _mixed_limit() -> sp.Expr:
    """Wholly stale, sin(w) = 0 at the crossing, first at w = pi."""
    return MIXED_PRODUCT.expression.subs({f: 1, w: sp.pi})


def _after_cycle() -> sp.Expr:
    """Towards the fixed point of a step with the behaviour policy held, x keeps a share alpha^S of its distance."""
    rest = sp.Symbol("rest")
    (rest,) = sp.solve(sp.Eq(rest, rest - a * ((1 - f) * rest + f)), rest)
    return sp.factor(rest + _power * (1 - rest))


def _cycle_multiplier() -> sp.Expr:
    """Towards the fixed point of a step with the behaviour policy held, x keeps a share alpha^S of its distance."""
    return _after_cycle().subs(_power, (1 - a * (1 - f)) ** S)


def _rate_of(kept: sp.Expr) -> sp.Expr:
    """Solve what a step keeps of x for a."""
    return kept / (1 - f)


def _critical_power() -> sp.Expr:
    (power,) = sp.solve(sp.Eq(_after_cycle(), -1), _power)
    return sp.simplify(power)


def _stale_bound() -> sp.Expr:
    """Set the cycle multiplier to -1 and solve for a positive power of what a step keeps."""
    return (1 - _critical_power() ** (1 / S)) / (1 - f)


def _stale_limit() -> sp.Expr:
    """Let S grow in S times the bound: S*(1 - y^(1/S)) goes to -log(y)."""
    level, inverse = sp.Symbol("level", positive=True), sp.Symbol("inverse", positive=True)
    limit = sp.limit((1 - level**inverse) / inverse, inverse, 0, "+")
    return limit.subs(level, _critical_power()) / (1 - f)


def _fresh_even() -> sp.Expr:
    """For even S the cycle multiplier is 1 again when a step turns x to -x."""
    (bound,) = sp.solve(sp.Eq(1 - a * (1 - f), -1), a)
    return bound


def _fresh_odd() -> sp.Expr:
    """Set the cycle multiplier to -1 for odd S, where the power of what a step keeps is negative."""
    return (1 + (-_critical_power()) ** (1 / S)) / (1 - f)


def _island_start() -> sp.Expr:
    """Set the cycle multiplier to -1 for even S and take the negative root of the power."""
    return (1 + _critical_power() ** (1 / S)) / (1 - f)


def _mean_cycle() -> sp.Matrix:
    """The cycle matrix of (x, eta*m) with the mean gradient m, the sum of powers telescoped."""
    kept = beta1**S
    (old,) = sp.solve(sp.Eq(_sum - beta1 * _sum, beta1 - beta1 * kept), _sum)
    return sp.Matrix([[1 - a * (S - old), -old], [a * (1 - kept), kept]])


def _mean_flip() -> sp.Expr:
    """Jury: the characteristic polynomial of the cycle at -1 is zero."""
    matrix = _mean_cycle()
    (bound,) = sp.solve(sp.Eq((matrix + sp.eye(2)).det(), 0), a)
    return sp.factor(sp.simplify(bound))


def _mean_turn() -> sp.Expr:
    """Jury: the determinant of the cycle is one."""
    (bound,) = sp.solve(sp.Eq(_mean_cycle().det(), 1), a)
    return sp.factor(sp.simplify(bound))


def _heavy_ball_gain() -> sp.Expr:
    """Let the gradient be constant: v = mu*v + g."""
    (gain,) = sp.solve(sp.Eq(_sum, mu * _sum + 1), _sum)
    return gain


def _heavy_ball_late() -> sp.Expr:
    """Jury for z^2 - (1 + mu)*z + mu + a: the product of the roots is one."""
    polynomial = sp.Poly((_root - 1) * (_root - mu) + a, _root)
    (bound,) = sp.solve(sp.Eq(polynomial.eval(0), 1), a)
    return bound


def _decay_fresh() -> sp.Expr:
    """A step multiplies x by 1 - a*zeta - a; set it to -1."""
    (bound,) = sp.solve(sp.Eq(1 - a * zeta - a, -1), a)
    return bound


def _decay_late() -> sp.Expr:
    """Jury for z^2 - (1 - a*zeta)*z + a: the product of the roots is one, or -1 is a root, whichever is first."""
    polynomial = sp.Poly(_root**2 - (1 - a * zeta) * _root + a, _root)
    (turn,) = sp.solve(sp.Eq(polynomial.eval(0), 1), a)
    (flip,) = sp.solve(sp.Eq(polynomial.eval(-1), 0), a)
    (meet,) = sp.solve(sp.Eq(flip, turn), zeta)
    return sp.Piecewise((turn, zeta <= meet), (flip, True))


FIXED_BOUND = Formula("fixed lag", a, _fixed, (j,), "C16")
"""Upper end of a [1] for the lag j."""

FIXED_LIMIT = Formula("long fixed lag", S * a, _fixed_limit, (f, zeta), "C16")
"""Limit of S*a [1] at S = j + 1; where 1 - f + zeta >= f there is none."""

PERIODIC_BOUND = Formula("periodic sync", a, _periodic, (S,), "C17")
"""Upper end of a [1]."""

LATE_BOUND = Formula("late sync", a, _late, (S, ell), "C17")
"""Upper end of a [1]; ell = 0 is the periodic sync."""

MIXED_SHARE = Formula("share at a crossing of mixed lags", f, _mixed_share, (w,), "C18")
"""Stale share [1] whose limit has the crossing angle w [radian]."""

MIXED_PRODUCT = Formula("many mixed lags", S * a, _mixed_product, (w, f), "C18")
"""Limit of S*a [1] at the crossing angle w [radian] of the share."""

MIXED_LIMIT = Formula("many mixed lags, wholly stale", S * a, _mixed_limit, (), "C18")
"""Limit of S*a [1]."""

CYCLE_MULTIPLIER = Formula("a partly fresh cycle", _root, _cycle_multiplier, (S, a, f), "C19")
"""Factor [1] of a cycle on the sync point."""

STALE_BOUND = Formula("partly fresh, periodic sync", a, _stale_bound, (S, f), "C19")
"""Upper end of a [1] for f > 1/2, not 1."""

STALE_LIMIT = Formula("partly fresh, long cycle", S * a, _stale_limit, (f,), "C19")
"""Limit of S*a [1] for f > 1/2, not 1."""

FRESH_EVEN_BOUND = Formula("mostly fresh, even S", a, _fresh_even, (f,), "C19")
"""Upper end of a [1] for f < 1/2; for 1/2 < f < 1 the upper end of the island."""

FRESH_ODD_BOUND = Formula("mostly fresh, odd S", a, _fresh_odd, (S, f), "C19")
"""Upper end of a [1] for f <= 1/2."""

ISLAND_START = Formula("island, even S", a, _island_start, (S, f), "C19")
"""Lower end [1] of the island for even S and 1/2 < f < 1."""

MEAN_FLIP = Formula("mean gradient, flip", a, _mean_flip, (S, beta1), "C20")
"""a [1] at which a cycle turns a deviation to its opposite; it binds at S = 1 and for long cycles."""

MEAN_TURN = Formula("mean gradient, turn", a, _mean_turn, (S, beta1), "C20")
"""a [1] at which a pair of roots leaves the circle, S >= 2; it binds for short cycles."""

HEAVY_BALL_GAIN = Formula("gain of heavy ball", _sum, _heavy_ball_gain, (mu,), "C21")
"""Step per constant gradient, in eta [1]: heavy ball is the mean gradient with eta times this."""

HEAVY_BALL_LATE = Formula("heavy ball, lag one", a, _heavy_ball_late, (mu,), "C21")
"""Upper end of a [1]."""

DECAY_FRESH = Formula("weight decay, fresh gradient", a, _decay_fresh, (zeta,), "C22")
"""Upper end of a [1]."""

DECAY_LATE = Formula("weight decay, lag one", a, _decay_late, (zeta,), "C22")
"""Upper end of a [1]; the decay is free up to three times the curvature."""

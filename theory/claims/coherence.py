"""C23 to C26: drift inside a cycle with momentum, noise, and a restoring rate."""

from theory.claims.record import Claim

_STEPS = (
    "normalised gradients, any two of them with the mean cosine q: a persistent direction plus independent noise",
    "Adam's first moment in its stationary state, its second moment settled",
)

COHERENCE: tuple[Claim, ...] = (
    Claim(
        "C23",
        "drift with momentum",
        "The drift of a cycle grows with the lag first, up to about (1+beta1)/(1-beta1) steps, whatever q is; then "
        "with its root; then with the lag again, from about (1-q)/q steps. There is no middle stretch for q above "
        "(1-beta1)/2.",
        _STEPS,
        "ours",
        "ours-derived",
    ),
    Claim(
        "C24",
        "the exponent along a cycle",
        "At a fixed drift at the end of a cycle the boundary exponent is minus the growth slope of the drift: near -1 "
        "for short cycles, up to near -1/2 where noise leads, back to -1; with a restoring rate c it rises to 0 far "
        "beyond 1/c steps.",
        (*_STEPS, "instability at a fixed drift", "a restoring rate takes back a share c of the drift at each step"),
        "ours",
        "ours-derived",
    ),
    Claim(
        "C25",
        "the cosine behind a drift",
        "The drift at two lags, or its growth slope at one, gives the cosine q: both are linear in q once "
        "multiplied out.",
        (*_STEPS, "no restoring rate"),
        "ours",
        "ours-derived",
    ),
    Claim(
        "C26",
        "noise breaks S*eta",
        "With noise in each step S*eta on the boundary still depends on S: it rises to R_batch/sqrt(q), and falls "
        "short of it by (1-q)/(2*q*S) at first order. In the clock eta*t noise is a diffusion in proportion to eta.",
        (*_STEPS, "instability at a fixed drift, S well above 1/q for the first-order term"),
        "ours",
        "ours-derived",
    ),
)

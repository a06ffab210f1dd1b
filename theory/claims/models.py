"""C30 to C34: drift models as symbolic objects, and what follows for any of them."""

from theory.claims.record import Claim

_PERSISTENT = ("one persistent direction", "no noise", "phi odd, slope 1 at zero, limit 1 at infinity")

MODELS: tuple[Claim, ...] = (
    Claim(
        "C30",
        "the boundary does not see the saturation",
        "Persistent drift has its boundary at S*eta = sigma/(k_w*v) * ln(1 + (1 - rho)*k_w/k_s) for every saturating "
        "response phi; the boundary moves in proportion to sigma/v, and the shares of k_w and k_s add up to -1.",
        (*_PERSISTENT, "no honest signal", "rho < 1"),
        "ours",
        "ours-derived",
    ),
    Claim(
        "C31",
        "exact flow inside a cycle",
        "For phi = z/sqrt(1 + z^2) the quantity sqrt(1 + z^2) - asinh(1/z) of the drive grows in proportion to eta*t, "
        "for phi = tanh log(sinh(z)) does; so S*eta is explicit in the memory that a cycle leaves as it was.",
        (*_PERSISTENT, "positive drive", "feedback inside a cycle"),
        "ours",
        "ours-derived",
    ),
    Claim(
        "C32",
        "the stale share of a quadratic",
        "If the behaviour policy carries the share f of the curvature K, a cycle multiplies a deviation by "
        "(exp(-(1 - f)*K*S*eta) - f)/(1 - f). For f > 1/2 the boundary is S*eta = -ln(2*f - 1)/((1 - f)*K), which is "
        "2/K at f = 1; for f <= 1/2 there is none.",
        ("quadratic along one direction", "gradient flow: many small steps a cycle", "behaviour policy set at a sync"),
        "ours",
        "ours-derived",
    ),
    Claim(
        "C33",
        "the lagged oscillator",
        "To first order in the lag a heavy ball has the damping 1 - mu - K*S*eta, so the boundary is S*eta*K = 1 - mu. "
        "This is exact for a lag of one step and too low for longer ones, by a factor from 1 to pi/2 for long lags.",
        ("quadratic along one direction", "heavy ball with momentum mu", "every gradient is S steps old"),
        "ours; the rule is that of arXiv:2606.30789",
        "ours-derived",
    ),
    Claim(
        "C34",
        "the exits of saturated drift",
        "At full drift speed v the end of a cycle allows S*eta = R_batch/v and the run eta*T = R_crit/v; the two allow "
        "the same learning rate at S = T*R_batch/R_crit, whatever the speed.",
        ("drift at constant speed", "both exits as in C4"),
        "ours",
        "ours-derived",
    ),
)

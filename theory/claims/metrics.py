"""C27 to C29: drift metrics, for Gaussian log-ratios, for sequences, and against each other."""

from theory.claims.record import Claim

METRICS: tuple[Claim, ...] = (
    Claim(
        "C27",
        "the Gaussian dictionary",
        "For a Gaussian log-ratio one width s gives every metric: KL = s^2/2 in both directions, M2 = s^2 + s^4/4, "
        "chi^2 = exp(s^2)-1, effective share exp(-s^2), total variation erf(s/sqrt(8)), and the clip fraction.",
        ("delta ~ N(-s^2/2, s^2) under the behaviour policy, the mean of which makes the mean ratio 1",),
        "ours",
        "ours-derived",
    ),
    Claim(
        "C28",
        "from tokens to sequences",
        "Over L tokens KL adds, whatever their dependence. Of independent tokens the variance of the log-ratio adds "
        "and the effective share is raised to the power L. M2 is at most L^2 times that of a token.",
        (
            "equal tokens; else the means over tokens for KL and the bound",
            "independence for the width, the share and M2, not for KL and the bound",
        ),
        "ours, from the chain rule of KL",
        "ours-derived",
    ),
    Claim(
        "C29",
        "bounds between metrics",
        "Total variation is bounded by either KL, by chi^2 and by M2; KL(b||theta) by M2; KL(theta||b) by chi^2; the "
        "clip fraction by each of them. No bound can be made smaller by a constant factor.",
        (
            "the learner puts no weight where the behaviour policy has none, so the mean ratio is 1",
            "the clip fraction counts with the smaller of the two widths",
        ),
        "ours, from the inequalities of Pinsker, Bretagnolle-Huber, Jensen and Markov",
        "ours-derived",
    ),
)

"""C1 to C9: the two laws, the bias bound, the mean-field model and the drift argument."""

from theory.claims.record import Claim

_PAPER = "arXiv:2607.01083"

LAWS: tuple[Claim, ...] = (
    Claim(
        "C1",
        "law one: the boundary",
        "The largest stable learning rate scales as 1/S: S*eta is about constant on the stability boundary.",
        ("vanilla GRPO", "constant learning rate", "behaviour policy refreshed every S optimizer steps"),
        f"{_PAPER} v3, abstract",
        "published",
        "Supported if the 90 % interval of the boundary exponent contains -1 and excludes -1/2; "
        "not supported if it excludes -1; else inconclusive. Where the data cannot tell whether stable runs lacked the "
        "time to collapse, also inconclusive unless it says the same with that time allowed for.",
    ),
    Claim(
        "C2",
        "law two: the budget",
        "Among runs that collapse, the collapse time scales as 1/eta: collapse comes after about the same "
        "eta*T, whatever S.",
        (
            "vanilla GRPO",
            "constant learning rate",
            "the run collapses, at a rate that is stable at S = 1",
            "one model and setup",
        ),
        f"{_PAPER} v3, abstract",
        "published",
        "Collapses at S = 1, and above the learning-rate ceiling where S = 1 runs show one, do not count. "
        "Supported if the 90 % interval of the slope of log T on log eta contains -1 and is narrower than "
        "0.5, and the budgets at each S lie within a factor 1.5; not supported if the interval excludes -1; "
        "else inconclusive, and also if it says something else without the degraded runs.",
    ),
    Claim(
        "C3",
        "the bias bound",
        "The staleness-induced bias of an update is at most of order S*eta, and it is reset at every sync.",
        (
            "the integrand's gradient has norm at most M and an update at most eta*G_upd",
            "the sampling distribution moves by at most L_D in total variation per distance",
            "the integrand's gradient is L_phi-Lipschitz in the behaviour policy",
        ),
        f"{_PAPER} v3, abstract (order and reset); the constant L_b = 2*M*L_D + L_phi is ours",
        "ours-derived",
    ),
    Claim(
        "C4",
        "the two-constraint rule",
        "A run is safe if eta is well below both R_batch/(S*G_upd) and R_crit/(T*G_upd); this is sufficient, "
        "not necessary.",
        ("updates have norm at most eta*G_upd", "S is the largest rollout lag"),
        f"{_PAPER} v1 and v2, abstract",
        "published",
    ),
    Claim(
        "C5",
        "the memory map",
        "From sync to sync the memory of a persistent direction follows u -> tanh(h + kappa*u) with "
        "kappa = S*eta/C; at h = 0 drift stays alive above S*eta = C and dies below it.",
        (
            "one persistent direction",
            "optimizer normalization saturates the update",
            "no feedback within a cycle",
            "no noise",
        ),
        f"ours, a model consistent with {_PAPER} v3, abstract",
        "ours-derived",
    ),
    Claim(
        "C6",
        "the exit budget",
        "The run leaves the region where the surrogate is valid when the displacement reaches R; eta*T at "
        "that moment depends on S and eta through S*eta alone, and on the start u0.",
        ("the memory map of C5", "the displacement grows at the rate eta*u within a cycle"),
        f"ours, a model consistent with {_PAPER} v3, abstract",
        "ours-derived",
    ),
    Claim(
        "C7",
        "the smooth min-form",
        "With an honest signal h > 0 and S*eta well below C, 1/eta_max = S/C + T*h/R.",
        ("the memory map of C5 linearised at its fixed point", "h > 0", "S*eta < C"),
        "ours",
        "ours-derived",
    ),
    Claim(
        "C8",
        "the max-form",
        "Without honest signal a collapse within the horizon needs both S*eta > C and eta*T > B, so the "
        "observed boundary is max(C/S, B/T).",
        ("the memory map of C5 with h = 0", "saturated drift above the boundary"),
        "ours",
        "ours-derived",
    ),
    Claim(
        "C9",
        "the drift argument",
        "A run turns unstable at a fixed drift at the end of a cycle, whatever S. So the boundary exponent is "
        "-beta/alpha where that drift grows as eta^alpha * S^beta: -1 where the steps of a cycle are coherent, -1/2 "
        "where they are not.",
        ("drift is the rms log-ratio per token of the last batch of a cycle", "early training, before any decline"),
        "ours",
        "ours-derived",
        "Supported if the 90 % intervals of the predicted and the measured boundary exponent overlap, both narrower "
        "than 0.5, and the drift on the boundary at the measured S >= 2 lies within a factor 2; not supported if the "
        "two intervals do not overlap, or that factor is above 2 in its whole 90 % interval; else inconclusive.",
    ),
)

"""C10 to C15: the behaviour-dependent surrogate, its derivatives, its bias and its curvature."""

from theory.claims.record import Claim

_PAPER = "arXiv:2607.01083"

SURROGATE: tuple[Claim, ...] = (
    Claim(
        "C10",
        "two derivatives",
        "The learner follows the derivative of J(theta; b) at frozen behaviour policy b. With group advantages "
        "J(theta; theta) is zero, so the total derivative is zero too and the part through b is minus the learner's "
        "gradient. With the bare reward the token-level learner gets 1/L of the total derivative, which is "
        "dV/dtheta, and the one with the product of ratios all of it.",
        ("advantages of a group sum to zero, or are the bare rewards", "all completions have L tokens", "b = theta"),
        f"{_PAPER} v1, abstract (that the two differ); what they are is ours",
        "ours-derived",
    ),
    Claim(
        "C11",
        "the missing ratios",
        "A sample of b counts exp(own - whole) times what a fresh one counts, with own the log-ratio that the "
        "surrogate corrects for and whole that of the sequence. The product of all ratios leaves no bias; one ratio a "
        "token misses those of the other tokens, the geometric mean a share 1 - 1/L: a bias of first order in S*eta, "
        "zero for a single token.",
        ("no clip", "group statistics held fixed"),
        "ours",
        "ours-derived",
    ),
    Claim(
        "C12",
        "the bias of the group statistics",
        "Group statistics of b in place of theta's leave no bias where advantages are only centred. Divided by the "
        "standard deviation they do, of first order in S*eta; for rewards of two values it is parallel to dV/dtheta, "
        "so it changes the length of the step and not its direction.",
        ("no clip", "samples as under theta"),
        "ours",
        "ours-derived",
    ),
    Claim(
        "C13",
        "the onset of the clip",
        "The clip adds nothing to the bias until the largest log r of a sample with A > 0 reaches log(1 + eps_high), "
        "or the smallest with A < 0 log(1 - eps_low). There the surrogate is continuous, and its slope by log r jumps "
        "by A*(1 + eps_high).",
        ("PPO's clip on each ratio",),
        "arXiv:1707.06347 (PPO), equation 7 (the term); onset and jump are ours",
        "ours-derived",
    ),
    Claim(
        "C14",
        "the stale curvature",
        "At b = theta, with centred advantages, dg/db is proportional to E[R * sum over s != t of dlog(pi_t) "
        "dlog(pi_s)^T] at token level, for any policy: the products of different tokens. Where no logit is "
        "used twice in a sequence it is the part of the Hessian of V off the diagonal blocks, and dg/dtheta those "
        "blocks. The exact product of ratios has none.",
        ("no clip", "advantages centred, not divided by the standard deviation"),
        "ours",
        "ours-derived",
    ),
    Claim(
        "C15",
        "group advantages in expectation",
        "The surrogate depends on the rest of a group only through the expected positive and negative part of the "
        "advantage of every reward level, which are multinomial sums.",
        ("rewards take finitely many values", "samples of a group are independent"),
        "ours",
        "ours-derived",
    ),
)

"""C16 to C22: which learning rates are stable on a quadratic when gradients are old."""

from theory.claims.record import Claim

_QUADRATIC = "plain steps on a quadratic, one curvature"
_PERIODIC = "behaviour policy refreshed every S optimizer steps"

DELAY: tuple[Claim, ...] = (
    Claim(
        "C16",
        "fixed lag",
        "With gradients that are all j steps old, eta times the curvature must stay below 2*sin(pi/(2*(2*j + 1))). "
        "With S = j + 1 large, S times the bound goes to pi/2, and to a larger number if part of the gradient is fresh "
        "or x decays; once these outweigh the stale part it grows without bound.",
        (_QUADRATIC,),
        "ours",
        "ours-derived",
    ),
    Claim(
        "C17",
        "periodic sync",
        "With gradients taken at the last sync, S*eta times the curvature must stay below 2 for every S; with syncs "
        "that are d cycles late, below 2*sin(pi/(2*(2*d + 1))). Both laws are exact powers 1/S.",
        (_QUADRATIC, _PERIODIC, "the whole gradient is stale"),
        "ours",
        "ours-derived",
    ),
    Claim(
        "C18",
        "mixed lags",
        "With batches that mix the lags 0 to S - 1 in equal parts, S times the bound goes to pi^2/2. If a share of the "
        "gradient is fresh the limit is larger, and below a stale share of about 0.82 there is none.",
        (_QUADRATIC, "equal parts of each lag in every batch"),
        "ours",
        "ours-derived",
    ),
    Claim(
        "C19",
        "partly fresh gradients",
        "If the stale part holds at most half of the curvature, staleness sets no limit that falls with S. Above one "
        "half it does, and S times the bound goes to -log(2*share - 1)/(1 - share). For even S and a share below 1 "
        "there is a stable island above the bound.",
        (_QUADRATIC, _PERIODIC),
        "ours",
        "ours-derived",
    ),
    Claim(
        "C20",
        "momentum and periodic sync",
        "With a mean of past gradients the bound is the lower of a turn, which binds for short cycles if the memory "
        "is long, and a flip, which binds else. Where the two meet S times the bound has a peak, about twice its limit "
        "2 at beta = 0.9.",
        (_QUADRATIC, _PERIODIC, "the whole gradient is stale", "m <- beta*m + (1 - beta)*g"),
        "ours",
        "ours-derived",
    ),
    Claim(
        "C21",
        "heavy ball is a mean with a larger step",
        "Heavy ball with mu is the mean gradient with eta/(1 - mu), exactly, so its bounds carry a factor 1 - mu. A "
        "mean, as in Adam, has gain one on a constant gradient and no such factor. At lag one the heavy-ball bound is "
        "1 - mu.",
        (_QUADRATIC, "v <- mu*v + g"),
        "ours",
        "ours-derived",
    ),
    Claim(
        "C22",
        "weight decay and a fixed lag",
        "Decoupled decay of omega times the curvature lowers the bound of fresh gradients to 2/(1 + omega). At lag one "
        "it leaves the bound at 1 up to omega = 3; beyond, it is 2/(omega - 1).",
        (_QUADRATIC, "x <- (1 - eta*decay)*x - eta*g"),
        "ours",
        "ours-derived",
    ),
)

"""The symbol table: every letter in a formula, once, with its word, unit, assumption and meaning.

Words are for the public surface, letters for formulas. A symbol carries its assumption into sympy, so a
simplification that needs `S > 0` is allowed to use it, and one that needs more is refused.
"""

from dataclasses import dataclass

import sympy as sp


@dataclass(frozen=True)
class Entry:
    """One row of the symbol table.

    Attributes
    ----------
    word : str
        Name on the public surface.
    letter : str
        Name in formulas.
    latex : str
        The letter in LaTeX.
    unit : str
    assumption : str
        What sympy may assume: "positive", "nonnegative" or "nonnegative integer".
    meaning : str
    """

    word: str
    letter: str
    latex: str
    unit: str
    assumption: str
    meaning: str

    @property
    def symbol(self) -> sp.Symbol:
        """The sympy symbol; equal for equal letters and assumptions."""
        return sp.Symbol(self.letter, **dict.fromkeys(self.assumption.split(), True))


_STEPS = "optimizer steps"
_LENGTH = "parameter distance"

TABLE: tuple[Entry, ...] = (
    Entry("sync_interval", "S", "S", _STEPS, "positive", "the behaviour policy is refreshed every S steps"),
    Entry("lag", "j", "j", _STEPS, "nonnegative integer", "learner version minus behaviour version of a token"),
    Entry("step", "t", "t", _STEPS, "positive", "number of the optimizer step, from 1"),
    Entry("cycle", "k", "k", "sync cycles", "nonnegative integer", "number of the sync cycle, from 0"),
    Entry("growth_cycles", "n", "n", "sync cycles", "positive", "cycles of linear growth before saturation"),
    Entry("learning_rate", "eta", r"\eta", "1", "positive", "constant step size"),
    Entry("horizon", "T", "T", _STEPS, "positive", "length of the intended run"),
    Entry("critical_product", "C", "C", "1", "positive", "S*eta on the stability boundary"),
    Entry("budget", "B", "B", "1", "positive", "eta*T at collapse when the drift speed is saturated"),
    Entry("exit_radius", "R", "R", "1", "positive", "displacement at exit, in eta*t at full drift speed"),
    Entry("honest_signal", "h", "h", "1", "nonnegative", "the part of the drive not due to staleness"),
    Entry("feedback_gain", "kappa", r"\kappa", "1", "positive", "gain of the feedback across a sync, S*eta/C"),
    Entry("memory", "u", "u", "1", "nonnegative", "mean normalized update along the persistent direction"),
    Entry("initial_memory", "u0", "u_0", "1", "positive", "memory in the first cycle"),
    Entry("fixed_memory", "ustar", r"u_\star", "1", "positive", "positive fixed point of the memory map"),
    Entry("multiplier", "lambda", r"\lambda", "1", "nonnegative", "growth of a small deviation in one cycle"),
    Entry("noise_scale", "sigma", r"\sigma", "1", "positive", "noise that the drive is compared with"),
    Entry("drift_speed", "v", "v", _LENGTH, "positive", "saturated drift per unit of eta*t"),
    Entry("cycle_clock", "tau", r"\tau", "1", "nonnegative", "eta*t since the last sync"),
    Entry("drive", "z", "z", "1", "positive", "argument of the saturating update, in units of the noise"),
    Entry("initial_drive", "z0", "z_0", "1", "positive", "drive just after a sync"),
    Entry("drift", "d", "d", _LENGTH, "nonnegative", "displacement since the last sync"),
    Entry("memory_drive", "m", "m", "1", "nonnegative", "part of the drive carried across syncs"),
    Entry("retention", "rho", r"\rho", "1", "nonnegative", "share of the memory drive kept at a sync"),
    Entry("slope_within", "k_w", "k_w", f"1/{_LENGTH}", "positive", "drive per drift since the last sync"),
    Entry("slope_across", "k_s", "k_s", f"1/{_LENGTH}", "positive", "memory drive per drift of the last cycle"),
    Entry("pair_cosine", "q", "q", "1", "positive", "mean cosine over all pairs of steps of a cycle"),
    Entry("rate_growth", "alpha", r"\alpha", "1", "positive", "exponent of the drift of a cycle in eta"),
    Entry("interval_growth", "beta", r"\beta", "1", "positive", "exponent of the drift of a cycle in S"),
    Entry("feedback_slope", "J", "J", "1", "positive", "drive per unit of displacement of the behaviour policy"),
    Entry("gradient_bound", "M", "M", "gradient", "positive", "bound on the norm of the integrand's gradient"),
    Entry(
        "update_norm",
        "G_upd",
        r"G_{\mathrm{upd}}",
        _LENGTH,
        "positive",
        "norm of an applied update per unit of eta",
    ),
    Entry(
        "distribution_smoothness",
        "L_D",
        "L_D",
        f"1/{_LENGTH}",
        "positive",
        "total variation of the sampling distribution per distance of the behaviour policy",
    ),
    Entry(
        "integrand_smoothness",
        "L_phi",
        r"L_\phi",
        f"gradient/{_LENGTH}",
        "positive",
        "change of the integrand's gradient per distance of the behaviour policy",
    ),
    Entry(
        "bias_slope",
        "L_b",
        "L_b",
        f"gradient/{_LENGTH}",
        "positive",
        "bias per distance to the behaviour policy",
    ),
    Entry(
        "batch_radius",
        "R_batch",
        r"R_{\mathrm{batch}}",
        _LENGTH,
        "positive",
        "drift in a cycle a batch survives",
    ),
    Entry("critical_radius", "R_crit", r"R_{\mathrm{crit}}", _LENGTH, "positive", "drift in all a run survives"),
)

_BY_WORD = {entry.word: entry for entry in TABLE}


def entry(word: str) -> Entry:
    """Return the row of a word.

    Raises
    ------
    ValueError
        If the word is not in the table.

    >>> entry("sync_interval").letter
    'S'
    """
    if word not in _BY_WORD:
        raise ValueError(f"word must be in the symbol table, got {word!r}. Known words: {', '.join(_BY_WORD)}.")
    return _BY_WORD[word]


def latex(expression: sp.Basic) -> str:
    """Return the LaTeX of an expression or equation, with the letters of the table."""
    text: str = sp.latex(expression, symbol_names={row.symbol: row.latex for row in TABLE})
    return text


S = entry("sync_interval").symbol
j = entry("lag").symbol
t = entry("step").symbol
k = entry("cycle").symbol
n = entry("growth_cycles").symbol
eta = entry("learning_rate").symbol
T = entry("horizon").symbol
C = entry("critical_product").symbol
B = entry("budget").symbol
R = entry("exit_radius").symbol
h = entry("honest_signal").symbol
kappa = entry("feedback_gain").symbol
u = entry("memory").symbol
u0 = entry("initial_memory").symbol
ustar = entry("fixed_memory").symbol
multiplier = entry("multiplier").symbol
sigma = entry("noise_scale").symbol
v = entry("drift_speed").symbol
tau = entry("cycle_clock").symbol
z = entry("drive").symbol
z0 = entry("initial_drive").symbol
d = entry("drift").symbol
m = entry("memory_drive").symbol
rho = entry("retention").symbol
q = entry("pair_cosine").symbol
alpha = entry("rate_growth").symbol
beta = entry("interval_growth").symbol
k_w = entry("slope_within").symbol
k_s = entry("slope_across").symbol
J = entry("feedback_slope").symbol
M = entry("gradient_bound").symbol
G_upd = entry("update_norm").symbol
L_D = entry("distribution_smoothness").symbol
L_phi = entry("integrand_smoothness").symbol
L_b = entry("bias_slope").symbol
R_batch = entry("batch_radius").symbol
R_crit = entry("critical_radius").symbol

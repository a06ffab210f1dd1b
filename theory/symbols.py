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
        What sympy may assume: "positive", "nonnegative", "real", and "integer" beside one of them.
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
    Entry("step_curvature", "a", "a", "1", "positive", "learning rate times the curvature of a quadratic"),
    Entry("weight_decay", "zeta", r"\zeta", "1", "nonnegative", "decoupled decay as a share of the curvature"),
    Entry("cycles_late", "ell", r"\ell", "sync cycles", "nonnegative integer", "cycles by which a sync is late"),
    Entry("crossing_angle", "w", "w", "radian", "positive", "angle at which a root leaves the unit circle"),
    Entry("ratio", "r", "r", "1", "positive", "importance ratio of learner to behaviour policy"),
    Entry("advantage", "A", "A", "reward or 1", "real", "group advantage of a sample"),
    Entry("epsilon_high", "eps_high", r"\epsilon_{\mathrm{high}}", "1", "positive", "upper width of the clip"),
    Entry("epsilon_low", "eps_low", r"\epsilon_{\mathrm{low}}", "1", "positive", "lower width of the clip"),
    Entry("log_ratio", "delta", r"\delta", "nat", "real", "log of the importance ratio"),
    Entry("own_log_ratio", "own", r"\ell", "nat", "real", "log-ratio that a term of the surrogate corrects for"),
    Entry("whole_log_ratio", "whole", r"\ell_{\mathrm{all}}", "nat", "real", "log-ratio of the whole sequence"),
    Entry("own_second", "own2", r"\ell^{(2)}", "nat", "real", "second-order coefficient of own_log_ratio"),
    Entry(
        "whole_second",
        "whole2",
        r"\ell_{\mathrm{all}}^{(2)}",
        "nat",
        "real",
        "second-order coefficient of whole_log_ratio",
    ),
    Entry("success_probability", "p", "p", "1", "positive", "probability of a reward of 1"),
    Entry("group_size", "G", "G", "samples", "positive integer", "samples of a group"),
    Entry("first_moment", "beta1", r"\beta_1", "1", "nonnegative", "Adam's decay of the first moment, in [0, 1)"),
    Entry("restoring_rate", "c", "c", "1", "positive", "share of the drift taken back at each step, in (0, 1)"),
    Entry("later_lag", "j2", "j_2", _STEPS, "nonnegative integer", "the later of two lags"),
    Entry("drift_ratio", "g", "g", "1", "positive", "square drift at the later lag over that at the lag"),
    Entry("growth_slope", "a_D", "a_D", "1", "positive", "slope of the log of the drift on the log of the lag"),
    Entry("product", "P", "P", "1", "positive", "S*eta, the cumulative learning rate of one sync cycle"),
    Entry("curvature", "K", "K", "1", "positive", "curvature of the objective along one direction"),
    Entry("stale_share", "f", "f", "1", "positive", "share of the curvature that the behaviour policy carries"),
    Entry("heavy_ball", "mu", r"\mu", "1", "nonnegative", "momentum of the heavy ball, in [0, 1)"),
    Entry("frequency", "omega", r"\omega", "radian per step", "positive", "frequency of an undamped oscillation"),
    Entry("log_ratio_width", "s", "s", "nat", "positive", "standard deviation of the log-ratio under the behaviour"),
    Entry("tokens", "L", "L", "tokens", "positive integer", "tokens of a sequence"),
    Entry("clip_width", "eps", r"\epsilon", "1", "positive", "smaller of the two widths of the clip, in (0, 1)"),
    Entry("divergence", "KL", r"\mathrm{KL}", "nat", "nonnegative", "Kullback-Leibler divergence of the two policies"),
    Entry("second_moment", "M2", "M_2", "nat^2", "nonnegative", "mean square log-ratio under the behaviour"),
    Entry("chi_square", "X2", r"\chi^2", "1", "nonnegative", "mean square ratio under the behaviour, minus 1"),
    Entry("effective_share", "ESS", r"\mathrm{ESS}", "1", "positive", "effective share of a sample, in (0, 1]"),
    Entry("total_variation", "TV", r"\mathrm{TV}", "1", "nonnegative", "total variation between the two policies"),
    Entry("clip_fraction", "F", r"F_{\mathrm{clip}}", "1", "nonnegative", "share of ratios out of the clip"),
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
ratio = entry("ratio").symbol
advantage = entry("advantage").symbol
eps_high = entry("epsilon_high").symbol
eps_low = entry("epsilon_low").symbol
log_ratio = entry("log_ratio").symbol
own = entry("own_log_ratio").symbol
whole = entry("whole_log_ratio").symbol
own2 = entry("own_second").symbol
whole2 = entry("whole_second").symbol
p = entry("success_probability").symbol
G = entry("group_size").symbol
beta1 = entry("first_moment").symbol
c = entry("restoring_rate").symbol
j2 = entry("later_lag").symbol
g = entry("drift_ratio").symbol
growth_slope = entry("growth_slope").symbol
P = entry("product").symbol
K = entry("curvature").symbol
f = entry("stale_share").symbol
mu = entry("heavy_ball").symbol
omega = entry("frequency").symbol
s = entry("log_ratio_width").symbol
L = entry("tokens").symbol
eps = entry("clip_width").symbol
KL = entry("divergence").symbol
M2 = entry("second_moment").symbol
X2 = entry("chi_square").symbol
ESS = entry("effective_share").symbol
TV = entry("total_variation").symbol
F = entry("clip_fraction").symbol
a = entry("step_curvature").symbol
zeta = entry("weight_decay").symbol
ell = entry("cycles_late").symbol
w = entry("crossing_angle").symbol

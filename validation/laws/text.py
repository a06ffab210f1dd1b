"""The fixed words of the page of the measured laws: what each sweep is, what each contrast changes, how to read it."""

from dataclasses import dataclass

HEAD = """# What the laws do on real runs

Asynchronous GRPO runs of a small policy, trained on the CPU by `validation.run`, held against the claims of
`theory/claims`. This page is made from the data in [`laws/`](laws) by
`python -m validation.laws docs/laws --page docs/laws.md`; only the conclusions are written by hand
([`laws/conclusions.md`](laws/conclusions.md)). S is the sync interval, η the learning rate, T the step of a collapse.
Brackets hold 90 % intervals; round brackets around a number mean that the data do not identify it."""

SETTINGS = {
    "sort": "the main sweep: sort 3 of 10 symbols, network of width 64, 64 prompts × 8 samples, Adam, token-"
    "level ratio, no clip",
    "sort_clipped": "`sort` with PPO clipping at 0.2",
    "open_cycle": "`sort` at S so large that runs collapse in the first cycle or soon after",
    "sort_wide": "`sort` at larger S",
    "momentum_wide": "`sort_wide` with β1 = 0.99 in place of 0.9",
    "momentum_fresh": "`momentum_wide` at five S from 32 to 128, fresh seeds",
    "momentum_long": "`small_batch` with β1 = 0.99 at S from 32 to 128, two and a half times as long",
    "momentum": "`sort` with β1 = 0.99 in place of 0.9",
    "small_batch": "`sort` with 16 prompts",
    "sgd": "`small_batch` with SGD (momentum 0.9) in place of Adam",
    "sgd_long": "`sgd` three times as long, rates below its ceiling",
    "sequence": "`small_batch` with the sequence-level ratio (GSPO)",
    "sequence_product": "`small_batch` with the exact importance weight of the completion",
    "prefix_sum": "`small_batch` on running sums modulo 6",
    "reverse": "`small_batch` on reversing 6 symbols, graded reward",
    "transformer": "`small_batch` with a one-block transformer of width 32",
}
"""What each sweep is, in the order of the page; others follow by name."""

FIGURES = {
    "exponents": "Boundary and budget exponent of every sweep with 90 % intervals, and what the drift predicts",
    "phases": "Outcome of every run, and the fitted boundary with its 90 % band",
    "budgets": "η·T at collapse against S·η in every sweep: on one curve if the mean-field picture holds",
    "horizons": "The boundary of the same runs cut at a quarter, a half and the whole of their length",
    "lags": "How drift grows with the lag inside the cycles of the largest S, early in training",
    "drift": "Drift at the end of a cycle on the boundary of each S: flat if a fixed drift makes runs unstable",
    "cosines": "Cosine of successive cycle-mean gradients early in training, against η over the boundary rate of its S",
    "holdout": "Collapse steps at S values that the model was not fitted to, measured against predicted",
}


@dataclass(frozen=True)
class Contrast:
    """Two sweeps that differ in one thing."""

    base: str
    changed: str
    question: str
    change: str


CONTRASTS = (
    Contrast(
        "sort_wide",
        "momentum_wide",
        "Is it the coherence of the drift inside a cycle?",
        "Adam's first moment averages a hundred gradients in place of ten, so the steps of a cycle point the same way.",
    ),
    Contrast(
        "sort",
        "open_cycle",
        "Is it a direction that persists?",
        "Before the first sync the behaviour policy never changes, so no sync turns the update round.",
    ),
    Contrast(
        "sgd",
        "sgd_long",
        "Is it the time that slow collapses need?",
        "The same runs three times as long, at rates below the ceiling.",
    ),
    Contrast(
        "sort",
        "small_batch",
        "Is it gradient noise?",
        "A quarter of the prompts: the same mean gradient, four times the variance.",
    ),
    Contrast(
        "small_batch",
        "sequence_product",
        "Is it the bias of the token-level ratio?",
        "The exact importance weight of the completion has no bias at any lag, only variance.",
    ),
    Contrast(
        "small_batch",
        "sequence",
        "Does the level of the ratio matter?",
        "One ratio a completion, the geometric mean of its tokens' (GSPO).",
    ),
    Contrast(
        "sort",
        "sort_clipped",
        "Is it the large ratios?",
        "PPO clipping takes the gradient from tokens whose ratio has left [0.8, 1.2] the way the advantage points.",
    ),
    Contrast(
        "small_batch",
        "sgd",
        "Is it the normalization of the update?",
        "SGD with momentum: the step shrinks with the gradient, so that drift has no speed of its own.",
    ),
)

HOW_TO_READ = """## How to read it

- *Unstable* is degraded or collapsed, by the label rule that is stored with every sweep; "degraded stable" counts
  degraded runs as stable. "Time allowed for" lets a stable run count only as far as it had the time to collapse.
- *Drift* is the rms log-ratio per token of the last batch of a cycle (lag S − 1), in early training (four cycles of
  the largest S), before any decline. Intervals of drift are bootstraps over runs; those of the laws are posteriors.
- *max* and *min*: does a collapse need S·η above a threshold and η·T above a budget (max-form, no honest signal,
  h = 0), or is either enough (min-form, h > 0)? Every second seed is cut at the shortest horizon: no run counts twice.
- *Collapse times with both exponents free*: where many unstable runs lack the time to collapse, the intervals are too
  narrow. On made-up sweeps of that kind they held the true slope on η in 20 to 27 of 40; with little censoring in 33 to
  37 of 40.
- *Largest over smallest drift* is above 1 by construction: where the drift is the same at every S it reads 1.5 to 2.
- The model is `persistent_drift` with tanh, fitted to every second S and judged on the others, both ways round. Its
  boundary exponent is −1 by construction. The baseline has free exponents."""

REPRODUCE = """## Make it again

```
make laws                                    # every sweep, its data and this page; killed, it goes on where it was
make check-laws                              # trains one shard of the main sweep again and compares its bits
```

What it took, on which machine and when: [`laws/record.md`](laws/record.md)."""

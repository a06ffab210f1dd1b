"""The report of a comparison: one self-contained HTML page, without scripts and without network."""

import json
from collections.abc import Iterable

from meanfield.answer import RISK
from meanfield.budget import SLOPE_RANGE
from meanfield.combination import Combination
from meanfield.estimate import Estimate
from meanfield.verdicts import NOT_SUPPORTED
from theory.claims.laws import LAWS
from theory.claims.record import Claim
from validation.comparison import Comparison
from validation.config import Experiment
from validation.figures import ABOVE_CEILING, ReportFigure, report_figures
from validation.findings import LEFT_OUT
from validation.html_parts import bullets, code, section, table, text
from validation.report_findings import drift_body, horizon_body, times_body
from validation.report_style import STYLE

_UNTESTED = {
    "C3": "That rollouts of age S bias the gradient by no more than the order of S·η, and that every sync takes the "
    "bias away. Would need: the gradient on fresh rollouts beside that on the stale ones, at several points of a run.",
    "C4": "That a run is safe if η stays well below two limits, one that falls as 1/S and one that falls as 1/T. "
    "Would need: both limits measured beforehand, not read off the outcomes that they are to predict.",
    "C5": "That the policy keeps moving in one direction from sync to sync only where S·η is above a threshold. "
    "Would need: the mean update of every cycle, to see whether successive cycles point the same way.",
    "C6": "That η·T at collapse depends on S and η through S·η alone (figure 4). "
    "Would need: a test of figure 4 that is fixed beforehand, and more collapses just above the boundary.",
    "C7": "That S and the number of steps T share one budget: 1/η at the boundary is a part that grows as S plus a "
    "part that grows as T. Would need: the same S and η at two run lengths that differ by a factor of two or more.",
    "C8": "That a collapse needs two things, S·η above a threshold and η·T above a budget. "
    "Would need: the same S and η at two run lengths that differ by a factor of two or more.",
}
"""Claims that a sweep of outcomes and collapse times may leave open: what they say, and what would test them."""
_FORMS = {"C7": Combination.MIN, "C8": Combination.MAX}
_WHY_CHECK = (
    f"The check is no verdict. The budget leaves out collapses above the ceiling, {ABOVE_CEILING}. The check knows no "
    "ceiling: it fits the runs at S ≥ 2 alone and keeps every collapse."
)
_AT_THE_EDGE = (
    f"The interval of the budget exponent touches the steepest slope that the fit allows ({-max(SLOPE_RANGE):g}): the "
    "true one may be steeper. A jump in the collapse steps, as at a change of cause, looks like this."
)
_EDGE = 0.01
"""An end of an interval this near to the end of its range, as a share of the range, touches it."""
_MAX_LISTED = 12


def render(comparison: Comparison) -> str:
    """Write the page.

    Parameters
    ----------
    comparison : Comparison

    Returns
    -------
    str
        An HTML document; equal bits for equal input and versions.
    """
    title = f"driftlaw: {comparison.experiment.name}"
    sections = (
        _head(comparison),
        section("Answer", _answer(comparison)),
        section("Verdicts", _verdicts(comparison)),
        section("Figures", "".join(_figure(i, one) for i, one in enumerate(report_figures(comparison), 1))),
        section("Drift, and what it predicts", drift_body(comparison.findings)),
        section("Collapse times over η and S", times_body(comparison.findings)),
        section("The same runs, cut shorter", horizon_body(comparison.findings)),
        section("Read with care", _care(comparison)),
        section("Not tested by this sweep", _untested(comparison)),
        section("How it was done", _method(comparison)),
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{text(title)}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(sections)
        + "\n</main>\n</body>\n</html>\n"
    )


def _numbers(values: Iterable[float]) -> str:
    return ", ".join(f"{value:g}" for value in values)


def _head(comparison: Comparison) -> str:
    run = comparison.experiment
    clip = "without clipping" if run.grpo.epsilon is None else f"clipped at ±{run.grpo.epsilon:g}"
    scale = "scaled by the group's deviation" if run.grpo.scale_rewards else "not scaled"
    start = float(comparison.dataset.attrs["initial_reward"])
    counts = ", ".join(f"{count} {word}" for word, count in comparison.counts.items())
    unfinished = ""
    if comparison.num_done < comparison.num_shards:
        said = f"Unfinished sweep: {comparison.num_done} of {comparison.num_shards} shards done."
        unfinished = f'<p class="alert">{text(said)} The runs that are not there yet are unknown and left out.</p>'
    ratio = f"ratio per {run.grpo.importance_sampling_level.replace('_', ' ')}"
    sgd = run.grpo.sgd_momentum
    optimizer = f"Adam (β1 = {run.grpo.adam_beta1:g})" if sgd is None else f"SGD (momentum {sgd:g})"
    reward = "share of tokens before the first wrong one" if run.task.graded else "exact-match reward"
    task = f"{run.task.name.replace('_', ' ')}, {run.task.length} of {run.task.num_symbols} symbols, {reward}"
    blocks = run.policy.num_layers
    architecture = {"mlp": "two-layer network", "transformer": f"transformer with {blocks} block(s)"}
    policy = architecture[run.policy.architecture]
    facts = (
        ("Task", task),
        ("Policy", f"{policy} of width {run.policy.hidden_size}, pretrained to reward {start:.2f}"),
        ("Algorithm", f"GRPO {clip}, {ratio}, no KL term, advantages {scale}, {optimizer}, constant learning rate"),
        ("Batch", f"{run.grpo.num_prompts} prompts × {run.grpo.num_generations} generations per optimizer step"),
        ("Sync interval S", f"{_numbers(run.sync_interval)} optimizer steps"),
        ("Learning rate η", _numbers(run.learning_rate)),
        ("Seeds, length", f"{len(run.seed)} per cell, {run.max_steps} optimizer steps each"),
        ("Outcomes", f"{len(comparison.runs)} runs: {counts}"),
    )
    listed = "".join(f"<dt>{text(name)}</dt><dd>{text(value)}</dd>" for name, value in facts)
    return (
        f"<header><h1>Sweep “{text(run.name)}”: how much staleness does it survive?</h1>"
        f"{unfinished}<dl>{listed}</dl></header>"
    )


def _answer(comparison: Comparison) -> str:
    answer = comparison.answer
    tiles = (
        _tile("Threshold C", "S·η on the stability boundary", answer.critical_product),
        _tile("Budget B", "η·T at collapse", answer.budget),
        _tile("Ceiling η₀", "largest stable η at S = 1", answer.learning_rate_ceiling),
    )
    advice, horizon = answer.recommendation, comparison.experiment.max_steps
    if advice is None:
        use = "No recommendation: the boundary is not known from these runs."
    else:
        use = (
            f"For {horizon} steps use S = {advice.sync_interval:g} and η = {advice.learning_rate:.2g}: "
            f"{advice.why.split(';')[0]}; risk of a collapse {advice.risk:.1%}. Every safe rate is in the table."
        )
    rows = [
        (
            f"{row.sync_interval:g}",
            text(_said(row.max_learning_rate)),
            text("–" if row.safe_learning_rate is None else f"{row.safe_learning_rate:.2g}"),
            text(row.binding or "not known"),
        )
        for row in answer.table
    ]
    header = (
        "S",
        "η at which half of the seeds stay stable",
        f"largest η with at most {RISK:.0%} unstable",
        "set by",
    )
    return (
        f'<p class="use">{text(_plainly(comparison))}</p>\n<div class="tiles">{"".join(tiles)}</div>\n'
        f'<p class="use">{text(use)}</p>\n'
        f"{table(header, rows)}\n{_note(comparison)}"
    )


def _plainly(comparison: Comparison) -> str:
    """The two verdicts, and what they mean for the reader, in one or two sentences."""
    one, _, two, *_ = (judgement.verdict.word for judgement in comparison.judgements)
    said = f"Law one (largest stable η ∝ 1/S) is {one}; law two (collapse after a fixed η·T) is {two}."
    if comparison.answer.critical_product.estimate is None:
        return f"{said} The boundary is not known from these runs."
    if comparison.answer.critical_product.identified:
        return f"{said} Keep S·η below the threshold."
    if one == NOT_SUPPORTED:
        return f"{said} S·η is no constant here: use the table, which follows the measured exponent."
    return f"{said} These runs cannot tell whether S·η is a constant: use the table."


def _note(comparison: Comparison) -> str:
    share = f"{comparison.calibration.confidence:.0%}"
    said = f"Square brackets hold {share} intervals. Degraded runs count as unstable, like collapsed ones."
    return f'<p class="note">{text(said)}</p>'


def _tile(name: str, meaning: str, estimate: Estimate) -> str:
    value = "not known" if estimate.estimate is None else f"{estimate.estimate:.2g}"
    interval = "" if estimate.low is None else f"[{estimate.low:.2g}, {estimate.high:.2g}]"
    doubt = "" if estimate.identified or estimate.estimate is None else "no constant by this fit: see the verdicts"
    return (
        f'<div class="tile"><b>{text(name)}</b><span>{text(meaning)}</span><strong>{text(value)}</strong>'
        f"<span>{text(interval)}</span><em>{text(doubt)}</em></div>"
    )


def _said(estimate: Estimate) -> str:
    if estimate.estimate is None:
        return "not known"
    return f"{estimate.estimate:.2g} [{estimate.low:.2g}, {estimate.high:.2g}]"


def _verdicts(comparison: Comparison) -> str:
    """The judged claims as rows."""
    rows = []
    for record in LAWS:
        cell = _verdict_cell(comparison, record)
        if cell is None:
            continue
        name = f"<b>{text(record.id)}</b> {text(record.title)}"
        rule = "" if record.verdict_rule is None else f"<small>Rule: {text(record.verdict_rule)}</small>"
        rows.append((name, f"{text(record.statement)}<small>{text(record.source)}</small>{rule}", cell))
    checks = "" if not comparison.checks else f'<p class="note">{text(_WHY_CHECK)}</p>'
    return f'<div class="verdicts">{table(("claim", "what it says", "this sweep"), rows)}</div>\n{checks}'


def _untested(comparison: Comparison) -> str:
    """The claims without a row among the verdicts, each with what would test it."""
    lines = [
        f"<li><b>{record.id}</b> {text(record.title)}. {text(_UNTESTED[record.id])}</li>"
        for record in LAWS
        if _verdict_cell(comparison, record) is None
    ]
    return f"<ul>{''.join(lines)}</ul>"


def _chip(word: str) -> str:
    return f'<span class="chip {word.replace(" ", "-")}">{text(word)}</span>'


def _verdict_cell(comparison: Comparison, record: Claim) -> str | None:
    """What the sweep says about a claim, as HTML; None if it does not test it."""
    said = [
        f"<p>{_chip(one.verdict.word)} {text(one.verdict.sentence)}<small>{text(one.reading)}</small></p>"
        for one in comparison.judgements
        if one.verdict.claim_id == record.id
    ]
    if said:
        return "".join(said) + _check(comparison, record)
    combination = comparison.answer.combination
    if record.id not in _FORMS or combination is Combination.UNDECIDED:
        return None
    word = "favoured" if combination is _FORMS[record.id] else "disfavoured"
    return f"<p>{_chip(word)} The outcomes at several run lengths favour the {combination.value}-form.</p>"


def _check(comparison: Comparison, record: Claim) -> str:
    """The same rule without the runs above the ceiling, said to be no verdict."""
    said = [
        f"<p><small>{text(check.reading)}: {text(check.verdict.sentence)}</small></p>"
        for check in comparison.checks
        if check.verdict.claim_id == record.id
    ]
    return "".join(said)


def _figure(number: int, figure: ReportFigure) -> str:
    return (
        f'<figure role="img" aria-label="{text(figure.caption)}">\n{figure.svg}\n'
        f"<figcaption><b>Figure {number}.</b> {text(figure.caption)}</figcaption>\n</figure>"
    )


def _care(comparison: Comparison) -> str:
    kept = _kept(comparison)
    answer = comparison.answer
    next_runs = [
        f"Run next: S = {run.sync_interval:g}, η = {run.learning_rate:.2g}, {run.steps} steps, {run.seeds} seeds, to "
        f"learn {run.why}."
        for run in answer.next_runs
    ]
    edge = [_AT_THE_EDGE] if _at_the_edge(answer.budget_exponent) else []
    missing = [f"Not known: {sentence}." for sentence in answer.missing]
    warnings = [f"{_capital(sentence)}." for sentence in answer.warnings]
    return bullets([kept, *warnings, *edge, *missing, *next_runs])


def _kept(comparison: Comparison) -> str:
    """Which runs no fit uses, and why; all reasons of all runs are in the runs table."""
    left_out = comparison.left_out
    if left_out.empty:
        return "No run was left out of every fit; what single fits leave out is said in the runs table."
    told = []
    for reason, named in left_out.groupby(LEFT_OUT, sort=True)["run"]:
        more = f" and {len(named) - _MAX_LISTED} more" if len(named) > _MAX_LISTED else ""
        told.append(f"{len(named)}: {str(reason).split(': ')[1]} ({', '.join(named[:_MAX_LISTED])}{more})")
    runs = "1 run is" if len(left_out) == 1 else f"{len(left_out)} runs are"
    return f"{runs} left out of every fit. {'; '.join(told)}."


def _at_the_edge(slope: Estimate) -> bool:
    steepest = -max(SLOPE_RANGE)
    return slope.low is not None and slope.low < steepest + _EDGE * (max(SLOPE_RANGE) - min(SLOPE_RANGE))


def _capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


def _method(comparison: Comparison) -> str:
    rule = comparison.rule
    floor = float(comparison.dataset.attrs["reward_floor"])
    labels = (
        "Labels are set on the learner's exact expected reward; gain = best smoothed reward so far (trailing mean of "
        f"{rule.smoothing_window} evaluations) − floor, floor = {floor:.3g}, the reward of a random policy. "
        f"Collapsed: below floor + {rule.collapse_fraction:g}·gain from some evaluation to the end, for at least "
        f"{rule.min_evaluations} evaluations. Degraded: ends below floor + {rule.degraded_fraction:g}·gain, or fell "
        f"below floor + {rule.fall_fraction:g}·gain for {rule.min_evaluations} evaluations and came back. Stable: "
        "neither. The rule does not depend on the sweep."
    )
    made, read = (", ".join(f"{k} {v}" for k, v in part.items()) for part in comparison.versions.values())
    commands = (
        f"python -m validation.run experiment.toml --store {comparison.store}\n"
        f"python -m validation.compare {comparison.store} --out report\n"
        f"python -m meanfield.predict --runs report/runs.csv --horizon {comparison.experiment.max_steps}"
    )
    return (
        f"<p>{text(labels)}</p>\n<p>Runs made with {text(made)}. Read with {text(read)}.</p>\n"
        "<p>To reproduce, save the experiment printed below as experiment.toml, then:</p>\n"
        f"{code(commands)}\n<details><summary>experiment.toml</summary>\n"
        f"{code(experiment_toml(comparison.experiment))}\n</details>"
    )


def experiment_toml(experiment: Experiment) -> str:
    """Return the TOML text of an experiment, from which `validation.config` reads back an equal one."""
    lines, sections = [], []
    for key, value in json.loads(experiment.to_json()).items():
        if isinstance(value, dict):
            body = [f"{name} = {json.dumps(one)}" for name, one in value.items() if one is not None]
            sections.append("\n".join(["", f"[{key}]", *body]))
        else:
            lines.append(f"{key} = {json.dumps(value)}")
    return "\n".join([*lines, *sections]) + "\n"

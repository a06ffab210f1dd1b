"""The page of the measured laws as Markdown, made from its numbers alone: equal numbers give equal text."""

import math
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from theory.claims import claim
from validation.laws.text import CONTRASTS, FIGURES, HEAD, HOW_TO_READ, REPRODUCE, SETTINGS, Contrast

Numbers = dict[str, Any]

_VERDICT_ORDER = ("supported", "inconclusive", "not supported")


def render(numbers: Numbers, *, folder: Path, page: Path) -> str:
    """Write the page.

    Parameters
    ----------
    numbers : dict
        What validation.laws wrote: the key `settings` holds one dict a sweep (`Setting.to_json`).
    folder : Path
        Where the figures are.
    page : Path
        Where the page goes: links are relative to it.
    """
    settings: list[Numbers] = numbers["settings"]
    link = os.path.relpath(folder, page.parent)
    conclusions = folder / "conclusions.md"
    said = conclusions.read_text(encoding="utf-8").strip() if conclusions.is_file() else ""
    parts = [
        HEAD,
        said,
        _section("Verdicts", _verdicts(settings)),
        _section("What was run", _runs(settings)),
        _section("Law one: the boundary", _figure("exponents", link), _boundary(settings), _figure("phases", link)),
        _section(
            "Law two: the budget",
            _figure("budgets", link),
            _budgets(settings),
            _times(settings),
            _interval_budgets(settings),
        ),
        _section("Which constraint binds: the horizon cut", _figure("horizons", link), _horizons(settings)),
        _section(
            "Drift, and what it predicts",
            _figure("lags", link),
            _growth(settings),
            _figure("drift", link),
            _on_boundary(settings),
        ),
        _section("Do directions persist?", _figure("cosines", link), _persistence(settings)),
        _section("What the laws depend on: one cause changed alone", _contrasts(settings)),
        _section("The mean-field model on S it has not seen", _figure("holdout", link), _holdout(settings)),
        _section("Runs left out, and why", _left_out(settings)),
        HOW_TO_READ,
        REPRODUCE,
    ]
    return "\n\n".join(part.strip() for part in parts if part.strip()) + "\n"


def _section(title: str, *parts: str) -> str:
    return "\n\n".join([f"## {title}", *parts])


def _table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    names = list(header)
    lines = [names, ["---"] * len(names), *map(list, rows)]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def _by_sweep(settings: list[Numbers], columns: dict[str, Callable[[Numbers], str]]) -> str:
    """A table of one row a sweep; a column is a function of the sweep's numbers."""
    rows = [[f"`{one['name']}`", *(cell(one) for cell in columns.values())] for one in settings]
    return _table(["sweep", *columns], rows)


def _figure(name: str, link: str) -> str:
    return f"![{FIGURES[name]}]({link}/{name}.png)\n\n*{FIGURES[name]}*"


def _two(one: Numbers | None, digits: int = 2) -> str:
    """Return a number with its interval, with true minus signs; in brackets and grey where it is not identified."""
    if one is None or one["estimate"] is None:
        return "–"
    values = [f"{one[end]:.{digits}f}" for end in ("estimate", "low", "high")]
    text = f"{values[0]} [{values[1]}, {values[2]}]".replace("-", "−")
    return text if one.get("identified", True) else f"({text})"


def _short(one: Numbers | None) -> str:
    """The same in three significant digits."""
    if one is None or one["estimate"] is None:
        return "–"
    text = f"{one['estimate']:.3g} [{one['low']:.3g}, {one['high']:.3g}]".replace("-", "−")
    return text if one.get("identified", True) else f"({text})"


def _verdicts(settings: list[Numbers]) -> str:
    judged = [(one["claim"], one["reading"]) for one in settings[0]["verdicts"]]
    header = ["sweep", *(f"{claim_id} {claim(claim_id).title}, {reading}" for claim_id, reading in judged)]
    rows = [[f"`{one['name']}`", *(f"**{v['verdict']}**" for v in one["verdicts"])] for one in settings]
    rules = [f"- {key}: {claim(key).verdict_rule}" for key in dict.fromkeys(claim_id for claim_id, _ in judged)]
    counts = []
    for place, (claim_id, reading) in enumerate(judged):
        words = [one["verdicts"][place]["verdict"] for one in settings]
        told = ", ".join(f"{words.count(word)} {word}" for word in _VERDICT_ORDER if word in words)
        counts.append(f"- {claim_id}, {reading}: {told}.")
    because = [
        f"- `{one['name']}`, {v['claim']} ({v['reading']}): {v['sentence']}"
        for one in settings
        for v in one["verdicts"]
    ]
    details = "<details><summary>Every verdict with its reason</summary>\n\n" + "\n".join(because) + "\n\n</details>"
    return "\n\n".join(["\n".join(counts), _table(header, rows), "The rules:\n\n" + "\n".join(rules), details])


def _runs(settings: list[Numbers]) -> str:
    def size(one: Numbers) -> str:
        run = one["experiment"]
        return f"{len(run['sync_interval'])} × {len(run['learning_rate'])} × {len(run['seed'])}"

    def rates(one: Numbers) -> str:
        tested = one["experiment"]["learning_rate"]
        return f"{tested[0]:g} to {tested[-1]:g}"

    columns: dict[str, Callable[[Numbers], str]] = {
        "what it is": lambda one: SETTINGS.get(one["name"], ""),
        "S × η × seeds": size,
        "η": rates,
        "steps": lambda one: str(one["experiment"]["max_steps"]),
        "outcomes": lambda one: ", ".join(f"{count} {word}" for word, count in one["outcomes"].items()),
    }
    return _by_sweep(settings, columns)


def _boundary(settings: list[Numbers]) -> str:
    columns: dict[str, Callable[[Numbers], str]] = {
        "exponent, degraded unstable": lambda one: _two(one["boundary_exponent"]),
        "the same, time allowed for": lambda one: _two(one["boundary_exponent_given_time"]),
        "exponent, degraded stable": lambda one: _two(one["boundary_exponent_collapsed_only"]),
        "that, time allowed for": lambda one: _two(one["boundary_exponent_collapsed_only_given_time"]),
        "C = S·η at exponent −1": lambda one: _short(one["critical_product"]),
        "ceiling at S = 1": lambda one: _short(one["learning_rate_ceiling"]),
    }
    return _by_sweep(settings, columns)


def _budgets(settings: list[Numbers]) -> str:
    columns: dict[str, Callable[[Numbers], str]] = {
        "slope of log T on log η": lambda one: _two(one["budget_exponent"]),
        "without degraded runs": lambda one: _two(one["budget_exponent_without_degraded"]),
        "B = η·T at slope −1": lambda one: _short(one["budget"]),
        "distance from the start at collapse": lambda one: _short(one["persistence"]["exit_distance"]),
        "its largest over smallest over S": lambda one: _two(one["persistence"]["exit_spread"]),
    }
    return _by_sweep(settings, columns)


def _times(settings: list[Numbers]) -> str:
    def of(reading: str, name: str) -> Callable[[Numbers], str]:
        return lambda one: _two(one[reading][name])

    columns: dict[str, Callable[[Numbers], str]] = {
        "T ∝ η^…": of("times", "with_rate"),
        "T ∝ S^…": of("times", "with_interval"),
        "so boundary exponent at one horizon": of("times", "boundary_exponent"),
        "and η_max ∝ T^…": of("times", "horizon_exponent"),
        "b − c, 1 if η·T depends on S·η alone": of("times", "rate_less_interval"),
        "scatter of log T": of("times", "scatter"),
        "collapses": lambda one: str(one["times"]["num_events"]),
        "all declines: T ∝ η^…": of("times_of_declines", "with_rate"),
        "all declines: T ∝ S^…": of("times_of_declines", "with_interval"),
    }
    return "Collapse times with both exponents free; law two says −1 and 0:\n\n" + _by_sweep(settings, columns)


def _interval_budgets(settings: list[Numbers]) -> str:
    intervals = sorted({b["sync_interval"] for one in settings for b in one["interval_budgets"]})

    def at(S: float) -> Callable[[Numbers], str]:
        return lambda one: _short({b["sync_interval"]: b for b in one["interval_budgets"]}.get(S))

    return "B from the runs at each S alone:\n\n" + _by_sweep(settings, {f"S = {S:g}": at(S) for S in intervals})


def _horizons(settings: list[Numbers]) -> str:
    def shift(one: Numbers) -> str:
        shifts = [_shift(one["cuts"], S) for S in _shared(one["cuts"])]
        return "–" if not shifts else f"{min(shifts):.2f} to {max(shifts):.2f}".replace("-", "−")

    columns: dict[str, Callable[[Numbers], str]] = {
        "boundary exponent of the runs cut at": lambda one: "<br>".join(
            f"{cut['horizon']}: {_two(cut['exponent'])}" for cut in one["cuts"]
        ),
        "d log η_max / d log T, lowest and highest over S": shift,
        "log likelihood ratio of max- over min-form, with and without the ceiling": lambda one: _plain(
            one["forms"]["log_ratio_max_over_min"]
        ),
        "form": lambda one: one["forms"]["combination"],
        "log likelihood ratio of h > 0 over h = 0 in the model": lambda one: _plain([one["honest_log_ratio"]]),
    }
    return _by_sweep(settings, columns)


def _plain(values: list[float | None] | None) -> str:
    if values is None or None in values:
        return "–"
    return ", ".join(f"{value:.1f}" for value in values).replace("-", "−")


def _shared(cuts: list[Numbers]) -> list[float]:
    """The S whose boundary is known at the shortest and the longest cut."""
    known = [{rate["sync_interval"] for rate in cut["max_rates"]} for cut in (cuts[0], cuts[-1])]
    return sorted(known[0] & known[1])


def _shift(cuts: list[Numbers], S: float) -> float:
    ends = [next(r["estimate"] for r in cut["max_rates"] if r["sync_interval"] == S) for cut in (cuts[0], cuts[-1])]
    return math.log(ends[1] / ends[0]) / math.log(cuts[-1]["horizon"] / cuts[0]["horizon"])


def _growth(settings: list[Numbers]) -> str:
    def of(name: str) -> Callable[[Numbers], str]:
        return lambda one: _two(one["growth"][name])

    columns: dict[str, Callable[[Numbers], str]] = {
        "drift ∝ η^α: α": of("with_rate"),
        "∝ S^β: β": of("with_interval"),
        "in a cycle ∝ lag^…: all lags": of("with_lag"),
        "lags from 8": of("with_long_lag"),
        "mean pairwise cosine": of("pair_cosine"),
        "predicted exponent −β/α": of("predicted_exponent"),
        "predicted by the cosine": of("predicted_by_cosine"),
        "measured exponent": lambda one: _two(one["boundary_exponent"]),
        "drift on the boundary, largest over smallest S": of("spread"),
    }
    return _by_sweep(settings, columns)


def _on_boundary(settings: list[Numbers]) -> str:
    rows = [
        [
            f"`{one['name']}`",
            f"{point['sync_interval']:g}",
            *(_short(point[name]) for name in ("learning_rate", "drift", "behavior_k3", "effective_sample_size")),
        ]
        for one in settings
        for point in one["growth"]["on_boundary"]
    ]
    header = ("sweep", "S", "η on the boundary of this S", "drift [nat]", "KL (k3) [nat]", "effective sample size")
    told = "<details><summary>Drift at the end of a cycle on the boundary, every S and sweep</summary>"
    return f"{told}\n\n{_table(header, rows)}\n\n</details>"


def _persistence(settings: list[Numbers]) -> str:
    rows = []
    for one in settings:
        for contrast in one["persistence"]["contrasts"]:
            name = contrast["name"].replace("_", " ")
            rows.append([f"`{one['name']}`", name, _two(contrast["below"], 3), _two(contrast["above"], 3)])
    return _table(("sweep", "mean", "below the boundary", "above the boundary"), rows)


def _contrasts(settings: list[Numbers]) -> str:
    by_name = {one["name"]: one for one in settings}
    return "\n\n".join(_contrast(one, by_name) for one in CONTRASTS if {one.base, one.changed} <= by_name.keys())


def _contrast(contrast: Contrast, by_name: dict[str, Numbers]) -> str:
    pair = [by_name[name] for name in (contrast.base, contrast.changed)]
    rows = [
        ["boundary exponent", *(_two(one["boundary_exponent"]) for one in pair)],
        ["boundary exponent, degraded stable", *(_two(one["boundary_exponent_collapsed_only"]) for one in pair)],
        ["drift ∝ S^β: β", *(_two(one["growth"]["with_interval"]) for one in pair)],
        ["predicted exponent −β/α", *(_two(one["growth"]["predicted_exponent"]) for one in pair)],
        ["slope of log T on log η", *(_two(one["budget_exponent"]) for one in pair)],
        ["law one", *(one["verdicts"][0]["verdict"] for one in pair)],
        ["law two, degraded censored", *(one["verdicts"][2]["verdict"] for one in pair)],
        ["all declines: T ∝ η^…", *(_two(one["times_of_declines"]["with_rate"]) for one in pair)],
        ["law two, degraded as collapsed", *(one["verdicts"][3]["verdict"] for one in pair)],
    ]
    table = _table(("", f"`{contrast.base}`", f"`{contrast.changed}`"), rows)
    return f"**{contrast.question}** {contrast.change}\n\n{table}"


def _holdout(settings: list[Numbers]) -> str:
    rows = [
        [
            f"`{one['name']}`",
            score["model"],
            _two(score["log_score"], 3),
            _two(score["brier"], 3),
            _two(score["log_score_lead"], 3),
            _two(score["log_time_ratio"]),
            _two(score["within_factor_two"]),
        ]
        for one in settings
        if one["holdout"] is not None
        for score in one["holdout"]["scores"]
    ]
    header = (
        "sweep",
        "model",
        "log score per run [nat], higher is better",
        "Brier score, lower is better",
        "log score of persistent drift less its own",
        "median log(measured/predicted collapse step)",
        "share within a factor 2",
    )
    return _table(header, rows)


def _left_out(settings: list[Numbers]) -> str:
    rows = [
        [f"`{one['name']}`", reason.split(": ", 1)[0], reason.split(": ", 1)[1], str(count)]
        for one in settings
        for reason, count in one["left_out"].items()
    ]
    return _table(("sweep", "left out of", "because", "runs"), rows)

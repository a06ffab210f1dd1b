"""What an experiment is: frozen records, checked on construction, read from TOML.

Field names follow TRL where TRL has one (`max_steps`, `num_generations`, `epsilon`, `scale_rewards`); `sync_interval`
is the project's word for TRL's `weight_sync_steps`, counted in optimizer steps.
"""

import dataclasses
import difflib
import itertools
import json
import sys
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from theory.errors import InputError

_MAX_SEED = 2**63 - 1
"""Seeds are stored as int64."""


def _require(condition: bool, argument: str, rule: str, value: object, way_out: str) -> None:
    if not condition:
        raise InputError(argument, rule, value, way_out)


def _require_one_of(known: tuple[str, ...], argument: str, value: object) -> None:
    _require(value in known, argument, f"be one of {', '.join(known)}", repr(value), f"Use {known[0]!r}.")


def _is_count(value: object, minimum: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= minimum


def _is_seed(value: object) -> bool:
    return _is_count(value, 0) and value <= _MAX_SEED  # type: ignore[operator]


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_positive(value: Any) -> bool:
    return _is_number(value) and 0 < value <= sys.float_info.max


TASKS = ("sort", "reverse", "prefix_sum")
"""Names of the tasks (validation/tasks.py)."""
ARCHITECTURES = ("mlp", "transformer")
"""Names of the policies (validation/policy.py, validation/transformer.py)."""
RATIO_LEVELS = ("token", "sequence", "sequence_product")
"""Names of the importance ratios (validation/surrogate.py)."""
_ALIGNED = 16
"""Sizes are multiples of this many float32 numbers, 64 bytes."""


@dataclass(frozen=True)
class TaskConfig:
    """A prompt of `length` symbols out of `num_symbols` is shown; the completion has as many tokens.

    `name` says what is right: "sort" (the symbols in ascending order), "reverse" (in reverse order) or "prefix_sum"
    (token i is the sum of the first i symbols modulo `num_symbols`). The reward is 1 for an exact match, else 0; with
    `graded` it is the share of tokens before the first wrong one.
    """

    name: str = "sort"
    num_symbols: int = 10
    length: int = 3
    graded: bool = False

    def __post_init__(self) -> None:
        _require_one_of(TASKS, "task.name", self.name)
        _require(isinstance(self.graded, bool), "task.graded", "be true or false", self.graded, "Use false.")
        _require(
            _is_count(self.num_symbols, 2),
            "task.num_symbols",
            "be an integer >= 2",
            self.num_symbols,
            "Use 10.",
        )
        _require(_is_count(self.length, 2), "task.length", "be an integer >= 2", self.length, "Use 3.")


@dataclass(frozen=True)
class PolicyConfig:
    """The policy, pretrained by supervision.

    `architecture` "mlp" is a two-layer ReLU network over (prompt, previous token, position); "transformer" a decoder
    over prompt and completion with `num_layers` blocks of `num_heads` heads (which the network does not have).
    `pretrain_reward` [1] is the expected reward at which the supervised pretraining stops.
    """

    architecture: str = "mlp"
    hidden_size: int = 64
    num_layers: int = 1
    num_heads: int = 2
    pretrain_reward: float = 0.6
    pretrain_learning_rate: float = 1e-3
    pretrain_batch_size: int = 128
    pretrain_seed: int = 0

    def __post_init__(self) -> None:
        _require_one_of(ARCHITECTURES, "policy.architecture", self.architecture)
        defaults = {"hidden_size": 64, "num_layers": 1, "num_heads": 2, "pretrain_batch_size": 128}
        for name, default in defaults.items():
            value = getattr(self, name)
            _require(_is_count(value, 1), f"policy.{name}", "be an integer >= 1", value, f"Use {default}.")
        _require(
            self.architecture == "mlp" or self.hidden_size % self.num_heads == 0,
            "policy.num_heads",
            f"divide policy.hidden_size, which is {self.hidden_size}",
            self.num_heads,
            "Use 2.",
        )
        reward = self.pretrain_reward
        _require(
            _is_positive(reward) and reward < 1,
            "policy.pretrain_reward",
            "lie strictly between 0 and 1",
            reward,
            "Use 0.6: the reward must vary within groups.",
        )
        _require(
            _is_positive(self.pretrain_learning_rate),
            "policy.pretrain_learning_rate",
            "be positive and finite",
            self.pretrain_learning_rate,
            "Use 1e-3.",
        )
        _require(
            _is_seed(self.pretrain_seed),
            "policy.pretrain_seed",
            "be an integer from 0 to 2**63 - 1",
            self.pretrain_seed,
            "Use 0.",
        )


@dataclass(frozen=True)
class GrpoConfig:
    """Vanilla GRPO as people run it: no KL term, token-level ratio to the recorded behaviour log-probabilities.

    `importance_sampling_level` "sequence" is TRL's: one ratio a completion, the geometric mean of its tokens' (GSPO);
    "sequence_product" is their product, the completion's exact importance weight.
    `epsilon` is the PPO clip; leave it out for no clipping. `scale_rewards` divides the group-centred reward by the
    group's sample standard deviation plus 1e-4 (TRL's default); without it the advantage is the centred reward alone.
    Adam runs with the given betas; with `sgd_momentum` the optimizer is SGD with that heavy-ball momentum instead.
    Neither has weight decay; the learning rate is constant, without warm-up.
    """

    num_prompts: int = 64
    num_generations: int = 8
    scale_rewards: bool = True
    importance_sampling_level: str = "token"
    epsilon: float | None = None
    sgd_momentum: float | None = None
    adam_beta1: float = 0.9
    adam_beta2: float = 0.999
    adam_epsilon: float = 1e-8

    def __post_init__(self) -> None:
        _require(
            _is_count(self.num_prompts, 1),
            "grpo.num_prompts",
            "be an integer >= 1",
            self.num_prompts,
            "Use 64.",
        )
        _require(
            _is_count(self.num_generations, 2),
            "grpo.num_generations",
            "be an integer >= 2",
            self.num_generations,
            "A group of one has no advantage; use 8.",
        )
        _require(
            isinstance(self.scale_rewards, bool),
            "grpo.scale_rewards",
            "be true or false",
            self.scale_rewards,
            "Use true.",
        )
        _require_one_of(RATIO_LEVELS, "grpo.importance_sampling_level", self.importance_sampling_level)
        _require(
            self.epsilon is None or (_is_positive(self.epsilon) and self.epsilon < 1),
            "grpo.epsilon",
            "lie strictly between 0 and 1",
            self.epsilon,
            "Use 0.2, or leave it out for no clipping.",
        )
        for name in ("adam_beta1", "adam_beta2", "sgd_momentum"):
            value = getattr(self, name)
            unset = name == "sgd_momentum" and value is None
            _require(
                unset or (_is_number(value) and 0 <= value < 1),
                f"grpo.{name}",
                "lie in [0, 1)",
                value,
                "Use 0.9, or leave it out for Adam." if name == "sgd_momentum" else "Use 0.9 and 0.999.",
            )
        _require(
            _is_positive(self.adam_epsilon),
            "grpo.adam_epsilon",
            "be positive and finite",
            self.adam_epsilon,
            "Use 1e-8.",
        )


@dataclass(frozen=True)
class RunSpec:
    """One run: its synchronization interval [optimizer steps], learning rate [1] and seed."""

    sync_interval: int
    learning_rate: float
    seed: int


@dataclass(frozen=True)
class Experiment:
    """A sweep over (sync_interval, learning_rate, seed), every run `max_steps` optimizer steps long.

    Raises
    ------
    InputError
        If a field breaks its rule; the message names the field, the rule, the value and the way out.
    """

    name: str
    sync_interval: tuple[int, ...]
    learning_rate: tuple[float, ...]
    seed: tuple[int, ...]
    max_steps: int
    num_eval_prompts: int = 128
    task: TaskConfig = field(default_factory=TaskConfig)
    policy: PolicyConfig = field(default_factory=PolicyConfig)
    grpo: GrpoConfig = field(default_factory=GrpoConfig)

    def __post_init__(self) -> None:
        _require(
            isinstance(self.name, str) and self.name.strip() != "",
            "name",
            "be a non-empty string",
            repr(self.name),
            'Use "demo".',
        )
        self._check_axis("sync_interval", lambda v: _is_count(v, 1), "integers >= 1", "For an on-policy arm use 1.")
        self._check_axis("learning_rate", _is_positive, "positive finite numbers", "Use values such as 1e-3.")
        self._check_axis("seed", _is_seed, "integers from 0 to 2**63 - 1", "Use [0, 1].")
        _require(_is_count(self.max_steps, 1), "max_steps", "be an integer >= 1", self.max_steps, "Use 800.")
        _require(
            _is_count(self.num_eval_prompts, 1),
            "num_eval_prompts",
            "be an integer >= 1",
            self.num_eval_prompts,
            "Use 128.",
        )
        self._check_alignment()

    def _check_alignment(self) -> None:
        """Refuse sizes at which a run's part of a tensor starts off a multiple of 64 bytes.

        There a run may differ in the last bits with the runs that share its batch, since matrix products depend on
        alignment.
        """
        samples = self.grpo.num_prompts * self.grpo.num_generations
        sizes = {
            "policy.hidden_size": self.policy.hidden_size,
            "num_eval_prompts": self.num_eval_prompts,
            "grpo.num_prompts * grpo.num_generations": samples,
        }
        for name, size in sizes.items():
            nearest = max(_ALIGNED, round(size / _ALIGNED) * _ALIGNED)
            way_out = f"Use {nearest}: only then has every run the same bits whichever runs train beside it."
            _require(size % _ALIGNED == 0, name, f"be a multiple of {_ALIGNED}", size, way_out)

    def _check_axis(self, name: str, holds: Callable[[Any], bool], rule: str, way_out: str) -> None:
        values = getattr(self, name)
        listed = isinstance(values, tuple) and len(values) > 0
        _require(listed, name, f"be a non-empty list of {rule}", values, way_out)
        for value in values:
            _require(holds(value), name, f"hold {rule} only", value, way_out)
        ascending = all(a < b for a, b in itertools.pairwise(values))
        _require(
            ascending,
            name,
            "be strictly ascending without repeats",
            list(values),
            "Sort it and drop repeats.",
        )

    @property
    def runs(self) -> tuple[RunSpec, ...]:
        """All runs, sorted by sync interval, then seed, then learning rate."""
        return tuple(
            RunSpec(interval, rate, seed)
            for interval in self.sync_interval
            for seed in self.seed
            for rate in self.learning_rate
        )

    def to_json(self) -> str:
        """Every field, defaults included, as one line of JSON; equal text means equal experiments."""
        return json.dumps(dataclasses.asdict(self), sort_keys=True)


_SECTIONS: dict[str, type[Any]] = {"task": TaskConfig, "policy": PolicyConfig, "grpo": GrpoConfig}


def _check_keys(table: dict[str, Any], known: list[str], prefix: str) -> None:
    for key in table:
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1, cutoff=0.0)[0]
            way_out = f"The nearest known key is {prefix}{near}."
            raise InputError("experiment key", "be known", repr(prefix + key), way_out)


def _names(record: type[Any]) -> list[str]:
    return [f.name for f in dataclasses.fields(record)]


def experiment_from_mapping(mapping: dict[str, Any]) -> Experiment:
    """Build an experiment from nested plain data, as TOML gives it. Raises `InputError`."""
    _check_keys(mapping, _names(Experiment), "")
    values = dict(mapping)
    for name in ("name", "sync_interval", "learning_rate", "seed", "max_steps"):
        _require(name in values, name, "be given", "nothing", "Add it to the experiment file.")
    for name in ("sync_interval", "learning_rate", "seed"):
        if isinstance(values[name], list):
            values[name] = tuple(values[name])
    for name, record in _SECTIONS.items():
        section = values.get(name, {})
        _require(isinstance(section, dict), name, "be a table", section, f"Write it as [{name}].")
        _check_keys(section, _names(record), f"{name}.")
        values[name] = record(**section)
    return Experiment(**values)


def load_experiment(path: Path) -> Experiment:
    """Read an experiment from a TOML file. Raises `InputError` if it is not there, not TOML, or breaks a rule."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            "EXPERIMENT",
            "be a readable TOML file",
            str(path),
            f"{type(error).__name__}: give the path of an experiment.",
        ) from error
    try:
        mapping = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError("EXPERIMENT", "be valid TOML", str(path), f"The parser says: {error}.") from error
    return experiment_from_mapping(mapping)

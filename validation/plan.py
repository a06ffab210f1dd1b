"""The frozen plan of a sweep: which runs there are, and which of them train side by side in one shard."""

import itertools
from dataclasses import dataclass

from meanfield.shards import Shard
from validation.config import Experiment, RunSpec

RUNS_PER_SHARD = 8
"""Runs of one shard: large enough to share the overhead of a step, small enough to lose little when killed."""


@dataclass(frozen=True)
class Plan:
    """The runs of an experiment in their fixed order, cut into shards."""

    experiment: Experiment

    @property
    def runs(self) -> tuple[RunSpec, ...]:
        """All runs; a run's place in this order is its index in the store."""
        return self.experiment.runs

    @property
    def shards(self) -> tuple[Shard, ...]:
        """Shards of up to `RUNS_PER_SHARD` runs, as even as they can be."""
        total = len(self.runs)
        num_shards = -(-total // RUNS_PER_SHARD)
        edges = [total * index // num_shards for index in range(num_shards + 1)]
        return tuple(Shard(i, a, b) for i, (a, b) in enumerate(itertools.pairwise(edges)))

    def runs_of(self, shard: Shard) -> tuple[RunSpec, ...]:
        """The runs of one shard."""
        return self.runs[shard.start : shard.stop]

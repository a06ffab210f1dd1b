from collections.abc import Callable

import pytest

from validation.config import Experiment
from validation.plan import RUNS_PER_SHARD, Plan


@pytest.mark.parametrize("num_rates", [1, 2, 3, 7, 8, 9, 12])
def test_shards_cut_the_runs_into_even_pieces(vary: Callable[..., Experiment], num_rates: int) -> None:
    plan = Plan(vary(learning_rate=tuple(1e-3 * (i + 1) for i in range(num_rates))))
    pieces = [plan.runs_of(shard) for shard in plan.shards]
    assert sum(pieces, ()) == plan.runs
    sizes = {len(piece) for piece in pieces}
    assert max(sizes) <= RUNS_PER_SHARD
    assert max(sizes) - min(sizes) <= 1
    assert [shard.index for shard in plan.shards] == list(range(len(plan.shards)))

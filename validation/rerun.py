"""Train one shard of a sweep again and compare its bits with kept measures: `python -m validation.rerun EXPERIMENT`."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from theory.errors import InputError


def main(
    experiment: Annotated[Path, typer.Argument(metavar="EXPERIMENT.toml", help="Experiment file.")],
    measures: Annotated[Path, typer.Option(help="measures.nc that validation.compare wrote for this experiment.")],
    shard: Annotated[int, typer.Option(help="Number of the shard, from 0.")] = 0,
) -> None:
    """Train one shard again; exit 0 if every bit of its traces is the kept one, 1 if not."""
    import numpy as np
    import torch

    from meanfield import results
    from meanfield.results import SWEEP
    from validation.config import load_experiment
    from validation.learner import train
    from validation.measures import digest
    from validation.plan import Plan
    from validation.pretrain import pretrain
    from validation.store import current_versions

    plan = Plan(load_experiment(experiment))
    kept = results.load(measures)
    if kept.attrs.get("experiment") != plan.experiment.to_json():
        raise InputError("--measures", f"be those of {plan.experiment.name}", measures, "Give both of one sweep.")
    digests = json.loads(kept.attrs["shard_digests"])
    if not 0 <= shard < len(digests):
        raise InputError("--shard", f"lie in 0 .. {len(digests) - 1}", shard, "The plan has no other shards.")
    runs = plan.runs_of(plan.shards[shard])
    never_trained = np.full((len(runs), plan.experiment.max_steps), np.nan)
    if digests[shard] == digest([never_trained] * len(SWEEP.names)):
        raise InputError("--shard", "be finished in the kept measures", shard, "Give one that is, or finish the sweep.")
    torch.set_num_threads(1)
    traces = train(plan.experiment, pretrain(plan.experiment), runs)
    name = f"{plan.experiment.name}, shard {shard} ({len(runs)} runs of {plan.experiment.max_steps} steps)"
    if digest([traces[one] for one in SWEEP.names]) == digests[shard]:
        typer.echo(f"{name}: the same bits")
        return
    typer.echo(f"{name}: other bits; kept ones were made with {kept.attrs['versions']}, now {current_versions()}")
    raise typer.Exit(1)


if __name__ == "__main__":
    from meanfield.command import run_command

    sys.exit(run_command(main))

"""diffrax Dopri5 under `vmap` over all sets at once, as its manual shows it; see diffrax_vmap.py."""

from __future__ import annotations

from benchmarks.peers.diffrax_vmap import in_batches
from benchmarks.toy import Array, Sets


def run(sets: Sets) -> Array:
    """Return x after the last sync, shape (n,)."""
    return in_batches(sets, len(sets))

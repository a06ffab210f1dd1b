"""numbalsoda's DOP853, as numbalsoda_walk.py calls it."""

from __future__ import annotations

from numbalsoda import dop853

from benchmarks.peers.numbalsoda_walk import walked_by

run = walked_by(dop853)

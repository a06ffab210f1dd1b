"""numbalsoda's LSODA, as numbalsoda_walk.py calls it."""

from __future__ import annotations

from numbalsoda import lsoda

from benchmarks.peers.numbalsoda_walk import walked_by

run = walked_by(lsoda)

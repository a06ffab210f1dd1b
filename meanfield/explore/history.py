"""Undo and redo of states."""

from __future__ import annotations

from dataclasses import dataclass

from meanfield.explore.state import ExplorerState


@dataclass(frozen=True)
class History:
    """States that were shown, and those that were taken back.

    Attributes
    ----------
    present : ExplorerState
    past : tuple of ExplorerState
        The last one is the one before the present.
    future : tuple of ExplorerState
        The first one is the next to redo.
    """

    present: ExplorerState
    past: tuple[ExplorerState, ...] = ()
    future: tuple[ExplorerState, ...] = ()

    def push(self, state: ExplorerState) -> History:
        """Return the history with a new present; the same state again is no step, and a new one ends the future."""
        if state == self.present:
            return self
        return History(state, (*self.past, self.present))

    def undo(self) -> History:
        """Return the history one state back; at the first one it stays."""
        if not self.past:
            return self
        return History(self.past[-1], self.past[:-1], (self.present, *self.future))

    def redo(self) -> History:
        """Return the history one state on; at the last one it stays."""
        if not self.future:
            return self
        return History(self.future[0], (*self.past, self.present), self.future[1:])

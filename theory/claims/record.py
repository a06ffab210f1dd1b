"""One claim of the register, as a plain record."""

from dataclasses import dataclass
from typing import Literal

Status = Literal["published", "ours-derived", "ours-measured", "unknown"]
"""published: stated by the source; ours-derived: follows from the assumptions; ours-measured: seen in our runs;
unknown: the source says that it exists, but not what it is."""


@dataclass(frozen=True)
class Claim:
    """One claim.

    Attributes
    ----------
    id : str
        Stable id, "C1" and so on.
    title : str
        A few words for a heading.
    statement : str
        What is claimed.
    assumptions : tuple of str
        Under which conditions.
    source : str
        A paper with the part of it, or "ours".
    status : str
        "published", "ours-derived", "ours-measured" or "unknown".
    verdict_rule : str or None
        How measured data decide it, fixed before any run; None for a claim that is proved or not judged.
    """

    id: str
    title: str
    statement: str
    assumptions: tuple[str, ...]
    source: str
    status: Status
    verdict_rule: str | None = None

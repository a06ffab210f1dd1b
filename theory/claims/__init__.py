"""The claims: what is said, under which assumptions, by whom, and how it is judged.

Plain records without sympy, so that a table of verdicts can quote them at no cost. One file for each part of the
theory; `theory/checks` holds a numeric check of every one.
"""

from theory.claims.coherence import COHERENCE
from theory.claims.delay import DELAY
from theory.claims.laws import LAWS
from theory.claims.metrics import METRICS
from theory.claims.models import MODELS
from theory.claims.record import Claim
from theory.claims.surrogate import SURROGATE

PARTS: dict[str, tuple[Claim, ...]] = {
    "laws": LAWS,
    "surrogate": SURROGATE,
    "delay": DELAY,
    "coherence": COHERENCE,
    "metrics": METRICS,
    "models": MODELS,
}
"""Part of the theory -> its claims."""

CLAIMS: tuple[Claim, ...] = tuple(record for part in PARTS.values() for record in part)

_BY_ID = {record.id: record for record in CLAIMS}


def claim(claim_id: str) -> Claim:
    """Return the claim with this id.

    Raises
    ------
    ValueError
        If the id is unknown; the message lists the known ones.

    >>> claim("C1").title
    'law one: the boundary'
    """
    if claim_id not in _BY_ID:
        raise ValueError(f"claim id must be a known id, got {claim_id!r}. Known ids: {', '.join(_BY_ID)}.")
    return _BY_ID[claim_id]

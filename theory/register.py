"""The register: every formula with its claim, and what the check of every claim says."""

from functools import cache

from theory import bias, coherence, conversions, drift, growth, metrics, persistent, thresholds
from theory.checking import Comparison
from theory.checks import CHECKS
from theory.claims import CLAIMS, claim
from theory.delay import formulas as delay
from theory.formula import Formula
from theory.models import formulas as models
from theory.models import lag
from theory.surrogate import formulas as surrogate
from theory.surrogate import two_tokens

ROOMS = (
    bias,
    drift,
    persistent,
    thresholds,
    coherence,
    surrogate,
    two_tokens,
    delay,
    growth,
    metrics,
    conversions,
    models,
    lag,
)
"""The modules that hold formulas."""


@cache
def formulas() -> tuple[Formula, ...]:
    """Every public formula, in the order of the rooms and of the lines in them."""
    found = (value for room in ROOMS for value in vars(room).values() if isinstance(value, Formula))
    return tuple(dict.fromkeys(found))  # a room that derives from another has its formulas too


def formulas_of(claim_id: str) -> tuple[Formula, ...]:
    """The formulas of a claim.

    Raises
    ------
    ValueError
        If the claim is unknown.
    """
    claim(claim_id)
    return tuple(formula for formula in formulas() if formula.claim_id == claim_id)


def check(claim_id: str) -> tuple[Comparison, ...]:
    """Run the check of a claim.

    Raises
    ------
    ValueError
        If the claim is unknown.

    >>> all(comparison.holds for comparison in check("C4"))
    True
    """
    return CHECKS[claim(claim_id).id]()


def holds(claim_id: str) -> bool:
    """Whether every comparison of a claim's check holds."""
    return all(comparison.holds for comparison in check(claim_id))


def ids() -> tuple[str, ...]:
    """Ids of all claims, in order."""
    return tuple(record.id for record in CLAIMS)

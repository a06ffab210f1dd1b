"""`python -m theory`: every claim with its check; `python -m theory CLAIM`: one claim in full."""

import argparse
import sys

from theory.checks import CHECKS
from theory.claims import CLAIMS, claim
from theory.register import check, formulas_of, holds


def _list() -> int:
    """One line a claim, ending in holds or fails; 1 if any fails."""
    failed = 0
    for record in CLAIMS:
        good = holds(record.id)
        failed += not good
        head = f"{record.id:4} {record.title}  [{record.status}] "
        print(f"{head:.<78} {'holds' if good else 'fails'}", flush=True)  # noqa: T201
    return int(failed > 0)


def _show(claim_id: str) -> int:
    """Statement, formulas, assumptions, source and check of a claim; 1 if it fails."""
    record = claim(claim_id)
    lines = [f"{record.id}  {record.title}", "", record.statement, ""]
    for formula in formulas_of(claim_id):
        lines += [f"  {formula.name}: {formula.latex}"]
        lines += [f"      {formula.derivation}"] if formula.derivation else []
    lines += ["", "Assumptions: " + "; ".join(record.assumptions) + "."]
    lines += [f"Source: {record.source}. Status: {record.status}."]
    lines += [f"Decided by data: {record.verdict_rule}"] if record.verdict_rule else []
    lines += ["", f"Check: {' '.join((CHECKS[claim_id].__doc__ or '').split())}"]
    comparisons = check(claim_id)
    for one in comparisons:
        word = "holds" if one.holds else "fails"
        lines.append(f"  {one.what}: error {one.error:.2g}, allowed {one.allowed:.2g}: {word}")
    print("\n".join(lines))  # noqa: T201
    return int(not all(one.holds for one in comparisons))


def main() -> int:
    """Run the command line; 0 if all that was asked holds, 1 if not, 2 for an unknown claim."""
    parser = argparse.ArgumentParser(prog="python -m theory", description="The claims and their numeric checks.")
    parser.add_argument("claim", nargs="?", help="id of one claim, such as C5; without it all are listed")
    chosen = parser.parse_args().claim
    chosen = None if chosen is None else chosen.upper()
    if chosen is None:
        return _list()
    if chosen not in CHECKS:
        print(f"claim must be a known id, got {chosen!r}. Known ids: {', '.join(CHECKS)}.", file=sys.stderr)  # noqa: T201
        return 2
    return _show(chosen)


if __name__ == "__main__":
    sys.exit(main())

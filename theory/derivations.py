"""`python -m theory.derivations FOLDER`: the pages of docs/derivations, written from the register."""

import argparse
import sys
from pathlib import Path

from theory import symbols
from theory.checks import CHECKS
from theory.claims import PARTS
from theory.claims.record import Claim
from theory.formula import Formula
from theory.register import formulas_of

_HEAD = (
    "<!-- Written by `python -m theory.derivations docs/derivations` from the formulas and claims of `theory/`. "
    "Change those, not this page. -->\n"
)


def pages() -> dict[str, str]:
    """Every page, file name -> Markdown: an index and one page for each part of the theory."""
    index = [
        _HEAD,
        "# Derivations\n",
        "Each claim with its formulas, and how a machine holds it. `python -m theory` runs",
    ]
    index += ["every check; `python -m theory C5` shows one claim with the numbers of its check.\n"]
    found = {}
    for part, claims in PARTS.items():
        found[f"{part}.md"] = _page(part, claims)
        index += [f"## [{part.capitalize()}]({part}.md)\n"]
        index += [f"- **{record.id}** {record.title} ({record.status})" for record in claims] + [""]
    return {"README.md": "\n".join(index), **found}


def _page(part: str, claims: tuple[Claim, ...]) -> str:
    sections = [_HEAD, f"# {part.capitalize()}\n"]
    used: set[symbols.Entry] = set()
    for record in claims:
        formulas = formulas_of(record.id)
        used |= {row for row in symbols.TABLE for formula in formulas if row.symbol in formula.arguments}
        sections.append(_section(record, formulas))
    rows = [f"| ${row.latex}$ | {row.word} | {row.unit} | {row.meaning} |" for row in symbols.TABLE if row in used]
    legend = ["## Letters\n", "| letter | word | unit | meaning |", "|---|---|---|---|", *rows, ""] if rows else []
    return "\n".join([*sections, *legend])


def _section(record: Claim, formulas: tuple[Formula, ...]) -> str:
    lines = [f"## {record.id}: {record.title}\n", f"{record.statement}\n"]
    for formula in formulas:
        how = f": {formula.derivation}" if formula.derivation else ", by definition."
        lines += [f"**{formula.name[0].upper()}{formula.name[1:]}**{how}\n", f"$$ {formula.latex} $$\n"]
    lines += ["Assumptions:\n", *(f"- {one}" for one in record.assumptions), ""]
    lines += [f"Source: {record.source}. Status: {record.status}.\n"]
    lines += [f"Decided by data: {record.verdict_rule}\n"] if record.verdict_rule else []
    lines += [f"Check: {' '.join((CHECKS[record.id].__doc__ or '').split())}\n"]
    return "\n".join(lines)


def main() -> int:
    """Write the pages; 0, or 2 for a folder that cannot be written."""
    parser = argparse.ArgumentParser(prog="python -m theory.derivations", description="Write docs/derivations.")
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args().folder
    written = pages()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in written.items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        print(f"folder must be one that can be written, got {folder}: {error.strerror}.", file=sys.stderr)  # noqa: T201
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())

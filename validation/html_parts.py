"""Pieces of an HTML page: escaped text, tables, lists, sections."""

import html
import re
from collections.abc import Iterable


def text(value: object) -> str:
    """Escaped, with true minus signs and with intervals that no line break can split."""
    escaped = html.escape(str(value), quote=True)
    signed = re.sub(r"(?<![\w.])-(?=\d)", "−", escaped)
    return re.sub(r" (\[[^\]]*\])", lambda interval: "\u00a0" + interval[1].replace(" ", "\u00a0"), signed)


def code(value: str) -> str:
    """Preformatted text, kept as it is."""
    return f"<pre>{html.escape(value)}</pre>"


def section(title: str, body: str) -> str:
    """A section with its heading; the body is HTML already."""
    return f"<section>\n<h2>{text(title)}</h2>\n{body}\n</section>"


def table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table from header text and cells that are HTML already."""
    head = "".join(f"<th>{text(name)}</th>" for name in header)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>\n" for row in rows)
    return f'<div class="wide"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n</table></div>'


def bullets(sentences: Iterable[str]) -> str:
    """A list of sentences, escaped."""
    return "<ul>" + "".join(f"<li>{text(sentence)}</li>" for sentence in sentences) + "</ul>"

"""The page of the errors, to which every error response leads, made from docs/errors.md."""

import re
from collections import defaultdict
from html import escape
from pathlib import Path
from typing import NamedTuple

from jinja2 import Environment
from markupsafe import Markup

from scripts.openapi.texts import BASE_URL

DOCUMENT = Path(__file__).parents[2] / "docs" / "errors.md"
_ROW = re.compile(r"^\| (\d{3}) \| `([A-Z_]+)` \| (.+) \| (.+) \| (.+) \|$", re.MULTILINE)


def text() -> str:
    """Returns docs/errors.md. Its links lead to its chapter in the introduction."""
    return DOCUMENT.read_text(encoding="utf-8").replace("](#", f"]({BASE_URL}/docs/introduction.md#")


class Case(NamedTuple):
    """One case of a code: a row of the table, as Markdown."""

    status: str
    when: str
    details: str
    advice: str


def files(environment: Environment, brand: str, style: str) -> dict[str, str]:
    """Returns the page as HTML and as Markdown, by name."""
    found: dict[str, list[Case]] = defaultdict(list)
    for status, code, when, details, advice in _ROW.findall(text()):
        found[code].append(Case(status, when, details, advice))
    page = environment.overlay(autoescape=True)
    page.filters["inline"] = _inline
    return {
        "errors.html": page.get_template("errors.html").render(codes=found, brand=brand, style=style),
        "errors.md": environment.get_template("errors.md").render(codes=found),
    }


def _inline(line: str) -> Markup:
    """Returns a line of Markdown as HTML. A link within docs/errors.md is only its text here."""
    written = re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(line, quote=False))
    written = re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", written)
    return Markup(written)  # nosec B704  # noqa: S704 (escaped above)

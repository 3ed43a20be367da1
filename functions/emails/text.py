"""The texts of emails: a subject, plain text, and HTML, from the templates of this function.

Names come from people, and reach addresses that they chose. So they are short, have no control characters, and nothing
in them that email programs would make a link. No email contains code, evidence, or a secret, and none loads anything.
"""

import re
import unicodedata
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

from controlplane.platform.core.settings import settings

_LONGEST_NAME = 60
_LONGEST_TITLE = 120
_SPACE = re.compile(r"\s+")
_BLANK_LINES = re.compile(r"\n{3,}")
# Texts that email programs turn into links: a host name, a scheme, and an address.
_LINKED = re.compile(r"(?<=\w)[.\u2024\u3002\uff0e\uff61](?=\w)")
_SLASHES = re.compile(r"/{2,}|\\{2,}")


class Content(NamedTuple):
    """An email as it is read. The subject is one line."""

    subject: str
    text: str
    html: str


def shown_name(name: str) -> str:
    """Returns a name as emails show it."""
    return _harmless(name, _LONGEST_NAME)


def shown_title(title: str) -> str:
    """Returns the title of a finding as emails show it."""
    return _harmless(title, _LONGEST_TITLE)


def shown_day(seconds: int) -> str:
    """Returns the day of a Unix time in UTC."""
    moment = datetime.fromtimestamp(seconds, UTC)
    return f"{moment:%B} {moment.day}, {moment.year}"


def compose(mail: str, **values: Any) -> Content:
    """Returns an email. Names among the values have passed `shown_name` or `shown_title`.

    A mail states each of its texts once. `base.txt` and `base.html` lay them out.
    """
    values = {**values, "brand": settings.service_brand.capitalize()}
    text, html = (
        _environment(escapes=form == "base.html").get_template(f"{mail}.txt").render(values, form=form)
        for form in ("base.txt", "base.html")
    )
    subject, _, body = text.partition("\n\n")
    return Content(" ".join(subject.split()), _BLANK_LINES.sub("\n\n", body).strip() + "\n", html)


def _harmless(text: str, longest: int) -> str:
    """Returns one line of visible text without links, at most that long."""
    # Control characters, direction overrides, surrogates, and unassigned characters, but not joiners within words.
    kept = "".join(
        " " if unicodedata.category(it) in {"Cc", "Zl", "Zp"} else it
        for it in text[: 4 * longest]
        if unicodedata.category(it) not in {"Cf", "Cs", "Co", "Cn"}
    )
    plain = _SLASHES.sub("/", _LINKED.sub(". ", kept)).replace("@", " at ")
    line = _SPACE.sub(" ", plain).strip()
    return line if len(line) <= longest else line[: longest - 1].rstrip() + "…"


@cache
def _environment(*, escapes: bool) -> Environment:
    return Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=select_autoescape((), (), default=escapes),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )

"""The text of an issue, for the repository's maintainers: what was found, where, why it matters, and how to fix it.

Text from the repository or a rule is escaped and never treated as markup: it can't mention users, reference other
issues, break out of a code block, or hide anything. Inline code in backticks is kept.
"""

import re
from pathlib import PurePosixPath
from urllib.parse import quote

from controlplane.code_host.github.client import ISSUE_BODY_LIMIT
from controlplane.findings.fixes import Fix
from controlplane.findings.items import Evidence, InboxItem
from controlplane.platform.core.settings import settings

_TITLE_LENGTH = 200
_MOST_PLACES, _MOST_REFERENCES = 10, 10
_MOST_SNIPPET_LINES = 30
_ADDRESS_LENGTH, _PATH_LENGTH = 1_000, 300

_LANGUAGES = {
    ".cjs": "js",
    ".css": "css",
    ".htm": "html",
    ".html": "html",
    ".js": "js",
    ".json": "json",
    ".jsx": "jsx",
    ".mjs": "js",
    ".py": "python",
    ".svelte": "svelte",
    ".ts": "ts",
    ".tsx": "tsx",
    ".vue": "vue",
}

# Inserted after the sign, so that the code host recognizes neither a mention nor a reference.
_BREAK = "\u200b"
_MARKUP = re.compile(r"[\\*_\[\]<>|~&]")
_SIGN = re.compile(r"([@#])(?=\w)")
_REFERENCE = re.compile(r"\b(GH-)(?=\d)", re.IGNORECASE)
_LINE_START = re.compile(r"^([ \t]*)(#+|=+|-{2,}|\+)(?=\s|$)", re.MULTILINE)
_BACKTICKS = re.compile("`+")
_WEB_ADDRESS = re.compile(r"https?://[^\s/]")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]")


def compose(item: InboxItem, marker: str) -> tuple[str, str]:
    """Returns title and body of the item's issue. The body contains the marker, hidden from readers."""
    place = item.evidence[0] if item.evidence else None
    parts = [_what(item), _where(item.evidence)]
    if item.description:
        parts.append(_section("Why it matters", _prose(item.description)))
    if item.remediation:
        parts.append(_section("How to fix it", _prose(item.remediation)))
    if item.fix:
        parts.append(_fix(item.fix))
    references = [link for link in (_address(url) for url in item.references[:_MOST_REFERENCES]) if link]
    if references:
        parts.append(_section("References", "\n".join(f"- {link}" for link in references)))
    end = [_footer(item), _marker_line(marker)]
    while len(body := "\n\n".join(part for part in [*parts, *end] if part) + "\n") > ISSUE_BODY_LIMIT:
        parts.pop()  # happens only if escaping multiplies the length of a text
    return _title(item.title, place), body


def has_marker(body: str, marker: str) -> bool:
    """Returns whether an issue's body contains the marker."""
    return _marker_line(marker) in body


def _marker_line(marker: str) -> str:
    return f"<!-- {settings.service_brand}-issue {marker} -->"


def _title(title: str, place: Evidence | None) -> str:
    """Returns one line: the finding's title and its file name."""
    plain = " ".join(_CONTROL.sub(" ", title).split())
    if place is not None and place.path:
        name = " ".join(_CONTROL.sub(" ", PurePosixPath(place.path).name).split())
        if name and name not in plain and len(plain) + len(name) + 4 <= _TITLE_LENGTH:
            plain = f"{plain} in {name}"
    if len(plain) > _TITLE_LENGTH:
        plain = plain[: _TITLE_LENGTH - 1] + "…"
    return _SIGN.sub(rf"\1{_BREAK}", plain)


def _section(heading: str, content: str) -> str:
    return f"### {heading}\n\n{content}"


def _what(item: InboxItem) -> str:
    """Describes the finding in a sentence or two. Omits a summary that equals the description, which is shown below."""
    if item.summary and item.summary != item.description:
        return _prose(item.summary)
    return _prose(item.title.rstrip(".") + ".")


def _where(evidence: tuple[Evidence, ...]) -> str:
    places = [place for place in evidence if place.path]
    if not places:
        return ""
    first, others = places[0], places[1:_MOST_PLACES]
    content = _place(first)
    if first.snippet and first.snippet.strip():
        content += "\n\n" + _code_block(
            first.snippet, _LANGUAGES.get(PurePosixPath(first.path or "").suffix.lower(), "")
        )
    if others:
        content += "\n\nAlso in:\n\n" + "\n".join(f"- {_place(other)}" for other in others)
    if len(places) > _MOST_PLACES:
        content += f"\n- and in {len(places) - _MOST_PLACES} more places"
    return _section("Where", content)


def _fix(fix: Fix) -> str:
    needs = f"Needs {', '.join(map(_code_span, fix.packages))}.\n\n" if fix.packages else ""
    shown = _code_block(fix.diff, "diff", None) if fix.edits else _code_block(fix.code, fix.language)
    return f"{_prose(fix.summary)}\n\n{needs}{shown}"


def _place(evidence: Evidence) -> str:
    """Returns the path and its lines, linked if there is a URL."""
    path = evidence.path or ""
    name = _code_span(path if len(path) <= _PATH_LENGTH else "…" + path[-_PATH_LENGTH:])
    if evidence.start_line is not None:
        last = evidence.end_line
        several = last is not None and last != evidence.start_line
        name += f", lines {evidence.start_line} to {last}" if several else f", line {evidence.start_line}"
    link = _address(evidence.url)
    return f"[{name}]({link})" if link else name


def _footer(item: InboxItem) -> str:
    said = [f"Found by a code audit of {settings.service_brand}"]
    if item.rule_id:
        said.append(f"rule {_code_span(item.rule_id)}")
    if item.priority:
        said.append(f"priority {item.priority}")
    return "---\n" + " · ".join(said)


def _prose(text: str) -> str:
    """Escapes text as Markdown that renders it literally, keeping paragraphs, lists, and inline code."""
    pieces = _CONTROL.sub("", text.strip().replace("\r\n", "\n").replace("\r", "\n")).split("`")
    if len(pieces) % 2 == 0:  # an unpaired backtick isn't code
        return _escape("`".join(pieces)).replace("`", "\\`")
    return "".join(
        _escape(piece) if number % 2 == 0 else _code_span(piece) for number, piece in enumerate(pieces) if piece
    )


def _escape(text: str) -> str:
    text = _MARKUP.sub(lambda found: "&amp;" if found[0] == "&" else "\\" + found[0], text)
    text = _LINE_START.sub(r"\1\\\2", text)
    return _REFERENCE.sub(rf"\1{_BREAK}", _SIGN.sub(rf"\1{_BREAK}", text))


def _code_span(text: str) -> str:
    """Returns the text as inline code on one line, with a fence longer than any run of backticks in it."""
    plain = " ".join(_CONTROL.sub(" ", text).split())
    fence = "`" * (_longest_run(plain) + 1)
    pad = " " if plain.startswith("`") or plain.endswith("`") else ""
    return f"{fence}{pad}{plain}{pad}{fence}" if plain else ""


def _code_block(text: str, language: str, most_lines: int | None = _MOST_SNIPPET_LINES) -> str:
    lines = _CONTROL.sub("", text.replace("\r\n", "\n").replace("\r", "\n")).strip("\n").split("\n")
    shown = "\n".join(lines[:most_lines]) + ("\n…" if len(lines[:most_lines]) < len(lines) else "")
    fence = "`" * max(3, _longest_run(shown) + 1)
    return f"{fence}{language}\n{shown}\n{fence}"


def _longest_run(text: str) -> int:
    return max((len(run) for run in _BACKTICKS.findall(text)), default=0)


def _address(url: str | None) -> str:
    """Returns the URL quoted for a Markdown link, or an empty string if it isn't an HTTP URL or is too long."""
    if url is None or len(url) > _ADDRESS_LENGTH or not _WEB_ADDRESS.match(url):
        return ""
    return quote(url, safe="%/:?#@!$&+,;=~.-_")

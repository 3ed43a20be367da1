"""The text of an issue, for the repository's maintainers: what was found, where, why it matters, and how to fix it.

Text from the repository or a rule is never treated as markup.
"""

import re
from pathlib import PurePosixPath
from urllib.parse import quote

from controlplane.code_host.github.client import ISSUE_BODY_LIMIT
from controlplane.code_host.github.markdown import break_signs, code_block, code_span, one_line, prose
from controlplane.findings.fixes import Fix
from controlplane.findings.items import Evidence, InboxItem
from controlplane.platform.core.settings import settings

_TITLE_LENGTH = 200
_MOST_PLACES, _MOST_REFERENCES = 10, 10
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

_WEB_ADDRESS = re.compile(r"https?://[^\s/]")


def compose(item: InboxItem, marker: str) -> tuple[str, str]:
    """Returns title and body of the item's issue. The body contains the marker, hidden from readers."""
    place = item.evidence[0] if item.evidence else None
    parts = [_what(item), _where(item.evidence)]
    if item.description:
        parts.append(_section("Why it matters", prose(item.description)))
    if item.remediation:
        parts.append(_section("How to fix it", prose(item.remediation)))
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
    plain = one_line(title)
    if place is not None and place.path:
        name = one_line(PurePosixPath(place.path).name)
        if name and name not in plain and len(plain) + len(name) + 4 <= _TITLE_LENGTH:
            plain = f"{plain} in {name}"
    if len(plain) > _TITLE_LENGTH:
        plain = plain[: _TITLE_LENGTH - 1] + "…"
    return break_signs(plain)


def _section(heading: str, content: str) -> str:
    return f"### {heading}\n\n{content}"


def _what(item: InboxItem) -> str:
    """Describes the finding in a sentence or two. Omits a summary that equals the description, which is shown below."""
    if item.summary and item.summary != item.description:
        return prose(item.summary)
    return prose(item.title.rstrip(".") + ".")


def _where(evidence: tuple[Evidence, ...]) -> str:
    places = [place for place in evidence if place.path]
    if not places:
        return ""
    first, others = places[0], places[1:_MOST_PLACES]
    content = _place(first)
    if first.snippet and first.snippet.strip():
        content += "\n\n" + code_block(
            first.snippet, _LANGUAGES.get(PurePosixPath(first.path or "").suffix.lower(), "")
        )
    if others:
        content += "\n\nAlso in:\n\n" + "\n".join(f"- {_place(other)}" for other in others)
    if len(places) > _MOST_PLACES:
        content += f"\n- and in {len(places) - _MOST_PLACES} more places"
    return _section("Where", content)


def _fix(fix: Fix) -> str:
    needs = f"Needs {', '.join(map(code_span, fix.packages))}.\n\n" if fix.packages else ""
    shown = code_block(fix.diff, "diff", None) if fix.edits else code_block(fix.code, fix.language)
    return f"{prose(fix.summary)}\n\n{needs}{shown}"


def _place(evidence: Evidence) -> str:
    """Returns the path and its lines, linked if there is a URL."""
    path = evidence.path or ""
    name = code_span(path if len(path) <= _PATH_LENGTH else "…" + path[-_PATH_LENGTH:])
    if evidence.start_line is not None:
        last = evidence.end_line
        several = last is not None and last != evidence.start_line
        name += f", lines {evidence.start_line} to {last}" if several else f", line {evidence.start_line}"
    link = _address(evidence.url)
    return f"[{name}]({link})" if link else name


def _footer(item: InboxItem) -> str:
    said = [f"Found by a code audit of {settings.service_brand}"]
    if item.rule_id:
        said.append(f"rule {code_span(item.rule_id)}")
    if item.priority:
        said.append(f"priority {item.priority}")
    return "---\n" + " · ".join(said)


def _address(url: str | None) -> str:
    """Returns the URL quoted for a Markdown link, or an empty string if it isn't an HTTP URL or is too long."""
    if url is None or len(url) > _ADDRESS_LENGTH or not _WEB_ADDRESS.match(url):
        return ""
    return quote(url, safe="%/:?#@!$&+,;=~.-_")

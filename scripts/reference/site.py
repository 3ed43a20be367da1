"""All files of the reference, made from the OpenAPI document, the templates, and the code's tables of scopes and plans.

/docs is a light page with links to the guides and to a Markdown file for each operation. /docs/reference is Redoc, from
the npm package that package-lock.json pins; without npm, that page only links to /docs.
"""

import hashlib
import itertools
import json
import re
from collections import defaultdict
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from controlplane.platform.core.plans import PLANS
from controlplane.platform.core.scopes import API_KEY_SCOPES, SCOPES
from scripts.openapi.texts import BASE_URL, PAGES_URL
from scripts.reference import calls
from scripts.reference.guides import guides, html_of
from scripts.reference.operations import Operation, read
from scripts.reference.rules import rule_pages

ROOT = Path(__file__).parents[2]
TARGET = ROOT / "functions" / "system" / "reference"
REDOC = ROOT / "node_modules" / "redoc" / "bundles" / "redoc.standalone.js"
_ERRORS = ROOT / "docs" / "errors.md"
_ROW = re.compile(r"^\| (\d{3}) \| `([A-Z_]+)` \| (.+) \| (.+) \| (.+) \|$", re.MULTILINE)
_TEMPLATES = Path(__file__).parent / "templates"
_BRAND = "Assent"
_LOGO = "https://cdn.redoc.ly/redoc/logo-mini.svg"
_THEME = {"colors": {"primary": {"main": "#1d5c48"}}, "typography": {"fontFamily": "system-ui, sans-serif"}}


def build(document_text: str, redoc: Path = REDOC) -> dict[str, str]:
    """Returns the text of each file by name, openapi.json among them."""
    document = json.loads(document_text)
    tags = read(document)
    info = document["info"]
    title = info["title"][:1].upper() + info["title"][1:]
    environment = _environment()
    deprecations = _section(info.get("description", ""), "Deprecations")
    articles = guides()
    shown = {
        "tags": tags, "title": title, "info": info, "errors": _errors(), "deprecations": deprecations,
        "guides": articles,
    }  # fmt: skip
    files = {
        "introduction.md": environment.get_template("introduction.md").render(
            scopes=SCOPES,
            key_scopes=API_KEY_SCOPES,
            plans=PLANS.values(),
            first_program=calls.program("getMe", is_list=False, needs_token=True),
            **shown,
        ),
        "llms.txt": environment.get_template("llms.txt").render(shown),
    }
    page = environment.get_template("operation.md")
    for operation in itertools.chain(*tags.values()):
        files[f"{operation.node['operationId']}.md"] = page.render(operation=operation)
    files = {name: re.sub(r"\n{3,}", "\n\n", text).strip() + "\n" for name, text in files.items()}
    files |= {f"{guide.name}.md": guide.text for guide in articles}
    assets = {
        "style": ("css", (_TEMPLATES / "style.css").read_text(encoding="utf-8")),
        "search": ("js", (_TEMPLATES / "search.js").read_text(encoding="utf-8")),
    }
    if redoc.exists():
        # Redoc's logo is on its own server, and the page loads nothing from elsewhere.
        assets["script"] = ("js", redoc.read_text(encoding="utf-8").replace(_LOGO, "data:,"))
    names = {stem: _named(stem, suffix, content) for stem, (suffix, content) in assets.items()}
    escaped = environment.overlay(autoescape=True)
    escaped.globals.update(brand=_BRAND, style=names["style"])
    pages = {
        "index.html": escaped.get_template("page.html").render(**shown, root="", search=names["search"]),
        "reference.html": escaped.get_template("reference.html").render(
            title=title, root="../", theme=json.dumps(_THEME), script=names.get("script")
        ),
        **{f"{it.name}.html": escaped.get_template("guide.html").render(guide=it, root="../") for it in articles},
    }
    return {
        **files,
        **pages,
        **{names[stem]: content for stem, (_, content) in assets.items()},
        **_error_files(environment, escaped),
        **dict(rule_pages(escaped)),
        "openapi.json": document_text,
        "redoc.json": _with_samples(document, tags),
    }


def _with_samples(document: dict[str, Any], tags: dict[str, list[Operation]]) -> str:
    """Returns the document that the page shows: each operation has its samples, and only its own errors."""
    paths = {path: {**item} for path, item in document["paths"].items()}
    for operation in itertools.chain(*tags.values()):
        paths[operation.path][operation.method.lower()] = operation.node
    return json.dumps({**document, "paths": paths}, ensure_ascii=False, separators=(",", ":"))


def _environment() -> Environment:
    environment = Environment(  # nosec B701  # as the comment on autoescape says
        loader=FileSystemLoader(_TEMPLATES),
        # Markdown isn't escaped. Pages are rendered by an overlay that escapes.
        autoescape=False,  # noqa: S701
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.globals.update(
        api=BASE_URL,
        pages=PAGES_URL,
    )
    environment.filters.update(
        paragraphs=lambda text: [" ".join(part.split()) for part in text.split("\n\n") if part.strip()],
        one_line=lambda text: " ".join(text.split()),
        first_sentence=_first_sentence,
        inline=_inline,
        markdown=html_of,
    )
    return environment


def _errors() -> str:
    """Returns docs/errors.md as a chapter."""
    return re.sub(r"^(#+) ", r"#\1 ", _errors_text(), flags=re.MULTILINE).strip()


def _section(text: str, heading: str) -> str:
    """Returns a section of the text without its heading, or an empty string if the text has no such section."""
    rest = text.partition(f"## {heading}\n")[2]
    return re.split(r"^## ", rest, maxsplit=1, flags=re.MULTILINE)[0].strip()


def _named(stem: str, suffix: str, content: str) -> str:
    """Returns a name that changes with the content, so that browsers may cache the file forever."""
    return f"{stem}.{hashlib.sha256(content.encode()).hexdigest()[:16]}.{suffix}"


def _first_sentence(text: str) -> str:
    return re.split(r"(?<=[.?!])\s", " ".join(text.split()), maxsplit=1)[0]


def _errors_text() -> str:
    """Returns docs/errors.md. Its links lead to its chapter in the introduction."""
    return _ERRORS.read_text(encoding="utf-8").replace("](#", f"]({BASE_URL}/docs/introduction.md#")


class _Case(NamedTuple):
    """One case of a code: a row of the table, as Markdown."""

    status: str
    when: str
    details: str
    advice: str


def _error_files(environment: Environment, page: Environment) -> dict[str, str]:
    """Returns the page as HTML and as Markdown, by name."""
    found: dict[str, list[_Case]] = defaultdict(list)
    for status, code, when, details, advice in _ROW.findall(_errors_text()):
        found[code].append(_Case(status, when, details, advice))
    return {
        "errors.html": page.get_template("errors.html").render(codes=found, root="../"),
        "errors.md": environment.get_template("errors.md").render(codes=found),
    }


def _inline(line: str) -> Markup:
    """Returns a line of Markdown as HTML. A link within docs/errors.md is only its text here."""
    written = re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(line, quote=False))
    written = re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", written)
    return Markup(written)  # nosec B704  # noqa: S704 (escaped above)

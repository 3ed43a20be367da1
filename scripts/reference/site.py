"""All files of the reference, from the OpenAPI document, the templates, and what the code says of scopes and plans."""

import hashlib
import re
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from controlplane.plans import PLANS
from controlplane.scopes import API_KEY_SCOPES, SCOPES
from scripts.openapi.words import BASE_URL, PAGES_URL
from scripts.reference import markdown
from scripts.reference.document import Tag, slug
from scripts.reference.reader import Reader
from scripts.reference.rendering import Prose, code

ROOT = Path(__file__).parents[2]
TARGET = ROOT / "functions" / "system" / "reference"
_HERE = Path(__file__).parent
_BRAND = "Assent"
_PLACES = {"path": "Path parameters", "query": "Query parameters", "header": "Headers"}


def build(document: dict[str, Any]) -> dict[str, str]:
    """The text of each file, by name."""
    tags = Reader(document).tags()
    title, version = document["info"]["title"], document["info"]["version"]
    title = title[:1].upper() + title[1:]
    texts = _environment(tags, is_html=False)
    introduction = texts.get_template("introduction.md").render(
        scopes=SCOPES,
        key_scopes=API_KEY_SCOPES,
        plans=PLANS.values(),
        errors=_errors(),
    )
    files = markdown.files(texts, introduction, tags, title, document["info"].get("summary", ""))
    style, script = _style(), (_HERE / "static" / "script.js").read_text(encoding="utf-8")
    named = {_named("style", "css", style): style, _named("script", "js", script): script}
    style_name, script_name = named
    prose = Prose(_anchors(tags))
    page = (
        _environment(tags, is_html=True)
        .get_template("page.html")
        .render(
            tags=tags,
            title=title,
            version=version,
            brand=_BRAND,
            style=style_name,
            script=script_name,
            headings=prose.headings(introduction),
            introduction=prose.blocks(introduction),
        )
    )
    page = _without_blank_lines(page)
    anchors = re.findall(r' id="([^"]+)"', page)
    if repeated := {anchor for anchor in anchors if anchors.count(anchor) > 1}:
        raise ValueError(f"two places of the page have one anchor: {', '.join(sorted(repeated))}")
    return {**files, **named, "index.html": page}


def _without_blank_lines(page: str) -> str:
    """The page without the empty lines that the template's statements leave. Code keeps its own."""
    parts = re.split(r"(<pre>.*?</pre>)", page, flags=re.DOTALL)
    kept = [part if part.startswith("<pre>") else re.sub(r"\n\s*\n+", "\n", part) for part in parts]
    return "".join(kept).strip() + "\n"


def _anchors(tags: list[Tag]) -> dict[str, str]:
    return {f"{one.method} {one.path}": one.id for tag in tags for one in tag.operations}


def _environment(tags: list[Tag], *, is_html: bool) -> Environment:
    environment = Environment(  # nosec B701  # as the comment on autoescape says
        loader=FileSystemLoader(_HERE / "templates"),
        # The other templates are Markdown, where nothing is escaped.
        autoescape=is_html,  # noqa: S701
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    prose = Prose(_anchors(tags))
    environment.globals.update(
        api=BASE_URL,
        pages=PAGES_URL,
        places=_PLACES,
        credential_words=markdown.credential_words,
        field_lines=markdown.field_lines,
        with_article=_with_article,
        language=_language,
    )
    environment.filters.update(
        prose=prose.blocks,
        line=prose.line,
        code=code,
        slug=slug,
        path=_path,
        paragraphs=lambda text: [" ".join(part.split()) for part in text.split("\n\n") if part.strip()],
        one_line=lambda text: " ".join(text.split()),
        sentence=lambda text: text[:1].upper() + text[1:],
        first_sentence=_first_sentence,
        with_article=_with_article,
        language=_language,
    )
    return environment


def _errors() -> str:
    """docs/errors.md as a chapter."""
    text = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    return re.sub(r"^(#+) ", r"#\1 ", text, flags=re.MULTILINE).strip()


def _style() -> str:
    """The page's own rules below the colours of the other pages, which stand at the top of their style sheet."""
    pages = (ROOT / "functions" / "dashboard" / "static" / "style.css").read_text(encoding="utf-8")
    own = (_HERE / "static" / "style.css").read_text(encoding="utf-8")
    colours, found, _ = pages.partition("*,\n*::before")
    if not found or colours.count(":root {") != 2:
        raise ValueError("the style sheet of the pages no longer begins with its colours, light and dark")
    return colours + own


def _named(stem: str, suffix: str, content: str) -> str:
    """A name that changes with the content, so that a browser may keep it for good."""
    return f"{stem}.{hashlib.sha256(content.encode()).hexdigest()[:16]}.{suffix}"


def _path(path: str) -> Markup:
    """The path with its parameters marked, and places where it may be broken."""
    shown = str(escape(path)).replace("/", "/<wbr>")
    marked = re.sub(r"(\{\w+\})", r"<var>\1</var>", shown)
    return Markup(marked)  # nosec B704  # noqa: S704 (escaped before)


def _first_sentence(text: str) -> str:
    return re.split(r"(?<=[.?!])\s", " ".join(text.split()), maxsplit=1)[0]


def _with_article(kind: str) -> str:
    article = "an" if re.match(r"[aeio]", kind) else "a"
    return f"{article} {kind}"


def _language(media_type: str) -> str:
    return "json" if "json" in media_type else "text"

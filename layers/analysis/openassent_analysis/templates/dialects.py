"""The template languages: file extensions, and which syntaxes each of them has."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Dialect:
    """kind: the language's name in the counts of analyzed files."""

    kind: str
    # Names of the syntaxes in `delimited`.
    syntaxes: frozenset[str] = frozenset()
    # The reader in `indented`, for languages that nest by indentation.
    indented: str = ""
    # True for code of which only the markup in strings is read.
    in_strings: bool = False


def _dialect(kind: str, syntaxes: str = "", indented: str = "") -> Dialect:
    return Dialect(kind, frozenset(syntaxes.split()), indented)


def _code(language: str) -> Dialect:
    return Dialect(language, in_strings=True)


_HTML: Final = _dialect("HTML", "braces scriptlets php controls")
# By file extension. A longer one comes first: `blade.php` is no `php`.
DIALECTS: Final = {
    **dict.fromkeys(("html", "htm", "xhtml", "shtml"), _HTML),
    "blade.php": _dialect("Blade", "braces php blade"),
    **dict.fromkeys(("php", "phtml", "ctp", "module", "theme", "inc", "profile"), _dialect("PHP", "php")),
    **dict.fromkeys(("erb", "rhtml"), _dialect("ERB", "scriptlets")),
    **dict.fromkeys(("eex", "leex"), _dialect("EEx", "scriptlets")),
    "heex": _dialect("HEEx", "scriptlets expressions"),
    "ejs": _dialect("EJS", "scriptlets"),
    **dict.fromkeys(("jsp", "jspf", "jspx", "tag", "gsp"), _dialect("JSP", "scriptlets tags interpolation")),
    **dict.fromkeys(("aspx", "ascx", "master"), _dialect("ASP.NET Web Forms", "scriptlets")),
    **dict.fromkeys(("cshtml", "vbhtml", "razor"), _dialect("Razor", "razor")),
    "twig": _dialect("Twig", "braces"),
    "liquid": _dialect("Liquid", "braces"),
    **dict.fromkeys(("njk", "nunj", "nunjucks", "swig"), _dialect("Nunjucks", "braces")),
    "volt": _dialect("Volt", "braces"),
    **dict.fromkeys(("jinja", "jinja2", "j2"), _dialect("Jinja", "braces")),
    **dict.fromkeys(("hbs", "handlebars"), _dialect("Handlebars", "braces")),
    **dict.fromkeys(("mustache", "mu", "hogan"), _dialect("Mustache", "braces")),
    **dict.fromkeys(("gohtml", "gotmpl", "tmpl"), _dialect("Go template", "braces scriptlets")),
    **dict.fromkeys(("tpl", "latte"), _dialect("Smarty", "braces single php")),
    **dict.fromkeys(("ftl", "ftlh"), _dialect("FreeMarker", "tags interpolation")),
    "vm": _dialect("Velocity", "velocity interpolation"),
    "mako": _dialect("Mako", "scriptlets lines interpolation"),
    "cfm": _dialect("ColdFusion", "tags"),
    **dict.fromkeys(("xsl", "xslt"), _dialect("XSLT", "tags")),
    **dict.fromkeys(("pt", "zpt"), _dialect("Page template")),
    "vue": _dialect("Vue"),
    "svelte": _dialect("Svelte", "svelte"),
    "astro": _dialect("Astro", "astro"),
    **dict.fromkeys(("pug", "jade"), _dialect("Pug", indented="pug")),
    "haml": _dialect("Haml", indented="haml"),
    "slim": _dialect("Slim", indented="slim"),
    **dict.fromkeys(("rb", "rake"), _code("Ruby")),
    **dict.fromkeys(("ex", "exs"), _code("Elixir")),
    "java": _code("Java"),
    "kt": _code("Kotlin"),
    "scala": _code("Scala"),
    "groovy": _code("Groovy"),
    "go": _code("Go"),
    "cs": _code("C#"),
    "rs": _code("Rust"),
    **dict.fromkeys(("pl", "pm"), _code("Perl")),
    "coffee": _code("CoffeeScript"),
}
# The language that a template writes, by the extension before its own. Others write pages.
_NO_PAGE: Final = re.compile(
    r"\.(?:md|mdx|markdown|txt|text|ya?ml|json|xml|rss|atom|css|scss|sass|less|sql|rb|py|go|java|cs|ex|exs|rs|sh|bash|conf|cfg|ini|toml|env"
    r"|service|properties|csv|ics|tf|rake|proto|kt|swift|c|h|cpp|dockerfile)\.\w+$"
)
_SCRIPT: Final = re.compile(r"\.(?P<language>[cm]?js|jsx|[cm]?ts)\.\w+$")


def language_of_template(name: str) -> str | None:
    """Returns the language that a template writes, or None if the file is no template or writes no pages."""
    lower = name.lower()
    if dialect_of(lower) is None or _NO_PAGE.search(lower):
        return None
    script = _SCRIPT.search(lower)
    if script is None or lower.endswith(".php"):
        return "html"
    return "typescript" if "ts" in script["language"] else "javascript"


def dialect_of(path: str) -> Dialect | None:
    name = path.rpartition("/")[2].lower()
    rest, _, extension = name.rpartition(".")
    if not rest:
        return None
    longer = f"{rest.rpartition('.')[2]}.{extension}"
    return DIALECTS.get(longer) or DIALECTS.get(extension)

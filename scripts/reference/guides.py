"""The guides of /docs: Markdown files of docs/, which are served as pages and as they are.

A guide begins with its title and one paragraph that says what it is about.
"""

from pathlib import Path
from typing import NamedTuple

from markdown_it import MarkdownIt
from markupsafe import Markup

_DOCS = Path(__file__).parents[2] / "docs"
# In the order of the list in /docs, which is the order in which a newcomer needs them.
_FILES = (
    _DOCS / "guides" / "pull-requests.md",
    _DOCS / "guides" / "consent.md",
    _DOCS / "webhooks.md",
    _DOCS / "guides" / "assistants.md",
)
_MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable("table")


class Guide(NamedTuple):
    """name: the last segment of its address. about: its first paragraph, without markup."""

    name: str
    title: str
    about: str
    text: str

    @property
    def html(self) -> Markup:
        return html_of(self.text)


def guides() -> list[Guide]:
    found = []
    for path in _FILES:
        text = path.read_text(encoding="utf-8")
        title, about, *_ = text.split("\n\n", 2)
        found.append(Guide(path.stem, title.removeprefix("# "), " ".join(about.split()), text))
    return found


def html_of(text: str) -> Markup:
    """Returns Markdown as HTML. HTML in it is shown as text."""
    tokens = _MARKDOWN.parse(text)
    for token in tokens:
        # The alignment of a table's column. The pages' policy allows no inline styles.
        token.attrs.pop("style", None)
    return Markup(_MARKDOWN.renderer.render(tokens, _MARKDOWN.options, {}))  # nosec B704  # noqa: S704 (it escapes)

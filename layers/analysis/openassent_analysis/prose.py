"""Finds the templates and components that written content names: shortcodes, includes, and components in MDX.

Searches the bytes of content for given names, and doesn't parse it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from openassent_analysis.modules import name, without_extensions

_SHORTCODE: Final = re.compile(r"(?:^|/)(layouts|templates)/_?shortcodes/([^{}<>]{1,200})$")
_INCLUDE: Final = re.compile(r"(?:^|/)_includes/([^{}<>]{1,200})$")
_COMPONENT: Final = re.compile(r"\.(?:[jt]sx|vue|svelte|astro)$")
_WITH_COMPONENTS: Final = ".mdx"
CONTENT: Final = (".md", ".markdown", ".mdoc", ".org", ".adoc", ".asciidoc", ".rst", ".textile", _WITH_COMPONENTS)
# Pages, whose includes are read with their conditions, may also have shortcodes.
_ALSO_CONTENT: Final = (".html", ".htm")


class Content:
    """Names of templates and components, to be found in content."""

    def __init__(self, wanted: Iterable[str]) -> None:
        self._tags: dict[str, re.Pattern[bytes]] = {}
        self._components: dict[str, re.Pattern[bytes]] = {}
        for path in wanted:
            if tag := _tag(path):
                self._tags[path] = re.compile(tag.encode())
            elif _COMPONENT.search(path):
                self._components[path] = re.compile(rf"<{re.escape(name(path))}(?![\w.-])".encode())

    def may_use(self, path: str) -> bool:
        """Returns whether a file at the path may name one of them."""
        endings = (*CONTENT, *_ALSO_CONTENT) if self._tags else _WITH_COMPONENTS
        return bool(self._tags or self._components) and path.endswith(endings)

    def used_in(self, path: str, content: bytes) -> list[str]:
        """Returns the paths of those that content names."""
        patterns = self._tags | (self._components if path.endswith(_WITH_COMPONENTS) else {})
        return [
            wanted for wanted, pattern in patterns.items()
            if (path.endswith(CONTENT) or is_for_content(wanted)) and pattern.search(content)
        ]  # fmt: skip


def is_for_content(path: str) -> bool:
    """Returns whether a template is one that only content names."""
    return _SHORTCODE.search(path) is not None


def _tag(path: str) -> str:
    """Returns an expression for how content names a template: Hugo, Zola, and Liquid's and Nunjucks' includes."""
    if shortcode := _SHORTCODE.search(path):
        called = re.escape(without_extensions(shortcode[2]))
        if shortcode[1] == "templates":
            return rf"\{{[{{%]-?\s{{0,4}}{called}\("
        return rf"\{{\{{[<%]-?\s{{0,4}}{called}(?![\w/-])"
    if include := _INCLUDE.search(path):
        return rf"\{{%-?\s{{0,4}}include(?:_cached)?\s{{1,4}}[\"']?{re.escape(include[1])}(?![\w/-])"
    return ""

"""Compares modules as they are written in imports and includes with paths of files. Reads no files."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

# Files whose code runs where they are used in markup, not where they are imported.
COMPONENT_FILES: Final = (".vue", ".svelte", ".astro")
# Prefixes that build tools replace with a folder.
_ALIAS: Final = re.compile(r"^(?:[@~#$]+/|\$lib/|/+|\{\{[^{}]*\}\}/*)")
_NOT_IN_STEMS: Final = re.compile(r"[^a-z0-9]")
_EXTENSION: Final = re.compile(
    r"\.(?:[cm]?[jt]sx?|vue|svelte|astro|x?html?|liquid|erb|php|blade|twig|haml|slim|pug|jade|jinja2?|j2|njk|hbs|handlebars|ejs"
    r"|cshtml|jspf?|ftlh?|mustache|go(?:html|tmpl)|tmpl|h?eex|leex|tpl|vm|phtml|ctp|latte|edge|eta|coffee)$",
    re.IGNORECASE,
)
# Endings by which a bundler or a framework selects one of several files.
_PLATFORM: Final = re.compile(r"\.(?:client|server|native|web|ios|android)$")
# Names that say nothing: the folder's name does.
_GENERAL: Final = frozenset({"index", "main", "src", "lib"})


def without_extensions(path: str) -> str:
    """Returns a path or module without its extensions, an underscore before its name, and a trailing `/index`."""
    folder, slash, name = path.rpartition("/")
    while shorter := _EXTENSION.sub("", name):
        if shorter == name:
            break
        name = shorter
    name = _PLATFORM.sub("", name) or name
    if name.lower() == "index":
        return folder or name
    return f"{folder}{slash}{name.removeprefix('_')}"


def joined(importer: str, module: str) -> str:
    """Returns the path that a relative module names, or the module without the prefix of an alias."""
    if not module.startswith("."):
        if "/" not in module and not _EXTENSION.search(module):
            module = module.replace("::", "/").replace(".", "/")  # Laravel: theme::partials.analytics
        return _ALIAS.sub("", module)
    folders = importer.split("/")[:-1]
    for part in module.split("/"):
        if part == "..":
            del folders[-1:]
        elif part not in {"", "."}:
            folders.append(part)
    return "/".join(folders)


def name(path: str) -> str:
    """Returns the last distinctive word of a path or module."""
    *folders, found = without_extensions(path).split("/")
    while folders and found.lower() in _GENERAL:
        found = folders.pop()
    return found


def stem(path: str) -> str:
    """Returns the name of a path or module without its spelling, by which files that may be the same are found."""
    return _plain(name(path))


def stems_of(path: str) -> set[str]:
    """Returns the stems by which other files may name a file: its own, and that with the names of its folders."""
    found = {stem(path)}
    # Nuxt imports components by the names of their folders: components/base/Tags.vue is <BaseTags>.
    inside = f"/{path}".partition("/components/")[2]
    if inside.endswith(".vue"):
        *folders, last = (_plain(part) for part in without_extensions(inside).split("/") if part != "global")
        while folders and last.startswith(folders[-1]):
            folders.pop()  # components/base/BaseTags.vue is <BaseTags>
        found.add("".join((*folders, last)))
    return found


def _plain(part: str) -> str:
    return _NOT_IN_STEMS.sub("", part.lower())


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

"""Compares modules as they are written in imports and includes with paths of files. Reads no files."""

from __future__ import annotations

import re
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
# Names that say nothing: the folder's name does.
_GENERAL: Final = frozenset({"index", "main", "src", "lib"})


def without_extensions(path: str) -> str:
    """Returns a path or module without its extensions, an underscore before its name, and a trailing `/index`."""
    folder, slash, name = path.rpartition("/")
    while shorter := _EXTENSION.sub("", name):
        if shorter == name:
            break
        name = shorter
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
    return _NOT_IN_STEMS.sub("", name(path).lower())

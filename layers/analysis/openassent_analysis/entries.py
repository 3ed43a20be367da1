"""Knows which files run by themselves: in a browser that opens them, or in a framework by their path."""

from __future__ import annotations

import re
from enum import Enum
from functools import lru_cache
from typing import Final

from openassent_analysis.modules import COMPONENT_FILES, CONTENT, is_for_content
from openassent_analysis.reading import pattern_of, resource


class Runs(Enum):
    # The file, and whatever its functions do: a page, a layout, a plugin.
    ALL = "all"
    # The file, but its functions only where they are called.
    WHOLE = "whole"
    # A script that a page may load by a name that is made at run time, or in a tool's settings, and a template that a
    # theme of another repository includes.
    PERHAPS = "perhaps"
    # A component or a partial template: only where another file imports or includes it.
    NEVER = "never"


_PATHS: Final = resource("paths")
_SCRIPT: Final = re.compile(r"\.[cm]?[jt]sx?(?:\.liquid)?$")
_FRAMEWORK: Final = pattern_of(_PATHS["framework"])
_PIECE: Final = pattern_of(_PATHS["pieces"], re.IGNORECASE)
_BY_CONVENTION: Final = pattern_of(_PATHS["by_convention"])
_HOOK: Final = pattern_of(_PATHS["hooks"])
_MESSAGE: Final = pattern_of(_PATHS["messages"], re.IGNORECASE)
_MAIN: Final = pattern_of(_PATHS["main"])
# The main file of a package in a workspace exports for other packages.
_PACKAGE: Final = re.compile(r"(?:^|/)(?:packages|libs|modules)/[^/]+/(?:[^/]+/){0,2}index\.\w+$")
_PARTIAL: Final = pattern_of(_PATHS["partial"], re.IGNORECASE)
# Folders from which templates include text, also that of scripts. They aren't served.
_INCLUDED: Final = re.compile(r"(?:^|/)_(?:includes|partials)/")
_ENTRY: Final = re.compile(r"(?:^|/)(?:src|assets/js|resources/js|javascript)/(?:app|main|index|application)\.[jt]sx?$")
# Folders that are served as they are.
_SERVED: Final = frozenset({"public", "static", "www", "wwwroot", "webroot", "htdocs"})
# Pages name their layout in their front matter.
_LAYOUT: Final = re.compile(r"(?:^|/)_?layouts?/[^/_][^/]*$")
# Settings of a server or a site, and a site's content.
_BY_THEMSELVES: Final = (".py", ".yml", ".yaml", ".toml", ".json", *CONTENT)
# Hugo's settings for another environment than the one that a site is published with.
_OTHER_ENVIRONMENT: Final = re.compile(
    r"(?:^|/)config/(?!_default/|production/)[^/]{1,80}/(?:hugo|config|params)\.(?:toml|ya?ml|json)$"
)
_REPLACED: Final = pattern_of(_PATHS["replaced"], re.IGNORECASE)
# Components of React, which a page can't load as they are.
_JSX: Final = (".tsx", ".jsx")


@lru_cache(maxsize=4_096)
def runs(path: str) -> Runs:
    """Returns whether a file runs by itself, by its path."""
    if _REPLACED.search(path) or _OTHER_ENVIRONMENT.search(path) or _MESSAGE.search(path):
        return Runs.NEVER
    if _BY_CONVENTION.search(path):
        return Runs.ALL
    script = is_script(path)
    if script or path.endswith(COMPONENT_FILES):
        if _INCLUDED.search(path):
            return Runs.NEVER
        if _FRAMEWORK.search(path):
            return Runs.ALL
        if script and _MAIN.search(path) and not _PACKAGE.search(path):
            return Runs.WHOLE
        return Runs.PERHAPS if script and not path.endswith(_JSX) else Runs.NEVER
    if path.endswith(_BY_THEMSELVES):
        return Runs.ALL
    in_part = _PIECE.search(path) or (_PARTIAL.search(path) and not _LAYOUT.search(path))
    partial = is_for_content(path) or in_part
    if partial:
        return Runs.PERHAPS if _HOOK.search(path) else Runs.NEVER
    return Runs.ALL


def is_script(path: str) -> bool:
    return _SCRIPT.search(path) is not None


def is_entry(path: str) -> bool:
    """Returns whether a script is the main file of an application whose other scripts are bundled with it."""
    return _ENTRY.search(path) is not None


def is_served(path: str) -> bool:
    """Returns whether a script is in a folder that is served as it is, so that some page has to contain its address."""
    *folders, name = path.split("/")
    return name.endswith(".js") and (not folders or not _SERVED.isdisjoint(folders))

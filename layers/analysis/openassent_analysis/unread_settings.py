"""Finds the settings of a site that none of its own templates reads: they turn nothing on."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final

from openassent_analysis.files import Skipped, language_of
from openassent_analysis.limits import Limits
from openassent_analysis.report import Entry

# The setting of a match, which examining a configuration names if the site has no theme.
SETTING: Final = "setting"
# A site's own layout around all pages: of Jekyll and of Hugo. Themes, which read settings of their own.
_LAYOUT: Final = re.compile(r"(?:^|/)(?:_layouts/default|layouts/(?:_default/)?baseof)\.html$")
_THEMES: Final = re.compile(r"(?:^|/)themes/")
_HAS_THEME: Final = re.compile(
    r"""^\s{0,9}["']?(?:theme|remote_theme|theme-dir|themesdir|imports)["']?\s{0,9}[:=]|^\s{0,9}\[\[?module\b|^\s{0,9}module:|jekyll-[\w-]{0,40}(?:analytic|tag|disqus|comment)""",
    re.IGNORECASE | re.MULTILINE,
)
_SPELLING: Final = re.compile(rb"[_-]")
# Names that say nothing about a setting.
_GENERAL: Final = frozenset({"params", "site", "services", "extra", "default", "tracking", "trackingid", "analytics"})
_SHORTEST: Final = 4


def has_theme(text: str) -> bool:
    """Returns whether a site's configuration names a theme or a plugin that may read its settings."""
    return _HAS_THEME.search(text) is not None


def unread(
    settings: Iterable[str], paths: Iterable[str], again: Callable[[], Iterable[Entry]], limits: Limits
) -> frozenset[str]:
    """Returns the settings, as the names that lead to them, that no file of a site with layouts of its own reads."""
    left = {setting: words for setting in settings if (words := _words(setting))}
    if not left or not any(map(_LAYOUT.search, paths := list(paths))) or any(map(_THEMES.search, paths)):
        return frozenset()
    for path, read in again():
        if language_of(path.rpartition("/")[2]) in {"html", "javascript", "typescript"}:
            with suppress(Skipped):
                _drop_read(left, _SPELLING.sub(b"", read(limits.max_file_bytes).lower()))
    return frozenset(left)


def _words(setting: str) -> list[bytes]:
    names = (_SPELLING.sub(b"", name.lower().encode()) for name in setting.split("."))
    return [name for name in names if len(name) >= _SHORTEST and name.decode() not in _GENERAL]


def _drop_read(left: dict[str, list[bytes]], content: bytes) -> None:
    for setting in [setting for setting, words in left.items() if any(word in content for word in words)]:
        del left[setting]

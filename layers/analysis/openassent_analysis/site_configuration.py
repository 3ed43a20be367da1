"""Finds the trackers that the configuration of a site or an app turns on. Runs inside the sandbox.

Reads YAML, TOML, JSON, and Python line by line, because only single values count: nesting follows from indentation and
section headers. A setting counts if it has a value that looks like an identifier, not if it is empty or an example.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from openassent_analysis.calls import calls
from openassent_analysis.catalogue import NO_TRACKERS, Vendor, catalogue

_LONGEST_LINE: Final = 500
_MAX_SETTINGS: Final = 5_000
_NAMES: Final = frozenset({
    "mkdocs.yml", "mkdocs.yaml", "hugo.toml", "hugo.yaml", "hugo.yml", "hugo.json", "config.toml", "config.yaml",
    "config.yml", "params.toml", "params.yaml", "params.yml", "antora-playbook.yml", "book.toml", "book.json",
    "_quarto.yml", "app.json", "angular.json", "docs.json", "mint.json", "services.toml", "CNAME", "system.yaml",
    "settings_data.json", "_pkgdown.yml",
})  # fmt: skip
# Of Hugo, Jekyll, and Hexo. Other generators have templates of their own for these settings.
_HAS_THEME: Final = re.compile(r"(?:^|/)(?:_config[\w.-]*|hugo|config|params)\.(?:ya?ml|toml|json)$")
_DRUPAL: Final = ".libraries.yml"
# The exported configuration of Drupal's modules. The module's name leads to its settings.
_DRUPAL_MODULE: Final = re.compile(
    r"(google_analytics|google_tag|matomo|hotjar|captcha)\.(?:settings|container\.[\w.-]{1,80}|captcha_point\.[\w.-]{1,80})\.yml"
)
# Not those that only a developer's machine uses.
_JEKYLL: Final = re.compile(r"_config(?:[._-](?!dev|local|test|staging)[\w-]{1,40})?\.ya?ml$")
# Read as code, too: of Sphinx, Pelican, Ember, and VuePress.
_IN_CODE: Final = (
    "conf.py", "pelicanconf.py", "publishconf.py", "config/environment.js", ".vuepress/config.js",
    ".vuepress/config.ts",
)  # fmt: skip
# Docusaurus 1, and its setting. Other sites have files of this name that their own code reads.
_SITE_CONFIG: Final = "siteConfig.js"
_OF_DOCUSAURUS: Final = re.compile(r"\bgaTrackingId\b")
# Apps of Django that write the tags of the services whose settings have a value.
_WRITES_TAGS: Final = re.compile(
    r"""["'](?:analytical|wagtail_?analytics|google_analytics|django_google_analytics)["']"""
)
_NAMES_SITE: Final = re.compile(
    r"(?:^|/)(?:(?:astro|docusaurus|nuxt|gatsby|next-sitemap|site|config)[.-]?config\.[cm]?[jt]s|conf\.py|pelicanconf\.py|siteMetadata\.js)$"
)
_SECTION: Final = re.compile(r"\s*\[{1,2}([\w.\"-]{1,120})\]{1,2}\s*(?:#.*)?$")
_SETTING: Final = re.compile(r"""([\s,{-]*+)["']?([\w.-]{1,80}+)["']?\s*+[:=]\s*+(.*)$""")
_ITEM: Final = re.compile(r"""(\s*+)(?:-\s++)?\[?(["'].*|-?\s*+[\w/@.-]++,?\s*)$""")
_INLINE: Final = re.compile(r"""(?<![\w.-])["']?([\w.-]{1,80}+)["']?\s*+[:=]\s*+["']([^"']{1,200})["']""")
_COMMENT: Final = re.compile(r"(?:^|\s)(?:#|//).*$")
_COMMENTED: Final = re.compile(r"^[ \t]{0,200}#[^\n]*", re.MULTILINE)
# Settings that list scripts. An address is a name in Drupal's libraries: `js.https://host/path: {}`.
_SCRIPTS: Final = re.compile(
    r"(?:^|[._-])(?:java)?(?:scripts?|js)(?:[._-]?(?:files?|urls?|src))?(?:\.https?)?$", re.IGNORECASE
)
_ADDRESS: Final = re.compile(r"(?:https?:)?//([\w.-]{4,200})(/[^\s\"':]{0,300})?")
_ESCAPED: Final = re.compile(r"\\([\"/])")
_SCRIPT_FILE: Final = re.compile(r"\.(?:js|php)(?:\?[^\s\"']{0,200})?$")
_CONSENT: Final = re.compile(r"consent|cookie[_-]?(?:banner|law|notice|bot)|gdpr|klaro", re.IGNORECASE)
_SWITCH: Final = re.compile(r"(?:enabled?|disabled?|active)$", re.IGNORECASE)


class Setting(NamedTuple):
    """One value, with the names that lead to it, and its position in the text."""

    path: tuple[str, ...]
    value: str
    start: int
    end: int


class Found(NamedTuple):
    """A tracker that a setting turns on."""

    vendor: Vendor
    name: str
    start: int
    end: int
    # True if another setting may make the theme ask for consent first.
    may_wait: bool
    # True if the site's theme has to read the setting: it is no address and no plugin.
    by_theme: bool


def is_configuration(name: str) -> bool:
    """Returns whether a file of this name configures a site, and isn't code."""
    return (
        name in _NAMES
        or name.endswith(_DRUPAL)
        or _JEKYLL.match(name) is not None
        or _DRUPAL_MODULE.fullmatch(name) is not None
    )


def configures(path: str, text: str) -> bool:
    """Returns whether a file is code that turns on trackers by its settings."""
    if f"/{path}".endswith(tuple(f"/{name}" for name in _IN_CODE)):
        return True
    if path.endswith(_SITE_CONFIG):
        return _OF_DOCUSAURUS.search(text) is not None
    return path.endswith(".py") and "settings" in path and _WRITES_TAGS.search(text) is not None


def has_theme(path: str) -> bool:
    """Returns whether a file configures a site whose theme decides what the settings do."""
    return _HAS_THEME.search(path) is not None


def is_of_grav(path: str) -> bool:
    """Returns whether a file configures a site of Grav."""
    return f"/{path}".endswith("/config/system.yaml")


def names_site(path: str) -> bool:
    """Returns whether a file is code that states the site's own address."""
    return _NAMES_SITE.search(path) is not None


def trackers_of(path: str, text: str) -> list[Found]:
    """Returns the trackers that a configuration turns on, each once, in the order of the text."""
    module = _DRUPAL_MODULE.fullmatch(path.rpartition("/")[2])
    known = list(settings_of(text, (module[1],) if module else ()))
    themed = has_theme(path)
    on = {it.path[:-1] for it in known if _SWITCH.fullmatch(it.path[-1].lower()) and not _is_off(it)}
    off = {setting.path[:-1] for setting in known if _is_off(setting)}
    if any(setting.path[:2] == ("extra", "consent") for setting in known):
        return []  # MkDocs Material waits for consent
    may_wait = any(
        _CONSENT.search(".".join(setting.path)) and setting.value.lower() not in {"", "false", "no", "off"}
        for setting in known
        if setting.path[:-1] not in off
    )
    found: dict[str, Found] = {}
    for setting in known:
        if setting.path[:-1] in off or setting.path in off:
            continue
        name = ".".join(setting.path)
        set_to = calls().of_setting(name, setting.value)
        vendor = set_to or _of_script(name, setting.value, switched_on=themed and setting.path[:-1] in on)
        if vendor is not None and vendor.id not in found:
            by_itself = setting.value in calls().plugins if set_to else _SCRIPTS.search(name) is not None
            found[vendor.id] = Found(vendor, name, setting.start, setting.end, may_wait, not by_itself)
    return list(found.values())


def _of_script(name: str, value: str, *, switched_on: bool) -> Vendor | None:
    """Returns the vendor of a script that the site's pages load, by its address: `extra_javascript` of MkDocs.

    switched_on: whether the setting next to it turns on what a theme uses the address for, whatever its name.
    """
    address = _ADDRESS.match(value) if _SCRIPTS.search(name) or (switched_on and _SCRIPT_FILE.search(value)) else None
    vendor = catalogue().vendor_of(address[1], address[2] or "") if address else None
    return vendor if vendor and vendor.category not in NO_TRACKERS else None


def _is_off(setting: Setting) -> bool:
    last = setting.path[-1].lower()
    if last == "status":
        return setting.value == "false"
    return bool(_SWITCH.fullmatch(last)) and (setting.value.lower() == "true") is last.startswith("disable")


def settings_of(text: str, section: tuple[str, ...] = ()) -> Iterator[Setting]:
    """Yields the settings of a text that have a value. Ignores lines that are too long."""
    opened: list[tuple[int, str]] = []
    start = count = 0
    for line in text.split("\n"):
        begin, start = start, start + len(line) + 1
        if len(line) > _LONGEST_LINE or count >= _MAX_SETTINGS or not (shown := _COMMENT.sub("", line).strip()):
            continue
        if header := _SECTION.match(line):
            section, opened = tuple(header[1].replace('"', "").split(".")), []
            continue
        setting = _SETTING.match(line)
        item = None if setting else _ITEM.match(line)
        if setting is None and item is None:
            continue
        depth = len((setting or item)[1])  # type: ignore[index]
        while opened and opened[-1][0] >= depth and setting:
            opened.pop()
        names = (*section, *(name for _, name in opened))
        value = _value(setting[3] if setting else shown.removeprefix("-"))
        if setting:
            names = (*names, *setting[2].split("."))
            opened.append((depth, setting[2]))
        if setting and setting[3][:1] in {"{", "["}:
            for inner in _INLINE.finditer(line, setting.start(3)):
                count += 1
                yield Setting((*names[-11:], inner[1]), inner[2], begin + inner.start(), begin + inner.end())
        if value and names:
            count += 1
            yield Setting(names[-12:], value, begin + len(line) - len(line.lstrip()), begin + len(line.rstrip()))


def without_comments(text: str) -> str:
    """Blanks the lines of a configuration that are comments."""
    return _COMMENTED.sub(lambda match: " " * len(match[0]), text)


def without_escapes(text: str) -> str:
    """Returns the text of JSON with the markup that its strings contain. Each line keeps its length."""
    lines = (_ESCAPED.sub(r"\1", line.replace("\\n", "  ")).ljust(len(line)) for line in text.split("\n"))
    return "\n".join(lines)


def _value(written: str) -> str:
    value = written if _ADDRESS.match(written) else _COMMENT.sub("", written)
    value = value.strip().rstrip(",").strip()
    if value[:1] in {"[", "{"} and len(value) > 1:  # the first value of a list
        value = value[1:].split(",")[0].rstrip("]}").strip()
    return value.strip("\"'`{[(").strip()

"""Knows which files a site's generator runs or serves, if its configuration shows it for certain."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from openassent_analysis import entries
from openassent_analysis.entries import Runs
from openassent_analysis.files import check_depth
from openassent_analysis.limits import Limits
from openassent_analysis.reading import resource
from openassent_analysis.report import MAX_TRAITS
from openassent_analysis.site_configuration import has_theme, is_of_grav

if TYPE_CHECKING:
    from ast_grep_py import Config, SgNode

    from openassent_analysis.sources import Source

# Traits of a site. The others are the plugins that it lists.
_NUXT_2: Final = "nuxt 2"
_LISTS: Final = "lists its plugins"
_ASTRO: Final = "astro"
_BUNDLED: Final = "bundled"
_WORDPRESS: Final = "wordpress"

_MAX_NAME: Final = 100
# Begins a trait that names a theme.
_THEME: Final = "theme "
_THEMES: Final = re.compile(r"^theme[ \t]{0,9}[:=][ \t]{0,9}(.{1,200})$", re.MULTILINE)
_NAMES_OF_THEMES: Final = re.compile(r"[\w.-]+")
_IN_THEME: Final = re.compile(r"(?:(.*)/)?themes/([^/]+)/")
# Grav's, below `pages:`.
_THEMES_OF_GRAV: Final = re.compile(r"^[ \t]{1,9}theme:[ \t]{0,9}([^ \t].{0,199})$", re.MULTILINE)
# A configuration that names a theme, below the folder of its site.
_CONFIGURATION_FILE: Final = re.compile(r"(?:^|/)(?:config/(?:[^/]+/[^/]+|system\.yaml)|[^/]+)$")

# Between a site and its deepest file.
_MAX_FOLDERS: Final = 50

_MANIFEST: Final = "package.json"
_NUXT_CONFIG: Final = re.compile(r"(?:^|/)nuxt\.config\.[cm]?[jt]s$")
_ASTRO_CONFIG: Final = re.compile(r"(?:^|/)astro\.config\.[cm]?[jt]s$")
_DEPENDS_ON_NUXT_2: Final = re.compile(r'"nuxt"\s*+:\s*+"[\^~=v]{0,2}2(?:\.|")')
# Frameworks that bundle only what their own entries import: a script isn't named anywhere else.
_DEPENDS_ON_BUNDLER: Final = re.compile(r'"(?:next|gatsby|react-scripts|@sveltejs/kit|@remix-run/react)"\s*+:')
# With it, Nuxt 2 loads plugins as Nuxt 3 does.
_BRIDGE: Final = '"@nuxt/bridge"'
_PLUGIN: Final = re.compile(r"(?:(?:src|app|client)/)?plugins/(.{1,300})")
_LISTED: Final = re.compile(r"(?:[~@./]{0,4}(?:src|app|client)/|[~@./]{0,4})plugins/(.{1,300})")
_ENDING: Final = re.compile(r"(?:/index)?(?:\.[^/]{0,100})?$")
_OWN_FOLDERS: Final = re.compile(r"\b(?:srcDir|publicDir|outDir|root)\b")
_SERVED_BY_ASTRO: Final = ("public/", "src/pages/")
_PAGES: Final = (".html", ".htm", ".xhtml")
# A theme of WordPress serves only its templates, and only those of a theme of blocks are HTML.
_FUNCTIONS: Final = re.compile(r"(?:^|/)functions\.php$")
_OF_WORDPRESS: Final = re.compile(r"\badd_(?:action|filter|theme_support)\(")
_OF_BLOCKS: Final = re.compile(r"(?:block-)?(?:templates|(?:template-)?parts)/[^/]+")

_CONFIGURATION: Final = resource("queries")["site_configuration"]
# Values that aren't written in the configuration itself.
_COMPUTED: Final = resource("queries")["computed_values"]
_STRINGS: Final[Config] = {"rule": {"kind": "string"}}
_MODULES: Final = frozenset({"modules", "buildModules"})


class Sites:
    """Collects the traits of a project's sites, by folder."""

    def __init__(self) -> None:
        self._traits: dict[str, set[str]] = {}
        # By the folder of the site that has them.
        self._themes: dict[str, set[str]] = {}

    def add(self, path: str, traits: Iterable[str]) -> None:
        folder, _, name = path.rpartition("/")
        if themes := {trait.removeprefix(_THEME) for trait in traits if trait.startswith(_THEME)}:
            self._themes.setdefault(_CONFIGURATION_FILE.sub("", path), set()).update(themes)
            return
        if traits or name == _MANIFEST:
            self._traits.setdefault(folder, set()).update(traits)

    def runs(self, path: str) -> Runs:
        """Returns whether a file runs by itself, by its path and its site."""
        if (theme := _IN_THEME.match(path)) and (used := self._themes.get(theme[1] or "")) and theme[2] not in used:
            return Runs.NEVER
        folder = path.rpartition("/")[0]
        for _ in range(_MAX_FOLDERS):
            if folder in self._traits:
                break
            folder = folder.rpartition("/")[0]
        traits, inside = self._traits.get(folder, ()), path[len(folder) :].lstrip("/")
        if _NUXT_2 in traits and _LISTS in traits and (plugin := _PLUGIN.fullmatch(inside)):
            unused = _ENDING.sub("", plugin[1]) not in traits
        else:
            unused = inside.endswith(_PAGES) and (
                (_ASTRO in traits and not inside.startswith(_SERVED_BY_ASTRO))
                or (_WORDPRESS in traits and not _OF_BLOCKS.fullmatch(inside))
            )
        found = entries.runs(path)
        bundled = _BUNDLED in traits and found is Runs.PERHAPS and entries.is_script(path)
        return Runs.NEVER if unused or bundled else found


def traits_of_manifest(text: str) -> list[str]:
    """Returns the site generators that a package.json names. Runs inside the sandbox."""
    found = [_NUXT_2] if _DEPENDS_ON_NUXT_2.search(text) and _BRIDGE not in text else []
    return [*found, _BUNDLED] if _DEPENDS_ON_BUNDLER.search(text) else found


def themes_of(path: str, text: str) -> list[str]:
    """Returns the themes that the configuration of Hugo, Hexo, or Grav names. Runs inside the sandbox."""
    themes = _THEMES_OF_GRAV if is_of_grav(path) else _THEMES if has_theme(path) else None
    if themes is None or (named := themes.search(text)) is None:
        return []
    return [f"{_THEME}{name}"[:_MAX_NAME] for name in _NAMES_OF_THEMES.findall(named[1].partition("#")[0])][:MAX_TRAITS]


def traits_of(source: Source, limits: Limits) -> list[str]:
    """Returns the traits that a site's configuration shows for certain. Runs inside the sandbox."""
    if _ASTRO_CONFIG.search(source.path):
        return [] if _OWN_FOLDERS.search(source.text) else [_ASTRO]
    if _FUNCTIONS.search(source.path):
        return [_WORDPRESS] if _OF_WORDPRESS.search(source.original) else []
    if not _NUXT_CONFIG.search(source.path):
        return []
    check_depth(source.text, source.language, limits)
    configuration = source.main.root.find(_CONFIGURATION)
    values = dict(_values(configuration)) if configuration else {}
    plugins = values.get("plugins")
    if plugins is None or plugins.kind() != "array" or plugins.find(_COMPUTED) or "extendPlugins" in source.text:
        return []
    if any(it.startswith(("~", ".", "@/", "@@/")) for key in _MODULES & values.keys() for it in _modules(values[key])):
        return []  # a module of the project's own may add plugins
    written = (_LISTED.fullmatch(it.text()[1:-1]) for it in plugins.find_all(_STRINGS))
    listed = {_ENDING.sub("", it[1]) for it in written if it}
    return [_LISTS, *sorted(listed)] if len(listed) < MAX_TRAITS else []


def _values(configuration: SgNode) -> Iterator[tuple[str, SgNode]]:
    """Yields the names and values of an object, unless others may replace them."""
    children = configuration.children()
    if any(it.kind() == "spread_element" for it in children):
        return
    for pair in children:
        key, value = pair.field("key"), pair.field("value")
        if key is not None and value is not None:
            yield key.text().strip("\"'"), value


def _modules(value: SgNode) -> Iterator[str]:
    """Yields the names of modules, each alone or in a list with its options."""
    for module in value.children():
        name = module.find(_STRINGS) if module.kind() in {"string", "array"} else None
        if name is not None:
            yield name.text()[1:-1]

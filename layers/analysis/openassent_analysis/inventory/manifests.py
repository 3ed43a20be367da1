"""Reads package manifests: which frameworks, package managers, and vendors they name. Runs inside the sandbox.

A manifest that is invalid, or whose parts have other types than the format says, names nothing. The result contains no
text of the manifest except versions: everything else is an id from our own data.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from openassent_analysis.catalogue import catalogue
from openassent_analysis.files import LOCK_FILES
from openassent_analysis.inventory.technologies import FRAMEWORK, PACKAGE_MANAGER, technologies
from openassent_analysis.libraries import locked_versions, parse
from openassent_analysis.report import MAX_PARTS, Part

VENDOR: Final = "vendor"
# A vendor's package in a lock file, with its exact version.
LOCKED: Final = "locked"
# The language of a request to the sandbox that asks for a manifest's parts.
LANGUAGE: Final = "inventory"

# Excludes URLs, which may contain credentials.
_VERSION: Final = re.compile(r"[\w.^~<>=!|*+, -]{1,60}")
_DIGIT: Final = re.compile(r"[0-9]")
# The registries whose packages the vendor catalogue lists.
_VENDOR_REGISTRIES: Final = frozenset({"npm", "packagist", "pypi", "rubygems"})
_LONGEST_LINE: Final = 500
# tomllib reads a dotted key in time that grows with the square of its parts.
_MOST_DOTS: Final = 60
_STRING: Final = re.compile(r"""\"[^"\n]*+"|'[^'\n]*+'""")
_HEAD: Final = 4_096

_REQUIREMENT: Final = re.compile(r"\s*+([A-Za-z0-9][\w.-]*+)\s*+(?:\[[^\]\n]{0,100}\])?\s*+([=<>!~][^;#\n]{0,80})?")
_SEPARATORS: Final = re.compile(r"[-_.]+")
_GEM: Final = re.compile(r"""\s*+gem[\s(]\s*+["']([\w.-]++)["'](?:\s*+,\s*+["']([^"'\n]{1,60})["'])?""")
_MODULE: Final = re.compile(r"\s*+(?:require\s++)?([\w.~-]++(?:/[\w.~-]++)++)\s++(v[0-9][\w.+-]*+)")
_MAJOR: Final = re.compile(r"/v[0-9]{1,3}$")
_HEX: Final = re.compile(r"""\{:(\w++)\s*+,\s*+"([^"\n]{1,60})\"""")


def is_manifest(path: str) -> bool:
    """Returns whether a path is that of a manifest that can be read."""
    return _parser(path) is not None


def is_lock_file(path: str) -> bool:
    return path.rpartition("/")[2] in LOCK_FILES


def parts_of(path: str, text: str) -> list[Part]:
    """Returns the packages and technologies that a manifest names, each once, at most `MAX_PARTS`."""
    parser = _parser(path)
    found: dict[tuple[str, str, str], Part] = {}
    for part in parser(text) if parser else ():
        known = found.get(part[:3])
        if known is None or (part.version and not known.version):
            found[part[:3]] = part
    return list(found.values())[:MAX_PARTS]


def _parser(path: str) -> Callable[[str], Iterator[Part]] | None:
    folder, _, name = path.rpartition("/")
    if parser := _PARSERS.get(name):
        return parser
    if name.endswith((".txt", ".in")) and (name.startswith("requirements") or folder.endswith("requirements")):
        return _requirements
    return _project_file if name.endswith((".csproj", ".fsproj", ".vbproj")) else None


def _dependency(registry: str, package: str, version: Any = None) -> Iterator[Part]:
    """Yields the technology or vendor of a dependency, if it is known."""
    if framework := technologies().framework_of(registry, package):
        yield Part(FRAMEWORK, framework, "", _shown(version))
    if registry in _VENDOR_REGISTRIES and (vendor := catalogue().package(package)):
        yield Part(VENDOR, vendor.id, package, _shown(version))


def _shown(version: Any) -> str:
    """Returns the version as written, or an empty string if it names none, or is a URL."""
    if not isinstance(version, str):
        return ""
    written = version.strip()
    return written if _VERSION.fullmatch(written) and _DIGIT.search(written) else ""


def _manager(found: str, version: str = "") -> Iterator[Part]:
    if found in technologies().package_managers:
        yield Part(PACKAGE_MANAGER, found, "", _shown(version))


def _table(document: Any, *path: str) -> dict[str, Any]:
    """Returns a table inside a document, or an empty one if it isn't there or isn't a table."""
    for name in path:
        document = document.get(name) if isinstance(document, dict) else None
    return document if isinstance(document, dict) else {}


def _lines(text: str) -> Iterator[str]:
    return (line for line in text.split("\n") if len(line) <= _LONGEST_LINE)


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _toml(text: str) -> Any:
    if any(line.count(".") > _MOST_DOTS for line in _STRING.sub("", text).split("\n")):
        return None
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError):
        return None


# npm, Packagist


def _package_json(text: str) -> Iterator[Part]:
    document = _json(text)
    for group in ("dependencies", "devDependencies", "optionalDependencies", "peerDependencies"):
        for package, version in _table(document, group).items():
            yield from _dependency("npm", package, version)
    declared = document.get("packageManager") if isinstance(document, dict) else None
    if isinstance(declared, str):
        name, _, version = declared[:100].partition("@")
        version = version.partition("+")[0]
        yield from _manager("yarn-classic" if name == "yarn" and version.startswith(("0.", "1.")) else name, version)


def _lock_file(text: str) -> Iterator[Part]:
    """Yields the packages of vendors with their versions, the lowest one if there are several."""
    found = [
        (parse(version) or (), package, version) for _, package, version in locked_versions(text, catalogue().packages)
    ]
    for _, package, version in sorted(found):
        yield Part(LOCKED, catalogue().packages[package].id, package, version)


def _yarn_lock(text: str) -> Iterator[Part]:
    """Yields the generation of Yarn that wrote the lock file, and what each lock file has."""
    yield from _lock_file(text)
    head = text[:_HEAD]
    if "\n__metadata:" in f"\n{head}":
        yield from _manager("yarn")
    elif "# yarn lockfile v1" in head:
        yield from _manager("yarn-classic")


def _composer_json(text: str) -> Iterator[Part]:
    document = _json(text)
    for group in ("require", "require-dev"):
        for package, version in _table(document, group).items():
            yield from _dependency("packagist", package, version)


# PyPI


def _requirements(text: str) -> Iterator[Part]:
    yield from _manager("pip")
    for line in _lines(text):
        yield from _requirement(line)


def _requirement(line: str) -> Iterator[Part]:
    if match := _REQUIREMENT.match(line):
        yield from _dependency("pypi", _normalized(match[1]), match[2])


def _normalized(name: str) -> str:
    return _SEPARATORS.sub("-", name).lower()


def _each_requirement(entries: Any) -> Iterator[Part]:
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, str) and len(entry) <= _LONGEST_LINE:
            yield from _requirement(entry)


def _pinned(packages: dict[str, Any], registry: str = "pypi") -> Iterator[Part]:
    """Yields the packages of a table that maps names to versions, or to tables with a version."""
    for name, value in packages.items():
        version = value.get("version") if isinstance(value, dict) else value
        yield from _dependency(registry, _normalized(name) if registry == "pypi" else name, version)


def _pyproject(text: str) -> Iterator[Part]:
    document = _toml(text)
    yield from _each_requirement(_table(document, "project").get("dependencies"))
    for groups in (_table(document, "project", "optional-dependencies"), _table(document, "dependency-groups")):
        for entries in groups.values():
            yield from _each_requirement(entries)
    poetry = _table(document, "tool", "poetry")
    yield from _pinned(_table(poetry, "dependencies"))
    for group in _table(poetry, "group").values():
        yield from _pinned(_table(group, "dependencies"))
    for tool in ("poetry", "uv", "pdm"):
        if tool in _table(document, "tool"):
            yield from _manager(tool)


def _pipfile(text: str) -> Iterator[Part]:
    document = _toml(text)
    for group in ("packages", "dev-packages"):
        yield from _pinned(_table(document, group))


# Others


def _gemfile(text: str) -> Iterator[Part]:
    for line in _lines(text):
        if match := _GEM.match(line):
            yield from _dependency("rubygems", match[1], match[2])


def _go_mod(text: str) -> Iterator[Part]:
    for line in _lines(text):
        if match := _MODULE.match(line):
            yield from _dependency("go", _MAJOR.sub("", match[1]), match[2])


def _cargo(text: str) -> Iterator[Part]:
    document = _toml(text)
    for table in (_table(document, "dependencies"), _table(document, "workspace", "dependencies")):
        yield from _pinned(table, "crates")


def _mix(text: str) -> Iterator[Part]:
    for line in _lines(text):
        for match in _HEX.finditer(line):
            yield from _dependency("hex", match[1], match[2])


def _named_in(registry: str) -> Callable[[str], Iterator[Part]]:
    """Returns a parser for a format whose packages are found by their names, without a version."""

    def parse(text: str) -> Iterator[Part]:
        for package in technologies().packages_of(registry):
            if package in text:
                yield from _dependency(registry, package)

    return parse


def _project_file(text: str) -> Iterator[Part]:
    yield from _named_in("nuget")(text)
    if "<PackageReference" in text:
        yield from _manager("nuget")


def _by_name(
    parser: Callable[[str], Iterator[Part]], names: Iterable[str]
) -> dict[str, Callable[[str], Iterator[Part]]]:
    return dict.fromkeys(names, parser)


_PARSERS: Final[dict[str, Callable[[str], Iterator[Part]]]] = {
    "package.json": _package_json,
    **_by_name(_lock_file, LOCK_FILES),
    "yarn.lock": _yarn_lock,
    "composer.json": _composer_json,
    "pyproject.toml": _pyproject,
    "Pipfile": _pipfile,
    **_by_name(_gemfile, ("Gemfile", "gems.rb")),
    "go.mod": _go_mod,
    "Cargo.toml": _cargo,
    "mix.exs": _mix,
    "pubspec.yaml": _named_in("pub"),
    **_by_name(_named_in("maven"), ("pom.xml", "build.gradle", "build.gradle.kts")),
}

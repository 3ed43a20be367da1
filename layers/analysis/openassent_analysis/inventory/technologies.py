"""The facts about languages, frameworks, and package managers (`technologies.yaml`), indexed by their signs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from openassent_analysis.reading import load_yaml

TECHNOLOGIES: Final = Path(__file__).parents[1] / "resources" / "technologies.yaml"

FRAMEWORK: Final = "framework"
PACKAGE_MANAGER: Final = "package-manager"
# A package manager that counts only if the repository shows no other one of its registry.
DEFAULT: Final = "default-package-manager"
REGISTRIES: Final = frozenset({"npm", "pypi", "rubygems", "packagist", "go", "crates", "maven", "nuget", "hex", "pub"})


class Sign(NamedTuple):
    """A technology that a file or folder shows: its kind and its id."""

    kind: str
    id: str


@dataclass(frozen=True, slots=True)
class Framework:
    id: str
    name: str
    # Pairs of a registry and a package's name.
    packages: tuple[tuple[str, str], ...]
    files: tuple[str, ...]
    folders: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PackageManager:
    id: str
    name: str
    registry: str
    files: tuple[str, ...]
    # Files that several managers of the registry read.
    default_for: tuple[str, ...]


class Technologies:
    def __init__(self, document: Mapping[str, Any]) -> None:
        self.frameworks: Final = {entry["id"]: _framework(entry) for entry in document["frameworks"]}
        self.package_managers: Final = {entry["id"]: _package_manager(entry) for entry in document["packageManagers"]}
        self.languages: Final = tuple(document["languages"])
        self._by_extension: Final[dict[str, str]] = {}
        self._by_name: Final[dict[str, str]] = {}
        for language, entry in document["languages"].items():
            self._by_extension.update(dict.fromkeys(entry["extensions"], language))
            self._by_name.update(dict.fromkeys(entry.get("names", ()), language))
        self._by_package: Final = {package: it.id for it in self.frameworks.values() for package in it.packages}
        self._by_folder: Final = {
            folder: Sign(FRAMEWORK, it.id) for it in self.frameworks.values() for folder in it.folders
        }
        # By a path's last part: each path's end with its sign.
        self._by_file: Final[dict[str, list[tuple[str, Sign]]]] = {}
        for framework in self.frameworks.values():
            self._show(framework.files, Sign(FRAMEWORK, framework.id))
        for manager in self.package_managers.values():
            self._show(manager.files, Sign(PACKAGE_MANAGER, manager.id))
            self._show(manager.default_for, Sign(DEFAULT, manager.id))

    def _show(self, files: Iterable[str], sign: Sign) -> None:
        for file in files:
            self._by_file.setdefault(file.rpartition("/")[2], []).append((f"/{file}", sign))

    def language_of(self, name: str) -> str | None:
        """Returns the language of a file by its name, or None for data, prose, and unknown files."""
        if language := self._by_name.get(name):
            return language
        rest, _, extension = name.lower().rpartition(".")
        longer = f"{rest.rpartition('.')[2]}.{extension}"
        return self._by_extension.get(longer) or (self._by_extension.get(extension) if rest else None)

    def signs_of(self, path: str) -> Iterator[Sign]:
        """Yields the signs in a file's path."""
        *folders, name = path.split("/")
        for end, sign in self._by_file.get(name, ()):
            if f"/{path}".endswith(end):
                yield sign
        for folder in folders:
            if found := self._by_folder.get(folder):
                yield found

    def framework_of(self, registry: str, package: str) -> str | None:
        return self._by_package.get((registry, package))

    def packages_of(self, registry: str) -> Iterator[str]:
        """Yields the packages of a registry that are a framework."""
        return (package for known, package in self._by_package if known == registry)


def _framework(entry: Mapping[str, Any]) -> Framework:
    packages = tuple((registry, package) for registry in sorted(REGISTRIES) for package in entry.get(registry, ()))
    return Framework(
        entry["id"], entry["name"], packages, tuple(entry.get("files", ())), tuple(entry.get("folders", ()))
    )


def _package_manager(entry: Mapping[str, Any]) -> PackageManager:
    return PackageManager(
        entry["id"],
        entry["name"],
        entry["registry"],
        tuple(entry.get("files", ())),
        tuple(entry.get("default_for", ())),
    )


@cache
def technologies() -> Technologies:
    """Returns the shipped facts, which are read once."""
    return Technologies(load_yaml(TECHNOLOGIES))

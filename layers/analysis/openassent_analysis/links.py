"""Decides whether code waits for consent, by the files that run it.

The code of a match runs in its file's functions, or when the file itself does. From there, the uses of each are
followed upward, file by file, until they reach code that the browser or a framework runs by itself. A use that waits
for consent ends its path. Code that can't be followed makes a finding less certain, and never removes it.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from enum import IntEnum
from typing import Final, NamedTuple

from openassent_analysis import modules
from openassent_analysis.entries import Runs, is_entry, is_served
from openassent_analysis.gating import (
    ANY,
    BLOCKER,
    BUNDLED,
    DEFAULT,
    ITSELF,
    LAYOUT,
    OPEN,
    PAGE,
    SERVER,
    WHOLE,
    Export,
    Gate,
    Gating,
    Unclear,
    Use,
)
from openassent_analysis.report import Report
from openassent_analysis.sites import Sites

_MAX_USES: Final = 50_000
# Characters of all names that are kept. Reports are no larger than the uses of real code, unless they are forged.
_MAX_CHARACTERS: Final = 10_000_000
# Comparisons of modules with paths, and uses that are followed, in the whole project. Each takes microseconds.
_MAX_COMPARISONS: Final = 2_000_000
_MAX_FOLLOWED: Final = 2_000_000
_MAX_STATES: Final = 2_000
_MAX_PROVIDERS: Final = 200
# Scripts that a page may load as they are.
_CLASSIC: Final = (".js", ".mjs", ".ts", ".coffee")
# Files whose functions other scripts of the page can't call.
_MODULES: Final = (*modules.COMPONENT_FILES, ".jsx", ".tsx", ".py")
_NAME: Final = re.compile(r"[A-Za-z_$][\w$]{2,60}", re.ASCII)


class Verdict(IntEnum):
    """Says whether code runs without consent, from no to yes."""

    GATED = 0
    UNUSED = 1
    CONDITION = 2
    CALLBACK = 3
    UNREAD = 4
    THEME = 5
    LIKELY = 6
    OPEN = 7


_OF_DOUBT: Final = {
    Unclear.CONDITION: Verdict.CONDITION,
    Unclear.CALLBACK: Verdict.CALLBACK,
    Unclear.THEME: Verdict.THEME,
}


class _State(NamedTuple):
    """A function of a file, or the whole file, and the unknown part of the way from there to the match."""

    path: str
    name: str
    doubt: Unclear


class _User(NamedTuple):
    name: str
    path: str
    gating: Gating


class Frontier(NamedTuple):
    """The open questions: who uses these files and names, and whether these files give the visitor's choice."""

    files: list[str]
    names: list[str]
    providers: list[str]


class Links:
    def __init__(
        self, paths: Iterable[str], choices: AbstractSet[str] = frozenset(), sites: Sites | None = None
    ) -> None:
        """choices: the names that server code gives the visitor's choice."""
        self._choices = choices
        self._sites = sites or Sites()
        self._paths: dict[str, list[str]] = {}
        # By path without extensions.
        self._exact: dict[str, list[str]] = {}
        # Folders with the main file of an application.
        self._entries: set[str] = set()
        for path in sorted(paths):
            self._exact.setdefault(modules.without_extensions(path), []).append(path)
            for stem in modules.stems_of(path):
                self._paths.setdefault(stem, []).append(path)
            if is_entry(path):
                self._entries.add(path.rpartition("/")[0])
        # By path: who runs the file's exports. A dictionary, because it keeps the order.
        self._users: dict[str, dict[_User, None]] = {}
        self._kept = self._characters = 0
        self._compared = self._followed = 0
        # By name: who calls a function that a script shares with the page.
        self._page: dict[str, dict[_User, None]] = {}
        # By path and local name: the names of the export.
        self._exports: dict[str, dict[str, set[str]]] = {}
        # By path and exported name: the exports of other files that it stands for.
        self._barrels: dict[str, dict[str, dict[tuple[str, str], None]]] = {}
        self._providers: dict[str, dict[str, Export | None]] = {}
        # Files whose users were searched for, and files that were read for their own exports and providers.
        self._searched: set[str] = set()
        self._named: set[str] = set()
        self._read: set[str] = set()

    def add(self, path: str, report: Report) -> None:
        """Takes the uses and providers of a file, up to a limit of the whole project."""
        for provider in report.providers:
            if self._has_room(provider.name, *(provider.source or ())):
                self._providers.setdefault(path, {})[provider.name] = provider.source
        for use in report.uses:
            (module, name), gating = use
            if not self._has_room(module, name, *gating.callers, *(text for it in gating.providers for text in it)):
                return
            if module == ITSELF:
                self._exports.setdefault(path, {}).setdefault(name, set()).update(gating.callers)
            elif self._kept < _MAX_USES:
                self._add_use(path, use)

    def _add_use(self, path: str, use: Use) -> None:
        (module, name), gating = use
        user = _User(name, path, gating)
        if module == PAGE:
            self._page.setdefault(name, {})[user] = None
            self._kept += 1
            return
        if gating.gate is Gate.CALLERS:
            for caller in gating.callers:
                if caller not in self._exports.get(path, {}):
                    self._barrels.setdefault(path, {}).setdefault(caller, {})[module, name] = None
        for target in self.resolve(path, module):
            self._users.setdefault(target, {})[user] = None
            self._kept += 1

    def use(self, path: str, used: str) -> None:
        """Notes that content at a path, which its site shows, names a template or a component."""
        if self._kept < _MAX_USES:
            for name in (WHOLE, DEFAULT):
                self._users.setdefault(used, {})[_User(name, path, OPEN)] = None
                self._kept += 1

    def _has_room(self, *texts: str) -> bool:
        self._characters += sum(map(len, texts))
        return self._characters <= _MAX_CHARACTERS

    def resolve(self, importer: str, module: str) -> list[str]:
        """Returns the files that a module may be. Several if a template names it in a way that depends on a setting."""
        wanted = modules.without_extensions(modules.joined(importer, module)).strip("/")
        candidates = self._exact.get(wanted, [])
        if module[:1] != "." and self._compared < _MAX_COMPARISONS:
            similar = self._paths.get(modules.stem(wanted), [])
            self._compared += len(similar)
            candidates = [path for path in similar if _same_module(modules.without_extensions(path), wanted)]
        found = [path for path in candidates if path != importer]
        if len(found) > 1:
            # The nearest one: in a monorepo, each application has its own.
            near = [_common(importer, path) for path in found]
            found = [path for path, it in zip(found, near, strict=True) if it == max(near)]
        written = module.rpartition("/")[2]
        exact = [path for path in found if path.rpartition("/")[2] == written]
        return (exact or found)[:3]

    def frontier(self, path: str, gating: Gating) -> Frontier:
        """Returns the files, names, and providers whose uses decide about the code."""
        walk = self._walk(path, gating)
        return Frontier(list(walk.frontier), list(walk.names), list(walk.providers))

    def mark(self, searched: Iterable[str], names: Iterable[str], read: Iterable[str]) -> None:
        """Notes the searched names, and files whose own exports and providers were read."""
        self._searched.update(searched)
        self._named.update(names)
        self._read.update(read)

    def is_read(self, path: str) -> bool:
        return path in self._read

    def verdict(self, path: str, gating: Gating) -> Verdict:
        """Returns whether code with this gating, in the file at the path, runs without consent."""
        return self._walk(path, gating).verdict

    def _walk(self, path: str, gating: Gating) -> _Walk:
        walk = _Walk()
        pending: deque[_State] = deque(self._steps(walk, path, gating, Unclear.NOTHING))
        seen = set(pending)
        while pending:
            if walk.verdict is Verdict.OPEN and not walk.providers:
                # Nothing else changes the verdict, so that nothing has to be searched for.
                walk.forget()
                break
            state = pending.popleft()
            for following in self._expand(walk, state):
                if following not in seen:
                    if len(seen) >= _MAX_STATES:
                        walk.end(Verdict.UNREAD, Unclear.NOTHING)
                        return walk
                    seen.add(following)
                    pending.append(following)
        return walk

    def _steps(self, walk: _Walk, path: str, gating: Gating, doubt: Unclear) -> Iterator[_State]:
        if gating.gate is Gate.CLOSED:
            walk.gated = True
            return
        for provider in gating.providers:
            if self._provides(walk, path, provider):
                walk.gated = True
                return
        doubt = doubt or gating.unclear
        names = (WHOLE,) if gating.gate is Gate.OPEN else gating.callers or (ANY,)
        for name in names:
            yield _State(path, name, doubt)

    def _expand(self, walk: _Walk, state: _State) -> Iterator[_State]:
        path, name, doubt = state
        by_itself = self._sites.runs(path)
        if by_itself is Runs.ALL or (by_itself is Runs.WHOLE and name == WHOLE):
            walk.end(Verdict.OPEN, doubt)
            return
        users = self._users_of(path, name)
        shared = self._is_shared(path, name)
        if shared:
            users += [it for it in self._page.get(name, ()) if it.path != path]
        if path not in self._searched or (shared and name not in self._named):
            walk.frontier[path] = None
            if shared:
                walk.names[name] = None
            if not users:
                walk.end(Verdict.UNREAD, doubt)
        elif not users:
            ordinary = by_itself is Runs.PERHAPS and name == WHOLE and not (self._has_entry(path) or is_served(path))
            walk.end(Verdict.LIKELY if ordinary else Verdict.UNUSED, doubt)
        self._followed += len(users)
        if self._followed > _MAX_FOLLOWED:
            walk.end(Verdict.UNREAD, doubt)
            return
        for user in users:
            if user.gating.callers == (WHOLE,) and user.name == WHOLE:  # export * from
                yield _State(user.path, name, doubt)
            else:
                yield from self._steps(walk, user.path, user.gating, doubt)

    def _has_entry(self, path: str) -> bool:
        """Returns whether a script is next to an application's main file, which loads what it needs."""
        return path.endswith(_CLASSIC) and path.rpartition("/")[0] in self._entries

    def _users_of(self, path: str, name: str) -> list[_User]:
        users = self._users.get(path, {})
        exports = self._exports.get(path, {})
        if name == WHOLE:
            if path.endswith(modules.COMPONENT_FILES):
                return list(users)
            return [it for it in users if it.name in {WHOLE, ANY} and it.gating.callers != (WHOLE,)]
        handed_on = [it for it in users if it.name == WHOLE and it.gating.callers == (WHOLE,)]
        if name != ANY:
            names = {name, ANY, *exports.get(name, ())}
            found = [it for it in users if it.name in names]
            known = name in exports or any(name in exported for exported in exports.values())
            # A file that only re-exports.
            known = known or (not exports and name in self._barrels.get(path, {}))
            if found or known:
                return found + handed_on
        return [it for it in users if it.name != WHOLE] + handed_on

    def _is_shared(self, path: str, name: str) -> bool:
        """Returns whether a script, or a page's, may share a function with the page: if the file doesn't export it."""
        exports = self._exports.get(path, {})
        return (
            not path.endswith(_MODULES)
            and name not in {WHOLE, ANY, DEFAULT}
            and name not in exports
            and _NAME.fullmatch(name) is not None
            and not any(name in exported for exported in exports.values())
        )

    def _provides(self, walk: _Walk, importer: str, export: Export) -> bool:
        """Returns whether an export gives the visitor's choice, itself or through others."""
        pending = [(importer, export)]
        seen: set[tuple[str, Export]] = set()
        while pending and len(seen) < _MAX_PROVIDERS:
            asked = pending.pop()
            if asked in seen:
                continue
            seen.add(asked)
            known = self._known(walk, asked[1])
            if known:
                return True
            for path in self.resolve(asked[0], asked[1].module) if known is None else ():
                sources = self._sources(path, asked[1].name)
                if None in sources:
                    return True
                if path not in self._read:
                    walk.providers[path] = None
                pending += [(path, it) for it in sources if it is not None]
                pending += [(path, Export(*it)) for it in self._handed_on(path, asked[1].name)]
        return False

    def _known(self, walk: _Walk, export: Export) -> bool | None:
        """Returns whether something other than a file's export gives the choice. None if it is a file's."""
        if export.module == SERVER:
            return export.name in self._choices
        if export.module == BUNDLED:
            walk.bundled = True
            return False
        if export.module == BLOCKER:
            return not walk.bundled
        # A layout provides by a script that blocks others.
        return False if export.name == LAYOUT and walk.bundled else None

    def _sources(self, path: str, exported: str) -> list[Export | None]:
        """Returns the sources of the choice that a file's export gives. None for one that is its own."""
        known = self._providers.get(path, {})
        return [known[name] for name in {exported, *self._locals(path, exported)} if name in known]

    def _locals(self, path: str, exported: str) -> list[str]:
        return [local for local, names in self._exports.get(path, {}).items() if exported in names]

    def _handed_on(self, path: str, name: str) -> list[tuple[str, str]]:
        """Returns the exports of other files that a file exports under this name."""
        handed_on = self._barrels.get(path, {})
        return [*handed_on.get(name, ()), *((module, name) for module, _ in handed_on.get(WHOLE, ()))]


class _Walk:
    """Collects the evidence on the way from code to its entry points."""

    def __init__(self) -> None:
        self.gated = False
        # True if the code is an SDK's that the application imports.
        self.bundled = False
        self._worst: Verdict | None = None
        self.frontier: dict[str, None] = {}
        self.names: dict[str, None] = {}
        self.providers: dict[str, None] = {}

    def forget(self) -> None:
        self.frontier.clear()
        self.names.clear()
        self.providers.clear()

    def end(self, verdict: Verdict, doubt: Unclear) -> None:
        if verdict > Verdict.UNREAD:
            verdict = _OF_DOUBT.get(doubt, verdict)
        self._worst = verdict if self._worst is None else max(self._worst, verdict)

    @property
    def verdict(self) -> Verdict:
        if self._worst is None:
            return Verdict.GATED if self.gated else Verdict.UNUSED
        return self._worst


def _same_module(path: str, wanted: str) -> bool:
    if path == wanted or _plain(path).endswith(f"/{_plain(wanted)}") or _in_package(path, wanted):
        return True
    folder, _, component = wanted.rpartition("/")
    return (
        folder == "components" and "components/" in path and _plain(path).replace("/", "").endswith(_plain(component))
    )


def _plain(path: str) -> str:
    return path.replace("-", "").replace("_", "").lower()


def _in_package(path: str, wanted: str) -> bool:
    """Returns whether a file is the main one of a package of the workspace: `@acme/tags` is packages/tags/src/index."""
    scope, _, rest = wanted.rpartition("/")
    return scope.startswith("@") and path.removesuffix("/src").endswith(f"/{rest}")


def _common(one: str, other: str) -> int:
    count = 0
    for left, right in zip(one.split("/"), other.split("/"), strict=False):
        if left != right:
            break
        count += 1
    return count

"""A source file: its text with the facts that need no tree, and its blocks, which have trees."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any, Final

from ast_grep_py import Config

from openassent_analysis.blocks import SCRIPTS, Block, script_elements, scripts_in_strings, shown_names
from openassent_analysis.calls import Shape, calls
from openassent_analysis.catalogue import Catalogue, Vendor
from openassent_analysis.templates.markup import Include, Template, Test
from openassent_analysis.unknown import may_load_unknown, own_names, unknown_host
from openassent_analysis.vocabulary import Vocabulary

# Google's tag script also serves Google Ads and its Floodlight tags.
TAGS_OF_ADS: Final = ("id=AW-", "id=DC-")

# The import clause and the imported path. Each run of blanks is read once: repetitions of blanks are possessive, and
# the clause ends at a blank instead of before a run of them.
IMPORTS: Final = (
    re.compile(r"""import\s++(?:type\s++)?(?P<names>[^;"'`]{1,500}?)(?<=\s)from\s++["'](?P<path>[^"'\n]{1,200})["']"""),
    re.compile(
        r"""(?:const|let|var)\s++(?P<names>[^=;]{1,300}?)=\s*+\(?(?:await\s++)?(?:require|import)\s*+\(\s*+["'`](?P<path>[^"'`\n]{1,200})["'`]"""
    ),
    re.compile(
        r"""import\s*+\(\s*+["'`](?P<path>[^"'`\n]{1,200})["'`]\s*+\)\s*+\.then\(\s*+(?:async\s*+)?(?P<names>[^=;]{1,200}?)=>"""
    ),
)
# const Video = dynamic(() => import('react-youtube').then((module) => module.default), { ssr: false })
_LAZY_IMPORT: Final = re.compile(
    r"""(?:const|let|var)\s++(?P<names>\w{1,100}+)\s*+=\s*+[\w.]{1,60}+\(\s*+(?:async\s++)?(?:\(\)\s*+=>|function\s*+\(\))\s*+"""
    r"""(?:\{\s*+return\s++)?(?:await\s++)?import\s*+\(\s*+["'`](?P<path>[^"'`\n]{1,200})["'`]"""
)
# let Sentry = null; Sentry = await import('@sentry/vue'), where the file imports it later.
_LATER_IMPORT: Final = re.compile(
    r"""(?<![\w$.])(?P<names>[A-Za-z_$][\w$]{0,60}+)\s{0,4}+=\s{0,4}+\(?await\s{1,4}+import\(\s{0,4}+["'`](?P<path>[^"'`\n]{1,200})["'`]"""
)
NAME_AND_ALIAS: Final = re.compile(r"([A-Za-z_$][\w$]*)(?:\s+as\s+|\s*:\s*)?([A-Za-z_$][\w$]*)?")
# client = posthog, this.client = new Mixpanel(…), and client: Mixpanel of fields and parameters.
_HELD: Final = re.compile(
    r"(?<![\w$])(?P<name>[A-Za-z_$][\w$]{0,60}+)\s{0,4}"
    r"(?:=\s{0,4}(?:(?:new\s{1,4}|inject\(\s{0,4})(?P<made>[A-Za-z_$][\w$]{0,60}+)|(?P<value>[A-Za-z_$][\w$]{0,60}+)\s{0,4}(?=[;\n}]))"
    r"|[?!]?:\s{0,4}(?P<type>[A-Za-z_$][\w$]{0,60}+)\s{0,4}(?=[;=,)|\n]))"
)
# An address that is only a name: of a template's variable, or of a component's property.
_VARIABLE_ADDRESS: Final = re.compile(r"""\bsrc\]?=(?:["']?_{3}|(?:["']\{?|\{)[\w$.?| ]{1,80}[}"'])""")
_IMPORTED_PATH: Final = re.compile(r"[\w/-]+")
_IDENTIFIER: Final = re.compile(r"[A-Za-z_$][\w$]*")
_COMPONENT: Final = re.compile(r"<([A-Z]\w*+)")
_TAG: Final = re.compile(r"<([A-Z]\w*+|[a-z]\w*+(?:-\w++)++)")
_COMPONENTS: Final = (".vue", ".svelte")
_MAX_COMPONENTS: Final = 200
_NEW_LINE: Final = re.compile("\n")


@dataclass
class Source:
    """A file's text, and the facts about it that need no tree.

    The text of a template is the HTML that it writes. All offsets are those of the text; `locate` finds them in the
    file.
    """

    path: str
    text: str
    language: str
    catalogue: Catalogue
    template: Template | None = None

    @property
    def original(self) -> str:
        """The file's content."""
        return self.template.original if self.template else self.text

    # When reading it has taken too long (time.thread_time()).
    deadline: float = math.inf
    # The findings of `gates` about the file.
    consent: Any = None
    # Addresses of other files of the project, by the names that this one uses for them.
    given: dict[str, str] = field(default_factory=dict)

    @cached_property
    def vocabulary(self) -> Vocabulary:
        return Vocabulary(self.text)

    @cached_property
    def addresses(self) -> list[tuple[int, Vendor]]:
        return list(self.catalogue.addresses_in(self.text))

    @cached_property
    def may_load_unknown(self) -> bool:
        given = any(unknown_host(self.catalogue, address) for address in self._given)
        return given or may_load_unknown(self.catalogue, self.text)

    @property
    def _given(self) -> list[str]:
        return "\n".join(self.given.values()).splitlines()

    @cached_property
    def own_names(self) -> set[str]:
        return own_names(self.text)

    @cached_property
    def calls(self) -> list[Shape]:
        """The calls in the text that start vendors."""
        return calls().in_text(self.text, self.vocabulary)

    @cached_property
    def named(self) -> list[Vendor]:
        """The vendors that the file may load: by known addresses, by parts of them, or by calls."""
        found = [vendor for _, vendor in self.addresses]
        if self._code is not self.text:
            found.extend(vendor for _, vendor in self.catalogue.addresses_in(self._code))
        # Only an expression can have a variable's address.
        shown = self.template is not None and any(mark in self.text for mark in ("___", "={", "${"))
        variables = self.template.variables.addresses.values() if self.template and shown else ()
        for address in (*self._given, *chain.from_iterable(variables)):
            found.extend(vendor for _, vendor in self.catalogue.addresses_in(address))
            found.extend(filter(None, [calls().of_path(address)]))
            if "//" not in address:
                found.extend(self.catalogue.vendors_at(address.partition("/")[0]))
        if self.catalogue.may_name_host(self.vocabulary):
            found.extend(self.catalogue.named_in(self.text))
        found.extend(calls().places_in(self.vocabulary))
        if self.first(_VARIABLE_ADDRESS):
            found.extend(calls().named_anywhere_in(f"{self.path} {self.original}"))
        found.extend(shape.vendor for shape in self.calls)
        if any(mark in self.text for mark in TAGS_OF_ADS):
            found.append(self.catalogue.vendors["google-ads"])
        return found

    @cached_property
    def packages(self) -> dict[str, Vendor]:
        if self._code is self.text and not self.catalogue.may_import(self.vocabulary):
            return {}
        return self.catalogue.packages_in(self._code)

    @property
    def _code(self) -> str:
        """The text with the scripts outside of the page, if there are any."""
        return self.original if self.template and self.template.scripts else self.text

    @cached_property
    def imported(self) -> dict[str, Vendor]:
        """The vendors by the local names of imports from their packages."""
        found: dict[str, Vendor] = {}
        if not self.packages:
            return found
        for pattern in (*IMPORTS, _LAZY_IMPORT, _LATER_IMPORT):
            for match in pattern.finditer(self._code):
                vendor = self._vendor_of_package(match["path"])
                if vendor is None:
                    continue
                exports = self.catalogue.exports.get(match["path"])
                if exports is None:
                    found |= dict.fromkeys(_IDENTIFIER.findall(match["names"]), vendor)
                    continue
                for name, alias in NAME_AND_ALIAS.findall(match["names"]):
                    if (exported := exports.get(name, vendor)) is not None:
                        found[alias or name] = exported
        return found

    @cached_property
    def holders(self) -> dict[str, Vendor]:
        """The vendors by the names of fields, parameters, and variables that hold what is imported from packages."""
        found: dict[str, Vendor] = {}
        for held in _HELD.finditer(self._code) if self.imported else ():
            if vendor := self.imported.get(held["made"] or held["value"] or held["type"]):
                found.setdefault(held["name"], vendor)
        return found

    def inline_package(self, code: str) -> Vendor | None:
        """Returns the vendor of the package that an expression imports, or None."""
        return next(iter(self.catalogue.packages_in(code).values()), None) if self.packages else None

    def _vendor_of_package(self, path: str) -> Vendor | None:
        """Returns the vendor of a package or of a file in it (`package/dist/core`), or None."""
        package = path
        while package:
            if vendor := self.packages.get(package):
                inside = path[len(package) + 1 :]
                return vendor if package == path or _IMPORTED_PATH.fullmatch(inside) else None
            package = package.rpartition("/")[0]
        return None

    @cached_property
    def main(self) -> Block:
        return Block(self.language, self.text, 0)

    @cached_property
    def blocks(self) -> list[Block]:
        """The file's own tree first, then the scripts inside it."""
        found = [self.main]
        if self.language == "html":
            found.extend(script_elements(self.main))
            if self.path.endswith(_COMPONENTS):
                found.extend(self._components())
        if self.template and self.template.scripts:
            found.extend(self._outer_scripts(self.template))
        shown = shown_names(self.original)
        for block in list(found):
            if block.language in SCRIPTS:
                found.extend(scripts_in_strings(block, shown))
        return found

    def _outer_scripts(self, template: Template) -> Iterator[Block]:
        """Yields the scripts outside of the page, and the components that they import from a known package."""
        for start, end in template.scripts:
            yield Block("typescript", template.original[start:end], start)
        for component in _COMPONENT.finditer(self.text):
            if component[1] in self.imported:
                yield Block("tsx", f"<{component[1]}/>", component.start())

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0, *(match.end() for match in _NEW_LINE.finditer(self.original))]

    def position(self, offset: int) -> tuple[int, int]:
        """Returns line and column in the file of a character of the text, from 1."""
        if self.template:
            offset = self.template.origin(offset)
        line = self.line_at(offset)
        return line, offset - self._line_starts[line - 1] + 1

    def line_at(self, offset: int) -> int:
        """Returns the line, from 1, of a character of the file."""
        return bisect_right(self._line_starts, offset)

    def line_start(self, line: int) -> int:
        """Returns the start of a line (from 1), or the end of the text for the line after the last one."""
        return self._line_starts[line - 1] if line <= len(self._line_starts) else len(self.original)

    def first(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Returns the first match in the text, or None. Cached, because many candidates need it."""
        if pattern not in self._searched:
            self._searched[pattern] = pattern.search(self.text)
        return self._searched[pattern]

    @cached_property
    def _searched(self) -> dict[re.Pattern[str], re.Match[str] | None]:
        return {}

    def template_conditions(self, offset: int) -> list[Test]:
        """Returns the template's conditions for a character to reach the page: each as written, and if it holds."""
        return self.template.tests_at(offset) if self.template else []

    @property
    def includes(self) -> list[Include]:
        """The other templates that the file contains, by their names as written."""
        return self.template.includes if self.template else []

    def _components(self) -> Iterator[Block]:
        """Yields the components of known packages that the markup of a Vue or Svelte file contains."""
        written = {found[1] for found in _TAG.finditer(self.text)} if self.imported else ()
        names = {tag: component for tag in written if (component := _component(tag)) in self.imported}
        if not names:
            return
        tags: Config = {
            "rule": {
                "any": [{"kind": "start_tag"}, {"kind": "self_closing_tag"}],
                "has": {"kind": "tag_name", "regex": f"^(?:{'|'.join(sorted(names))})$"},
            }
        }
        for tag in self.main.root.find_all(tags)[:_MAX_COMPONENTS]:
            if name := tag.find({"rule": {"kind": "tag_name"}}):
                yield Block("tsx", f"<{names[name.text()]}/>", tag.range().start.index, self.main, tag)


def _component(tag: str) -> str:
    """Returns the name that a component is imported by: Vue also shows it as `<vue-recaptcha>`."""
    return "".join(part[:1].upper() + part[1:] for part in tag.split("-"))

"""The addresses of scripts and frames that a file takes from another file of the project.

Which ones a file takes is read from its text, because most files are never parsed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final

from ast_grep_py import Config, SgNode, SgRoot

from openassent_analysis import modules
from openassent_analysis.blocks import SCRIPTS, Block
from openassent_analysis.files import check_depth
from openassent_analysis.gates.origins import in_project
from openassent_analysis.gating import DEFAULT, WHOLE
from openassent_analysis.limits import Limits
from openassent_analysis.reading import resource
from openassent_analysis.report import ANYWHERE, DATA, MAX_ADDRESSES, WITHOUT_EXPORTS, Address
from openassent_analysis.site_configuration import settings_of
from openassent_analysis.sources import IMPORTS, NAME_AND_ALIAS, Source
from openassent_analysis.templates.variables import DEFINED
from openassent_analysis.values import UNKNOWN, members_of, values
from openassent_analysis.vocabulary import sought

# The language of a file of data, which is read only for the addresses in it.
_OF_ANGULAR: Final = ".component.html"
# Of a component, or of a route, whose class is a controller.
_OF_EMBER: Final = re.compile(
    r"^((?:[^/]+/){0,8})(?:(templates/)(?!components/)|(?:templates/)?(?=components/))(.+)\.hbs$"
)
_LOADS: Final = sought(resource("frameworks")["loads"].splitlines())
_PLACE: Final = re.compile(
    r"""(?:\bsrc\]?["']?\s{0,4}[:=,]\s{0,4}|\burl=(?=\{)|[sS]cript\w{0,30}\(\s{0,4}|`(?=\$\{))["']?\{?\s{0,4}(?:(?:`(?:https?:)?(?://)?|["'](?:https?:)?//["']\s?\+\s?)?(?:\$\{)?\s{0,2})?"""
    r"""(?P<name>[A-Za-z_$][\w$]{0,60}(?:\.[A-Za-z_$][\w$]{0,60}){0,4})"""
)
_BOUND: Final = re.compile(
    r"""<(?:iframe|script)\b[^<>]{0,600}?\s\[?(?:attr\.)?src\]?\s?=\s?["']?(?:\{\{\s{0,4})?(?:[\w$.]{1,60}\()?(?:this\.)?"""
    r"""(?P<name>[A-Za-z_$][\w$]{0,60})(?=["'()\s|}])"""
)
# A call that iterates, and the list at the end of the text before it: searching for every name would take longer.
_LOOP: Final = re.compile(r"\??\.(?:map|forEach)\(\s{0,9}\(?\s{0,4}(?P<item>\w{1,60}|\{[^{}]{1,300}\})")
_LIST: Final = re.compile(r"(?<![\w$.])[A-Za-z_$][\w$]{0,60}(?:\.[A-Za-z_$][\w$]{0,60}){0,4}$")
# v-for="video in videos" of Vue, {#each videos as video} of Svelte, videos.map((video) => …) of Astro.
_LOOP_OF_MARKUP: Final = re.compile(
    r"""\bv-for\s*=\s*["']\(?\s*(?P<of_vue>\w{1,60})[\w\s,)]{0,60}?\s(?:in|of)\s+(?P<list_of_vue>\w{1,60})"""
    r"""|\{#each\s+(?P<list>\w{1,60})\s+as\s+(?P<item>\w{1,60})"""
    r"""|\b(?P<list_of_astro>\w{1,60})\.map\(\s{0,9}\(?\s{0,9}(?P<of_astro>\w{1,60})"""
)
# const video = config.video
_ALIAS: Final = re.compile(r"(?:const|let|var) ([\w$]{1,60}) = ([\w$]{1,60}(?:\.[\w$]{1,60}){1,4}+)(?=[;\n])")
# const { video } = config
_TAKEN: Final = re.compile(
    r"(?:const|let|var) \{(?P<names>[\w\s,]{1,300})\} = (?P<whole>[\w$]{1,60}(?:\.[\w$]{1,60}){0,3}+)(?=[;\n])"
)
_WORD: Final = re.compile(r"\w+")
_PART_OF_NAME: Final = re.compile(r"[\w$]")
_NOT_CODE: Final = re.compile(
    r"\.(?:svg|png|jpe?g|gif|webp|avif|ico|mp[34]|webm|pdf|s?css|less|vue|svelte|astro)(?:\?|$)"
)
_ADDRESS: Final = re.compile(r"(?:https?:)?//[\w.-]{4,200}")
# A part of an address: a host, a path, or the beginning of either.
_PART: Final = re.compile(r"(?:(?:https?:)?//)?[\w.-]{1,100}(?:/[\w./?=&%#:@-]{0,200})?|/[\w./?=&%#:@-]{2,200}")
# The rest of an expression that puts an address together.
_ASSEMBLED: Final = re.compile(r"[^\n;<>{}]{0,20}(?:\+|\$\{)[^\n;<>]{1,300}")
_NAMED: Final = re.compile(r"(?<![\w.$\"'])[A-Za-z_$][\w$]{0,60}(?:\.[A-Za-z_$][\w$]{0,60}){0,4}")
_DEFAULTS: Final[Config] = {"rule": {"kind": "export_statement", "regex": r"^export\s+default\b"}}
_WHEN_MADE: Final = re.compile(r"constructor|ng(?:On|After|Do)[A-Z]\w*")
_THIS: Final = "this"
# Of Ember.
_COMPUTED: Final = "computed("
_LONGEST: Final = 300
_LONGEST_STATEMENT: Final = 600
# What comes after a template's name where code renders it, and what separates the parts of such a name.
_RENDERED: Final = re.compile(r"""(?:\.\w{2,6}){0,2}["']\s{0,4},""")
_PARTS: Final = re.compile(r"[./:_-]+")
# Of the placeholders for an expression.
_SHORTEST: Final = 3
_MAX_NODES: Final = 20
_MAX_ANCESTORS: Final = 30
# An address of a template that is an expression: of an element, or one that a script sets.
_SERVED: Final = re.compile(
    r"""(?:<(?:script|iframe)\b[^<>]{0,600}?\s(?:data-)?(?:th:)?src\s?=\s?["']?|\.src\s?=\s?["'`])(?:(?:https?:)?/{0,2}___|[@$]\{)""",
    re.IGNORECASE,
)
# Names that only an address would have, and a setting of the site.
_NAME_OF_ADDRESS: Final = re.compile(
    r"(?<![\w$])(?=\w{6,60}(?!\w))(?:[a-zA-Z0-9]+_\w*|[a-zA-Z0-9]+[A-Z]\w*)(?<=(?i:..url|..uri|..src|embed|cript|_link))"
)
_OF_SITE: Final = re.compile(
    r"\b(?i:site(?:\.params|\.data)?|theme|theme_config|config)(?P<setting>(?:\.[A-Za-z_]\w{0,60}+){1,5}+)(?!\()"
)
# An expression that is a parameter of the template, and what comes between its name and the template's.
_OWN: Final = re.compile(r"(?:src\s?=\s?)?[{<%=$@#!\s-]*(?:(?:include|props)?\.)?([A-Za-z]\w{1,60})\b(?!\s?[(.\[])")
_PARAMETER_OF: Final = ">"
# The arguments of a macro, the end of a statement, and the loops over lists.
_ARGUMENTS: Final = re.compile(r"""\s?\([^()\n]{0,200}?["'`](?P<address>(?:https?:)?//[^"'`\s<>]{4,300})""")
_END_OF_STATEMENT: Final = re.compile(r"%\}|\}\}|(?<!=)>|\n\s*\n|\)\n")
_LISTED: Final = re.compile(r"(?:\bfor\b[^\n%}]{1,80}?\sin|\brange|\beach)\s[^\n%}]{1,200}")
# How code and settings of any language give a name its address, after the name: `NAME = "…"`, `name: …`,
# `def name(id) "…"`.
_GIVEN: Final = re.compile(
    r"""(?:["']\s{1,4}(?=["'`(])|["']?\s{0,4}(?:[:=,]|=>|\([^()\n]{0,80}\)[^;\n()]{0,20}[\n{:=]))[^;]{0,120}?"""
    r"""(?P<address>(?:https?:)?//[^"'`\s<>]{4,300})"""
)


def wanted(source: Source) -> list[Address]:
    """Returns the names of other files' addresses that a file may load something from."""
    if not source.vocabulary.present(_LOADS):
        return []
    return list(dict.fromkeys((*_wanted(source), *_served(source))))[:MAX_ADDRESSES]


def _served(source: Source) -> Iterator[Address]:
    """Yields the names and the settings in the expressions that a template has as addresses."""
    if source.template is None or not ("___" in source.text or "${" in source.text):
        return
    original, found = source.original, False
    for place in _SERVED.finditer(source.text):
        found = True
        start = source.template.origin(place.end() - _SHORTEST)
        expression = original[start : start + _LONGEST].partition("\n")[0]
        for name in _NAME_OF_ADDRESS.findall(expression):
            yield Address(ANYWHERE, name, name)
            if name.islower():  # an attribute in Laravel, or a constant
                attribute = f"get{name.title().replace('_', '')}Attribute"
                yield Address(ANYWHERE, attribute if source.path.endswith(".php") else name.upper(), name)
        yield from _settings(expression)
        yield from _parameters(source, expression)
    for listed in _LISTED.findall(original) if found else ():
        yield from _settings(listed)


def _parameters(source: Source, expression: str) -> Iterator[Address]:
    """Yields the parameter that an expression is: of a template that others include, and of macros."""
    if (own := _OWN.match(expression)) is None:
        return
    yield Address(ANYWHERE, f"{modules.name(source.path).lstrip('_')}{_PARAMETER_OF}{own[1]}", own[1])
    for macro in DEFINED.finditer(source.original):
        if own[1] in macro["parameters"]:
            yield Address(ANYWHERE, f"{macro['name']}{_PARAMETER_OF}", own[1])


def _settings(expression: str) -> Iterator[Address]:
    return (Address(ANYWHERE, it, it) for it in _OF_SITE.findall(expression))


def _wanted(source: Source) -> Iterator[Address]:
    if module := _class_of(source.path):
        for bound in _BOUND.finditer(source.original):
            yield Address(module, f"{_THIS}.{bound['name']}", bound["name"])
        return
    imported: dict[str, tuple[str, str]] | None = None
    lists: dict[str, str] = {}
    aliases: dict[str, str] = {}
    for place in _PLACE.finditer(source.text):
        if imported is None:
            imported = dict(_imported(source))
            lists = looped_in(source.original) | _lists(source.text)
            aliases = dict(_aliases(source.text)) if imported else {}
        local, _, member = place["name"].partition(".")
        if (alias := aliases.get(local)) and (found := imported.get(alias.partition(".")[0])) is not None:
            yield _of_import(found, alias)
        if (listed := lists.get(local)) and (found := imported.get(listed.partition(".")[0])) is not None:
            # Each of a list's elements, or a property of it that a pattern takes.
            whole = _of_import(found, listed)
            yield Address(whole.module, f"{whole.name}.{member or local}", place["name"])
        if (found := imported.get(local)) is not None:
            yield _of_import(found, place["name"])
            rest = _ASSEMBLED.match(source.text, place.end())
            for part in _NAMED.findall(rest[0]) if rest else ():
                if (found := imported.get(part.partition(".")[0])) is not None:
                    yield _of_import(found, part)


def _class_of(template: str) -> str:
    """Returns the module of the class that gives a template of Angular or Ember its values, or an empty string."""
    if template.endswith(_OF_ANGULAR):
        return f"./{template.rpartition('/')[2].removesuffix('.html')}"
    found = _OF_EMBER.match(template)
    return f"{found[1]}{'controllers/' if found[2] else ''}{found[3]}" if found else ""


def _lists(text: str) -> dict[str, str]:
    """Returns the lists that calls iterate over, by the name of the function's parameter."""
    found: dict[str, str] = {}
    for loop in _LOOP.finditer(text):
        if called := _LIST.search(text[max(loop.start() - _LONGEST, 0) : loop.start()]):
            for name in _WORD.findall(loop["item"]):
                found.setdefault(name, called[0])
    return found


def looped_in(text: str) -> dict[str, str]:
    """Returns the lists that a component's markup goes through, by the name of each one's element."""
    found: dict[str, str] = {}
    for loop in _LOOP_OF_MARKUP.finditer(text):
        item = loop["of_vue"] or loop["item"] or loop["of_astro"]
        found.setdefault(item, loop["list_of_vue"] or loop["list"] or loop["list_of_astro"])
    return found


def _aliases(text: str) -> Iterator[tuple[str, str]]:
    """Yields the names of constants that are members of something, with what they are."""
    yield from _ALIAS.findall(text)
    for taken in _TAKEN.finditer(text):
        yield from ((name, f"{taken['whole']}.{name}") for name in _WORD.findall(taken["names"]))


def _of_import(imported: tuple[str, str], written: str) -> Address:
    module, name = imported
    return Address(module, f"{name}.{written.partition('.')[2]}".rstrip("."), written)


def _imported(source: Source) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yields the local name, the module, and the name of each import from a file of the project."""
    for pattern in IMPORTS:
        for match in pattern.finditer(source.original):
            module, written = match["path"], match["names"].strip()
            if not in_project(module) or _NOT_CODE.search(module):
                continue
            whole, brace, named = written.partition("{")
            whole = whole.strip(" ,")
            if whole.startswith("*"):
                yield whole.rpartition(" ")[2], (module, WHOLE)
            elif whole:
                name = DEFAULT if match[0].startswith("import") else WHOLE
                yield whole.partition(",")[0].strip(), (module, name)
            for name, alias in NAME_AND_ALIAS.findall(named if brace else ""):
                yield alias or name, (module, name)


def given_by(source: Source, names: Iterable[str], limits: Limits) -> list[Address]:
    """Returns the addresses that a file exports under the given names. Raises Skipped."""
    if source.language in WITHOUT_EXPORTS:
        found = {name: address for name in names for address in islice(_in_text(source, name), 1)}
    elif source.language == DATA:
        found = {name: address for name in names for address in _in_data(source.text, name)}
    else:
        check_depth(source.text, source.language, limits)
        scripts = [block for block in source.blocks if block.language in SCRIPTS]
        found = {}
        for name in names:
            parts = dict.fromkeys(it for block in scripts for it in _in_code(block, name.split(".")))
            if either := [it for it in parts if "//" in it] or list(parts)[:1]:
                found[name] = "\n".join(either)[:_LONGEST]
    return [Address("", name, address) for name, address in found.items()][:MAX_ADDRESSES]


def _in_text(source: Source, name: str) -> Iterator[str]:
    """Yields the address of a known vendor that server code or settings give a name."""
    if name.startswith("."):
        if source.language == "configuration":
            yield from _in_settings(source, tuple(name.lower().split(".")[1:]))
        return
    template, is_handed_on, parameter = name.partition(_PARAMETER_OF)
    if not is_handed_on:
        yield from _named(source, source.original, name, _GIVEN)
    elif not parameter:
        yield from _named(source, source.original, template, _ARGUMENTS)
    for start in _handing_on(source, template) if parameter else ():
        end = _END_OF_STATEMENT.search(source.original, start, start + _LONGEST_STATEMENT)
        statement = source.original[start : end.start() if end else start + _LONGEST_STATEMENT]
        yield from _named(source, statement, parameter, _GIVEN)


def _handing_on(source: Source, template: str) -> Iterator[int]:
    """Yields where a template is included, or rendered by code."""
    for include in source.template.includes if source.template else ():
        if source.template and template in _PARTS.split(include.name):
            # Behind marks such as `{{>`, which look like the end of a statement.
            yield source.template.origin(include.offset) + _SHORTEST
    text, at = source.original, -1
    while (at := text.find(template, at + 1)) >= 0:
        if rendered := _RENDERED.match(text, at + len(template)):
            yield rendered.end()


def _named(source: Source, text: str, name: str, given: re.Pattern[str]) -> Iterator[str]:
    """Yields the addresses of known vendors that a text has after a name."""
    at = -1
    while (at := text.find(name, at + 1)) >= 0:
        found = given.match(text, at + len(name))
        begins = at == 0 or not _PART_OF_NAME.match(text, at - 1)
        if begins and found and source.catalogue.first_in(found["address"]):
            yield found["address"][:_LONGEST]


def _in_settings(source: Source, path: tuple[str, ...]) -> Iterator[str]:
    for setting in settings_of(source.text):
        given = tuple(it.lower() for it in setting.path[-len(path) :]) == path and _ADDRESS.match(setting.value)
        if given and source.catalogue.first_in(setting.value):
            yield setting.value[:_LONGEST]


def _in_data(text: str, name: str) -> Iterator[str]:
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError):
        return
    for part in name.removeprefix(f"{DEFAULT}.").removeprefix(f"{WHOLE}.").split("."):
        value = value[0] if isinstance(value, list) and value else value
        value = value.get(part) if isinstance(value, dict) else None
    if isinstance(value, str) and (_ADDRESS.match(value) or _PART.fullmatch(value)):
        yield value[:_LONGEST]


def _in_code(block: Block, parts: list[str]) -> Iterator[str]:
    first, *members = parts
    if first == WHOLE:
        if not members:
            return
        first, *members = members
    nodes = _exported(block, first) if first != _THIS else _of_instance(block, members.pop(0))
    for member in members:
        nodes = list(members_of(nodes, member))
    for node in nodes[:_MAX_NODES]:
        for value in values(block, node):
            if _ADDRESS.match(value) or (_PART.fullmatch(value) and value != UNKNOWN):
                yield value[:_LONGEST]


def _exported(block: Block, name: str) -> list[SgNode]:
    constants = block.constants
    if name != DEFAULT:
        found = constants.get(name) or constants.get(f"exports.{name}") or constants.get(f"module.exports.{name}")
        return found or list(members_of(constants.get("module.exports", ()), name))
    given = [statement.field("value") for statement in block.root.find_all(_DEFAULTS)]
    named = [it for value in given if value is not None for it in constants.get(value.text()[:_LONGEST], [value])]
    return named or constants.get("module.exports", [])


def _of_instance(block: Block, name: str) -> list[SgNode]:
    """Returns what a class computes for a property, and the values that it assigns to it by itself."""
    found = [value for value in block.constants.get(f"{_THIS}.{name}", ()) if _runs_by_itself(block, value)]
    found += [method for method in block.constants.get(name, ()) if method.kind() == "method_definition"]
    return found + [it for it in block.properties.get(name, ()) if it.text().startswith(_COMPUTED)]


def _runs_by_itself(block: Block, value: SgNode) -> bool:
    """Returns whether a value is a field's, or in a method that the class's framework or the class itself calls."""
    for around in value.ancestors()[:_MAX_ANCESTORS]:
        if around.kind() == "method_definition":
            name = around.field("name")
            sets = any(part.kind() == "set" for part in around.children())
            return name is not None and (
                sets or bool(_WHEN_MADE.fullmatch(name.text())) or f"{_THIS}.{name.text()}(" in block.text
            )
    return True


def give(source: Source, addresses: dict[str, str]) -> None:
    """Makes the addresses of other files known to a file, by the names under which it uses them."""
    source.given = addresses
    for name, address in addresses.items():
        written = SgRoot(json.dumps(address.splitlines()), "javascript").root().find_all({"rule": {"kind": "string"}})
        for block in source.blocks:
            if block.language in SCRIPTS:
                block.constants[name] = written

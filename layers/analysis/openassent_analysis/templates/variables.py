"""The addresses in a template's expressions: literal ones, and those that the template's own variables have."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Final

from openassent_analysis.reading import alternatives, resource

_MAX_ADDRESSES: Final = 16
_LONGEST_LIST: Final = 400
# The rest of a statement, and a value: the rest of the line, or a list, which may have more lines.
_REST: Final = r"(?:(?!%\}|%>|\}\}|\?>)[^\n;])"
_VALUE: Final = (
    rf"(?P<value>(?:array|slice)?\s?[\[({{](?:(?!%\}}|%>|\}}\}}|\?>|\n\s{{0,20}}\n)[^;]){{4,1000}}|{_REST}{{4,300}})"
)
# {% set src = 'https://…' %}, {{ $src := printf "https://…" .Id }}, <% src = "https://…" %>, $src = 'https://…';
# also strings of Java, C#, and Go, and constants of PHP.
_SET: Final = re.compile(
    rf"(?:{alternatives(resource('template-languages')['assignments'])})"
    rf"(?P<name>[A-Za-z_]\w{{1,60}}+)[\"']?(?:\s{{0,4}}:?=(?!=)|(?<=[\"'])\s{{0,4}},|\s{{1,4}}value\s{{0,4}}=)\s{{0,9}}{_VALUE}"
)
# {% capture src %}https://…{% endcapture %}
_CAPTURED: Final = re.compile(
    r"\{%[-~+]?\s{0,4}(?:capture|set)\s{1,4}[\"']?(?P<name>\w{2,60})[\"']?\s{0,4}[-~+]?%\}\s{0,99}"
    r"(?P<address>(?:https?:)?//[^\s<>\"'{}]{4,300})"
)
# {% for src in list %}, {{ range $list }}, foreach ($list as $src), and what comes after the list: list.each do |src|
_LOOP: Final = re.compile(
    rf"\b(?:for|each|range)\s{{1,4}}(?:(?:\$?\w{{1,40}}\s?,\s?)?\$?(?P<item>\w{{1,60}})\s{{1,4}}(?:in|of|:=)\s{{1,4}})?(?P<list>{_REST}{{2,400}})"
    r"|(?:\bforeach|<\#list)\s?\(?(?P<listed>[^;\n]{2,400}?)\sas\s{1,4}(?:\$\w{1,40}\s?=>\s?)?\$?(?P<each>\w{1,60})"
    r"|\.(?:forEach\(\s{0,4}(?:function\s?)?\(?|each\s{1,4}(?:do|\{)\s{1,4}\|)\s?(?P<given>\w{1,60})"
)
_CURRENT: Final = "."
# {% macro frame(src) %}, mixin frame(src), function frame($src), and a call of it: frame("https://…")
DEFINED: Final = re.compile(
    r"\b(?:macro|mixin|function|def)\s{1,4}&?(?P<name>\w{3,60})\s?\(\s?(?P<parameters>[^()<>{}%\n]{2,200})"
)
_CALL: Final = re.compile(r"(?<![\w$])(?P<name>\w{3,60})\s?\((?P<arguments>[^()\n]{4,400})\)")
_PARAMETER: Final = re.compile(r"\$?(\w{1,60})\s{0,4}(?:[:=].*)?$")
# A string that is an address, also one whose scheme is another string, or a host.
_ADDRESS: Final = re.compile(r"""["'`](https?:|:)?(//[^"'`\s<>]{4,300})""")
_HOST: Final = re.compile(
    r"""["'`]((?:[a-z0-9-]{1,60}\.){1,4}(?!(?:js|md|ts)["'`])(?:com|net|org|app|dev|cloud|chat|info|tech|[a-z]{2})"""
    r"""(?:/[^"'`\s<>]{0,200})?)["'`]"""
)
# An address among the statements in an attribute: src="{% if a %}https://…{% else %}https://…{% endif %}"
_BETWEEN: Final = re.compile(r"""[}>]((?:https?:)?//[^"'`\s<>{}]{4,300})""")
# A part that a format takes from its arguments.
_PLACEHOLDER: Final = re.compile(r"%(?:\d\$)?[sv]")
_NAME: Final = re.compile(r"[A-Za-z_]\w*|(?<=[\s{])\.(?=[\s}])")


class Variables:
    def __init__(self, text: str, given: Mapping[str, str]) -> None:
        """given: addresses, one a line, that other files give variables and settings, by `name` or `.settings.name`."""
        self._text = text
        self._given = given
        self._settings = [name for name in given if name.startswith(".")]

    @cached_property
    def addresses(self) -> dict[str, list[str]]:
        """The addresses and hosts that the variables have, by variable."""
        text = self._text
        found = {name: addresses.splitlines() for name, addresses in self._given.items()}
        for captured in _CAPTURED.finditer(text):
            found.setdefault(captured["name"], []).append(captured["address"])
        if not (found or _ADDRESS.search(text) or _HOST.search(text)):
            return found
        for statement in _SET.finditer(text):
            self._set(found, statement["name"], statement["value"])
        defined = {it["name"]: it["parameters"].split(",") for it in DEFINED.finditer(text)}
        for call in _CALL.finditer(text) if defined else ():
            for parameter, argument in zip(defined.get(call["name"], ()), call["arguments"].split(","), strict=False):
                if name := _PARAMETER.search(parameter.strip()):
                    self._set(found, name[1], argument)
        for loop in _LOOP.finditer(text):
            listed = loop["list"] or loop["listed"] or _line_before(text, loop.start())
            self._set(found, loop["item"] or loop["each"] or loop["given"] or _CURRENT, listed)
        return found

    def addresses_in(self, expression: str) -> list[str]:
        """Returns the addresses that an expression may have, and the hosts of variables in it."""
        return [*_literal(expression), *_BETWEEN.findall(expression), *self._named(expression, self.addresses)]

    def scripts_in(self, expression: str, attribute: str = "") -> str:
        """Returns a script for each address that an expression may have."""
        found = dict.fromkeys(it for it in self.addresses_in(expression) if "//" in it)
        return "".join(f'<script {attribute}src="{it}"></script>' for it in list(found)[:_MAX_ADDRESSES])

    def first_in(self, expression: str) -> str:
        """Returns the first address that an expression may have. Empty if none is known."""
        return next((it for it in self.addresses_in(expression) if "//" in it), "")

    def _set(self, found: dict[str, list[str]], name: str, value: str) -> None:
        known = found.get(name, [])
        if len(known) < _MAX_ADDRESSES:
            addresses = [*_literal(value), *_HOST.findall(value)] or list(self._named(value, found))
            if addresses := list(dict.fromkeys((*known, *addresses))):
                found[name] = addresses[:_MAX_ADDRESSES]

    def _named(self, expression: str, variables: Mapping[str, list[str]]) -> Iterator[str]:
        for name in _NAME.findall(expression):
            yield from variables.get(name, ())
        for name in self._settings:
            if name in expression:
                yield from self._given[name].splitlines()


def _line_before(text: str, end: int) -> str:
    start = max(text.rfind(mark, max(end - _LONGEST_LIST, 0), end) for mark in "\n;%")
    return text[max(start, end - _LONGEST_LIST, 0) : end]


def _literal(expression: str) -> Iterator[str]:
    for scheme, address in _ADDRESS.findall(expression):
        yield ("https:" if scheme == ":" else scheme) + _PLACEHOLDER.sub("_", address)

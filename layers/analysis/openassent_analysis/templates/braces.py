"""Reads templates whose code is in braces: Jinja, Twig, Liquid, Handlebars, Go, Blade; and Smarty and Svelte."""

from __future__ import annotations

import re
from functools import cached_property
from typing import Final

from openassent_analysis.templates.brackets import NEAR
from openassent_analysis.templates.scriptlets import HELPER, HELPER_MARKS, NAMED_HELPER, written_by
from openassent_analysis.templates.taking import Reader

_WORD: Final = re.compile(r"[\s~+-]*+([A-Za-z_]\w*+)?")
_LINE: Final = re.compile(r"(?:\n|\bliquid\b)[ \t]*+([a-z]\w*+)([^\n]*+)")
_ELSE: Final = re.compile(r"\s*+else\b\s*+(if\b|with\b|unless\b)?")
_SCRIPT_TAG: Final = re.compile(r"""["']((?:https?:)?//[^"'\s<>]{4,300}+)["']\s*+\|\s*+script_tag""")
# Hugo's own partial that writes a script with an address, or with the variable that has it: partial "script.html".
# Also the answer of a service for oEmbed, whose markup has one.
_PARTIAL: Final = re.compile(
    r"""\bpartial(?:Cached)?+\s++["`][\w/.-]{0,80}?script[\w.-]{0,40}["`]|\b(?P<fetches>resources\.GetRemote)\b""",
    re.IGNORECASE,
)
# Hugo's built-in templates, and the vendors that they load.
_HUGO: Final = re.compile(
    r"(?:_internal/|\bpartial(?:Cached)?+\s++[\"`](?=google_analytics|disqus))"
    r"(google_analytics(?:_async)?|disqus|twitter_cards|google_news)\.html"
)
_HUGO_SCRIPTS: Final = {
    "google_analytics": "https://www.googletagmanager.com/gtag/js",
    "google_analytics_async": "https://www.google-analytics.com/analytics.js",
    "disqus": "https://disqus.com/embed.js",
}
# Blocks that have an `else`, and those that hold no page.
_BLOCKS: Final = frozenset({"for", "case", "ifchanged", "switch", "tablerow", "trans", "with"})
_NO_PAGE: Final = {"comment": "endcomment", "schema": "endschema", "doc": "enddoc"}
_AS_IT_IS: Final = {"raw": "endraw", "verbatim": "endverbatim"}


class Braces(Reader):
    def _braces(self, found: re.Match[str]) -> int | None:
        start, mark = found.start(), found[0]
        if mark == "{#":
            end = self._find("#}", start + 2, NEAR)
            return None if end < 0 else self._take(start, end + 2)
        if mark == "{!!":
            end = self._find("!!}", start + 3, NEAR)
            if end >= 0 and self._has_helper and (helper := NAMED_HELPER.search(self._text, start, end)):
                return self._insert(start, end + 3, written_by(helper[0]))
            return None if end < 0 else self._take(start, end + 3, shows=True)
        if mark == "{%":
            end = self._find("%}", start + 2, NEAR)
            return None if end < 0 else self._statement(start, end)
        for comment, closing in (("{{!--", "--}}"), ("{{--", "--}}"), ("{{/*", "*/}}"), ("{{- /*", "*/")):
            if self._text.startswith(comment, start):
                end = self._find(closing, start + 4)
                if end >= 0:
                    return self._take(start, end + len(closing))
        end = self._find("}}", start + 2, NEAR)
        if end < 0:
            return None
        inner = self._text[start + 2 : end]
        end += 3 if self._text.startswith("}}}", end) and inner.startswith("{") else 2
        return self._expression(start, end, inner.strip("{}~- \t\r\n"))

    def _statement(self, start: int, end: int) -> int | None:
        """Reads `{% … %}`."""
        word = _WORD.match(self._text, start + 2, end)
        name = (word and word[1]) or ""
        rest = self._text[word.end() : end].rstrip("-~+ ") if word else ""
        end += 2
        if name in _NO_PAGE or name in _AS_IT_IS:
            closing = self._find((_NO_PAGE | _AS_IT_IS)[name], end)
            if closing >= 0:
                self._take(start, end)
                until = max(self._text.rfind("{%", end, closing), end)
                if name in _AS_IT_IS:
                    self._markup.copy(until)
                else:
                    self._markup.blank(until)
                last = self._find("%}", closing, NEAR)
                return self._take(until, last + 2 if last >= 0 else closing)
        self._take(start, end)
        if name == "liquid":
            self._lines_of(start, end)
        else:
            self._keyword(name, rest, start, end)
        return end

    def _lines_of(self, start: int, end: int) -> None:
        """Reads the statements of `{% liquid … %}`, one on each line."""
        for line in _LINE.finditer(self._text, start, end - 2):
            self._keyword(line[1], line[2], line.start(), line.end())

    def _keyword(self, name: str, rest: str, start: int, end: int) -> None:
        if name in {"if", "ifequal", "ifnotequal"}:
            self._markup.open("if", rest, end, holds=name != "ifnotequal")
        elif name == "unless":
            self._markup.open(name, rest, end, holds=False)
        elif name in {"elif", "elseif", "elsif"}:
            self._markup.turn(rest, start, end)
        elif name == "else":
            self._markup.turn(None, start, end)
        elif name in _BLOCKS:
            self._markup.open(name, None, end)
        elif name.startswith("end"):
            ended = name[3:]
            self._markup.close(start, "if" if ended.startswith("if") and ended != "ifchanged" else ended)

    def _expression(self, start: int, end: int, inner: str) -> int:
        """Reads `{{ … }}`: of Handlebars and Go it may be a statement."""
        if hugo := _HUGO.search(inner):
            address = _HUGO_SCRIPTS.get(hugo[1])
            return self._insert_script(start, end, address) if address else self._take(start, end)
        if load := _SCRIPT_TAG.search(inner):
            return self._insert_script(start, end, load[1])
        if self._has_helper and (helper := HELPER.search(inner)) and (written := self._written(helper)):
            return self._insert(start, end, written)
        partial = _PARTIAL.search(inner)
        scripts = self._markup.variables.scripts_in(inner) if partial else ""
        if scripts and partial and (not partial["fetches"] or "oembed" in scripts):
            return self._insert(start, end, scripts)
        shows = not self._section(start, end, inner) and not self._branch(start, end, inner)
        return self._take(start, end, shows=shows)

    @cached_property
    def _has_helper(self) -> bool:
        return any(mark in self._text for mark in HELPER_MARKS)

    def _section(self, start: int, end: int, inner: str) -> bool:
        """Reads `{{#name}}`, `{{^name}}`, and `{{/name}}`. Returns False if it is something else."""
        mark = inner[:1]
        if mark == "/":
            self._markup.close(start, inner[1:].strip())
        elif mark and mark in "#^":
            name, _, rest = inner[1:].strip("~* ").partition(" ")
            if not name:
                self._markup.turn(None, start, end)
                return True
            text = rest if name in {"if", "unless", "with"} else None if name == "each" else f"{name} {rest}"
            self._markup.open(name, text, end, holds=mark == "#" and name != "unless")
        else:
            return not mark or mark in "!>"
        return True

    def _branch(self, start: int, end: int, inner: str) -> bool:
        """Reads the statements of Go, and `{{else}}`. Returns False if it is something else."""
        word, _, rest = inner.partition(" ")
        turn = _ELSE.match(inner)
        if turn and (turn[1] or turn.end() >= len(inner)):
            self._markup.turn(inner[turn.end() :] if turn[1] else None, start, end)
        elif word in {"if", "with"} and rest:
            self._markup.open("go", rest, end)
        elif word in {"range", "block", "define"} and rest:
            self._markup.open("go", None, end)
        elif word == "end":
            self._markup.close(start, "go")
        else:
            return word in {"template", "partial", "extends", "layout"}
        return True

    # {if …} … {/if}

    def _single(self, found: re.Match[str]) -> int | None:
        start = found.start()
        if self._text.startswith("{*", start):
            end = self._find("*}", start)
            return None if end < 0 else self._take(start, end + 2)
        end = self._find("}", start, NEAR)
        if end < 0:
            return None
        inner = self._text[start + 1 : end]
        word, _, rest = inner.partition(" ")
        end += 1
        if word == "literal":
            stop = self._find("{/literal}", end)
            if stop >= 0:
                self._take(start, end)
                self._markup.copy(stop)
                return self._take(stop, stop + 10)
        if word in {"if", "foreach"}:
            self._markup.open(word, rest if word == "if" else None, end)
        elif word in {"elseif", "else"}:
            self._markup.turn(rest if word == "elseif" else None, start, end)
        elif inner[:1] == "/":
            self._markup.close(start, inner[1:].strip())
        elif inner[:1] in "$=":
            return self._take(start, end, shows=True)
        return self._take(start, end)

    def _svelte(self, found: re.Match[str]) -> int | None:
        start, mark = found.start(), found[0]
        end = self._find("}", start, NEAR)
        if end < 0:
            return None
        rest = self._text[found.end() : end]
        if mark[1] == "#":
            self._markup.open(mark[2:], rest if mark == "{#if" else None, end + 1)
        elif mark[1] == "/":
            self._markup.close(start, mark[2:])
        elif mark == "{:else":
            rest = rest.strip()
            self._markup.turn(rest.removeprefix("if") if rest.startswith("if") else None, start, end + 1)
        return end + 1

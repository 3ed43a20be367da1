"""Reads templates whose own code is between delimiters, or in directives, inside of HTML.

Statements become blanks and expressions become names of the same length, so that HTML and scripts parse and keep their
offsets.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Final

from scan_execution.analysis.templates import scriptlets
from scan_execution.analysis.templates.dialects import Dialect
from scan_execution.analysis.templates.includes import find_includes
from scan_execution.analysis.templates.markup import Markup

# A delimiter is one only if its end is near.
_NEAR: Final = 3_000
_WORD: Final = re.compile(r"[\s~+-]*+([A-Za-z_]\w*+)?")
_ELSE: Final = re.compile(r"\s*+else\b\s*+(if\b|with\b|unless\b)?")
_SCRIPT_TAG: Final = re.compile(r"""["']((?:https?:)?//[^"'\s<>]{4,300}+)["']\s*+\|\s*+script_tag""")
# Templates that Hugo has built in, and what they load.
_HUGO: Final = re.compile(
    r"(?:_internal/|\bpartial(?:Cached)?+\s++[\"`](?=google_analytics))(google_analytics(?:_async)?|disqus|twitter_cards|google_news)\.html"
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


def read(markup: Markup, dialect: Dialect) -> None:
    """Reads the whole text."""
    text = markup.text
    find_includes(markup, dialect.kind)
    if "astro" in dialect.syntaxes:
        _read_frontmatter(markup)
    openers = _openers(dialect.syntaxes)
    if openers is None:
        return
    reader = _Reader(markup, dialect)
    at = markup.at
    while found := openers.search(text, at):
        handler: Callable[[re.Match[str]], int | None] = getattr(reader, f"_{found.lastgroup}")
        end = handler(found)
        at = max(found.end() if end is None else end, found.start() + 1)


_OPENERS: Final = {
    "braces": r"(?P<braces>\{\{|\{%|\{#(?!if|each|await|key)|\{!!)",
    "scriptlets": r"(?P<percent><%)",
    "php": r"(?P<php><\?(?!xml))",
    "blade": r"(?P<blade>(?<![\w@.])@[a-zA-Z]++)",
    "razor": r"(?P<razor>(?<![\w@.])@(?:\*|[a-zA-Z_({])|[{}]|(?<![\w$.@])if\s*+(?=\())",
    "controls": r"(?P<razor2>(?<![\w@.])@(?:if|else)\b|[{}])",
    "tags": r"(?P<tags></?+(?:c:|xsl:|sec:|cf|\#|@)[a-zA-Z-]++|<!---|<\#--)",
    "interpolation": r"(?P<interpolation>[\#$]!?+\{[^{}\n]{0,300}+\})",
    "single": r"(?P<single>\{(?=[*$/=]|(?:if|else|elseif|foreach|literal|include)\b))",
    "svelte": r"(?P<svelte>\{[\#:/](?:if|else|each|await|key)\b)",
    "astro": r"(?P<astro>(?i:<script\b|<style\b)|[{}]|:(?=\s*+\(?+\s*+(?:<|null|undefined)))",
    "expressions": r"(?P<expression_value>(?<==)\{)",
    "velocity": r"(?P<velocity>\#\{?+(?:if|elseif|else|end|foreach|macro)\b\}?+|\#\#|\#\*)",
    "lines": r"(?P<line>^[ \t]*+%(?!>)[^\n]*+)",
}


@cache
def _openers(syntaxes: frozenset[str]) -> re.Pattern[str] | None:
    written = [written for name, written in _OPENERS.items() if name in syntaxes]
    return re.compile("|".join(written), re.MULTILINE) if written else None


def _read_frontmatter(markup: Markup) -> None:
    text = markup.text
    start = len(text) - len(text.lstrip())
    if not text.startswith("---", start):
        return
    end = text.find("\n---", start + 3)
    if end >= 0:
        markup.script(start + 3, end)
        markup.blank(end + 4)


class _Reader:
    def __init__(self, markup: Markup, dialect: Dialect) -> None:
        self._markup = markup
        self._text = markup.text
        self._words = dialect.kind in {"ERB", "EEx", "HEEx"}
        self._code = scriptlets.Code(markup, dialect.kind)
        self._kind = dialect.kind
        self._ended: set[str] = set()
        self._ends = (
            {name.lower() for name in _END_DIRECTIVE.findall(self._text)} if "blade" in dialect.syntaxes else set()
        )
        # Braces that don't begin a block, inside of one.
        self._at_blocks = 0

    def _find(self, end: str, start: int, most: int | None = None) -> int:
        """Returns where a delimiter is, or -1. Searches a text without it only once."""
        if end in self._ended:
            return -1
        found = self._text.find(end, start, len(self._text) if most is None else start + most)
        if found < 0 and most is None:
            self._ended.add(end)
        return found

    def _take(self, start: int, end: int, *, shows: bool = False) -> int:
        self._markup.copy(start)
        if shows:
            self._markup.fill(end)
        else:
            self._markup.blank(end)
        return end

    def _insert_script(self, start: int, end: int, address: str) -> int:
        """Adds a script element that a statement writes, inside of the statement."""
        self._markup.copy(start)
        self._markup.blank(end - 1)
        self._markup.insert(f'<script src="{address}"></script>', start)
        self._markup.blank(end)
        return end

    # {{ }}, {% %}, {# #}

    def _braces(self, found: re.Match[str]) -> int | None:
        start, mark = found.start(), found[0]
        if mark == "{#":
            end = self._find("#}", start + 2, _NEAR)
            return None if end < 0 else self._take(start, end + 2)
        if mark == "{!!":
            end = self._find("!!}", start + 3, _NEAR)
            return None if end < 0 else self._take(start, end + 3, shows=True)
        if mark == "{%":
            end = self._find("%}", start + 2, _NEAR)
            return None if end < 0 else self._statement(start, end)
        for comment, closing in (("{{!--", "--}}"), ("{{--", "--}}"), ("{{/*", "*/}}"), ("{{- /*", "*/")):
            if self._text.startswith(comment, start):
                end = self._find(closing, start + 4)
                if end >= 0:
                    return self._take(start, end + len(closing))
        end = self._find("}}", start + 2, _NEAR)
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
                last = self._find("%}", closing, _NEAR)
                return self._take(until, last + 2 if last >= 0 else closing)
        self._take(start, end)
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
        return end

    def _expression(self, start: int, end: int, inner: str) -> int:
        """Reads `{{ … }}`: of Go and Handlebars it may be a statement."""
        markup = self._markup
        if hugo := _HUGO.search(inner):
            address = _HUGO_SCRIPTS.get(hugo[1])
            return self._insert_script(start, end, address) if address else self._take(start, end)
        if load := _SCRIPT_TAG.search(inner):
            return self._insert_script(start, end, load[1])
        if inner[:1] in {"#", "^"} and len(inner) > 1:
            self._take(start, end)
            name, _, rest = inner[1:].strip("~* ").partition(" ")
            holds = inner[0] == "#" and name != "unless"
            text = rest if name in {"if", "unless", "with"} else None if name == "each" else f"{name} {rest}"
            markup.open(name, text, end, holds=holds)
            return end
        if inner[:1] == "/":
            markup.close(start, inner[1:].strip())
            return self._take(start, end)
        if turn := _ELSE.match(inner):
            if not re_only_else(inner, turn):
                return self._take(start, end, shows=True)
            markup.turn(inner[turn.end() :] if turn[1] else None, start, end)
            return self._take(start, end)
        if inner == "^":
            markup.turn(None, start, end)
            return self._take(start, end)
        word, _, rest = inner.partition(" ")
        if word in {"if", "with"} and rest:
            markup.open("go", rest, end)
        elif word in {"range", "block", "define"} and rest:
            markup.open("go", None, end)
        elif word == "end":
            markup.close(start, "go")
        else:
            statement = not inner or inner[0] in "!>" or word in {"template", "partial", "extends", "layout"}
            return self._take(start, end, shows=not statement)
        return self._take(start, end)

    # <% %>

    def _percent(self, found: re.Match[str]) -> int | None:
        start = found.start()
        text = self._text
        if text.startswith("<%--", start):
            end = self._find("--%>", start)
            return None if end < 0 else self._take(start, end + 4)
        end = self._find("%>", start + 2)
        if end < 0:
            return None
        kind = text[start + 2 : start + 3]
        if kind in "#!@$%":
            return self._take(start, end + 2)
        shows = kind in "=-:~"
        inner = text[start + 2 : end]
        if load := scriptlets.SCRIPT_HELPER.search(inner):
            return self._insert_script(start, end + 2, load[1])
        self._markup.copy(start)
        if self._words or ("{" not in inner and "}" not in inner and "(" not in inner):
            scriptlets.read_words(self._markup, inner.lstrip("=-:~"), start, end + 2)
        elif not shows:
            self._code.read(start + 2, end)
        return self._take(start, end + 2, shows=shows)

    # <? ?>

    def _php(self, found: re.Match[str]) -> int:
        start = found.start()
        end = self._find("?>", start)
        end = len(self._text) if end < 0 else end
        self._markup.copy(start)
        shows = self._text.startswith("<?=", start) or scriptlets.shows(self._text, start, end)
        if not shows:
            self._code.read(start + 2, end)
        return self._take(start, min(end + 2, len(self._text)), shows=shows)

    # @if (…) … @endif

    def _blade(self, found: re.Match[str]) -> int | None:
        start, name = found.start(), found[0][1:]
        end = found.end()
        argument = ""
        if self._text.startswith("(", after := _blanks(self._text, end)):
            close = closing_bracket(self._text, after)
            if close < 0:
                return None
            argument, end = self._text[after + 1 : close], close + 1
        markup = self._markup
        if name == "php" and not argument:
            stop = self._find("@endphp", end)
            return None if stop < 0 else self._take(start, stop + 7)
        if name in {"if", "auth", "guest", "env", "production", "isset", "can", "cannot", "hasSection", "feature"}:
            markup.open(name, f"{name} {argument}" if name != "if" else argument, end)
        elif name in {"unless", "empty"} and (name == "unless" or argument):
            markup.open(name, argument, end, holds=False)
        elif name in {"elseif", "elsecan"}:
            markup.turn(argument, start, end)
        elif name in {"else", "empty"}:
            markup.turn(None, start, end)
        elif name.startswith("end"):
            markup.close(start, {"forelse": "forelse"}.get(name[3:], name[3:]))
        elif name.lower() in self._ends:
            known = name in {
                "foreach",
                "forelse",
                "for",
                "while",
                "section",
                "push",
                "once",
                "pushOnce",
                "prepend",
                "switch",
                "component",
                "slot",
                "error",
            }
            markup.open(name, None if known else f"{name} {argument}", end)
        elif name == "json" or name == "js":
            return self._take(start, end, shows=True)
        elif not argument:
            return None
        return self._take(start, end)

    # @if (…) { … }

    def _razor(self, found: re.Match[str]) -> int | None:
        text, start, mark = self._text, found.start(), found[0]
        markup = self._markup
        if mark == "@*":
            end = self._find("*@", start)
            return None if end < 0 else self._take(start, end + 2)
        if mark in "{}":
            return self._brace(start, mark)
        if mark.startswith("if"):
            # C# inside of a block, or a script's own condition there, which counts as well.
            return self._open_control(start, found.end(), "if") if self._at_blocks else None
        if mark == "@{":
            markup.open("{", None, start + 2)
            self._at_blocks += 1
            return self._take(start, start + 2)
        if mark == "@(":
            end = closing_bracket(text, start + 1)
            return None if end < 0 else self._take(start, end + 1, shows=True)
        if block := _RAZOR_BLOCK.match(text, start):
            return self._open_control(start, block.end(), block[1])
        shown = _RAZOR_VALUE.match(text, start)
        return self._take(start, shown.end(), shows=True) if shown else None

    def _open_control(self, start: int, end: int, word: str) -> int | None:
        text, argument = self._text, None
        if text.startswith("(", end):
            close = closing_bracket(text, end)
            if close < 0:
                return None
            argument, end = text[end + 1 : close], close + 1
        end = _blanks(text, end)
        if not text.startswith("{", end):
            return None
        self._at_blocks += 1
        self._markup.open("{", argument if word == "if" else None, end + 1)
        return self._take(start, end + 1)

    def _brace(self, start: int, mark: str) -> int | None:
        markup = self._markup
        if not self._at_blocks:
            return None
        if mark == "{":
            self._at_blocks += 1
            markup.open("{", None, start + 1)
            return None
        self._at_blocks -= 1
        markup.close(start, "{")
        closed = markup.closed
        alternative = _RAZOR_ELSE.match(self._text, start)
        if closed is None or closed.test is None or alternative is None:
            return None
        end, argument = alternative.end(), None
        if alternative[1]:
            close = closing_bracket(self._text, alternative.end() - 1)
            if close < 0:
                return None
            argument, end = self._text[alternative.end() : close], close + 1
        end = _blanks(self._text, end)
        if not self._text.startswith("{", end):
            return None
        self._at_blocks += 1
        markup.reopen(argument, end + 1)
        return self._take(start, end + 1)

    def _razor2(self, found: re.Match[str]) -> int | None:
        return self._razor(found)

    # <c:if test="…">, <cfif …>, <#if …>

    def _tags(self, found: re.Match[str]) -> int | None:
        text, start, mark = self._text, found.start(), found[0].lower()
        for comment, closing in (("<!---", "--->"), ("<#--", "-->")):
            if mark == comment:
                end = self._find(closing, start)
                return None if end < 0 else self._take(start, end + len(closing))
        if text.startswith("-", found.end()):
            return None
        tag = _TAG_REST.match(text, found.end())
        if tag is None:
            return None
        end, rest = tag.end(), tag[1]
        name = mark.lstrip("</").rpartition(":")[2].lstrip("#@")
        closes = mark.startswith("</")
        quoted = _QUOTED.search(rest)
        test = quoted[1] if quoted and ":" in mark else rest
        markup = self._markup
        if name in {"if", "cfif", "authorize"}:
            if closes:
                markup.close(start, "if")
            else:
                markup.open("if", test, end)
        elif name in {"elseif", "cfelseif"}:
            markup.turn(rest, start, end)
        elif name in {"else", "cfelse"}:
            markup.turn(None, start, end)
        elif name in {"choose", "list", "switch"}:
            if closes:
                markup.close(start, name)
            else:
                markup.open(name, None, end)
        elif name in {"when", "otherwise"}:
            if not closes:
                markup.turn(test if name == "when" else None, start, end)
        elif "#" not in mark and "@" not in mark and not mark.lstrip("</").startswith("cf"):
            return None
        return self._take(start, end)

    def _interpolation(self, found: re.Match[str]) -> int:
        return self._take(found.start(), found.end(), shows=True)

    # {if …} … {/if}

    def _single(self, found: re.Match[str]) -> int | None:
        start = found.start()
        if self._text.startswith("{*", start):
            end = self._find("*}", start)
            return None if end < 0 else self._take(start, end + 2)
        end = self._find("}", start, _NEAR)
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
        end = self._find("}", start, _NEAR)
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

    # {condition && <script …>}

    def _astro(self, found: re.Match[str]) -> int | None:
        start, mark, markup = found.start(), found[0].lower(), self._markup
        if mark in {"<script", "<style"}:
            end = self._find(f"</{mark[1:]}", start)
            return None if end < 0 else end
        if mark == "{":
            if value := _ATTRIBUTE_VALUE.match(self._text, start):
                return self._attribute_value(start, value)
            test = _ASTRO_TEST.match(self._text, start + 1)
            markup.open("{", test[1] if test else None, start + 1, holds=not test or test[2] != "||")
        elif mark == "}":
            markup.close(start, "{")
        elif markup.inside == "{":
            markup.turn(None, start, start + 1)
        return None

    def _attribute_value(self, start: int, value: re.Match[str]) -> int:
        """Makes a quoted value of `src={"…"}`."""
        if start and self._text[start - 1] == "=":
            self._markup.copy(start)
            self._markup.write(' "' + value[2].replace('"', "'") + '" ')
        return value.end()

    def _expression_value(self, found: re.Match[str]) -> int | None:
        value = _ATTRIBUTE_VALUE.match(self._text, found.start())
        return self._attribute_value(found.start(), value) if value else None

    # #if(…) … #end

    def _velocity(self, found: re.Match[str]) -> int | None:
        text, start, end = self._text, found.start(), found.end()
        mark = found[0].strip("#{}")
        if found[0] == "##":
            line = self._find("\n", start)
            return self._take(start, len(text) if line < 0 else line)
        if found[0] == "#*":
            stop = self._find("*#", start)
            return None if stop < 0 else self._take(start, stop + 2)
        argument = ""
        if mark in {"if", "elseif", "foreach", "macro"}:
            after = _blanks(text, end)
            close = closing_bracket(text, after) if text.startswith("(", after) else -1
            if close < 0:
                return None
            argument, end = text[after + 1 : close], close + 1
        if mark in {"if", "foreach", "macro"}:
            self._markup.open("#", argument if mark == "if" else None, end)
        elif mark == "end":
            self._markup.close(start, "#")
        else:
            self._markup.turn(argument if mark == "elseif" else None, start, end)
        return self._take(start, end)

    def _line(self, found: re.Match[str]) -> int:
        scriptlets.read_line(self._markup, found[0].strip().lstrip("% ").rstrip(":"), found.start(), found.end())
        return self._take(found.start(), found.end())


_END_DIRECTIVE: Final = re.compile(r"@end([a-zA-Z]++)")
_RAZOR_BLOCK: Final = re.compile(
    r"@(if|foreach|for|while|switch|using|lock|functions|code|section\s++\w++|helper\s++\w++)\b\s*+"
)
_RAZOR_ELSE: Final = re.compile(r"\}\s*+@?+else\b(?:\s*+(if)\s*+\()?+")
_RAZOR_VALUE: Final = re.compile(
    r"@(?:await\s++)?[A-Za-z_][\w.]*+(?:\([^()\n]{0,200}+(?:\([^()\n]{0,200}+\)[^()\n]{0,100}+)?+\))?+"
)
_TAG_REST: Final = re.compile(r"((?:[^<>\"']|\"[^\"]{0,500}+\"|'[^']{0,500}+'){0,500}+)>")
_QUOTED: Final = re.compile(r"""=\s*+["']([^"']{1,300})""")
_ASTRO_TEST: Final = re.compile(r"\s*+([^{}<`]{1,300}?)\s*(&&|\?|\|\|)\s*+\(?+\s*+<")
_ATTRIBUTE_VALUE: Final = re.compile(r"""\{(["'`])([^"'`<>\n]{0,500}+)\1\}""")


def re_only_else(inner: str, turn: re.Match[str]) -> bool:
    """Returns whether `else` is a keyword here, not the beginning of a name or an expression."""
    return bool(turn[1]) or turn.end() >= len(inner.rstrip())


def _blanks(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at


_BRACKETS: Final = re.compile(r"[()]")


def closing_bracket(text: str, opening: int) -> int:
    """Returns where a bracket is closed, or -1 if that isn't near."""
    depth = 0
    for found in _BRACKETS.finditer(text, opening, opening + _NEAR):
        depth += 1 if found[0] == "(" else -1
        if depth == 0:
            return found.start()
    return -1

"""Reads templates whose statements are directives in the text: Blade, Razor, Angular, Velocity, Mako."""

from __future__ import annotations

import re
from functools import cached_property
from typing import Final

from openassent_analysis.templates import scriptlets
from openassent_analysis.templates.brackets import after_blanks, closing_bracket
from openassent_analysis.templates.markup import MAX_TEST, Test
from openassent_analysis.templates.taking import Reader

_END_DIRECTIVE: Final = re.compile(r"@end([a-zA-Z]++)")
_NO_CONDITIONS: Final = frozenset({
    "foreach", "forelse", "for", "while", "section", "push", "once", "pushOnce", "prepend", "switch", "component",
    "slot", "error", "each",
})  # fmt: skip
# The blocks of Edge, which all end with `@end`.
_OF_EDGE: Final = frozenset({"if", "unless", "each", "component", "slot", "section"})
# @includeWhen($consented, 'partials.analytics'): the condition, and whether it holds.
_CONDITIONAL_INCLUDES: Final = {"includeWhen": True, "includeUnless": False}
_INCLUDED: Final = re.compile(r"(?P<test>.{1,300}?),\s{0,9}[\"'][\w.:/-]{1,200}[\"']\s{0,9}(?:,|$)", re.DOTALL)
_RAZOR_BLOCK: Final = re.compile(
    r"@(if|foreach|for|while|switch|using|lock|functions|code|section\s++\w++|helper\s++\w++)\b\s*+"
)
_RAZOR_ELSE: Final = re.compile(r"\}\s*+@?+else\b(?:\s*+(if)\s*+\()?+")
_RAZOR_VALUE: Final = re.compile(
    r"@(?:await\s++)?[A-Za-z_][\w.]*+(?:\([^()\n]{0,200}+(?:\([^()\n]{0,200}+\)[^()\n]{0,100}+)?+\))?+"
)


class Directives(Reader):
    # Open braces inside of Razor's blocks.
    _at_blocks = 0

    # @if (…) … @endif

    @cached_property
    def _ends(self) -> set[str]:
        ended = {name.lower() for name in _END_DIRECTIVE.findall(self._text)}
        return ended | _OF_EDGE if self._dialect.kind == "Edge" else ended

    def _blade(self, found: re.Match[str]) -> int | None:
        text, start, name, end = self._text, found.start(), found[0][1:], found.end()
        argument = ""
        if text.startswith("(", after := after_blanks(text, end)):
            close = closing_bracket(text, after)
            if close < 0:
                return None
            argument, end = text[after + 1 : close], close + 1
        if name == "php" and not argument:
            stop = self._find("@endphp", end)
            if stop < 0:
                return None
            self._markup.copy(start)
            if self._code.matters:
                self._code.read(end, stop)
            return self._take(start, stop + 7)
        if name == "include" and (helper := scriptlets.NAMED_HELPER.match(argument.strip(" '\""))):
            return self._insert(start, end, scriptlets.written_by(helper[0]))
        if name in {"json", "js"}:
            return self._take(start, end, shows=True)
        if name in _CONDITIONAL_INCLUDES and (given := _INCLUDED.match(argument)):
            self._markup.condition(start, end, Test(given["test"][:MAX_TEST], _CONDITIONAL_INCLUDES[name]))
            return self._take(start, end)
        if not self._directive(name, argument, start, end) and not argument:
            return None
        return self._take(start, end)

    def _directive(self, name: str, argument: str, start: int, end: int) -> bool:
        """Reads a directive of Blade. Returns False if it begins and ends no block."""
        markup = self._markup
        if name in {"else", "empty"} and not argument:
            markup.turn(None, start, end)
        elif name in {"elseif", "elsecan"}:
            markup.turn(argument, start, end)
        elif name in {"unless", "empty"}:
            markup.open(name, argument, end, holds=False)
        elif name.startswith("end"):
            markup.close(start, name[3:] or None)
        elif name.lower() in self._ends:
            text = argument if name == "if" else f"{name} {argument}"
            markup.open(name, None if name in _NO_CONDITIONS else text, end)
        else:
            return False
        return True

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
        end = after_blanks(text, end)
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
        end = after_blanks(self._text, end)
        if not self._text.startswith("{", end):
            return None
        self._at_blocks += 1
        markup.reopen(argument, end + 1)
        return self._take(start, end + 1)

    def _razor2(self, found: re.Match[str]) -> int | None:
        return self._razor(found)

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
            after = after_blanks(text, end)
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

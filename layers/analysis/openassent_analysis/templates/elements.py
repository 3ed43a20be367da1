"""Reads templates whose code is in tags, or in attributes: ERB, EJS, PHP, JSP, FreeMarker, Astro, HEEx."""

from __future__ import annotations

import re
from typing import Final

from openassent_analysis.templates import code, scriptlets
from openassent_analysis.templates.taking import Reader

# Languages whose blocks end with a word.
_WITH_WORDS: Final = frozenset({"ERB", "EEx", "HEEx"})
_TAG_COMMENTS: Final = {"<!---": "--->", "<#--": "-->"}
# Tags that write a value, also in the middle of a string.
_WRITING_TAGS: Final = frozenset({"<c:out", "<c:url", "<s:property", "<s:url", "<s:text"})
# The block of each tag, and whether it is a condition.
_CONDITIONAL_TAGS: Final = {
    **dict.fromkeys(("if", "cfif", "authorize"), ("if", True)),
    **{name: (name, False) for name in ("choose", "list", "switch")},
}
_TAG_REST: Final = re.compile(r"((?:[^<>\"']|\"[^\"]{0,500}+\"|'[^']{0,500}+'){0,500}+)>")
_QUOTED: Final = re.compile(r"""=\s*+(?:"([^"]{1,300}+)|'([^']{1,300}+))""")
_ASTRO_TEST: Final = re.compile(r"\s*+([^{}<`]{1,300}?)\s*(&&|\?|\|\|)\s*+\(?+\s*+<")
_ENDS: Final = re.compile(r"\s*+\}")
# An expression of HEEx with one level of braces inside.
_EXPRESSION: Final = re.compile(r"\{([^{}\n]{1,300}+(?:\{[^{}\n]{0,100}+\}[^{}\n]{0,100}+){0,9}+)\}")
_CLOSES_ITSELF: Final = re.compile(r"<\w{1,6}\b[^<>]{0,1000}+(?<=/)>")
_ATTRIBUTE_VALUE: Final = re.compile(r"""\{(["'`])([^"'`<>\n]{0,500}+)\1\}""")


class Elements(Reader):
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
        if (helper := scriptlets.HELPER.search(inner)) and (written := self._written(helper)):
            return self._insert(start, end + 2, written)
        if script := scriptlets.SCRIPT_BLOCK.match(inner):
            self._markup.open("end", None, end + 2, subject=scriptlets.SCRIPT)
            return self._insert(start, end + 2, scriptlets.script_of(script))
        if self._markup.subject == scriptlets.SCRIPT and inner.strip(" \n-") == "end":
            self._markup.close(start, "end")
            return self._insert(start, end + 2, "</script>")
        self._markup.copy(start)
        if self._dialect.kind in _WITH_WORDS or ("{" not in inner and "}" not in inner and "(" not in inner):
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
        shows = self._text.startswith("<?=", start) or code.shows(self._text, start, end) or self._is_source(start)
        if not shows and self._code.matters:
            self._code.read(start + 2, end)
        return self._take(start, min(end + 2, len(self._text)), shows=shows)

    # <c:if test="…">, <cfif …>, <#if …>

    def _tags(self, found: re.Match[str]) -> int | None:
        text, start, mark = self._text, found.start(), found[0].lower()
        if closing := _TAG_COMMENTS.get(mark):
            end = self._find(closing, start)
            return None if end < 0 else self._take(start, end + len(closing))
        tag = None if text.startswith("-", found.end()) else _TAG_REST.match(text, found.end())
        if tag is None:
            return None
        quoted = _QUOTED.search(tag[1]) if ":" in mark else None
        test = quoted[1] or quoted[2] if quoted else tag[1]
        name = mark.lstrip("</").rpartition(":")[2].lstrip("#@")
        if mark.lstrip("</").startswith("s:else"):
            return None  # follows the tag of the condition instead of being inside of it
        if mark in _WRITING_TAGS:
            return self._take(start, tag.end(), shows=True)
        known = self._tag(name, test, start, tag.end(), closes=mark.startswith("</"))
        if not known and ":" in mark:
            return None
        return self._take(start, tag.end())

    def _tag(self, name: str, test: str, start: int, end: int, *, closes: bool) -> bool:
        """Reads a tag of a condition. Returns False if the tag is something else."""
        markup = self._markup
        if name in _CONDITIONAL_TAGS:
            block, is_condition = _CONDITIONAL_TAGS[name]
            if closes:
                markup.close(start, block)
            else:
                markup.open(block, test if is_condition else None, end)
        elif name in {"elseif", "cfelseif", "when"}:
            if not closes:
                markup.turn(test, start, end)
        elif name in {"else", "cfelse", "otherwise"}:
            if not closes:
                markup.turn(None, start, end)
        else:
            return False
        return True

    def _interpolation(self, found: re.Match[str]) -> int:
        return self._take(found.start(), found.end(), shows=True)

    # {condition && <script …>}

    def _astro(self, found: re.Match[str]) -> int | None:
        start, mark, markup = found.start(), found[0].lower(), self._markup
        if mark in {"<script", "<style"}:
            if closed := _CLOSES_ITSELF.match(self._text, start):
                markup.copy(closed.end() - 2)
                markup.write(f"></{mark[1:]}>")
                return closed.end()
            end = self._find(f"</{mark[1:]}", start)
            return None if end < 0 else end
        if mark == "{":
            if self._text.startswith("/*", start + 1):
                return self._commented(start)
            if value := _ATTRIBUTE_VALUE.match(self._text, start):
                return self._attribute_value(start, value)
            self._open_expression(start + 1)
        elif mark == "}":
            markup.close(start, "{")
        elif markup.inside == "{":
            markup.turn(None, start, start + 1)
        return None

    def _commented(self, start: int) -> int | None:
        """Leaves out a comment at the beginning of an expression, and the expression if there is nothing else in it."""
        end = self._find("*/", start)
        if end < 0:
            return None
        if ends := _ENDS.match(self._text, end + 2):
            return self._take(start, ends.end())
        self._open_expression(end + 2)
        return self._take(start, end + 2)

    def _open_expression(self, at: int) -> None:
        """Opens an expression whose elements may depend on the condition that it starts with."""
        test = _ASTRO_TEST.match(self._text, at)
        self._markup.open("{", test[1] if test else None, at, holds=not test or test[2] != "||")

    def _attribute_value(self, start: int, value: re.Match[str]) -> int:
        """Makes a quoted value of `src={"…"}`."""
        if start and self._text[start - 1] == "=":
            self._markup.copy(start)
            self._markup.write(' "' + value[2].replace('"', "'") + '" ')
        return value.end()

    def _expression_value(self, found: re.Match[str]) -> int | None:
        start = found.start()
        if value := _ATTRIBUTE_VALUE.match(self._text, start):
            return self._attribute_value(start, value)
        if (value := _EXPRESSION.match(self._text, start)) is None:
            return None
        return self._replace(start, value.end(), f'"{self._markup.variables.first_in(value[1]) or "___"}"')

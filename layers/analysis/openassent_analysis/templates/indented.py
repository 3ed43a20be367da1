"""Reads templates that nest by indentation (Pug, Haml, Slim), line by line: the elements that load something.

An element becomes HTML whose attributes are copied from the file, so that a place in it is a place in the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from openassent_analysis.reading import resource
from openassent_analysis.templates import scriptlets
from openassent_analysis.templates.dialects import find_includes
from openassent_analysis.templates.markup import Markup

_KINDS: Final = {"pug": "Pug", "haml": "Haml", "slim": "Slim"}
_LANGUAGES: Final = resource("template-languages")["languages"]
# The expressions of the parts of a line, by language.
_TAG: Final = {language: re.compile(_LANGUAGES[kind]["tag"]) for language, kind in _KINDS.items()}
_SCRIPT_FILTER: Final = {language: re.compile(_LANGUAGES[kind]["script_filter"]) for language, kind in _KINDS.items()}
_COMMENT: Final = {language: re.compile(_LANGUAGES[kind]["comment"]) for language, kind in _KINDS.items()}
_STATEMENT: Final = {
    language: re.compile(_LANGUAGES[kind]["statement"], re.DOTALL) for language, kind in _KINDS.items()
}
# Only these are read: everything else on the page loads nothing.
_ELEMENTS: Final = frozenset({"script", "img", "iframe", "noscript", "amp-analytics"})
_VOID: Final = frozenset({"img"})
_PLAIN_FILTER: Final = re.compile(r":(?:plain|erb)\b")
_OPEN_SCRIPT: Final = re.compile(r"<script\b(?![^\n]*</script)", re.IGNORECASE)
_OUTPUT: Final = re.compile(r"[!&]?+==?")
# name = "value", :name => 'value', "name": `value`, name=value
_ATTRIBUTE: Final = re.compile(
    r"""(?<![\w$.])["':]?+(?P<name>[@a-zA-Z_](?:[\w.-]|:(?=\w))*+)["']?+\s*+(?:=>|!?+=(?!=)|:(?!:))\s*+"""
    r"""(?P<value>"[^"\n]{0,1000}+"|'[^'\n]{0,1000}+'|`[^`\n]{0,1000}+`)?+"""
)
# An expression as a value, up to the next comma.
_EXPRESSION: Final = re.compile(
    r"""(?:[^"'`\n(),]|\((?:[^()\n]|\([^()\n]{0,99}\)){0,300}\)|"[^"\n]{0,300}"|'[^'\n]{0,300}'|`[^`\n]{0,300}`){1,300}"""
)
_VARIABLE: Final = re.compile(r"[@$]?[A-Za-z_]\w{1,60}+")
_DATA: Final = re.compile(r"""["':]?+data["']?+\s*+(?:=>|[:=])\s*+\{""")
_INTERPOLATED: Final = re.compile(r"[\#!$]\{[^{}\n]{0,300}+\}")
_OPENING: Final = {"(": ")", "{": "}", "[": "]"}
_MARKS: Final = re.compile(r"""[()\[\]{}]|"[^"\n]{0,1000}+"|'[^'\n]{0,1000}+'""")
_NEAR: Final = 4_000
_MAX_NESTED: Final = 20


@dataclass(slots=True)
class _Line:
    start: int
    end: int
    indent: int

    @property
    def content(self) -> int:
        return self.start + self.indent


def read(markup: Markup, language: str) -> None:
    """Reads the whole text."""
    find_includes(markup, _KINDS[language])
    _Reader(markup, language).run()


def _lines(text: str) -> Iterator[_Line]:
    start = 0
    while start < len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        line = text[start:end]
        stripped = line.lstrip(" \t")
        if stripped.strip():
            yield _Line(start, end, len(line) - len(stripped))
        start = end + 1


class _Reader:
    def __init__(self, markup: Markup, language: str) -> None:
        self._markup = markup
        self._text = markup.text
        self._language = language
        self._lines = list(_lines(markup.text))
        self._next = 0
        # Open blocks: the indentation, and the end tag, which is empty for a condition.
        self._open: list[tuple[int, str]] = []
        # True if no script ends after the last one that began.
        self._unended = False

    def run(self) -> None:
        while self._next < len(self._lines):
            line = self._lines[self._next]
            self._next += 1
            if line.start < self._markup.at:  # already read, as part of the attributes above
                continue
            self._read(line)
        self._close(0, "", len(self._text))
        self._markup.blank(len(self._text))

    def _read(self, line: _Line) -> None:
        text, at, language = self._text, line.content, self._language
        statement = _STATEMENT[language].match(text, at, line.end)
        again = bool(statement and re_else(statement[1]))
        self._close(line.indent, "else" if again else "", line.start)
        if _COMMENT[language].match(text, at, line.end) and not text.startswith("/=", at):
            self._body(line)
        elif _SCRIPT_FILTER[language].match(text, at, line.end):
            self._script(line, line.end)
        elif language == "haml" and _PLAIN_FILTER.match(text, at, line.end):
            self._plain(line)
        elif statement:
            self._statement(line, statement[1])
        elif text.startswith("<", at):
            self._markup.blank(at)
            self._copy(self._end_of_script(line))
        elif text.startswith(("|", "'"), at) and "<" in text[at : line.end]:
            self._markup.blank(at + 1)
            self._copy(line.end)
            if language == "slim":
                self._copy_body(line)
        elif output := _OUTPUT.match(text, at, line.end):
            self._output(line, output.end())
        else:
            self._element(line, at)

    def _close(self, indent: int, name: str, at: int) -> None:
        """Ends the blocks that a line with this indentation isn't in. A condition stays open for its `else`."""
        while self._open and self._open[-1][0] >= indent:
            if name == "else" and self._open[-1] == (indent, ""):
                return
            _, ending = self._open.pop()
            if ending:
                self._markup.blank(at)
                self._markup.insert(ending)
            else:
                self._markup.close(max(at - 1, 0), "block")

    def _statement(self, line: _Line, statement: str) -> None:
        statement = statement.strip().rstrip("{").strip()
        word, _, rest = statement.lstrip("} ").partition(" ")
        rest = rest.strip()
        markup, end = self._markup, line.end
        if word in {"if", "unless"} or statement.startswith(("if(", "unless(")):
            word = "if" if statement.startswith("if") else "unless"
            markup.open("block", statement[len(word) :], end, holds=word == "if")
            self._open.append((line.indent, ""))
        elif word in {"elsif", "elseif"} or (word == "else" and rest.startswith("if")):
            markup.turn(rest.removeprefix("if"), line.start, end)
        elif word == "else":
            markup.turn(None, line.start, end)
        markup.blank(end)

    def _output(self, line: _Line, start: int) -> None:
        markup = self._markup
        if script := scriptlets.SCRIPT_BLOCK.match(self._text[start : line.end]):
            self._script(line, line.end, scriptlets.script_of(script), "|'" if self._language == "slim" else "")
            return
        markup.blank(start)
        if self._language != "pug":
            scriptlets.read_modifier(markup, self._text[start : line.end].strip(), line.start, line.end)
        helper = scriptlets.HELPER.search(self._text, start, line.end)
        if helper and (written := scriptlets.elements_of(helper, markup.variables)):
            markup.blank(line.end - 1)
            markup.insert(written, line.content)
        elif "<" in self._text[start : line.end]:
            self._copy(line.end)
        markup.blank(line.end)

    def _element(self, line: _Line, at: int) -> None:
        text, markup = self._text, self._markup
        found = _TAG[self._language].match(text, at, line.end)
        if not found:
            markup.blank(line.end)
            return
        name, end = found[1].lower(), found.end()
        attributes_end = self._end_of_attributes(line, end)
        rest_start = attributes_end
        nested = (self._language == "pug" and text.startswith(":", rest_start)) or (
            self._language == "slim" and name == "noscript" and text.startswith(":", rest_start)
        )
        if name in _ELEMENTS:
            self._start_tag(line, name, end, attributes_end)
        markup.blank(rest_start)
        if name == "script":
            self._script_body(line, rest_start)
        elif name in _ELEMENTS and name not in _VOID:
            self._open.append((line.indent, f"</{name}>"))
        if nested:
            start = rest_start + 1
            while start < line.end and text[start] == " ":
                start += 1
            markup.blank(start)
            if start < line.end:
                self._element(_Line(line.start, max(line.end, markup.at), line.indent), start)
            return
        if markup.at < line.end:
            if name in _ELEMENTS and "<" in text[markup.at : line.end]:
                self._copy(line.end)
            markup.blank(line.end)

    def _end_of_attributes(self, line: _Line, at: int) -> int:
        text = self._text
        while text[at : at + 1] in _OPENING and text[at : at + 1]:
            end = _closing(text, at)
            if end < 0:
                return line.end
            at = end + 1
        if self._language == "slim" and at < line.end and text[at] == " ":
            end = at
            while attribute := _SLIM_ATTRIBUTE.match(text, end, line.end):
                end = attribute.end()
            return end
        return at

    def _start_tag(self, line: _Line, name: str, start: int, end: int) -> None:
        """Adds a start tag with the attributes in a part of the file."""
        markup, text = self._markup, self._text
        markup.blank(line.content)
        markup.insert(f"<{name}", line.content)
        data_ends = -1
        at = start
        while found := _ATTRIBUTE.search(text, at, end):
            at = found.end()
            if (data := _DATA.match(text, found.start(), end)) and found["name"] == "data":
                data_ends = text.find("}", data.end(), end)
                at = data.end()
                continue
            prefix = "data-" if found.start() < data_ends else ""
            markup.skip(found.start("value") if found["value"] else found.end())
            written = (prefix + found["name"]).replace("_", "-") if prefix else found["name"]
            value = _EXPRESSION.match(text, at, end) if written == "src" and not found["value"] else None
            if value and (address := markup.variables.first_in(value[0])):
                at = value.end()
                markup.insert(f' src="{address}"', found.start())
                continue
            if not found["value"] and written == "src" and (variable := _VARIABLE.match(text, at, end)):
                at = variable.end()
                markup.skip(at)
                markup.insert(' src="___"', found.start())
                continue
            if not found["value"]:
                markup.insert(f" {written}", found.start())
                continue
            markup.insert(f' {written}="', found.start())
            self._markup.skip(found.start("value") + 1)
            markup.write(_INTERPOLATED.sub(lambda match: "_" * len(match[0]), found["value"][1:-1]).replace('"', "'"))
            markup.skip(found.end())
            markup.insert('"', found.end() - 1)
        markup.skip(end)
        markup.insert(">", end)

    def _script_body(self, line: _Line, at: int) -> None:
        """Takes the script inside of a script element, and ends the element."""
        text, markup = self._text, self._markup
        rest = text[at : line.end].strip()
        if rest in {"", ".", "|"}:
            markup.blank(line.end)
        elif rest.startswith(("=", "!=")):
            markup.fill(line.end)
        else:
            self._copy(line.end)
        self._copy_body(line, drop="|'" if self._language == "slim" else "|")
        markup.insert("</script>")

    def _script(self, line: _Line, end: int, tag: str = "<script>", drop: str = "") -> None:
        self._markup.blank(end - 1)
        self._markup.insert(tag, line.content)
        self._markup.blank(end)
        self._copy_body(line, drop)
        self._markup.insert("</script>")

    def _plain(self, line: _Line) -> None:
        """Takes the lines inside of a filter that leaves them as they are: markup, or what a script contains."""
        inside = self._lines[self._next] if self._next < len(self._lines) else line
        if inside.indent > line.indent and not self._text.startswith("<", inside.content):
            self._script(line, line.end)
        else:
            self._copy_body(line)

    def _end_of_script(self, line: _Line) -> int:
        """Returns where a line of HTML ends. If a script begins in it, the line with its end tag does."""
        if self._unended or not _OPEN_SCRIPT.search(self._text, line.content, line.end):
            return line.end
        end = self._text.find("</script", line.end)
        self._unended = end < 0
        while self._next < len(self._lines) and self._lines[self._next].start <= end:
            line = self._lines[self._next]
            self._next += 1
        return line.end

    def _body(self, line: _Line) -> None:
        """Leaves out a line and the lines inside of it."""
        while self._next < len(self._lines) and self._lines[self._next].indent > line.indent:
            self._next += 1
        self._markup.blank(self._lines[self._next - 1].end)

    def _copy_body(self, line: _Line, drop: str = "") -> None:
        while self._next < len(self._lines) and self._lines[self._next].indent > line.indent:
            inside = self._lines[self._next]
            self._next += 1
            if drop and self._text[inside.content] in drop:
                self._markup.blank(inside.content + 1)
            self._copy(inside.end)

    def _copy(self, end: int) -> None:
        """Takes a part of the file as it is, except interpolated values."""
        for found in _INTERPOLATED.finditer(self._text, self._markup.at, end):
            self._markup.copy(found.start())
            self._markup.fill(found.end())
        self._markup.copy(end)


_SLIM_ATTRIBUTE: Final = re.compile(
    r"""\s++[@a-zA-Z_][\w:.-]*+==?(?:"[^"\n]{0,1000}+"|'[^'\n]{0,1000}+'|\{[^}\n]{0,500}+\}|\((?:[^()\n]|\([^()\n]{0,99}\)){0,300}\)|[\w.@]++(?:\([^()\n]{0,200}+\))?+)"""
)
_ELSE: Final = re.compile(r"\}?\s*+(?:else|elsif|elseif)\b")


def re_else(statement: str) -> bool:
    return bool(_ELSE.match(statement))


def _closing(text: str, opening: int) -> int:
    """Returns where a bracket is closed, or -1 if that isn't near."""
    depth = 0
    for found in _MARKS.finditer(text, opening, opening + _NEAR):
        if found[0] in _OPENING:
            depth += 1
            if depth > _MAX_NESTED:
                break
        elif len(found[0]) == 1:
            depth -= 1
            if depth == 0:
                return found.start()
    return -1

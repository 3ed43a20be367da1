"""Reads code of languages with braces inside of a template's delimiters, mostly PHP: conditions, and what it writes."""

from __future__ import annotations

import re
from functools import cached_property
from typing import Final

from openassent_analysis.reading import alternatives, resource
from openassent_analysis.templates.brackets import after_blanks, closing_bracket
from openassent_analysis.templates.markup import Markup
from openassent_analysis.templates.scriptlets import NAMED_HELPER, written_by

# The address of an element of Drupal's among its attributes, and the code of an inline script.
_ATTRIBUTE: Final = re.compile(r"""[^;]{0,300}?["']src["']\s{0,9}=>(?P<address>[^;\n]{4,300})""")
_INLINE: Final = re.compile(r"""[^;]{0,300}?["']#value["']\s{0,9}=>(?=\s{0,20}["'])""")
# What comes before the code of wp_add_inline_script.
_HANDLE: Final = re.compile(r"""\s{0,99}+\(\s{0,99}+["'][^"'\n]{0,100}+["']\s*+,""")
# An address that printf takes from its arguments.
_FORMAT: Final = re.compile(r"""\ssrc\s?=\s?["']?%(?:\d\$)?s""")
_REST: Final = re.compile(r"[^;]{0,500}")
_SHOWS: Final = re.compile(r"<\?(?:php)?+\s++(?:echo|print|e|_e|esc_\w++|bloginfo|the_\w++)\b")
_WRITES: Final = re.compile(r"<(?:script|iframe|noscript|img)\b", re.IGNORECASE)
_LOADS: Final = re.compile(
    r"<(?:script|iframe|noscript|img|link)\b|(?:enqueue|register|inline)_script|_script_tag\b|_add_js\b"
    r"|->(?:add|append|prepend|register|script|js\b)|::(?:java)?script|captcha|ScriptTagJsApi|\#tag",
    re.IGNORECASE,
)


def shows(text: str, start: int, end: int) -> bool:
    """Returns whether a block of PHP only writes a value."""
    return end - start < 300 and bool(_SHOWS.match(text, start)) and not _WRITES.search(text, start, end)


_TOKEN: Final = re.compile(
    r"""["']\#tag["']\s{0,9}=>\s{0,9}["'](?P<attached>script|iframe)["']"""
    r"""|/\*|//|\#|["'`]|[(){};:]|<<<[ \t]*+["']?+(?P<heredoc>\w++)"""
    r"""|(?<![\w$>@.])(?P<word>if|elseif|else|endif|endforeach|endfor|endwhile|endswitch|foreach|for|while|switch|return|exit|die"""
    r"""|wp_(?:(?:enqueue|register|add_inline)_script|(?:print|get)_(?:inline_)?script_tag|die))\b"""
    r"""|\bfunction\s++&?+(?P<function>[A-Za-z_]\w*+)(?=\s{0,9}\()"""
    rf"""|(?P<adds>{alternatives(resource("template-languages")["adds"])})(?=\s{{0,4}}\()"""
    rf"""|(?P<helper>{NAMED_HELPER.pattern})"""
)
# The end is optional, so that a string without one is read only once.
_STRINGS: Final = {
    "'": re.compile(r"'[^'\\]*+(?:\\.[^'\\]*+)*+(')?+", re.DOTALL),
    '"': re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+(")?+', re.DOTALL),
    "`": re.compile(r"`[^`\\]*+(?:\\.[^`\\]*+)*+(`)?+", re.DOTALL),
}
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)
_VARIABLE: Final = re.compile(r"\{?\$[\w>-]++(?:\[[^\]\n]{0,60}+\])?+\}?+")
_ELSE_FOLLOWS: Final = re.compile(r"\s*+else")
_MAX_UNENDED: Final = 3


class Code:
    """Reads code of languages with braces: PHP, JavaScript, Java, C#."""

    def __init__(self, markup: Markup, kind: str) -> None:
        self._markup = markup
        self._text = markup.text
        self._hash_comments = kind in {"PHP", "Blade", "Smarty", "HTML"}
        self._unended = 0

    @cached_property
    def matters(self) -> bool:
        """False if the file has no markup that loads something, and contains no other template."""
        return self._markup.contains_templates or bool(_LOADS.search(self._text))

    def read(self, start: int, end: int) -> None:
        """Reads a block of code, without taking its last part."""
        _Block(self, self._markup, start, end, hash_comments=self._hash_comments).run()

    def end_of_heredoc(self, name: str, start: int, end: int) -> int:
        """Returns where the text of a heredoc ends, or -1."""
        at = start
        while self._unended < _MAX_UNENDED:
            at = self._text.find(name, at, end)
            if at < 0:
                self._unended += 1
                break
            line = self._text.rfind("\n", max(start, at - 200), at)
            if line >= 0 and not self._text[line:at].strip():
                return at
            at += len(name)
        return -1


class _Block:
    def __init__(self, code: Code, markup: Markup, start: int, end: int, *, hash_comments: bool) -> None:
        self._code = code
        self._markup = markup
        self._text = markup.text
        self._at = start
        self._end = end
        self._hash_comments = hash_comments
        self._dead_quotes: set[str] = set()
        self._depth = 0
        # The keyword whose condition is being read, the depth of brackets outside of it, and where it begins.
        self._keyword = ""
        self._outside = 0
        self._begins: int | None = None
        # The condition whose body comes next, and where it ended.
        self._test: str | None = None
        self._body_at: int | None = None
        self._writing = False
        # Writing the code of an inline script, until the end of the statement.
        self._in_script = False
        # The name of the function whose body comes next.
        self._function = ""
        # Depths of brackets at which statements without braces end.
        self._single: list[int] = []

    def run(self) -> None:
        while found := _TOKEN.search(self._text, self._at, self._end):
            self._at = found.end()
            written = found[0]
            if found["heredoc"]:
                self._before_body()
                self._heredoc(found)
            elif written in {"/*", "//", "#"}:
                self._comment(written, found.start())
            elif written in _STRINGS:
                self._before_body()
                self._string(written, found.start())
            elif found["attached"]:
                self._before_body()
                self._attach(found["attached"], found.start())
            elif found["adds"]:
                self._before_body()
                self._add(found.start())
            elif found["helper"]:
                self._markup.blank(self._at)
                self._markup.insert(written_by(written), found.start())
            elif found["word"]:
                self._word(written, found.start())
            elif found["function"]:
                self._function = found["function"]
            else:
                self._mark(written, found.start())

    def _comment(self, mark: str, start: int) -> None:
        if mark == "#" and not self._hash_comments:
            return
        end = self._text.find("*/" if mark == "/*" else "\n", start + 1, self._end)
        self._at = self._end if end < 0 else end + (2 if mark == "/*" else 0)

    def _string(self, quote: str, start: int) -> None:
        found = None if quote in self._dead_quotes else _STRINGS[quote].match(self._text, start, self._end)
        if found is None or not found[1]:
            self._dead_quotes.add(quote)
            return
        self._at = found.end()
        self._write(found.start() + 1, found.end() - 1, escapes=True, variables=quote == '"')

    def _heredoc(self, found: re.Match[str]) -> None:
        end = self._code.end_of_heredoc(found["heredoc"], found.end(), self._end)
        if end >= 0:
            self._write(
                found.end() + self._text.startswith(("'", '"'), found.end()), end, escapes=False, variables=True
            )
            self._at = end + len(found["heredoc"])

    def _write(self, start: int, end: int, *, escapes: bool, variables: bool) -> None:
        """Takes the text of a string if it is markup, or follows markup in the same statement."""
        content = self._text[start:end]
        if not (self._writing or self._in_script or _WRITES.search(content)):
            return
        if self._writing:
            self._markup.fill(start)
        else:
            self._markup.blank(start)
        self._writing = True
        if escapes:
            content = _ESCAPED.sub(_unescaped, content)
        if variables:
            content = _VARIABLE.sub(lambda match: "_" * len(match[0]), content)
        if placeholder := _FORMAT.search(content):
            self._write_format(content, placeholder.end(), _REST.match(self._text, end))
        else:
            self._markup.write(content)

    def _write_format(self, content: str, at: int, rest: re.Match[str] | None) -> None:
        """Takes the text of a format whose address is the first one in the rest of the statement."""
        self._markup.write(content[:at])
        self._markup.insert(self._markup.variables.first_in(rest[0]) if rest else "")
        self._markup.write(content[at:])

    def _word(self, word: str, start: int) -> None:
        markup = self._markup
        if word in {"return", "exit", "die", "wp_die"}:
            self._before_body()
            markup.leaves()
        elif word == "wp_add_inline_script":
            if handle := _HANDLE.match(self._text, self._at, self._end):
                self._add_code(start, handle.end())
        elif word.endswith("_inline_script_tag"):
            self._add_code(start, self._at)
        elif word.startswith("wp_"):
            self._add(start, "async ")  # in an order that the handles decide
        elif word.startswith("end"):
            markup.close(start, ":")
        elif word == "else":
            self._keyword, self._test, self._body_at = "else", None, self._at
        else:
            again = "else if" if self._keyword == "else" and word == "if" and self._body_at is not None else word
            if again == word:
                self._before_body()
            self._keyword, self._outside, self._begins, self._body_at = again, self._depth, None, None

    def _add(self, start: int, attribute: str = "") -> None:
        """Adds the scripts whose addresses are among the arguments of a call."""
        opening = after_blanks(self._text, self._at)
        end = closing_bracket(self._text, opening) if self._text.startswith("(", opening) else -1
        if end >= 0 and (scripts := self._markup.variables.scripts_in(self._text[self._at : end], attribute)):
            self._markup.blank(end)
            self._markup.insert(scripts, start)

    def _attach(self, name: str, start: int) -> None:
        """Adds an element of Drupal's."""
        load = _ATTRIBUTE.match(self._text, self._at, self._end)
        if load and (address := self._markup.variables.first_in(load["address"])):
            self._markup.blank(load.end())
            self._markup.insert(f'<{name} src="{address}"></{name}>', start)
        elif name == "script" and (inline := _INLINE.match(self._text, self._at, self._end)):
            self._add_code(start, inline.end())

    def _add_code(self, start: int, at: int) -> None:
        """Begins an inline script, whose code is in the strings up to the end of the statement."""
        self._before_body()
        self._depth += self._text.count("(", self._at, at)
        self._at = at
        self._markup.blank(self._at)
        self._markup.insert("<script>", start)
        self._in_script = True

    def _mark(self, mark: str, start: int) -> None:
        if mark == "(":
            self._before_body()
            if self._keyword not in {"", "else"} and self._begins is None and self._depth == self._outside:
                self._begins = self._at
            self._depth += 1
        elif mark == ")":
            self._depth -= 1
            if self._begins is not None and self._depth <= self._outside:
                self._test, self._body_at, self._begins = self._text[self._begins : start], self._at, None
        elif self._begins is not None:
            return  # inside of a condition
        elif mark == "{":
            self._open("{")
        elif mark == "}":
            self._close(start, "{")
        elif mark == ":" and self._body_at is not None:
            self._open(":")
        elif mark == ";":
            self._end_statement(start)

    def _end_statement(self, start: int) -> None:
        if self._in_script:
            self._markup.blank(start)
            self._markup.insert("</script>", start)
        self._writing = self._in_script = False
        self._function = ""
        self._before_body()
        self._keyword = ""
        while self._single and self._single[-1] >= self._depth:
            self._single.pop()
            self._close(start, ";")

    def _before_body(self) -> None:
        """Begins the body of a condition that has no braces, if there is one."""
        if self._body_at is not None:
            self._single.append(self._depth)
            self._open(";")

    def _open(self, name: str) -> None:
        markup, keyword, test = self._markup, self._keyword, self._test
        body = self._body_at is not None
        self._keyword, self._test, self._body_at = "", None, None
        function, self._function = self._function, ""
        if not body or keyword not in {"if", "else if", "elseif", "else"}:
            markup.open(name, None, self._at, function=function)
        elif keyword == "if":
            markup.open(name, test or "", self._at)
        elif name == ":":
            markup.turn(test, self._at, self._at)
        else:
            markup.reopen(test, self._at, name)

    def _close(self, start: int, name: str) -> None:
        markup = self._markup
        markup.close(start, name)
        closed = markup.closed
        if closed is not None and closed.leaves and not _ELSE_FOLLOWS.match(self._text, self._at):
            markup.leave(closed, self._at)


def _unescaped(match: re.Match[str]) -> str:
    return " " + (match[1] if match[1] in "\"'/\n" else " ")

"""Reads the code inside of a template's delimiters: its conditions, and the markup in its strings."""

from __future__ import annotations

import re
from typing import Final

from openassent_analysis.reading import alternatives, pattern_of, resource
from openassent_analysis.templates.markup import MAX_TEST, Markup, Test
from openassent_analysis.templates.variables import Variables

# Names of helpers of libraries, and the element that each writes.
_WRITTEN: Final[list[tuple[re.Pattern[str], str]]] = [
    (pattern_of(it["names"], re.IGNORECASE), it["writes"]) for it in resource("template-languages")["helpers"]
]
_NAMES: Final = "|".join(names.pattern for names, _ in _WRITTEN)
NAMED_HELPER: Final = re.compile(rf"(?=[A-Zaeghimpr])(?<![\w.:>'\"\\/-])(?<!def )(?<!function )(?:{_NAMES})")
# Parts of words of which one is in every text with such a name.
HELPER_MARKS: Final = ("js(", "aptcha", "JsApi", "tagmanager::", "tag_manager", "matomo", "piwik", "external_video")
# Helpers that write scripts or a frame: of Rails, Hexo, and these libraries.
HELPER: Final = re.compile(
    r"""\bjs\(["'](?P<own>/[\w./-]{4,200}+)["']"""
    r"""|\bjavascript_include_tag[\s(](?P<tags>(?:[^;%\n]|(?<=,)\s{0,3}\n){1,500})"""
    r"""|\bjs\((?P<scripts>(?:[^;%()]|\((?:[^;%()]|\([^;%()]{0,99}\)){0,99}\)){1,500})"""
    r"""|(?:\bcontent_tag[\s(]++:iframe\b|\btag\.iframe\b)[^;%]{0,300}?\bsrc(?::|\s?=>)(?P<frame>[^\n;%]{1,300})"""
    rf"""|{NAMED_HELPER.pattern}"""
)
# Helpers whose block is a script: of Rails.
SCRIPT_BLOCK: Final = re.compile(
    rf"\A\s*+[=~]?\s*+(?:{alternatives(resource('template-languages')['script_blocks'])})(?P<given>[\s(][^\n]{{0,500}})?\bdo\s*+-?\s*+$"
)
# What the innermost block has as its subject inside of such a script.
SCRIPT: Final = "<script>"
_GIVEN: Final = re.compile(
    r"""["']?\b(?P<name>[a-zA-Z][\w-]{0,60})["']?(?::|\s?=>)\s{0,4}(?:["'](?P<value>[^"'<>\n]{0,200})["']|(?P<object>\{))"""
)
_BLOCK_END: Final = re.compile(r"(?:\bdo(?:\s*+\|[^|]{0,100}+\|)?+|\bfn\b[^\n]{0,60}?->)\s*$")
# A condition behind a statement: `render 'analytics' if consented?`.
_MODIFIER: Final = re.compile(r"(?:render|yield|raw|include|partial|\w{0,40}_tag)\b.{0,200}?\s(if|unless)\s(.+)")
_FIRST_WORD: Final = re.compile(r"\s*+([A-Za-z]\w*+)")
_OTHER_BLOCKS: Final = frozenset({"case", "while", "until", "begin", "cond", "for"})
# The values of a branch: when "all", "analytics"
_MAX_CASES: Final = 8
_ASSIGNED_BLOCK: Final = re.compile(r"=\s*+(?:if|unless|case|begin|cond)\b")


def elements_of(helper: re.Match[str], variables: Variables) -> str:
    """Returns the elements that a helper writes, as far as their addresses are known."""
    if helper["own"]:
        return f'<script src="{helper["own"]}"></script>'
    if frame := helper["frame"]:
        address = variables.first_in(frame)
        return f'<iframe src="{address}"></iframe>' if address else ""
    if scripts := helper["scripts"] or helper["tags"]:
        return variables.scripts_in(scripts)
    return written_by(helper[0])


def written_by(helper: str) -> str:
    """Returns the element that a helper of a library writes."""
    return next(element for names, element in _WRITTEN if names.match(helper))


def script_of(helper: re.Match[str]) -> str:
    """Returns the start tag that a helper with a block writes."""
    written, prefix = "<script", ""
    for given in _GIVEN.finditer(helper["given"] or ""):
        if given["object"]:
            prefix = f"{given['name']}-"
        else:
            name = (prefix + given["name"]).replace("_", "-") if prefix else given["name"]
            written += f' {name}="{given["value"]}"'
    return f"{written}>"


def read_words(markup: Markup, inner: str, start: int, end: int) -> None:
    """Reads statements whose blocks end with `end`: Ruby, Elixir, Visual Basic."""
    lines = [line for line in inner.split("\n") if line.strip()]
    for line in lines:
        read_line(markup, line.strip().rstrip("-").strip(), start, end)


def read_modifier(markup: Markup, line: str, start: int, end: int) -> bool:
    """Reads the condition behind a statement. Returns False if it has none."""
    modified = _MODIFIER.match(line)
    if modified:
        markup.condition(start, end, Test(modified[2].strip()[:MAX_TEST], modified[1] == "if"))
    return modified is not None


def read_line(markup: Markup, line: str, start: int, end: int) -> None:
    if read_modifier(markup, line, start, end):
        return
    found = _FIRST_WORD.match(line)
    word = found[1].lower() if found else ""
    rest = line[found.end() :].strip() if found else line
    rest = rest.removesuffix(" do").removesuffix(" then").removesuffix(" Then")
    if word == "case" and rest:
        markup.open("end", None, end, subject=rest)
    elif word == "when" and (subject := markup.subject):
        values = [value.strip() for value in rest.split(",")]
        markup.turn(" or ".join(f"{subject} == {value}" for value in values[:_MAX_CASES]), start, end)
    elif word in {"if", "unless"} and not line.endswith(" end"):
        markup.open("end", rest, end, holds=word == "if")
    elif word in {"elsif", "elseif", "elif"}:
        markup.turn(rest, start, end)
    elif word == "else":
        later = _FIRST_WORD.match(rest)
        markup.turn(rest[later.end() :] if later and later[1].lower() == "if" else None, start, end)
    elif word == "end" or word.startswith(("endif", "endfor", "endwhile")):
        markup.close(start, "end")
    elif not line.endswith(" end") and (
        word in _OTHER_BLOCKS or _BLOCK_END.search(line) or _ASSIGNED_BLOCK.search(line)
    ):
        markup.open("end", None, end)


# Code in a string that adds a script, and middleware of Rack that adds a vendor's script to every page.
_ADDED: Final = (
    r"""createElement\(\\?["']script\\?["']\)[^<>]{0,300}?\.src\s{0,4}=\s{0,4}\\?["']"""
    r"""(?P<added>(?:https?:)?//[^"'\s<>\\]{4,300}+)"""
)
_MIDDLEWARE: Final = {
    "Rack::GoogleAnalytics": "//www.google-analytics.com/analytics.js",
    "Rack::GoogleTagManager": "//www.googletagmanager.com/gtm.js",
    "Rack::Piwik": "/piwik.js",
}
_USED: Final = rf"\bmiddleware\.use[ (]{{1,4}}(?P<middleware>{'|'.join(_MIDDLEWARE)})\b"
_ELEMENT: Final = re.compile(
    rf"<(?P<name>(?i:script|iframe))\b(?:[^<>]|<>){{0,1000}}+>?|(?i:{HELPER.pattern})|{_ADDED}|{_USED}"
)
_END: Final = re.compile(r"</script\s{0,9}>?", re.IGNORECASE)
_COMMENT: Final = re.compile(r"\s*(?:#(?!\{)|//|/?\*|--|@(?:[a-z]{0,9}doc|example|see|spec|param|returns?)\b)")
_ESCAPE: Final = re.compile(r"\\(?=[\"'/])")
# Code that joins two strings: `" + name + "` or `" . $name . "`. Its value isn't known.
_JOINED: Final = re.compile(
    r"""(?<!\\)(["'`])\s{0,200}(?:\+|\.|&|~|<>)(?:[^"'`;{}<>]{1,200}?(?:\+|\.|&|~|<>))?\s{0,200}\1"""
)
# Lower-case words of which one is in every text with an element.
_MARKS: Final = ("<script", "iframe", "javascript_include_tag", "js(", "createelement(", "rack::", "recaptcha_")
_LONGEST_SCRIPT: Final = 5_000
_LONGEST_LINE: Final = 500


def read_strings(markup: Markup) -> None:
    """Blanks everything but elements that are no part of a comment."""
    text = markup.text
    lower = text.lower()
    if not any(mark in lower for mark in _MARKS):
        markup.skip(len(text))
        return
    at = 0
    while element := _ELEMENT.search(text, at):
        start, at = element.span()
        line = text.rfind("\n", max(0, start - _LONGEST_LINE), start) + 1
        if _COMMENT.match(text, line, start):
            continue
        if element["name"] is None:
            added = element["added"] or _MIDDLEWARE.get(element["middleware"])
            markup.blank(at)
            script = f'<script src="{added}"></script>' if added else elements_of(element, markup.variables)
            markup.insert(script, start)
            continue
        if element["name"].lower() == "script" and (end := _END.search(text, at, at + _LONGEST_SCRIPT)):
            at = end.end()
        markup.blank(start)
        for joined in _JOINED.finditer(text, start, element.end()):
            _copy(markup, joined.start())
            markup.fill(joined.end())
        _copy(markup, at)
    markup.blank(len(text))


def _copy(markup: Markup, until: int) -> None:
    """Takes text of a string, without the marks that escape quotes."""
    for escape in _ESCAPE.finditer(markup.text, markup.at, until):
        markup.copy(escape.start())
        markup.blank(escape.end())
    markup.copy(until)

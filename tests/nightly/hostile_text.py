"""Generates text of any length that a parser almost accepts: general ones, and from a pattern's parse tree."""

import re
from collections.abc import Iterator
from itertools import islice
from re import _constants as codes  # type: ignore[attr-defined]  # the parse tree of a pattern, as re itself reads it
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any, NamedTuple

type Tree = list[tuple[Any, Any]]

_FEW, _MORE = 3, 8
_MANY = 10
_REPEATS = {codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT}


class Hostile(NamedTuple):
    """A text that repeats a unit between a prefix and a suffix."""

    start: str
    unit: str
    end: str = ""

    def text(self, size: int) -> str:
        return self.start + self.unit * (size // len(self.unit)) + self.end


_UNITS = (
    *" \t\n\r\0aA09_-.:;,=&%+/\\\"'`@#$<>()[]{}|*~^!?é\u0301\u200b\U0001f600\ud800",
    *('\\"', "\\'", "\\\\", '""', "[]", "{}", "[[", '{"a":', '"a":1,', '"",', "[1,", "\\u0000", "\\ud800", "1e9,"),
    *("a.", "a-", "a_", "a ", " a", "a,", "a;", "a=", "a=b&", "a=1;", " ;", "; ", "%41", "%zz", "%ff", "a/", "../"),
    *("\u0301\u0323", "ß", "\u212a", "xn--", "0x", "1.", "::", "a@", "@a.", "a@b.", "//a.", "//a/", "https://"),
    *('<a>; rel="', ',"a"', "a;q=1,", 'W/"a",', "bearer ", "\r\n", "\n\n", "\n ", "<a", "<a ", "<!--", "<script"),
    *("/*", "//", "${", "{{#if ", "{%if ", "<%if(", "import ", "import a from ", "const a", "const a=", "require("),
    *("a='", 'a="b"', "secret", 'secret="', "consent", "useConsent", "-eyJaaaaaaaaaa", "eyJaaaaaaaaaa.", "sk-a"),
    *('"node_modules/a":', "a@1:\n", "-----BEGIN ", "-----BEGIN PRIVATE KEY-----", "-----END ", "|| ", "^1 ", "```"),
    *("`a`", "> ", "# ", "@a", "GH-1", "5 a=\n", "[a](", "fdb-", "prj_", "assent_", "abcd-"),
)
PIECES = (
    *(Hostile("", unit) for unit in _UNITS),
    *(Hostile('["', unit) for unit in ("\\n", "\\u00e9", '\\"', "a")),
    *(Hostile('{"', unit, '"}') for unit in ("a", "\\\\")),
    *(Hostile("a", unit, "!") for unit in "a0 -._"),
    *(Hostile("[" + "[]," * 70 + '"', unit) for unit in ('\\"', "\\", "[")),
    *(Hostile("[", unit) for unit in ("[],", '{"a":0},', "[" * 62 + "]" * 62 + ",", '"",', "1,", "1", "1e300,")),
    *(Hostile("{", '"a":1,'), Hostile("[1e", "9", "]"), Hostile("a=", "%ff")),
)


def attacks(pattern: re.Pattern[Any] | str) -> Iterator[Hostile]:
    """Yields texts that the pattern almost matches: a prefix, a repeated unit, and a suffix that ends the match."""
    written, flags = (pattern, 0) if isinstance(pattern, str) else (pattern.pattern, pattern.flags & ~re.DEBUG)
    tree = list(parser.parse(written, flags))
    letters = _letters(tree)
    seen: set[Hostile] = set()
    for hostile in _attacks(tree, letters):
        if hostile.unit and hostile not in seen:
            seen.add(hostile)
            yield hostile


def _attacks(tree: Tree, letters: str) -> Iterator[Hostile]:
    for letter in letters:
        yield Hostile("", letter, "\x01")
    for word in {word for word in _words(tree) if len(word) > 1}:
        yield from (Hostile("", word), Hostile("", f"{word} "), Hostile("", f"-{word}"))
    for start, pump in _repeats(tree, "", letters):
        yield from (Hostile(start, pump, "\x01"), Hostile(start, pump, "\n!"), Hostile(start, pump))
        if start:
            yield from (Hostile("", start), Hostile("", start + pump), Hostile("", pump + start))
            yield Hostile("", start + pump * _MANY)
    for whole in islice(_samples(tree, letters), _MORE):
        yield from (Hostile("", whole), Hostile("", whole[:-1]), Hostile("", whole[:-1] + "\x01"))


def _repeats(tree: Tree, start: str, letters: str) -> Iterator[tuple[str, str]]:
    """Yields (prefix, one iteration) of each repetition without a small upper bound."""
    for operation, argument in tree:
        if operation in _REPEATS:
            _, most, inner = argument
            if most > 4:
                yield from ((start, pump) for pump in islice(_samples(list(inner), letters), _MORE) if pump)
            yield from _repeats(list(inner), start, letters)
        else:
            for inner in _inner(operation, argument):
                yield from _repeats(inner, start, letters)
        start += next(_samples([(operation, argument)], letters), "")


def _inner(operation: Any, argument: Any) -> list[Tree]:
    if operation is codes.SUBPATTERN:
        return [list(argument[3])]
    if operation is codes.ATOMIC_GROUP:
        return [list(argument)]
    if operation is codes.BRANCH:
        return [list(branch) for branch in argument[1]]
    if operation in {codes.ASSERT, codes.ASSERT_NOT}:
        return [list(argument[1])]
    return [list(argument[2])] if operation in _REPEATS else []


def _samples(tree: Tree, letters: str) -> Iterator[str]:
    """Yields short texts that the tree matches, or nearly: the first sample of each node, then the others in turn."""
    parts = [list(islice(_of_node(operation, argument, letters), _MORE)) or [""] for operation, argument in tree]
    first = [part[0] for part in parts]
    yield "".join(first)
    for place, part in enumerate(parts):
        for other in part[1:]:
            yield "".join([*first[:place], other, *first[place + 1 :]])


def _of_node(operation: Any, argument: Any, letters: str) -> Iterator[str]:
    if operation is codes.LITERAL:
        yield chr(argument)
    elif operation is codes.NOT_LITERAL:
        yield from [letter for letter in letters if letter != chr(argument)][:_MORE]
    elif operation is codes.ANY:
        yield from letters[:_MORE]
    elif operation is codes.IN:
        yield from [letter for letter in letters if _is_in(argument, letter)][:_MORE] or [_first_of(argument)]
    elif operation in _REPEATS:
        least, _, inner = argument
        for sample in islice(_samples(list(inner), letters), _MORE):
            yield sample * max(1, least)
    elif operation not in {codes.ASSERT, codes.ASSERT_NOT}:
        for inner in _inner(operation, argument):
            yield from islice(_samples(inner, letters), _FEW)


def _is_in(items: Any, letter: str) -> bool:
    found, negated = False, False
    for operation, argument in items:
        if operation is codes.NEGATE:
            negated = True
        elif operation is codes.LITERAL:
            found |= letter == chr(argument)
        elif operation is codes.RANGE:
            found |= argument[0] <= ord(letter) <= argument[1]
        else:
            found |= re.fullmatch(_CATEGORIES[argument], letter) is not None
    return found is not negated


def _first_of(items: Any) -> str:
    for operation, argument in items:
        if operation in {codes.LITERAL, codes.RANGE}:
            return chr(argument if operation is codes.LITERAL else argument[0])
    return "a"


_CATEGORIES = {
    codes.CATEGORY_DIGIT: r"\d",
    codes.CATEGORY_NOT_DIGIT: r"\D",
    codes.CATEGORY_SPACE: r"\s",
    codes.CATEGORY_NOT_SPACE: r"\S",
    codes.CATEGORY_WORD: r"\w",
    codes.CATEGORY_NOT_WORD: r"\W",
}


def _letters(tree: Tree) -> str:
    """Returns a letter, the pattern's punctuation, one character of each kind, and the pattern's letters."""
    own = "".join(_words(tree))
    return "".join(dict.fromkeys("a" + "".join(it for it in own if not it.isalnum()) + ' 0A\n-_."' + own))[:28]


def _words(tree: Tree) -> Iterator[str]:
    """Yields the runs of literal characters at every depth."""
    word = ""
    for operation, argument in tree:
        if operation is codes.LITERAL:
            word += chr(argument)
            continue
        if word:
            yield word
            word = ""
        if operation is codes.IN:
            yield from (chr(value) for kind, value in argument if kind is codes.LITERAL)
        for inner in _inner(operation, argument):
            yield from _words(inner)
    if word:
        yield word

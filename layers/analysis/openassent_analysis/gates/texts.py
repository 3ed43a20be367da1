"""Decides the meaning of a template's condition for the visitor's choice, by its text.

Templates have many languages, so only their operators are read: negation, and, or, and comparisons.
"""

from __future__ import annotations

import re
from typing import Final

from openassent_analysis.gates import words
from openassent_analysis.gates.context import (
    ALWAYS,
    CHOICE,
    FLAG,
    MAYBE,
    NEVER,
    NOTHING,
    OTHER,
    Implied,
    Kind,
    Meaning,
    compared,
    conjunction,
    disjunction,
    negated,
)
from openassent_analysis.gating import SERVER, Export

_MAX_LENGTH: Final = 400
_MAX_DEPTH: Final = 20
_TOKEN: Final = re.compile(
    r"""\s+|"[^"]*"|'[^']*'|&&|\|\||\?\?|!==|===|!=|==|<>|!|\(|\)|[\w$@.:?\[\]/-]+|.""", re.DOTALL
)
_AND: Final = frozenset({"&&", "and", "AND"})
_OR: Final = frozenset({"||", "or", "OR", "??"})
# The part behind it is the value if nothing is stored.
_DEFAULT: Final = "??"
_FALSY: Final = frozenset({"0", "false", "FALSE", "False", "null", "NULL"})
_NOT: Final = frozenset({"!", "not", "NOT"})
_EQUAL: Final = frozenset({"==", "===", "eq", "is", "="})
_DIFFERENT: Final = frozenset({"!=", "!==", "<>", "ne", "neq"})
# Operators of Go's templates, which come before their operands.
_BEFORE: Final = frozenset({"and", "or", "eq", "ne"})
# Values that a comparison uses if nothing is stored.
_NOTHING: Final = frozenset(
    {"null", "Null", "nil", "None", "none", "undefined", "empty", "blank", "nothing", "Nothing"}
)
# Says that a value is missing, before or behind it.
_EMPTY: Final = re.compile(
    r"(?:^|\b)(?:empty|is_null|is_empty|isNull|isEmpty|IsNullOrEmpty|IsNullOrWhiteSpace|nil\?|blank\?|empty\?|isnull|notset)(?![\w-])"
)
_CONSTANT: Final = re.compile(r"[\"'\d]|true$|false$", re.IGNORECASE)
_READS_STORAGE: Final = re.compile(r"cookie|storage|session", re.IGNORECASE)
_SETTING: Final = re.compile(
    r"(?<![\w.])\$?\.?(?:site|theme|config|options?|settings|params|section\.settings|shop|env|ENV)(?:[.\[(]|->|::)"
    r"|\.Site\.|_?enabled?(?![a-z])|enable_|(?<![a-z])enable(?=[A-Z])"
    r"|getenv|get_option|get_theme_mod|get_setting|Rails\.|Settings\.|ENV\[|environment"
)
_READS_COOKIE: Final = re.compile(r"\$_COOKIE|[cC]ookies?(?:\[|\.get|::|\()|COOKIES|\.[cC]ookies?\.")
_PREFIX: Final = re.compile(r"(?:if|elseif|elsif|elif|unless|when|with)\b")


def meaning_of_text(text: str) -> Meaning:
    tokens = [token for token in _TOKEN.findall(text[:_MAX_LENGTH]) if not token.isspace()]
    if tokens and _PREFIX.fullmatch(tokens[0]):
        tokens = tokens[1:]
    return _Parser(tokens).any_of()


def implied_by_text(text: str, *, holds: bool) -> Implied:
    """Returns the gate implied by a template's condition that holds, or that doesn't."""
    found = meaning_of_text(text)
    return found.true if holds else found.false


class _Parser:
    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0

    def _next(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _take(self, wanted: frozenset[str]) -> bool:
        if self._next() in wanted:
            self._at += 1
            return True
        return False

    def any_of(self) -> Meaning:
        found = self._all_of()
        while self._next() in _OR:
            default = self._next() == _DEFAULT
            self._at += 1
            if default and self._is_no():
                self._at += 1
            else:
                found = disjunction(found, self._all_of())
        return found

    def _is_no(self) -> bool:
        """Returns whether the next value is one that says no: an empty string, or one that doesn't say yes."""
        value = self._next()
        return value in _FALSY or (value[:1] in {'"', "'"} and not words.says_yes(value.strip("\"'")))

    def _all_of(self) -> Meaning:
        found = self._one()
        while self._take(_AND):
            found = conjunction(found, self._one())
        return found

    def _one(self) -> Meaning:
        if self._take(_NOT):
            return negated(self._one())
        if self._next() in _BEFORE:
            return self._prefixed()
        start = self._at
        value = self._value()
        different = self._next() in _DIFFERENT
        if different or self._next() in _EQUAL:
            self._at += 1
            if self._take(_NOT):  # is not
                different = True
            if self._next() in _NOTHING:
                self._at += 1
                return value if different else negated(value)
            before = self._tokens[start : self._at - 1]
            literal = self._literal()
            if not literal and not self._next():  # cut off
                return value
            if len(before) == 1 and _CONSTANT.match(before[0]):  # 'yes' === $_COOKIE['consent']
                value, literal = _by_text(literal), before[0].strip("\"'")
            found = _comparison(value, literal)
            return negated(found) if different else found
        if self._at == start:
            self._at += 1
        return value

    def _prefixed(self) -> Meaning:
        """Reads an operator before its operands: `and .Site.Live (eq .Consent "yes")`."""
        operator = self._next()
        self._at += 1
        if operator in _EQUAL or operator in _DIFFERENT:
            value, literal = self._operand(), self._next().strip("\"'")
            self._at += 1
            found = _comparison(value, literal)
            return negated(found) if operator in _DIFFERENT else found
        found = self._operand()
        while self._next() not in {"", ")"} and self._depth < _MAX_DEPTH:
            operand = self._operand()
            found = conjunction(found, operand) if operator in _AND else disjunction(found, operand)
        return found

    def _operand(self) -> Meaning:
        if self._next() == "(":
            return self._value()
        self._at += 1
        return _by_text(self._tokens[self._at - 1]) if self._at <= len(self._tokens) else OTHER

    def _literal(self) -> str:
        start = self._at
        self._value()
        return " ".join(self._tokens[start : self._at]).strip("\"'")

    def _value(self) -> Meaning:
        """Reads up to the next operator outside of parentheses."""
        if self._next() == "(" and self._depth < _MAX_DEPTH:
            self._at += 1
            self._depth += 1
            found = self.any_of()
            self._depth -= 1
            self._take(frozenset({")"}))
            return found
        start, inside = self._at, 0
        while part := self._next():
            if part == "(":
                inside += 1
            elif part == ")":
                if not inside:
                    break
                inside -= 1
            elif not inside and (part in _AND or part in _OR or part in _EQUAL or part in _DIFFERENT):
                break
            self._at += 1
        return _by_text(" ".join(self._tokens[start : self._at]))


def _comparison(value: Meaning, literal: str) -> Meaning:
    return compared(value, positive=words.says_yes(literal), falsy=literal in {"false", "False", "0", ""})


def _by_text(text: str) -> Meaning:
    bare = text.strip("\"' ")
    if bare in {"true", "True", "1"}:
        return ALWAYS
    if bare in {"false", "False", "0", "nil", "null", "None"}:
        return NEVER
    if _EMPTY.search(text):
        return negated(_by_text(_EMPTY.sub("", text)))
    if _SETTING.search(text) and not _READS_COOKIE.search(text):
        # A setting isn't the visitor's choice. If its name speaks of consent, it may turn on a tool that asks.
        return MAYBE if words.strength(text) == 2 else OTHER
    if _READS_STORAGE.search(text) and words.KEY.search(text):
        return CHOICE if words.is_key(text) else OTHER
    return _by_server(text)


def by_name(name: str) -> Meaning:
    """Returns the meaning of a value that is known only by its name."""
    if words.lacks(name):
        return negated(CHOICE)
    if words.asks(name) and not words.refuses(name):
        return negated(MAYBE)
    strength = words.strength(name)
    if strength == 2:
        return FLAG if _is_question(name) else CHOICE
    return MAYBE if strength == 1 else OTHER


_QUESTION: Final = re.compile(r"(?:^|[.!\s])(?:has|is|can|should|did|may|allow)[_A-Z]\w*(?:\([^()]*\))?\??$")


_NAME: Final = re.compile(r"[$@]?(?:\w{1,40}(?:\.|->)){0,3}(?P<name>\w{2,60}[?]?)(?:\s?\(\s?\w{0,20}\s?\))?", re.ASCII)


def _by_server(text: str) -> Meaning:
    """Returns the meaning of a name that server code may give the visitor's choice."""
    found = by_name(text)
    name = _NAME.fullmatch(text) if found in {OTHER, MAYBE} else None
    if name is None:
        return found
    return Meaning(found.true._replace(providers=frozenset({Export(SERVER, name["name"])})), NOTHING, Kind.FLAG)


def _is_question(name: str) -> bool:
    return bool(_QUESTION.search(name[-200:]))

"""Text from repositories and rules as Markdown that GitHub shows literally.

It can't mention users, reference issues, break out of a code block, or hide anything. Inline code in backticks is kept.
"""

import re

_MOST_LINES = 30
# Inserted after the sign, so that the code host recognizes neither a mention nor a reference.
_BREAK = "\u200b"
_MARKUP = re.compile(r"[\\*_\[\]<>|~&]")
_SIGN = re.compile(r"([@#])(?=\w)")
_REFERENCE = re.compile(r"\b(GH-)(?=\d)", re.IGNORECASE)
_LINE_START = re.compile(r"^([ \t]*)(#+|=+|-{2,}|\+)(?=\s|$)", re.MULTILINE)
_BACKTICKS = re.compile("`+")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]")


def prose(text: str) -> str:
    """Escapes text as Markdown that renders it literally, keeping paragraphs, lists, and inline code."""
    pieces = _CONTROL.sub("", text.strip().replace("\r\n", "\n").replace("\r", "\n")).split("`")
    if len(pieces) % 2 == 0:  # an unpaired backtick isn't code
        return _escape("`".join(pieces)).replace("`", "\\`")
    return "".join(
        _escape(piece) if number % 2 == 0 else code_span(piece) for number, piece in enumerate(pieces) if piece
    )


def _escape(text: str) -> str:
    text = _MARKUP.sub(lambda found: "&amp;" if found[0] == "&" else "\\" + found[0], text)
    text = _LINE_START.sub(r"\1\\\2", text)
    return _REFERENCE.sub(rf"\1{_BREAK}", break_signs(text))


def break_signs(text: str) -> str:
    """Returns the text, which isn't Markdown, without mentions and references."""
    return _SIGN.sub(rf"\1{_BREAK}", text)


def one_line(text: str) -> str:
    """Returns the text on one line, without control characters."""
    return " ".join(_CONTROL.sub(" ", text).split())


def has_control_characters(text: str) -> bool:
    """Returns whether a code block shows something else than the text has, such as its lines in another direction."""
    return _CONTROL.search(text) is not None


def code_span(text: str) -> str:
    """Returns the text as inline code on one line, with a fence longer than any run of backticks in it."""
    plain = one_line(text)
    fence = "`" * (_longest_run(plain) + 1)
    pad = " " if plain.startswith("`") or plain.endswith("`") else ""
    return f"{fence}{pad}{plain}{pad}{fence}" if plain else ""


def code_block(text: str, language: str, most_lines: int | None = _MOST_LINES) -> str:
    """Returns the first lines of the text as a code block. most_lines: None for all of them."""
    lines = _CONTROL.sub("", text.replace("\r\n", "\n").replace("\r", "\n")).strip("\n").split("\n")
    shown = "\n".join(lines[:most_lines]) + ("\n…" if len(lines[:most_lines]) < len(lines) else "")
    return fenced(shown, language)


def fenced(text: str, language: str) -> str:
    """Returns the text, without any change, between fences that nothing in it can end."""
    fence = "`" * max(3, _longest_run(text) + 1)
    return f"{fence}{language}\n{text}\n{fence}" if text else f"{fence}{language}\n{fence}"


def _longest_run(text: str) -> int:
    return max((len(run) for run in _BACKTICKS.findall(text)), default=0)

"""Text from elsewhere, such as names of files and findings, made safe for a terminal or a page."""

_MARKDOWN = str.maketrans({character: f"\\{character}" for character in "\\`*_[]<>|#"})


def escaped(text: str) -> str:
    """Returns text so that Markdown shows it unchanged."""
    return text.translate(_MARKDOWN)


def printable(text: str) -> str:
    """Replaces control characters, which a terminal would obey, except for line feeds and tabs."""
    return "".join(it if it in "\n\t" or it.isprintable() else "\N{REPLACEMENT CHARACTER}" for it in text)


def printable_line(text: str) -> str:
    """Does the same for text that is only a part of a line."""
    return printable(" ".join(text.split()) if "\n" in text or "\t" in text else text)

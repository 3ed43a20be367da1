"""Text from elsewhere, such as names of files and findings, made safe for a terminal."""


def printable(text: str) -> str:
    """Replaces control characters, which a terminal would obey, except for line feeds and tabs."""
    return "".join(it if it in "\n\t" or it.isprintable() else "\N{REPLACEMENT CHARACTER}" for it in text)

"""Reads templates: turns a file of any template language into HTML, with the template's own conditions and includes.

Only three facts of a language are read: which text reaches the page, under which conditions, and which other
templates it contains. Everything is linear in the length of the text.
"""

from __future__ import annotations

from openassent_analysis.templates import delimited, indented, scriptlets
from openassent_analysis.templates.attributes import read_attributes
from openassent_analysis.templates.dialects import Dialect, dialect_of
from openassent_analysis.templates.markup import Markup, Template

__all__ = ["Dialect", "Template", "dialect_of", "read_template"]


def read_template(path: str, text: str) -> Template | None:
    """Returns the HTML that a file writes into pages, or None if all of it is code of a language with a grammar."""
    dialect = dialect_of(path)
    if dialect is None:
        return None
    markup = Markup(text)
    if dialect.in_strings:
        scriptlets.read_strings(markup)
    elif dialect.indented:
        indented.read(markup, dialect.indented)
    else:
        delimited.read(markup, dialect)
    read_attributes(markup)
    return markup.template()

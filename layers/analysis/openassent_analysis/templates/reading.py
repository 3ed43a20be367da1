"""Reads a template of any language."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from openassent_analysis.templates import delimited, indented, scriptlets
from openassent_analysis.templates.attributes import read_attributes
from openassent_analysis.templates.dialects import dialect_of
from openassent_analysis.templates.markup import Markup, Template


def read_template(path: str, text: str, given: Mapping[str, str] = MappingProxyType({})) -> Template | None:
    """Returns the HTML that a file writes into pages, or None if all of it is code of a language with a grammar."""
    dialect = dialect_of(path)
    if dialect is None:
        return None
    markup = Markup(text, given)
    if dialect.in_strings:
        scriptlets.read_strings(markup)
    elif dialect.indented:
        indented.read(markup, dialect.indented)
    else:
        delimited.read(markup, dialect)
    read_attributes(markup)
    return markup.template()

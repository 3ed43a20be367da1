"""The kinds of functions in the syntax trees of every language that the analysis follows."""

from typing import Final

FUNCTIONS: Final = frozenset({
    "function_declaration", "function_expression", "arrow_function", "method_definition",
    "generator_function_declaration", "function_definition",
})  # fmt: skip

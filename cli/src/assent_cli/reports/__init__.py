"""The findings of a local scan in each format: text for people, JSON, SARIF, and GitHub's annotations."""

from collections.abc import Callable
from enum import StrEnum

from assent_cli.local import LocalReport
from assent_cli.reports import annotations, documents, sarif, text


class Format(StrEnum):
    TEXT = "text"
    JSON = "json"
    SARIF = "sarif"
    GITHUB = "github"


PRINTERS: dict[Format, Callable[[LocalReport], None]] = {
    Format.TEXT: text.print_report,
    Format.JSON: documents.print_report,
    Format.SARIF: sarif.print_report,
    Format.GITHUB: annotations.print_report,
}

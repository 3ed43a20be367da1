"""Prints each format."""

from collections.abc import Callable

from openassent_cli.local import LocalReport
from openassent_cli.output import print_json
from openassent_cli.reports import Format, annotations, sarif, text

PRINTERS: dict[Format, Callable[[LocalReport], None]] = {
    Format.TEXT: text.print_report,
    # Also what --baseline reads.
    Format.JSON: lambda report: print_json(report.as_json()),
    Format.SARIF: sarif.print_report,
    Format.GITHUB: annotations.print_report,
}

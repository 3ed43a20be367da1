"""CSV for spreadsheets, which don't execute anything in it."""

import csv
import io
from collections.abc import Iterable, Sequence

# Spreadsheets evaluate a cell that begins with one of these. https://owasp.org/www-community/attacks/CSV_Injection
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
# Without it, Excel reads UTF-8 as another encoding.
_BYTE_ORDER_MARK = "\ufeff"


def to_csv(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Returns a table with these columns."""
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_ALL)
    writer.writerow(columns)
    for cells in rows:
        writer.writerow(map(_as_text, cells))
    return _BYTE_ORDER_MARK + text.getvalue()


def _as_text(cell: str) -> str:
    """Returns the cell so that a spreadsheet takes it as text: a formula gets an apostrophe in front."""
    return f"'{cell}" if cell.lstrip(" ").startswith(_FORMULA) else cell

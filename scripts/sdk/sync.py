"""Makes the synchronous client of the SDK from the asynchronous one, so that both are written once."""

import re
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "cli" / "src" / "openassent"
ASYNC = PACKAGE / "_async"
SYNC = PACKAGE / "_sync"

_REPLACEMENTS = (
    (re.compile(r"\basync (def|for|with)\b"), r"\1"),
    (re.compile(r"\bawait "), ""),
    (re.compile(r"\bopenassent\._async\b"), "openassent._sync"),
    # AsyncAssent, AsyncIterator, httpx.AsyncClient.
    (re.compile(r"\bAsync([A-Z]\w*)"), r"\1"),
    (re.compile(r"\b__a(iter|next|enter|exit)__"), r"__\1__"),
    (re.compile(r"\baclose\b"), "close"),
    (re.compile(r"\bsleep_async\b"), "sleep"),
)
_HEADER = "# Made from {} by `make sdk`.\n"


def texts() -> dict[Path, str]:
    """Returns the modules of the synchronous client by path."""
    return {
        SYNC / path.name: _HEADER.format(path.relative_to(PACKAGE)) + synchronous(path.read_text())
        for path in sorted(ASYNC.glob("*.py"))
    }


def synchronous(text: str) -> str:
    """Returns asynchronous code as synchronous code."""
    for pattern, replacement in _REPLACEMENTS:
        text = pattern.sub(replacement, text)
    return text

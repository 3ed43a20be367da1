"""The code that installs the consent library c15t for a project's consent instance.

It is that of the fixes that scans offer: `scripts/rule_texts.py` makes `snippets.json` from the analysis.
"""

import json
from functools import cache
from pathlib import Path
from typing import NamedTuple

_STORED = Path(__file__).with_name("snippets.json")


class Snippet(NamedTuple):
    """Code for a framework, and the command that installs its package."""

    framework: str
    install: str
    code: str


def list_snippets(runtime_url: str | None) -> list[Snippet]:
    """Returns the snippets. With the instance's address, the choices of visitors are also recorded there."""
    return [
        Snippet(
            it["framework"],
            it["install"],
            it["hosted"].replace("{runtime_url}", runtime_url) if runtime_url else it["offline"],
        )
        for it in _read_stored()
    ]


@cache
def _read_stored() -> list[dict[str, str]]:
    stored: list[dict[str, str]] = json.loads(_STORED.read_text())
    return stored

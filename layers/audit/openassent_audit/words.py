"""Words, scripts, and rules that come as files of this package."""

import json
import re
from functools import cache
from pathlib import Path
from typing import Any, Final

from openassent_analysis.reading import load_yaml, pattern_of

_RESOURCES: Final = Path(__file__).with_name("resources")


@cache
def words() -> dict[str, Any]:
    """Returns the lists of words. Don't change them."""
    found: dict[str, Any] = load_yaml(_RESOURCES / "words.yaml")
    return found


@cache
def expression(name: str) -> re.Pattern[str]:
    """Returns the expression that finds one of the list's alternatives, in any case."""
    return pattern_of(words()[name], re.IGNORECASE)


@cache
def script(name: str) -> str:
    return (_RESOURCES / f"{name}.js").read_text(encoding="utf-8")


@cache
def autoconsent() -> tuple[str, list[dict[str, Any]]] | None:
    """Returns the script and the rules of autoconsent, or None in a checkout that `make` hasn't prepared.

    They are the files of the npm package (MPL-2.0), which a release contains with their license.
    """
    folder = _RESOURCES / "autoconsent"
    try:
        code = (folder / "autoconsent.playwright.js").read_text(encoding="utf-8")
        rules: list[dict[str, Any]] = json.loads((folder / "rules.json").read_bytes())["autoconsent"]
    except FileNotFoundError:
        return None
    return code, rules

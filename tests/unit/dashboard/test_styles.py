"""All style sheets of the pages are joined into one, so a name of one screen must not style another."""

import re
from pathlib import Path

import dashboard

STATIC = Path(dashboard.__file__).parent / "static"


def leading_classes(sheet: str) -> set[str]:
    """Returns the classes with which the selectors of a sheet begin."""
    text = re.sub(r"/\*.*?\*/", "", sheet, flags=re.DOTALL)
    selectors = [it for group in re.findall(r"([^{}]+)\{", text) for it in group.split(",")]
    return {found[1] for it in selectors if (found := re.match(r"\s*\.([\w-]+)", it))}


def test_a_class_of_a_screen_is_styled_by_its_own_sheet_alone():
    classes = {path.name: leading_classes(path.read_text()) for path in STATIC.glob("*.css")}
    shared = classes.pop("style.css")
    assert {"card", "panel", "badge"} <= shared
    seen: dict[str, str] = {}
    for sheet, names in sorted(classes.items()):
        assert {name: seen[name] for name in (names - shared) & seen.keys()} == {}, sheet
        seen |= dict.fromkeys(names - shared, sheet)

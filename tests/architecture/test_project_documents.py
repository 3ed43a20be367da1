"""The index of decisions lists every decision, and the newest release in the changelog has the project's version."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DECISIONS = ROOT / "docs" / "decisions"


def test_the_index_lists_every_decision_in_order():
    titles = []
    for page in sorted(DECISIONS.glob("0*.md")):
        number, title = page.read_text().splitlines()[0].removeprefix("# ").split(". ", 1)
        assert page.name.startswith(number.rjust(4, "0"))
        titles.append(f"| {number} | [{title}]({page.name}) |")
    rows = [line for line in (DECISIONS / "README.md").read_text().splitlines() if "](" in line]
    assert rows == titles


def test_the_newest_release_has_the_version_of_the_project():
    releases = re.findall(r"^## (\S+) \(\d{4}-\d\d-\d\d\)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert releases[0] == tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]

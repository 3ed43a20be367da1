"""The documents name what exists: decisions, the newest release, and the tests of each invariant."""

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
    assert releases[:1] in ([], [tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]])


def test_every_invariant_names_tests_that_exist():
    rows = re.findall(r"^\| (\d+) \|.*\| ([^|]+) \|$", (ROOT / "docs" / "invariants.md").read_text(), re.MULTILINE)
    assert [int(number) for number, _ in rows] == [*range(1, len(rows) + 1)]
    assert len(rows) >= 22
    for number, tests in rows:
        for module in tests.split(";"):
            path, *names = re.findall(r"`([^`]+)`", module)
            text = (ROOT / path).read_text()
            missing = [name for name in names if not re.search(rf"def {name}\(", text)]
            assert missing == [], f"{number}: {path} has no {', '.join(missing)}"

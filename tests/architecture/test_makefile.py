"""`make help` describes every target, and docs/development.md names every target."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TARGET = re.compile(r"^([a-z0-9-]+):[^=\n]*?(?:## (.*))?$", re.MULTILINE)
TARGETS = dict(TARGET.findall((ROOT / "Makefile").read_text()))


class TestTargets:
    def test_each_has_a_line_in_the_help(self):
        assert [name for name, line in TARGETS.items() if not line] == []

    def test_each_stands_in_the_document_on_development(self):
        document = (ROOT / "docs" / "development.md").read_text()
        assert [name for name in TARGETS if name != "help" and f"`make {name}`" not in document] == []

    def test_the_expected_ones_are_there(self):
        expected = {"run", "reset", "test", "check", "build", "e2e", "bench", "deploy", "openapi"}
        assert expected <= TARGETS.keys()

"""`make help` describes every target, and docs/development.md names every target."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TARGET = re.compile(r"^([a-z0-9-]+):[^=\n]*?(?:## (.*))?$", re.MULTILINE)
TARGETS = dict(TARGET.findall((ROOT / "Makefile").read_text()))


class TestTargets:
    def test_each_target_has_a_line_in_the_help(self):
        assert [name for name, line in TARGETS.items() if not line] == []

    def test_each_target_is_in_the_development_guide(self):
        document = (ROOT / "docs" / "development.md").read_text()
        assert [name for name in TARGETS if name != "help" and f"`make {name}`" not in document] == []

    def test_the_expected_targets_exist(self):
        expected = {"run", "reset", "test", "check", "build", "e2e", "bench", "deploy", "openapi"}
        assert expected <= TARGETS.keys()

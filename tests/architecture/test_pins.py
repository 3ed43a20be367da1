"""Pinned dependencies: every lock file has hashes and no index URLs, and all agree on the deployed versions.

GitHub Actions are pinned, too.
"""

import json
import re
from pathlib import Path

from tests.support.each import each

ROOT = Path(__file__).resolve().parents[2]
RUNTIME = ROOT / "layers/shared/requirements.txt"
DEPLOYED = sorted([*ROOT.glob("layers/*/requirements.txt"), *ROOT.glob("functions/*/requirements.txt")])
TOOLS = sorted((ROOT / "requirements").glob("*.txt"))
LOCKS = DEPLOYED + TOOLS
PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;]+)")
PLACE = re.compile(r"://|--(?:extra-)?index-url|--find-links|(?:^|\s)-[if]\s| @ ", re.MULTILINE)

USES = re.compile(r"^\s*(?:- )?uses: *(.*)$", re.MULTILINE)
# The comment is the release, for people and for tools that propose updates.
PINNED = re.compile(r"\./\S+|[\w.-]+(?:/[\w.-]+)+@[0-9a-f]{40}  # v\d+\.\d+\.\d+")


def read_pins(lock: Path) -> dict[str, str]:
    return {match[1]: match[2] for line in lock.read_text().splitlines() if (match := PIN.match(line))}


@each("lock", LOCKS, ids=lambda lock: str(lock.relative_to(ROOT)))
class TestLock:
    def test_a_lock_file_names_no_index_and_no_url(self, lock):
        assert PLACE.findall(lock.read_text()) == []

    def test_a_lock_file_pins_every_distribution_with_hashes(self, lock):
        text = lock.read_text().replace("\\\n", " ")
        distributions = [line for line in text.splitlines() if line and not line.lstrip().startswith("#")]
        assert distributions
        assert [line for line in distributions if not PIN.match(line) or "--hash=sha256:" not in line] == []


def test_development_uses_exactly_the_deployed_versions():
    development = read_pins(ROOT / "requirements/dev.txt")
    deployed = {(lock.parent.name, *pin) for lock in DEPLOYED for pin in read_pins(lock).items()}
    assert {(place, name, development.get(name)) for place, name, _ in deployed} == deployed


def test_the_npm_lock_names_no_url_and_has_a_hash_for_every_package():
    lock = (ROOT / "package-lock.json").read_text()
    assert PLACE.findall(lock) == []
    packages = json.loads(lock)["packages"]
    # A bundled package is part of another one's archive, and so of its hash.
    hashed = [name for name, package in packages.items() if name and not package.get("inBundle")]
    assert [name for name in hashed if "integrity" not in packages[name]] == []


def test_workflows_and_examples_pin_actions_to_commits():
    """A tag or a branch can be moved to other code. A local path is part of the same commit."""
    files = [*ROOT.glob(".github/**/*.y*ml"), ROOT / "action.yml", *ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
    used = [action for file in files for action in USES.findall(file.read_text())]
    assert len(used) > 3
    assert [action for action in used if not PINNED.fullmatch(action)] == []

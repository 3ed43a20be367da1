"""make lint holds docs/openapi.json to every rule of two linters, and CI does not go on without them."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def checkout(tmp_path):
    """A checkout in which nothing was installed."""
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts" / "lint-openapi", tmp_path / "scripts")
    return tmp_path


def _run(checkout: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    inherited = {name: value for name, value in os.environ.items() if name != "CI"}
    return subprocess.run(
        [checkout / "scripts" / "lint-openapi"],
        env=inherited | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def _install(checkout: Path, tool: str, script: str) -> None:
    place = checkout / "node_modules" / ".bin" / tool
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(f"#!/bin/sh\n{script}\n")
    place.chmod(0o755)


class TestWithoutTheTools:
    def test_somebodys_machine_says_what_was_left_out(self, checkout):
        done = _run(checkout)
        assert (done.returncode, "were not found" in done.stderr) == (0, True)

    def test_ci_fails(self, checkout):
        assert _run(checkout, CI="true").returncode == 1


class TestWithTheTools:
    @pytest.mark.parametrize("finding", ["spectral", "redocly"])
    def test_a_finding_of_either_fails_and_is_shown(self, checkout, finding):
        for tool in ("spectral", "redocly"):
            _install(checkout, tool, "echo it is wrong; exit 1" if tool == finding else "exit 0")
        done = _run(checkout)
        assert (done.returncode, done.stdout) == (1, "it is wrong\n")

    def test_neither_reports_home(self, checkout):
        for tool in ("spectral", "redocly"):
            _install(checkout, tool, 'test "$REDOCLY_TELEMETRY $REDOCLY_SUPPRESS_UPDATE_NOTICE" = "off true"')
        assert _run(checkout).returncode == 0


class TestTheRules:
    def test_of_spectral_are_all_there_are(self):
        assert yaml.safe_load((ROOT / ".spectral.yaml").read_text()) == {"extends": [["spectral:oas", "all"]]}

    def test_of_redocly_are_the_strict_ones(self):
        rules = yaml.safe_load((ROOT / "redocly.yaml").read_text())
        assert rules == {"extends": ["recommended-strict"], "telemetry": "off"}

    def test_come_in_versions_that_are_pinned(self):
        package = json.loads((ROOT / "package.json").read_text())
        ranges = {**package["devDependencies"], **package["optionalDependencies"]}
        assert {"@redocly/cli", "@stoplight/spectral-cli"} <= ranges.keys()
        assert [name for name, version in ranges.items() if not version.replace(".", "").isdecimal()] == []

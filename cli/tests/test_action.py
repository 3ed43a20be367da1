"""The GitHub Action: its steps run in a shell, with a Python that installs this tree's command line."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from cli.tests.support.shell import run_git
from local.checkout import ROOT

STEPS = yaml.safe_load((ROOT / "action.yml").read_text())["runs"]["steps"]
TRACKER = '<script src="https://static.hotjar.com/c/hotjar-1234567.js?sv=6"></script>\n'
# Installs a program in the environment that it makes.
PYTHON = f"""#!/bin/sh
mkdir -p "$RUNNER_TEMP/assent/bin"
echo 'exec {sys.executable} -c "from openassent_cli.program import run; run()" "$@"' >"$RUNNER_TEMP/assent/bin/assent"
chmod +x "$RUNNER_TEMP/assent/bin/assent"
"""


@pytest.fixture
def repository(tmp_path):
    """A repository with a branch that adds a tracker."""
    folder = tmp_path / "repository"
    folder.mkdir()
    run_git(folder, "init", "--quiet")
    run_git(folder, "commit", "--quiet", "--allow-empty", "--message", "Start")
    run_git(folder, "switch", "--quiet", "--create", "feature")
    (folder / "index.html").write_text(TRACKER)
    run_git(folder, "add", ".")
    run_git(folder, "commit", "--quiet", "--message", "Measure")
    return folder


def run_steps(repository: Path, **inputs: str) -> subprocess.CompletedProcess[str]:
    """Runs the steps that have a script, as GitHub does. Returns the last one."""
    temporary = repository.parent
    (temporary / "python").write_text(PYTHON)
    (temporary / "python").chmod(0o755)
    values = {"steps.python.outputs.python-path": str(temporary / "python")}
    values |= {f"inputs.{name.replace('_', '-')}": value for name, value in inputs.items()}
    for step in STEPS:
        if "run" in step:
            given = {name: values[text.strip("${ }")] for name, text in step["env"].items()}
            environment = os.environ | given | {
                "GITHUB_ACTIONS": "true",
                "GITHUB_ACTION_PATH": str(temporary),
                "GITHUB_BASE_REF": "main",
                "PYTHONPATH": os.pathsep.join(sys.path),
                "RUNNER_TEMP": str(temporary),
            }  # fmt: skip
            command = ["bash", "-e", "-o", "pipefail", "-c", step["run"]]
            done = subprocess.run(command, cwd=repository, env=environment, capture_output=True, text=True, check=False)
    return done


def test_fails_for_new_findings(repository):
    ended = run_steps(repository, fail_on="P0", sarif="found $(touch owned).sarif")
    assert ended.returncode == 3, ended.stderr
    assert "::error file=index.html,line=1" in ended.stdout
    assert (repository / "found $(touch owned).sarif").exists()
    assert run_steps(repository, fail_on="$(touch owned)", sarif="assent.sarif").returncode == 2
    assert not (repository / "owned").exists()


def test_installs_only_files_whose_hashes_are_known():
    (install,) = (step["run"] for step in STEPS if "pip" in step.get("run", ""))
    assert {"--require-hashes", "--no-deps", "--requirement"} < {*install.split()}


def test_the_hook_refuses_what_a_commit_adds(repository):
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    words = shlex.split(hook["entry"])[1:]
    empty = repository.parent / "empty"
    empty.mkdir()
    run_git(empty, "init", "--quiet")
    for folder in (repository, empty):
        (folder / "new.html").write_text(TRACKER)
        command = [sys.executable, "-c", "from openassent_cli.program import run; run()", *words]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
        assert subprocess.run(command, cwd=folder, env=environment, check=False).returncode == 3

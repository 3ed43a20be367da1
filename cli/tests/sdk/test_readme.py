"""The examples in cli/README.md run against the documented service."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

import openassent
from cli.tests.support.documented_service import DocumentedService
from cli.tests.support.script import run
from openassent import Assent, AsyncAssent

ROOT = Path(__file__).parents[3]
EXAMPLES = re.findall(r"```python\n(.*?)```", (ROOT / "cli" / "README.md").read_text(), re.DOTALL)


def defined_names(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Runs the examples on clients without a network, and returns what they define."""

    def connected(client_type: type) -> Any:
        def create(**options: Any) -> Any:
            return client_type(**{**options, "transport": httpx.MockTransport(DocumentedService())})

        return create

    monkeypatch.setattr(openassent, "Assent", connected(Assent))
    monkeypatch.setattr(openassent, "AsyncAssent", connected(AsyncAssent))
    defined: dict[str, Any] = {}
    for example in EXAMPLES:
        exec(example.replace("client: Assent", "client"), defined)
    return defined


def test_the_examples_run(monkeypatch, capsys, pauses):
    names = defined_names(monkeypatch)
    printed = capsys.readouterr().out
    assert re.search(r"^prj_\w+ \w+", printed)
    transport = httpx.MockTransport(DocumentedService())
    client = Assent(base_url="https://api.assent.test", api_key="x", transport=transport)
    assert names["newest_projects"](client)
    names["rename"](client, "prj_1")
    assert names["create_organization"](client).startswith("org_")
    assert names["new_findings"](client, "rep_1") >= 0
    assert names["findings"](client, "prj_1", "aud_01kb2m3n4p5q6r7s8t")
    assert run(names["names"]("x"))
    assert names["sign_in"]("https://api.assent.test").startswith("assent_")
    assert names["receive"](b"{}", {}, "whsec_a2V5") == 400


def test_the_examples_have_the_right_types(tmp_path):
    for number, example in enumerate(EXAMPLES):
        (tmp_path / f"example_{number}.py").write_text(example)
    command = [sys.executable, "-m", "mypy", "--config-file", ROOT / "pyproject.toml", "--strict", tmp_path]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout

"""The stored part of GitHub's OpenAPI description: complete, licensed, and no more than the client names."""

import json
import re
from pathlib import Path

from jsonschema import Draft202012Validator

ROOT = Path(__file__).resolve().parents[3]
CONTENT = json.loads((ROOT / "tests/data/github-openapi.json").read_text())


class TestDescription:
    def test_the_description_contains_its_license(self):
        assert CONTENT["license"].startswith("MIT License")

    def test_the_description_contains_the_operations_that_the_client_names(self):
        source = Path("layers/shared/controlplane/code_host/github")
        text = "".join(path.read_text() for path in (ROOT / source).glob("*.py"))
        named = set(re.findall(r'"(/(?:repos|app|user|installation)(?:/[^"]*)?)"', text))
        assert named == {operation.split()[1] for operation in CONTENT["operations"]}

    def test_the_description_has_no_broken_references(self):
        referred = set(re.findall(r'"#/\$defs/([^"]+)"', json.dumps(CONTENT)))
        assert referred == set(CONTENT["$defs"])

    def test_the_description_is_json_schema(self):
        for definition in CONTENT["$defs"].values():
            Draft202012Validator.check_schema(definition)

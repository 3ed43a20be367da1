"""The stored copy of GitHub's OpenAPI description: complete, licensed, and at the version that the script pins."""

import json
import re
from pathlib import Path

from jsonschema import Draft202012Validator

from scripts import github_schemas

CONTENT = json.loads(github_schemas.TARGET.read_text())


class TestDescription:
    def test_the_description_has_the_version_that_the_script_downloads(self):
        assert CONTENT["source"] == f"{github_schemas.PACKAGE} {github_schemas.VERSION}"

    def test_the_description_contains_its_license(self):
        assert CONTENT["license"].startswith("MIT License")

    def test_the_description_contains_only_the_operations_we_call(self):
        assert tuple(CONTENT["operations"]) == github_schemas.OPERATIONS

    def test_the_description_contains_only_the_webhooks_we_check(self):
        assert tuple(CONTENT["webhooks"]) == github_schemas.WEBHOOKS

    def test_the_description_contains_the_operations_that_the_client_names(self):
        source = Path("layers/shared/controlplane/code_host/github")
        root = Path(__file__).resolve().parents[3]
        text = "".join(path.read_text() for path in (root / source).glob("*.py"))
        named = set(re.findall(r'"(/(?:repos|app|user|installation)(?:/[^"]*)?)"', text))
        assert named == {operation.split()[1] for operation in CONTENT["operations"]}

    def test_the_description_has_no_broken_references(self):
        referred = set(re.findall(r'"#/\$defs/([^"]+)"', json.dumps(CONTENT)))
        assert referred == set(CONTENT["$defs"])

    def test_the_description_is_json_schema(self):
        for definition in CONTENT["$defs"].values():
            Draft202012Validator.check_schema(definition)


class TestNull:
    def test_null_is_allowed_in_addition_to_the_type(self):
        assert github_schemas._with_null({"type": "string"}) == {"type": ["string", "null"]}

    def test_null_is_allowed_in_addition_to_a_list_of_values(self):
        schema = github_schemas._with_null({"type": "string", "enum": ["a"]})
        assert schema == {"type": ["string", "null"], "enum": ["a", None]}

    def test_null_is_allowed_in_addition_to_a_combination(self):
        schema = github_schemas._with_null({"oneOf": [{"type": "string"}]})
        assert schema == {"anyOf": [{"oneOf": [{"type": "string"}]}, {"type": "null"}]}

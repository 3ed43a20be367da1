"""All files of the reference: what they are, and what the introduction promises in the product's name."""

import json
import re

import pytest

from controlplane.errors import CATALOGUE
from controlplane.plans import PLANS
from controlplane.scopes import API_KEY_SCOPES, SCOPES
from controlplane.settings import Settings
from controlplane.store.token_families import ACCESS_SECONDS
from scripts.openapi.words import DOCUMENT
from scripts.reference import __main__ as program
from scripts.reference.site import build

OPERATION = {"operationId": "getThing", "tags": ["Things"], "description": "One thing.", "responses": {}}
SMALL = {
    "info": {"title": "a control plane", "version": "2.0.0", "summary": "Things, and no more."},
    "tags": [{"name": "Things", "description": "What there is."}],
    "paths": {"/v1/things": {"get": OPERATION}},
}


@pytest.fixture(scope="module")
def files() -> dict[str, str]:
    return build(json.loads(DOCUMENT.read_text(encoding="utf-8")))


@pytest.fixture(scope="module")
def introduction(files: dict[str, str]) -> str:
    return files["introduction.md"]


class TestIntroduction:
    def test_lists_every_scope_and_which_of_them_keys_have(self, introduction: str):
        found = dict(re.findall(r"^\| `([a-z-]+\.[a-z]+)` \| .+ \| (yes|no) \|$", introduction, re.MULTILINE))
        assert found == {scope: "yes" if scope in API_KEY_SCOPES else "no" for scope in SCOPES}
        assert len(API_KEY_SCOPES) == 6  # "the same six"

    def test_lists_every_plan(self, introduction: str):
        found = re.findall(r"^\| (\w+) \| ([\d,]+|no API access) \| ([\d,]+) \|$", introduction, re.MULTILINE)
        assert found == [
            (plan.name, f"{plan.requests_per_minute:,}" if plan.api_access else "no API access", f"{plan.projects:,}")
            for plan in PLANS.values()
        ]

    def test_lists_every_code(self, introduction: str):
        assert set(re.findall(r"^\| \d{3} \| `([A-Z_]+)` \|", introduction, re.MULTILINE)) == set(CATALOGUE)

    def test_says_how_fast_and_how_long_a_user_token_works(self, introduction: str):
        assert Settings.model_fields["requests_per_minute_user_token"].default == 600
        assert "user token 600." in " ".join(introduction.split())
        assert ACCESS_SECONDS == 3_600
        assert "An access token lives an hour" in " ".join(introduction.split())


class TestFiles:
    def test_are_the_same_each_time(self, files: dict[str, str]):
        assert build(json.loads(DOCUMENT.read_text(encoding="utf-8"))) == files

    def test_of_the_smallest_document_are_whole(self):
        made = build(SMALL)
        assert "A control plane" in made["index.html"]
        assert made["getThing.md"].startswith("# getThing\n\n`GET /v1/things`\n\nOne thing.\n")
        assert "> Things, and no more." in made["llms.txt"]

    def test_are_named_after_their_content(self):
        names = {name for name in build(SMALL) if name.endswith((".css", ".js"))}
        assert all(re.fullmatch(r"(style|script)\.[0-9a-f]{16}\.(css|js)", name) for name in names)
        assert len(names) == 2

    def test_one_anchor_for_two_places_is_refused(self):
        tags = [{"name": "Errors"}]
        with pytest.raises(ValueError, match="errors"):
            build({**SMALL, "tags": tags, "paths": {"/v1/things": {"get": {**OPERATION, "tags": ["Errors"]}}}})


class TestProgram:
    @pytest.fixture
    def target(self, tmp_path, monkeypatch: pytest.MonkeyPatch):
        document = tmp_path / "openapi.json"
        document.write_text(json.dumps(SMALL))
        monkeypatch.setattr(program, "DOCUMENT", document)
        monkeypatch.setattr(program, "TARGET", tmp_path / "reference")
        return tmp_path / "reference"

    def run(self, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> None:
        monkeypatch.setattr("sys.argv", ["reference", *arguments])
        program.main()

    def test_writes_what_is_new_and_removes_what_is_gone(self, target, monkeypatch: pytest.MonkeyPatch):
        self.run(monkeypatch)
        (target / "getThing.md").write_text("old")
        (target / "gone.md").write_text("old")
        self.run(monkeypatch)
        assert {path.name: path.read_text() for path in target.iterdir()} == build(SMALL)
        self.run(monkeypatch, "--check")

    @pytest.mark.parametrize("name", ["getThing.md", "extra.md"])
    def test_check_fails_where_a_file_differs(self, target, name: str, monkeypatch: pytest.MonkeyPatch):
        self.run(monkeypatch)
        (target / name).write_text("other")
        with pytest.raises(SystemExit, match=name):
            self.run(monkeypatch, "--check")

"""The reference's files."""

import json
import re

from scripts.reference import __main__ as program
from scripts.reference.site import build

OPERATION = {
    "operationId": "getThing",
    "summary": "Get a thing",
    "tags": ["Things"],
    "description": "One thing.",
    "responses": {},
}
SMALL = {
    "info": {"title": "a control plane", "version": "2.0.0", "summary": "Things, and no more."},
    "tags": [{"name": "Things", "description": "What there is."}],
    "paths": {"/v1/things": {"get": OPERATION}},
}


class TestFiles:
    def test_assets_are_named_after_their_content(self, tmp_path):
        (tmp_path / "redoc.js").write_text("start();")
        files = build(json.dumps(SMALL), redoc=tmp_path / "redoc.js")
        names = {name for name in files if name.endswith((".css", ".js"))}
        assert sorted(re.sub(r"[0-9a-f]{16}", "", name) for name in names) == ["script..js", "search..js", "style..css"]
        pages = files["index.html"] + files["reference.html"]
        assert all(f'{name}"' in pages for name in names)

    def test_without_npm_the_page_lists_the_operations_and_the_reference_loads_no_script(self, tmp_path):
        files_by_name = build(json.dumps(SMALL), redoc=tmp_path / "absent.js")
        assert "<script" not in files_by_name["reference.html"]
        assert '<a href="docs/getThing.md">Get a thing</a>' in files_by_name["index.html"]

    def test_the_documents_text_is_escaped_on_the_page(self):
        operation = {**OPERATION, "summary": "<script>alert(1)</script>"}
        files_by_name = build(json.dumps({**SMALL, "paths": {"/v1/things": {"get": operation}}}))
        assert "<script>alert" not in files_by_name["index.html"]


class TestProgram:
    def test_the_program_writes_new_files_and_removes_old_ones(self, tmp_path, monkeypatch):
        document, target = tmp_path / "openapi.json", tmp_path / "reference"
        document.write_text(json.dumps(SMALL))
        monkeypatch.setattr(program, "DOCUMENT", document)
        monkeypatch.setattr(program, "TARGET", target)
        program.main()
        (target / "getThing.md").write_text("old")
        (target / "gone.md").write_text("old")
        program.main()
        assert {path.name: path.read_text() for path in target.iterdir()} == build(json.dumps(SMALL))

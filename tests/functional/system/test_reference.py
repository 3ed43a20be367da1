"""GET /docs, /docs/{fileName}, /llms.txt, and /openapi.json: files that the build generates."""

import base64
import hashlib
import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

import pytest

from controlplane.core.settings import settings
from scripts import artifacts
from scripts.openapi.words import DOCUMENT
from system import documents
from tests.support.api import Api, Reply
from tests.support.operations import operations
from tests.support.world import table_dump

BASE = "https://api.assent.test"
PAGES = "https://dashboard.assent.test"
DOCUMENTS = [
    "/docs",
    "/docs/introduction.md",
    "/docs/createProject.md",
    "/docs/reference.md",
    "/llms.txt",
    "/openapi.json",
]
FILES = Path(documents.__file__).parent / "reference"
DESCRIBED = sorted(str(o.route.operation_id) for o in operations() if o.route.include_in_schema)


class Page(HTMLParser):
    """A page's resources, links, and anchors, and every attribute that could run code."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def all(self, attribute: str, *tags: str) -> list[str]:
        return [
            value
            for tag, attributes in self.tags
            if not tags or tag in tags
            if (value := attributes.get(attribute)) is not None
        ]


@pytest.fixture
def shown(api: Api) -> Reply:
    return api.get("/docs")


@pytest.fixture
def page(shown: Reply) -> Page:
    return Page(shown.text)


@pytest.mark.parametrize("path", DOCUMENTS)
class TestEachDocument:
    def test_needs_no_credential_and_touches_no_table(self, path: str, api: Api):
        assert api.get(path).status == 200
        assert api.get(path, "assent_unknown").status == 200
        assert table_dump() == []

    def test_is_not_sent_again_to_who_has_it(self, path: str, api: Api):
        first = api.get(path)
        assert first.headers["cache-control"] == "public, max-age=300"
        for known in (
            first.headers["etag"],
            first.headers["etag"].removeprefix("W/"),
            f'"x", {first.headers["etag"]}',
            "*",
        ):
            again = api.get(path, headers={"If-None-Match": known})
            assert (again.status, again.text) == (304, "")
            for name in ("etag", "cache-control", "vary", "content-security-policy"):
                assert again.headers[name] == first.headers[name]

    @pytest.mark.parametrize("known", ["", '"x"', "W/", "x" * 5_000, "\u00e9", ",,,"])
    def test_is_sent_to_who_has_another(self, path: str, known: str, api: Api):
        assert api.get(path, headers={"If-None-Match": known}).status == 200

    def test_names_the_addresses_of_this_deployment(self, path: str, api: Api):
        assert BASE in api.get(path).text


class TestPage:
    def test_renders_the_document_with_a_script_of_its_own(self, page: Page):
        assert page.all("spec-url", "redoc") == ["openapi.json"]
        (script,) = page.all("src", "script")
        assert re.fullmatch(r"docs/script\.[0-9a-f]{16}\.js", script)

    def test_without_the_script_leads_to_every_operation(self, page: Page):
        assert {f"docs/{name}.md" for name in DESCRIBED} <= set(page.all("href", "a"))

    def test_allows_its_own_script_and_no_inline_code(self, shown: Reply):
        policy = shown.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self';" in policy
        assert "unsafe" not in policy
        # Inline styles are allowed only by hash, such as the empty one that Redoc's script fills.
        assert f"'sha256-{base64.b64encode(hashlib.sha256(b'').digest()).decode()}'" in policy

    def test_loads_nothing_from_elsewhere_and_runs_nothing_of_its_own(self, page: Page):
        for tag, attributes in page.tags:
            assert tag not in {"style", "iframe", "object", "embed", "base", "form"}
            assert "style" not in attributes
            assert not [name for name in attributes if name.startswith("on")]
        for address in [*page.all("src"), *page.all("href", "link")]:
            assert address.startswith("data:image/svg") or not urlsplit(address).scheme

    def test_leads_nowhere_in_vain(self, page: Page, api: Api):
        anchors = page.all("id")
        assert len(anchors) == len(set(anchors))
        for address in page.all("href"):
            if address.startswith("#"):
                assert address[1:] in anchors, address
            elif not address.startswith("data:"):
                target = urljoin(f"{BASE}/docs", address)
                if target.startswith(BASE):
                    assert api.get(urlsplit(target).path).status == 200, address

    def test_works_below_a_stage(self, page: Page):
        for address in [*page.all("src"), *page.all("href")]:
            assert not address.startswith("/"), address

    def test_leads_to_the_pages(self, page: Page):
        assert f"{PAGES}/" in page.all("href")

    def test_says_where_its_other_forms_are(self, shown: Reply):
        assert shown.headers["vary"] == "Accept, Accept-Encoding"
        assert '<docs/introduction.md>; rel="alternate"; type="text/markdown"' in shown.headers["link"]
        assert '<openapi.json>; rel="service-desc"; type="application/json"' in shown.headers["link"]

    @pytest.mark.parametrize(
        "accept",
        [
            "text/markdown",
            "text/markdown, text/html, */*",
            "Text/Markdown;q=0.9, text/html;q=0.8",
            "text/html;q=0.5, text/markdown ; q=0.6",
        ],
    )
    def test_is_markdown_for_who_would_rather_have_that(self, accept: str, api: Api):
        reply = api.get("/docs", headers={"Accept": accept})
        assert reply.headers["content-type"] == "text/markdown; charset=utf-8"
        assert reply.text == api.get("/docs/introduction.md").text
        assert reply.headers["vary"] == "Accept, Accept-Encoding"

    @pytest.mark.parametrize(
        "accept",
        [
            "",
            "*/*",
            "text/*",
            "text/html",
            "text/html, text/markdown;q=0.5",
            "text/markdown;q=0",
            "text/markdown;q=x",
            ";;,",
        ],
    )
    def test_is_a_page_for_everybody_else(self, accept: str, api: Api):
        assert api.get("/docs", headers={"Accept": accept}).headers["content-type"] == "text/html; charset=utf-8"


class TestFile:
    def test_there_is_one_for_every_operation(self, api: Api):
        for operation in operations():
            if operation.route.include_in_schema:
                reply = api.get(f"/docs/{operation.route.operation_id}.md")
                assert reply.headers["content-type"] == "text/markdown; charset=utf-8"
                assert reply.text.startswith("# ")
                assert f"`{operation.method} {operation.path}`" in reply.text
                assert "curl" in reply.text

    def test_there_is_no_other_markdown(self):
        found = {path.stem for path in FILES.glob("*.md")}
        assert found == {*DESCRIBED, "introduction", "reference"}

    def test_what_the_page_loads_may_be_kept_for_good(self, page: Page, api: Api):
        loaded = [*page.all("src"), *[a["href"] for tag, a in page.tags if a.get("rel") == "stylesheet"]]
        assert len(loaded) == 2
        for address in loaded:
            reply = api.get(f"/{address}")
            assert reply.headers["cache-control"] == "public, max-age=31536000, immutable"
            assert re.search(r"\.[0-9a-f]{16}\.(css|js)$", str(address))

    @pytest.mark.parametrize("name", ["reference.md", "introduction.md"])
    def test_links_lead_somewhere(self, name: str, api: Api):
        text = api.get(f"/docs/{name}").text
        links = set(re.findall(r"\]\(([^)\s]+)\)", text))
        assert len(links) > 5
        for link in links:
            assert link.startswith(f"{BASE}/"), link
            assert api.get(urlsplit(link).path).status == 200

    def test_the_whole_reference_has_all_of_it(self, api: Api):
        text = api.get("/docs/reference.md").text
        for operation in operations():
            if operation.route.include_in_schema:
                assert f"`{operation.method} {operation.path}`" in text

    @pytest.mark.parametrize(
        "name",
        [
            "nothing.md",
            "index.html",
            "llms.txt",
            "..",
            ".",
            "..%2fopenapi.json",
            "%2e%2e%2fopenapi.json",
            "routes.py",
            "CREATEPROJECT.md",
            "createProject",
            "createProject.md ",
            "createProject.md%00",
            "style.0000000000000000.css",
            "a" * 5_000,
            "%F0%9F%92%A9.md",
            "%ff",
            "\\",
            "*.md",
        ],
    )
    def test_404_for_any_other_name(self, name: str, api: Api):
        reply = api.get(f"/docs/{unquote(name, errors='replace')}")
        assert (reply.status, reply.code) == (404, "NOT_FOUND")


class TestLlms:
    def test_has_the_form_of_llmstxt_org(self, api: Api):
        reply = api.get("/llms.txt")
        assert reply.headers["content-type"] == "text/plain; charset=utf-8"
        lines = reply.text.splitlines()
        assert lines[0].startswith("# ")
        assert lines[2].startswith("> ")
        sections = [line for line in lines if line.startswith("## ")]
        assert sections[-1] == "## Optional"
        for line in reply.text.partition("\n## ")[2].splitlines()[1:]:
            assert not line or line.startswith("## ") or re.match(rf"- \[[^\]]+\]\({BASE}/[^)\s]+\): .+", line), line

    def test_lists_every_operation_and_no_address_that_is_none(self, api: Api):
        addresses = re.findall(r"\]\(([^)]+)\)", api.get("/llms.txt").text)
        listed = [address for address in addresses if address.endswith(".md")]
        assert {f"{BASE}/docs/{name}.md" for name in DESCRIBED} <= set(listed)
        for address in addresses:
            assert api.get(urlsplit(address).path).status == 200


class TestOpenapi:
    def test_is_the_committed_document_with_the_addresses_of_this_deployment(self, api: Api):
        reply = api.get("/openapi.json")
        committed = DOCUMENT.read_text(encoding="utf-8")
        served = committed.replace("https://api.assent.example", BASE).replace(
            "https://dashboard.assent.example", PAGES
        )
        assert reply.body == json.loads(served)
        assert reply.headers["content-type"] == "application/json"

    def test_names_who_answers_questions(self, api: Api, monkeypatch: pytest.MonkeyPatch):
        assert api.get("/openapi.json").body["info"]["contact"]["email"] == "api@assent.example"
        monkeypatch.setitem(settings.__dict__, "contact_email", "help@assent.test")
        assert api.get("/openapi.json").body["info"]["contact"]["email"] == "help@assent.test"


class TestPacked:
    def test_documents_are_served_as_if_they_were_not(self, api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        before = {path: api.get(path) for path in [*DOCUMENTS, "/docs/nothing.md", "/docs/introduction.md.gz"]}
        shutil.copytree(FILES, tmp_path / "reference")
        artifacts.pack(tmp_path)
        monkeypatch.setattr(documents, "_REFERENCE", tmp_path / "reference")
        documents._names.cache_clear()
        for path, answered in before.items():
            reply = api.get(path)
            assert (reply.status, reply.text) == (answered.status, answered.text)
            assert reply.headers["content-type"] == answered.headers["content-type"]
        documents._names.cache_clear()


class TestAddresses:
    @pytest.mark.parametrize("suffix", [".html", ".json", ".md"])
    def test_with_strange_signs_break_no_document(self, suffix: str, tmp_path: Path):
        """An operator controls this setting, but special characters must still be escaped."""
        file = tmp_path / f"file{suffix}"
        file.write_text('"https://api.assent.example"', encoding="utf-8")
        content, _ = documents._read(file, 'https://a.test/"<&', "https://b.test", "c@d.test")
        shown = {
            ".html": '"https://a.test/&quot;&lt;&amp;"',
            ".json": '"https://a.test/\\"<&"',
            ".md": '"https://a.test/"<&"',
        }
        assert content.decode() == shown[suffix]

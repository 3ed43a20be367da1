"""GET /docs, /docs/{fileName}, /docs/rules/{ruleId}, /llms.txt, and /openapi.json: files that the build generates."""

import base64
import hashlib
import json
import re
import shutil
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

import pytest

from controlplane.platform.core.settings import settings
from openassent_analysis.rules import rules
from scripts import artifacts
from scripts.openapi.texts import DOCUMENT
from scripts.reference.guides import guides
from system import documents
from tests.support.each import each
from tests.support.operations import operations
from tests.support.page import Page
from tests.support.reply import Reply
from tests.support.world import table_dump

BASE = "https://api.assent.test"
PAGES = "https://dashboard.assent.test"
DOCUMENTS = [
    "/docs",
    *(f"/docs/{name}" for name in ("errors", "errors.md", "introduction.md", "createProject.md", "redoc.json")),
    *("/docs/assistants", "/docs/pull-requests.md"),
    "/llms.txt",
    "/openapi.json",
]
RULES = ["/docs/reference", "/docs/rules", "/docs/rules/embedded-media"]
GUIDES = [guide.name for guide in guides()]
FILES = Path(documents.__file__).parent / "reference"
DESCRIBED = sorted(str(o.route.operation_id) for o in operations() if o.route.include_in_schema)


def values(page: Page, attribute: str, *tags: str) -> list[str]:
    """Returns the attribute's values, of the elements with one of the tags or of all."""
    return [it.attributes[attribute] for it in page.root.find(*tags) if attribute in it.attributes]


@pytest.fixture
def shown(api):
    return api.get("/docs")


@pytest.fixture
def page(shown):
    return Page(shown.text)


@each("path", DOCUMENTS + RULES)
def test_a_document_is_sent_to_everybody_until_it_is_known(path, api):
    first = api.get(path)
    assert (first.status, BASE in first.text or path in RULES) == (200, True)
    assert api.get(path, "assent_unknown").status == 200
    assert table_dump() == []
    etag = first.headers["etag"]
    assert first.headers["cache-control"] == "public, max-age=300"
    for known in (etag, etag.removeprefix("W/"), f'"x", {etag}', "*"):
        again = api.get(path, headers={"If-None-Match": known})
        assert (again.status, again.text) == (304, "")
        for name in ("etag", "cache-control", "vary", "content-security-policy"):
            assert again.headers[name] == first.headers[name]
    for other in ("", '"x"', "W/", "x" * 5_000, "\u00e9", ",,,"):
        assert api.get(path, headers={"If-None-Match": other}).status == 200


class TestPage:
    def test_the_page_leads_to_every_guide_and_operation_and_to_the_deprecations(self, page):
        linked = {*(f"docs/{name}.md" for name in DESCRIBED), *(f"docs/{name}" for name in GUIDES)}
        assert linked | {"docs/reference", "docs/introduction.md", f"{PAGES}/"} <= {*values(page, "href", "a")}
        assert "section/Deprecations" in values(page, "id")

    def test_the_reference_renders_the_document_with_its_own_script(self, api):
        page = Page(api.get("/docs/reference").text)
        assert values(page, "spec-url", "redoc") == ["redoc.json"]
        assert values(page, "download-definition-url", "redoc") == ["../openapi.json"]
        # None without npm, where the page is only a link. The browser tests need it.
        for script in values(page, "src", "script"):
            assert re.fullmatch(r"script\.[0-9a-f]{16}\.js", script)

    def test_the_page_allows_its_own_script_and_no_inline_code_and_links_to_its_other_formats(self, shown):
        policy = shown.headers["content-security-policy"]
        assert all(part in policy for part in ("default-src 'none'", "script-src 'self';"))
        assert "unsafe" not in policy
        # Inline styles are allowed only by hash, such as the empty one that Redoc's script fills.
        assert f"'sha256-{base64.b64encode(hashlib.sha256(b'').digest()).decode()}'" in policy
        assert shown.headers["vary"] == "Accept, Accept-Encoding"
        assert '<docs/introduction.md>; rel="alternate"; type="text/markdown"' in shown.headers["link"]
        assert '<openapi.json>; rel="service-desc"; type="application/json"' in shown.headers["link"]

    def test_the_page_loads_nothing_from_elsewhere_and_works_below_a_stage(self, page):
        for element in page.root.find():
            assert element.tag not in {"style", "iframe", "object", "embed", "base", "form"}
            assert not [name for name in element.attributes if name.startswith("on") or name == "style"]
        for address in [*values(page, "src"), *values(page, "href", "link")]:
            assert address.startswith("data:image/svg") or not urlsplit(address).scheme
        assert not any(address.startswith("/") for address in [*values(page, "src"), *values(page, "href")])

    @each(
        ("accept", "is_markdown"),
        [
            ("text/markdown", True),
            ("text/markdown, text/html, */*", True),
            ("Text/Markdown;q=0.9, text/html;q=0.8", True),
            ("text/html;q=0.5, text/markdown ; q=0.6", True),
            ("text/html, text/markdown;q=0.5", False),
            ("text/markdown;q=0", False),
            ("text/markdown;q=x", False),
            *((accept, False) for accept in ("", "*/*", "text/*", "text/html", ";;,")),
        ],
    )
    def test_the_page_is_markdown_for_clients_that_prefer_it(self, accept, is_markdown, api):
        reply = api.get("/docs", headers={"Accept": accept})
        assert reply.headers["content-type"] == f"text/{'markdown' if is_markdown else 'html'}; charset=utf-8"
        assert reply.headers["vary"] == "Accept, Accept-Encoding"
        assert (reply.text == api.get("/docs/introduction.md").text) is is_markdown


class TestFile:
    def test_every_operation_has_a_markdown_file(self, api):
        for operation in operations():
            if operation.route.include_in_schema:
                reply = api.get(f"/docs/{operation.route.operation_id}.md")
                assert reply.headers["content-type"] == "text/markdown; charset=utf-8"
                assert (reply.text[:2], "curl" in reply.text) == ("# ", True)
                assert f"`{operation.method} {operation.path}`" in reply.text
        assert {path.stem for path in FILES.glob("*.md")} == {*DESCRIBED, *GUIDES, "errors", "introduction"}

    def test_assets_of_the_page_are_cacheable_forever(self, page, api):
        styles = [it.attributes["href"] for it in page.root.find("link") if it.attributes.get("rel") == "stylesheet"]
        loaded = [*values(page, "src"), *styles]
        assert len(loaded) == 1 + len(values(page, "src", "script"))
        for address in loaded:
            reply = api.get(f"/{address}")
            assert reply.headers["cache-control"] == "public, max-age=31536000, immutable"
            assert re.search(r"\.[0-9a-f]{16}\.(css|js)$", str(address))

    @each(
        "name",
        [
            *("nothing.md", "index", "index.html", "guides", "llms.txt", "routes.py", "rule.embedded-media", "*.md"),
            *("..", "\\", "..%2fopenapi.json", "%2e%2e%2fopenapi.json", "%ff", "a" * 5_000),
            *("CREATEPROJECT.md", "createProject", "createProject.md ", "createProject.md%00"),
        ],
    )
    def test_returns_404_for_any_other_name(self, name, api):
        reply = api.get(f"/docs/{unquote(name, errors='replace')}")
        assert (reply.status, reply.code) == (404, "NOT_FOUND")


def test_llms_txt_has_the_form_of_llmstxt_org_and_lists_every_operation(api):
    reply = api.get("/llms.txt")
    assert reply.headers["content-type"] == "text/plain; charset=utf-8"
    lines = reply.text.splitlines()
    assert (lines[0][:2], lines[2][:2]) == ("# ", "> ")
    assert [line for line in lines if line.startswith("## ")][-1] == "## Optional"
    for line in reply.text.partition("\n## ")[2].splitlines()[1:]:
        assert not line or line.startswith("## ") or re.match(rf"- \[[^\]]+\]\({BASE}/[^)\s]+\): .+", line), line
    addresses = re.findall(r"\]\(([^)]+)\)", reply.text)
    assert {f"{BASE}/docs/{name}.md" for name in DESCRIBED} <= {*addresses}


def test_openapi_is_the_committed_document_with_this_deployments_urls_and_contact(api, monkeypatch):
    reply = api.get("/openapi.json")
    committed = DOCUMENT.read_text(encoding="utf-8").replace("https://api.assent.example", BASE)
    assert reply.body == json.loads(committed.replace("https://dashboard.assent.example", PAGES))
    assert reply.headers["content-type"] == "application/json"
    assert reply.body["info"]["contact"]["email"] == "api@assent.example"
    monkeypatch.setitem(settings.__dict__, "contact", "help@assent.test")
    assert api.get("/openapi.json").body["info"]["contact"]["email"] == "help@assent.test"


class TestPacked:
    def test_compressed_documents_are_served_like_uncompressed_ones(self, api, tmp_path, monkeypatch):
        before = {path: api.get(path) for path in [*DOCUMENTS, *RULES, "/docs/nothing.md", "/docs/introduction.md.gz"]}
        shutil.copytree(FILES, tmp_path / "reference")
        artifacts.pack(tmp_path)
        monkeypatch.setattr(documents, "_REFERENCE", tmp_path / "reference")
        documents._names.cache_clear()
        for path, answered in before.items():
            reply = api.get(path)
            assert (reply.status, reply.text) == (answered.status, answered.text)
            assert reply.headers["content-type"] == answered.headers["content-type"]
        documents._names.cache_clear()


class TestRules:
    def test_the_list_leads_to_the_page_of_every_rule(self, api):
        reply = api.get("/docs/rules")
        assert (reply.status, reply.headers["content-type"]) == (200, "text/html; charset=utf-8")
        links = [link for link in values(Page(reply.text), "href", "a") if link.startswith("rules/")]
        assert [*links] == [*dict.fromkeys(links)]
        assert {link.removeprefix("rules/") for link in links} == {rule.id for rule in rules()}
        for link in links:
            page = api.get(f"/docs/{link}")
            assert (page.status, page.headers["cache-control"]) == (200, "public, max-age=300")
            assert {"why", "example", "fix", "wrong", "silence"} <= {*values(Page(page.text), "id")}
            assert "{" not in page.text.partition("<h1>")[2].partition("</h1>")[0]

    def test_a_page_says_how_to_silence_the_rule_in_a_comment_of_its_language(self, api):
        assert "&lt;!-- assent-ignore: embedded-media -- " in api.get("/docs/rules/embedded-media").text
        assert "<code># assent-ignore: identified-from-server -- " in api.get("/docs/rules/identified-from-server").text
        assert "assent-ignore" not in api.get("/docs/rules/consent-library-outdated").text

    @each("name", ["nothing", "..", "%2e%2e%2findex", "analytics-loaded.html", "rules", "a" * 5_000])
    def test_returns_404_for_any_other_rule(self, name, api):
        reply = api.get(f"/docs/rules/{unquote(name)}")
        assert (reply.status, reply.code) == (404, "NOT_FOUND")


@each("name", GUIDES)
def test_a_guide_is_a_page_and_markdown(name, api):
    reply = api.get(f"/docs/{name}", headers={"Accept": "text/html"})
    assert reply.text.count("<h1>") == 1
    assert values(Page(reply.text), "style") == []
    markdown = api.get(f"/docs/{name}.md")
    assert api.get(f"/docs/{name}", headers={"Accept": "text/markdown"}).text == markdown.text
    assert markdown.text.startswith("# ")


def links_of(reply: Reply, address: str) -> set[str]:
    """Returns the paths of this service to which a page or a text leads. Checks the anchors of a page."""
    if "html" in reply.headers["content-type"]:
        page = Page(reply.text)
        anchors, found = values(page, "id"), values(page, "href")
        assert len(anchors) == len({*anchors}), address
        assert {it[1:] for it in found if it.startswith("#")} <= {*anchors}, address
    else:
        found = re.findall(r"\]\(([^)\s]+)\)", reply.text)
    targets = [urljoin(f"{BASE}{address}", it) for it in found if not it.startswith("data:")]
    return {urlsplit(it).path for it in targets if it.startswith(f"{BASE}/")}


def test_every_link_from_page_to_page_and_file_leads_somewhere(api):
    waiting = seen = {"/docs", "/llms.txt"}
    while waiting:
        replies = {it: api.get(it) for it in waiting}
        assert {it: reply.status for it, reply in replies.items() if reply.status != 200} == {}
        waiting = {link for it, reply in replies.items() for link in links_of(reply, it)} - seen
        seen = seen | waiting
    assert {f"/docs/{name}.md" for name in DESCRIBED} | {f"/docs/rules/{rule.id}" for rule in rules()} <= seen


class TestAddresses:
    @pytest.mark.parametrize("suffix", [".html", ".json", ".md"])
    def test_urls_with_special_characters_break_no_document(self, suffix, tmp_path):
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

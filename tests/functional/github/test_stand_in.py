"""The stand-in itself: it accepts the credentials that GitHub would, and shows people its content."""

import base64
import json
import re
import subprocess

import pytest
import urllib3

from controlplane.github import app_auth
from local.github import setup
from local.github.call import API
from local.github.faults import Fault
from local.github.repositories import Repositories
from local.github.setup import DEMO_NAME, DEMO_OWNER, installation_id, key_file
from local.github.stand_in import StandIn
from tests.support.each import each
from tests.support.github import github

DEMO = (DEMO_OWNER, DEMO_NAME)


@pytest.fixture
def send_request(code_host):
    with urllib3.PoolManager(retries=False) as pool:

        def request(method: str, path: str, authorization: str = "", **options) -> urllib3.BaseHTTPResponse:
            headers = {"Authorization": f"Bearer {authorization}"} | options.pop("headers", {})
            return pool.request(method, code_host.url + path, headers=headers, redirect=False, **options)

        yield request


@pytest.fixture
def token(code_host) -> str:
    return code_host.stand_in.issue_token(installation_id(DEMO_OWNER), None).value


class TestAppTokens:
    @pytest.fixture
    def buy(self, send_request):
        path = f"{API}/app/installations/{installation_id(DEMO_OWNER)}/access_tokens"
        return lambda authorization: send_request("POST", path, authorization).status

    @pytest.fixture
    def key(self, code_host) -> str:
        return key_file(code_host.root).read_text()

    @pytest.fixture
    def claims(self, now) -> dict:
        return {"iat": int(now.seconds), "exp": int(now.seconds) + 600, "iss": "1"}

    def test_the_fake_accepts_app_tokens_for_ten_minutes(self, buy, key, claims):
        assert buy(app_auth.sign(claims, key)) == 201

    @each("change", [{"iat": 1}, {"iat": 1, "exp": 1}, {"exp": 601}, {"iss": "2"}, {"iss": None}, {"exp": "soon"}])
    def test_the_fake_refuses_future_expired_long_and_foreign_app_tokens(self, buy, key, claims, now, change):
        moved = {name: int(now.seconds) + value if isinstance(value, int) else value for name, value in change.items()}
        if change == {"iat": 1, "exp": 1}:
            moved = {"iat": int(now.seconds) - 700, "exp": int(now.seconds)}
        assert buy(app_auth.sign(claims | moved, key)) == 401

    def test_the_fake_refuses_app_tokens_with_another_or_no_key(self, buy, key, claims, tmp_path):
        setup._write_key(tmp_path / "other.pem")
        forged = app_auth.sign(claims, (tmp_path / "other.pem").read_text())
        header = base64.urlsafe_b64encode(json.dumps({"alg": "none"}).encode()).rstrip(b"=").decode()
        unsigned = f"{header}.{app_auth.sign(claims, key).split('.')[1]}."
        assert [buy(it) for it in (forged, unsigned, "", "a", "a.b", "a.b.c", "....")] == [401] * 7


class TestTokens:
    def test_the_fakes_tokens_expire_after_an_hour(self, send_request, token, now):
        path = f"{API}/repos/demo-shop/storefront"
        assert send_request("GET", path, token).status == 200
        now.advance(3600)
        assert send_request("GET", path, token).status == 401

    def test_the_fake_requires_a_token_from_every_client(self, send_request):
        for path in ("", "/branches/main", "/tarball/main", "/issues"):
            assert send_request("GET", f"{API}/repos/demo-shop/storefront{path}").status == 401
        assert send_request("POST", f"{API}/repos/demo-shop/storefront/issues", json={"title": "a"}).status == 401

    @each("path", ["/../../issues", "/%2e%2e/storefront", "/demo-shop/..%2f..", "/demo-shop/%2e%2e"])
    def test_the_fakes_tokens_open_nothing_outside_the_folder(self, send_request, token, path):
        assert send_request("GET", f"{API}/repos{path}", token).status == 404


class TestFaults:
    def test_faults_are_out_of_reach_of_clients(self, send_request, token, code_host):
        headers = {"X-Fault": "502", "X-Status": "502", "Prefer": "code=502"}
        assert send_request("GET", f"{API}/repos/demo-shop/storefront?fault=502", token, headers=headers).status == 200
        code_host.exchanges.clear()

    def test_each_fault_affects_one_request(self, send_request, token, code_host):
        code_host.stand_in.faults.add("GET /repos/{owner}/{repo}", Fault(502))
        assert [send_request("GET", f"{API}/repos/demo-shop/storefront", token).status for _ in range(2)] == [502, 200]


class TestList:
    @pytest.mark.parametrize("query", ["since=yesterday", "per_page=many", "page=first"])
    def test_the_list_refuses_invalid_parameters(self, send_request, token, code_host, query):
        assert send_request("GET", f"{API}/repos/demo-shop/storefront/issues?{query}", token).status == 422
        code_host.exchanges.clear()


class TestUnknownPaths:
    @each("path", ["", "/", "/user", "/repos/demo-shop", "/repos/demo-shop/storefront/milestones"])
    def test_unknown_paths_return_githubs_error(self, send_request, code_host, token, path):
        answer = send_request("GET", API + path, token)
        code_host.exchanges.clear()
        assert answer.status in {307, 404}


class TestPages:
    def test_pages_lead_from_the_repositories_to_an_issue(self, send_request, code_host, now):
        code_host.stand_in.issues.create(*DEMO, "A finding", "Some *text*", ["consent"])
        assert f'href="{code_host.url}/demo-shop/storefront"' in send_request("GET", "/").data.decode()
        listed = send_request("GET", "/demo-shop/storefront").data.decode()
        assert f'href="{code_host.url}/demo-shop/storefront/issues/1"' in listed
        page = send_request("GET", "/demo-shop/storefront/issues/1").data.decode()
        assert "<h1>A finding</h1>" in page
        assert "Some <em>text</em>" in page
        assert "2026-03-04T05:06:07Z" in page

    def test_pages_escape_the_text_of_issues(self, send_request, code_host):
        evil = "<script>alert(1)</script> [a](javascript:alert(1)) <img src=x onerror=alert(1)>"
        code_host.stand_in.issues.create(*DEMO, evil, evil, [evil])
        for path in ("/demo-shop/storefront", "/demo-shop/storefront/issues/1"):
            answer = send_request("GET", path)
            page = answer.data.decode()
            assert "<script" not in page
            assert "<img" not in page
            assert 'href="javascript' not in page
            assert answer.headers["Content-Security-Policy"].startswith("default-src 'none'")

    def test_pages_hide_comments_as_github_does(self, send_request, code_host):
        code_host.stand_in.issues.create(*DEMO, "Title", "Seen <!-- assent: marker\n--> again", [])
        page = send_request("GET", "/demo-shop/storefront/issues/1").data.decode()
        assert "Seen  again" in page
        assert "marker" not in page

    def test_pages_show_a_file_at_a_commit_with_its_lines(self, send_request, code_host):
        sha = code_host.stand_in.repositories.find(*DEMO).find_commit("refs/heads/main").sha
        page = send_request("GET", f"/demo-shop/storefront/blob/{sha}/index.html").data.decode()
        assert '<tr id="L1"><td>1</td><td>&lt;!doctype html&gt;</td></tr>' in page
        for unknown in (f"{sha}/unknown", "main/index.html", f"{sha}/%2e%2e/index.html", "--help/index.html"):
            assert send_request("GET", f"/demo-shop/storefront/blob/{unknown}").status == 404

    def test_pages_of_missing_things_return_404(self, send_request):
        for path in ("/a/b", "/demo-shop/storefront/issues/1", "/demo-shop/storefront/issues/999999999999"):
            assert send_request("GET", path).status == 404


class TestFolder:
    def test_the_folder_keeps_issues_for_the_next_start(self, code_host):
        code_host.host().create_issue(*DEMO, "Title", "Body", ["consent"])
        again = StandIn(code_host.root)
        assert [issue.title for issue in again.issues.list(*DEMO)] == ["Title"]
        assert again.issues.create(*DEMO, "Next", None, []).number == 2

    def test_the_folder_is_prepared_once(self, code_host):
        before = key_file(code_host.root).read_bytes()
        setup.prepare(code_host.root)
        assert key_file(code_host.root).read_bytes() == before
        assert key_file(code_host.root).stat().st_mode & 0o777 == 0o600

    def test_the_demo_has_the_same_commit_everywhere(self, code_host, tmp_path):
        other = Repositories(tmp_path / "other").create(*DEMO, setup.DEMO_FILES)
        found = code_host.stand_in.repositories.find(*DEMO)
        assert other.find_commit("refs/heads/main") == found.find_commit("refs/heads/main")

    def test_the_folder_contains_repositories_that_git_can_clone(self, code_host, tmp_path):
        source = code_host.stand_in.repositories.find(*DEMO).path
        command = ["git", "clone", "--quiet", str(source), str(tmp_path / "clone")]
        subprocess.run(command, check=True, capture_output=True)
        assert (tmp_path / "clone/index.html").read_bytes() == (setup.DEMO_FILES / "index.html").read_bytes()


class TestMounted:
    """Mounted with the API, as in the local server."""

    @pytest.fixture
    def mounted(self, code_host):
        with github(code_host.root, setup.PREFIX) as mounted:
            yield mounted

    def test_the_mounted_fake_is_where_the_functions_look_for_it(self, tmp_path):
        variables = setup.function_variables(tmp_path, "http://127.0.0.1:3000")
        assert variables["GITHUB_API_URL"] == f"http://127.0.0.1:3000{setup.PREFIX}{API}"
        assert variables["GITHUB_APP_PRIVATE_KEY_FILE"] == str(key_file(tmp_path))

    def test_the_mounted_fake_returns_urls_that_lead_back_to_it(self, mounted):
        host = mounted.host()
        repository = host.get_repository(*DEMO)
        assert repository.html_url == f"{mounted.url}/demo-shop/storefront"
        assert mounted.url.endswith(setup.PREFIX)
        sha = host.get_branch_head(*DEMO, "main")
        assert next(host.stream_tarball(*DEMO, sha))[:2] == b"\x1f\x8b"
        issue = host.create_issue(*DEMO, "Title", "Body")
        file = f"{repository.html_url}/blob/{sha}/index.html"
        for address in (issue.url, repository.html_url, file, f"{mounted.url}/"):
            answer = urllib3.request("GET", address, retries=False)
            assert answer.status == 200
            for link in re.findall(r'href="([^"]+)"', answer.data.decode()):
                assert urllib3.request("GET", link, retries=False).status == 200

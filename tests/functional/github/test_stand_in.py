"""The stand-in itself: it accepts the credentials that GitHub would, and shows people its content."""

import base64
import json
import re
import subprocess

import pytest
import urllib3

from controlplane.code_host.github import app_auth
from local.github import setup
from local.github.host import API
from local.github.repositories import Repositories
from local.github.setup import DEMO_OWNER, installation_id, key_file
from local.github.stand_in import StandIn
from tests.functional.github.conftest import DEMO
from tests.support.each import each
from tests.support.github import github

REPO = "/demo-shop/storefront"


@pytest.fixture
def send(code_host):
    with urllib3.PoolManager(retries=False) as pool:

        def request(path: str, token: str = "", method: str = "GET", **options) -> urllib3.BaseHTTPResponse:
            headers = {"Authorization": f"Bearer {token}"} | options.pop("headers", {})
            return pool.request(method, code_host.url + path, headers=headers, redirect=False, **options)

        yield request


@pytest.fixture
def token(code_host) -> str:
    return code_host.stand_in.issue_token(installation_id(DEMO_OWNER), None).value


def test_app_tokens_are_accepted_for_ten_minutes_with_the_apps_key(code_host, send, now, tmp_path):
    def buy(token: str) -> int:
        return send(f"{API}/app/installations/{installation_id(DEMO_OWNER)}/access_tokens", token, "POST").status

    start, key = int(now.seconds), key_file(code_host.root).read_text()
    claims = {"iat": start, "exp": start + 600, "iss": "1"}
    signed = app_auth.sign(claims, key)
    assert buy(signed) == 201
    for change in (
        {"iat": start + 1},
        {"iat": start - 700, "exp": start},
        {"exp": start + 601},
        {"exp": "soon"},
        {"iss": "2"},
        {"iss": None},
    ):
        assert buy(app_auth.sign(claims | change, key)) == 401, change
    setup.write_key(tmp_path / "other.pem")
    forged = app_auth.sign(claims, (tmp_path / "other.pem").read_text())
    header = base64.urlsafe_b64encode(json.dumps({"alg": "none"}).encode()).rstrip(b"=").decode()
    unsigned = f"{header}.{signed.split('.')[1]}."
    assert [buy(it) for it in (forged, unsigned, "", "a", "a.b", "a.b.c", "....")] == [401] * 7


def test_tokens_expire_after_an_hour_and_are_required_from_every_client(send, token, now):
    assert send(f"{API}/repos{REPO}", token).status == 200
    now.advance(3600)
    assert send(f"{API}/repos{REPO}", token).status == 401
    for path in ("", "/branches/main", "/tarball/main", "/issues"):
        assert send(f"{API}/repos{REPO}{path}").status == 401
    assert send(f"{API}/repos{REPO}/issues", method="POST", json={"title": "a"}).status == 401


@each(
    ("path", "statuses"),
    [
        # Nothing outside of the folder.
        *[(f"/repos{it}", {404}) for it in ("/../../issues", "/%2e%2e/storefront", "/demo-shop/..%2f..")],
        *[(f"/repos{REPO}/issues?{it}", {422}) for it in ("since=yesterday", "per_page=many", "page=first")],
        *[(it, {307, 404}) for it in ("", "/", "/user", "/repos/demo-shop", f"/repos{REPO}/milestones")],
        # Clients can't cause faults.
        (f"/repos{REPO}?fault=502", {200}),
    ],
)
def test_invalid_and_unknown_paths_are_refused_and_faults_are_out_of_reach(send, token, code_host, path, statuses):
    assert send(API + path, token, headers={"X-Fault": "502", "Prefer": "code=502"}).status in statuses
    code_host.exchanges.clear()


class TestPages:
    def test_pages_lead_from_the_repositories_to_an_issue_without_its_comments(self, send, code_host):
        code_host.stand_in.issues.create(*DEMO, "A finding", "Some *text* <!-- assent: marker\n--> again", ["consent"])
        assert f'href="{code_host.url}{REPO}"' in send("/").data.decode()
        assert f'href="{code_host.url}{REPO}/issues/1"' in send(REPO).data.decode()
        page = send(f"{REPO}/issues/1").data.decode()
        for shown in ("<h1>A finding</h1>", "Some <em>text</em>  again", "2026-03-04T05:06:07Z"):
            assert shown in page
        assert "marker" not in page

    def test_pages_escape_the_text_of_issues(self, send, code_host):
        evil = "<script>alert(1)</script> [a](javascript:alert(1)) <img src=x onerror=alert(1)>"
        code_host.stand_in.issues.create(*DEMO, evil, evil, [evil])
        for path in (REPO, f"{REPO}/issues/1"):
            answer = send(path)
            assert not re.search('<script|<img|href="javascript', answer.data.decode())
            assert answer.headers["Content-Security-Policy"].startswith("default-src 'none'")

    def test_pages_show_a_file_at_a_commit_with_its_lines(self, send, code_host):
        sha = code_host.stand_in.repositories.find(*DEMO).find_commit("refs/heads/main").sha
        page = send(f"{REPO}/blob/{sha}/index.html").data.decode()
        assert '<tr id="L1"><td>1</td><td>&lt;!doctype html&gt;</td></tr>' in page
        files = (f"{sha}/unknown", "main/index.html", f"{sha}/%2e%2e/index.html", "--help/index.html")
        for unknown in (
            "/a/b",
            f"{REPO}/issues/1",
            f"{REPO}/issues/9999999",
            *[f"{REPO}/blob/{it}" for it in files],
        ):
            assert send(unknown).status == 404


class TestFolder:
    def test_the_folder_keeps_issues_and_its_key_for_the_next_start(self, code_host):
        code_host.host().create_issue(*DEMO, "Title", "Body", ["consent"])
        key = key_file(code_host.root).read_bytes()
        setup.prepare(code_host.root)
        assert key_file(code_host.root).read_bytes() == key
        assert key_file(code_host.root).stat().st_mode & 0o777 == 0o600
        again = StandIn(code_host.root)
        assert [issue.title for issue in again.issues.list(*DEMO)] == ["Title"]
        assert again.issues.create(*DEMO, "Next", None, []).number == 2

    def test_the_demo_has_the_same_commit_everywhere_and_git_can_clone_it(self, code_host, tmp_path):
        other = Repositories(tmp_path / "other").create(*DEMO, setup.DEMO_FILES)
        found = code_host.stand_in.repositories.find(*DEMO)
        assert other.find_commit("refs/heads/main") == found.find_commit("refs/heads/main")
        command = ["git", "clone", "--quiet", str(found.path), str(tmp_path / "clone")]
        subprocess.run(command, check=True, capture_output=True)
        assert (tmp_path / "clone/index.html").read_bytes() == (setup.DEMO_FILES / "index.html").read_bytes()


class TestMounted:
    """Mounted with the API, as in the local server."""

    def test_the_mounted_stand_in_is_where_the_functions_look_for_it(self, tmp_path):
        setup.prepare(tmp_path)
        variables = setup.function_variables(tmp_path, "http://127.0.0.1:3000")
        assert variables["GITHUB_API_URL"] == f"http://127.0.0.1:3000{setup.PREFIX}{API}"
        assert variables["GITHUB_APP_PRIVATE_KEY_FILE"] == str(key_file(tmp_path))

    def test_the_mounted_stand_in_returns_urls_that_lead_back_to_it(self, code_host):
        with github(code_host.root, setup.PREFIX) as mounted:
            host = mounted.host()
            repository = host.get_repository(*DEMO)
            assert repository.html_url == f"{mounted.url}{REPO}"
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

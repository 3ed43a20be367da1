"""The stand-in itself: it accepts the credentials that GitHub would, and shows people its content."""

import base64
import json
import re

import pytest
import urllib3

from controlplane.code_host.github import app_auth
from local.github import setup
from local.github.host import API
from local.github.setup import DEMO_OWNER, installation_id, key_file
from tests.functional.github.conftest import DEMO
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


class TestPages:
    def test_pages_lead_from_the_repositories_to_an_issue_without_its_comments(self, send, code_host):
        code_host.stand_in.create_issue(*DEMO, "A finding", "Some *text* <!-- assent: marker\n--> again", ["consent"])
        assert f'href="{code_host.url}{REPO}"' in send("/").data.decode()
        assert f'href="{code_host.url}{REPO}/issues/1"' in send(REPO).data.decode()
        page = send(f"{REPO}/issues/1").data.decode()
        for shown in ("<h1>A finding</h1>", "Some <em>text</em>  again", "2026-03-04T05:06:07Z"):
            assert shown in page
        assert "marker" not in page

    def test_pages_escape_the_text_of_issues(self, send, code_host):
        evil = "<script>alert(1)</script> [a](javascript:alert(1)) <img src=x onerror=alert(1)>"
        code_host.stand_in.create_issue(*DEMO, evil, evil, [evil])
        for path in (REPO, f"{REPO}/issues/1"):
            answer = send(path)
            assert not re.search('<script|<img|href="javascript', answer.data.decode())
            assert answer.headers["Content-Security-Policy"].startswith("default-src 'none'")


class TestMounted:
    """Mounted with the API, as in the local server."""

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

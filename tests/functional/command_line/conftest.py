"""The command line of a signed-in person, whose requests go through the functions' handlers."""

import ssl
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import httpx
import pytest

from cli.tests.conftest import own_configuration  # noqa: F401 (a fixture)
from cli.tests.support.script import ADDRESS
from cli.tests.support.shell import run
from controlplane.findings import intake
from controlplane.platform.core import clock
from controlplane.platform.queues.messages import Queue
from controlplane.projects import changes as project_changes
from controlplane.projects import store as projects
from controlplane.projects.items import Address
from controlplane.scans import findings
from issue_creation.app import handler
from openassent_cli import credentials, profiles
from openassent_cli.credentials import Tokens
from openassent_cli.profiles import Profile
from tests.functional.command_line.cases import DASHBOARD
from tests.support.api import Api
from tests.support.asgi import DirectApi
from tests.support.audit_reports import complete_audit, vendor
from tests.support.audits import make_issue, make_scan
from tests.support.endpoints import delivered
from tests.support.issue_host import HostedIssue
from tests.support.populated_organization import detection
from tests.support.world import Company, World, publish_finding


@dataclass(frozen=True)
class Office:
    """names: what commands are given, such as the ID of the `scan`."""

    company: Company
    names: dict[str, str]

    @classmethod
    def create(cls, world: World) -> "Office":
        company = world.company(owner=world.person("ada@example.com"))
        world.credits(company, 500)
        world.member(company, person=world.person("grace@example.com", "Grace Hopper"))
        world.key(company, "deploy")
        second = world.company(owner=company.owner, name="Bakery")
        repository = world.connected_repository(company, name="shop")
        world.connected_repository(company, name="blog", linked=False)
        project = projects.get_project(repository.links[0].project_id)
        change = project_changes.ProjectChange(added_websites=[Address("www.example.com", "domain")])
        project_changes.update_project(project, change, may_remove_websites=False)
        intake.record_detection(detection(project.project_id))
        issues = [make_issue(number, priority="P0" if number == 5 else "P2") for number in range(1, 6)]
        preview = make_scan(repository, issues=issues)
        scan = make_scan(repository, issues=issues, access="full")
        item = publish_finding(findings.as_discovery(scan, issues[4]))
        delivery = delivered(company)
        run = complete_audit(projects.get_project(project.project_id), vendors=[vendor("unpkg", needsConsent=False)])
        world.invitation(company, "mary@example.com")
        names = {
            "org": company.slug,
            "second": second.slug,
            "project": project.project_id,
            "scan": scan.scan_id,
            "preview": preview.scan_id,
            "item": item.item_id,
            "audit": run.audit_id,
            "run": run.run_id,
            "other": world.finding(company, title="Outdated script").item_id,
            "webhook": delivery.webhook_id,
            "event": delivery.event_id,
        }
        return cls(company, names)


class Gateway(httpx.BaseTransport):
    """Forwards requests to the functions, as the gateway does.

    losing: how many responses to lose, after the functions have done what was requested.
    """

    def __init__(self, api: Api) -> None:
        self.losing = 0
        self.requests: list[httpx.Request] = []
        self._api = api

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        return self._send(self._api, request)

    def _send(self, api: Api, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        target = str(request.url).removeprefix(ADDRESS)
        headers = {name.title(): value for name, value in request.headers.items()}
        reply = api.call(request.method, target, raw_body=request.read() or None, headers=headers)
        if self.losing:
            self.losing -= 1
            raise httpx.ReadError("The connection was reset.", request=request)
        return httpx.Response(reply.status, headers=reply.headers, text=reply.text)


class Shell:
    """Runs commands of people who are signed in."""

    run = staticmethod(run)

    def sign_in(self, token: str, profile: str = "default", *, refresh_token: str = "unused") -> None:
        tokens = Tokens(token, refresh_token, time.time() + 3_600, "")
        credentials.store().save(profile, tokens)
        profiles.save(profile, Profile(ADDRESS, dashboard=DASHBOARD))


@pytest.fixture(scope="session")
def _certificates():
    """Loaded once for all clients: no client of these tests connects."""
    return ssl.create_default_context()


@pytest.fixture
def gateway(api, _certificates, monkeypatch):
    """The network leads to the functions. Retries don't pause."""
    made = Gateway(api)
    monkeypatch.setattr(httpx.HTTPTransport, "handle_request", lambda _, request: made.handle_request(request))
    monkeypatch.setattr("time.sleep", lambda _: None)
    monkeypatch.setattr("ssl.create_default_context", lambda **_: _certificates)
    return made


class Threads(Gateway):
    """Forwards requests of any thread, also of one with an event loop."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(self._send, DirectApi(), request).result()

    def count(self, path: str) -> int:
        return sum(request.url.path == path for request in self.requests)


@pytest.fixture
def threads(gateway, monkeypatch):
    """The network leads to the functions, for requests of several threads."""
    made = Threads(Api())
    monkeypatch.setattr(httpx.HTTPTransport, "handle_request", lambda _, request: made.handle_request(request))
    return made


@pytest.fixture
def office(world, sqs, now):
    now.seconds = time.time()  # the command line has the machine's clock
    return Office.create(world)


@pytest.fixture
def shell(gateway, office):
    """A shell of the office's owner."""
    made = Shell()
    made.sign_in(office.company.owner.token)
    return made


@pytest.fixture
def hosted_issue(host, sqs, monkeypatch):
    """The code host has the issue 7, and the worker finds it while the endpoint waits."""
    host.issues["acme/shop"] = [HostedIssue(7, "An issue", "", clock.now(), clock.now())]

    async def pause(_: float) -> None:
        for letter in sqs.due(Queue.ISSUE_CREATION.url):
            sqs.deliver(letter, handler, Queue.ISSUE_CREATION.dead_letters_url)

    monkeypatch.setattr(clock, "pause", pause)

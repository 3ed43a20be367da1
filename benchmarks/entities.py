"""Creates items that single routes need: a device request, a scan, an inbox item, a session.

They are created through the store, like those of the workers and pages.
"""

from __future__ import annotations

import base64
import hashlib
import re
from functools import lru_cache
from html import unescape
from typing import Any

from benchmarks.world import World
from controlplane.access import web_session
from controlplane.billing import store as billing
from controlplane.code_host import repositories
from controlplane.code_host.items import HostedRepository, Link, RepositoryItem
from controlplane.findings import detections, publications
from controlplane.findings.detections import Detection
from controlplane.findings.items import Discovery, InboxItem, RuntimeVendor
from controlplane.notify import webhook_deliveries, webhooks
from controlplane.notify.webhook_items import DeliveryItem
from controlplane.people import device, device_approvals, sessions
from controlplane.people.device import Issued
from controlplane.platform.core import clock, ids, tokens
from controlplane.platform.core.ids import EventId, ProjectId, ScanRequestId
from controlplane.platform.queues import messages
from controlplane.platform.queues.messages import ExecuteScan, PrepareScan, Queue
from controlplane.scans import execution, findings, requests
from controlplane.scans.findings import FindingItem, Location
from controlplane.scans.items import ScanItem
from controlplane.scans.progress import Coverage

CLIENT = "assent-cli"
VERIFIER = "benchmark-verifier-of-the-fewest-letters-one-can-have"
CHALLENGE = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).decode().rstrip("=")
FINDINGS = 50
_COMMIT = "1f0c2b9e" * 5


def request_code(world: World, *, approved: bool = False) -> Issued:
    """Creates a device request and, if `approved`, approves it as the owner."""
    issued = device.create(CLIENT, CHALLENGE, ["projects.read"], "laptop", "192.0.2.7")
    if approved:
        device_approvals.approve(issued.user_code, world.user_id, ["projects.read"])
    return issued


def redeem(world: World) -> Any:
    """Returns the tokens of an approved device."""
    found = device.find(request_code(world, approved=True).device_code)
    assert found is not None
    return device.redeem(found)


def connect_repository(world: World) -> RepositoryItem:
    """Connects a new repository, linked to a project."""
    name = f"shop-{next(world.numbers)}"
    hosted = HostedRepository(
        installation_id=4711,
        owner="acme",
        name=name,
        html_url=f"https://github.com/acme/{name}",
        default_branch="main",
        visibility="private",
    )
    made = repositories.connect_repository(world.organization_id, hosted)
    return repositories.link_project(made.repository_id, Link(ProjectId.stored(world.projects[0]), None, None, False))


def request_scan(world: World) -> tuple[RepositoryItem, ScanRequestId]:
    """Returns a repository, and the id of a request to scan it that no worker has received."""
    repository = connect_repository(world)
    request_id = requests.new_request_id(world.organization_id)
    message = messages.entry(Queue.SCAN_PREPARATION, PrepareScan(request_id=request_id))
    requests.create_request(repository, repository.links[0], request_id, message=message, requested_by=world.user_id)
    return repository, request_id


def scan(world: World) -> ScanItem:
    """Returns a completed scan, the first of its repository, with findings and the credits to unlock them."""
    billing.add_credits(world.organization_id, 1_000)
    repository, request_id = request_scan(world)
    lease, request = requests.acquire_request(request_id, 30)
    scan_id = requests.new_scan_id(world.organization_id)
    target = requests.Target(repository, repository.links[0], "main", _COMMIT)
    message = messages.entry(Queue.SCAN_EXECUTION, ExecuteScan(scan_id=scan_id))
    requests.start_scan(request, lease, scan_id, target, access="free-preview", message=message)
    running, made = execution.acquire_scan(scan_id, 420)
    findings.put_findings(scan_id, running.attempt, [_finding(number) for number in range(FINDINGS)])
    return execution.complete_scan(made, running, FINDINGS, FINDINGS, Coverage(10, 9, {}))[0]


def _finding(number: int) -> FindingItem:
    location = Location(
        path="src/app.tsx",
        start_line=number + 1,
        end_line=number + 2,
        start_column=1,
        end_column=9,
        snippet='<script src="a.js"></script>',
        permalink=f"https://github.com/acme/shop/blob/{_COMMIT}/src/app.tsx#L{number + 1}",
    )
    return FindingItem(
        fingerprint=f"{number:064x}",
        rule_id="tracker-before-consent",
        title="Google Analytics loads before consent",
        description="A script of googletagmanager.com is loaded before anybody agreed.",
        category="trackers",
        severity="high",
        priority="P1",
        location=location,
        remediation="Load it in the consent callback.",
        references=("https://gdpr-info.eu/art-7-gdpr/",),
        first_seen_at=clock.timestamp(),
    )


def publish_item(world: World) -> InboxItem:
    """Publishes a code finding to the inbox."""
    number, repository = next(world.numbers), sample_repository(world)
    found = Discovery(
        organization_id=world.organization_id,
        source="code-audit",
        identity=(str(number),),
        title=f"Finding {number}",
        observed_at=clock.timestamp(),
        summary="Visitors are tracked before they could say no.",
        priority="P1",
    )
    return publications.publish_finding(
        found._replace(
            repository_id=repository.repository_id,
            repository_name=repository.name,
            project_id=world.projects[0],
            rule_id="tracker-before-consent",
            description="A script of googletagmanager.com is loaded before anybody agreed.",
            remediation="Load it in the consent callback.",
            references=("https://gdpr-info.eu/art-7-gdpr/",),
        )
    )


def detect_vendor(world: World) -> str:
    """Detects a vendor on a project's website. Returns the ID of its finding."""
    name = f"vendor-{next(world.numbers)}"
    detection = Detection(
        vendor=RuntimeVendor(world.projects[0], name, name, f"{name}.example.com"),
        category="analytics",
        title=f"{name} was seen",
        summary="It was.",
        priority="P2",
        evidence=(),
        observed_at=clock.timestamp(),
    )
    detections.record_detection(detection)
    return detection.as_discovery(world.organization_id).item_id


def delivery(world: World) -> DeliveryItem:
    """Returns a delivery to a new webhook endpoint. The oldest one makes room if the organization has ten."""
    organization_id = world.organization_id
    earlier = webhooks.list_webhooks(organization_id)
    if len(earlier) == webhooks.WEBHOOKS_PER_ORGANIZATION:
        webhooks.delete_webhook(earlier[0], world.user_id)
    webhook = webhooks.create_webhook(
        organization_id,
        name="Alerts",
        url="https://hooks.example.com/",
        format="standard",
        events=("credits.low",),
        secret=tokens.mint("whsec"),
        created_by=world.user_id,
        pages_url="https://dashboard.assent.example",
        extra_legs={},
    )
    event_id = EventId.of(organization_id, ids.new_local())
    webhook_deliveries.keep_body(event_id, "credits.low", "{}")
    webhook_deliveries.create_delivery(webhook, event_id, "credits.low")
    return webhook_deliveries.get_delivery(webhook.webhook_id, event_id)[0]


@lru_cache
def sample_repository(world: World) -> RepositoryItem:
    """Returns the repository whose items and scans are listed, with more than a page of items."""
    return connect_repository(world)


@lru_cache
def sample_scan(world: World) -> ScanItem:
    """Returns a scan whose findings were unlocked."""
    made = scan(world)
    world.call("POST", "/v1/code-audit/scans/{scanId}/unlock", path={"scanId": made.scan_id})
    return made


@lru_cache
def filled_inbox(world: World) -> None:
    """Creates more than a page of items."""
    for _ in range(55):
        publish_item(world)


@lru_cache
def session(world: World) -> dict[str, str]:
    """Returns the header of the owner's browser."""
    return new_session(world.user_id)


def new_session(user_id: str) -> dict[str, str]:
    """Returns the header that a browser with a new session of the user sends."""
    cookies = web_session.session_cookies(sessions.create(user_id), user_id, sessions.LIFE_SECONDS)
    return {"Cookie": "; ".join(f"__Host-{cookie.partition(';')[0].removeprefix('__Host-')}" for cookie in cookies)}


def form_token(world: World, session: dict[str, str]) -> str:
    """Returns the token that the session's forms contain."""
    html = world.answer("GET", "/device", headers=session)["body"]
    return fields_of(html, "/device")["form_token"]


def fields_of(html: str, action: str) -> dict[str, str]:
    """Returns the hidden fields and checked boxes of a page's form."""
    inside = html.partition(f'action="{action}"')[2].partition("</form>")[0]
    pairs = re.findall(r'<input type="(?:hidden|checkbox)"[^>]* name="([\w.-]+)" value="([^"]*)"', inside)
    return {name: unescape(value) for name, value in pairs}

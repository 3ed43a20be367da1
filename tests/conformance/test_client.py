"""openapi-python-client generates a client from docs/openapi.json without a warning, and the client works."""

import base64
import hashlib
import importlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.conftest import ROOT, Api

PACKAGE = "assent_client"
VERIFIER = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
CHALLENGE = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).rstrip(b"=").decode()

pytestmark = pytest.mark.timeout(2400)


class Sdk:
    """The generated package: its models, and its operations by `group.operation`."""

    def __init__(self) -> None:
        self.models: Any = importlib.import_module(f"{PACKAGE}.models")
        self._package = importlib.import_module(PACKAGE)
        self._clients = ExitStack()

    def close(self) -> None:
        self._clients.close()

    def connect(self, base_url: str, token: str | None = None) -> Callable[..., Any]:
        """Returns a caller of operations with that credential; results have `status_code`, `headers`, and `parsed`."""
        settings = {"base_url": base_url, "raise_on_unexpected_status": True}
        made = self._package.AuthenticatedClient(**settings, token=token) if token else self._package.Client(**settings)
        client = self._clients.enter_context(made)

        def call(operation: str, *place: str, **arguments: Any) -> Any:
            module = importlib.import_module(f"{PACKAGE}.api.{operation}")
            return module.sync_detailed(*place, client=client, **arguments)

        return call


@pytest.fixture(scope="module")
def sdk(tools: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sdk]:
    folder = tmp_path_factory.mktemp("generated")
    generated = subprocess.run(
        [
            *(tools / "openapi-python-client", "generate", "--path", ROOT / "docs" / "openapi.json"),
            *("--output-path", folder / PACKAGE, "--meta", "none", "--fail-on-warning"),
        ],
        env={**os.environ, "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert generated.returncode == 0, generated.stdout + generated.stderr
    sys.path.insert(0, str(folder))
    made = Sdk()
    yield made
    made.close()
    sys.path.remove(str(folder))


@pytest.fixture(scope="module")
def running() -> Iterator[Api]:
    made = Api()
    yield made
    made.end()


@pytest.fixture
def call(sdk: Sdk, running: Api) -> Callable[..., Any]:
    """Calls operations as the owner of the organization."""
    return sdk.connect(running.served.base_url, running.served.user_token)


def test_the_client_identifies_itself(sdk: Sdk, running: Api, call):
    me = call("system.get_me").parsed.data
    assert me.principal.type_ == "oauth"
    assert me.active_organization_id == running.served.organization_id
    key = sdk.connect(running.served.base_url, running.served.api_key)("system.get_me").parsed.data
    assert key.principal.type_ == "api_key"
    assert key.principal.organization_id == running.served.organization_id


def test_the_client_creates_and_finds_organizations(sdk: Sdk, call):
    made = call("organizations.create_organization", body=sdk.models.OrganizationCreate(name="Orchard", slug="orchard"))
    assert made.status_code == HTTPStatus.CREATED
    assert made.parsed.data.role == sdk.models.Role.OWNER
    assert call("organizations.get_organization", made.parsed.data.id).parsed.data == made.parsed.data
    listed = call("organizations.list_organizations").parsed.data
    assert "orchard" in [one.organization_slug for one in listed]


def test_the_client_gets_typed_errors(sdk: Sdk, running: Api, call):
    twice = sdk.models.OrganizationCreate(name="Twice", slug="twice")
    call("organizations.create_organization", body=twice)
    taken = call("organizations.create_organization", body=twice)
    assert taken.status_code == HTTPStatus.CONFLICT
    assert isinstance(taken.parsed, sdk.models.ErrorEnvelope)
    assert taken.parsed.error.code == "CONFLICT"
    assert len(taken.parsed.error.details["suggestions"]) == 3

    wrong = call("api_keys.create_api_key", body=sdk.models.KeyCreate(name=""))
    assert wrong.status_code == HTTPStatus.BAD_REQUEST
    (problem,) = wrong.parsed.error.details
    assert isinstance(problem, sdk.models.Problem)
    assert problem.path == ["name"]

    unknown = sdk.connect(running.served.base_url, "assent_unknown")("system.get_me")
    assert unknown.status_code == HTTPStatus.UNAUTHORIZED
    assert unknown.parsed.error.code == "UNAUTHORIZED"


class TestProjects:
    def create(self, sdk: Sdk, call, name: str) -> Any:
        region = call("system.list_regions").parsed.data[0].id
        body = sdk.models.ProjectCreate(
            name=name,
            region=region,
            websites=[f"{name.lower()}.example.com", "localhost:3000"],
        )
        made = call("projects.create_project", body=body)
        assert made.status_code == HTTPStatus.CREATED
        return made.parsed.data

    def test_the_client_creates_updates_and_deletes_a_project(self, sdk: Sdk, call):
        made = self.create(sdk, call, "Bakery")
        first, second = call("projects.get_project", made.id).parsed.data.websites
        assert (first.origin, second.origin) == ("bakery.example.com", "localhost:3000")
        assert call("projects.delete_website", made.id, second.id).parsed.data.deleted_audits == 0
        change = sdk.models.ProjectUpdate(project_name="Brewery", description="Since 1906")
        assert call("projects.update_project", made.id, body=change).parsed.data.project_slug == "brewery"
        consent = call("projects.get_project_consent", made.id).parsed.data
        assert consent.trusted_origins == ["bakery.example.com"]
        gone = call("projects.delete_project", made.id)
        assert gone.parsed.data.deleted_websites == 1
        missing = call("projects.get_project", made.id)
        assert missing.status_code == HTTPStatus.NOT_FOUND
        assert missing.parsed.error.code == "NOT_FOUND"

    def test_the_client_pages_through_a_list(self, sdk: Sdk, call):
        made = [self.create(sdk, call, name).id for name in ("Cobbler", "Draper", "Engraver")]
        found: list[str] = []
        place: dict[str, Any] = {}
        while True:
            page = call("projects.list_projects", limit=1, **place).parsed
            found += [project.project_id for project in page.data]
            if not page.pagination.has_more:
                break
            place = {"cursor": page.pagination.next_cursor}
        assert found[:3] == made[::-1]
        assert len(found) == len(set(found))
        whole = call("projects.list_projects").parsed
        assert [project.project_id for project in whole.data] == found


def test_the_client_creates_rolls_and_deletes_a_key(sdk: Sdk, running: Api, call):
    made = call("api_keys.create_api_key", body=sdk.models.KeyCreate(name="Deploys")).parsed.data

    def status(key: str) -> HTTPStatus:
        answer = sdk.connect(running.served.base_url, key)("system.get_me")
        return HTTPStatus(answer.status_code)

    assert status(made.key) == HTTPStatus.OK
    rolled = call("api_keys.roll_api_key", made.key_id).parsed.data
    assert rolled.replaced_key_id == made.key_id
    assert (status(made.key), status(rolled.key)) == (HTTPStatus.UNAUTHORIZED, HTTPStatus.OK)
    assert rolled.key_id in [key.key_id for key in call("api_keys.list_api_keys").parsed.data]
    assert call("api_keys.delete_api_key", rolled.key_id).parsed.data.deleted is True
    assert status(rolled.key) == HTTPStatus.UNAUTHORIZED


def test_the_client_reads_the_plan(running: Api, call):
    billing = call("billing.get_billing").parsed.data
    assert billing.organization_id == running.served.organization_id
    assert billing.plan.id == "pro"
    assert billing.limits.projects == 200


def test_the_client_invites_a_member(sdk: Sdk, call):
    body = sdk.models.InvitationCreate(email="grace@example.com", role=sdk.models.Role.ADMIN)
    invitation = call("members.create_invitation", body=body).parsed.data
    assert invitation.expires_at > invitation.created_at
    assert invitation.id in [one.id for one in call("members.list_invitations").parsed.data]
    assert call("members.delete_invitation", invitation.id).parsed.data.deleted is True
    assert sdk.models.Role.OWNER in [member.role for member in call("members.list_members").parsed.data]


def test_the_client_decides_on_inbox_items(sdk: Sdk, call):
    item = call("inbox.list_inbox_items", status=sdk.models.InboxStatus.OPEN).parsed.data[0]
    body = sdk.models.InboxItemUpdate(status=sdk.models.InboxStatus.ACCEPTED, version=item.version, reason="Planned")
    changed = call("inbox.update_inbox_item", item.id, body=body).parsed.data
    assert changed.status == sdk.models.InboxStatus.ACCEPTED
    late = sdk.models.InboxItemUpdate(status=sdk.models.InboxStatus.DISMISSED, version=item.version)
    refused = call("inbox.update_inbox_item", item.id, body=late)
    assert refused.status_code == HTTPStatus.CONFLICT
    assert refused.parsed.error.details["currentVersion"] == changed.version
    assert call("inbox.get_inbox_item", item.id).parsed.data.evidence is not None


def test_the_client_scans_a_repository(sdk: Sdk, running: Api, call):
    repository_id = running.served.ids["repositoryId"][0]
    started = call("code_audit.start_scan", body=sdk.models.ScanCreate(repository_id=repository_id))
    assert started.status_code == HTTPStatus.ACCEPTED
    assert isinstance(started.parsed.data, sdk.models.ScanStarting)
    assert int(started.headers["Retry-After"]) == started.parsed.data.retry_after_seconds
    polled = call("code_audit.get_scan_request", started.parsed.data.preparation_id, repository_id=repository_id)
    assert isinstance(polled.parsed.data, sdk.models.ScanStarted)
    scan = call("code_audit.get_scan", polled.parsed.data.scan.id).parsed.data
    assert scan.status == sdk.models.ScanStatus.COMPLETED
    preview = next(scan for scan in call("code_audit.list_scans").parsed.data if scan.unlock_credits)
    assert call("code_audit.unlock_scan", preview.id).parsed.data.status == "unlocked"
    issues = call("code_audit.list_scan_issues", scan.id).parsed.data.issues
    assert issues[0].location.path == "index.html"


def test_the_client_submits_feedback(sdk: Sdk, call):
    report = sdk.models.FeedbackCreate(category=sdk.models.FeedbackCategory.DOCS_MISMATCH, message="It says otherwise.")
    first, second = (call("feedback.create_feedback", body=report) for _ in range(2))
    assert (first.status_code, second.status_code) == (HTTPStatus.CREATED, HTTPStatus.OK)
    assert second.parsed.data.reference == first.parsed.data.reference
    assert second.parsed.data.already_submitted is True


def test_the_client_requests_device_sign_in(sdk: Sdk, running: Api):
    call = sdk.connect(running.served.base_url)
    asks = sdk.models.DeviceCodeCreate(
        client_id="assent-cli", code_challenge=CHALLENGE, code_challenge_method="S256", device_name="build server"
    )
    asked = call("device_authorization.create_device_code", body=asks)
    assert asked.status_code == HTTPStatus.CREATED
    grant = sdk.models.TokenCreate(
        device_code=asked.parsed.data.device_code, code_verifier=VERIFIER, client_id="assent-cli"
    )
    pending = call("device_authorization.create_device_token", body=grant)
    assert pending.status_code == HTTPStatus.CONFLICT
    assert pending.parsed.error.details["status"] == "authorization_pending"

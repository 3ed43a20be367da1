"""Calls the API with openapi-python-client's client. Prints what it got, as JSON."""

import importlib
import json
import os
import sys
from typing import Any

from assent_client import AuthenticatedClient
from assent_client.models import (
    ConsentCreate,
    InboxItemUpdate,
    InboxStatus,
    ProjectCreate,
    ProjectUpdate,
    ScanCreate,
)


def connect(token: str) -> Any:
    """Returns a caller of operations, by `group.operation`, with that credential."""
    client = AuthenticatedClient(base_url=os.environ["BASE_URL"], token=token, raise_on_unexpected_status=True)

    def call(operation: str, *place: str, **arguments: Any) -> Any:
        module = importlib.import_module(f"assent_client.api.{operation}")
        return module.sync_detailed(*place, client=client, **arguments)

    return call


def main() -> None:
    call, repository_id = connect(os.environ["TOKEN"]), os.environ["REPOSITORY_ID"]
    me = call("system.get_me").parsed.data
    regions = call("system.list_regions").parsed.data
    wanted = ProjectCreate(name=os.environ["NAME"], region="eu-central", websites=["example.com"])
    made = call("projects.create_project", body=wanted).parsed.data
    read = call("projects.get_project", made.id).parsed.data
    page = call("projects.list_projects", limit=1).parsed
    updated = call("projects.update_project", made.id, body=ProjectUpdate(description="Changed")).parsed.data
    wanted.consent = ConsentCreate(trusted_origins=["example.com"])
    invalid = call("projects.create_project", body=wanted)
    item = call("inbox.list_inbox_items", status=InboxStatus.OPEN, limit=1).parsed.data[0]
    stale = call("inbox.update_inbox_item", item.id, body=InboxItemUpdate(status=InboxStatus.ACCEPTED, version="0"))
    billing = call("billing.get_billing").parsed.data
    asked = call("code_audit.start_scan", body=ScanCreate(repository_id=repository_id)).parsed.data
    polled = call("code_audit.get_scan_request", asked.preparation_id, repository_id=repository_id).parsed.data
    gone = call("projects.delete_project", made.id).parsed.data
    missing = call("projects.get_project", made.id)
    stranger = connect("assent_unknown")("system.get_me")
    found = {
        "principal": me.principal.type_,
        "regions": len(regions),
        "website": made.websites[0].origin,
        "read": read.name,
        "first": page.data[0].project_id == made.id,
        "more": page.pagination.has_more,
        "updated": updated.description,
        "invalid": [invalid.status_code, invalid.parsed.error.details[0].path],
        "item": item.status,
        "stale": [stale.status_code, stale.parsed.error.code],
        "plan": billing.plan.id,
        "started": polled.scan.repository_id == repository_id,
        "deleted": gone.deleted_websites,
        "missing": [missing.status_code, missing.parsed.error.code],
        "stranger": [stranger.status_code, stranger.parsed.error.code],
    }
    sys.stdout.write(json.dumps(found))


main()

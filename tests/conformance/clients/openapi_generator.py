"""Calls the API with openapi-generator's Python client. Prints what it got, as JSON."""

import json
import os
import sys
from collections.abc import Callable
from typing import Any

from openapi_client import (
    ApiClient,
    ApiException,
    BillingApi,
    CodeAuditApi,
    Configuration,
    ConsentCreate,
    InboxApi,
    InboxItemUpdate,
    InboxStatus,
    ProjectCreate,
    ProjectsApi,
    ProjectUpdate,
    ScanCreate,
    SystemApi,
)


def connect(token: str) -> ApiClient:
    return ApiClient(Configuration(host=os.environ["BASE_URL"], access_token=token))


def refused(call: Callable[..., Any], *arguments: Any, **named: Any) -> tuple[int, Any]:
    """Returns the status and the error of a refusal."""
    try:
        call(*arguments, **named)
    except ApiException as failure:
        return failure.status, failure.data.error
    raise SystemExit("not refused")


def main() -> None:
    api, repository_id = connect(os.environ["TOKEN"]), os.environ["REPOSITORY_ID"]
    projects, system, inbox, audits = ProjectsApi(api), SystemApi(api), InboxApi(api), CodeAuditApi(api)
    me = system.get_me().data
    regions = system.list_regions().data
    wanted = ProjectCreate(name=os.environ["NAME"], region="eu-central", websites=["example.com"])
    made = projects.create_project(wanted).data.actual_instance
    read = projects.get_project(made.id).data
    page = projects.list_projects(limit=1)
    updated = projects.update_project(made.id, ProjectUpdate(description="Changed")).data
    wanted.consent = ConsentCreate(trusted_origins=["example.com"])
    invalid_status, invalid = refused(projects.create_project, wanted)
    item = inbox.list_inbox_items(status=InboxStatus.OPEN, limit=1).data[0]
    decision = InboxItemUpdate(status=InboxStatus.ACCEPTED, version="0")
    stale_status, stale = refused(inbox.update_inbox_item, item.id, decision)
    billing = BillingApi(api).get_billing().data
    asked = audits.start_scan(ScanCreate(repository_id=repository_id)).data.actual_instance
    polled = audits.get_scan_request(asked.preparation_id, repository_id).data.actual_instance
    gone = projects.delete_project(made.id).data
    missing_status, missing = refused(projects.get_project, made.id)
    stranger_status, stranger = refused(SystemApi(connect("assent_unknown")).get_me)
    found = {
        "principal": me.principal.type,
        "regions": len(regions),
        "website": made.websites[0].origin,
        "read": read.name,
        "first": page.data[0].project_id == made.id,
        "more": page.pagination.has_more,
        "updated": updated.description,
        "invalid": [invalid_status, invalid.details.actual_instance[0].path],
        "item": item.status,
        "stale": [stale_status, stale.code],
        "plan": billing.plan.id,
        "started": polled.scan.repository_id == repository_id,
        "deleted": gone.deleted_websites,
        "missing": [missing_status, missing.code],
        "stranger": [stranger_status, stranger.code],
    }
    sys.stdout.write(json.dumps(found))


main()

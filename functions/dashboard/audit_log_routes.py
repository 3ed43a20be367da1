"""The page of an organization's audit log, and its export."""

from typing import Annotated

from fastapi import Query, Response

from controlplane.platform.http.app import ControlRouter
from dashboard.audit_log import ACTIONS, MOST_EXPORTED, Chosen, export, get_log
from dashboard.page_parameters import OrganizationSlug, SignedIn
from dashboard.pages import download, page

router = ControlRouter(tags=["Pages"], include_in_schema=False)

_Text = Annotated[str | None, Query(max_length=100)]
_Position = Annotated[str | None, Query(max_length=1_024)]


@router.get("/organizations/{organizationSlug}/audit-log", operation_id="showAuditLog")
async def show_audit_log(  # noqa: PLR0917 (FastAPI passes them by name)
    session: SignedIn,
    organization_slug: OrganizationSlug,
    actor: _Text = None,
    action: _Text = None,
    resource: _Text = None,
    since: _Text = None,
    until: _Text = None,
    after: _Position = None,
) -> Response:
    """Lists what changed in the organization, newest first, to admins and owners."""
    chosen = Chosen.of(actor=actor, action=action, resource=resource, since=since, until=until)
    shown = get_log(organization_slug, session.account, chosen, after)
    return page(
        "audit_log", session, **shown._asdict(), chosen=chosen, actions=ACTIONS, is_first=after is None,
        most_exported=MOST_EXPORTED,
    )  # fmt: skip


@router.get("/organizations/{organizationSlug}/audit-log.csv", operation_id="downloadAuditLogCsv")
async def download_csv(  # noqa: PLR0917 (FastAPI passes them by name)
    session: SignedIn,
    organization_slug: OrganizationSlug,
    actor: _Text = None,
    action: _Text = None,
    resource: _Text = None,
    since: _Text = None,
    until: _Text = None,
) -> Response:
    """Returns the entries that match the filters as CSV."""
    chosen = Chosen.of(actor=actor, action=action, resource=resource, since=since, until=until)
    text = export(organization_slug, session.account, chosen, "csv")
    return download(f"audit-log-{organization_slug}.csv", text, "text/csv; charset=utf-8")


@router.get("/organizations/{organizationSlug}/audit-log.json", operation_id="downloadAuditLogJson")
async def download_json(  # noqa: PLR0917 (FastAPI passes them by name)
    session: SignedIn,
    organization_slug: OrganizationSlug,
    actor: _Text = None,
    action: _Text = None,
    resource: _Text = None,
    since: _Text = None,
    until: _Text = None,
) -> Response:
    """Returns the entries that match the filters as JSON."""
    chosen = Chosen.of(actor=actor, action=action, resource=resource, since=since, until=until)
    text = export(organization_slug, session.account, chosen, "json")
    return download(f"audit-log-{organization_slug}.json", text, "application/json")

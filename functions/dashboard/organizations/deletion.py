"""The page that deletes an organization."""

from fastapi import Response

from controlplane.erasure import deletions
from controlplane.organizations.store import NotMember, UnknownOrganization
from controlplane.platform.http.app import ControlRouter
from dashboard.forms import NotAcceptable, require_confirmed
from dashboard.pages import page, redirect
from dashboard.parameters import OwnerSees, OwnerSubmits

router = ControlRouter(tags=["Pages"], include_in_schema=False)


@router.get("/organizations/{organizationSlug}/delete")
async def show_organization_deletion(session: OwnerSees) -> Response:
    """Explains what deleting the organization removes, and asks an owner to type its name or slug."""
    return page("organization_delete", session)


@router.post("/organizations/{organizationSlug}/delete")
async def delete_organization(session: OwnerSubmits) -> Response:
    """Deletes the organization if the user typed its name or slug, and still owns it."""
    here = session.organization
    try:
        require_confirmed(session.form, (here.name, here.slug), "the organization's name or slug")
        deletions.delete_organization(here.organization_id, session.user_id)
    except NotAcceptable as failure:
        return page("organization_delete", session, failure)
    except UnknownOrganization:
        raise NotMember from None
    return redirect("/organizations?done=deleted")

"""The pages of a person's own account: the profile, the export of its data, and its deletion."""

import json

from fastapi import Response

from controlplane.access import web_session
from controlplane.access.web_session import WebSession
from controlplane.erasure import deletions, personal_data
from controlplane.erasure.deletions import LastOwnerOf
from controlplane.platform.core.errors import ApiError, Conflict
from controlplane.platform.http.app import ControlRouter
from dashboard.forms import NotAcceptable
from dashboard.pages import download, page, redirect
from dashboard.parameters import SignedIn, Submits

router = ControlRouter(tags=["Pages"], include_in_schema=False)


class LastOwner(Conflict):
    def __init__(self, slugs: list[str]) -> None:
        named = ", ".join(slugs)
        super().__init__(
            f"You are the last owner of {named}. Make another member an owner, or delete the organization."
        )


@router.get("/account")
async def show_profile(session: SignedIn) -> Response:
    """Shows who the person is here, and leads to the export and to the deletion."""
    return page("account", session, current="/account")


@router.get("/account/export")
async def export_account(session: SignedIn) -> Response:
    """Returns the person's data as a file."""
    exported = personal_data.export_own(session.user_id)
    return download("my-data.json", json.dumps(exported, indent=2, ensure_ascii=False), "application/json")


@router.get("/account/delete")
async def show_account_deletion(session: SignedIn) -> Response:
    """Explains what deleting the account removes and keeps, and asks for the address."""
    return _deletion(session)


@router.post("/account/delete")
async def delete_account(session: Submits) -> Response:
    """Deletes the account if the person typed its address, and signs the person out."""
    profile, typed = session.account.profile, session.form.get("confirmation", "").strip().lower()
    # Without a profile, an earlier deletion was interrupted, and is finished here.
    if profile is not None and typed != profile.email.lower():
        return _deletion(session, NotAcceptable("That isn't the account's email address. Nothing was deleted."))
    try:
        deletions.delete_own_account(session.account, session.user_id)
    except LastOwnerOf as failure:
        return _deletion(session, LastOwner(failure.slugs))
    return redirect("/signed-out?done=deleted", web_session.ended_cookies())


def _deletion(session: WebSession, failure: ApiError | None = None) -> Response:
    held = session.account.memberships
    slugs = deletions.list_last_owned(held)
    # The organizations that have no other owner, which prevent the deletion.
    last = [membership for membership in held if membership.slug in slugs]
    return page("account_delete", session, failure, current="/account", last=last)

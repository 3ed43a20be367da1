"""The pages of a person's own account: the profile, the export of its data, and its deletion."""

import json

from fastapi import Response

from controlplane.access import web_session
from controlplane.access.web_session import WebSession
from controlplane.erasure import personal_data
from controlplane.platform.core.errors import ApiError
from controlplane.platform.http.app import ControlRouter
from dashboard import accounts
from dashboard.page_parameters import SignedIn, Submits
from dashboard.pages import HEADERS, address, page, redirect

router = ControlRouter(tags=["Pages"], include_in_schema=False)

_DOWNLOAD = {
    **HEADERS,
    "content-type": "application/json",
    "content-disposition": 'attachment; filename="my-data.json"',
}


@router.get("/account", operation_id="showProfile")
async def show_profile(session: SignedIn) -> Response:
    """Shows who the person is here, and leads to the export and to the deletion."""
    return page("account", session, current="/account")


@router.get("/account/export", operation_id="exportAccount")
async def export_account(session: SignedIn) -> Response:
    """Returns the person's data as a file."""
    exported = personal_data.export_own(session.user_id)
    return Response(json.dumps(exported, indent=2, ensure_ascii=False), headers=_DOWNLOAD)


@router.get("/account/delete", operation_id="showAccountDeletion")
async def show_account_deletion(session: SignedIn) -> Response:
    """Explains what deleting the account removes and keeps, and asks for the address."""
    return _deletion(session)


@router.post("/account/delete", operation_id="deleteAccount")
async def delete_account(session: Submits) -> Response:
    """Deletes the account if the person typed its address, and signs the person out."""
    typed = session.form.get("confirmation", "")[:300]
    try:
        accounts.delete_account(session.account, session.user_id, typed)
    except (accounts.NotConfirmed, accounts.LastOwner) as failure:
        return _deletion(session, typed, failure)
    return redirect(address("/signed-out?done=deleted"), web_session.ended_cookies())


def _deletion(session: WebSession, typed: str = "", failure: ApiError | None = None) -> Response:
    last = accounts.list_last_owned(session.account)
    return page("account_delete", session, failure=failure, current="/account", last=last, typed=typed)

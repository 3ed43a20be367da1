"""The pages for people without an account. People with one can open them, too."""

import json
from functools import cache
from pathlib import Path

from fastapi import Response

from controlplane.access.web_session import WebSession
from controlplane.findings.fixes import Fix
from controlplane.platform.core.errors import ApiError
from controlplane.platform.core.plans import PLANS, SCAN_UNLOCK_CREDITS
from controlplane.platform.http.app import ControlRouter
from controlplane.platform.table.health import DatabaseUnreachable, check_database
from dashboard.findings.highlighting import highlight
from dashboard.forms import NotAcceptable
from dashboard.pages import page
from dashboard.parameters import Anyone, Checks
from dashboard.visitors import checking
from dashboard.visitors.checking import Checked, CheckUnavailable, Found

router = ControlRouter(tags=["Pages"], include_in_schema=False)

# A small page and its finding, as the analysis reports it (tests/functional/dashboard/test_visitors.py).
SAMPLE = Path(__file__).with_name("sample.json")


def welcome(session: WebSession) -> Response:
    """Returns the home page of people who aren't signed in."""
    return page("welcome", session, sample=_sample(), highlight=highlight, code="")


@cache
def _sample() -> Found:
    found = json.loads(SAMPLE.read_text(encoding="utf-8"))["found"]
    return Found(found["finding"], Fix.of(found["fix"]))


@router.post("/check")
async def check_code(session: Checks) -> Response:
    """Shows the findings in pasted code. Stores nothing."""
    # Forms send the line breaks of Windows.
    code = session.form.get("code", "").replace("\r\n", "\n")
    try:
        return _checked(session, code, checking.check_code(code))
    except (NotAcceptable, CheckUnavailable) as failure:
        return _checked(session, code, failure=failure)


def _checked(
    session: WebSession, code: str, checked: Checked | None = None, failure: ApiError | None = None
) -> Response:
    return page("checked", session, failure, checked=checked, highlight=highlight, code=code)


@router.get("/pricing")
async def show_pricing(session: Anyone) -> Response:
    """Shows what each plan includes, and its price."""
    return page("pricing", session, plans=[*PLANS.values()], price=SCAN_UNLOCK_CREDITS)


@router.get("/status")
async def show_status(session: Anyone) -> Response:
    """Says what works, by the check of the API's `/health`."""
    try:
        check_database()
    except DatabaseUnreachable as failure:
        return page("status", session, failure)
    return page("status", session)

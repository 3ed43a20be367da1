"""Creations by forms: a form takes effect once, however often the browser sends it.

A form contains a random value, which works like the API's Idempotency-Key: for 24 hours, sending the form again returns
what the first request created, including the secret of a key, which isn't stored.
"""

import re
import secrets
from collections.abc import Callable, Mapping
from typing import Any

from controlplane.access.access import Access
from controlplane.access.idempotency import (
    AnswerLost,
    KeyOfAnotherRequest,
    RequestInFlight,
    idempotent,
    idempotent_secret,
)
from controlplane.access.web_session import FORM_TOKEN, WebSession
from controlplane.organizations.store import Membership
from controlplane.platform.core.errors import ApiError, Conflict
from controlplane.platform.core.settings import settings
from controlplane.platform.http.envelope import Answer, Wire
from controlplane.platform.table.table import Leg
from dashboard.forms import NotAcceptable

# The field of a form that contains the value.
FIELD = "once"
_VALUE = re.compile(r"[A-Za-z0-9_-]{20,64}")


class Created(Wire):
    """The result of a form: the ID or slug of what it created, and the secret if that is a key."""

    reference: str
    secret: str | None = None


class StillRunning(Conflict):
    message = "This is already being done. Wait a moment, and look at the list."


class AlreadySent(Conflict):
    message = "This form was already used. Look at the list before you send it again."


def _new_value() -> str:
    """Returns the value for a new form."""
    return secrets.token_urlsafe(24)


def form_content(session: WebSession, failure: ApiError | None) -> dict[str, str]:
    """Returns the content of a form that creates something. A form that may be sent again keeps its value."""
    kept = session.form.get(FIELD, "") if isinstance(failure, StillRunning) else ""
    return {"once_field": FIELD, "once": kept or _new_value()}


def create_once(
    session: WebSession, organization: Membership, operation: str, create: Callable[[Mapping[str, Leg]], str]
) -> str:
    """Returns the result of `create`. If the form was sent before, returns the result of the first time.

    create: gets the legs that must come first in its transaction. Raises NotAcceptable, StillRunning, AlreadySent,
    and the errors of `create`.
    """
    return _run(
        lambda access, value: idempotent(
            access, operation, value, _payload(session), lambda legs: Created(reference=create(legs))
        ),
        session,
        organization,
    ).reference


def create_secret_once(
    session: WebSession,
    organization: Membership,
    operation: str,
    create: Callable[[Mapping[str, Leg], str], str],
    prefix: str = settings.service_brand,
) -> Created:
    """Like `create_once`, for a secret with that prefix. `create` also gets it, and a repeated form shows it again."""

    def create_key(legs: Mapping[str, Leg], secret: str) -> Answer[Created]:
        return Answer(Created(reference=create(legs, secret), secret=secret))

    return _run(
        lambda access, value: idempotent_secret(
            access, operation, value, _payload(session), create_key, prefix=prefix, field="secret"
        ),
        session,
        organization,
    )


def _run(send: Callable[[Access[Any], str], Answer[Created]], session: WebSession, organization: Membership) -> Created:
    value, access = session.form.get(FIELD, ""), session.access
    if access is None or not _VALUE.fullmatch(value):
        raise NotAcceptable("This form is incomplete. Reload the page, and try again.")
    # The value is bound to the person and the organization.
    access.organization = organization
    try:
        # A replayed response has the stored content instead of a model.
        content: Any = send(access, value).content
    except RequestInFlight:
        raise StillRunning from None
    except (AnswerLost, KeyOfAnotherRequest):
        raise AlreadySent from None
    return content if isinstance(content, Created) else Created.model_validate(content)


def _payload(session: WebSession) -> dict[str, str]:
    """Returns the fields that a repeated form shares with the first one: all but the CSRF token and the value."""
    return {name: text for name, text in session.form.items() if name not in {FIELD, FORM_TOKEN}}

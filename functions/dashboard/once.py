"""Creations by forms: a form takes effect once, however often the browser sends it.

A form contains a random value, which works like the API's Idempotency-Key: for 24 hours, sending the form again returns
what the first request created, including the secret of a key, which isn't stored.
"""

import re
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
from controlplane.platform.core.errors import Conflict
from controlplane.platform.core.settings import settings
from controlplane.platform.http.envelope import Answer, Wire
from controlplane.platform.table.table import Leg
from dashboard.forms import ONCE, NotAcceptable, StillRunning

_VALUE = re.compile(r"[A-Za-z0-9_-]{20,64}")


class Created(Wire):
    """The result of a form: the ID or slug of what it created, and the secret if that is a key."""

    reference: str
    secret: str | None = None


class AlreadySent(Conflict):
    message = "This form was already used. Look at the list before you send it again."


def create_once(session: WebSession, operation: str, create: Callable[[Mapping[str, Leg]], str]) -> str:
    """Returns the result of `create`. If the form was sent before, returns the result of the first time.

    create: gets the legs that must come first in its transaction. Raises NotAcceptable, StillRunning, AlreadySent,
    and the errors of `create`.
    """
    return _run(
        session,
        lambda access, value, payload: idempotent(
            access, operation, value, payload, lambda legs: Created(reference=create(legs))
        ),
    ).reference


def create_secret_once(
    session: WebSession,
    operation: str,
    create: Callable[[Mapping[str, Leg], str], str],
    prefix: str = settings.service_brand,
) -> Created:
    """Like `create_once`, for a secret with that prefix. `create` also gets it, and a repeated form shows it again."""

    def create_key(legs: Mapping[str, Leg], secret: str) -> Answer[Created]:
        return Answer(Created(reference=create(legs, secret), secret=secret))

    return _run(
        session,
        lambda access, value, payload: idempotent_secret(
            access, operation, value, payload, create_key, prefix=prefix, field="secret"
        ),
    )


def _run(session: WebSession, send: Callable[[Access[Any], str, dict[str, str]], Answer[Created]]) -> Created:
    value, access = session.form.get(ONCE, ""), session.access
    if access is None or not _VALUE.fullmatch(value):
        raise NotAcceptable("This form is incomplete. Reload the page, and try again.")
    # The value is bound to the person and, on a page of an organization, to that one.
    access.organization = session.membership
    # A repeated form shares all fields with the first one but the CSRF token.
    payload = {name: text for name, text in session.form.items() if name not in {ONCE, FORM_TOKEN}}
    try:
        # A replayed response has the stored content instead of a model.
        content: Any = send(access, value, payload).content
    except RequestInFlight:
        raise StillRunning from None
    except (AnswerLost, KeyOfAnotherRequest):
        raise AlreadySent from None
    return content if isinstance(content, Created) else Created.model_validate(content)

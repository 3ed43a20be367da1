"""Types of the pages' parameters: the session that a page requires, and parts of its path."""

from typing import Annotated

from fastapi import Path

from controlplane.access.anonymous import Anonymous
from controlplane.access.web_session import RequiresSession, WebSession
from controlplane.platform.core.settings import settings
from controlplane.platform.http.reader import MAX_BODY_BYTES
from dashboard.errors import PageLook

_LOOK = PageLook()
# Rate-limited, because each request may call the provider.
_SIGN_INS = Anonymous("pages.sign-in", settings.sign_in_requests_per_minute)
# A check of pasted code takes seconds of processor time, and there are two at a time (`table.waiting`).
_CHECKS = Anonymous("pages.check", 6, per_minute_in_all=60)
# Anyone can try links, and each try reads the table.
_UNSUBSCRIPTIONS = Anonymous("pages.unsubscribe", settings.sign_in_requests_per_minute)

Anyone = Annotated[WebSession, RequiresSession(_LOOK, signed_in=False)]
# For addresses that aren't pages.
Lost = Annotated[WebSession, RequiresSession(None, signed_in=False)]
SignsIn = Annotated[WebSession, RequiresSession(_LOOK, signed_in=False, counted=_SIGN_INS)]
# Needs no CSRF token: a check changes nothing, and its answer depends only on the form. A token of no session, which
# anyone can fetch, would keep no site from sending it.
Checks = Annotated[
    WebSession, RequiresSession(_LOOK, signed_in=False, counted=_CHECKS, form=True, most_bytes=MAX_BODY_BYTES)
]
Unsubscribes = Annotated[WebSession, RequiresSession(_LOOK, signed_in=False, counted=_UNSUBSCRIPTIONS)]

# A person's own pages, and the forms on them.
SignedIn = Annotated[WebSession, RequiresSession(_LOOK)]
Submits = Annotated[WebSession, RequiresSession(_LOOK, form=True)]

# Pages of the organization that the path names, by the role that they require, and the forms on them.
MemberSees = Annotated[WebSession, RequiresSession(_LOOK, role="member")]
MemberSubmits = Annotated[WebSession, RequiresSession(_LOOK, role="member", form=True)]
AdminSees = Annotated[WebSession, RequiresSession(_LOOK, role="admin")]
AdminSubmits = Annotated[WebSession, RequiresSession(_LOOK, role="admin", form=True)]
OwnerSees = Annotated[WebSession, RequiresSession(_LOOK, role="owner")]
OwnerSubmits = Annotated[WebSession, RequiresSession(_LOOK, role="owner", form=True)]
# A form that names items, each in a field of its own: up to 100 findings and their groups, or 50 others.
MemberSubmitsMany = Annotated[WebSession, RequiresSession(_LOOK, role="member", form=True, most_fields=256)]
AdminSubmitsMany = Annotated[WebSession, RequiresSession(_LOOK, role="admin", form=True, most_fields=64)]

ProjectSlug = Annotated[str, Path(alias="projectSlug")]
RepositoryPath = Annotated[str, Path(alias="repositoryId")]
ItemPath = Annotated[str, Path(alias="itemId")]
KeyPath = Annotated[str, Path(alias="keyId")]
AuditPath = Annotated[str, Path(alias="auditId")]
RunPath = Annotated[str, Path(alias="runId")]
ScanPath = Annotated[str, Path(alias="scanId")]
WebhookPath = Annotated[str, Path(alias="webhookId")]
EventPath = Annotated[str, Path(alias="eventId")]

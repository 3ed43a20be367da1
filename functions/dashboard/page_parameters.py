"""Types of the pages' parameters: the session that a page requires, and its query."""

from typing import Annotated

from fastapi import Path, Query

from controlplane.access.anonymous import Anonymous
from controlplane.access.web_session import RequiresSession, WebSession
from controlplane.platform.core.settings import settings
from dashboard.pages import PageLook

_LOOK = PageLook()
# Rate-limited, because each request may call the provider.
_SIGN_INS = Anonymous("pages.sign-in", settings.sign_in_requests_per_minute)

# Anyone can try links, and each try reads the table.
_UNSUBSCRIPTIONS = Anonymous("pages.unsubscribe", settings.sign_in_requests_per_minute)

Anyone = Annotated[WebSession, RequiresSession(_LOOK, signed_in=False)]
# For addresses that aren't pages.
Lost = Annotated[WebSession, RequiresSession(_LOOK, signed_in=False, negotiated=True)]
SignsIn = Annotated[WebSession, RequiresSession(_LOOK, signed_in=False, counted=_SIGN_INS)]
Unsubscribes = Annotated[WebSession, RequiresSession(_LOOK, signed_in=False, counted=_UNSUBSCRIPTIONS)]
SignedIn = Annotated[WebSession, RequiresSession(_LOOK)]
Submits = Annotated[WebSession, RequiresSession(_LOOK, form=True)]

# A form that names up to 50 items, each in a field of its own.
SubmitsMany = Annotated[WebSession, RequiresSession(_LOOK, form=True, most_fields=64)]

OrganizationSlug = Annotated[str, Path(alias="organizationSlug")]
ProjectSlug = Annotated[str, Path(alias="projectSlug")]
RepositoryPath = Annotated[str, Path(alias="repositoryId")]
InboxItemPath = Annotated[str, Path(alias="itemId")]
InvitationPath = Annotated[str, Path(alias="invitationId")]
KeyPath = Annotated[str, Path(alias="keyId")]
ScanPath = Annotated[str, Path(alias="scanId")]
# How many findings the previous pages showed.
AfterFinding = Annotated[int, Query(ge=0, le=10_000)]
# The code of a change that the page confirms.
Done = Annotated[str, Query(max_length=40)]
Text = Annotated[str | None, Query(max_length=4096)]

"""A project as one item of the table, with its websites and its consent instance."""

import secrets
from dataclasses import dataclass, replace
from typing import Annotated, Literal, NamedTuple, Self

from controlplane.platform.core.ids import ProjectId
from controlplane.platform.core.plans import PLANS
from controlplane.platform.core.settings import settings
from controlplane.platform.table import keys
from controlplane.platform.table.keys import Key
from controlplane.platform.table.stored import SPARSE, StoredItem

AddressKind = Literal["domain", "wildcard", "any", "app", "development"]
AUDITABLE_KIND: AddressKind = "domain"
NO_BRANDING = "none"


class Address(NamedTuple):
    """A website's address in its normalized form, and the kind of address."""

    origin: str
    kind: AddressKind


class WebsiteItem(NamedTuple):
    """A website of a project, with the ids of its audits. It is `trusted` if it is a consent entry."""

    website_id: str
    origin: str
    kind: AddressKind
    audits: tuple[str, ...] = ()
    trusted: bool = True


class ConsentItem(NamedTuple):
    """The consent instance. It loads on every website of its project."""

    instance_id: str
    slug: str
    name: str
    branding: str


# Not frozen, unlike other items: creating a frozen one takes a call for each field, and lists have up to 100 projects.
@dataclass(slots=True, kw_only=True)
class ProjectItem(StoredItem):
    """A project as stored in the table. `version` changes with every write. `former_slugs`: the latest one is last."""

    project_id: ProjectId
    name: str
    slug: str
    description: str | None
    region: str
    created_at: str
    version: str
    websites: tuple[WebsiteItem, ...]
    consent: ConsentItem | None
    former_slugs: Annotated[tuple[str, ...], SPARSE] = ()

    @property
    def key(self) -> Key:
        return keys.project(*self.project_id.location)

    @property
    def audit_count(self) -> int:
        return sum(len(website.audits) for website in self.websites)

    @property
    def trusted_origins(self) -> list[str]:
        """The origins of the consent entries, in the order of the websites."""
        return [website.origin for website in self.websites if website.trusted]

    @property
    def primary_website(self) -> WebsiteItem | None:
        """Returns the first domain, which is shown as the project's site, or None."""
        return next((website for website in self.websites if website.kind == AUDITABLE_KIND), None)

    def find_website(self, website_id: str) -> WebsiteItem | None:
        return next((website for website in self.websites if website.website_id == website_id), None)

    def with_new_version(self) -> Self:
        return replace(self, version=secrets.token_hex(8))

    def served_on(self, plan: str) -> Self:
        """Returns the project as it is served on that plan: with branding, unless the plan allows removing it.

        The stored branding doesn't change, so it applies again once the plan allows it.
        """
        if self.consent is None or self.consent.branding != NO_BRANDING or PLANS[plan].remove_branding:
            return self
        return replace(self, consent=self.consent._replace(branding=settings.service_brand))

    def with_website(self, changed: WebsiteItem) -> Self:
        """Returns the project with the website of that id replaced, or removed if it's neither trusted nor audited."""
        websites = (changed if it.website_id == changed.website_id else it for it in self.websites)
        return replace(self, websites=tuple(it for it in websites if it.trusted or it.audits))

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
# Vendors without a decision fill the list up to the first number. Those with one have at most some 240 KB of the 400 KB
# that an item can have.
MAX_CONFIGURED_VENDORS = 200
MAX_DECIDED_VENDORS = 400


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


class ConfiguredVendor(NamedTuple):
    """A vendor as the public configuration shows it. state: the decision, or None until there is one."""

    vendor_id: str
    name: str | None = None
    domain: str | None = None
    category: str | None = None
    state: Literal["approved", "ignored"] | None = None


# Not frozen, unlike other items: creating a frozen one takes a call for each field, and lists have up to 100 projects.
@dataclass(slots=True, kw_only=True)
class ProjectItem(StoredItem):
    """A project as stored in the table. `version` changes with every write. `former_slugs`: the latest one is last.
    `badge`: the random part of its public badge's address, if it has one. It gives access to nothing else.

    The item has everything that the public configuration of the consent instance shows, so that it costs one read and
    is never stale. `vendors` repeats what the vendors' own items say: a transaction that changes that for a vendor also
    writes the project (`changes.vendors_leg`).
    """

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
    vendors: Annotated[tuple[ConfiguredVendor, ...], SPARSE] = ()
    badge: Annotated[str | None, SPARSE] = None

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

    def find_vendor(self, vendor_id: str) -> ConfiguredVendor | None:
        return next((vendor for vendor in self.vendors if vendor.vendor_id == vendor_id), None)

    def with_new_version(self) -> Self:
        return replace(self, version=secrets.token_hex(8))

    def served_on(self, plan: str) -> Self:
        """Returns the project as it is served on that plan: with branding, unless the plan allows removing it.

        The stored branding doesn't change, so it applies again once the plan allows it. The version differs, because
        it is also that of the configuration.
        """
        if self.consent is None or self.consent.branding != NO_BRANDING or PLANS[plan].remove_branding:
            return self
        branded = self.consent._replace(branding=settings.service_brand)
        return replace(self, consent=branded, version=f"{self.version}-branded")

    def with_vendors(self, *changed: ConfiguredVendor) -> Self:
        """Returns the project with these vendors added or replaced: itself if it has them already.

        At most MAX_CONFIGURED_VENDORS are kept, those with a decision first, or up to MAX_DECIDED_VENDORS decided ones.
        """
        vendors = {it.vendor_id: it for it in (*self.vendors, *changed)}.values()
        decided = sum(it.state is not None for it in vendors)
        most = min(max(decided, MAX_CONFIGURED_VENDORS), MAX_DECIDED_VENDORS)
        kept = tuple(sorted(vendors, key=lambda it: it.state is None)[:most])
        return self if kept == self.vendors else replace(self, vendors=kept).with_new_version()

    def without_vendors(self, *vendor_ids: str) -> Self:
        """Returns the project without these vendors: itself if it has none of them."""
        kept = tuple(vendor for vendor in self.vendors if vendor.vendor_id not in vendor_ids)
        return self if kept == self.vendors else replace(self, vendors=kept).with_new_version()

    def with_website(self, changed: WebsiteItem) -> Self:
        """Returns the project with the website of that id replaced, or removed if it's neither trusted nor audited."""
        websites = (changed if it.website_id == changed.website_id else it for it in self.websites)
        return replace(self, websites=tuple(it for it in websites if it.trusted or it.audits))

"""Rules for a project's websites: what a new list adds, keeps, and removes.

A website is a consent entry, or audited, or both. Every website loads consent, and `trustedOrigins` lists the entries
alone. A new list never deletes an audit. This module works on values and never reads or writes the table.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from controlplane.platform.core import ids
from controlplane.platform.core.errors import Conflict, Forbidden, InvalidPayload, NotFound
from controlplane.projects.items import Address, ProjectItem, WebsiteItem

MAX_WEBSITES = 50


class UnknownWebsite(NotFound):
    """The project doesn't have this website, or it was deleted."""


class LastTrustedWebsite(Conflict):
    message = "This is the last website that consent trusts. Add another one first, or delete the project."

    def __init__(self) -> None:
        super().__init__(details={"reason": "last_trusted_website"})


class WebsiteRemovalNeedsAdmin(Forbidden):
    def __init__(self, removed: Sequence[WebsiteItem]) -> None:
        more = f" (and {len(removed) - 1} more)" if len(removed) > 1 else ""
        super().__init__(
            f"This list omits {removed[0].origin}{more}. Only an admin or owner can remove a website.",
            details={
                "reason": "removes_websites",
                "websites": [{"id": website.website_id, "origin": website.origin} for website in removed],
            },
        )


def create_websites(addresses: Iterable[Address]) -> list[WebsiteItem]:
    """Returns the addresses as new consent entries."""
    return [WebsiteItem(website_id=ids.within(ids.WEBSITE), origin=it.origin, kind=it.kind) for it in addresses]


def replace_websites(existing: Sequence[WebsiteItem], addresses: Collection[Address]) -> tuple[WebsiteItem, ...]:
    """Returns the websites after a new list of websites: distinct addresses, in order.

    A website that isn't a consent entry doesn't become one by being listed, so a client that knows only `websites`
    doesn't change the entries by sending what it read. If no entry would be left, all listed websites become entries.
    """
    listed = _listed(existing, addresses)
    if not any(website.trusted for website in listed):
        return replace_entries(existing, addresses)
    return _with_omitted(existing, listed)


def replace_entries(existing: Sequence[WebsiteItem], addresses: Collection[Address]) -> tuple[WebsiteItem, ...]:
    """Returns the websites after a new list of consent entries: distinct addresses, in order."""
    return _with_omitted(existing, [replace(website, trusted=True) for website in _listed(existing, addresses)])


def add_entries(existing: Sequence[WebsiteItem], addresses: Sequence[Address]) -> tuple[WebsiteItem, ...]:
    """Returns the websites with these distinct addresses as consent entries. New ones come last."""
    added = {address.origin for address in addresses}
    kept = [replace(website, trusted=True) if website.origin in added else website for website in existing]
    known = {website.origin for website in existing}
    return (*kept, *create_websites(address for address in addresses if address.origin not in known))


def move_to_front(existing: Sequence[WebsiteItem], website_id: str) -> tuple[WebsiteItem, ...]:
    """Returns the websites with this one first. Raises UnknownWebsite."""
    first = [website for website in existing if website.website_id == website_id]
    if not first:
        raise UnknownWebsite
    return (*first, *(website for website in existing if website.website_id != website_id))


def _listed(existing: Iterable[WebsiteItem], addresses: Iterable[Address]) -> list[WebsiteItem]:
    """Returns the websites with these addresses. Existing ones keep their ids and audits."""
    kept = {website.origin: website for website in existing}
    return [kept.get(website.origin, website) for website in create_websites(addresses)]


def _with_omitted(existing: Iterable[WebsiteItem], listed: list[WebsiteItem]) -> tuple[WebsiteItem, ...]:
    """Returns the listed websites and the audited ones that the list omits, which keep their positions."""
    origins = {website.origin for website in listed}
    websites = [*listed]
    for position, website in enumerate(existing):
        if website.audits and website.origin not in origins:
            websites.insert(position, replace(website, trusted=False))
    return tuple(websites)


def require_permitted(before: ProjectItem, after: ProjectItem, *, may_remove: bool) -> None:
    """Raises WebsiteRemovalNeedsAdmin, or InvalidPayload if the project would have too many websites."""
    entries = set(after.trusted_origins)
    removed = [website for website in before.websites if website.trusted and website.origin not in entries]
    if removed and not may_remove:
        raise WebsiteRemovalNeedsAdmin(removed)
    if len(after.websites) > MAX_WEBSITES:
        text = f"A project has at most {MAX_WEBSITES} websites, including the audited ones that this list omits."
        raise InvalidPayload.at([], text, "too_many_websites")


def require_trusted(before: ProjectItem, after: ProjectItem) -> None:
    """Raises LastTrustedWebsite if the project has consent and would lose its last consent entry."""
    if before.consent is not None and before.trusted_origins and not after.trusted_origins:
        raise LastTrustedWebsite

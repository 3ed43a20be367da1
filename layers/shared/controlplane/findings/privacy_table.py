"""A project's vendors and cookies as a table for its privacy page.

The table lists the vendors that were approved and found: on a website, or in the code as of the latest scan. Others are
only counted, so that the reader of the list sees what the table doesn't say.
"""

import json
import re
from collections.abc import Iterable, Sequence
from functools import cache
from html import escape
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from controlplane.code_host.github import markdown
from controlplane.findings import vendors
from controlplane.findings.vendors import VendorItem
from controlplane.platform.core.ids import ProjectId

# Cookies and privacy policies, as the vendors document them. A vendor or a fact that is missing there is unknown.
_FACTS: Final = Path(__file__).with_name("vendor_facts.json")

# The purposes of the catalog's categories, in words for visitors of a website. `other` says nothing.
PURPOSES: Final = {
    "analytics": "Measures how visitors use the site",
    "tag-manager": "Loads other scripts",
    "marketing": "Advertising, and measuring its success",
    "session-replay": "Records visits so that they can be replayed",
    "social": "Content of social networks, and sharing to them",
    "chat": "Chat with visitors",
    "feedback": "Surveys and feedback",
    "ab-testing": "Compares variants of pages",
    "error-monitoring": "Records errors of the site",
    "cookieless-analytics": "Measures how visitors use the site, without cookies",
    "cookieless-advertising": "Advertising without cookies",
    "consent-management": "Asks for consent, and remembers the choice",
    "payments": "Payments, and protection against fraud",
    "captcha": "Protection against bots",
    "video": "Plays videos",
    "widgets": "Embedded content",
    "maps": "Shows maps",
    "fonts": "Serves fonts",
    "cdn": "Serves files of the site",
}
_UNKNOWN, _NONE = "Not known", "None"
_COLUMNS = ("Vendor", "Purpose", "Cookies", "Privacy policy")
# Characters that format or end a cell of Markdown, or make a link of an address.
_MARKUP = re.compile(r"[\\`*_{}\[\]<>#|~!:]|(?<=www)\.", re.IGNORECASE)


class Cookie(NamedTuple):
    """A cookie as its vendor documents it. `<…>` stands for a part that differs.

    lifetime: the default, or in words that the vendor doesn't document it.
    """

    name: str
    lifetime: str
    purpose: str

    def __str__(self) -> str:
        return f"{self.name} ({self.lifetime}): {self.purpose}"


class VendorFacts(NamedTuple):
    """The facts that a vendor documents. cookies: None if unknown, empty if it documents that it sets none.

    source: the vendor's page about its cookies.
    """

    privacy_policy: str | None = None
    source: str | None = None
    cookies: tuple[Cookie, ...] | None = None


def find_facts(vendor_id: str) -> VendorFacts:
    """Returns the known facts about a vendor of the catalog, or empty ones."""
    return _all_facts().get(vendor_id, VendorFacts())


def purpose_of(category: str | None) -> str | None:
    """Returns the purpose of a category in words, or None if it is unknown. A source may use categories of its own."""
    if category in (None, "other"):
        return None
    return PURPOSES.get(category, category.replace("-", " ").capitalize())


@cache
def _all_facts() -> dict[str, VendorFacts]:
    stored = json.loads(_FACTS.read_text(encoding="utf-8"))
    return {
        vendor_id: VendorFacts(
            it.get("privacyPolicy"),
            it.get("source"),
            tuple(Cookie(*cookie) for cookie in it["cookies"]) if "cookies" in it else None,
        )
        for vendor_id, it in stored.items()
    }


class ListedVendor(NamedTuple):
    """A vendor of the table. purpose, cookies, privacy_policy: None if unknown. No cookies: it documents that.

    source: the vendor's page about its cookies. before_consent: it was last seen to load before consent.
    """

    vendor_id: str
    name: str
    purpose: str | None
    cookies: tuple[Cookie, ...] | None
    privacy_policy: str | None
    source: str | None
    before_consent: bool


class PrivacyTable(NamedTuple):
    """The vendors of the table, and the names of those that it leaves out, by reason.

    ignored: found, although decided against. unseen: approved, but not found.
    """

    listed: list[ListedVendor]
    undecided: list[str]
    ignored: list[str]
    unseen: list[str]


def read_table(project_id: ProjectId) -> PrivacyTable:
    """Returns the project's table. Consistent, one round trip for each megabyte of vendors."""
    return make_table(vendors.list_all_vendors(project_id))


def make_table(found: Iterable[VendorItem]) -> PrivacyTable:
    table = PrivacyTable([], [], [], [])
    for vendor in sorted(found, key=_sort_key):
        is_found = vendor.last_seen_at is not None or any(use.places for use in vendor.code)
        name = vendor.name or vendor.vendor_id
        if vendor.state == "approved" and is_found:
            table.listed.append(_listed(vendor))
        elif vendor.state == "approved":
            table.unseen.append(name)
        elif is_found:
            (table.ignored if vendor.state == "ignored" else table.undecided).append(name)
    return table


def _sort_key(vendor: VendorItem) -> tuple[str, str]:
    return (vendor.name or vendor.vendor_id).casefold(), vendor.vendor_id


def _listed(vendor: VendorItem) -> ListedVendor:
    facts = find_facts(vendor.vendor_id)
    return ListedVendor(
        vendor.vendor_id,
        vendor.name or vendor.vendor_id,
        purpose_of(vendor.category),
        facts.cookies,
        facts.privacy_policy,
        facts.source,
        vendor.before_consent or any(use.before_consent for use in vendor.code),
    )


def to_html(listed: Sequence[ListedVendor]) -> str:
    """Returns the table as an HTML fragment without styles, classes, and scripts."""
    heads = "".join(f'<th scope="col">{column}</th>' for column in _COLUMNS)
    rows = "\n".join(f"<tr>{_html_cells(vendor)}</tr>" for vendor in listed)
    return f"<table>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table>\n"


def _html_cells(vendor: ListedVendor) -> str:
    cookies = _UNKNOWN if vendor.cookies is None else "<br>".join(map(_html_cookie, vendor.cookies)) or _NONE
    policy = _UNKNOWN
    if vendor.privacy_policy:
        policy = f'<a href="{escape(vendor.privacy_policy)}">{escape(_host(vendor.privacy_policy))}</a>'
    cells = "".join(f"<td>{cell}</td>" for cell in (_html_text(vendor.purpose or _UNKNOWN), cookies, policy))
    return f'<th scope="row">{_html_text(vendor.name)}</th>{cells}'


def _html_text(text: str) -> str:
    return escape(markdown.one_line(text))


def _html_cookie(cookie: Cookie) -> str:
    return f"<code>{escape(cookie.name)}</code> ({escape(cookie.lifetime)}): {escape(cookie.purpose)}"


def to_markdown(listed: Sequence[ListedVendor]) -> str:
    """Returns the table in the Markdown of GitHub."""
    rows = [_COLUMNS, ("---",) * len(_COLUMNS), *(_markdown_cells(vendor) for vendor in listed)]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in rows)


def _markdown_cells(vendor: ListedVendor) -> tuple[str, ...]:
    cookies = _UNKNOWN if vendor.cookies is None else "<br>".join(map(_markdown_cookie, vendor.cookies)) or _NONE
    policy = f"[{_host(vendor.privacy_policy)}]({vendor.privacy_policy})" if vendor.privacy_policy else _UNKNOWN
    return _markdown_text(vendor.name), _markdown_text(vendor.purpose or _UNKNOWN), cookies, policy


def _markdown_text(text: str) -> str:
    """Returns a text from outside as Markdown that shows it literally, on one line."""
    return markdown.break_signs(_MARKUP.sub(r"\\\g<0>", markdown.one_line(text).replace("&", "&amp;")))


def _markdown_cookie(cookie: Cookie) -> str:
    return f"`{cookie.name}` ({cookie.lifetime}): {cookie.purpose}"


def _host(address: str) -> str:
    return urlsplit(address).netloc

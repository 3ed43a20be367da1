"""Facts about well-known vendors for a privacy page: their cookies, and where they publish their privacy policies.

The facts are those that the vendors document (`source`). A vendor or a fact that is missing here is unknown.
"""

import json
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

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

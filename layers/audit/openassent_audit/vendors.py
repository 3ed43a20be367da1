"""The third parties that requests and cookies belong to, from the catalog that the code analysis uses."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from openassent_analysis.catalogue import Vendor, shipped_catalogue
from openassent_audit.recording import Cookie, Sent
from openassent_audit.sites import site_of
from openassent_audit.words import expression

# Categories whose vendors need consent, by the priority of loading one before.
_URGENT: Final = frozenset({"marketing", "analytics", "session-replay", "tag-manager", "social", "ab-testing"})
_LESS_URGENT: Final = frozenset({"chat", "video", "widgets", "maps", "feedback"})
TRACKING: Final = _URGENT | _LESS_URGENT
# Parts of a name that differ between visitors or accounts, such as in _ga_ABC1234.
_CHANGING: Final = re.compile(
    r"(?<=[_.-])(?=[A-Z0-9]*\d)[A-Z0-9]{6,}|[0-9a-f]{8,}(?:-[0-9a-f]{4,}){0,4}|\d{4,}", re.IGNORECASE
)
_NOT_IN_ID: Final = re.compile(r"[^a-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class Party:
    """A third party. category: None if the catalog doesn't have it. alias_of: its name behind one of the website's."""

    id: str
    name: str
    domain: str
    category: str | None
    is_mild: bool = False
    alias_of: str = ""

    @property
    def needs_consent(self) -> bool:
        return self.category in TRACKING

    @property
    def priority(self) -> str:
        return "P1" if self.category in _URGENT and not self.is_mild else "P2"

    @property
    def is_google(self) -> bool:
        """Returns whether its tags take part in Google's consent mode."""
        return self.id.startswith(("google-a", "google-tag", "doubleclick", "google-doubleclick"))


class Parties:
    """Names the third parties of one website. aliases: the name behind each host that is an alias."""

    def __init__(self, host: str, aliases: Mapping[str, str]) -> None:
        self._site = site_of(host)
        self._aliases = aliases

    def is_own(self, host: str) -> bool:
        return site_of(host) == self._site

    def of(self, host: str, path: str = "") -> Party | None:
        """Returns the third party that serves an address, or None if the website does so itself."""
        alias = self._aliases.get(host, "")
        if alias and not self.is_own(alias):
            hidden = shipped_catalogue().vendor_of(alias)
            if hidden is not None and hidden.category in TRACKING:
                return _known(hidden, host, alias)
        if self.is_own(host):
            return None
        vendor = shipped_catalogue().vendor_of(host, path)
        if vendor is None:
            site = site_of(host)
            return Party(_NOT_IN_ID.sub("-", site)[:100], site, host, None)
        return _known(vendor, host)

    def of_request(self, sent: Sent) -> Party | None:
        return self.of(sent.host, urlsplit(sent.url).path)

    def of_cookie(self, cookie: Cookie) -> Party | None:
        """Returns the third party to which a cookie is sent, or whose response has set it."""
        host = cookie.domain.lstrip(".")
        if not self.is_own(host):
            return self.of(host)
        if not cookie.set_by:
            return None
        setter = urlsplit(cookie.set_by)
        return self.of(setter.hostname or "", setter.path)


def _known(vendor: Vendor, host: str, alias_of: str = "") -> Party:
    return Party(vendor.id, vendor.name, host, vendor.category, vendor.severity in {"low", "medium"}, alias_of)


def pattern_of(name: str) -> str:
    """Returns a cookie's name with an asterisk for what differs between visitors: `_ga_*`."""
    return _CHANGING.sub("*", name)


def tracks(cookie: Cookie) -> bool:
    return bool(expression("tracking").search(cookie.name))


def is_necessary(cookie: Cookie) -> bool:
    return bool(expression("necessary").search(cookie.name))

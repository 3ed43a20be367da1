"""The kinds of findings of a website audit: why each matters, how to fix it, and which visits would show it."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from controlplane.audits.reports import CHOICES, Choice


class About(NamedTuple):
    """A kind of finding. A finding that is in no report of a run that made these visits is gone."""

    meaning: str
    remediation: str
    visits: frozenset[Choice]


_UNTOUCHED, _REFUSED = frozenset[Choice]({"untouched"}), frozenset[Choice]({"refused"})
_ALL = frozenset(CHOICES)

KINDS: Final[Mapping[str, About]] = {
    "loaded-before-consent": About(
        "Each request tells the vendor which page a visitor reads, and the visitor's IP address, before there is a "
        "choice to rely on.",
        "Load it only once the visitor has agreed to its purpose, or remove it. If the page needs it to work, and it "
        "doesn't recognize visitors, ignore the vendor.",
        _UNTOUCHED,
    ),
    "loads-after-refusal": About(
        "The visitor has said no, and the website does it anyway. Nothing that comes later can justify that.",
        "Make the tag wait for the purpose that was refused, also on further pages and on the next visit. If a tag "
        "manager loads it, set the consent of its trigger there.",
        _REFUSED,
    ),
    "cookie-before-consent": About(
        "A cookie that isn't necessary for what the visitor asked for needs consent, also one of the website.",
        "Set the cookie once the visitor has agreed, from a script or in a response to a request that is sent then. "
        "Delete it if consent is withdrawn.",
        _UNTOUCHED,
    ),
    "no-way-to-refuse": About(
        "Consent isn't free if refusing takes more effort than accepting.",
        "Show a button to refuse next to the one to accept: on the same layer, equally large and visible.",
        _UNTOUCHED,
    ),
    "lives-longer-than-declared": About(
        "Visitors agree to what the website tells them. A cookie that stays longer isn't what they agreed to.",
        "Set the cookie's lifetime to what the website declares, or correct the declaration.",
        _ALL,
    ),
    "consent-mode-signals-missing": About(
        "Without the signals, Google's tags can't know what the visitor chose, and measure as if all had been granted.",
        "Set all four signals to denied before the first tag, and update them when the visitor chooses: ad_storage, "
        "analytics_storage, ad_user_data, and ad_personalization.",
        _ALL,
    ),
}

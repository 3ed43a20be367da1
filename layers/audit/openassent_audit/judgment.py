"""Judges the visits: findings, each with its evidence, merged over the pages.

A finding's ID names what is wrong and with what. It is the same in every audit of the website, so that a later one can
resolve it.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from openassent_audit.recording import Cookie, Sent
from openassent_audit.vendors import Parties, Party, is_necessary, pattern_of, tracks
from openassent_audit.visits import Visit
from openassent_audit.words import words

_DAY: Final = 86_400
_LONG: Final = 30 * _DAY
MOST_EVIDENCE: Final = 20
_LIFETIME: Final = re.compile(r"(?<!\d)(\d+(?:[.,]\d+)?)\s*([^\W\d_]{1,12})")
_COOKIE_NAME: Final = re.compile(r"[\w.*$<>{}\[\]-]{2,60}")
_PLACEHOLDER: Final = re.compile(r"<[^>]*>|\{[^}]*\}|\[[^\]]*\]|\*+|#+|(?<=_)[xX]{2,}")
_SIGNALS: Final = ("ad_storage", "analytics_storage")
_OF_VERSION_2: Final = ("ad_user_data", "ad_personalization")


@dataclass(frozen=True, slots=True)
class Proof:
    """One piece of evidence. at: milliseconds since the visit began. chain: what led to it, nearest first."""

    description: str
    visit: str
    page: str
    at: int
    url: str | None = None
    chain: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding. id: `KIND:SUBJECT`, the same in every audit of the website."""

    kind: str
    subject: str
    title: str
    summary: str
    priority: str
    evidence: tuple[Proof, ...]
    party: Party | None = None
    cookie: str | None = None

    @property
    def id(self) -> str:
        return f"{self.kind}:{self.subject}"


def judge(host: str, visits: Sequence[Visit], parties: Parties) -> list[Finding]:
    """Returns the findings of the visits, the most urgent first."""
    mode = _ConsentMode(visits)
    refused = [visit for visit in visits if visit.choice == "refused"]
    found = [
        *_loads("loaded-before-consent", visits, parties, lambda sent: not sent.after_choice, mode),
        *_loads("loads-after-refusal", refused, parties, lambda sent: sent.after_choice, mode),
        *_cookies(visits, parties),
        *_lifetimes(visits),
        *_refusals(host, visits),
        *mode.findings(host, parties),
    ]
    return sorted(found, key=lambda it: (it.priority, it.kind, it.subject))


_TITLES: Final = {
    "loaded-before-consent": ("{} loads before consent", "It gets requests before the visitor has chosen."),
    "loads-after-refusal": ("{} loads after refusal", "It gets requests although the visitor has refused."),
}


def _loads(
    kind: str,
    visits: Sequence[Visit],
    parties: Parties,
    counts: Callable[[Sent], bool],
    mode: "_ConsentMode",
) -> Iterator[Finding]:
    title, summary = _TITLES[kind]
    by_party: dict[str, tuple[Party, list[Proof]]] = {}
    for visit in visits:
        for sent in visit.requests:
            party = parties.of_request(sent) if counts(sent) else None
            if party is None or not (party.needs_consent or _reports(party, sent)) or mode.excuses(party, sent):
                continue
            hidden = f", which is {party.alias_of}" if party.alias_of else ""
            proof = Proof(
                f"A {sent.kind} request to {sent.host}{hidden}", visit.choice, sent.page, sent.at, sent.url, sent.chain
            )
            by_party.setdefault(party.id, (party, []))[1].append(proof)
    for party, proofs in by_party.values():
        what = party.category or "not in the catalog"
        text = f"{party.name} ({what}) was requested. {summary}"
        priority = party.priority if party.needs_consent else "P3"
        yield Finding(kind, party.id, title.format(party.name), text, priority, _merged(proofs), party)


def _reports(party: Party, sent: Sent) -> bool:
    """Returns whether a third party that the catalog doesn't have gets data that the page doesn't wait for."""
    return party.category is None and sent.kind in {"ping", "unseen"}


def _merged(proofs: Iterable[Proof]) -> tuple[Proof, ...]:
    """Returns the first proof of each address on each page."""
    first: dict[tuple[str | None, str, str], Proof] = {}
    for proof in proofs:
        first.setdefault((proof.url or proof.description, proof.page, proof.visit), proof)
    return tuple(first.values())[:MOST_EVIDENCE]


def _proof(cookie: Cookie, visit: Visit) -> Proof:
    by = "a response" if cookie.set_by else "a script"
    lives = "until the browser closes" if cookie.lifetime_seconds is None else readable(cookie.lifetime_seconds)
    text = f"Cookie {cookie.name} of {cookie.domain}, set by {by}, lives {lives}"
    return Proof(text, visit.choice, cookie.page, cookie.at, cookie.set_by or None)


def readable(seconds: int) -> str:
    days = seconds / _DAY
    return f"{round(days):,} days" if days >= 1.5 else f"{round(seconds / 3600):,} hours"


def _priority(cookie: Cookie, party: Party | None) -> str | None:
    """Returns how urgent it is that a cookie is set before consent. None if it may be."""
    if tracks(cookie):
        return "P1"
    is_identifier = cookie.identifies and (cookie.lifetime_seconds or 0) > _LONG
    if party is not None:
        if party.needs_consent:
            return party.priority
        return "P2" if party.category is None and is_identifier else None
    return "P3" if is_identifier and not is_necessary(cookie) else None


def _cookies(visits: Sequence[Visit], parties: Parties) -> Iterator[Finding]:
    found: dict[str, tuple[str, str, Party | None, list[Proof]]] = {}
    for visit in visits:
        for cookie in visit.cookies:
            party = parties.of_cookie(cookie)
            priority = None if cookie.after_choice else _priority(cookie, party)
            if priority is None:
                continue
            name = pattern_of(cookie.name)
            subject = f"{name}@{party.domain if party and not parties.is_own(party.domain) else 'website'}"
            found.setdefault(subject, (name, priority, party, []))[3].append(_proof(cookie, visit))
    for subject, (name, priority, party, proofs) in found.items():
        of = f" of {party.name}" if party else ""
        title = f"The cookie {name}{of} is set before consent"
        text = f"{title}. It can recognize the visitor. Set it only after the visitor has agreed."
        yield Finding("cookie-before-consent", subject, title, text, priority, _merged(proofs), party, name)


def lifetime_in(text: str) -> float | None:
    """Returns the lifetime that a cell of a list of cookies states, in seconds, or None."""
    stated = _LIFETIME.search(text)
    if stated is None:
        return None
    for days, unit in words()["units"].items():
        if re.fullmatch(unit, stated[2], re.IGNORECASE):
            return float(stated[1].replace(",", ".")) * float(days) * _DAY
    return None


def _expression(name: str) -> re.Pattern[str]:
    """Returns the expression of a declared name with placeholders.

    Its groups are atomic, because a page can declare a name that would take longer than any audit (`*a*a*a*a`).
    """
    start, *others = map(re.escape, _PLACEHOLDER.split(name))
    *inner, end = (rf"[\w.-]+?{it}" for it in others) if others else [""]
    return re.compile("".join((start, *(f"(?>{it})" for it in inner), end)))


def declared_lifetimes(rows: Iterable[Sequence[str]]) -> dict[re.Pattern[str], float]:
    """Returns the lifetimes that the rows of a table state, in seconds, by the expression of the cookie's name."""
    found: dict[re.Pattern[str], float] = {}
    for cells in rows:
        name = next((it for it in cells if _COOKIE_NAME.fullmatch(it)), None)
        lifetime = next(filter(None, map(lifetime_in, (it for it in cells if it != name))), None)
        if name and lifetime:
            found.setdefault(_expression(name), lifetime)
    return found


def _lifetimes(visits: Sequence[Visit]) -> Iterator[Finding]:
    declared = declared_lifetimes(row for visit in visits for state in visit.states for row in state["rows"])
    found: dict[str, tuple[float, list[Proof]]] = {}
    for visit in visits:
        for cookie in visit.cookies:
            stated = next((it for name, it in declared.items() if name.fullmatch(cookie.name)), None)
            # A tenth and a day for rounding, and for time zones.
            if stated and cookie.lifetime_seconds and cookie.lifetime_seconds > stated * 1.1 + _DAY:
                found.setdefault(pattern_of(cookie.name), (stated, []))[1].append(_proof(cookie, visit))
    for name, (stated, proofs) in found.items():
        title = f"The cookie {name} lives longer than the website says"
        text = f"The website's list of cookies says {readable(int(stated))}. Correct the list or the cookie."
        yield Finding("lives-longer-than-declared", name, title, text, "P2", _merged(proofs), None, name)


def _refusals(host: str, visits: Sequence[Visit]) -> Iterator[Finding]:
    for visit in visits:
        banner = visit.banner
        if banner is None or not banner.is_shown or not banner.accepts or banner.refuses:
            continue
        labels = ", ".join(f"“{it}”" for it in banner.buttons)
        proof = Proof(f"The banner's buttons: {labels}", visit.choice, visit.pages[0], 0, visit.pages[0])
        text = "The banner has a button to accept, but none to refuse without a further click. Add an equal one."
        title = "Refusing isn't as easy as accepting"
        yield Finding("no-way-to-refuse", host, title, text, "P1", (proof,))


class _ConsentMode:
    """Google's consent mode, as the visited pages use it."""

    def __init__(self, visits: Sequence[Visit]) -> None:
        self._visits = visits
        self._defaults: dict[str, str] = {}
        self._denies = False
        for state in (state for visit in visits if visit.choice == "untouched" for state in visit.states):
            commands = state["commands"]
            # A default that comes after the first tag is too late for it.
            starts = next((i for i, it in enumerate(commands) if it["command"] == "start"), len(commands))
            defaults = [it["signals"] for it in commands[:starts] if it["command"] == "default"]
            for signals in defaults:
                self._defaults |= signals
            self._denies = self._denies or any(all(it.get(name) == "denied" for name in _SIGNALS) for it in defaults)

    def excuses(self, party: Party, sent: Sent) -> bool:
        """Returns whether denied consent allows a request of Google's tags: a tag itself, or a hit without cookies."""
        if not party.is_google:
            return False
        stated = sent.consent.get("gcs")
        return stated == "G100" if stated else self._denies and sent.kind == "script"

    def findings(self, host: str, parties: Parties) -> Iterator[Finding]:
        """Yields a finding if Google's tags run without the signals that they need, in any visit."""
        tags = [
            (visit, sent)
            for visit in self._visits
            for sent in visit.requests
            if sent.kind == "script" and (party := parties.of_request(sent)) and party.is_google
        ]
        if not tags:
            return
        commands = [it for visit in self._visits for state in visit.states for it in state["commands"]]
        stated = {name for it in commands if it["command"] in {"default", "update"} for name in it["signals"]}
        if not stated:
            text = "Google's tags run without consent mode. Set its defaults before the tags, and update them."
        elif "ad_storage" in stated and not stated.issuperset(_OF_VERSION_2):
            missing = " and ".join(name for name in _OF_VERSION_2 if name not in stated)
            text = f"The consent mode lacks {missing}, which Google requires for visitors from Europe."
        else:
            return
        proofs = [Proof(f"A tag of {it.host}", visit.choice, it.page, it.at, it.url, it.chain) for visit, it in tags]
        yield Finding(
            "consent-mode-signals-missing", host, "Consent mode signals are missing", text, "P2", _merged(proofs)
        )

"""The report of a run as its page shows it: third parties by column, timelines of the visits, and what was stored."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args

from controlplane.audits.items import ReportItem, RunItem, RunVendor

# Whether a request had consent. None: it needs none.
Mark = Literal["wrong", "agreed"]
_DAY_SECONDS = 86_400
# A visit has up to 300 requests in a report. The rest is folded.
_MOST_SHOWN, _MOST_FOLDED, _MOST_CAUSES = 60, 150, 3
# The width of the drawing of a visit.
WIDTH = 1_000
_COLUMNS = (("before", "Before a choice"), ("refused", "After refusing"), ("accepted", "After accepting"))
_KINDS = {"before": "loaded-before-consent", "refused": "loads-after-refusal"}
_EARLY = "cookie-before-consent:"
_LIFETIMES = {"local": "Until it is deleted", "session": "Until the tab is closed"}
_VISITS = {"before": "untouched", "refused": "refused", "accepted": "accepted"}


class Column(NamedTuple):
    """The third parties that get requests before a choice, or after one. others: those that need no consent.

    note: why nothing is known, or not everything.
    """

    name: str
    title: str
    vendors: list[tuple[RunVendor, Mark | None]]
    others: list[RunVendor]
    note: str | None


class Request(NamedTuple):
    """A request of a visit. vendor: the name of the third party that got it, or None.

    opened: the page, if it is the first of these requests on that page. chooses: whether it is the first after the
    choice.
    """

    at: int
    url: str
    kind: str
    chain: Sequence[str]
    vendor: str | None
    mark: Mark | None
    opened: str | None
    chooses: bool


class Track(NamedTuple):
    """A visit. to_vendors, more: its requests to third parties. own: the others. is_cut: whether there are more.

    marks: the positions of requests in the drawing. chosen_at: the position of the choice.
    """

    visit: Mapping[str, Any]
    to_vendors: Sequence[Request]
    more: Sequence[Request]
    own: Sequence[Request]
    is_cut: bool
    marks: Mapping[Mark | None, Sequence[int]]
    chosen_at: int | None
    seconds: float


class Stored(NamedTuple):
    """A cookie or storage key. about: its lifetime and flags. columns: the names of those in which it was stored.

    is_wrong: whether it is a finding that it is stored before consent.
    """

    name: str
    place: str
    about: str
    columns: frozenset[str]
    is_wrong: bool = False


class Shown(NamedTuple):
    """The records of a run, as its page shows them."""

    columns: list[Column]
    tracks: list[Track]
    cookies: list[Stored]
    keys: list[Stored]
    pages: list[str]
    banner: Mapping[str, Any] | None
    picture: str | None


def read_report(run: RunItem, report: ReportItem) -> Shown:
    """Returns the content of a completed run's page."""
    recorded = report.recorded
    visits = recorded["visits"]
    found = {it.id for it in run.findings}
    vendors = {it.vendor_id: it for it in report.vendors}
    return Shown(
        [_column(*named, report.vendors, found, recorded) for named in _COLUMNS],
        [_track(visit, vendors, found) for visit in visits],
        _cookies(visits, found),
        _storage(visits),
        recorded["pages"],
        recorded["banner"],
        report.picture,
    )


def _column(
    name: str, title: str, vendors: Iterable[RunVendor], found: set[str], recorded: Mapping[str, Any]
) -> Column:
    marked = [(it, _mark(name, it.vendor_id, it, found)) for it in vendors if getattr(it, name)]
    asking = [(it, mark) for it, mark in marked if mark or it.needs_consent]
    others = [it for it, mark in marked if not (mark or it.needs_consent)]
    return Column(name, title, asking, others, _note(name, recorded["visits"], recorded["banner"]))


def _note(name: str, visits: Sequence[Mapping[str, Any]], banner: object) -> str | None:
    made = {it["choice"]: it for it in visits}
    visit, refused = made.get(_VISITS[name]), made.get("refused")
    # A website without a banner gets no visit that accepts.
    if name != "before" and banner is None and refused and not (refused["halted"] or refused["answeredBy"]):
        return "The website didn't ask for a choice."
    if visit is None:
        return "This visit wasn't made, so nothing is known."
    if visit["halted"]:
        return "The visit ended early, so this may not be everything."
    if name != "before" and not visit["answeredBy"]:
        return "Nothing could answer the banner, so nothing is known."
    return None


def _mark(column: str, vendor_id: str, vendor: RunVendor | None, found: set[str]) -> Mark | None:
    if column == "accepted":
        return "agreed" if vendor and vendor.needs_consent else None
    return "wrong" if f"{_KINDS[column]}:{vendor_id}" in found else None


def _track(visit: Mapping[str, Any], vendors: Mapping[str, RunVendor], found: set[str]) -> Track:
    sent = sorted(visit["requests"], key=lambda it: it["at"])
    end = max((it["at"] for it in sent), default=0) or 1
    chosen = next((it["at"] for it in sent if it["afterChoice"]), None)
    marked = [(it, _mark_of(visit, it, vendors, found)) for it in sent]
    third = _requests([(it, mark) for it, mark in marked if it["vendorId"]], vendors)
    own = _requests([(it, mark) for it, mark in marked if not it["vendorId"]], vendors)
    return Track(
        visit,
        third[:_MOST_SHOWN],
        third[_MOST_SHOWN:][:_MOST_FOLDED],
        own[:_MOST_FOLDED],
        len(third) > _MOST_SHOWN + _MOST_FOLDED or len(own) > _MOST_FOLDED,
        {
            wanted: sorted({it["at"] * WIDTH // end for it, mark in marked if mark == wanted})
            for wanted in (None, *get_args(Mark))
        },
        None if chosen is None else chosen * WIDTH // end,
        end / 1_000,
    )


def _mark_of(
    visit: Mapping[str, Any], sent: Mapping[str, Any], vendors: Mapping[str, RunVendor], found: set[str]
) -> Mark | None:
    vendor_id = sent["vendorId"]
    return _mark(_column_of(visit, sent), vendor_id, vendors.get(vendor_id), found) if vendor_id else None


def _column_of(visit: Mapping[str, Any], recorded: Mapping[str, Any]) -> str:
    """Returns the column of what a visit recorded: the untouched one makes no choice."""
    return str(visit["choice"]) if recorded["afterChoice"] and visit["choice"] != "untouched" else "before"


def _requests(
    marked: Iterable[tuple[Mapping[str, Any], Mark | None]], vendors: Mapping[str, RunVendor]
) -> list[Request]:
    listed, page, has_chosen = list[Request](), "", False
    for it, mark in marked:
        vendor_id = it["vendorId"]
        name = vendors[vendor_id].name if vendor_id in vendors else vendor_id
        opened = it["page"] if it["page"] != page else None
        chooses = it["afterChoice"] and not has_chosen
        page, has_chosen = it["page"], has_chosen or it["afterChoice"]
        chain = [url for url in it["chain"] if url != it["page"]][:_MOST_CAUSES]
        listed.append(Request(it["at"], it["url"], it["kind"], chain, name, mark, opened, chooses))
    return listed


def _cookies(visits: Iterable[Mapping[str, Any]], findings: set[str]) -> list[Stored]:
    """Returns the cookies, those before a choice first. Names that differ only in an ID count as one."""
    found: dict[tuple[str, str], tuple[Mapping[str, Any], set[str]]] = {}
    for visit in visits:
        for cookie in visit["cookies"]:
            _, columns = found.setdefault((cookie["pattern"], cookie["domain"]), (cookie, set()))
            columns.add(_column_of(visit, cookie))
    wrong = {it.removeprefix(_EARLY).rpartition("@")[0] for it in findings if it.startswith(_EARLY)}
    return _sorted(
        Stored(name, domain, _about(cookie), frozenset(columns), name in wrong)
        for (name, domain), (cookie, columns) in found.items()
    )


def _storage(visits: Iterable[Mapping[str, Any]]) -> list[Stored]:
    found: dict[tuple[str, str, str], set[str]] = {}
    for visit in visits:
        for it in visit["storage"]:
            found.setdefault((it["key"], it["origin"], it["kind"]), set()).add(_column_of(visit, it))
    return _sorted(
        Stored(key, origin, _LIFETIMES.get(kind, kind), frozenset(columns))
        for (key, origin, kind), columns in found.items()
    )


def _sorted(stored: Iterable[Stored]) -> list[Stored]:
    return sorted(stored, key=lambda it: ("before" not in it.columns, "refused" not in it.columns, it.place, it.name))


def _about(cookie: Mapping[str, Any]) -> str:
    flags = [name for name, key in (("Secure", "secure"), ("HttpOnly", "httpOnly")) if cookie[key]]
    if cookie["sameSite"]:
        flags.append(f"SameSite={cookie['sameSite']}")
    return ", ".join([_lifetime(cookie["lifetimeSeconds"]), *flags])


def _lifetime(seconds: int | None) -> str:
    if seconds is None:
        return "Until the browser closes"
    days = seconds / _DAY_SECONDS
    return f"{round(days):,} days" if days >= 1.5 else f"{max(1, round(seconds / 3_600))} h"

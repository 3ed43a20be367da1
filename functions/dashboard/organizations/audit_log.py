"""The page of the audit log: the filters, one page of entries with the names of people, and the export."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

from fastapi import Response

from controlplane.access.web_session import WebSession
from controlplane.api_keys import store as api_keys
from controlplane.organizations import audit_log, members
from controlplane.organizations.audit_log import Filters, LogEntry
from controlplane.platform.core import clock, ids
from controlplane.platform.core.actions import Action
from controlplane.platform.core.ids import MemberId
from controlplane.platform.http.app import ControlRouter
from controlplane.platform.http.pagination import CursorCodec
from controlplane.platform.table.parallel import read_both, read_each
from controlplane.scans import spreadsheet
from dashboard.forms import find_day
from dashboard.pages import download, page
from dashboard.parameters import AdminSees, MemberSees

router = ControlRouter(tags=["Pages"], include_in_schema=False)

PER_PAGE = 50
# A response of a function has at most 6 MB.
MOST_EXPORTED = 5_000
_NAMED = 100
_DAY_SECONDS = 86_400
_OPERATOR, _FORMER, _FORMER_KEY, _SERVICE = "Operator", "A former member", "A former API key", "The service"
_COLUMNS = (
    *("Time", "Actor type", "Actor ID", "Actor", "Source", "Action", "Resource ID", "Resource", "Before", "After"),
    *("Request ID", "Entry ID"),
)

# The texts of the actions, in the order in which the filter lists them.
ACTIONS: dict[str, str] = json.loads(Path(__file__).with_name("actions.json").read_text(encoding="utf-8"))


class Chosen(NamedTuple):
    """The filters of the form, as text. Unknown values are ignored."""

    actor: str = ""
    action: str = ""
    resource: str = ""
    since: str = ""
    until: str = ""

    @classmethod
    def read(cls, parameters: Mapping[str, str]) -> "Chosen":
        texts = {name: parameters.get(name, "").strip()[:100] for name in cls._fields}
        if texts.get("action") not in ACTIONS:
            texts["action"] = ""
        for name in ("since", "until"):
            if find_day(texts.get(name, "")) is None:
                texts[name] = ""
        return cls(**texts)

    @property
    def filters(self) -> Filters:
        since, until = find_day(self.since), find_day(self.until)
        return Filters(
            self.actor or None,
            Action(self.action) if self.action else None,
            self.resource or None,
            None if since is None else since.timestamp(),
            None if until is None else until.timestamp() + _DAY_SECONDS - 0.001,
        )

    def query(self, **more: str) -> str:
        """Returns the filters as the query of a link."""
        given = {name: value for name, value in {**self._asdict(), **more}.items() if value}
        return f"?{urlencode(given)}" if given else ""


class Row(NamedTuple):
    """An entry with what was done, and the names of the actor and, if known, of the resource."""

    entry: LogEntry
    done: str
    actor: str
    name: str | None
    changes: list[tuple[str, str, str]]


@router.get("/organizations/{organizationSlug}/audit-log")
async def show_audit_log(session: MemberSees) -> Response:
    """Lists what changed in the organization, newest first, to admins and owners."""
    chosen, organization_id = Chosen.read(session.parameters), session.organization.organization_id
    codec = CursorCodec(session.parameters.get("after"), "showAuditLog", organization_id, *chosen.filters.binding)
    content: dict[str, Any] = {"chosen": chosen, "actions": ACTIONS, "most_exported": MOST_EXPORTED}
    if not session.is_admin:
        return page("audit_log", session, **content, rows=[], actors={}, next_cursor=None, is_first=True)
    listed, actors = read_both(
        lambda: audit_log.list_entries(organization_id, PER_PAGE, codec.after, chosen.filters, consistent=True),
        lambda: _list_actors(organization_id),
    )
    return page(
        "audit_log",
        session,
        **content,
        rows=[_row(entry, actors) for entry in listed.entries],
        actors=actors,
        next_cursor=codec.cursor(listed.next_position),
        is_first=codec.after is None,
    )


@router.get("/organizations/{organizationSlug}/audit-log.csv")
async def download_audit_log_csv(session: AdminSees) -> Response:
    """Returns the entries that match the filters as CSV."""
    text = _to_csv(_list_exported(session))
    return download(f"audit-log-{session.organization.slug}.csv", text, "text/csv; charset=utf-8")


@router.get("/organizations/{organizationSlug}/audit-log.json")
async def download_audit_log_json(session: AdminSees) -> Response:
    """Returns the entries that match the filters as JSON."""
    text = _to_json(_list_exported(session))
    return download(f"audit-log-{session.organization.slug}.json", text, "application/json")


def _list_exported(session: WebSession) -> list[Row]:
    """Returns the latest entries that match the filters."""
    organization_id, filters = session.organization.organization_id, Chosen.read(session.parameters).filters
    actors = _list_actors(organization_id)
    entries: list[LogEntry] = []
    position: str | None = None
    while len(entries) < MOST_EXPORTED:
        listed = audit_log.list_entries(organization_id, MOST_EXPORTED - len(entries), position, filters)
        entries += listed.entries
        position = listed.next_position
        if position is None:
            break
    return [_row(entry, actors) for entry in entries]


def _list_actors(organization_id: str) -> dict[str, str]:
    """Returns the names of the members and keys that a page of each lists, and of the operator, by ID."""

    def list_names(kind: str) -> list[tuple[str, str]]:
        if kind == "keys":
            keys = api_keys.list_keys(organization_id, _NAMED, None).items
            return [(key.key_id, f"API key {key.name}") for key in keys]
        roster = members.list_members(organization_id, _NAMED, None).items
        return sorted(((member.user_id, member.name) for member in roster), key=lambda it: it[1].casefold())

    people, keys = read_each(list_names, ("people", "keys"))
    return {**dict(people), **dict(keys), "operator": _OPERATOR}


def _row(entry: LogEntry, actors: Mapping[str, str]) -> Row:
    unnamed = {"person": _FORMER, "api_key": _FORMER_KEY}.get(entry.actor_kind, _SERVICE)
    actor = actors.get(entry.actor_id, unnamed)
    changes = [(it.field, as_text(it.before), as_text(it.after)) for it in entry.changes]
    name = entry.name
    if (member_id := MemberId.parse(entry.resource)) is not None:
        # The log has no names of people: the member's comes from the roster.
        name = actors.get(f"{ids.USER}_{member_id.local}", _FORMER)
    return Row(entry, ACTIONS.get(entry.action, entry.action), actor, name, changes)


def as_text(value: Any) -> str:
    """Returns a value of a changed field as text for people. Nothing for no value."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {as_text(part)}" for name, part in value.items() if part is not None)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(map(as_text, value))
    return str(value)


def _to_csv(rows: Sequence[Row]) -> str:
    lines = []
    for row in rows:
        entry = row.entry
        before, after = ("; ".join(f"{it[0]}: {it[place]}" for it in row.changes if it[place]) for place in (1, 2))
        lines.append(
            (
                *(entry.at, entry.actor_kind, entry.actor_id, row.actor, entry.source, entry.action),
                *(entry.resource, row.name or "", before, after, entry.request_id or "", entry.entry_id),
            )
        )
    return spreadsheet.to_csv(_COLUMNS, lines)


def _to_json(rows: Sequence[Row]) -> str:
    """Returns the entries in the form of the API, with the actors' names."""
    listed = [
        {
            "id": entry.entry_id,
            "createdAt": entry.at,
            "action": entry.action,
            "actor": {"type": entry.actor_kind, "id": entry.actor_id, "name": row.actor},
            "source": entry.source,
            "resource": {"id": entry.resource, "name": entry.name},
            "requestId": entry.request_id,
            "changes": [it._asdict() for it in entry.changes],
        }
        for row in rows
        for entry in (row.entry,)
    ]
    return json.dumps({"exportedAt": clock.timestamp(), "entries": listed}, ensure_ascii=False, indent=1)

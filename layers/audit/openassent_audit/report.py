"""The report of an audit: data that can be written as JSON, and the message that the service's intake accepts."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, Final, Literal

from openassent_audit.banners import CHOICES
from openassent_audit.judgment import Finding
from openassent_audit.messages import make_message
from openassent_audit.vendors import Parties, Party, pattern_of
from openassent_audit.visits import Visit

Outcome = Literal["passed", "failed", "blocked"]
# Of a visit's list of requests. The findings are made of all of them.
_MOST_REQUESTS: Final = 1_000


@dataclass(frozen=True)
class Reason:
    """Why a website couldn't be audited. code: see docs/audits.md."""

    code: str
    message: str


@dataclass(frozen=True)
class Audit:
    """A completed audit. picture: the start page before any choice, as JPEG."""

    url: str
    host: str
    started_at: datetime
    finished_at: datetime
    outcome: Outcome
    parties: Parties
    reason: Reason | None = None
    findings: Sequence[Finding] = ()
    visits: Sequence[Visit] = ()
    picture: bytes | None = field(default=None, repr=False)

    def as_json(self) -> dict[str, Any]:
        banner = next((visit.banner for visit in self.visits if visit.banner), None)
        return {
            "version": 1,
            "url": self.url,
            "host": self.host,
            "startedAt": self.started_at.isoformat(),
            "finishedAt": self.finished_at.isoformat(),
            "outcome": self.outcome,
            "reason": asdict(self.reason) if self.reason else None,
            "banner": _camel(asdict(banner)) if banner else None,
            "pages": list(dict.fromkeys(page for visit in self.visits for page in visit.pages)),
            "findings": [_finding(it) for it in self.findings],
            "vendors": list(self._vendors()),
            "visits": [self._visit(it) for it in self.visits],
        }

    def as_message(self) -> dict[str, Any]:
        """Returns the message that reports the audit to the service (`messages`)."""
        return make_message(self.as_json(), self._made(), self.picture)

    def _made(self) -> list[str]:
        """Returns the choices whose visits ran to their end. Without a banner, there is nothing to choose."""
        has_banner = any(visit.banner for visit in self.visits)
        made = [it.choice for it in self.visits if not it.halted and (it.choice == "untouched" or it.answered_by)]
        is_answered = has_banner or len(self.visits) < 2 or any(visit.halted for visit in self.visits)
        return [*made] if is_answered else list(CHOICES)

    def _vendors(self) -> Iterator[dict[str, Any]]:
        """Yields each third party with when it got requests: before a choice, after refusal, and after acceptance."""
        early = {it.subject for it in self.findings if it.kind == "loaded-before-consent"}
        seen: dict[str, tuple[Party, set[str], dict[str, None]]] = {}
        for visit in self.visits:
            for sent in visit.requests:
                party = self.parties.of_request(sent)
                if party is not None:
                    _, columns, pages = seen.setdefault(party.id, (party, set(), {}))
                    columns.add(visit.choice if sent.after_choice else "untouched")
                    pages[sent.page] = None
        for party, columns, pages in seen.values():
            yield {
                "vendorId": party.id,
                "name": party.name,
                "domain": party.domain,
                "category": party.category,
                "aliasOf": party.alias_of or None,
                "needsConsent": party.needs_consent,
                "before": "untouched" in columns and (party.id in early or not party.needs_consent),
                "refused": "refused" in columns,
                "accepted": "accepted" in columns,
                "pages": list(pages),
            }

    def _visit(self, visit: Visit) -> dict[str, Any]:
        return {
            "choice": visit.choice,
            "answeredBy": visit.answered_by,
            "halted": visit.halted,
            "pages": visit.pages,
            # Reported by the pages themselves.
            "consentMode": next((it["commands"] for it in visit.states if it["commands"]), []),
            "tcf": next((it["tcf"] for it in reversed(visit.states) if it["tcf"]), None),
            "requestCount": len(visit.requests),
            "requests": [
                {**_camel(asdict(it)), "vendorId": party.id if (party := self.parties.of_request(it)) else None}
                for it in visit.requests[:_MOST_REQUESTS]
            ],
            "cookies": [_camel(asdict(it)) | {"pattern": pattern_of(it.name)} for it in visit.cookies],
            "storage": [
                {"origin": origin, "kind": kind, "key": key, "afterChoice": after}
                for (origin, kind, key), after in visit.storage.items()
            ],
            "refused": visit.refused,
        }


def _finding(finding: Finding) -> dict[str, Any]:
    party = finding.party
    return {
        "id": finding.id,
        "kind": finding.kind,
        "title": finding.title,
        "summary": finding.summary,
        "priority": finding.priority,
        "vendorId": party.id if party else None,
        "cookie": finding.cookie,
        "evidence": [_camel(asdict(it)) for it in finding.evidence],
    }


def _camel(named: dict[str, Any]) -> dict[str, Any]:
    return {_renamed(name): list(value) if isinstance(value, tuple) else value for name, value in named.items()}


def _renamed(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(it.capitalize() for it in rest)
